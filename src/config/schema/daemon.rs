//! `[daemon]`: where things live and what is logged. Changes count after a restart.

use super::key::Key;
use super::settings::settings;
use crate::wire::words;

words! {
    LogLevel { Debug = "debug", Info = "info", Warn = "warn", Error = "error" }
}

words! {
    /// Which display server to speak to; `auto` looks at the session's environment.
    Compositor { Auto = "auto", Wayland = "wayland", X11 = "x11" }
}

settings! {
    /// `[daemon]`: paths are as written, expanded on use.
    #[derive(Debug)]
    Daemon {
        /// Where imported pictures are copied
        images_dir: String = Key::path("$XDG_DATA_HOME/murald/images"),
        /// Thumbnails and previews of videos
        thumbnails_dir: String = Key::path("$XDG_CACHE_HOME/murald/thumbnails"),
        /// Directory of the database
        database_dir: String = Key::path("$XDG_DATA_HOME/murald/db"),
        /// The socket that clients connect to
        socket_path: String = Key::path("$XDG_RUNTIME_DIR/murald.sock"),
        /// What is logged; MURALD_LOG and --log-level go before it
        log_level: LogLevel = Key::word("info", LogLevel::WORDS),
        /// The log, as lines of JSON
        log_file: String = Key::path("$XDG_DATA_HOME/murald/daemon.log"),
        /// Size in megabytes at which the log is rotated
        log_max_size_mb: u32 = Key::integer(10).from(1),
        /// Rotated logs that are kept
        log_max_backups: u32 = Key::integer(3).from(1),
        /// Display server; auto looks at the session
        compositor: Compositor = Key::word("auto", Compositor::WORDS),
    }
}
