//! The packages of a watched directory: which changes are in one, which are complete, and the titles of
//! their videos. Pure.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::package::PackageVideo;
use super::compare::{Difference, Found};
use crate::store::watched::Stamp;

/// How long the files of a package must be unchanged before it is read, as it may be copied right now.
const QUIET: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct Packages {
    /// Those of the last look at everything, with their videos.
    known: BTreeMap<PathBuf, Option<PackageVideo>>,
}

impl Packages {
    /// Whether a path is in a package, and is not its video.
    pub(super) fn has(&self, path: &Path) -> bool {
        let package = path.ancestors().find_map(|at| self.known.get(at));
        package.is_some_and(|video| video.as_ref().is_none_or(|video| video.path != path))
    }

    /// Takes the packages of a new look. Returns the videos whose titles are new, and the titles before.
    pub(super) fn renew(
        &mut self,
        packages: BTreeMap<PathBuf, Option<PackageVideo>>,
    ) -> Vec<(PackageVideo, Option<String>)> {
        let before = std::mem::replace(&mut self.known, packages);
        let title = |package| Some(before.get(package)?.as_ref()?.title.clone());
        let videos = self.known.iter().filter_map(|(package, video)| {
            let video = video.clone()?;
            let before = title(package);
            (before.as_ref() != Some(&video.title)).then_some((video, before))
        });
        videos.collect()
    }
}

/// Leaves out the packages whose files have changed a moment ago. Returns how long it takes until the
/// next one is quiet. `now` is in microseconds since 1970.
pub(super) fn hold_back(found: &Found, difference: &mut Difference, now: i64) -> Option<Duration> {
    let mut next: Option<Duration> = None;
    let mut is_quiet = |stamp: &Stamp| {
        let left = until_quiet(stamp, now);
        next = next.into_iter().chain(left).min();
        left.is_none()
    };
    for files in [&mut difference.first, &mut difference.read] {
        files.retain(|(path, stamp)| !found.packages.contains_key(path) || is_quiet(stamp));
    }
    next
}

/// How long it takes until a package is quiet. A change in the future is one of another clock.
fn until_quiet(stamp: &Stamp, now: i64) -> Option<Duration> {
    let age = u64::try_from(now - stamp.changed / 1000).ok()?;
    QUIET
        .checked_sub(Duration::from_micros(age))
        .filter(|left| !left.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_is_quiet_one_second_after_its_last_change() {
        let check = |age: i64, expected: Option<u64>| {
            let now = 1_000_000_000;
            let changed = (now - age) * 1000;
            let stamp = Stamp {
                changed,
                ..Stamp::default()
            };
            let left = until_quiet(&stamp, now);
            assert_eq!(left, expected.map(Duration::from_micros), "{age}");
        };
        check(0, Some(1_000_000));
        check(400_000, Some(600_000));
        check(1_000_000, None);
        check(5_000_000, None);
        check(-5_000_000, None);
    }
}
