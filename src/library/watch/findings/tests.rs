//! Tests how listings of a directory are compared with its known files.

use super::*;

fn stamp(size: u64, device: u64) -> Stamp {
    Stamp {
        size,
        modified: 1,
        changed: 1,
        inode: 1,
        device,
    }
}

fn known(path: &str, size: u64, device: u64) -> WatchedFile {
    WatchedFile {
        path: path.into(),
        image_id: Some(1),
        checksum: Some([0; 32]),
        stamp: stamp(size, device),
    }
}

fn found(path: &str, stamp: Stamp) -> Found {
    Found {
        path: path.into(),
        stamp,
        born: i64::MAX,
    }
}

fn look(files: &[(&str, u64, u64)], directories: &[(&str, u64)]) -> Findings {
    Findings {
        files: files
            .iter()
            .map(|&(path, size, dev)| found(path, stamp(size, dev)))
            .collect(),
        directories: directories
            .iter()
            .map(|&(path, device)| (path.into(), device))
            .collect(),
        ..Findings::default()
    }
}

fn paths(files: &[WatchedFile]) -> Vec<&str> {
    files
        .iter()
        .map(|file| file.path.to_str().unwrap())
        .collect()
}

#[test]
fn path_leads_elsewhere_after_a_link_or_parent_changed_but_not_after_a_mount() {
    let leads = |real: &str, device, above: &[u64]| Leads {
        real: real.into(),
        device,
        above: above.to_vec(),
    };
    let before = leads("/a/w", 7, &[5, 2]);
    for (now, elsewhere) in [
        (leads("/a/w", 7, &[5, 2]), false),
        (leads("/b/w", 7, &[5, 2]), true),
        (leads("/b/w", 8, &[6, 2]), true),
        (leads("/a/w", 7, &[6, 2]), true),
        (leads("/a/w", 8, &[6, 2]), false),
        (leads("/a/w", 8, &[5, 2]), false),
    ] {
        assert_eq!(now.is_elsewhere(&before), elsewhere, "{now:?}");
    }
}

#[test]
fn files_are_new_written_or_gone() {
    let before = vec![
        known("/w/a", 1, 7),
        known("/w/b", 2, 7),
        known("/w/c", 3, 7),
    ];
    let findings = look(
        &[("/w/a", 1, 7), ("/w/b", 9, 7), ("/w/d", 4, 7)],
        &[("/w", 7)],
    );
    let found = compare(before, &findings, &Scope::All);
    let changed: Vec<_> = found
        .changed
        .iter()
        .map(|(path, _)| path.to_str().unwrap())
        .collect();
    assert_eq!(changed, ["/w/b", "/w/d"]);
    assert_eq!(paths(&found.gone), ["/w/c"]);
    assert_eq!(found.lost, [2, 3].into());
}

#[test]
fn file_with_another_inode_or_time_of_change_is_read_again() {
    let check = |changed, inode, device, is_read: bool| {
        let mut findings = look(&[("/w/a", 1, 7)], &[("/w", 7)]);
        findings.files[0].stamp = Stamp {
            changed,
            inode,
            ..stamp(1, device)
        };
        let found = compare(vec![known("/w/a", 1, 7)], &findings, &Scope::All);
        assert_eq!(found.changed.len(), usize::from(is_read));
        assert_eq!(
            found.lost.contains(&1),
            is_read,
            "it may be under another name"
        );
        assert_eq!(found.renumbered.len(), usize::from(!is_read && device != 7));
    };
    check(1, 1, 7, false);
    check(1, 1, 8, false);
    check(1, 2, 7, true);
    check(2, 1, 7, true);
    check(2, 2, 8, true);
}

#[test]
fn renamed_files_are_known_by_their_inodes() {
    let check = |stamp: Stamp, born, is_renamed: bool| {
        let before = WatchedFile {
            stamp: Stamp {
                changed: 5,
                ..self::stamp(1, 7)
            },
            ..known("/w/a", 1, 7)
        };
        let mut findings = look(&[], &[("/w", 7)]);
        findings.files.push(Found {
            born,
            ..found("/w/b", stamp)
        });
        let found = compare(vec![before], &findings, &Scope::All);
        let renamed: Vec<_> = found
            .renamed
            .iter()
            .map(|(_, now)| (&now.path, now.stamp))
            .collect();
        let wanted = is_renamed.then_some((&findings.files[0].path, stamp));
        assert_eq!(renamed, Vec::from_iter(wanted), "{stamp:?}");
        assert_eq!(
            found.changed.is_empty() && found.gone.is_empty(),
            is_renamed,
            "{stamp:?}"
        );
    };
    let now = Stamp {
        changed: 9,
        ..stamp(1, 7)
    };
    check(now, 5, true);
    // A directory above was renamed, which does not change the file.
    check(Stamp { changed: 5, ..now }, i64::MAX, true);
    // A new file with the inode number of the old one.
    check(now, 6, false);
    check(Stamp { inode: 2, ..now }, 5, false);
    check(Stamp { modified: 2, ..now }, 5, false);
    check(Stamp { size: 2, ..now }, 5, false);
}

#[test]
fn file_with_a_new_hard_link_is_not_renamed() {
    let linked = Stamp {
        changed: 2,
        ..stamp(5, 1)
    };
    let files = ["/w/a", "/w/z link"].map(|path| Found {
        born: 0,
        ..found(path, linked)
    });
    let findings = Findings {
        files: files.into(),
        ..Findings::default()
    };
    let difference = compare(vec![known("/w/a", 5, 1)], &findings, &Scope::All);
    assert_eq!(difference.renamed, []);
    assert_eq!(difference.changed.len(), 2);
}

#[test]
fn files_that_swap_their_names_are_renamed() {
    let numbered = |n, changed| Stamp {
        inode: n,
        changed,
        ..stamp(n, 7)
    };
    let before = [("/w/a", 1), ("/w/b", 2), ("/w/c", 3)].map(|(path, n)| WatchedFile {
        stamp: numbered(n, 1),
        ..known(path, n, 7)
    });
    let mut findings = look(&[], &[("/w", 7)]);
    for (path, n) in [("/w/a", 2), ("/w/b", 1), ("/w/c", 4)] {
        findings.files.push(Found {
            born: n as i64 - 2,
            ..found(path, numbered(n, 9))
        });
    }
    let found = compare(before.into(), &findings, &Scope::All);
    let names = found
        .renamed
        .iter()
        .map(|(old, now)| (old.path.to_str(), now.path.to_str()));
    let swapped = [("/w/a", "/w/b"), ("/w/b", "/w/a")].map(|(old, now)| (Some(old), Some(now)));
    assert_eq!(names.collect::<Vec<_>>(), swapped);
    let changed: Vec<_> = found
        .changed
        .iter()
        .map(|(path, _)| path.to_str().unwrap())
        .collect();
    assert_eq!((changed, found.lost), (vec!["/w/c"], [3].into()));
}

#[test]
fn files_of_an_unmounted_disk_are_away() {
    let before = vec![known("/w/a", 1, 7), known("/w/disk/b", 2, 8)];
    let findings = look(&[("/w/a", 1, 7)], &[("/w", 7), ("/w/disk", 7)]);
    let found = compare(before, &findings, &Scope::All);
    assert_eq!(
        (paths(&found.gone), paths(&found.away)),
        (vec![], vec!["/w/disk/b"])
    );
}

#[test]
fn disk_with_another_device_number_is_the_same_disk() {
    let before = vec![known("/w/a", 1, 7), known("/w/b", 2, 7)];
    let findings = look(&[("/w/a", 1, 9)], &[("/w", 9)]);
    let found = compare(before, &findings, &Scope::All);
    assert_eq!(paths(&found.gone), ["/w/b"]);
    assert_eq!(found.renumbered.len(), 2);
    assert!(found.changed.is_empty());
}

#[test]
fn unreadable_directory_loses_no_files() {
    let before = vec![known("/w/closed/a", 1, 7)];
    let findings = Findings {
        unseen: ["/w/closed".into()].into(),
        ..look(&[], &[("/w", 7)])
    };
    let found = compare(before, &findings, &Scope::All);
    assert_eq!((found.gone.len(), found.away.len()), (0, 0));
}
