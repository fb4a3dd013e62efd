//! The rules one by one: each line of a table is a case, with what is decided.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use super::super::super::place::{Facts, Owner, Placement, Same, place};
use super::super::{Difference, Found, Loss, Seen, compare};
use super::{GRACE, SECOND, at, checksum};
use crate::store::watched::{Missing, Stamp, WatchedFile};

const NOW: i64 = 1000 * SECOND;
const DISK: u64 = 2;

fn stamp(inode: u64) -> Stamp {
    Stamp {
        size: 100 + inode,
        modified: SECOND,
        changed: SECOND,
        inode,
        device: DISK,
    }
}

fn row(name: &str, image_id: Option<i64>, inode: u64) -> WatchedFile {
    WatchedFile {
        path: at(name),
        image_id,
        checksum: Some(checksum(inode)),
        stamp: stamp(inode),
    }
}

fn seen(name: &str, stamp: Stamp) -> Seen {
    let path = at(name);
    let born = 0;
    Seen { path, stamp, born }
}

/// The file at the path `a`, as a walk finds it.
fn found(file: &str) -> Found {
    let (renamed, rewritten) = (3 * SECOND, 4 * SECOND);
    let here = match file {
        "same" => Some(stamp(1)),
        "that of b" => Some(Stamp {
            changed: renamed,
            ..stamp(2)
        }),
        "rewritten" => Some(Stamp {
            size: 7,
            modified: rewritten,
            changed: rewritten,
            ..stamp(1)
        }),
        "unknown birth of b" => Some(stamp(2)),
        "rewritten b" => Some(Stamp {
            size: 7,
            modified: rewritten,
            changed: rewritten,
            ..stamp(2)
        }),
        "rewritten, with its old size" => Some(Stamp {
            changed: rewritten,
            ..stamp(1)
        }),
        _ => None,
    };
    let device = if file == "unmounted" { 1 } else { DISK };
    let unread = if file == "unreadable" {
        BTreeSet::from([at("")])
    } else {
        BTreeSet::new()
    };
    let mut files = Vec::from_iter(here.map(|stamp| seen("a", stamp)));
    if file == "unknown birth of b" {
        files[0].born = i64::MAX;
    }
    // Not all files are gone.
    files.push(seen("z", stamp(9)));
    Found {
        files,
        directories: [(at(""), device)].into(),
        unread,
        ..Found::default()
    }
}

/// What is known about the path `a`: its row, and since when its image is missing.
fn known(here: &str) -> (Option<WatchedFile>, Option<i64>) {
    let image = || Some(row("a", Some(1), 1));
    match here {
        "no row" => (None, None),
        "image there" => (image(), None),
        "image missing" => (image(), Some(NOW - SECOND)),
        "image missing for long" => (image(), Some(NOW - GRACE)),
        "image away" => (image(), Some(0)),
        "deleted in murald" => (Some(row("a", None, 1)), None),
        "unusable" => {
            let unusable = WatchedFile {
                checksum: None,
                ..row("a", None, 1)
            };
            (Some(unusable), None)
        }
        _ => panic!("{here}"),
    }
}

fn in_words(difference: &Difference) -> String {
    let name = |path: &Path| path.strip_prefix("/w").unwrap().display().to_string();
    let mut words = Vec::new();
    let moves = difference.moves.iter();
    words.extend(moves.map(|one| match one.row.image_id {
        Some(id) if one.to == one.row.path => format!("{id} is back"),
        _ => format!("{} is {}", name(&one.row.path), name(&one.to)),
    }));
    let gone = difference.gone.iter().map(|(row, loss)| {
        let loss = match loss {
            Loss::Away => "is away",
            Loss::Missing => "is missing",
            Loss::Expired => "expires",
        };
        match row.image_id {
            Some(id) => format!("{id} {loss}"),
            None => format!("{} {loss}", name(&row.path)),
        }
    });
    words.extend(gone);
    let first = difference.first.iter();
    words.extend(first.map(|(path, _)| format!("read {} first", name(path))));
    let read = difference.read.iter();
    words.extend(read.map(|(path, _)| format!("read {}", name(path))));
    words.join(", ")
}

#[test]
fn files_are_compared_with_rows_case_by_case() {
    for (file, here, expected) in [
        ("same", "image there", ""),
        ("same", "image missing", "1 is back"),
        ("same", "image missing for long", "1 is back"),
        ("same", "image away", "1 is back"),
        ("same", "deleted in murald", ""),
        ("same", "unusable", ""),
        ("that of b", "no row", "b is a"),
        ("that of b", "image there", "b is a"),
        ("that of b", "image missing", "b is a"),
        ("that of b", "image missing for long", "b is a"),
        ("that of b", "image away", "b is a"),
        ("that of b", "deleted in murald", "b is a"),
        ("that of b", "unusable", "b is a"),
        ("unknown birth of b", "no row", "b is a"),
        ("rewritten b", "no row", "2 is missing, read a"),
        ("rewritten", "no row", "read a"),
        ("rewritten", "image there", "read a"),
        ("rewritten", "image missing", "read a"),
        ("rewritten", "image missing for long", "read a"),
        ("rewritten", "image away", "read a"),
        ("rewritten", "deleted in murald", "read a"),
        ("rewritten", "unusable", "read a"),
        (
            "rewritten, with its old size",
            "image there",
            "read a first",
        ),
        ("rewritten, with its old size", "unusable", "read a"),
        ("gone", "no row", ""),
        ("gone", "image there", "1 is missing"),
        ("gone", "image missing", ""),
        ("gone", "image missing for long", "1 expires"),
        ("gone", "image away", "1 is missing"),
        ("gone", "deleted in murald", ""),
        ("gone", "unusable", "a is missing"),
        ("unmounted", "no row", ""),
        ("unmounted", "image there", "1 is away"),
        ("unmounted", "image missing", "1 is away"),
        ("unmounted", "image missing for long", "1 is away"),
        ("unmounted", "image away", ""),
        ("unmounted", "deleted in murald", ""),
        ("unmounted", "unusable", ""),
        ("unreadable", "no row", ""),
        ("unreadable", "image there", ""),
        ("unreadable", "image missing", ""),
        ("unreadable", "image missing for long", ""),
        ("unreadable", "image away", ""),
        ("unreadable", "deleted in murald", ""),
        ("unreadable", "unusable", ""),
    ] {
        let (row_here, since) = known(here);
        let missing = since.map(|since| {
            let missing = Missing {
                since,
                size: stamp(1).size,
                path: at("a"),
                has_files: true,
            };
            (1, missing)
        });
        let missing: HashMap<i64, Missing> = missing.into_iter().collect();
        let mut rows = Vec::from_iter(row_here);
        rows.extend(file.ends_with(" b").then(|| row("b", Some(2), 2)));
        rows.push(row("z", Some(9), 9));
        let difference = compare(&rows, Vec::new(), &missing, &found(file), false, NOW);
        let case = format!("file {file}, {here}");
        assert_eq!(in_words(&difference), expected, "{case}");
        assert!(!difference.is_away(), "{case}");
    }
}

#[test]
fn all_files_that_vanish_at_once_are_away_but_a_single_one_is_missing() {
    let rows = [row("a", Some(1), 1), row("b", Some(2), 2)];
    let found = Found {
        directories: [(at(""), DISK)].into(),
        ..Found::default()
    };
    let lost = |rows: &[WatchedFile], others| {
        let missing = HashMap::new();
        in_words(&compare(rows, Vec::new(), &missing, &found, others, NOW))
    };
    assert_eq!(lost(&rows, false), "1 is away, 2 is away");
    assert_eq!(lost(&rows, true), "1 is missing, 2 is missing");
    assert_eq!(lost(&rows[..1], false), "1 is missing");
    // The same for the row of a waiting image whose own path was looked for.
    let waiting = rows[..1].to_vec();
    let twice = compare(&rows[..1], waiting, &HashMap::new(), &found, false, NOW);
    assert_eq!(in_words(&twice), "1 is missing");
}

#[test]
fn contents_are_placed_case_by_case() {
    let same = |id, moves| Placement::Same { id, moves };
    let image = |id, is_intact| Same::Image { id, is_intact };
    for (here, content, of, expected) in [
        ("no row", "unknown", Same::Nothing, Placement::New),
        (
            "no row",
            "deleted in murald",
            Same::Dismissed,
            Placement::NoImage,
        ),
        ("no row", "of another", image(2, true), same(2, false)),
        ("no row", "of a missing one", image(2, false), same(2, true)),
        (
            "image there",
            "unknown",
            Same::Nothing,
            Placement::Rewritten(1),
        ),
        (
            "image there",
            "deleted in murald",
            Same::Dismissed,
            Placement::Rewritten(1),
        ),
        ("image there", "its own", image(1, true), same(1, false)),
        ("image there", "of another", image(2, true), same(2, false)),
        (
            "image there",
            "of a missing one",
            image(2, false),
            same(2, true),
        ),
        (
            "image missing",
            "unknown",
            Same::Nothing,
            Placement::Rewritten(1),
        ),
        (
            "image missing",
            "deleted in murald",
            Same::Dismissed,
            Placement::Rewritten(1),
        ),
        ("image missing", "its own", image(1, false), same(1, true)),
        (
            "image missing",
            "of another",
            image(2, true),
            same(2, false),
        ),
        (
            "image missing",
            "of a missing one",
            image(2, false),
            same(2, true),
        ),
        ("second file", "unknown", Same::Nothing, Placement::New),
        (
            "second file",
            "deleted in murald",
            Same::Dismissed,
            Placement::New,
        ),
        ("second file", "its own", image(1, true), same(1, false)),
        ("second file", "of another", image(2, true), same(2, false)),
        (
            "second file",
            "of a missing one",
            image(2, false),
            same(2, true),
        ),
        ("no row", "undecodable", Same::Nothing, Placement::NoImage),
        (
            "image there",
            "undecodable",
            Same::Nothing,
            Placement::Undecoded(1),
        ),
        (
            "image missing",
            "undecodable",
            Same::Nothing,
            Placement::Undecoded(1),
        ),
        ("unchanged", "its own", image(1, true), Placement::Nothing),
        (
            "unchanged, image missing",
            "its own",
            image(1, false),
            same(1, true),
        ),
    ] {
        let path = at("a");
        let is_unchanged = here.starts_with("unchanged");
        let is_missing = here.ends_with("missing");
        let has_row = here != "no row";
        let own = Owner {
            id: 1,
            path: at(if here == "second file" { "b" } else { "a" }),
            is_missing,
        };
        let known = row("a", Some(1), 1);
        let read = checksum(1);
        let stamp = stamp(if is_unchanged { 1 } else { 3 });
        let facts = Facts {
            path: &path,
            stamp: &stamp,
            checksum: Some(&read).filter(|_| content != "undecodable"),
        };
        let placement = place(
            facts,
            has_row.then_some(&known),
            has_row.then_some(&own),
            of,
        );
        assert_eq!(placement, expected, "{here}, content {content}");
    }
}
