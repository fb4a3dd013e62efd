//! Tests a panic on a backend's thread, with the real reconciler and the real swaybg: only the request
//! in progress fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crossbeam_channel::bounded;
use murald::internals::backends::Backends;
use murald::internals::config::BackendName;
use murald::internals::desktop;
use murald::internals::events::{EventBus, EventFilter, Subscription};
use murald::internals::http;
use murald::internals::store::{Store, images};
use murald::internals::thread::{Deaths, Spawner};
use murald::internals::wallpaper::{self, Applied, Ask, Error, ReconcilerOwner, Request, Targets};
use murald::internals::wire::{EventKind, Format, Source};
use serde_json::json;

use crate::desktop::Desktop;
use crate::wall::{BLUE, GREEN, RED, Wall};

/// The time limit for everything that must happen.
const PATIENCE: Duration = Duration::from_secs(60);

struct Bench {
    // Dropped before the wall.
    _owner: ReconcilerOwner,
    wallpaper: wallpaper::Handle,
    /// How often swaybg's thread still has to panic.
    panics: Arc<AtomicUsize>,
    told: Subscription,
    deaths: Deaths,
    store: Store,
    wall: Wall,
}

impl Bench {
    fn new() -> Self {
        let wall = Wall::new(Desktop::wayland(&["640x360"]), 1);
        let panics = Arc::new(AtomicUsize::new(0));
        let backends = spoiled(&wall.backends, Arc::clone(&panics));
        let (spawner, deaths) = Spawner::new();
        let (bus, store) = (
            EventBus::new(),
            Store::open(&wall.dir.path().join("murald.sqlite3")).unwrap(),
        );
        let told = bus.subscribe(
            EventFilter::from_iter([EventKind::BackendUnavailable]),
            || (),
        );
        let desktop = desktop::Handle::default();
        let (wallpaper, owner) = wallpaper::start(
            &spawner,
            store.clone(),
            bus,
            backends,
            desktop,
            Box::new(|_, _| ()),
        )
        .unwrap();
        Self {
            _owner: owner,
            wallpaper,
            panics,
            told,
            deaths,
            store,
            wall,
        }
    }

    fn picture(&self, name: &str, color: [u8; 3]) -> i64 {
        let path = self.wall.flat(name, color);
        // The checksums only have to differ.
        let mut checksum = [0; 32];
        checksum[..3].copy_from_slice(&color);
        let image = images::NewImage {
            name: name.to_owned(),
            path: path.clone(),
            format: Format::Png,
            width: 64,
            height: 36,
            duration: 0.0,
            animated: false,
            audio_enabled: false,
            file_size: 1,
            checksum,
            colors: Vec::new(),
            hue_group: 0,
            folder_id: None,
            source_path: path,
            in_place: false,
            web: None,
        };
        self.store.write(|c| images::insert(c, &image)).unwrap()
    }

    fn set(&self, image: i64) -> Result<Applied, Error> {
        let request = Request::new(Ask::Image(image), Targets::All, Source::Manual);
        let (answer, answered) = bounded(1);
        self.wallpaper.set(
            request,
            Box::new(move |result| answer.send(result).unwrap()),
        );
        answered.recv_timeout(PATIENCE).expect("an answer")
    }

    #[track_caller]
    fn fails(&self, image: i64, why: &str) {
        let failure = self.set(image).unwrap_err();
        let Error::Backend {
            backend: BackendName::Swaybg,
            source,
        } = &failure
        else {
            panic!("{failure}")
        };
        assert!(source.to_string().contains(why), "{source}");
        assert_eq!(http::Error::from(failure).status(), 500);
    }
}

/// Backends whose settings panic on swaybg's thread as often as the number says.
fn spoiled(backends: &Backends, panics: Arc<AtomicUsize>) -> Backends {
    let settings = Arc::clone(&backends.settings);
    let read = move || {
        let is_its = thread::current().name() == Some("swaybg");
        let left = |left: usize| left.checked_sub(1);
        if is_its
            && panics
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, left)
                .is_ok()
        {
            panic!("on purpose");
        }
        settings()
    };
    Backends {
        settings: Arc::new(read),
        ..backends.clone()
    }
}

#[test]
fn panic_of_a_backend_thread_fails_one_request_and_the_fourth_in_a_minute_disables_it() {
    let bench = Bench::new();
    let pictures = [("red.png", RED), ("green.png", GREEN), ("blue.png", BLUE)];
    let [red, green, blue] = pictures.map(|(name, color)| bench.picture(name, color));
    let settings = json!({ "type": "swaybg", "swaybg": { "fit_mode": "stretch" } });
    bench.wall.patch(json!({ "backend": settings }));
    bench.set(red).unwrap();
    bench.panics.store(1, Ordering::SeqCst);
    bench.fails(green, "internal error");
    bench.wall.pixels("HEADLESS-1").is_all(RED);
    // Another thread has adopted what the last one showed.
    bench.set(green).unwrap();
    bench.wall.pixels("HEADLESS-1").is_all(GREEN);
    assert_eq!(bench.wall.processes("swaybg").len(), 1);

    bench.panics.store(usize::MAX, Ordering::SeqCst);
    bench.fails(blue, "internal error");
    // It is restarted until it has failed too often.
    let is_given_up = || {
        let event = bench
            .told
            .receiver()
            .recv_timeout(PATIENCE)
            .expect("it is given up");
        event.json.contains("keeps failing")
    };
    while !is_given_up() {}
    // Only a request starts another thread.
    bench.fails(blue, "internal error");
    bench.wall.pixels("HEADLESS-1").is_all(GREEN);
    assert!(
        bench.deaths.is_empty(),
        "{:?} died",
        bench.deaths.try_recv()
    );
}
