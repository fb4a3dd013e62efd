//! Records that clients send back, lists that are changed by differences, and what the window of Waypaper
//! Engine asks for.

use serde_json::{Value, json};

use crate::support::TestDaemon;

/// A daemon with three pictures.
fn daemon() -> TestDaemon {
    let daemon = TestDaemon::started();
    let paths: Vec<_> = (0..3)
        .map(|at| {
            let path = daemon.root().join(format!("p{at}.png"));
            image::RgbImage::from_pixel(8, 8, image::Rgb([at * 90, 9, 9]))
                .save(&path)
                .unwrap();
            path
        })
        .collect();
    daemon.import(&paths.iter().map(|path| &**path).collect::<Vec<_>>());
    daemon
}

#[test]
fn whole_records_can_be_sent_back() {
    let daemon = daemon();
    let client = daemon.client();
    client.post("/folders", &json!({ "name": "Lakes" })).ok();
    client
        .patch("/images/1", &json!({ "tags": ["a"], "folder_id": 1 }))
        .ok();
    let items = json!([{ "image_id": 1 }, { "image_id": 2, "time": 30 }]);
    client
        .post("/playlists", &json!({ "name": "listed", "images": items }))
        .ok();
    client
        .post(
            "/playlists",
            &json!({ "name": "found", "source": { "tags": "a" } }),
        )
        .ok();
    for place in ["/images/1", "/folders/1", "/playlists/1", "/playlists/2"] {
        let record = client.get(place).ok();
        assert_eq!(client.patch(place, &record).ok(), record, "{place}");
        let mut mistyped = record.clone();
        mistyped["nmae"] = json!("other");
        mistyped["name"] = json!("changed");
        let refused = client.patch(place, &mistyped).fails(400);
        let told = refused["error"].as_str().unwrap();
        assert!(
            told.contains("unknown field `nmae`: did you mean name?"),
            "{place}: {told}"
        );
        assert_eq!(client.get(place).ok(), record, "{place}");
    }
}

#[test]
fn lists_are_changed_by_differences() {
    let daemon = daemon();
    let client = daemon.client();
    let tags = |id: i64| client.get(&format!("/images/{id}")).ok()["tags"].clone();
    let all = json!({ "ids": [1, 2, 3], "tags": { "add": ["Sea", "b,c"] } });
    assert_eq!(client.patch("/images", &all).ok(), json!({ "updated": 3 }));
    assert_eq!(client.patch("/images", &all).ok(), json!({ "updated": 0 }));
    let change = json!({ "tags": { "remove": ["SEA", "c"], "add": ["B", "d"] } });
    let changed = client.patch("/images/1", &change).ok();
    assert_eq!(changed["tags"], json!(["b", "B", "d"]));
    assert_eq!(tags(2), json!(["Sea", "b", "c"]));
    let unknown = json!({ "ids": [2, 99], "tags": { "add": ["x"] } });
    client.patch("/images", &unknown).fails(404);
    assert_eq!(tags(2), json!(["Sea", "b", "c"]), "nothing was changed");
    for wrong in [
        json!({ "ids": [], "tags": { "add": ["x"] } }),
        json!({ "ids": [1], "tags": ["x"] }),
        json!({ "ids": [1], "tags": { "ad": ["x"] } }),
    ] {
        client.patch("/images", &wrong).fails(400);
    }
    let items = json!([{ "image_id": 1 }, { "image_id": 2 }, { "image_id": 1 }]);
    client
        .post("/playlists", &json!({ "name": "listed", "images": items }))
        .ok();
    let listed = |change: Value| {
        let playlist = client
            .patch("/playlists/1", &json!({ "images": change }))
            .ok();
        let items = playlist["images"].as_array().unwrap().iter();
        items
            .map(|item| item["image_id"].clone())
            .collect::<Value>()
    };
    let difference = json!({ "add": [{ "image_id": 3 }], "remove": [1] });
    assert_eq!(listed(difference), json!([2, 3]));
    assert_eq!(listed(json!({ "remove": [7] })), json!([2, 3]));
    let unknown = json!({ "images": { "add": [{ "image_id": 99 }], "remove": [2] } });
    client.patch("/playlists/1", &unknown).fails(400);
    assert_eq!(listed(json!({})), json!([2, 3]));
    let found = json!({ "name": "found", "source": {} });
    client.post("/playlists", &found).ok();
    let refused = client.patch("/playlists/2", &json!({ "images": { "remove": [1] } }));
    let told = refused.fails(400)["error"].to_string();
    assert!(told.contains("is dynamic"), "{told}");
}

#[test]
fn watched_directories_are_added_and_removed() {
    let daemon = TestDaemon::started();
    let client = daemon.client();
    let [one, two] = ["one", "two"].map(|name| daemon.root().join(name).display().to_string());
    let paths = |change: Value| {
        let watched = client
            .patch("/library/watch", &json!({ "watch": change }))
            .ok();
        let all = watched["watch"].as_array().unwrap().iter();
        all.map(|one| one["path"].clone()).collect::<Value>()
    };
    assert_eq!(paths(json!({ "add": [one, two] })), json!([one, two]));
    let again = format!("{one}/../one/");
    assert_eq!(paths(json!({ "add": [again] })), json!([one, two]));
    assert_eq!(paths(json!({ "remove": [again, "/none"] })), json!([two]));
    client
        .patch("/library/watch", &json!({ "watch": { "add": ["walls"] } }))
        .fails(400);
    assert_eq!(paths(json!([one])), json!([one]));
    let one_object = client.send("PUT", "/library/watch", "", br#"{"watch": {"add": []}}"#);
    one_object.fails(400);
    client.send("PUT", "/library/watch", "", b"{}").fails(400);
}

#[test]
fn window_of_waypaper_engine_gets_its_names() {
    let daemon = daemon();
    let client = daemon.client();
    let name = json!({ "name": "Lakes" });
    let made = client.post("/folders", &name);
    let again = client.post("/folders", &name);
    assert_eq!((made.status, again.status), (201, 200));
    assert_eq!(made.ok(), again.ok());
    let inner = client.post("/folders", &json!({ "name": "Lakes", "parent_id": 1 }));
    assert_eq!(inner.status, 201);
    let capabilities = client.get("/capabilities").ok();
    assert_eq!(
        capabilities["ffmpeg_available"],
        capabilities["transcoder_available"]
    );
    let config = client.get("/config").ok();
    assert_eq!(config["wallhaven"], config["remote_gallery"]);
    let keys = json!({ "scroll_mode": "infinite" });
    let section = client.patch("/config/wallhaven", &keys).ok();
    assert_eq!(section["scroll_mode"], "infinite");
    assert_eq!(client.get("/config/remote_gallery").ok(), section);
    assert_eq!(client.get("/config/wallhaven").ok(), section);
    let mut config = client.get("/config").ok();
    config["wallhaven"]["enabled"] = json!(true);
    let patched = client.patch("/config", &config).ok();
    assert_eq!(patched["remote_gallery"]["enabled"], true);
    client.patch("/images/1", &json!({ "folder_id": 1 })).ok();
    let listed = |query: &str| {
        let page = client.get(&format!("/images?{query}")).ok();
        let images = page["data"].as_array().unwrap().iter();
        images.map(|image| image["id"].clone()).collect::<Value>()
    };
    assert_eq!(listed("folder_id=0&sort_by=created_at"), json!([3, 2]));
    let lives = json!({ "name": "lives", "source": { "folder_id": 1 } });
    let playlist = client.post("/playlists", &lives).ok();
    let items = json!([{ "image_id": 1, "media_type": "image" }]);
    assert_eq!(playlist["images"], items);
    assert_eq!(client.get("/playlists").ok()[0]["images"], items);
    let root = json!({ "folder_id": "root", "recursive": false });
    let both = json!({ "images": items, "source": root });
    let changed = client.patch("/playlists/1", &both).ok();
    assert_eq!(changed["source"], root);
    assert_eq!(changed["images"].as_array().unwrap().len(), 2);
}
