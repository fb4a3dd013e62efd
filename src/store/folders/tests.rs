//! Tests the rules of the folder tree in a real database.

use super::*;
use crate::store::Store;
use crate::store::images::{self, tests::picture};
use crate::store::tests::scratch;

fn make(store: &Store, name: &str, parent: Option<i64>) -> Result<i64, Refusal> {
    store.write(|c| insert(c, name, parent))
}

fn names(store: &Store, parent: Option<i64>) -> Vec<String> {
    let query = FolderQuery {
        parent,
        ..FolderQuery::default()
    };
    let folders = store.read(|c| list(c, &query)).unwrap();
    folders.into_iter().map(|folder| folder.name).collect()
}

fn put(
    store: &Store,
    id: i64,
    name: Option<&str>,
    parent: Option<Option<i64>>,
) -> Result<bool, Refusal> {
    let change = FolderChange {
        name: name.map(str::to_owned),
        parent,
    };
    store.write(|c| update(c, id, &change))
}

#[test]
fn names_of_siblings_are_unique() {
    let (_directory, store) = scratch();
    let a = make(&store, "a", None).unwrap();
    assert!(matches!(
        make(&store, "a", None),
        Err(Refusal::Taken { .. })
    ));
    let inner = make(&store, "a", Some(a)).unwrap();
    assert!(matches!(
        put(&store, inner, None, Some(None)),
        Err(Refusal::Taken { .. })
    ));
    assert!(put(&store, inner, Some("b"), Some(None)).unwrap());
    assert!(
        !put(&store, inner, Some("b"), None).unwrap(),
        "it is so already"
    );
    assert_eq!(names(&store, None), ["a", "b"]);
    assert!(matches!(
        make(&store, "x", Some(99)),
        Err(Refusal::NoFolder { id: 99 })
    ));
    assert!(matches!(
        put(&store, 99, None, None),
        Err(Refusal::NoFolder { id: 99 })
    ));
}

#[test]
fn folder_is_not_moved_into_itself_or_too_deep() {
    let (_directory, store) = scratch();
    let mut chain = vec![make(&store, "0", None).unwrap()];
    for level in 1..DEPTH_MAX {
        chain.push(make(&store, &level.to_string(), chain.last().copied()).unwrap());
    }
    let (top, last) = (chain[0], chain[DEPTH_MAX - 1]);
    // The deepest allowed parent, and one level deeper.
    let [above, below] = [DEPTH_MAX - 2, DEPTH_MAX - 1].map(|level| chain[level]);
    let single = make(&store, "single", None).unwrap();
    assert!(put(&store, single, None, Some(Some(above))).unwrap());
    assert!(matches!(
        put(&store, single, None, Some(Some(below))),
        Err(Refusal::TooDeep)
    ));
    assert!(matches!(
        make(&store, "x", Some(last)),
        Err(Refusal::TooDeep)
    ));
    assert!(matches!(
        put(&store, top, None, Some(Some(last))),
        Err(Refusal::Cycle { .. })
    ));
    assert!(matches!(
        put(&store, top, None, Some(Some(top))),
        Err(Refusal::Cycle { .. })
    ));
    let other = make(&store, "other", None).unwrap();
    assert!(matches!(
        put(&store, top, None, Some(Some(other))),
        Err(Refusal::TooDeep)
    ));
    assert_eq!(store.read(|c| path(c, last)).unwrap().len(), DEPTH_MAX);
}

#[test]
fn name_shortened_for_a_suffix_fits_the_limit() {
    let (_directory, store) = scratch();
    let long = format!("a{}", "ö".repeat(127));
    assert_eq!(long.len(), NAME_MAX);
    let make = |name: &str, parent| store.write(|c| insert(c, name, parent)).unwrap();
    make(&long, None);
    let gone = make("gone", None);
    let comes = make(&long, Some(gone));
    store.write(|c| dissolve(c, gone)).unwrap();
    let name = store.read(|c| get(c, comes)).unwrap().unwrap().name;
    assert_eq!(name, format!("a{}_1", "ö".repeat(126)));
}

#[test]
fn dissolved_folder_moves_its_content_to_its_parent() {
    let (_directory, store) = scratch();
    let top = make(&store, "top", None).unwrap();
    let middle = make(&store, "middle", Some(top)).unwrap();
    make(&store, "same", Some(top)).unwrap();
    make(&store, "same", Some(middle)).unwrap();
    make(&store, "middle", Some(middle)).unwrap();
    let image = store
        .write(|c| images::insert(c, &picture("p", 1)))
        .unwrap();
    let twice = || {
        store
            .write(|c| move_images(c, &[image, image, 99], Some(middle)))
            .unwrap()
    };
    assert_eq!(twice(), Moved { there: 1, came: 1 });
    assert_eq!(twice(), Moved { there: 1, came: 0 });
    assert_eq!(store.read(|c| images_below(c, top)).unwrap(), [image]);
    make(&store, "beside", Some(middle)).unwrap();
    assert_eq!(store.write(|c| dissolve(c, middle)).unwrap(), 1);
    assert_eq!(
        names(&store, Some(top)),
        ["beside", "middle", "same", "same_1"]
    );
    let image = store.read(|c| images::get(c, image)).unwrap().unwrap();
    assert_eq!(image.folder_id, Some(top));
}

#[test]
fn folder_is_removed_with_all_below_it() {
    let (_directory, store) = scratch();
    let top = make(&store, "top", None).unwrap();
    make(&store, "in", Some(top)).unwrap();
    make(&store, "Grün", None).unwrap();
    assert_eq!(store.write(|c| remove(c, top)).unwrap(), 2);
    let query = FolderQuery {
        search: Some("GRÜ".into()),
        ..FolderQuery::default()
    };
    assert_eq!(store.read(|c| list(c, &query)).unwrap().len(), 1);
    assert_eq!(names(&store, None), ["Grün"]);
}
#[test]
fn database_error_is_not_reported_as_a_taken_name() {
    use std::error::Error as _;
    let (_directory, store) = scratch();
    let full = make(&store, "a", None).unwrap();
    // The insert fails as readers cannot write, not because of the name.
    let refused = store.read(|c| insert(c, "b", None)).unwrap_err();
    assert!(
        matches!(&refused, Refusal::Store(error) if error.is_storage()),
        "{refused:?}"
    );
    assert!(refused.source().is_some());
    assert!(Refusal::TooDeep.source().is_none());
    assert_eq!(store.read(|c| images_below(c, full)).unwrap(), [0; 0]);
    assert!(!store.read(|c| exists(c, full + 1)).unwrap());
}

#[test]
fn database_error_is_not_reported_as_a_missing_folder() {
    let (_directory, store) = scratch();
    let folder = make(&store, "a", None).unwrap();
    let moved = store.write(|c| {
        c.execute_batch("ALTER TABLE folder RENAME TO away")
            .map_err(Error::from)?;
        move_images(c, &[], Some(folder))
    });
    assert!(matches!(moved, Err(Refusal::Store(_))), "{moved:?}");
}
