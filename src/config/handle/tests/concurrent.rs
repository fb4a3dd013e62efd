//! Tests edits of the file by other programs during a request.

use super::*;

#[test]
fn request_waits_until_an_edit_is_loaded() {
    let room = Room::with("");
    room.write(&room.text().replace("\"dark\"", "\"mine\" # my theme"));
    std::thread::scope(|scope| {
        let patch = scope.spawn(|| {
            let body = json!({"app": {"sort_order": "asc"}});
            room.handle.patch(body.as_object().unwrap())
        });
        // As the watch does.
        room.handle.reload();
        patch.join().unwrap().unwrap();
    });
    assert!(room.text().contains("theme = \"mine\" # my theme"));
    let file = r#"{"sections":["app"],"source":"file""#;
    assert_eq!(room.heard(), [file, r#"{"sections":["app"]"#]);
    let app = &room.handle.current().app;
    assert_eq!(
        (app.theme.as_str(), app.sort_order.as_str()),
        ("mine", "asc")
    );
}

#[test]
fn request_fails_if_an_edit_is_not_finished() {
    let room = Room::with("app.theme = 'x'\n");
    for text in [" \n", "[app", "# more\n"] {
        room.write(text);
        let refused = room.patch(json!({"app": {"theme": "y"}})).unwrap_err();
        assert!(refused.contains("another program is writing"), "{refused}");
        assert_eq!(room.text(), text);
    }
    assert_eq!(fs::read_dir(room.dir.path()).unwrap().count(), 1);
    assert_eq!(room.handle.current().app.theme, "x");
}

#[test]
fn request_reads_a_file_that_is_not_watched() {
    let room = Room::with("");
    room.handle.is_unwatched("on purpose");
    room.write(&room.text().replace("\"dark\"", "\"mine\""));
    room.patch(json!({"app": {"sort_order": "asc"}})).unwrap();
    assert_eq!(room.handle.current().app.theme, "mine");
    room.write("[app");
    let refused = room.patch(json!({"app": {"theme": "y"}})).unwrap_err();
    assert!(refused.contains("fix the file"), "{refused}");
}
