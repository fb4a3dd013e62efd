//! Tests that a list shows committed changes only, and all of its rows or an error.

use super::filters::of_sixty;
use super::*;

#[test]
fn lists_show_committed_changes_only() {
    let (_directory, store) = scratch();
    assert!(names(&store).is_empty());
    let id = store
        .write(|c| images::insert(c, &picture("a", 1)))
        .unwrap();
    store
        .write(|c| images::insert(c, &picture("b", 2)))
        .unwrap();
    let failed: Result<(), Error> = store.write(|c| {
        images::insert(c, &picture("c", 3))?;
        Err(Error::Damaged {
            what: "on purpose".into(),
        })
    });
    assert!(failed.is_err());
    assert_eq!(names(&store), ["b", "a"]);
    store.write(|c| purge::delete(c, &[id], false)).unwrap();
    assert_eq!(names(&store), ["b"]);
}

#[test]
fn list_is_consistent_during_changes() {
    let entries: Vec<Entry> = (1..=20).map(entry).collect();
    let (_directory, store) = library(&entries);
    let change = |tags: &[&str]| {
        let of = |c: &Connection| (1..=20).try_for_each(|id| edits::change(c, id, &tagged(tags)));
        store.write(|c| of(c)).unwrap();
    };
    change(&["on"]);
    let query = Query {
        tags: vec!["on".to_owned()],
        ..Query::default()
    };
    let mut json = b"[".to_vec();
    // Another client writes while the records are read.
    let write = |row: Image, json: &mut Vec<u8>| {
        change(&[]);
        serde_json::to_writer(json, &row.tags)
    };
    assert_eq!(store.write_page(&query, &mut json, write).unwrap(), 20);
    json.push(b']');
    let tags: Vec<Vec<String>> = serde_json::from_slice(&json).unwrap();
    assert!(tags.iter().all(|tags| tags == &["on"]), "{tags:?}");
    assert_eq!(shown(&store, &query).1, 0);
}

#[test]
fn findings_grow_only_if_queries_may_find_other_images() {
    let (_directory, store) = scratch();
    let mut before = store.findings().unwrap();
    let mut grows = |what: &str, does: bool| {
        let after = store.findings().unwrap();
        assert_eq!(after > before, does, "{what}");
        before = after;
    };
    let image = store
        .write(|c| images::insert(c, &picture("a", 1)))
        .unwrap();
    grows("an image", true);
    let folder = store.write(|c| folders::insert(c, "above", None)).unwrap();
    let inner = store.write(|c| folders::insert(c, "within", None)).unwrap();
    grows("empty folders", false);
    let into = folders::FolderChange {
        parent: Some(Some(folder)),
        ..Default::default()
    };
    store.write(|c| folders::update(c, inner, &into)).unwrap();
    grows("a folder that moves into another", true);
    store
        .write(|c| edits::change(c, image, &tagged(&["a"])))
        .unwrap();
    grows("a tag", true);
    store.write(|c| edits::select_all(c, true)).unwrap();
    store
        .write(|c| crate::store::history::put_cursor(c, "A", image))
        .unwrap();
    grows("what no query looks at", false);
    let failed: Result<(), Error> = store.write(|c| {
        images::insert(c, &picture("b", 2))?;
        Err(Error::Damaged {
            what: "on purpose".into(),
        })
    });
    assert!(failed.is_err());
    grows("what was rolled back", false);
    store.write(|c| purge::delete(c, &[image], false)).unwrap();
    grows("an image that goes", true);
}

#[test]
fn error_that_does_not_affect_a_row_fails_the_list() {
    let (_directory, store, _) = of_sixty();
    let query = Query {
        name_prefix: "0".to_owned(),
        ..Query::default()
    };
    let mut out = Vec::new();
    let write = |row: Image, out: &mut Vec<u8>| serde_json::to_writer(out, &row.name);
    store.write_page(&query, &mut out, write).unwrap();
    assert!(!out.is_empty());
    let lost = "ALTER TABLE image RENAME COLUMN source_path TO was";
    store
        .write(|c| Ok::<_, Error>(c.execute_batch(lost)?))
        .unwrap();
    let error = store.write_page(&query, &mut out, write).unwrap_err();
    assert!(!error.is_damage(), "{error:?}");
}
