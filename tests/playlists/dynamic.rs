//! Dynamic playlists on a real desktop: created, refused, stepped, emptied and filled again.

use serde_json::{Value, json};

use super::{active, change, daemon, start};
use crate::desktop::{Desktop, wait_until};
use crate::support::TestDaemon;

fn tag(daemon: &TestDaemon, id: i64, tags: &[&str]) {
    daemon
        .client()
        .patch(&format!("/images/{id}"), &json!({ "tags": tags }))
        .ok();
}

fn ids(page: &Value) -> Vec<i64> {
    page["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|image| image["id"].as_i64().unwrap())
        .collect()
}

#[test]
fn invalid_sources_are_refused() {
    let daemon = TestDaemon::started();
    let check = |mut body: Value, says: &str| {
        body["name"] = json!("bad");
        let refused = daemon
            .client()
            .post("/playlists", &body)
            .fails(400)
            .to_string();
        assert!(refused.contains(says), "{body}: {refused}");
    };
    check(json!({ "images": [], "source": {} }), "cannot be combined");
    for source in [json!(null), json!([]), json!("x"), json!(7)] {
        check(json!({ "source": source }), "source");
    }
    check(json!({ "source": { "tag": ["a"] } }), "did you mean tags?");
    check(json!({ "source": { "page": 1 } }), "no field");
    check(json!({ "source": { "sort_by": "size" } }), "file_size");
    check(json!({ "source": { "min_width": 0 } }), "from 1");
    let day = json!({ "type": "time_of_day" });
    check(
        json!({ "source": {}, "configuration": day }),
        "timer and manual",
    );
    assert_eq!(daemon.client().get("/playlists").ok(), json!([]));
    let made = daemon
        .client()
        .post("/playlists", &json!({ "name": "good", "source": {} }))
        .ok();
    let place = format!("/playlists/{}", made["id"]);
    daemon
        .client()
        .patch(&place, &json!({ "configuration": day }))
        .fails(400);
    daemon
        .client()
        .patch(&place, &json!({ "source": { "x": 1 } }))
        .fails(400);
    assert_eq!(daemon.client().get(&place).ok()["source"], json!({}));
    daemon
        .client()
        .post(&format!("{place}/start"), &json!({}))
        .fails(400);
    daemon.client().get("/playlists/77/images").fails(404);
}

#[test]
fn images_of_any_playlist_are_paged() {
    let desktop = Desktop::wayland(&["640x360"]);
    let (daemon, all) = daemon(&desktop, 4);
    let listed = super::make(&daemon, "list", json!({}), &[all[2], all[0], all[2]]);
    let page = daemon
        .client()
        .get(&format!("/playlists/{listed}/images?per_page=2"))
        .ok();
    assert_eq!(
        (ids(&page), &page["pagination"]["total_pages"]),
        (vec![all[2], all[0]], &json!(2))
    );
    let page = daemon
        .client()
        .get(&format!("/playlists/{listed}/images?per_page=2&page=2"))
        .ok();
    assert_eq!(ids(&page), [all[2]]);
    let source = json!({ "sort_by": "imported_at", "sort_order": "desc" });
    let body = json!({ "name": "newest", "source": source });
    let made = daemon.client().post("/playlists", &body).ok();
    assert_eq!(made["source"], source);
    assert_eq!(made["images"][0]["image_id"], all[3]);
    let place = format!("/playlists/{}/images", made["id"]);
    assert_eq!(
        ids(&daemon.client().get(&format!("{place}?per_page=2")).ok()),
        [all[3], all[2]]
    );
    assert_eq!(
        daemon.client().get(&place).ok()["pagination"]["total_items"],
        4
    );
}

#[test]
fn dynamic_playlist_follows_the_library() {
    let desktop = Desktop::wayland(&["640x360"]);
    let (mut daemon, all) = daemon(&desktop, 4);
    all[..2].iter().for_each(|&id| tag(&daemon, id, &["sea"]));
    let run = |daemon: &TestDaemon, line: &str| {
        let output = daemon
            .murald(&line.split(' ').collect::<Vec<_>>())
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
            errors,
        )
    };
    let made = run(&daemon, "playlist create sea --tags sea --type manual");
    assert_eq!(made.0, Some(0), "{made:?}");
    let record = &daemon.client().get("/playlists").ok()[0];
    let listed = record["images"].as_array().unwrap();
    let listed: Vec<_> = listed.iter().map(|item| &item["image_id"]).collect();
    assert_eq!(
        (&record["source"], listed),
        (
            &json!({ "tags": ["sea"] }),
            vec![&json!(all[0]), &json!(all[1])]
        )
    );
    let shown = run(&daemon, "playlist show sea").1;
    assert!(
        shown.contains("tags=sea") && shown.contains("images\t2"),
        "{shown}"
    );
    let listed = run(&daemon, "playlist list").1;
    assert!(listed.contains("\tmanual\t2\t"), "{listed}");
    let refused = run(&daemon, "playlist add sea --tags sea");
    assert!(
        refused.0 == Some(1) && refused.2.contains("filters"),
        "{refused:?}"
    );
    for line in [
        "playlist create fixed --fixed",
        "playlist create fixed --type manual",
    ] {
        let refused = run(&daemon, line);
        assert_eq!(refused.0, Some(2), "{line}: {refused:?}");
    }
    assert_eq!(
        run(&daemon, "playlist create fixed --tags sea --fixed").0,
        Some(0)
    );
    let id = record["id"].as_i64().unwrap();
    let mut events = daemon.events("playlist_image_changed,playlist_stopped");
    start(&daemon, id, &[]);
    assert_eq!(change(&mut events), (id, 0, all[0]));
    tag(&daemon, all[3], &["sea"]);
    tag(&daemon, all[1], &[]);
    super::tell(&daemon, id, "next");
    assert_eq!(change(&mut events), (id, 1, all[3]));
    super::see(&desktop, "HEADLESS-1", 3);
    let fixed = daemon.client().get("/playlists").ok();
    assert_eq!(
        fixed[0]["images"].as_array().unwrap().len(),
        2,
        "a fixed playlist does not change"
    );
    // No image matches: the playlist pauses, also after a restart, and resumes by itself.
    [all[0], all[3]]
        .iter()
        .for_each(|&id| tag(&daemon, id, &[]));
    wait_until("no current image", || {
        active(&daemon)[0]["current_image_id"].is_null()
    });
    assert_eq!(active(&daemon)[0]["total_images"], 0);
    let said = || {
        daemon
            .log()
            .matches("is paused: no image matches its filters")
            .count()
    };
    assert_eq!(said(), 1, "{}", daemon.log());
    let refused = daemon
        .client()
        .post(&format!("/playlists/{id}/next"), &json!({}))
        .fails(400);
    assert!(refused.to_string().contains("is empty"), "{refused}");
    assert_eq!(said(), 1, "{}", daemon.log());
    daemon.ends_well();
    daemon.start();
    assert!(active(&daemon)[0]["current_image_id"].is_null());
    let mut events = daemon.events("playlist_image_changed");
    tag(&daemon, all[2], &["sea"]);
    assert_eq!(change(&mut events), (id, 0, all[2]));
    super::see(&desktop, "HEADLESS-1", 2);
}
