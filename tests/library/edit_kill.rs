//! Kills (`kill -9`) the library at random instants of renames, moves and deletions. After the next
//! start rows and files must agree, every picture must have its own content, and no picture that was
//! only renamed may be lost. It tests the library alone, without the daemon.
//!
//! The victim is this same test program, started again with `MURALD_VICTIM` set.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use murald::internals::events::{EventBus, EventFilter};
use murald::internals::kernel::Kernel;
use murald::internals::library::{self, Library, Running, Settings};
use murald::internals::store::images::{self, Checksum};
use murald::internals::store::{self, Store, edits, pending_files};
use murald::internals::thread::{Deaths, Spawner};
use murald::internals::transcode;
use murald::internals::wire::{DeleteImages, EventKind, Image};
use sha2::{Digest, Sha256};

use crate::desktop::wait_until;
use crate::import_kill::{bmp, decoder};
use crate::support::dice::Dice;
use crate::support::kills::{self, kills, victim as victim_of};

/// Number of pictures that are renamed and moved; each has a tag of its own.
const KEPT: u32 = 8;
/// Number of pictures that are deleted and imported again.
const PREY: u32 = 4;
const NAMES: u64 = 6;
const PATIENCE: Duration = Duration::from_secs(60);

/// Renames, moves and deletes until it is killed; not a test by itself.
#[test]
fn victim() {
    if let Some(directory) = std::env::var_os("MURALD_VICTIM") {
        let directory = Path::new(&directory);
        let daemon = TestDaemon::start(directory);
        let seed = std::env::var("MURALD_ROUND").unwrap().parse().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| rename_for_ever(&daemon, directory, seed));
            scope.spawn(|| rename_for_ever(&daemon, directory, seed + 1_000_000));
            delete_for_ever(&daemon, directory);
        });
    }
}

#[test]
fn kill_loses_no_picture_that_is_renamed_or_moved() {
    let directory = tempfile::tempdir().unwrap();
    let kept = prepare(directory.path());
    kills(|round| {
        kill_at(directory.path(), round);
        check(directory.path(), &kept, round)
    });
}

/// Imports the pictures. Returns the tags and checksum of each that must survive, by id.
fn prepare(directory: &Path) -> BTreeMap<i64, (Vec<String>, Checksum)> {
    let source = directory.join("source");
    fs::create_dir(&source).unwrap();
    (0..KEPT + PREY)
        .for_each(|number| fs::write(source.join(format!("{number}.bmp")), bmp(number)).unwrap());
    let daemon = TestDaemon::start(directory);
    daemon.import(vec![source]);
    for image in daemon.images() {
        let tags = Some(vec![format!("tag {}", image.name)]);
        let change = edits::ImageChange {
            tags: tags.map(Into::into),
            ..Default::default()
        };
        daemon.library.edit(image.id, None, &change).unwrap();
    }
    let kept = daemon.images().into_iter().filter(is_kept);
    kept.map(|image| (image.id, (image.tags, image.checksum)))
        .collect()
}

fn is_kept(image: &Image) -> bool {
    let number = image
        .source_path
        .file_stem()
        .unwrap()
        .to_str()
        .unwrap()
        .parse::<u32>();
    number.unwrap() < KEPT
}

fn kill_at(directory: &Path, round: u32) {
    let begun = directory.join("begun");
    fs::remove_file(&begun).ok();
    let mut victim = victim_of("edit_kill::victim", directory);
    let mut child = victim
        .env("MURALD_ROUND", round.to_string())
        .spawn()
        .unwrap();
    wait_until("the victim's first round", || begun.exists());
    // A random instant, so nothing can be waited for.
    std::thread::sleep(kills::instant(round, Duration::from_millis(30)));
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Opens the library as the daemon does at its start, and checks it. Returns whether there was work to
/// finish.
fn check(directory: &Path, kept: &BTreeMap<i64, (Vec<String>, Checksum)>, round: u32) -> bool {
    let store = Store::open(&directory.join("db/murald.sqlite3")).unwrap();
    let notes = |store: &Store| {
        let renames = store.read(edits::renames).unwrap().len();
        renames + store.read(pending_files::list).unwrap().len()
    };
    let repaired = notes(&store) > 0;
    drop(store);
    let daemon = TestDaemon::start(directory);
    daemon.reconciled();
    // An empty batch ends after the adoption of files without rows.
    daemon.import(Vec::new());
    let rows = daemon.images();
    let owned: BTreeSet<PathBuf> = rows.iter().map(|image| image.path.clone()).collect();
    let files = fs::read_dir(directory.join("images")).unwrap();
    let files: BTreeSet<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files, owned, "round {round}");
    for image in &rows {
        let content: Checksum = Sha256::digest(fs::read(&image.path).unwrap()).into();
        assert_eq!(image.checksum, content, "round {round}: {}", image.name);
        assert_eq!(
            image.path.file_stem().unwrap().to_str().unwrap(),
            image.name
        );
    }
    let now: BTreeMap<i64, _> = rows
        .into_iter()
        .filter(is_kept)
        .map(|i| (i.id, i))
        .collect();
    for (id, (tags, checksum)) in kept {
        let image = now
            .get(id)
            .unwrap_or_else(|| panic!("round {round}: image {id} is lost"));
        assert_eq!(
            (&image.tags, &image.checksum),
            (tags, checksum),
            "round {round}"
        );
    }
    assert_eq!(notes(&daemon.store), 0, "round {round}");
    repaired
}

fn rename_for_ever(daemon: &TestDaemon, directory: &Path, seed: u64) {
    let mut dice = Dice(seed);
    let kept: Vec<Image> = daemon.images().into_iter().filter(is_kept).collect();
    loop {
        let image = &kept[dice.below(u64::from(KEPT)) as usize];
        let name = format!("name {}", dice.below(NAMES));
        let folder = daemon
            .library
            .create_folder(&format!("{}", dice.0), None)
            .unwrap();
        let change = edits::ImageChange {
            folder_id: Some(Some(folder.id)),
            ..Default::default()
        };
        daemon.library.edit(image.id, Some(&name), &change).unwrap();
        daemon.library.move_images(&[image.id], None).unwrap();
        daemon.library.dissolve_folder(folder.id).unwrap();
        fs::write(directory.join("begun"), "").unwrap();
    }
}

fn delete_for_ever(daemon: &TestDaemon, directory: &Path) {
    loop {
        let prey = daemon.images().into_iter().filter(|image| !is_kept(image));
        let ids = prey.map(|image| image.id).collect();
        daemon
            .library
            .delete(&DeleteImages {
                ids,
                ..DeleteImages::default()
            })
            .unwrap();
        daemon.import(vec![directory.join("source")]);
    }
}

struct TestDaemon {
    library: Library,
    store: Store,
    bus: EventBus,
    running: Running,
    _transcoder: transcode::Threads,
    _deaths: Deaths,
}

impl TestDaemon {
    fn start(directory: &Path) -> Self {
        let (spawner, deaths) = Spawner::new();
        let settings = Settings {
            images_dir: directory.join("images"),
            thumbnails_dir: directory.join("thumbnails"),
            workers: 2,
            video_audio: Arc::new(|| false),
            decoder: decoder(directory, &spawner),
        };
        let store = Store::open(&directory.join("db/murald.sqlite3")).unwrap();
        let bus = EventBus::new();
        let (transcoder, threads) = transcode::start(&spawner, Default::default()).unwrap();
        let kernel = Kernel::start(&spawner).unwrap();
        let (library, running) = library::start(
            &settings,
            store.clone(),
            bus.clone(),
            transcoder,
            &kernel,
            &spawner,
        )
        .unwrap();
        Self {
            library,
            store,
            bus,
            running,
            _transcoder: threads,
            _deaths: deaths,
        }
    }

    fn reconciled(&self) {
        wait_until("the library is reconciled", || self.running.is_reconciled());
    }

    fn import(&self, paths: Vec<PathBuf>) {
        let events = self.bus.subscribe(
            EventFilter::from_iter([EventKind::ProcessingComplete]),
            || (),
        );
        self.library.import(paths, None).unwrap();
        events.receiver().recv_timeout(PATIENCE).unwrap();
    }

    fn images(&self) -> Vec<Image> {
        let all = self.store.read(images::ids).unwrap();
        let ids: Vec<i64> = all.into_iter().map(|(id, ..)| id).collect();
        self.store
            .read(|c| images::by_ids(c, &ids))
            .map_err(|e: store::Error| e)
            .unwrap()
    }
}
