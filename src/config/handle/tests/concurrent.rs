//! Tests edits of the file by other programs during a request.

use super::super::super::file::{self, Pause};
use super::*;
use std::io::Write;

#[test]
fn request_does_not_undo_an_edit_just_made() {
    let room = Room::with("");
    room.write(&room.text().replace("\"dark\"", "\"mine\" # my theme"));
    room.patch(json!({"app": {"sort_order": "asc"}})).unwrap();
    assert!(room.text().contains("theme = \"mine\" # my theme"));
    let file = r#"{"sections":["app"],"source":"file""#;
    assert_eq!(room.heard(), [file, r#"{"sections":["app"]"#]);
    let app = &room.handle.current().app;
    assert_eq!(
        (app.theme.as_str(), app.sort_order.as_str()),
        ("mine", "asc")
    );
    // An edit that is half written is not adopted.
    room.write(" \n");
    let refused = room
        .patch(json!({"app": {"sort_order": "desc"}}))
        .unwrap_err();
    assert!(refused.contains("c.toml is empty"), "{refused}");
    assert_eq!(
        (
            room.text().as_str(),
            room.handle.current().app.theme.as_str()
        ),
        (" \n", "mine")
    );
}

#[test]
fn edit_saved_while_a_request_writes_is_kept() {
    for gap in [Pause::Filled, Pause::Seen] {
        let room = Room::with("");
        let (path, theirs) = (
            room.handle.path().to_owned(),
            room.dir.path().join("theirs"),
        );
        fs::write(
            &theirs,
            room.text().replace("\"dark\"", "\"mine\" # my theme"),
        )
        .unwrap();
        let _pauses = file::on_pause(move |pause| {
            if pause == gap {
                // The rename succeeds only once.
                fs::rename(&theirs, &path).ok();
            }
        });
        room.patch(json!({"app": {"sort_order": "asc"}})).unwrap();
        let text = room.text();
        assert!(
            text.contains("theme = \"mine\" # my theme"),
            "{gap:?}: {text}"
        );
        assert!(text.contains("sort_order = \"asc\""), "{gap:?}: {text}");
        let app = &room.handle.current().app;
        assert_eq!(
            (app.theme.as_str(), app.sort_order.as_str()),
            ("mine", "asc")
        );
        let file = r#"{"sections":["app"],"source":"file""#;
        assert_eq!(room.heard(), [file, r#"{"sections":["app"]"#]);
        assert_eq!(fs::read_dir(room.dir.path()).unwrap().count(), 1);
    }
}

#[test]
fn file_created_while_a_request_writes_is_kept() {
    for gap in [Pause::Filled, Pause::Seen] {
        let room = Room::with("");
        let path = room.handle.path().to_owned();
        let theirs = format!("# theirs\n{}", room.text());
        fs::remove_file(&path).unwrap();
        let _pauses = file::on_pause(move |pause| {
            if pause == gap {
                fs::File::create_new(&path)
                    .and_then(|mut file| file.write_all(theirs.as_bytes()))
                    .ok();
            }
        });
        room.patch(json!({"app": {"sort_order": "asc"}})).unwrap();
        let text = room.text();
        assert!(
            text.starts_with("# theirs\n") && text.contains("sort_order = \"asc\""),
            "{text}"
        );
    }
}

#[test]
fn request_fails_if_another_program_keeps_saving() {
    for gap in [Pause::Filled, Pause::Seen] {
        let room = Room::with("app.theme = 'x'\n");
        let (path, text) = (room.handle.path().to_owned(), room.text());
        let mut saves = 0;
        let _pauses = file::on_pause(move |pause| {
            if pause == gap {
                saves += 1;
                fs::write(&path, format!("# save {saves}\n{text}")).unwrap();
            }
        });
        let refused = room.patch(json!({"app": {"theme": "y"}})).unwrap_err();
        assert!(refused.contains("another program is writing"), "{refused}");
        assert!(matches!(
            room.handle.reset_all(),
            Err(Error::BeingWritten { .. })
        ));
        assert!(room.text().contains("theme = 'x'"), "{}", room.text());
        assert_eq!(
            fs::read_dir(room.dir.path()).unwrap().count(),
            1,
            "no backup, no other file"
        );
    }
}
