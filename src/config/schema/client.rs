//! What is kept for the graphical client: `[app]`, `[monitors]` and `[remote_gallery]`.

use super::key::{Key, Value};
use super::settings::settings;

settings! {
    /// `[app]`
    #[derive(Debug)]
    App {
        /// Stop the daemon when the client quits
        kill_daemon_on_exit: bool = Key::flag(false),
        /// Desktop notifications while the window is hidden
        notifications: bool = Key::flag(true),
        /// Start hidden
        start_minimized: bool = Key::flag(false),
        /// Closing hides the window
        minimize_instead_of_close: bool = Key::flag(false),
        /// Show the monitor picker at start
        show_monitor_modal_on_start: bool = Key::flag(true),
        /// Play the boot sequence
        startup_intro: bool = Key::flag(true),
        /// Pictures on a page of the gallery; the API gives 200 at most
        images_per_page: i64 = Key::integer(50),
        /// A built-in or user theme, or system for the desktop's light or dark
        theme: String = Key::text("dark"),
        /// Fonts; unknown words act as bundled
        font_preset: String = Key::word("bundled", &["bundled", "google_sans", "system", "custom"])
            .otherwise(Value::Text("bundled")),
        /// CSS font-family of the text when the preset is custom
        font_family_body: String = Key::text(""),
        /// CSS font-family of headings when the preset is custom
        font_family_display: String = Key::text(""),
        /// CSS font-family of monospaced text when the preset is custom
        font_family_mono: String = Key::text(""),
        /// Unused
        image_history_limit: i64 = Key::integer(100),
        /// Order of the gallery
        sort_by: String = Key::word("imported_at", &["name", "imported_at", "file_size"])
            .otherwise(Value::Text("imported_at")),
        /// Direction of the gallery's order
        sort_order: String = Key::word("desc", &["asc", "desc"]).otherwise(Value::Text("desc")),
    }
}

settings! {
    /// `[monitors]`
    #[derive(Debug)]
    Monitors {
        /// Names of the outputs that the client sets
        selected_monitors: Vec<String> = Key::list(&[]),
        /// How pictures are laid over monitors; extend cuts only stills
        image_set_type: String = Key::word("individual", &["individual", "clone", "extend"])
            .otherwise(Value::Text("individual")),
    }
}

settings! {
    /// `[remote_gallery]`: no `Debug`, since it holds a secret.
    RemoteGallery {
        /// Show the page of the remote gallery
        enabled: bool = Key::flag(false),
        /// Key of the remote service, kept as plain text
        api_key: String = Key::text("").secret(),
        /// How the page goes on
        scroll_mode: String = Key::word("paginated", &["paginated", "infinite"])
            .otherwise(Value::Text("paginated")),
        /// Blur thumbnails that are not safe for work
        blur_nsfw_thumbnails: bool = Key::flag(true),
    }
}
