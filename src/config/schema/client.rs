//! What is kept for the graphical client: `[app]`, `[monitors]` and `[remote_gallery]`.

use super::key::{Key, Value};
use super::settings::settings;

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
