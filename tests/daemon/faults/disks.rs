//! Disks that do not answer under the library, its cache and its database: at the start, beneath
//! requests of all kinds, and at the end. Each first look takes the seconds that a disk is given:
//! `MURALD_FAULTS_LONG=1` has all of them, the usual run the first of their kind.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::plain;
use crate::desktop::{Desktop, wait_until};
use crate::support::bystander::Bystander;
use crate::support::dead_disk::DeadDisk;
use crate::support::{House, left_out};

/// On a machine that is busy it may take longer; what hangs never ends.
const AT_ONCE: Duration = Duration::from_secs(50);

fn is_long() -> bool {
    std::env::var_os("MURALD_FAULTS_LONG").is_some()
}

/// Two images, of which the first is shown and has its thumbnail.
fn house(desktop: &Desktop) -> (House, [i64; 2]) {
    let house = House::started_on(desktop);
    let ids = [("red.png", [200, 30, 30]), ("green.png", [30, 180, 60])]
        .map(|(name, color)| house.import(&[&plain(&house, name, color)])[0]);
    house.client().post("/wallpaper/set", &json!({ "image_id": ids[0] })).ok();
    assert_eq!(house.client().get(&format!("/images/{}/thumbnail", ids[0])).status, 200);
    is_long_ago();
    (house, ids)
}

/// That a disk answered counts for a moment, in which one that dies would hold up who asks.
fn is_long_ago() {
    let asked = Instant::now();
    wait_until("that is long ago", || asked.elapsed() > Duration::from_millis(500));
}

/// Ends it, for which no thread that looks at a disk may take the others' time.
#[track_caller]
fn ends(house: &mut House) {
    let begun = Instant::now();
    assert_eq!(house.stop(), Some(0));
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
}

#[test]
fn library_on_a_dead_disk_hangs_nobody() {
    let desktop = Desktop::wayland(&["640x480"]);
    let (mut house, [red, green]) = house(&desktop);
    let (client, blue) = (house.client(), plain(&house, "blue.png", [20, 40, 200]));
    let in_place = |path: &Path| json!({ "paths": [path], "in_place": true });
    client.post("/images", &in_place(&plain(&house, "mine.png", [9, 9, 9]))).ok();
    wait_until("one in place", || client.get("/images").ok()["pagination"]["total_items"] == 3);
    let mine = client.get("/images?search=mine").ok()["data"][0]["id"].clone();
    let bystander = Bystander::beside(&house, Some(red));
    let Some(dead) = DeadDisk::over(&house.images()) else {
        return left_out("a library on a dead disk", "this user may not mount");
    };
    let begun = Instant::now();
    let set = |id: i64| client.post("/wallpaper/set", &json!({ "image_id": id })).status;
    assert!([404, 503].contains(&set(green)));
    let path = format!("/images/{green}/raw");
    let many: Vec<u16> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..40).map(|_| scope.spawn(|| client.get(&path).status)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(many, [503; 40]);
    let name = json!({ "name": "other" });
    client.patch(&format!("/images/{green}"), &name).fails(503);
    client.patch(&format!("/images/{green}"), &json!({ "tags": ["there"] })).ok();
    let body = json!({ "ids": [green] }).to_string();
    client.send("DELETE", "/images", "", body.as_bytes()).fails(503);
    client.post("/images", &json!({ "paths": [blue] })).fails(503);
    client.post("/library/purge-missing", &json!({})).fails(503);
    // Its own disk answers: the name is to be free in the library as well.
    client.post("/images", &in_place(&blue)).fails(503);
    client.patch(&format!("/images/{mine}"), &name).fails(503);
    assert_eq!(client.get("/images").ok()["pagination"]["total_items"], 3);
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    bystander.end("a library on a dead disk");

    ends(&mut house);
    house.start();
    let bystander = Bystander::beside(&house, Some(red));
    let rows = client.get("/images").ok();
    assert_eq!(rows["data"].as_array().unwrap().len(), 3);
    client.get(&format!("/images/{green}/raw")).fails(503);
    bystander.end("a start over a library on a dead disk");
    drop(dead);
    wait_until("it is shown", || set(green) == 200);
    assert_eq!(client.get(&format!("/images/{green}")).ok()["tags"], json!(["there"]));
    house.import(&[&blue]);
    ends(&mut house);
}

/// Whoever asks how the library is has the files that are missing looked for.
#[test]
fn guard_on_a_dead_disk_says_what_it_knew() {
    let mut house = House::started();
    for (name, color) in [("red.png", [200, 30, 30]), ("green.png", [30, 180, 60])] {
        house.import(&[&plain(&house, name, color)]);
    }
    ends(&mut house);
    let (images, away) = (house.images(), house.root().join("away"));
    fs::rename(&images, &away).unwrap();
    house.start();
    let client = house.client();
    let library = || client.get("/info").ok()["library"].clone();
    let guarded = json!({ "missing": 2, "guarded": true });
    wait_until("the guard", || library() == guarded);
    is_long_ago();
    // An empty directory: what the guard knows is stale.
    fs::create_dir(&images).unwrap();
    let bystander = Bystander::beside(&house, None);
    let Some(dead) = DeadDisk::over(&images) else {
        return left_out("a guard on a dead disk", "this user may not mount");
    };
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..20).map(|_| scope.spawn(library)).collect();
        all.into_iter().for_each(|one| assert_eq!(one.join().unwrap(), guarded));
    });
    assert!(client.get("/config").ok()["warnings"].to_string().contains("pictures are missing"));
    assert!(house.murald(&["status"]).output().unwrap().status.success());
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    bystander.end("a guard on a dead disk");
    drop(dead);
    fs::remove_dir(&images).unwrap();
    fs::rename(&away, &images).unwrap();
    wait_until("the files", || library() == json!({ "missing": 0, "guarded": false }));
    ends(&mut house);
}

#[test]
fn cache_on_a_dead_disk_costs_thumbnails_alone() {
    let desktop = Desktop::wayland(&["640x480"]);
    let (mut house, [red, green]) = house(&desktop);
    let (client, blue) = (house.client(), plain(&house, "blue.png", [20, 40, 200]));
    let cache = house.root().join("cache/murald");
    let Some(dead) = DeadDisk::over(&cache) else {
        return left_out("a cache on a dead disk", "this user may not mount");
    };
    for round in ["running", "started anew"] {
        if round != "running" {
            if !is_long() {
                break;
            }
            house.start();
        }
        let bystander = Bystander::beside(&house, None);
        let begun = Instant::now();
        client.get(&format!("/images/{red}/thumbnail")).fails(503);
        assert_eq!(client.get(&format!("/images/{green}/raw")).status, 200);
        let rows = client.get("/images").ok();
        assert!(rows["data"].as_array().unwrap().len() >= 2, "{round}: {rows}");
        let one = client.get(&format!("/images/{green}")).ok();
        assert_eq!(one["thumbnails"], json!({}), "{round}");
        if round == "running" {
            client.post("/wallpaper/set", &json!({ "image_id": green })).ok();
            // It has its picture now, and gets its thumbnail when there is a cache again.
            house.import(&[&blue]);
        }
        assert!(begun.elapsed() < AT_ONCE, "{round}: {:?}", begun.elapsed());
        bystander.end(&format!("a cache on a dead disk, {round}"));
        ends(&mut house);
    }
    drop(dead);
    house.start();
    let all = || client.get("/images").ok()["data"].as_array().unwrap().clone();
    assert_eq!(all().len(), 3);
    let thumbnail =
        |image: &Value| client.get(&format!("/images/{}/thumbnail", image["id"])).status;
    wait_until("thumbnails", || all().iter().all(|image| thumbnail(image) == 200));
    ends(&mut house);
}

#[test]
fn database_on_a_dead_disk_is_told_at_the_start_and_left_at_the_end() {
    let mut house = House::started();
    if !is_long() {
        assert_eq!(house.stop(), Some(0));
    }
    let database = house.database().parent().unwrap().to_owned();
    let Some(dead) = DeadDisk::over(&database) else {
        return left_out("a database on a dead disk", "this user may not mount");
    };
    if is_long() {
        ends(&mut house);
    }
    let refused = house.murald(&["start"]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(70), "{said}");
    assert!(said.contains(database.to_str().unwrap()) && said.contains("not answer"), "{said}");
    drop(dead);
    assert!(fs::metadata(house.database()).is_ok());
    house.start();
    house.client().get("/images").ok();
}

/// Settings are in memory: what asks for them, and all else, goes on.
#[test]
fn configuration_on_a_dead_disk_refuses_changes_alone() {
    let desktop = Desktop::wayland(&["640x480"]);
    let (mut house, [red, green]) = house(&desktop);
    let client = house.client();
    let config = house.config_file().parent().unwrap().to_owned();
    let bystander = Bystander::beside(&house, Some(red));
    let Some(dead) = DeadDisk::over(&config) else {
        return left_out("a configuration on a dead disk", "this user may not mount");
    };
    let begun = Instant::now();
    let theme = json!({ "theme": "mine" });
    let changes = |client: &crate::support::client::Client| client.patch("/config/app", &theme);
    let all: Vec<u16> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..8).map(|_| scope.spawn(|| changes(&client).status)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(all, [503; 8]);
    client.post("/config/reset", &json!({})).fails(503);
    assert_eq!(client.get("/config").ok()["app"]["theme"], "dark");
    client.post("/wallpaper/set", &json!({ "image_id": green })).ok();
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    bystander.end("a configuration on a dead disk");
    drop(dead);
    wait_until("a change", || changes(&client).status == 200);
    assert!(fs::read_to_string(house.config_file()).unwrap().contains("\"mine\""));
    let dead = DeadDisk::over(&config).unwrap();
    // SIGHUP has the file read again, by the thread that ends the daemon as well.
    house.signal("-HUP");
    ends(&mut house);
    let refused = house.murald(&["start"]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(70), "{said}");
    assert!(said.contains("config.toml does not answer"), "{said}");
    drop(dead);
    house.start();
    assert_eq!(client.get("/config").ok()["app"]["theme"], "mine");
}

/// What other programs are shown is kept there, and the notes of what was started.
#[test]
fn state_on_a_dead_disk_keeps_no_picture_away() {
    let desktop = Desktop::wayland(&["640x480"]);
    let (mut house, [red, green]) = house(&desktop);
    let client = house.client();
    let state = house.root().join(".local/state/murald");
    assert!(state.is_dir());
    let bystander = Bystander::beside(&house, Some(red));
    let Some(dead) = DeadDisk::over(&state) else {
        return left_out("a state on a dead disk", "this user may not mount");
    };
    let begun = Instant::now();
    client.post("/wallpaper/set", &json!({ "image_id": green })).ok();
    assert_eq!(client.get("/wallpaper/current").ok()["monitors"][0]["image_id"], green);
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    bystander.end("a state on a dead disk");
    ends(&mut house);
    house.start();
    client.post("/wallpaper/set", &json!({ "image_id": red })).ok();
    ends(&mut house);
    drop(dead);
}
