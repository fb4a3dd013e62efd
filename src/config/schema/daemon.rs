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
        /// Where the library's files are
        images_dir: String = Key::path("$XDG_DATA_HOME/murald/images"),
        /// Where thumbnails and previews of videos are
        thumbnails_dir: String = Key::path("$XDG_CACHE_HOME/murald/thumbnails"),
        /// Where the database is
        database_dir: String = Key::path("$XDG_DATA_HOME/murald/db"),
        /// The socket that the daemon listens on
        socket_path: String = Key::runtime_path("murald.sock"),
        /// What is logged; MURALD_LOG and --log-level go before it
        log_level: LogLevel = Key::word("info", LogLevel::WORDS),
        /// The log file: one JSON object a line
        log_file: String = Key::path("$XDG_DATA_HOME/murald/daemon.log"),
        /// Size in megabytes at which the log is renamed and a new one begun
        log_max_size_mb: u32 = Key::integer(10).from(1),
        /// How many old logs are kept
        log_max_backups: u32 = Key::integer(3).from(1),
        /// The kind of session; auto finds out
        compositor: Compositor = Key::word("auto", Compositor::WORDS),
    }
}
