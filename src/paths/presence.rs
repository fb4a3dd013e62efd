//! Finds out whether a file exists on a disk that may not answer: a look at a file on a dead
//! network disk never returns.
//!
//! Each look runs on a thread `stat`, which is abandoned if it takes too long. While a look hangs
//! on a disk, no other is started there that would wait as long. Used only for the user's files and
//! the configuration; access to murald's own directories may block.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

use crate::sys::lock;
use crate::thread::{self, Thread};

/// Time limit of a look at a file that is asked for; a disk that has to spin up takes seconds.
const WITHIN: Duration = Duration::from_secs(5);
/// The same for a file that nothing asks for now: other work waits for the look.
const SOON: Duration = Duration::from_millis(500);
/// Maximum number of disks on which looks may hang; beyond it, all files count as not answering.
const HUNG_MAX: usize = 32;
const STACK: usize = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    There,
    Missing,
    /// An error other than its absence prevented the look.
    Failed,
    /// The disk does not answer.
    NoAnswer,
}

/// A look that was abandoned: where its disk is mounted, whether it still hangs, and when it began.
type Hung = (PathBuf, Weak<()>, Instant);

static HUNG: Mutex<Vec<Hung>> = Mutex::new(Vec::new());
static LATE: Mutex<Vec<Sender<()>>> = Mutex::new(Vec::new());

/// Finds out whether a path exists, following links. Returns within seconds.
pub(crate) fn presence(path: &Path) -> Presence {
    Look::begin(path, WITHIN).end()
}

/// Finds out the same about all of these paths at once, within half a second.
pub(crate) fn presences<'a>(paths: impl Iterator<Item = &'a Path>) -> Vec<Presence> {
    let looks: Vec<Look> = paths.map(|path| Look::begin(path, SOON)).collect();
    looks.into_iter().map(Look::end).collect()
}

/// Whether the disk of a path answers. Returns within seconds, usually at once.
pub(crate) fn answers(path: &Path) -> bool {
    presence(path) != Presence::NoAnswer
}

/// Whether looks on the disk of a path hang.
pub(crate) fn hangs(path: &Path) -> bool {
    has_hung(path, WITHIN)
}

/// Tells those that wait for late answers.
pub(crate) fn look_again() {
    lock(&LATE).retain(|late| late.try_send(()) != Err(TrySendError::Disconnected(())));
}

/// Gets a message if a disk answers after all, or may have come back.
pub(crate) fn late_answers() -> Receiver<()> {
    let (late, answers) = bounded(1);
    lock(&LATE).push(late);
    answers
}

/// A look on its way.
enum Look {
    Ended(Presence),
    Waits {
        directory: PathBuf,
        asked: Asked,
        began: Instant,
        within: Duration,
    },
}

/// The thread of a look.
struct Asked {
    thread: Thread,
    told: Receiver<Presence>,
    /// Gone once the disk has answered.
    hangs: Weak<()>,
}

impl Look {
    fn begin(path: &Path, within: Duration) -> Self {
        let directory = path.parent().unwrap_or(path);
        if has_hung(directory, within) {
            return Self::Ended(Presence::NoAnswer);
        }
        match ask(path) {
            Ok(asked) => Self::Waits {
                directory: directory.to_owned(),
                asked,
                began: Instant::now(),
                within,
            },
            // Look on this thread: that threads are exhausted and the disk is dead is unlikely.
            Err(error) => {
                log::debug!("cannot start a thread to look at a file: {error}");
                Self::Ended(there(&fs::metadata(path)))
            }
        }
    }

    fn end(self) -> Presence {
        match self {
            Self::Ended(presence) => presence,
            Self::Waits {
                directory,
                asked,
                began,
                within,
            } => asked
                .told
                .recv_deadline(began + within)
                .unwrap_or_else(|_| {
                    leave(&directory, asked, began);
                    Presence::NoAnswer
                }),
        }
    }
}

fn ask(path: &Path) -> io::Result<Asked> {
    // Without room, the answer is sent only if it is waited for.
    let (tell, told) = bounded(0);
    let seen = path.to_owned();
    let looks = Arc::new(());
    let hangs = Arc::downgrade(&looks);
    let look = move || {
        if tell.send(there(&fs::metadata(seen))).is_err() {
            // Before the message: its receivers look again.
            drop(looks);
            look_again();
        }
    };
    let thread = thread::expendable("stat", STACK, look)?;
    Ok(Asked {
        thread,
        told,
        hangs,
    })
}

fn there<T>(seen: &io::Result<T>) -> Presence {
    match seen {
        Ok(_) => Presence::There,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Presence::Missing,
        Err(_) => Presence::Failed,
    }
}

/// Remembers a look that hangs, one for each disk.
fn leave(directory: &Path, asked: Asked, began: Instant) {
    asked.thread.leave();
    let mut at = mount_point(directory);
    let is_known = |at: &Path| lock(&HUNG).iter().any(|(known, ..)| known == at);
    if is_known(&at) || is_known(directory) {
        return;
    }
    // If the mount point answers, the directory may lie behind a link to another disk.
    let mount = (at != directory).then(|| ask(&at).ok()).flatten();
    match mount.map(|mount| (mount.told.recv_timeout(SOON), mount.thread)) {
        Some((Ok(_), _)) => at = directory.to_owned(),
        Some((Err(_), thread)) => thread.leave(),
        None => {}
    }
    log::warn!("the disk of {} does not answer", directory.display());
    lock(&HUNG).push((at, asked.hangs, began));
}

/// Where the disk of a directory is mounted; the directory itself on the root file system, and if the
/// kernel writes the mount point with escapes.
fn mount_point(directory: &Path) -> PathBuf {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    let above = points.filter(|point| *point != "/" && directory.starts_with(point));
    let point = above.max_by_key(|point| point.len());
    point.map_or_else(|| directory.to_owned(), PathBuf::from)
}

/// Whether a look on the disk of a directory has hung for this long.
fn has_hung(directory: &Path, within: Duration) -> bool {
    let mut hung = lock(&HUNG);
    hung.retain(|(_, hangs, _)| hangs.strong_count() > 0);
    let hangs = |(at, _, began): &Hung| directory.starts_with(at) && began.elapsed() >= within;
    hung.len() >= HUNG_MAX || hung.iter().any(hangs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presence_tells_existing_and_missing_files_apart() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        assert_eq!(presence(&file), Presence::Missing);
        fs::write(&file, "").unwrap();
        assert_eq!(presence(&file), Presence::There);
        // The error is not that the file is missing.
        assert_eq!(presence(&file.join("b")), Presence::Failed);
    }
}
