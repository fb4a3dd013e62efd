//! Sixteen clients import, rename, move, delete and list real files at the same time. Afterwards rows
//! and files must agree to the byte, and no client may have seen a lock error.
//!
//! `MURALD_CROWD_SECONDS` sets the duration (default 8), `MURALD_CROWD_FILES` the number of files that
//! are imported while clients measure how long they wait (default 200).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use murald::internals::store::images::{self, Checksum};
use murald::internals::store::{self, Store, edits, pending_files};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::TestDaemon;
use crate::support::client::{Answer, Client};
use crate::support::dice::Dice;

const CLIENTS: u64 = 16;
const PICTURES: u64 = 240;
/// Few, so that new names mostly collide with existing ones.
const NAMES: u64 = 12;
/// Number of pictures that are renamed and moved, but never deleted.
const KEPT: usize = 8;

/// State that all clients share.
struct Scene {
    sources: Vec<PathBuf>,
    kept: Vec<i64>,
    done: AtomicU64,
    busy: AtomicU64,
}

#[test]
fn rows_and_files_agree_after_sixteen_clients_changed_them() {
    let seconds = std::env::var("MURALD_CROWD_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok());
    let length = Duration::from_secs(seconds.unwrap_or(8));
    let mut daemon = TestDaemon::new();
    let sources = sources(&daemon.root().join("sources"));
    daemon.start();
    let first: Vec<&Path> = sources.iter().take(KEPT).map(PathBuf::as_path).collect();
    let kept = daemon.import(&first);
    assert_eq!(kept.len(), KEPT);
    let scene = Scene {
        sources,
        kept,
        done: AtomicU64::new(0),
        busy: AtomicU64::new(0),
    };
    let until = Instant::now() + length;
    std::thread::scope(|scope| {
        for number in 1..=CLIENTS {
            let (scene, client) = (&scene, daemon.client());
            scope.spawn(move || {
                let mut dice = Dice(number);
                while Instant::now() < until {
                    act(scene, &client, &mut dice);
                    scene.done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    wait_for_imports(&daemon);
    let listed = check_totals(&daemon.client());
    let log = daemon.log();
    // A full queue is a 503, and every 5xx is an error in the log.
    let is_error =
        |line: &&str| line.contains("\"level\":\"error\"") && !line.contains("\"status\":503");
    assert!(
        !log.contains("locked") && log.lines().find(is_error).is_none(),
        "see the log"
    );
    assert_eq!(daemon.stop(), Some(0));
    check_agreement(&daemon, &scene, &listed);
    daemon.start();
    wait_for_imports(&daemon);
    assert_eq!(
        check_totals(&daemon.client()),
        listed,
        "the start changed something"
    );
    let (done, busy) = (scene.done.into_inner(), scene.busy.into_inner());
    eprintln!(
        "{done} requests in {length:?}, {busy} imports told to wait; {} left",
        listed.len()
    );
}

/// Waits until all imports have ended: batches run one after another, so this one ends last.
fn wait_for_imports(daemon: &TestDaemon) {
    let nothing = daemon.root().join("nothing");
    fs::create_dir_all(&nothing).unwrap();
    let mut events = daemon.events("processing_complete");
    let mut batch = daemon
        .client()
        .post("/images", &json!({ "paths": [nothing] }));
    while batch.status == 503 {
        // The queue is full; it has room when a batch has ended.
        events.wait_for("processing_complete");
        batch = daemon
            .client()
            .post("/images", &json!({ "paths": [nothing] }));
    }
    let batch = batch.ok();
    while events.wait_for("processing_complete")["batch_id"] != batch["batch_id"] {}
}

/// A client waits for a few commands and one group of files, however many files are imported.
#[test]
fn clients_are_answered_while_files_are_imported() {
    let files = std::env::var("MURALD_CROWD_FILES");
    let files: u64 = files.ok().and_then(|text| text.parse().ok()).unwrap_or(200);
    let mut daemon = TestDaemon::new();
    let mut sources = pictures(&daemon.root().join("sources"), files + 1);
    daemon.start();
    let last = sources.split_off(files as usize);
    let id = daemon.import(&[&last[0]])[0];
    let mut events = daemon.events("processing_complete");
    let batch = daemon
        .client()
        .post("/images", &json!({ "paths": sources }))
        .ok();
    let done = std::sync::atomic::AtomicBool::new(false);
    let measure = |what: &str, send: &dyn Fn(&Client, usize) -> Answer| {
        let (client, mut times) = (daemon.client(), Vec::new());
        while !done.load(Ordering::Relaxed) {
            let begun = Instant::now();
            let answer = send(&client, times.len());
            times.push(begun.elapsed());
            assert_eq!(answer.status, 200, "{what}: {}", answer.text());
        }
        times.sort_unstable();
        let at = |part: usize| times[(times.len() - 1) * part / 100];
        let (half, most) = (at(50), at(99));
        eprintln!(
            "{what}: {} times, p50 {half:?}, p99 {most:?}, at most {:?}",
            times.len(),
            at(100)
        );
        assert!(
            at(100) < Duration::from_secs(30),
            "{what} waited {:?}",
            at(100)
        );
    };
    let (begun, image) = (Instant::now(), format!("/images/{id}"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            measure("tag", &|client, number| {
                client.patch(&image, &json!({ "tags": [format!("tag {number}")] }))
            });
        });
        scope.spawn(|| {
            measure("rename", &|client, number| {
                client.patch(&image, &json!({ "name": format!("name {number}") }))
            });
        });
        scope.spawn(|| {
            measure("list", &|client, _| {
                client.get("/images?per_page=50&sort_by=name")
            })
        });
        while events.wait_for("processing_complete")["batch_id"] != batch["batch_id"] {}
        done.store(true, Ordering::Relaxed);
    });
    eprintln!("{files} files in {:?}", begun.elapsed());
    assert_eq!(check_totals(&daemon.client()).len() as u64, files + 1);
}

/// Sends one random request, and checks that its status is allowed.
fn act(scene: &Scene, client: &Client, dice: &mut Dice) {
    let id = any_image(scene, client, dice);
    let name = format!("name {}", dice.below(NAMES));
    match dice.below(12) {
        0..=2 => import(scene, client, dice),
        3 | 4 => allow(
            &client.patch(&format!("/images/{id}"), &json!({ "name": name })),
            id,
            scene,
        ),
        5 => {
            let tags = json!({ "tags": [format!("tag {}", dice.below(5))], "is_selected": true });
            allow(&client.patch(&format!("/images/{id}"), &tags), id, scene);
        }
        6 => {
            let folder = any_folder(client, dice);
            let answer = client.post(
                "/folders/move-images",
                &json!({ "image_ids": [id], "folder_id": folder }),
            );
            one_of(&answer, &[200, 404]);
        }
        7 if scene.kept.contains(&id) => {}
        7 => {
            let body = json!({ "ids": [id, dice.below(10_000) + 1_000_000] }).to_string();
            one_of(
                &client.send("DELETE", "/images", "", body.as_bytes()),
                &[200],
            );
        }
        8 => folders(scene, client, dice),
        9 => allow(&client.get(&format!("/images/{id}/raw")), id, scene),
        10 => allow(
            &client.get(&format!("/images/{id}/thumbnail?resolution=720p")),
            id,
            scene,
        ),
        _ => list(client, dice),
    }
}

fn import(scene: &Scene, client: &Client, dice: &mut Dice) {
    let count = dice.below(4) + 1;
    let paths: Vec<&PathBuf> = (0..count)
        .map(|_| &scene.sources[dice.below(PICTURES) as usize])
        .collect();
    let mut body = json!({ "paths": paths });
    if let Some(folder) = any_folder(client, dice) {
        body["folder_id"] = folder.into();
    }
    let answer = client.post("/images", &body);
    // The folder may have been deleted in the meantime, and the queue of batches may be full.
    one_of(&answer, &[202, 404, 503]);
    if answer.status == 503 {
        scene.busy.fetch_add(1, Ordering::Relaxed);
    }
}

fn folders(scene: &Scene, client: &Client, dice: &mut Dice) {
    let parent = any_folder(client, dice);
    match dice.below(3) {
        0 => {
            let name = format!("folder {}", dice.below(6));
            let body = json!({ "name": name, "parent_id": parent });
            one_of(&client.post("/folders", &body), &[200, 201, 404, 409]);
        }
        1 => {
            let Some(id) = parent else { return };
            one_of(
                &client.delete(&format!("/folders/{id}?mode=keep_contents")),
                &[200, 404],
            );
        }
        _ => {
            let Some(id) = parent else { return };
            let body = json!({ "image_ids": scene.kept, "folder_id": null });
            // Images in `kept` are never deleted. Another client may move one back into a shared folder,
            // so `delete_all` gets a folder that no other client chooses.
            one_of(&client.post("/folders/move-images", &body), &[200]);
            let body = json!({ "name": format!("own {}", dice.0), "parent_id": id });
            let made = client.post("/folders", &body);
            one_of(&made, &[201, 404]);
            if made.status == 201 {
                let own = made.json()["id"].clone();
                let moved =
                    json!({ "image_ids": [any_image(scene, client, dice)], "folder_id": own });
                if !scene
                    .kept
                    .contains(&moved["image_ids"][0].as_i64().unwrap())
                {
                    one_of(&client.post("/folders/move-images", &moved), &[200, 404]);
                }
                let gone = client.delete(&format!("/folders/{own}?mode=delete_all"));
                one_of(&gone, &[200, 404]);
            }
        }
    }
}

fn list(client: &Client, dice: &mut Dice) {
    let sort = ["name", "imported_at", "file_size", "hue"][dice.below(4) as usize];
    let filter = ["", "&search=name", "&tags=tag%201", "&folder_id=root"][dice.below(4) as usize];
    let page = client
        .get(&format!("/images?per_page=20&sort_by={sort}{filter}"))
        .ok();
    let data = page["data"].as_array().unwrap();
    let ids: BTreeSet<i64> = data
        .iter()
        .map(|image| image["id"].as_i64().unwrap())
        .collect();
    assert_eq!(ids.len(), data.len(), "no image twice on one page");
    let total = page["pagination"]["total_items"].as_u64().unwrap();
    assert!(total >= ids.len() as u64, "{page}");
}

/// An image that exists, or did a moment ago.
fn any_image(scene: &Scene, client: &Client, dice: &mut Dice) -> i64 {
    if dice.below(4) == 0 {
        return scene.kept[dice.below(KEPT as u64) as usize];
    }
    let page = client.get("/images?per_page=200").ok();
    let data = page["data"].as_array().unwrap();
    data[dice.below(data.len() as u64) as usize]["id"]
        .as_i64()
        .unwrap()
}

fn any_folder(client: &Client, dice: &mut Dice) -> Option<i64> {
    let folders = client.get("/folders?parent_id=all").ok();
    let shared = |folder: &&Value| folder["name"].as_str().unwrap().starts_with("folder");
    let shared: Vec<&Value> = folders["data"]
        .as_array()
        .unwrap()
        .iter()
        .filter(shared)
        .collect();
    let at = dice.below(shared.len() as u64 + 1) as usize;
    shared.get(at).map(|folder| folder["id"].as_i64().unwrap())
}

/// Checks an answer about an image: another client may have deleted it, unless it is in `kept`.
#[track_caller]
fn allow(answer: &Answer, id: i64, scene: &Scene) {
    let there = scene.kept.contains(&id);
    one_of(answer, if there { &[200] } else { &[200, 404] });
}

#[track_caller]
fn one_of(answer: &Answer, allowed: &[u16]) {
    assert!(
        allowed.contains(&answer.status),
        "{}: {}",
        answer.status,
        answer.text()
    );
}

/// Returns all images as (id, name), and checks that all counts of them agree.
fn check_totals(client: &Client) -> BTreeMap<i64, String> {
    let mut listed = BTreeMap::new();
    let mut total = 1;
    for page in 1.. {
        let answer = client
            .get(&format!("/images?per_page=50&sort_by=name&page={page}"))
            .ok();
        total = answer["pagination"]["total_items"].as_u64().unwrap();
        let data = answer["data"].as_array().unwrap();
        for image in data {
            let name = image["name"].as_str().unwrap().to_owned();
            assert_eq!(listed.insert(image["id"].as_i64().unwrap(), name), None);
        }
        if data.is_empty() {
            break;
        }
    }
    assert_eq!(total, listed.len() as u64);
    let count = |query: &str| {
        let page = client.get(&format!("/images?{query}")).ok();
        page["pagination"]["total_items"].as_u64().unwrap()
    };
    let mut held = count("folder_id=root");
    for folder in client.get("/folders?parent_id=all").ok()["data"]
        .as_array()
        .unwrap()
    {
        let inside = count(&format!("folder_id={}", folder["id"]));
        assert_eq!(folder["image_count"], inside, "{folder}");
        held += inside;
    }
    assert_eq!(held, total, "the folders' counts do not add up");
    assert_eq!(
        (0..12)
            .chain([99])
            .map(|g| count(&format!("hue_group={g}")))
            .sum::<u64>(),
        total
    );
    listed
}

/// Checks that every row has its file with the right content, and that every file has a row.
fn check_agreement(daemon: &TestDaemon, scene: &Scene, listed: &BTreeMap<i64, String>) {
    let store = Store::open(&daemon.database()).unwrap();
    let rows: Vec<(i64, PathBuf, Checksum)> = store
        .read(images::files)
        .map_err(|error: store::Error| error)
        .unwrap();
    assert_eq!(
        rows.iter().map(|(id, ..)| *id).collect::<BTreeSet<_>>(),
        listed.keys().copied().collect()
    );
    let owned: BTreeSet<PathBuf> = rows.iter().map(|(_, path, _)| path.clone()).collect();
    let files: BTreeSet<PathBuf> = fs::read_dir(daemon.images())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(files, owned);
    for (id, path, checksum) in &rows {
        let content: Checksum = Sha256::digest(fs::read(path).unwrap()).into();
        assert_eq!(
            content,
            *checksum,
            "image {id} has another's file: {}",
            path.display()
        );
        assert_eq!(path.file_stem().unwrap().to_str().unwrap(), listed[id]);
    }
    assert!(scene.kept.iter().all(|id| listed.contains_key(id)));
    assert!(store.read(pending_files::list).unwrap().is_empty());
    assert!(store.read(edits::renames).unwrap().is_empty());
}

/// Makes small pictures of three formats, all different.
fn sources(directory: &Path) -> Vec<PathBuf> {
    pictures(directory, PICTURES)
}

fn pictures(directory: &Path, count: u64) -> Vec<PathBuf> {
    fs::create_dir(directory).unwrap();
    (0..count)
        .map(|number| {
            let mut dice = Dice(number + 1000);
            let ground = dice.below(256) as u8;
            let picture = image::RgbImage::from_fn(80, 60, |x, y| {
                image::Rgb([ground, (x as u8).wrapping_mul(number as u8), y as u8])
            });
            let extension = ["png", "jpg", "bmp"][number as usize % 3];
            let path = directory.join(format!("{number}.{extension}"));
            picture.save(&path).unwrap();
            path
        })
        .collect()
}
