//! The sections of the configuration other than the options of backends.
//!
//! Each `settings!` gives a section's struct and its keys. Users see the comments on fields.

use super::key::{Key, Rule, Value};
use super::settings_macro::settings;
use crate::config::exclude::{PATTERN, is_pattern};
use crate::wire::{SortBy, SortOrder, words};

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
        /// Directory of the library's files
        images_dir: String = Key::path("$XDG_DATA_HOME/murald/images"),
        /// Directory of thumbnails and video previews
        thumbnails_dir: String = Key::path("$XDG_CACHE_HOME/murald/thumbnails"),
        /// Directory of the database
        database_dir: String = Key::path("$XDG_DATA_HOME/murald/db"),
        /// Socket that the daemon listens on
        socket_path: String = Key::runtime_path("murald.sock"),
        /// Log level, unless --log-level or MURALD_LOG is set
        log_level: LogLevel = Key::word("info", LogLevel::WORDS),
        /// Log file: one JSON object per line
        log_file: String = Key::path("$XDG_DATA_HOME/murald/daemon.log"),
        /// Size in megabytes at which the log is rotated
        log_max_size_mb: u32 = Key::integer(10).from(1),
        /// Number of rotated logs to keep
        log_max_backups: u32 = Key::integer(3).from(1),
        /// Kind of session
        compositor: Compositor = Key::word("auto", Compositor::WORDS),
    }
}

settings! {
    /// `[library]`
    #[derive(Debug)]
    Library {
        /// Directories to keep in sync with the library
        watch: Vec<String> = Key::list(&[]),
        /// Show watched directories and their subdirectories as folders
        watch_folders: bool = Key::flag(true),
        /// Files and directories that are not imported: patterns as in .gitignore
        exclude: Vec<String> = Key::list(&[]).form(PATTERN, is_pattern),
    }
}

settings! {
    /// `[location]`
    #[derive(Debug)]
    Location {
        /// Degrees north of the equator, negative in the south: for sunrise and sunset
        latitude: Option<f64> = Key::optional_number().ruled(Rule::Range(-90.0, 90.0)),
        /// Degrees east of Greenwich, negative in the west
        longitude: Option<f64> = Key::optional_number().ruled(Rule::Range(-180.0, 180.0)),
    }
}

settings! {
    /// `[hooks]`: no `Debug`, since a command may hold a secret.
    Hooks {
        /// Command for sh -c, run after each change of a wallpaper
        wallpaper_changed: String = Key::text("").secret(),
        /// Seconds after which the command is stopped
        timeout_seconds: u32 = Key::integer(60).within(1, 600),
    }
}

settings! {
    /// `[power]`
    #[derive(Copy, Debug)]
    Power {
        /// Pause playlists, videos and HTML wallpapers on battery power
        pause_on_battery: bool = Key::flag(false),
        /// Pause playlists, videos and HTML wallpapers while the session is locked
        pause_when_locked: bool = Key::flag(false),
        /// Pause playlists, videos and HTML wallpapers while the session is idle
        pause_when_idle: bool = Key::flag(false),
        /// Pause videos on a monitor while a window is full screen on it
        pause_when_covered: bool = Key::flag(false),
        /// Memory in MiB that a process of a video or HTML backend may allocate; 0 disables the limit
        max_child_memory_mb: u32 = Key::integer(0).within(0, 1 << 20),
    }
}

words! { StillFiles { Auto = "auto", Png = "png" } }

settings! {
    /// `[desktop]`
    #[derive(Copy, Debug)]
    Desktop {
        /// PNG copies for other programs (auto: only of pictures that few programs can show)
        stills: StillFiles = Key::word("auto", StillFiles::WORDS),
    }
}

/// The orders of a graphical client, which does not know that by hue.
const GALLERY_ORDERS: &[&str] = &[
    SortBy::Name.as_str(),
    SortBy::ImportedAt.as_str(),
    SortBy::FileSize.as_str(),
];

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
        /// Ask for the monitors at start
        show_monitor_modal_on_start: bool = Key::flag(true),
        /// Play an introduction at start
        startup_intro: bool = Key::flag(true),
        /// Images on a page of the gallery, at most 200
        images_per_page: i64 = Key::integer(50),
        /// A theme of the client, yours, or system to follow the desktop's light or dark mode
        theme: String = Key::text("dark"),
        /// Fonts; other values act as bundled
        font_preset: String = Key::word("bundled", &["bundled", "google_sans", "system", "custom"])
            .otherwise(Value::Text("bundled")),
        /// CSS font-family of text, if font_preset is custom
        font_family_body: String = Key::text(""),
        /// CSS font-family of headings, if font_preset is custom
        font_family_display: String = Key::text(""),
        /// CSS font-family of monospaced text, if font_preset is custom
        font_family_mono: String = Key::text(""),
        /// Not used
        image_history_limit: i64 = Key::integer(100),
        /// Order of the gallery
        sort_by: String = Key::word(SortBy::ImportedAt.as_str(), GALLERY_ORDERS)
            .otherwise(Value::Text(SortBy::ImportedAt.as_str())),
        /// Direction of the gallery's order
        sort_order: String = Key::word("desc", SortOrder::WORDS).otherwise(Value::Text("desc")),
    }
}

settings! {
    /// `[monitors]`
    #[derive(Debug)]
    Monitors {
        /// Monitors that the client sets wallpapers on
        selected_monitors: Vec<String> = Key::list(&[]),
        /// How several monitors show an image; only still images can be extended
        image_set_type: String = Key::word("individual", &["individual", "clone", "extend"])
            .otherwise(Value::Text("individual")),
    }
}

settings! {
    /// `[remote_gallery]`: no `Debug`, since it holds a secret.
    RemoteGallery {
        /// Show the remote gallery
        enabled: bool = Key::flag(false),
        /// API key of the remote gallery, stored as plain text
        api_key: String = Key::text("").secret(),
        /// Scrolling of the remote gallery
        scroll_mode: String = Key::word("paginated", &["paginated", "infinite"])
            .otherwise(Value::Text("paginated")),
        /// Blur NSFW thumbnails
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
        /// Backend to use; if it is not available, murald uses the first one that is
        kind as "type": BackendName = Key::word("awww", BackendName::WORDS),
        /// fixed uses type for everything, auto selects from auto_priorities by kind of image
        selection_mode: SelectionMode = Key::word("fixed", SelectionMode::WORDS),
        /// Duration of transitions in seconds; above 0 it overrides awww, wal-qt and builtin
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
