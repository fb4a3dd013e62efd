//! Kills (`kill -9`) the library at random instants of an import. Afterwards rows and files must agree,
//! and the import can be repeated. It tests the library alone, without the daemon.
//!
//! The victim is this same test program, started again with `MURALD_VICTIM` set.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use murald::internals::decode::{self, Decoder};
use murald::internals::digest;
use murald::internals::events::{EventBus, EventFilter};
use murald::internals::kernel::Kernel;
use murald::internals::library::{self, Settings};
use murald::internals::store::images;
use murald::internals::store::{self, Store, pending_files};
use murald::internals::thread::Spawner;
use murald::internals::transcode;
use murald::internals::wire::{EventKind, Image};

use crate::desktop::wait_until;
use crate::support::kills::{self, kills, victim as victim_of};

const PICTURES: u32 = 40;

/// Imports until it is killed; not a test by itself.
#[test]
fn victim() {
    if let Some(directory) = std::env::var_os("MURALD_VICTIM") {
        import(Path::new(&directory));
    }
}

#[test]
fn rows_and_files_agree_after_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("source");
    fs::create_dir(&source).unwrap();
    (0..PICTURES)
        .for_each(|number| fs::write(source.join(format!("{number}.bmp")), bmp(number)).unwrap());
    kills(|round| {
        reset(directory.path());
        kill_at(directory.path(), round);
        let imported = check(directory.path(), round);
        if round % 10 == 0 {
            import(directory.path());
            assert_eq!(
                check(directory.path(), round),
                PICTURES as usize,
                "round {round}: again"
            );
        }
        imported < PICTURES as usize
    });
}

fn reset(directory: &Path) {
    for name in ["images", "thumbnails", "db"] {
        let path = directory.join(name);
        if path.exists() {
            fs::remove_dir_all(path).unwrap();
        }
    }
}

/// Kills the victim at some instant of its import.
fn kill_at(directory: &Path, round: u32) {
    let mut child = victim_of("import_kill::victim", directory).spawn().unwrap();
    let begun = (kills::part(round) * f64::from(PICTURES)) as usize;
    wait_until("the victim's files", || {
        files(&directory.join("images")).len() >= begun
    });
    // A random instant, so nothing can be waited for.
    std::thread::sleep(kills::instant(round * 7, Duration::from_millis(4)));
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Opens the library as the daemon does at its start, checks it, and returns the number of pictures.
fn check(directory: &Path, round: u32) -> usize {
    let store = Store::open(&directory.join("db/murald.sqlite3")).unwrap();
    let (spawner, _deaths) = Spawner::new();
    let settings = settings(directory, &spawner);
    let bus = EventBus::new();
    let events = bus.subscribe(
        EventFilter::from_iter([EventKind::ProcessingComplete]),
        || (),
    );
    let (transcoder, _transcoder) = transcode::start(&spawner, Default::default()).unwrap();
    let kernel = Kernel::start(&spawner).unwrap();
    let (library, running) =
        library::start(&settings, store.clone(), bus, transcoder, &kernel, &spawner).unwrap();
    wait_until("the library is reconciled", || running.is_reconciled());
    // An empty batch ends after the adoption of files without rows.
    library.import(Vec::new(), None).unwrap();
    events
        .receiver()
        .recv_timeout(Duration::from_secs(60))
        .unwrap();
    drop(running);
    let images = rows(&store);
    let owned: BTreeSet<PathBuf> = images.iter().map(|image| image.path.clone()).collect();
    assert_eq!(files(&settings.images_dir), owned, "round {round}");
    let thumbnails = images.iter().map(|image| {
        let name = format!("{}.webp", digest::hex(&image.checksum));
        settings.thumbnails_dir.join("default").join(name)
    });
    assert_eq!(
        files(&settings.thumbnails_dir.join("default")),
        thumbnails.collect()
    );
    for image in &images {
        let size = fs::metadata(&image.path).unwrap().len();
        assert_eq!(size, image.file_size, "round {round}: {}", image.name);
        // The source shows that the image was imported, not adopted from the library's directory.
        let source = image.source_path.parent();
        assert_eq!(
            source,
            Some(&*directory.join("source")),
            "round {round}: {}",
            image.name
        );
    }
    let pending: Vec<PathBuf> = store
        .read(pending_files::list)
        .unwrap()
        .into_iter()
        .map(|note| note.path)
        .collect();
    assert!(pending.is_empty(), "round {round}: {pending:?}");
    images.len()
}

fn import(directory: &Path) {
    let store = Store::open(&directory.join("db/murald.sqlite3")).unwrap();
    let (spawner, _deaths) = Spawner::new();
    let bus = EventBus::new();
    let events = bus.subscribe(
        EventFilter::from_iter([EventKind::ProcessingComplete]),
        || (),
    );
    let (transcoder, _transcoder) = transcode::start(&spawner, Default::default()).unwrap();
    let kernel = Kernel::start(&spawner).unwrap();
    let (library, running) = library::start(
        &settings(directory, &spawner),
        store,
        bus,
        transcoder,
        &kernel,
        &spawner,
    )
    .unwrap();
    library
        .import(vec![directory.join("source")], None)
        .unwrap();
    events
        .receiver()
        .recv_timeout(Duration::from_secs(60))
        .unwrap();
    drop(running);
}

fn settings(directory: &Path, spawner: &Spawner) -> Settings {
    Settings {
        images_dir: directory.join("images"),
        thumbnails_dir: directory.join("thumbnails"),
        workers: 2,
        video_audio: Arc::new(|| false),
        decoder: decoder(directory, spawner),
    }
}

/// A decoder for a library in this directory.
pub fn decoder(directory: &Path, spawner: &Spawner) -> Decoder {
    let program = Some(env!("CARGO_BIN_EXE_murald").into());
    let writable = vec![directory.to_owned()];
    Decoder::start(
        decode::Settings {
            program,
            writable,
            imports: 2,
            silent_for: None,
        },
        spawner,
    )
    .unwrap()
}

fn rows(store: &Store) -> Vec<Image> {
    store
        .read(|c| images::after(c, 0, 1000))
        .map_err(|e: store::Error| e)
        .unwrap()
}

/// All files, temporary ones included.
fn files(directory: &Path) -> BTreeSet<PathBuf> {
    fs::read_dir(directory)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .collect()
}

/// A picture of 48 × 32 pixels that is different for each number.
pub fn bmp(number: u32) -> Vec<u8> {
    let (width, height) = (48_u32, 32_u32);
    let size = 54 + width * height * 3;
    let mut bytes = b"BM".to_vec();
    for field in [
        size,
        0,
        54,
        40,
        width,
        height,
        24 << 16 | 1,
        0,
        0,
        0,
        0,
        0,
        0,
    ] {
        bytes.extend(field.to_le_bytes());
    }
    bytes.extend((0..width * height).flat_map(|at| [at as u8, number as u8, (at / 7) as u8]));
    bytes
}
