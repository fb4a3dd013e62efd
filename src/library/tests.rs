//! Tests the library from its handle to the disk, with real threads and files.

use std::collections::BTreeSet;
use std::fs;
use std::io::Cursor;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, unbounded};
use image::{DynamicImage, ImageBuffer, ImageFormat, Rgb};
use serde_json::Value;

use super::*;
use crate::decode::Decoder;
use crate::digest;
use crate::events::EventFilter;
use crate::kernel::Kernel;
use crate::store::{self, images, pending_files};
use crate::thread::join_all;
use crate::transcode;
use crate::wire::{DeleteImages, Image, Resolution};

mod hazards;
mod landing;
mod packages;
mod restore_file;
mod start;
mod thumbs;

const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Scene {
    directory: tempfile::TempDir,
    store: Store,
    pub(super) bus: EventBus,
}

pub(super) struct Alive {
    library: Library,
    events: Receiver<Value>,
    running: Option<Running>,
    _threads: transcode::Threads,
    _deaths: crate::thread::Deaths,
}

impl Scene {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("source")).unwrap();
        let store = Store::open(&directory.path().join("db/murald.sqlite3")).unwrap();
        Self {
            directory,
            store,
            bus: EventBus::new(),
        }
    }

    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(super) fn start(&self) -> Alive {
        self.start_with(&self.at("thumbnails"))
    }

    fn start_with(&self, thumbnails: &Path) -> Alive {
        let (sender, events) = unbounded();
        let subscription = self.bus.subscribe(EventFilter::ALL, || ());
        std::thread::spawn(move || {
            for message in subscription.receiver() {
                let mut event: Value = serde_json::from_str(&message.json).unwrap();
                event["event"] = message.kind.as_str().into();
                assert_eq!(message.lost, 0);
                if sender.send(event).is_err() {
                    return;
                }
            }
        });
        let (spawner, deaths) = Spawner::new();
        let settings = Settings {
            images_dir: self.at("images"),
            thumbnails_dir: thumbnails.to_owned(),
            workers: 3,
            video_audio: Arc::new(|| false),
            decoder: Decoder::start(Default::default(), &spawner).unwrap(),
        };
        let (transcoder, threads) = transcode::start(&spawner, Default::default()).unwrap();
        let (library, running) = start(
            &settings,
            self.store.clone(),
            self.bus.clone(),
            transcoder,
            &Kernel::start(&spawner).unwrap(),
            &spawner,
        )
        .unwrap();
        Alive {
            library,
            events,
            running: Some(running),
            _threads: threads,
            _deaths: deaths,
        }
    }

    pub(super) fn source(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.at("source").join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    fn images(&self) -> Vec<Image> {
        let mut images = self.store.read(|c| images::after(c, 0, 1000)).unwrap();
        images.sort_by(|one, other| one.name.cmp(&other.name));
        images
    }

    /// Checks that files and rows agree; nothing may be running.
    fn check_agreement(&self) {
        let names = |directory: &str| {
            let listed = fs::read_dir(self.at(directory)).unwrap();
            listed
                .map(|e| e.unwrap().file_name().into_string().unwrap())
                .collect::<BTreeSet<_>>()
        };
        let images = self.images();
        let file = |image: &Image| image.path.file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(names("images"), images.iter().map(file).collect());
        let thumbnail = |image: &Image| format!("{}.webp", digest::hex(&image.checksum));
        assert_eq!(
            names("thumbnails/default"),
            images.iter().map(thumbnail).collect()
        );
        assert!(self.store.read(pending_files::list).unwrap().is_empty());
    }
}

impl Alive {
    pub(super) fn context(&self) -> &Arc<ImportContext> {
        &self.library.context
    }

    pub(super) fn owner(&self) -> Owner {
        self.library.owner.clone()
    }

    fn next(&self) -> Value {
        self.events.recv_timeout(PATIENCE).expect("an event")
    }

    /// Waits until rows and files were compared.
    pub(super) fn reconciled(&self) {
        let deadline = Instant::now() + PATIENCE;
        let running = self.running.as_ref().unwrap();
        while !running.is_reconciled() {
            assert!(Instant::now() < deadline, "it does not end");
            std::thread::yield_now();
        }
    }

    /// The events up to the end of a batch.
    fn batch(&self, id: &str) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            let event = self.next();
            let kind = event["event"].as_str().unwrap().to_owned();
            assert!(
                kind == "gallery_changed" || event["batch_id"] == id,
                "{event}"
            );
            events.push(event);
            if kind == "processing_complete" || kind == "processing_cancelled" {
                return events;
            }
        }
    }

    pub(super) fn end(&mut self) {
        let late = join_all(
            self.running.take().unwrap().end(),
            Instant::now() + PATIENCE,
        );
        assert!(late.is_empty(), "{late:?}");
    }
}

pub(super) fn png(seed: u8) -> Vec<u8> {
    let picture = ImageBuffer::from_fn(64, 48, |x, y| Rgb([seed, x as u8, y as u8]));
    let mut bytes = Cursor::new(Vec::new());
    DynamicImage::ImageRgb8(picture)
        .write_to(&mut bytes, ImageFormat::Png)
        .unwrap();
    bytes.into_inner()
}

/// A picture that takes a while to decode.
fn wide(width: u32) -> Vec<u8> {
    let picture = ImageBuffer::from_fn(width, 800, |x, y| Rgb([x as u8, y as u8, (x * y) as u8]));
    let mut bytes = Cursor::new(Vec::new());
    DynamicImage::ImageRgb8(picture)
        .write_to(&mut bytes, ImageFormat::Png)
        .unwrap();
    bytes.into_inner()
}

fn of<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events
        .iter()
        .filter(|event| event["event"] == kind)
        .collect()
}

#[test]
fn batch_reports_each_file_and_leaves_no_stray_files() {
    let scene = Scene::new();
    let mut alive = scene.start();
    let good = scene.source("photo.png", png(1));
    scene.source("second.jpg", png(2));
    scene.source("cut.png", &png(3)[..200]);
    scene.source("empty.png", "");
    scene.source("notes.txt", "no picture");
    scene.source("film.mkv", b"\x1a\x45\xdf\xa3 matroska");
    fs::create_dir(scene.at("source/dir.png")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, scene.at("source/pipe.png"), 0o600.into()).unwrap();
    let bad = scene
        .at("source")
        .join(Path::new(std::ffi::OsStr::from_bytes(b"\xff.png")));
    fs::write(bad, png(4)).unwrap();
    let locked = scene.source("locked.png", png(5));
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).unwrap();
    // Root reads everything.
    let unreadable = usize::from(fs::File::open(&locked).is_err());

    let started = alive
        .library
        .import(vec![scene.at("source")], None)
        .unwrap();
    assert_eq!(started.total, 10);
    let events = alive.batch(&started.batch_id);
    assert_eq!(events[0]["event"], "processing_started");
    let errors = of(&events, "image_error");
    assert_eq!(errors.len(), 7 + unreadable);
    let reason = |name: &str| {
        let path = |event: &&&Value| event["path"].as_str().unwrap().ends_with(name);
        errors.iter().find(path).unwrap()["error"].as_str().unwrap()
    };
    assert_eq!(reason("cut.png"), "the PNG is truncated");
    assert_eq!(reason("empty.png"), "the file is empty");
    assert_eq!(reason("notes.txt"), "not a supported image or video");
    let video = if transcode::is_available() {
        "ffprobe failed: "
    } else {
        "Matroska files need the transcoder (ffmpeg and ffprobe)"
    };
    assert!(
        reason("film.mkv").starts_with(video),
        "{}",
        reason("film.mkv")
    );
    assert_eq!(reason("dir.png"), "it is an empty directory, not a picture");
    assert_eq!(reason("pipe.png"), "it is neither a file nor a directory");
    assert_eq!(reason("\u{fffd}.png"), "its name is not valid UTF-8");
    let done = of(&events, "image_processed");
    let current: Vec<_> = events
        .iter()
        .filter_map(|event| event["current"].as_u64())
        .collect();
    assert_eq!(current, (1..=10).collect::<Vec<_>>());
    let record = &done.iter().find(|e| e["image"]["name"] == "photo").unwrap()["image"];
    assert_eq!(record["source_path"], good.to_str().unwrap());
    assert!(Path::new(record["thumbnails"]["default"].as_str().unwrap()).is_file());
    assert_eq!(
        (&record["width"], &record["height"]),
        (&64.into(), &48.into())
    );
    assert!(!record["colors"].as_array().unwrap().is_empty());
    // A wrong extension is corrected.
    assert!(done.iter().any(|e| {
        e["image"]["path"]
            .as_str()
            .unwrap()
            .ends_with("/second.png")
    }));
    let last = events.last().unwrap();
    // One event for the batch, and at most one more for each second that it ran.
    let seconds = last["elapsed_ms"].as_u64().unwrap() / 1000;
    let told = of(&events, "gallery_changed").len() as u64;
    assert!((1..=1 + seconds).contains(&told), "{told} in {seconds} s");
    assert_eq!(
        (&last["succeeded"], &last["total"]),
        (&done.len().into(), &10.into())
    );
    alive.end();
    scene.check_agreement();
}

#[test]
fn equal_content_is_imported_once_and_equal_names_are_numbered() {
    let scene = Scene::new();
    let mut alive = scene.start();
    let mut paths = Vec::new();
    for number in 0..12 {
        fs::create_dir(scene.at(&format!("source/{number}"))).unwrap();
        // Four pictures, three times each, all of one name.
        paths.push(scene.source(&format!("{number}/same.png"), png(number % 4)));
    }
    let started = alive.library.import(paths.clone(), None).unwrap();
    let events = alive.batch(&started.batch_id);
    let done = of(&events, "image_processed");
    assert_eq!(done.len(), 12);
    assert_eq!(
        done.iter()
            .filter(|event| event["duplicate"] == true)
            .count(),
        8
    );
    let names: Vec<_> = scene.images().into_iter().map(|image| image.name).collect();
    assert_eq!(names.len(), 4);
    assert!(
        names
            .iter()
            .all(|name| name == "same" || name.starts_with("same_")),
        "{names:?}"
    );
    // Another import changes nothing and publishes no change.
    let again = alive.library.import(paths, None).unwrap();
    let events = alive.batch(&again.batch_id);
    assert_eq!(of(&events, "image_processed").len(), 12);
    assert!(of(&events, "gallery_changed").is_empty());
    alive.end();
    scene.check_agreement();
}

#[test]
fn missing_file_is_restored_by_another_import() {
    let scene = Scene::new();
    let mut alive = scene.start();
    let source = scene.source("a.png", png(1));
    let import = || {
        let started = alive.library.import(vec![source.clone()], None).unwrap();
        of(&alive.batch(&started.batch_id), "image_processed")[0]["image"]["id"].clone()
    };
    let id = import();
    let path = scene.images()[0].path.clone();
    fs::remove_file(&path).unwrap();
    assert_eq!(import(), id);
    assert_eq!(fs::read(&path).unwrap(), fs::read(&source).unwrap());
    alive.end();
    scene.check_agreement();
}

#[test]
fn batches_queue_and_are_cancelled_or_refused() {
    let scene = Scene::new();
    let mut alive = scene.start();
    // Enough work to last longer than all these requests.
    let picture = wide(2000);
    let paths: Vec<_> = (0..40)
        .map(|n| scene.source(&format!("{n}.png"), [&picture[..], &[n]].concat()))
        .collect();
    let first = alive.library.import(paths.clone(), None).unwrap();
    let rest: Vec<_> = (1..import::BATCHES_MAX)
        .map(|_| alive.library.import(paths.clone(), None).unwrap())
        .collect();
    assert!(matches!(
        alive.library.import(paths, None),
        Err(Error::Busy)
    ));
    // A waiting batch ends at once, the running one after the files in progress.
    alive.library.cancel(&rest[2].batch_id).unwrap();
    alive.library.cancel(&first.batch_id).unwrap();
    assert!(matches!(
        alive.library.cancel("nonsense"),
        Err(Error::NoBatch(_))
    ));
    let waiting = loop {
        let event = alive.next();
        if event["batch_id"] == rest[2].batch_id.as_str() {
            break event;
        }
    };
    assert_eq!(
        (waiting["event"].as_str(), &waiting["succeeded"]),
        (Some("processing_cancelled"), &0.into())
    );
    let events = alive.batch(&first.batch_id);
    let last = events.last().unwrap();
    assert_eq!(last["event"], "processing_cancelled");
    assert!(
        last["succeeded"].as_u64().unwrap() < 40 && last["failed"] == 0,
        "{last}"
    );
    assert!(
        of(&events, "image_error").is_empty(),
        "what was in hand has no event"
    );
    assert!(matches!(
        alive.library.cancel(&first.batch_id),
        Err(Error::NoBatch(_))
    ));
    alive.end();
    scene.check_agreement();
}

#[test]
fn deleting_images_removes_rows_files_and_thumbnails() {
    let scene = Scene::new();
    let mut alive = scene.start();
    let paths = (0..3)
        .map(|n| scene.source(&format!("{n}.png"), png(n)))
        .collect();
    let started = alive.library.import(paths, None).unwrap();
    alive.batch(&started.batch_id);
    let ids: Vec<_> = scene.images().iter().map(|image| image.id).collect();
    let gone = |ids: &[i64]| DeleteImages {
        ids: ids.to_vec(),
        ..DeleteImages::default()
    };
    assert_eq!(
        alive
            .library
            .delete(&gone(&[ids[0], ids[1], 999]))
            .unwrap()
            .images,
        2
    );
    assert_eq!(alive.next()["event"], "gallery_changed");
    assert_eq!(alive.library.delete(&gone(&ids[..1])).unwrap().images, 0);
    alive.end();
    assert_eq!(scene.images().len(), 1);
    scene.check_agreement();
}

#[test]
fn missing_thumbnail_is_made_again() {
    let scene = Scene::new();
    let mut alive = scene.start();
    let path = scene.source("a.png", png(9));
    let started = alive.library.import(vec![path], None).unwrap();
    alive.batch(&started.batch_id);
    let image = scene.images().remove(0);
    fs::remove_dir_all(scene.at("thumbnails")).unwrap();
    assert!(
        alive
            .library
            .thumbnails()
            .present(&image, Resolution::Default)
            .is_none()
    );
    let library = &alive.library;
    let picture = &image;
    let made: Vec<_> = std::thread::scope(|scope| {
        let ask = || library.thumbnail(picture, Resolution::P1080).unwrap();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    // 64 × 48 fits the smallest frame: one file serves every size.
    let file = made[0].clone();
    assert!(file.starts_with(scene.at("thumbnails/default")));
    assert!(made.iter().all(|path| *path == file));
    for &size in Resolution::ALL {
        assert_eq!(
            alive.library.thumbnails().present(&image, size).as_ref(),
            Some(&file)
        );
    }
    fs::remove_file(&file).unwrap();
    fs::remove_file(&image.path).unwrap();
    assert!(
        alive
            .library
            .thumbnail(&image, Resolution::Default)
            .is_err()
    );
    alive.end();
}
