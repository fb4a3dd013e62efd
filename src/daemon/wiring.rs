//! Builds the daemon: starts every module with the handles that it needs, in order, and subscribes
//! modules to changes of settings.
//!
//! Runs on the thread `main`.

use std::io;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, bounded};

use super::error::Error;
use super::options::{DaemonPaths, Options, lock_images, log_settings, wanted_compositor};
use super::settings::{PauseFollower, tell_changes, watch_directories};
use crate::backends::{self, Backends};
use crate::compositor;
use crate::config::{self, ConfigHandle};
use crate::decode::{self, Decoder};
use crate::desktop::{self, DesktopOwner};
use crate::error_chain::chain;
use crate::events::EventBus;
use crate::http::{Api, Limits, ROUTES, Router, Server, Stop, raise_descriptors};
use crate::kernel::Kernel;
use crate::library::{self, Library};
use crate::lock::{Lock, Socket};
use crate::logging::Log;
use crate::media::PlainColors;
use crate::parallax::Parallax;
use crate::paths::{Dirs, make_directories};
use crate::playlist::{self, DaemonWallpapers, Location, PlayerOwner, Playlists};
use crate::process::{LogLimit, ProcessRecords, Versions};
use crate::signals::{self, Signal, Signals};
use crate::store::{self, Store};
use crate::systemd;
use crate::thread::{Deaths, Spawner};
use crate::transcode::{self, Transcoder};
use crate::wallpaper::{self, ReconcilerOwner, WorkspaceFollower};
use crate::wire::{Resolution, Timestamp};

/// Number of stop requests and signals that may wait for `main`; more are dropped.
const WAKES: usize = 8;

/// All modules that run. If `end` is not called, fields are dropped in this order.
pub(crate) struct Daemon {
    pub(super) server: Server,
    /// `None` if the file cannot be watched; SIGHUP still reloads it.
    pub(super) watch: Option<config::Watch>,
    pub(super) pause: PauseFollower,
    pub(super) playlists: PlayerOwner,
    pub(super) parallax: Arc<Parallax>,
    pub(super) workspaces: Arc<WorkspaceFollower>,
    pub(super) reconciler: ReconcilerOwner,
    pub(super) wallpaper: wallpaper::Handle,
    pub(super) desktop_owner: DesktopOwner,
    pub(super) desktop: desktop::Handle,
    pub(super) imports: library::Running,
    /// Used for the scan at SIGHUP.
    pub(super) library: Library,
    pub(super) transcoder: transcode::Threads,
    pub(super) decoder: Decoder,
    pub(super) outputs: compositor::Watch,
    pub(super) backends: Backends,
    pub(super) logs: LogLimit,
    pub(super) upkeep: store::Upkeep,
    /// `None` if the service manager owns the socket.
    pub(super) socket: Option<Socket>,
    pub(super) base: Base,
}

/// The parts that start first, which the others need: settings, paths, log, locks and database.
pub(super) struct Base {
    dirs: Dirs,
    pub(super) bus: EventBus,
    pub(super) config: ConfigHandle,
    pub(super) paths: DaemonPaths,
    pub(super) spawner: Spawner,
    kernel: Kernel,
    pub(super) store: Store,
    pub(super) signals: Signals,
    stop: Sender<Stop>,
    processors: usize,
    pub(super) log: Log,
    pub(super) locks: Vec<Lock>,
}

/// The events that wake `main`.
pub(crate) struct Wakes {
    pub(super) signals: Receiver<Signal>,
    pub(super) stops: Receiver<Stop>,
    pub(super) deaths: Deaths,
}

impl Base {
    fn open(options: &Options, dirs: Dirs) -> Result<(Self, Wakes), Error> {
        let bus = EventBus::for_startup();
        let path = options.config.clone().unwrap_or_else(|| dirs.config_file());
        let config = ConfigHandle::read(path, bus.clone()).map_err(Error::Config)?;
        let settings = config.current();
        let paths = DaemonPaths::new(&settings.daemon, config.path(), &dirs, options)?;
        let lock = Lock::take(&paths.socket, Some(&paths.socket)).map_err(Error::Lock)?;
        // Only now, so that an invalid file, or the file of a running daemon, is not changed.
        config.complete();
        let (spawner, deaths) = Spawner::new();
        let (signal, signals_come) = bounded(WAKES);
        let (stop, stops) = bounded(WAKES);
        // If the channel is full, `main` is about to read it. Before the log, whose file may be beyond
        // `ulimit -f`.
        let signals = signals::start(&spawner, move |came| {
            signal.try_send(came).ok();
        })
        .map_err(start("the signals"))?;
        let kernel = Kernel::start(&spawner).map_err(start("the thread `kernel`"))?;
        let log_settings = log_settings(&settings.daemon, &paths, options, dirs.env());
        let is_watched = options.is_watched(dirs.env());
        let log = Log::start(&log_settings, is_watched).map_err(Error::Log)?;
        config.log_warnings();
        // Daemons on different sockets must not share a library: they would remove each other's
        // unfinished files.
        let library_lock = Lock::take(&paths.database, Some(&paths.socket)).map_err(Error::Lock)?;
        let store = Store::open(&paths.database).map_err(Error::Store)?;
        let images_lock = lock_images(&paths.images, &store)?;
        let locks = [lock, library_lock]
            .into_iter()
            .chain(images_lock)
            .collect();
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let base = Self {
            dirs,
            bus,
            config,
            paths,
            spawner,
            kernel,
            store,
            signals,
            stop,
            processors,
            log,
            locks,
        };
        Ok((
            base,
            Wakes {
                signals: signals_come,
                stops,
                deaths,
            },
        ))
    }

    fn listen(&self) -> Result<(UnixListener, Option<Socket>), Error> {
        let passed =
            systemd::activated(self.dirs.env()).map_err(start("on the socket from systemd"))?;
        Ok(match passed {
            Some(passed) => (passed, None),
            None => {
                let (listener, socket) = Socket::bind(&self.paths.socket).map_err(Error::Lock)?;
                (listener, Some(socket))
            }
        })
    }

    /// Starts the pool of decoding processes, which may write to the library, the caches and the
    /// files for other programs.
    fn decoder(&self) -> Result<Decoder, Error> {
        let DaemonPaths {
            images,
            thumbnails,
            backends,
            ..
        } = &self.paths;
        // A process may write only to directories that exist when it starts. The first thumbnail reports
        // why the cache cannot be made.
        make_directories(&self.dirs.cache()).ok();
        let stills = self.dirs.state().join(desktop::STILLS);
        let mut writable = vec![self.dirs.cache(), stills];
        writable.extend([images, thumbnails, backends].map(Clone::clone));
        // Each directory may be a link to another disk.
        writable.extend(
            Resolution::ALL
                .iter()
                .map(|size| thumbnails.join(size.as_str())),
        );
        let settings = decode::Settings {
            program: None,
            writable,
            imports: self.processors,
            silent_for: self.dirs.env().milliseconds("MURALD_DECODER_SILENCE"),
        };
        Decoder::start(settings, &self.spawner).map_err(start("the decoder"))
    }

    fn backends(&self, outputs: &compositor::Watch, decoder: &Decoder) -> Result<Backends, Error> {
        let records = ProcessRecords::open(&self.paths.backends).map_err(Error::Process)?;
        let config = self.config.clone();
        Ok(Backends {
            settings: Arc::new(move || config.current()),
            outputs: outputs.outputs(),
            records,
            kernel: self.kernel.clone(),
            spawner: self.spawner.clone(),
            cache: self.paths.cache.clone(),
            decoder: decoder.clone(),
            dirs: self.dirs.clone(),
            versions: Versions::default(),
            own_program: None,
        })
    }

    fn library(
        &self,
        transcoder: Transcoder,
        decoder: &Decoder,
    ) -> Result<(Library, library::Running), Error> {
        let config = self.config.clone();
        let settings = library::Settings {
            video_audio: Arc::new(move || config.current().wal_qt.video_audio_default),
            images_dir: self.paths.images.clone(),
            thumbnails_dir: self.paths.thumbnails.clone(),
            workers: self.processors,
            decoder: decoder.clone(),
        };
        library::start(
            &settings,
            self.store.clone(),
            self.bus.clone(),
            transcoder,
            &self.kernel,
            &self.spawner,
        )
        .map_err(start("the importer"))
    }

    fn desktop(
        &self,
        library: &Library,
        backends: &Backends,
    ) -> Result<(desktop::Handle, DesktopOwner), Error> {
        let maker = library.clone();
        let fill = self.config.clone();
        let sources = desktop::Sources {
            store: self.store.clone(),
            bus: self.bus.clone(),
            outputs: backends.outputs.clone(),
            transcoder: library.transcoder().clone(),
            decoder: backends.decoder.clone(),
            make_still: Arc::new(move |ffmpeg, image, fill, to| {
                maker
                    .still(ffmpeg, image, fill, to)
                    .map_err(|error| chain(&error))
            }),
            config: self.config.clone(),
            fill: Box::new(move |backend| backends::fill_color(&fill.current(), backend)),
            colors: PlainColors::new(&self.dirs.cache()),
            directory: self.dirs.state(),
        };
        let hook = desktop::HookSources {
            config: self.config.clone(),
            outputs: backends.outputs.clone(),
            socket: self.paths.socket.clone(),
            home: self.dirs.home().to_owned(),
        };
        desktop::start(&self.spawner, sources, hook).map_err(start("the files for other programs"))
    }

    fn playlists(
        &self,
        wallpaper: &wallpaper::Handle,
        backends: &Backends,
    ) -> Result<(Playlists, PlayerOwner), Error> {
        let config = self.config.clone();
        let location = move || {
            let location = &config.current().location;
            Location::new(location.latitude, location.longitude)
        };
        playlist::start(
            (&self.spawner, &self.kernel),
            self.store.clone(),
            self.bus.clone(),
            Box::new(DaemonWallpapers {
                wallpaper: wallpaper.clone(),
                backends: backends.clone(),
            }),
            location,
            backends.outputs.subscribe(),
            backends.records.directory().join("session"),
        )
        .map_err(start("the playlists"))
    }
}

impl Daemon {
    pub(crate) fn build(
        options: &Options,
        dirs: Dirs,
        started: Instant,
    ) -> Result<(Self, Wakes), Error> {
        let (base, wakes) = Base::open(options, dirs)?;
        let Base {
            spawner,
            store,
            config,
            bus,
            ..
        } = &base;
        // Clients can connect from now on.
        let (listening, socket) = base.listen()?;
        let wanted = wanted_compositor(&config.current());
        let outputs = compositor::Watch::start(spawner, &base.kernel, wanted, base.dirs.env())
            .map_err(start("watching the outputs"))?;
        let decoder = base.decoder()?;
        let backends = base.backends(&outputs, &decoder)?;
        let logs = LogLimit::start(&base.kernel, spawner, &base.paths.backends)
            .map_err(start("the limit of logs"))?;
        let (jobs, transcoder) = transcode::start(spawner, transcode::Limits::default())
            .map_err(start("the transcoder"))?;
        let (library, imports) = base.library(jobs, &decoder)?;
        let (desktop, desktop_owner) = base.desktop(&library, &backends)?;
        let (wallpaper, reconciler) = wallpaper::start(
            spawner,
            store.clone(),
            bus.clone(),
            backends.clone(),
            desktop.clone(),
            Box::new(library.on_lost()),
        )
        .map_err(start("the reconciler"))?;
        let parallax = Arc::new(Parallax::new(backends.clone(), wallpaper.clone()));
        let workspaces = Arc::new(WorkspaceFollower::new(backends.clone(), wallpaper.clone()));
        tell_changes(config, &wallpaper, (&parallax, &workspaces), &desktop);
        let shown = wallpaper.clone();
        library.on_rewritten(Box::new(move |_| shown.rewritten()));
        parallax.on_settings();
        workspaces.on_settings();
        let (playlists, player) = base.playlists(&wallpaper, &backends)?;
        let pause = PauseFollower::by_settings(config, &playlists, &wallpaper, &backends);
        watch_directories(config, &base.dirs, &library);
        let api = Api {
            events: bus.clone(),
            stop: base.stop.clone(),
            started,
            started_at: Timestamp::now(),
            config: config.clone(),
            store: store.clone(),
            backends: backends.clone(),
            wallpaper: wallpaper.clone(),
            playlists,
            library: library.clone(),
            desktop: desktop.clone(),
            paths: base.paths.info(config.path(), &base.dirs),
            dirs: base.dirs.clone(),
        };
        let router = Router::new(api, ROUTES)
            .sparing(|api| api.store.close_idle_readers())
            .seeing(|api, request| {
                if let Some(session) = request.session() {
                    api.backends.outputs.offer(&session);
                }
            });
        raise_descriptors();
        let server = Server::start(listening, spawner, router, Limits::default())
            .map_err(start("the server"))?;
        // Started last: while it copies the database, starting a thread could fail for lack of file
        // descriptors.
        let upkeep = store::start_upkeep(store, spawner).map_err(start("the database's upkeep"))?;
        let watch = watch_config(config, &base.kernel, spawner);
        let daemon = Self {
            server,
            watch,
            pause,
            playlists: player,
            parallax,
            workspaces,
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
            logs,
            upkeep,
            socket,
            base,
        };
        Ok((daemon, wakes))
    }

    /// Handles SIGHUP: reopens the log, reloads the configuration, and binds the socket again if it
    /// was removed.
    pub(super) fn reload(&mut self) {
        self.base.log.reopen();
        if let Err(error) = self.bind_again() {
            log::error!(
                "cannot listen on {} again: {}",
                self.address().display(),
                chain(&error)
            );
        }
        self.base.config.reload();
        self.library.watching.scan();
        log::info!("reopened the log and reloaded the configuration");
    }

    fn bind_again(&mut self) -> Result<(), Error> {
        if self.socket.as_ref().is_none_or(Socket::is_in_place) {
            return Ok(());
        }
        let (listener, socket) = Socket::bind(self.address()).map_err(Error::Lock)?;
        self.server
            .move_to(listener, &self.base.spawner)
            .map_err(start("the server"))?;
        self.socket = Some(socket);
        log::info!("listening on {} again", self.address().display());
        Ok(())
    }

    /// The path of the socket.
    pub(super) fn address(&self) -> &Path {
        &self.base.paths.socket
    }
}

fn start(what: &'static str) -> impl Fn(io::Error) -> Error {
    move |source| Error::Start { what, source }
}

/// Returns `None` if the file cannot be watched.
fn watch_config(
    config: &ConfigHandle,
    kernel: &Kernel,
    spawner: &Spawner,
) -> Option<config::Watch> {
    let watch = config::Watch::start(config.clone(), kernel, spawner);
    let failed = |error: &config::Error| config.is_unwatched(&chain(error));
    watch.inspect_err(failed).ok()
}
