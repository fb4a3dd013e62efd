//! The sections of the configuration other than the options of backends.
//!
//! Each `settings!` gives a section's struct and its keys. Users see the comments on fields.

use super::key::{Key, Rule, Value};
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

settings! {
    /// `[library]`
    #[derive(Debug)]
    Library {
        /// Directories whose pictures are in the library, as they come and go
        watch: Vec<String> = Key::list(&[]),
        /// Leave the pictures of watched directories where they are; false: copy them
        in_place: bool = Key::flag(true),
        /// Show watched directories as folders, with those in them
        watch_folders: bool = Key::flag(true),
    }
}

settings! {
    /// `[location]`
    #[derive(Debug)]
    Location {
        /// Degrees north of the equator, south of it negative: for playlists that go by the sun
        latitude: Option<f64> = Key::optional_number().ruled(Rule::Range(-90.0, 90.0)),
        /// Degrees east of Greenwich, west of it negative
        longitude: Option<f64> = Key::optional_number().ruled(Rule::Range(-180.0, 180.0)),
    }
}

settings! {
    /// `[hooks]`: no `Debug`, since a command may hold a secret.
    Hooks {
        /// Command for sh -c after each change of a wallpaper; empty for none
        wallpaper_changed: String = Key::text("").secret(),
        /// Seconds after which a command that still runs is ended
        timeout_seconds: u32 = Key::integer(60).within(1, 600),
    }
}

settings! {
    /// `[power]`
    #[derive(Copy, Debug)]
    Power {
        /// Playlists, films and pages rest while the machine runs on its battery
        pause_on_battery: bool = Key::flag(false),
        /// Playlists, films and pages rest while the session is locked
        pause_when_locked: bool = Key::flag(false),
        /// Playlists, films and pages rest while nobody uses the machine
        pause_when_idle: bool = Key::flag(false),
        /// MiB above which a process that shows films or pages is replaced; 0 for never
        max_child_memory_mb: u32 = Key::integer(0).within(0, 1 << 20),
    }
}

words! { StillFiles { Auto = "auto", Png = "png" } }

settings! {
    /// `[desktop]`
    #[derive(Copy, Debug)]
    Desktop {
        /// Pictures that need a PNG copy for other programs: those that few show as they are, or all
        stills: StillFiles = Key::word("auto", StillFiles::WORDS),
    }
}

settings! {
    /// `[app]`
    #[derive(Debug)]
    App {
        /// Stop the daemon when the client is closed
        kill_daemon_on_exit: bool = Key::flag(false),
        /// Show desktop notifications while the window is hidden
        notifications: bool = Key::flag(true),
        /// Start with the window hidden
        start_minimized: bool = Key::flag(false),
        /// Hide the window when it is closed
        minimize_instead_of_close: bool = Key::flag(false),
        /// Ask at start which monitors are meant
        show_monitor_modal_on_start: bool = Key::flag(true),
        /// Play an introduction at start
        startup_intro: bool = Key::flag(true),
        /// Images on a page of the gallery; the daemon gives 200 at most
        images_per_page: i64 = Key::integer(50),
        /// A theme of the client's or of yours, or system for the desktop's light or dark
        theme: String = Key::text("dark"),
        /// Which fonts; other words act as bundled
        font_preset: String = Key::word("bundled", &["bundled", "google_sans", "system", "custom"])
            .otherwise(Value::Text("bundled")),
        /// CSS font-family of the text where font_preset is custom
        font_family_body: String = Key::text(""),
        /// CSS font-family of headings where font_preset is custom
        font_family_display: String = Key::text(""),
        /// CSS font-family of monospaced text where font_preset is custom
        font_family_mono: String = Key::text(""),
        /// Not used
        image_history_limit: i64 = Key::integer(100),
        /// What the gallery is sorted by
        sort_by: String = Key::word("imported_at", &["name", "imported_at", "file_size"])
            .otherwise(Value::Text("imported_at")),
        /// Whether the gallery's order rises or falls
        sort_order: String = Key::word("desc", &["asc", "desc"]).otherwise(Value::Text("desc")),
    }
}

settings! {
    /// `[monitors]`
    #[derive(Debug)]
    Monitors {
        /// Names of the monitors that the client sets wallpapers on
        selected_monitors: Vec<String> = Key::list(&[]),
        /// How several monitors show an image; only still images can be extended
        image_set_type: String = Key::word("individual", &["individual", "clone", "extend"])
            .otherwise(Value::Text("individual")),
    }
}

settings! {
    /// `[remote_gallery]`: no `Debug`, since it holds a secret.
    RemoteGallery {
        /// Show the gallery on the network
        enabled: bool = Key::flag(false),
        /// Key for the gallery on the network, kept as plain text
        api_key: String = Key::text("").secret(),
        /// Show the gallery on the network in pages, or without an end
        scroll_mode: String = Key::word("paginated", &["paginated", "infinite"])
            .otherwise(Value::Text("paginated")),
        /// Blur thumbnails that are not safe for work
        blur_nsfw_thumbnails: bool = Key::flag(true),
    }
}

words! {
    /// The backends, in the order in which they are looked for.
    BackendName {
        Awww = "awww", Feh = "feh", Hyprpaper = "hyprpaper", Mpvpaper = "mpvpaper",
        Swaybg = "swaybg", WalQt = "wal-qt", Builtin = "builtin",
    }
}

words! {
    /// `fixed` always uses `type`, `auto` picks by the kind of content.
    SelectionMode { Fixed = "fixed", Auto = "auto" }
}

settings! {
    /// `[backend]` without the tables in it.
    #[derive(Debug)]
    Backend {
        /// The backend to use; where it cannot be used, the first that can
        kind as "type": BackendName = Key::word("awww", BackendName::WORDS),
        /// fixed always uses type, auto picks by kind of content from auto_priorities
        selection_mode: SelectionMode = Key::word("fixed", SelectionMode::WORDS),
        /// Length of transitions in seconds; above 0 it overrides those of awww, wal-qt and builtin
        transition_duration_seconds: Option<f64> = Key::optional_number().within(0, 120),
    }
}

settings! {
    /// `[backend.auto_priorities]`: the order in which backends are tried.
    #[derive(Debug)]
    AutoPriorities {
        /// For still and animated images
        image: Vec<BackendName> = priorities(&["awww", "hyprpaper", "swaybg", "feh", "wal-qt"]),
        /// For videos
        video: Vec<BackendName> = priorities(&["mpvpaper", "wal-qt"]),
        /// For HTML wallpapers
        web: Vec<BackendName> = priorities(&["wal-qt"]),
    }
}

const fn priorities(default: &'static [&'static str]) -> Key {
    Key::list(default).ruled(super::Rule::Words(BackendName::WORDS))
}
