//! Filters of `GET /images`, through the real daemon.

use serde_json::{Value, json};

use crate::support::TestDaemon;

/// A test daemon with four pictures that differ in name, size and colour.
fn daemon() -> TestDaemon {
    let daemon = TestDaemon::started();
    for (name, (width, height), color) in [
        ("Wide lake", (300, 100), [200, 20, 20]),
        ("wide hill", (200, 100), [20, 20, 200]),
        ("Tall tree", (100, 300), [205, 30, 25]),
        ("square", (200, 200), [128, 128, 128]),
    ] {
        let path = daemon.root().join(format!("{name}.png"));
        image::RgbImage::from_pixel(width, height, image::Rgb(color))
            .save(&path)
            .unwrap();
        daemon.import(&[&path]);
    }
    daemon
}

/// The ids of a list, in ascending order.
fn ids(daemon: &TestDaemon, query: &str) -> Vec<i64> {
    let list = daemon.client().get(&format!(
        "/images?sort_by=imported_at&sort_order=asc&{query}"
    ));
    let ids = |list: Value| -> Vec<i64> {
        let data = list["data"].as_array().unwrap().iter();
        data.map(|image| image["id"].as_i64().unwrap()).collect()
    };
    ids(list.ok())
}

#[test]
fn images_are_filtered_by_size_name_and_content() {
    let daemon = daemon();
    let check =
        |query: &str, expected: &[i64]| assert_eq!(ids(&daemon, query), expected, "{query}");
    check("orientation=landscape", &[1, 2]);
    check("orientation=portrait", &[3]);
    check("orientation=square", &[4]);
    check("min_width=200", &[1, 2, 4]);
    check("min_width=200&min_height=101", &[4]);
    check("name=wide%20hill", &[2]);
    check("name=Wide%20hill", &[]);
    check("name_prefix=WIDE", &[1, 2]);
    check("name_prefix=wide%20l", &[1]);
    check("hue_group=0,99", &[1, 3, 4]);
    check("colors=gray", &[4]);
    check("colors_near=crimson~40", &[1, 3]);
    let sum = daemon.client().get("/images/3").ok()["checksum"]
        .as_str()
        .unwrap()
        .to_owned();
    check(&format!("checksum={sum}"), &[3]);
    check(
        &format!("checksum={}", sum.trim_start_matches("sha256:")),
        &[3],
    );
    check(&format!("checksum={}", "0".repeat(64)), &[]);
    check(&format!("name=square&checksum={sum}"), &[]);
    for bad in [
        "orientation=wide",
        "min_width=0",
        "checksum=x",
        "hue_group=12",
        "recursive=x",
    ] {
        daemon.client().get(&format!("/images?{bad}")).fails(400);
    }
    // A new name counts at once.
    daemon
        .client()
        .patch("/images/2", &json!({ "name": "other" }))
        .ok();
    check("name=other", &[2]);
    check("name=wide%20hill", &[]);
}

#[test]
fn recursive_filter_includes_subfolders() {
    let daemon = daemon();
    let client = daemon.client();
    client.post("/folders", &json!({ "name": "sea" })).ok();
    client
        .post("/folders", &json!({ "name": "bay", "parent_id": 1 }))
        .ok();
    let into = |image: i64, folder: i64| {
        client
            .patch(&format!("/images/{image}"), &json!({ "folder_id": folder }))
            .ok();
    };
    into(1, 1);
    into(2, 2);
    assert_eq!(ids(&daemon, "search=BAY"), [2]);
    assert_eq!(ids(&daemon, "search=sea"), [1, 2]);
    assert_eq!(ids(&daemon, "search=sea/bay"), [2]);
    let counts = client.get("/folders?parent_id=all").ok();
    assert_eq!(counts["data"][0]["images_below"], 1);
    assert_eq!(counts["data"][1]["images_below"], 2);
    client.patch("/folders/2", &json!({ "name": "cove" })).ok();
    assert_eq!(ids(&daemon, "search=bay"), [0; 0]);
    assert_eq!(ids(&daemon, "folder_id=1"), [1]);
    assert_eq!(ids(&daemon, "folder_id=1&recursive=true"), [1, 2]);
    assert_eq!(ids(&daemon, "folder_id=2&recursive=true"), [2]);
    assert_eq!(ids(&daemon, "folder_id=root&recursive=true"), [1, 2, 3, 4]);
    assert_eq!(ids(&daemon, "folder_id=root&recursive=false"), [3, 4]);
    client.get("/images?folder_id=9&recursive=true").fails(400);
}

#[test]
fn similar_images_are_sorted_by_likeness_by_default() {
    let daemon = daemon();
    let list = |query: &str| -> Vec<Value> {
        let list = daemon
            .client()
            .get(&format!("/images?palette_similar_to=1&{query}"))
            .ok();
        list["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|image| image["id"].clone())
            .collect()
    };
    assert_eq!(list("palette_max_delta_e=300"), [3, 4, 2]);
    assert_eq!(list("palette_max_delta_e=300&per_page=1&page=2"), [4]);
    assert_eq!(
        list("palette_max_delta_e=300&sort_by=name&sort_order=asc"),
        [4, 3, 2]
    );
    // `/images/ids` ignores the page: it lists all ids, at one instant.
    let ids = |query: &str| daemon.client().get(&format!("/images/ids?{query}"));
    let like = "palette_similar_to=1&palette_max_delta_e=300&per_page=1&page=2";
    assert_eq!(ids(like).ok(), json!({ "ids": [3, 4, 2] }));
    ids("palette_similar_to=99").fails(404);
    let refused = ids("folder_id=999").fails(400);
    assert_eq!(refused["error"], "folder_id: no folder with ID 999");
    ids("sort_by=size").fails(400);
}
