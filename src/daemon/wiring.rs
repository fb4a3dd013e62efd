//! Builds the daemon: starts every module with the handles that it needs, in order, and subscribes
//! modules to changes of settings.
//!
//! Runs in the thread `main`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use crossbeam_channel::{Receiver, bounded};

use super::error::Error;
use super::options::Options;
use super::options::{DaemonPaths, lock_images, log_settings, wanted_compositor};
use super::pause::Pause;
use crate::backends::{Backends, RootPainter, Settings, Versions};
use crate::compositor;
use crate::config::{self, BackendName, ConfigHandle, Section, StillFiles};
use crate::decode::{self, Decoder};
use crate::desktop::{self, DesktopOwner};
use crate::error_chain::chain;
use crate::events::EventBus;
use crate::http::{Api, Limits, ListCache, Listening, ROUTES, Router, Server, Stop};
use crate::library::{self, Library, WatchSettings};
use crate::lock::{Lock, Socket};
use crate::logging::Log;
use crate::parallax::Parallax;
use crate::paths::{Dirs, Env};
use crate::playlist::{self, DaemonWallpapers, Place, PlayerOwner, Playlists};
use crate::process::{ProcessRecords, Reaper};
use crate::signals::{Signal, Signals};
use crate::store::{self, Store};
use crate::sys::{FOR_CLIENT, has_descriptors};
use crate::systemd;
use crate::thread::{Deaths, Spawner};
use crate::transcode::{self, Transcoder};
use crate::wallpaper::{self, ReconcilerOwner};

/// Stop requests and signals that wait for `main`; more are dropped.
const WAKES: usize = 8;

/// Everything that runs. Without `end`, fields are dropped in this order.
pub(crate) struct Daemon {
    pub(super) server: Server,
    /// None if the kernel refuses a watch: SIGHUP still reads the file again.
    pub(super) watch: Option<config::Watch>,
    pub(super) pause: Pause,
    pub(super) playlists: PlayerOwner,
    pub(super) parallax: Arc<Parallax>,
    pub(super) reconciler: ReconcilerOwner,
    pub(super) wallpaper: wallpaper::Handle,
    pub(super) desktop_owner: DesktopOwner,
    pub(super) desktop: desktop::Handle,
    pub(super) imports: library::Running,
    /// For the scan at SIGHUP.
    pub(super) library: Library,
    pub(super) transcoder: transcode::Threads,
    pub(super) decoder: Decoder,
    pub(super) outputs: compositor::Watch,
    pub(super) backends: Backends,
    pub(super) upkeep: store::Upkeep,
    pub(super) store: Store,
    pub(super) spawner: Spawner,
    pub(super) signals: Signals,
    pub(super) config: ConfigHandle,
    /// The path of the socket.
    pub(super) address: PathBuf,
    pub(super) log: Log,
    /// None if the service manager owns the socket.
    pub(super) socket: Option<Socket>,
    pub(super) locks: Vec<Lock>,
}

/// The first things to start: settings, paths, the lock and the log.
struct Ground {
    config: ConfigHandle,
    paths: DaemonPaths,
    lock: Lock,
    log: Log,
    spawner: Spawner,
    deaths: Deaths,
}

impl Ground {
    fn lay(options: &Options, env: &Env, dirs: &Dirs, bus: &EventBus) -> Result<Self, Error> {
        let config = open_config(options, dirs, bus)?;
        let settings = config.current();
        let paths = DaemonPaths::new(&settings.daemon, config.path(), dirs, options)?;
        let lock = Lock::take(&paths.socket, Some(&paths.socket)).map_err(Error::Lock)?;
        // Only now, so that an invalid file, or that of a running daemon, stays as it is.
        config.complete();
        let log_settings = log_settings(&settings.daemon, &paths, options, env);
        let mut log = Log::start(&log_settings, options.is_watched(env)).map_err(Error::Log)?;
        config.log_warnings();
        let (spawner, deaths) = Spawner::new();
        log.log_requests(&spawner).map_err(start("the log"))?;
        Ok(Self { config, paths, lock, log, spawner, deaths })
    }
}

/// The events that wake `main`.
pub(crate) struct Wakes {
    pub(super) signals: Receiver<Signal>,
    pub(super) stops: Receiver<Stop>,
    pub(super) deaths: Deaths,
}

impl Daemon {
    pub(crate) fn build(
        options: &Options,
        env: &Env,
        started: Instant,
    ) -> Result<(Self, Wakes), Error> {
        let dirs = Dirs::new(env.clone()).map_err(Error::Paths)?;
        let bus = EventBus::for_startup();
        let Ground { config, paths, lock, log, spawner, deaths } =
            Ground::lay(options, env, &dirs, &bus)?;
        let (signal, signals_come) = bounded(WAKES);
        let (stop, stops) = bounded(WAKES);
        // If the channel is full, `main` is about to read it.
        let signals = Signals::start(&spawner, move |came| {
            signal.try_send(came).ok();
        })
        .map_err(start("the signals"))?;
        // Daemons on different sockets must not share a library: they would remove each other's
        // unfinished files.
        let library_lock = Lock::take(&paths.database, Some(&paths.socket)).map_err(Error::Lock)?;
        let store = Store::open(&paths.database).map_err(Error::Store)?;
        let images_lock = lock_images(&paths.images, &store)?;
        // Clients can connect from now on; later threads share the remaining descriptors.
        let (listening, socket) = listen(env, &paths.socket)?;
        // Until the library has found out how many files are missing.
        store.keep_rows(true);
        let upkeep =
            store::Upkeep::start(&store, &spawner).map_err(start("the database's upkeep"))?;
        let wanted = wanted_compositor(&config.current());
        let outputs = compositor::Watch::start(&spawner, wanted, env)
            .map_err(start("the watch on the outputs"))?;
        let decoder = start_decoder(&paths, &dirs, &spawner)?;
        let backends = backends((&spawner, &decoder), &config, &outputs, &paths, dirs.clone())?;
        let (jobs, transcoder) = transcode::start(&spawner, transcode::Limits::default())
            .map_err(start("the transcoder"))?;
        let programs = (jobs, decoder.clone());
        let (library, imports) =
            start_library(&paths, &config, (&store, &bus), programs, &spawner)?;
        let (desktop, desktop_owner) =
            start_desktop(&library, &backends, (&store, &bus), (&config, &paths.socket), &spawner)?;
        let (wallpaper, reconciler) = wallpaper::start(
            &spawner,
            store.clone(),
            bus.clone(),
            backends.clone(),
            desktop.clone(),
        )
        .map_err(start("the reconciler"))?;
        let parallax =
            Arc::new(Parallax::new(spawner.clone(), backends.clone(), wallpaper.clone()));
        tell_changes(&config, &wallpaper, &parallax, &desktop);
        let shown = wallpaper.clone();
        library.on_rewritten(Box::new(move |image| shown.rewritten(image)));
        parallax.on_settings();
        let (playlists, player) =
            start_playlists(&wallpaper, &backends, (&store, &bus), &outputs, &spawner)?;
        let pause = Pause::by_settings(&config, &playlists, &spawner, env);
        watch_directories(&config, &dirs, &library);
        let api = Api {
            events: bus,
            stop,
            started,
            config: config.clone(),
            store: store.clone(),
            backends: backends.clone(),
            wallpaper: wallpaper.clone(),
            playlists,
            library: library.clone(),
            desktop: desktop.clone(),
            paths: paths.info(config.path(), &dirs),
            dirs,
            lists: ListCache::default(),
        };
        let router = Router::new(api, ROUTES).sparing(|api| api.store.close_idle_readers());
        let server = Server::start(listening, &spawner, router, Limits::fitted())
            .map_err(start("the server"))?;
        let watch = watch_config(&config, &spawner);
        let wakes = Wakes { signals: signals_come, stops, deaths };
        let daemon = Self {
            server,
            watch,
            pause,
            playlists: player,
            parallax,
            reconciler,
            wallpaper,
            desktop_owner,
            desktop,
            imports,
            library,
            transcoder,
            decoder,
            outputs,
            backends,
            upkeep,
            store,
            spawner,
            signals,
            config,
            address: paths.socket,
            log,
            socket,
            locks: [lock, library_lock].into_iter().chain(images_lock).collect(),
        };
        Ok((daemon, wakes))
    }

    /// SIGHUP: the log is opened again, the configuration is read again, and a socket that was removed
    /// is bound again.
    pub(super) fn reload(&mut self) {
        self.log.reopen();
        if let Err(error) = self.bind_again() {
            log::error!("cannot listen on {} again: {}", self.address.display(), chain(&error));
        }
        self.config.reload();
        self.library.scan();
        log::info!("reopened the log and reloaded the configuration");
    }

    fn bind_again(&mut self) -> Result<(), Error> {
        if self.socket.as_ref().is_none_or(Socket::is_in_place) {
            return Ok(());
        }
        let (listener, socket) = Socket::bind(&self.address).map_err(Error::Lock)?;
        self.server.move_to(listener, &self.spawner).map_err(start("the server"))?;
        self.socket = Some(socket);
        log::info!("listening on {} again", self.address.display());
        Ok(())
    }
}

fn start(what: &'static str) -> impl Fn(io::Error) -> Error {
    move |source| Error::Start { what, source }
}

fn open_config(options: &Options, dirs: &Dirs, bus: &EventBus) -> Result<ConfigHandle, Error> {
    let path = options.config.clone().unwrap_or_else(|| dirs.config_file());
    ConfigHandle::read(path, bus.clone()).map_err(Error::Config)
}

/// None if the kernel refuses a watch, or if it would take the last descriptors from clients.
fn watch_config(config: &ConfigHandle, spawner: &Spawner) -> Option<config::Watch> {
    let watch = config::Watch::start(config.clone(), spawner);
    let failed = |error: &config::Error| {
        let cause = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
        config.is_unwatched(&format!("{error}: {cause}"));
    };
    let watch = watch.inspect_err(failed).ok()?;
    if !has_descriptors(FOR_CLIENT) {
        config.is_unwatched("cannot watch the configuration: too few file descriptors");
        return None;
    }
    Some(watch)
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Its processes write to the library, the caches and the files for other programs.
fn start_decoder(paths: &DaemonPaths, dirs: &Dirs, spawner: &Spawner) -> Result<Decoder, Error> {
    let (images, thumbnails) = (paths.images.clone(), paths.thumbnails.clone());
    let stills = dirs.state().join(desktop::STILLS);
    let writable = vec![images, thumbnails, dirs.cache(), stills, paths.backends.clone()];
    let settings = decode::Settings { program: None, writable, imports: processors() };
    Decoder::start(settings, spawner).map_err(start("the processes that decode"))
}

fn backends(
    (spawner, decoder): (&Spawner, &Decoder),
    config: &ConfigHandle,
    outputs: &compositor::Watch,
    paths: &DaemonPaths,
    dirs: Dirs,
) -> Result<Backends, Error> {
    let records = ProcessRecords::open(&paths.backends).map_err(Error::Process)?;
    let reaper = Reaper::start(spawner, &paths.backends).map_err(start("the reaper"))?;
    let config = config.clone();
    let settings: Settings = Arc::new(move || config.current());
    let (outputs, cache) = (outputs.outputs(), paths.cache.clone());
    Ok(Backends {
        settings,
        outputs,
        records,
        reaper,
        spawner: spawner.clone(),
        cache,
        decoder: decoder.clone(),
        dirs,
        versions: Versions::default(),
        own_program: None,
        root_painter: RootPainter::default(),
    })
}

fn start_library(
    paths: &DaemonPaths,
    config: &ConfigHandle,
    (store, bus): (&Store, &EventBus),
    (transcoder, decoder): (Transcoder, Decoder),
    spawner: &Spawner,
) -> Result<(Library, library::Running), Error> {
    let config = config.clone();
    let settings = library::Settings {
        video_audio: Arc::new(move || config.current().wal_qt.video_audio_default),
        images_dir: paths.images.clone(),
        thumbnails_dir: paths.thumbnails.clone(),
        workers: processors(),
        decoder,
    };
    library::start(&settings, store.clone(), bus.clone(), transcoder, spawner)
        .map_err(start("the imports"))
}

fn start_desktop(
    library: &Library,
    backends: &Backends,
    (store, bus): (&Store, &EventBus),
    (config, socket): (&ConfigHandle, &Path),
    spawner: &Spawner,
) -> Result<(desktop::Handle, DesktopOwner), Error> {
    let transcoder = library.transcoder().clone();
    let (library, settings) = (library.clone(), Arc::clone(&backends.settings));
    let sources = desktop::Sources {
        store: store.clone(),
        bus: bus.clone(),
        outputs: backends.outputs.clone(),
        transcoder,
        decoder: backends.decoder.clone(),
        make_still: Arc::new(move |ffmpeg, image, to| {
            library.still(ffmpeg, image, to).map_err(|error| chain(&error))
        }),
        wants_png: Arc::new(move || settings().desktop.stills == StillFiles::Png),
        directory: backends.dirs.state(),
    };
    let config = config.clone();
    let hook = desktop::HookSources {
        settings: Arc::new(move || config.current().hooks.clone()),
        outputs: backends.outputs.clone(),
        socket: socket.to_owned(),
        home: backends.dirs.home().to_owned(),
    };
    desktop::start(spawner, sources, hook).map_err(start("the files for other programs"))
}

fn start_playlists(
    wallpaper: &wallpaper::Handle,
    backends: &Backends,
    (store, bus): (&Store, &EventBus),
    outputs: &compositor::Watch,
    spawner: &Spawner,
) -> Result<(Playlists, PlayerOwner), Error> {
    let wallpapers = DaemonWallpapers { wallpaper: wallpaper.clone(), backends: backends.clone() };
    let told = outputs.outputs().subscribe();
    let settings = Arc::clone(&backends.settings);
    let place = move || {
        let location = &settings().location;
        Place::new(location.latitude, location.longitude)
    };
    let (store, bus, wallpapers) = (store.clone(), bus.clone(), Box::new(wallpapers));
    let session = backends.records.directory().join("session");
    playlist::start(spawner, store, bus, wallpapers, place, told, session)
        .map_err(start("the playlists"))
}

/// Makes the library watch the configured directories, now and after each change.
fn watch_directories(config: &ConfigHandle, dirs: &Dirs, library: &Library) {
    library.watch(WatchSettings::of(&config.current(), dirs));
    let (handle, dirs, library) = (config.clone(), dirs.clone(), library.clone());
    config.subscribe(move |change| {
        if change.sections.contains(&Section::Library) {
            library.watch(WatchSettings::of(&handle.current(), &dirs));
        }
    });
}

/// Reports changes of settings to the reconciler, the parallax and the files for other programs.
fn tell_changes(
    config: &ConfigHandle,
    wallpaper: &wallpaper::Handle,
    parallax: &Arc<Parallax>,
    desktop: &desktop::Handle,
) {
    let (wallpaper, parallax) = (wallpaper.clone(), Arc::clone(parallax));
    let desktop = desktop.clone();
    config.subscribe(move |change| {
        let backends = change.sections.iter().filter_map(|section| match section {
            Section::BackendOptions(name) => Some(*name),
            _ => None,
        });
        let chosen =
            |section: &Section| matches!(section, Section::Backend | Section::AutoPriorities);
        let backends: Vec<_> = backends.collect();
        if change.sections.contains(&Section::Power) {
            wallpaper.limit_changed();
        }
        if change.sections.contains(&Section::Desktop) {
            desktop.changed(Vec::new(), Box::new(|| ()));
        }
        if backends.contains(&BackendName::WalQt) {
            parallax.on_settings();
        }
        if !backends.is_empty() || change.sections.iter().any(chosen) {
            wallpaper.settings_changed(backends);
        }
    });
}

fn listen(env: &Env, path: &Path) -> Result<(Listening, Option<Socket>), Error> {
    let (listener, socket) = match systemd::activated(env).map_err(start("on the socket passed"))? {
        Some(passed) => (passed, None),
        None => {
            let (listener, socket) = Socket::bind(path).map_err(Error::Lock)?;
            (listener, Some(socket))
        }
    };
    Ok((Listening::new(listener).map_err(start("the server"))?, socket))
}
