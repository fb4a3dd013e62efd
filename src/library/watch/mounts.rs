//! Disks that come and go: the kernel tells of a change of its table, and of a directory only those
//! mounts matter that lie on the way to it or in it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

const TABLE: &str = "/proc/self/mountinfo";

pub(super) struct Mounts(File);

impl Mounts {
    pub(super) fn open() -> io::Result<Self> {
        File::open(TABLE).map(Self)
    }

    /// Those that matter to a directory.
    pub(super) fn of(directory: &Path) -> Vec<String> {
        of(&fs::read_to_string(TABLE).unwrap_or_default(), directory)
    }
}

/// What is mounted, by its root, and where. The same disk may have another number when it is there
/// again.
pub(super) type Mounted = (String, PathBuf);

pub(super) fn mounted(mounts: &[String]) -> BTreeSet<Mounted> {
    let one = |mount: &String| {
        let mut fields = mount.split(' ').skip(3).map(plain);
        Some((fields.next()?, PathBuf::from(fields.next()?)))
    };
    mounts.iter().filter_map(one).collect()
}

impl AsFd for Mounts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn of(table: &str, directory: &Path) -> Vec<String> {
    let matters = |line: &&str| {
        let point = line.split(' ').nth(4).map(|point| PathBuf::from(plain(point)));
        point.is_some_and(|point| directory.starts_with(&point) || point.starts_with(directory))
    };
    // Without what counts peers, which other mounts change.
    let lines = table.lines().filter(matters);
    lines.map(|line| line.split(' ').take(5).collect::<Vec<_>>().join(" ")).collect()
}

/// Spaces, tabs, newlines and backslashes are octal there.
fn plain(point: &str) -> String {
    let codes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    codes.iter().fold(point.to_owned(), |text, (code, plain)| text.replace(code, plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_on_the_way_and_inside_matter() {
        let table = "1 0 8:1 / / rw - ext4 a rw\n2 1 8:2 / /home/u/My\\040Walls rw - ext4 b rw\n\
                     3 1 8:3 / /mnt rw - ext4 c rw\n4 2 8:4 / /home/u/My\\040Walls/nas rw - nfs d rw";
        let numbers = |directory: &str| -> String {
            of(table, Path::new(directory)).iter().map(|line| &line[..1]).collect()
        };
        assert_eq!(numbers("/home/u/My Walls"), "124");
        assert_eq!(numbers("/mnt/x"), "13");
        assert_eq!(numbers("/srv"), "1");
        let walls = ("/".to_owned(), PathBuf::from("/home/u/My Walls"));
        assert!(mounted(&of(table, Path::new("/home/u/My Walls"))).contains(&walls));
    }
}
