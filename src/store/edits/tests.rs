//! Tests changes of a row, and that other values stay.

use super::*;
use crate::store::Store;
use crate::store::assignments::{self, Assignment};
use crate::store::images::tests::{package, picture};
use crate::store::query::Query;
use crate::store::tests::scratch;
use crate::store::watched::{self, Stamp, WatchedFile};
use crate::store::workspaces::{self, WorkspacePicture};
use crate::wire::{Format, MediaType, Mode, Sound, Timestamp};

fn add(store: &Store, image: &NewImage) -> Image {
    store
        .write(|c| images::insert(c, image).map(|id| at(c, id)))
        .unwrap()
}

fn at(connection: &Connection, id: i64) -> Image {
    images::get(connection, id).unwrap().unwrap()
}

fn now(store: &Store, before: &Image) -> Image {
    store.read(|c| Ok::<_, Error>(at(c, before.id))).unwrap()
}

/// A video that differs from [`picture`] in everything read from the file.
fn video(name: &str) -> NewImage {
    NewImage {
        format: Format::Mp4,
        width: 40,
        height: 30,
        duration: 2.5,
        animated: true,
        colors: vec![[1, 2, 3]],
        hue_group: 6,
        ..picture(name, 77)
    }
}

/// The values that are read from the file, not set by the user.
fn of_the_file(image: &Image) -> impl PartialEq + std::fmt::Debug + use<> {
    let Image {
        format,
        width,
        height,
        duration,
        file_size,
        ..
    } = *image;
    let colors = image.colors.clone();
    let checksum = image.checksum;
    (
        format,
        (width, height),
        duration,
        file_size,
        colors,
        image.hue_group,
        checksum,
    )
}

fn pending(store: &Store) -> Vec<PathBuf> {
    store
        .read(pending_files::list)
        .unwrap()
        .into_iter()
        .map(|note| note.path)
        .collect()
}

#[test]
fn change_affects_only_the_fields_it_names() {
    let (_directory, store) = scratch();
    let before = add(&store, &picture("a", 1));
    let folder = store.write(|c| folders::insert(c, "f", None)).unwrap();
    let put = |what: &ImageChange| store.write(|c| change(c, before.id, what));
    let all = ImageChange {
        tags: Some(vec!["t".into()].into()),
        description: Some("a lake".into()),
        colors: Some(vec![[0, 255, 0]]),
        folder_id: Some(Some(folder)),
        is_selected: Some(true),
        audio_enabled: Some(true),
        ..ImageChange::default()
    };
    put(&all).unwrap();
    let after = now(&store, &before);
    let expected = Image {
        tags: vec!["t".into()],
        description: "a lake".into(),
        colors: vec![[0, 255, 0]],
        hue_group: color::hue_group(&[[0, 255, 0]]),
        folder_id: Some(folder),
        is_selected: true,
        audio_enabled: true,
        ..before.clone()
    };
    assert_eq!(after, expected);
    put(&ImageChange::default()).unwrap();
    assert_eq!(now(&store, &before), expected);
    let nowhere = ImageChange {
        folder_id: Some(Some(99)),
        ..ImageChange::default()
    };
    assert!(matches!(put(&nowhere), Err(Refusal::NoFolder { id: 99 })));
    put(&ImageChange {
        folder_id: Some(None),
        ..ImageChange::default()
    })
    .unwrap();
    assert_eq!(
        now(&store, &before),
        Image {
            folder_id: None,
            ..expected
        }
    );
}

#[test]
fn capabilities_change_only_for_packages() {
    let (_directory, store) = scratch();
    let [page, plain] = [package("page"), picture("plain", 1)].map(|image| add(&store, &image));
    let network = PatchCapabilities {
        network: Some(false),
        ..PatchCapabilities::default()
    };
    let what = ImageChange {
        capabilities: Some(network),
        ..ImageChange::default()
    };
    let put = |image: &Image| store.write(|c| change(c, image.id, &what)).unwrap();
    put(&plain);
    assert_eq!(now(&store, &plain), plain);
    put(&page);
    let mut expected = page.web_meta.clone().unwrap();
    assert!(expected.capabilities.network);
    expected.capabilities.network = false;
    assert_eq!(now(&store, &page).web_meta, Some(expected));
}

#[test]
fn preview_is_rejected_if_the_video_has_changed() {
    let (_directory, store) = scratch();
    let made_of = add(&store, &video("a"));
    let put = |image: &Image, path: &str| {
        store
            .write(|c| set_preview(c, image, Path::new(path)))
            .unwrap()
    };
    assert!(put(&made_of, "/cache/a.mp4"));
    assert_eq!(
        now(&store, &made_of).preview_path.as_deref(),
        Some(Path::new("/cache/a.mp4"))
    );
    assert!(!put(
        &Image {
            checksum: [0; 32],
            ..made_of.clone()
        },
        "/cache/b.mp4"
    ));
    assert!(!put(
        &Image {
            id: 99,
            ..made_of.clone()
        },
        "/cache/c.mp4"
    ));
    assert_eq!(
        now(&store, &made_of).preview_path.as_deref(),
        Some(Path::new("/cache/a.mp4"))
    );
}

#[test]
fn image_with_a_new_file_keeps_its_tags() {
    let (_directory, store) = scratch();
    let old = add(&store, &picture("old", 1));
    let tagged = ImageChange {
        tags: Some(vec!["t".into()].into()),
        ..ImageChange::default()
    };
    store.write(|c| change(c, old.id, &tagged)).unwrap();
    store
        .write(|c| set_preview(c, &old, Path::new("/cache/old.mp4")))
        .unwrap();
    let old = now(&store, &old);
    let new = video("new");
    store
        .write(|c| pending_files::mark(c, &new.path, None))
        .unwrap();
    let equal = WatchedFile {
        path: "/watched/equal.png".into(),
        image_id: Some(old.id),
        checksum: Some(old.checksum),
        stamp: Stamp::default(),
    };
    store.write(|c| watched::note(c, &equal)).unwrap();
    store.write(|c| replace(c, &old, &new)).unwrap();
    let files = store.read(|c| watched::of_image(c, old.id)).unwrap();
    assert!(files.is_empty(), "with the old content: {files:?}");
    let after = now(&store, &old);
    assert_eq!((after.name.as_str(), &after.path), ("new", &new.path));
    assert_eq!(
        (&after.tags, after.preview_path.as_ref()),
        (&old.tags, None)
    );
    assert_eq!(pending(&store), [Path::new("/cache/old.mp4"), &old.path]);
    let other = add(&store, &video("other"));
    let same = |image: &Image| Image {
        checksum: [0; 32],
        ..image.clone()
    };
    assert_eq!(of_the_file(&same(&after)), of_the_file(&same(&other)));
    assert_ne!(after.checksum, old.checksum);
}

#[test]
fn changed_file_rewrites_its_row() {
    let (_directory, store) = scratch();
    let old = add(
        &store,
        &NewImage {
            in_place: true,
            ..picture("old", 1)
        },
    );
    store
        .write(|c| set_preview(c, &old, Path::new("/cache/old.mp4")))
        .unwrap();
    let old = now(&store, &old);
    store.write(|c| rewrite(c, &old, &video("new"))).unwrap();
    let after = now(&store, &old);
    assert_eq!((&after.name, &after.path), (&old.name, &old.path));
    assert_eq!((after.media_type, after.animated), (MediaType::Video, true));
    assert_eq!(after.preview_path, None);
    assert_eq!(pending(&store), [Path::new("/cache/old.mp4")]);
    let other = add(&store, &video("other"));
    let same = |image: &Image| Image {
        checksum: [0; 32],
        ..image.clone()
    };
    assert_eq!(of_the_file(&same(&after)), of_the_file(&same(&other)));
    assert_ne!(after.checksum, old.checksum);
}

#[test]
fn name_path_and_folder_change_independently() {
    let (_directory, store) = scratch();
    let [copy, own] = [false, true].map(|in_place| {
        add(
            &store,
            &NewImage {
                in_place,
                ..picture(if in_place { "own" } else { "copy" }, 1)
            },
        )
    });
    let folder = store.write(|c| folders::insert(c, "f", None)).unwrap();
    for image in [&copy, &own] {
        store
            .write(|c| {
                set_name(c, image.id, &format!("{} too", image.name))?;
                set_path(
                    c,
                    image.id,
                    &Path::new("/elsewhere").join(&image.name),
                    None,
                )?;
                set_folder(c, image.id, Some(folder))
            })
            .unwrap();
    }
    let copied = Image {
        name: "copy too".into(),
        folder_id: Some(folder),
        ..copy.clone()
    };
    assert_eq!(now(&store, &copy), copied, "its file is where it is");
    let path = "/elsewhere/own".into();
    let moved = Image {
        name: "own too".into(),
        folder_id: Some(folder),
        path,
        ..own.clone()
    };
    assert_eq!(now(&store, &own), moved);
    store.write(|c| set_folder(c, own.id, None)).unwrap();
    assert_eq!(now(&store, &own).folder_id, None);
}

#[test]
fn image_is_found_by_the_new_name_of_its_file_even_if_its_words_were_damaged() {
    let (_directory, store) = scratch();
    let own = add(
        &store,
        &NewImage {
            in_place: true,
            ..picture("old", 1)
        },
    );
    let damage = "UPDATE image SET words = CAST(x'ff' AS TEXT)";
    store
        .write(|c| c.execute(damage, []).map_err(Error::from))
        .unwrap();
    store
        .write(|c| set_path(c, own.id, Path::new("/p/new"), Some("new")))
        .unwrap();
    let moved = Image {
        name: "new".into(),
        path: "/p/new".into(),
        ..own.clone()
    };
    assert_eq!(now(&store, &own), moved);
    let query = Query {
        search: "new".to_owned(),
        ..Query::default()
    };
    assert_eq!(store.find_all(&query).unwrap(), [own.id]);
}

#[test]
fn united_image_is_in_all_places_of_both() {
    let (_directory, store) = scratch();
    let [from, into, third] = ["from", "into", "third"].map(|name| add(&store, &picture(name, 1)));
    for (image, tags) in [(&from, ["x", "y"]), (&into, ["y", "z"])] {
        let tags = tags.map(str::to_owned).to_vec();
        let what = ImageChange {
            tags: Some(tags.into()),
            ..ImageChange::default()
        };
        store.write(|c| change(c, image.id, &what)).unwrap();
    }
    let position = Some(Position::CENTER);
    let description = Some("a lake".to_owned());
    let given = Some(position);
    let what = ImageChange {
        description,
        position: given,
        ..ImageChange::default()
    };
    store.write(|c| change(c, from.id, &what)).unwrap();
    let assigned = Assignment {
        monitor: "DP-1".into(),
        image_id: from.id,
        mode: Mode::Clone,
        together: Vec::new(),
        backend: "feh".into(),
        set_at: Timestamp::now(),
        fit: None,
        position: None,
        sound: None,
    };
    let file = WatchedFile {
        path: "/p/a".into(),
        image_id: Some(from.id),
        checksum: Some([1; 32]),
        stamp: Stamp::default(),
    };
    let members = [(1, 0, &from), (1, 1, &third), (2, 0, &into), (2, 1, &from)];
    let filled = store.write(|c| -> Result<_, Error> {
        assignments::put(c, &assigned)?;
        watched::note(c, &file)?;
        let names = ("2".to_owned(), "DP-1".to_owned());
        let backend = "feh".to_owned();
        let since = Timestamp::now();
        workspaces::replace(c, &[WorkspacePicture::new(names, from.id, backend, since)])?;
        assignments::set_sound(
            c,
            ("DP-1", from.id),
            Sound {
                muted: true,
                volume: 30,
            },
        )?;
        c.execute_batch(
            "INSERT INTO playlist (name, type, interval, play_order, start_first, created_at, \
             updated_at) VALUES ('one', 'timer', 60, 'ordered', 0, 1, 1), \
             ('both', 'timer', 60, 'ordered', 0, 1, 1)",
        )?;
        for (playlist, row, image) in members {
            let sql = "INSERT INTO playlist_image (playlist_id, row, position, image_id) \
                       VALUES (?1, ?2, ?2, ?3)";
            c.execute(sql, params![playlist, row, image.id])?;
        }
        c.execute(
            "INSERT INTO history (image_id, image_name, monitors, mode, set_at, source, backend) \
             VALUES (?1, 'x', '[]', 'clone', 1, 'manual', 'feh')",
            [from.id],
        )?;
        let (from, into) = (at(c, from.id), at(c, into.id));
        unite(c, &from, &into)
    });
    assert_eq!(
        filled.unwrap(),
        1,
        "one playlist has the other in its place"
    );
    let united = now(&store, &into);
    assert_eq!(united.tags, ["y", "z", "x"]);
    assert_eq!(
        (&*united.description, united.position),
        ("a lake", position)
    );
    let look = |sql: &str| {
        store
            .read(|c| -> Result<Vec<(i64, i64)>, Error> {
                let mut statement = c.prepare(sql)?;
                let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
                Ok(rows.collect::<Result<_, _>>()?)
            })
            .unwrap()
    };
    let listed = look("SELECT playlist_id, image_id FROM playlist_image ORDER BY 1, position");
    assert_eq!(
        listed,
        [(1, into.id), (1, third.id), (2, into.id), (2, from.id)]
    );
    for table in [
        "assignments",
        "workspace_picture",
        "workspace_sound",
        "history",
        "watched_file",
    ] {
        assert_eq!(
            look(&format!("SELECT 1, image_id FROM {table}")),
            [(1, into.id)],
            "{table}"
        );
    }
}

#[test]
fn rename_is_recorded_until_it_is_finished_or_forgotten() {
    let (_directory, store) = scratch();
    let [page, plain] = [package("page"), picture("plain", 1)].map(|image| add(&store, &image));
    let rename = |image: &Image, to: &str| Rename {
        image_id: image.id,
        from: image.home().to_owned(),
        to: to.into(),
    };
    let [first, second] = [
        rename(&page, "/library/next"),
        rename(&plain, "/library/next.png"),
    ];
    for one in [&first, &second] {
        store.write(|c| begin_rename(c, one)).unwrap();
    }
    let noted = || store.read(renames).unwrap();
    assert_eq!(noted(), [first.clone(), second.clone()]);
    store.write(|c| forget_rename(c, plain.id)).unwrap();
    assert_eq!(noted(), std::slice::from_ref(&first));
    store
        .write(|c| finish_rename(c, &page, &first, "next"))
        .unwrap();
    assert_eq!(noted(), []);
    let after = now(&store, &page);
    assert_eq!(
        (after.name.as_str(), after.home()),
        ("next", Path::new("/library/next"))
    );
    assert_eq!(after.path, Path::new("/library/next/index.html"));
    assert_eq!(
        after.preview_path.as_deref(),
        Some(Path::new("/library/next/p.png"))
    );
    // The preview of a video is outside its directory, and stays there.
    store
        .write(|c| set_preview(c, &plain, Path::new("/cache/a.mp4")))
        .unwrap();
    let plain = now(&store, &plain);
    store
        .write(|c| finish_rename(c, &plain, &second, "next_1"))
        .unwrap();
    let after = now(&store, &plain);
    assert_eq!(after.path, Path::new("/library/next.png"));
    assert_eq!(
        after.preview_path.as_deref(),
        Some(Path::new("/cache/a.mp4"))
    );
}
