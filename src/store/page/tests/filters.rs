//! Tests of filters by name, tag, checksum and directory, with and without pages.

use super::*;

#[test]
fn names_and_tags_are_compared_in_nfc() {
    let (_directory, store) = scratch();
    let [one, other] = ["Fu\u{308}r", "Für alle"].map(|name| {
        let id = store
            .write(|c| images::insert(c, &picture(name, name.len() as u64)))
            .unwrap();
        store
            .write(|c| edits::change(c, id, &tagged(&["scho\u{308}n"])))
            .unwrap();
        id
    });
    let find = |query: Query| store.find_all(&query).unwrap();
    let named = |name: &str| {
        find(Query {
            name: Some(name.to_owned()),
            ..Query::default()
        })
    };
    assert_eq!(
        (named("Für"), named("Fu\u{308}r"), named("für")),
        (vec![one], vec![one], vec![])
    );
    assert_eq!(named("Fu\u{308}r alle"), [other]);
    let tags = vec!["SCHÖN".to_owned()];
    assert_eq!(
        find(Query {
            tags,
            ..Query::default()
        }),
        [other, one]
    );
    let name_prefix = "fü".to_owned();
    assert_eq!(
        find(Query {
            name_prefix,
            ..Query::default()
        }),
        [other, one]
    );
}

/// Sixty images: the first in a folder, the second in its subfolder, the others in the root.
pub(super) fn of_sixty() -> (tempfile::TempDir, Store, (i64, i64)) {
    let (directory, store) = scratch();
    let filled = store.write(|c| -> Result<_, folders::Refusal> {
        for number in 0..60 {
            let mut new = picture(&format!("{number:032}"), number);
            new.checksum[0] = u8::try_from(number).unwrap();
            images::insert(c, &new)?;
        }
        let outer = folders::insert(c, "outer", None)?;
        let inner = folders::insert(c, "inner", Some(outer))?;
        folders::move_images(c, &[1], Some(outer))?;
        folders::move_images(c, &[2], Some(inner))?;
        let tags = |tags: &[&str]| ImageChange {
            tags: Some(
                tags.iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .into(),
            ),
            ..ImageChange::default()
        };
        edits::change(c, 3, &tags(&["sea", "Alps"]))?;
        edits::change(c, 4, &tags(&["sea"]))?;
        Ok((outer, inner))
    });
    (directory, store, filled.unwrap())
}

#[test]
fn words_of_any_characters_are_found() {
    let (_directory, store, _) = of_sixty();
    let names = [
        "say \"hi\" OR *",
        "100% of_it",
        "夜景の山",
        "a\u{ffff}bc",
        "NOT(x) -y:z^",
        "abcx bcdy",
    ];
    for (name, number) in names.into_iter().zip(100..) {
        store
            .write(|c| images::insert(c, &picture(name, number)))
            .unwrap();
    }
    let find = |search: &str| {
        store.find_all(&Query {
            search: search.into(),
            ..Query::default()
        })
    };
    for (name, id) in names.into_iter().zip(61..) {
        assert_eq!(find(name).unwrap(), [id], "{name}");
    }
    for (search, found) in [
        ("\"hi", 61),
        ("\"", 61),
        ("0%", 62),
        ("f_it", 62),
        ("景の山", 63),
    ] {
        assert_eq!(find(search).unwrap(), [found], "{search}");
    }
    assert_eq!(find("abcd").unwrap(), [0; 0]);
    assert_eq!(
        find("000").unwrap().len(),
        60,
        "a word that most images have"
    );
    assert_eq!(find(" \t").unwrap().len(), 66, "no word");
}

#[test]
fn queries_ignore_the_page_when_finding_all() {
    let (_directory, store, (outer, inner)) = of_sixty();
    let page = Query {
        offset: 58,
        limit: 9,
        sort_by: SortBy::FileSize,
        ..Query::default()
    };
    let down: Vec<i64> = (1..=60).rev().collect();
    assert_eq!(shown(&store, &page), (vec![2, 1], 60));
    assert_eq!(store.find_all(&page).unwrap(), down);
    let items = store.find_items(&page).unwrap();
    assert_eq!(
        items.iter().map(|item| item.image_id).collect::<Vec<_>>(),
        down
    );
    let within = |folder, recursive| {
        let query = Query {
            folder: Some(folder),
            recursive,
            offset: 9,
            ..Query::default()
        };
        let found = store.find_all(&query).unwrap();
        assert_eq!(store.finds_any(&query).unwrap(), !found.is_empty());
        found.len()
    };
    assert_eq!(
        (within(Some(outer), false), within(Some(outer), true)),
        (1, 2)
    );
    assert_eq!(
        (within(Some(inner), false), within(Some(inner), true)),
        (1, 1)
    );
    assert_eq!((within(Some(99), false), within(Some(99), true)), (0, 0));
    assert_eq!((within(None, false), within(None, true)), (58, 60));
    assert_eq!(store.tags().unwrap(), ["Alps", "sea"]);
    store
        .write(|c| edits::change(c, 4, &tagged(&["Sea"])))
        .unwrap();
    store.write(|c| purge::delete(c, &[3], false)).unwrap();
    assert_eq!(
        store.tags().unwrap(),
        ["Sea"],
        "tags go with their last image"
    );
}

#[test]
fn name_and_checksum_must_match_the_same_image() {
    let (_directory, store, _) = of_sixty();
    let [one, other] = [7, 8].map(|id| store.read(|c| images::get(c, id)).unwrap().unwrap());
    let sum = |image: &crate::wire::Image| {
        let mut sum = picture(&image.name, 1).checksum;
        sum[0] = u8::try_from(image.id - 1).unwrap();
        sum
    };
    let find = |name: Option<&str>, checksum| {
        let name = name.map(str::to_owned);
        store
            .find_all(&Query {
                name,
                checksum,
                ..Query::default()
            })
            .unwrap()
    };
    assert_eq!(find(Some(&one.name), None), [7]);
    assert_eq!(find(None, Some(sum(&other))), [8]);
    assert_eq!(find(Some(&one.name), Some(sum(&one))), [7]);
    assert_eq!(find(Some(&one.name), Some(sum(&other))), [0; 0]);
    assert_eq!(find(Some("nobody"), None), [0; 0]);
}

#[test]
fn image_is_found_in_each_directory_with_its_file() {
    let (_directory, store, _) = of_sixty();
    let note = |path: &str, image_id| {
        let file = WatchedFile {
            path: path.into(),
            image_id,
            checksum: None,
            stamp: Stamp::default(),
        };
        store.write(|c| watched::note(c, &file)).unwrap();
    };
    let find = |directory: &str, recursive| {
        let directory = Some(directory.into());
        let query = Query {
            directory,
            recursive,
            descending: false,
            ..Query::default()
        };
        store.find_all(&query).unwrap()
    };
    note("/a/one.png", Some(1));
    note("/a/none.png", None);
    note("/a/sub/two.png", Some(2));
    let before = store.findings().unwrap();
    note("/b/one.png", Some(1));
    assert!(
        store.findings().unwrap() > before,
        "lists that are kept are made again"
    );
    assert_eq!(
        (find("/a", true), find("/a/", false)),
        (vec![1, 2], vec![1])
    );
    assert_eq!(
        (find("/b", true), find("/a/sub", false)),
        (vec![1], vec![2])
    );
    let before = store.findings().unwrap();
    store
        .write(|c| watched::forget(c, Path::new("/b/one.png")))
        .unwrap();
    assert!(store.findings().unwrap() > before && find("/b", true).is_empty());
}
