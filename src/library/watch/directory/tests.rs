//! Tests looks at a directory, missing files and reported changes.

use super::super::findings::{Found, compare};
use super::super::settings::GRACE;
use super::*;
use crate::store::watched::{Stamp, WatchedFile};

fn watched(now: Instant) -> Watched {
    let task = task::Directory {
        path: "/w".into(),
        ..task::Directory::default()
    };
    Watched::new(1, "/w".to_owned(), task, now)
}

fn gone(path: &str) -> Difference {
    let stamp = Stamp::default();
    let file = WatchedFile {
        path: path.into(),
        image_id: Some(1),
        checksum: None,
        stamp,
    };
    Difference {
        gone: vec![file],
        ..Difference::default()
    }
}

#[test]
fn look_without_progress_is_abandoned() {
    let now = Instant::now();
    let mut one = watched(now);
    let (scope, life) = one.next_look(7, now).unwrap();
    assert_eq!((scope, one.next_look(8, now).is_none()), (Scope::All, true));
    life.fetch_add(1, Ordering::Relaxed);
    assert!(!one.leaves_look(now + PATIENCE), "it gets on");
    assert!(!one.leaves_look(now + PATIENCE * 2 - Duration::from_secs(1)));
    assert!(one.leaves_look(now + PATIENCE * 2));
    assert_eq!(one.state(false).0, WatchState::Unreadable);
    one.look_at_all(now);
    assert!(
        one.next_look(9, now).is_some(),
        "it is tried again when somebody asks"
    );
    one.absorb(Difference::default(), &Scope::All, now);
    assert_eq!(one.state(false).0, WatchState::Watched);
}

#[test]
fn look_that_could_not_start_is_retried_later() {
    let now = Instant::now();
    let mut one = watched(now);
    one.postpone(now);
    assert!(one.next_look(1, now).is_none());
    assert_eq!(one.due(), Some(now + LATER));
    assert!(one.next_look(2, now + LATER).is_some());
    // The look was handed out, but its thread could not be started.
    one.postpone(now + LATER);
    assert_eq!(
        one.next_look(3, now + LATER * 2).map(|(scope, _)| scope),
        Some(Scope::All)
    );
}

#[test]
fn missing_file_leaves_once_a_look_after_its_grace_period_misses_it() {
    let now = Instant::now();
    let mut one = watched(now);
    one.next_look(1, now).unwrap();
    one.looking = None;
    one.absorb(gone("/w/a"), &Scope::All, now);
    assert_eq!((one.leaving().len(), one.due()), (0, Some(now + GRACE)));
    one.look_for_gone(now + GRACE);
    assert_eq!(one.leaving().len(), 0, "nobody has looked yet");
    one.absorb(gone("/w/a"), &Scope::All, now + GRACE);
    assert_eq!(one.leaving(), [PathBuf::from("/w/a")]);
    let found = Difference {
        found: vec!["/w/a".into()],
        ..Difference::default()
    };
    one.absorb(found, &Scope::All, now + GRACE);
    assert!(one.leaving().is_empty() && !one.missing.has(Path::new("/w/a")));
}

#[test]
fn old_name_of_a_renamed_file_is_forgotten() {
    let now = Instant::now();
    let mut one = watched(now);
    one.next_look(1, now).unwrap();
    one.looking = None;
    one.absorb(gone("/w/a"), &Scope::All, now);
    let other = Scope::Paths(["/w/b".into()].into());
    one.absorb(Difference::default(), &other, now);
    assert!(
        one.missing.has(Path::new("/w/a")),
        "nobody has looked there"
    );
    let scope = Scope::Paths(["/w/a".into()].into());
    one.absorb(Difference::default(), &scope, now + GRACE);
    assert_eq!(
        (one.missing.has(Path::new("/w/a")), one.due()),
        (false, None)
    );
}

#[test]
fn files_that_vanished_all_at_once_are_kept() {
    let now = Instant::now();
    let mut one = watched(now);
    one.absorb(gone("/w/a"), &Scope::All, now);
    one.missing.vanish();
    one.absorb(gone("/w/a"), &Scope::All, now + GRACE);
    assert!(one.leaving().is_empty() && one.missing.has(Path::new("/w/a")));
}

#[test]
fn only_changes_of_scanned_files_are_looked_at() {
    let now = Instant::now();
    let mut one = watched(now);
    one.next_look(1, now).unwrap();
    one.looking = None;
    one.on_changes(["/w/.hidden", "/elsewhere"].map(PathBuf::from).into(), now);
    assert_eq!(one.due(), None);
    one.on_changes(["/w/.hidden", "/w/a.png"].map(PathBuf::from).into(), now);
    assert_eq!(one.due(), Some(now));
}

#[test]
fn many_renamed_files_are_matched_without_comparing_each_pair() {
    const COUNT: u64 = 20_000;
    let (now, mut one) = (Instant::now(), watched(Instant::now()));
    let (mut known, mut findings) = (Vec::new(), Findings::default());
    for number in 0..COUNT {
        let (old, new) = (format!("/w/{number}.old"), format!("/w/{number}.new"));
        let stamp = Stamp {
            size: number,
            device: 1,
            inode: number,
            ..Stamp::default()
        };
        findings.gone.insert(old.clone().into(), 1);
        let stamp_now = Stamp {
            changed: 1,
            ..stamp
        };
        findings.files.push(Found {
            path: new.into(),
            stamp: stamp_now,
            born: i64::MAX,
        });
        known.push(WatchedFile {
            path: old.into(),
            image_id: Some(1),
            checksum: None,
            stamp,
        });
    }
    let scope = Scope::Paths(
        known
            .iter()
            .map(|file| &file.path)
            .chain(findings.files.iter().map(|file| &file.path))
            .cloned()
            .collect(),
    );
    let worked = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime).tv_sec;
    let before = worked();
    one.looking = None;
    one.absorb(compare(known, &findings, &scope), &scope, now);
    assert_eq!(one.missing.to_confirm(now + GRACE).len(), COUNT as usize);
    let mut files = 0;
    while let Some((some, _)) = one
        .next_files(|_, _| false)
        .filter(|(_, pass)| *pass == Pass::Moves)
    {
        (files, one.taking) = (files + some.len(), None);
    }
    assert_eq!(files, COUNT as usize);
    assert!(worked() - before < 5, "{}", worked() - before);
}
