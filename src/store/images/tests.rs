//! Tests inserting, finding and deleting images.

use super::*;
use crate::digest;
use crate::store::tests::scratch;
use crate::store::{pending_files, purge};

pub(crate) fn picture(name: &str, size: u64) -> NewImage {
    NewImage {
        name: name.to_owned(),
        path: format!("/library/{name}.png").into(),
        format: Format::Png,
        width: 4,
        height: 3,
        duration: 0.0,
        animated: false,
        audio_enabled: false,
        file_size: size,
        checksum: std::array::from_fn(|at| name.as_bytes()[at % name.len()]),
        colors: vec![[255, 0, 128]],
        hue_group: 11,
        folder_id: None,
        source_path: "/from".into(),
        in_place: false,
        web: None,
    }
}

/// An HTML package with a preview, which may use the network.
pub(crate) fn package(name: &str) -> NewImage {
    let root = Path::new("/library").join(name);
    let entry = root.join("index.html");
    let meta = serde_json::json!({
        "package_root": root, "manifest_path": root.join("m.json"), "entry_path": entry,
        "title": "t", "description": "", "author": "", "wallpaper_config": {"b": 1, "a": {}},
        "capabilities": {"network": true, "keyboard": false, "audio_reactive": false,
            "parallax_aware": false, "pointer_interactive": false},
    });
    let web = NewPackage {
        meta: serde_json::from_value(meta).unwrap(),
        preview: Some("p.png".into()),
        overrides: Map::new(),
    };
    NewImage {
        path: entry,
        format: Format::Html,
        web: Some(web),
        ..picture(name, 2)
    }
}

#[test]
fn inserted_row_is_read_back() {
    let (_directory, store) = scratch();
    let id = store.write(|c| insert(c, &picture("a", 9))).unwrap();
    let image = store.read(|c| get(c, id)).unwrap().unwrap();
    assert_eq!(
        (image.name.as_str(), image.file_size, image.hue_group),
        ("a", 9, 11)
    );
    assert_eq!(
        (&*image.colors, image.checksum),
        (&[[255, 0, 128]][..], [b'a'; 32])
    );
    let same = store
        .read(|c| by_checksum(c, &picture("a", 1).checksum))
        .unwrap();
    assert_eq!(same, Some(image));
    assert!(
        store
            .write(|c| insert(c, &picture("a", 1)))
            .unwrap_err()
            .is_taken()
    );
}

#[test]
fn record_has_all_fields_as_json() {
    let (_directory, store) = scratch();
    let plain = NewImage {
        colors: vec![[0, 9, 255]; 3],
        duration: 1.5,
        ..picture("a\"ü\n", 1)
    };
    let some = Map::from_iter([("b".to_owned(), 2.into()), ("a".to_owned(), "x".into())]);
    let (mut full, bare) = (package("full"), package("bare"));
    full.web.as_mut().unwrap().overrides = some;
    let change = super::super::edits::ImageChange {
        tags: Some(vec!["ä".to_owned(), "b c".to_owned()].into()),
        ..Default::default()
    };
    let ids = store.write(|c| -> Result<_, super::super::folders::Refusal> {
        let ids = [insert(c, &plain)?, insert(c, &full)?, insert(c, &bare)?];
        super::super::edits::change(c, ids[0], &change)?;
        c.execute("UPDATE image SET overrides = NULL WHERE id = ?1", [ids[2]])?;
        Ok(ids)
    });
    let mut written = Vec::new();
    let check = |mut image: Image| {
        let sizes = [("4k", "720p"), ("720p", "720p")][..written.len()].iter();
        let hex = digest::hex(&image.checksum);
        image.thumbnails = sizes
            .map(|(size, directory)| (*size, format!("/a\"/{directory}/{hex}.webp")))
            .collect();
        let json = serde_json::to_string(&image).unwrap();
        let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
        written.push((json, parsed));
        Ok(())
    };
    store.read(|c| each(c, &ids.unwrap(), check)).unwrap();
    let [(plain, fields), (full, full_fields), (bare, bare_fields)] = &written[..] else {
        panic!()
    };
    let start = r#"{"id":1,"name":"a\"ü\n","path":"/library/a\"ü\n.png","media_type":"image","#;
    assert!(plain.starts_with(start), "{plain}");
    let checksum = format!("sha256:{}", digest::hex(&picture("a\"ü\n", 1).checksum));
    assert_eq!(
        (&fields["checksum"], &fields["duration"]),
        (&json!(checksum), &json!(1.5))
    );
    assert_eq!(
        (&fields["tags"], &fields["thumbnails"]),
        (&json!(["ä", "b c"]), &json!({}))
    );
    assert_eq!(fields["colors"], json!(["#0009ff", "#0009ff", "#0009ff"]));
    assert!(
        fields["imported_at"]
            .as_str()
            .unwrap()
            .parse::<jiff::Timestamp>()
            .is_ok()
    );
    assert!(
        full.ends_with(r#""wallpaper_config_overrides":{"b":2,"a":"x"}}"#),
        "{full}"
    );
    let hex = full_fields["checksum"]
        .as_str()
        .unwrap()
        .trim_start_matches("sha256:");
    assert_eq!(
        full_fields["thumbnails"],
        json!({ "4k": format!("/a\"/720p/{hex}.webp") })
    );
    assert!(
        bare.ends_with(r#""wallpaper_config_overrides":{}}"#),
        "{bare}"
    );
    assert_eq!(bare_fields["thumbnails"].as_object().unwrap().len(), 2);
}

#[test]
fn each_reads_all_rows_in_one_snapshot() {
    let (_directory, store) = scratch();
    let [one, other] = ["one", "other"].map(|name| store.write(|c| insert(c, &picture(name, 1))));
    let ids = [one.unwrap(), other.unwrap()];
    let look = || {
        let mut names = Vec::new();
        let hand = |image: Image| {
            let id = image.id;
            names.push(image.name);
            let rename = "UPDATE image SET name = ?1 || id WHERE id != ?2";
            store.write(|c| Ok::<_, Error>(c.execute(rename, ("new", id)).map(drop)?))
        };
        store.read(|c| each(c, &ids, hand)).unwrap();
        names
    };
    assert_eq!(look(), ["one", "other"]);
    assert_eq!(look(), [format!("new{}", ids[0]), format!("new{}", ids[1])]);
}

#[test]
fn deleted_image_is_removed_from_all_tables() {
    let (_directory, store) = scratch();
    let [gone, stays] =
        ["gone", "stays"].map(|name| store.write(|c| insert(c, &picture(name, 1))).unwrap());
    let preview = "/cache/previews/gone.mp4";
    store
        .write(|c| {
            c.execute(
                "UPDATE image SET preview_path = ?2 WHERE id = ?1",
                (gone, preview),
            )?;
            for image in [gone, stays] {
                c.execute_batch(&format!(
                    "INSERT INTO history (image_id, image_name, monitors, mode, set_at, source, \
                     backend) VALUES ({image}, 'x', '[]', 'clone', 1, 'manual', 'feh'); \
                     INSERT INTO assignments (monitor, image_id, mode, together, backend, set_at) \
                     VALUES ('DP-{image}', {image}, 'clone', '[]', 'feh', 1);"
                ))?;
            }
            Ok::<_, Error>(())
        })
        .unwrap();
    let purged = store
        .write(|c| purge::delete(c, &[gone, gone], false))
        .unwrap();
    assert_eq!(purged.images.len(), 1);
    let expected = purge::Purged {
        monitor_states: 1,
        history_entries: 1,
        playlists: 0,
    };
    assert_eq!(purged.references, expected);
    // Only the preview is pending: the caller of `delete` marks the file itself.
    let pending: Vec<PathBuf> = store
        .read(pending_files::list)
        .unwrap()
        .into_iter()
        .map(|note| note.path)
        .collect();
    assert_eq!(pending, [Path::new(preview)]);
    let left = |table: &str| {
        let sql = format!("SELECT count(image_id), max(image_id) FROM {table}");
        let row = |c: &Connection| {
            Ok::<(i64, i64), Error>(c.query_row(&sql, [], |r| Ok((r.get(0)?, r.get(1)?)))?)
        };
        store.read(row).unwrap()
    };
    assert_eq!(
        (left("history"), left("assignments")),
        ((1, stays), (1, stays))
    );
}

#[test]
fn id_of_a_deleted_image_is_not_reused() {
    let (_directory, store) = scratch();
    let id = store.write(|c| insert(c, &picture("a", 1))).unwrap();
    let gone = store
        .write(|c| purge::delete(c, &[id, id + 7], false))
        .unwrap();
    assert_eq!(gone.images.len(), 1);
    assert!(store.write(|c| insert(c, &picture("a", 1))).unwrap() > id);
}

#[test]
fn image_is_found_by_size_name_path_and_checksum() {
    let (_directory, store) = scratch();
    let [plain, page] =
        [picture("a", 9), package("page")].map(|new| store.write(|c| insert(c, &new)).unwrap());
    let sizes = [8, 9, 10, u64::MAX].map(|size| store.read(|c| has_size(c, size)).unwrap());
    assert_eq!(sizes, [false, true, false, false]);
    let ids = ["a", "A", "page", ""].map(|name| store.read(|c| named(c, name)).unwrap());
    assert_eq!(ids, [vec![plain], vec![], vec![page], vec![]]);
    let paths = [
        "/library/a.png",
        "/library/page/index.html",
        "/library/page",
        "/library",
    ]
    .map(|path| {
        store
            .read(|c| by_path(c, Path::new(path)))
            .unwrap()
            .map(|image| image.id)
    });
    assert_eq!(paths, [Some(plain), Some(page), None, None]);
    let sums = [
        "61".repeat(32),
        "62".repeat(32),
        "6".to_owned(),
        "no digits".to_owned(),
    ]
    .map(|hex| store.read(|c| has_checksum(c, &hex)).unwrap());
    assert_eq!(sums, [true, false, false, false]);
    let listed = [
        (plain, MediaType::Image, false),
        (page, MediaType::Web, false),
    ];
    assert_eq!(store.read(ids_of).unwrap(), listed);
}

fn ids_of(connection: &Connection) -> Result<Vec<(i64, MediaType, bool)>, Error> {
    super::ids(connection)
}

#[test]
fn file_in_place_is_deleted_only_on_request() {
    let (_directory, store) = scratch();
    let [copy, own] = [false, true].map(|in_place| {
        let name = if in_place { "own" } else { "copy" };
        store
            .write(|c| {
                insert(
                    c,
                    &NewImage {
                        in_place,
                        ..picture(name, 1)
                    },
                )
            })
            .unwrap()
    });
    for (with_files, takes) in [(false, [true, false]), (true, [true, true])] {
        let gone = store
            .read(|c| purge::Gone::would_be(c, &[own, copy, own], with_files))
            .unwrap();
        let taken: Vec<bool> = gone.images.iter().map(|image| gone.takes(image)).collect();
        assert_eq!(taken, takes);
    }
}
