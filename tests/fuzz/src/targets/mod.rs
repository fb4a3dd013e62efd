//! Each file is the target for one parser: it passes an input to the parser, and asserts what must hold
//! of any result.

mod arguments;
mod awww;
mod bmp;
mod config_overlay;
mod config_read;
mod draw;
mod edid;
mod exif;
mod ffprobe;
mod file_name;
mod gif;
mod http_chunks;
mod http_connection;
mod http_head;
mod http_query;
mod http_range;
mod http_request;
mod hyprland;
mod hyprpaper;
mod icc;
mod jpeg;
mod manifest;
mod mpv;
mod png;
mod process;
mod sse;
mod sway;
mod template;
mod tiff;
mod trace;
mod traits;
mod wal_qt;
mod webp;
mod words;

/// A target and its name.
pub(crate) type Target = (&'static str, fn(&[u8]));

macro_rules! targets {
    ($($name:ident)*) => {
        pub(crate) const ALL: &[Target] = &[$((
            stringify!($name),
            if is_wanted(stringify!($name)) { $name::run } else { |_| () },
        )),*];
    };
}

targets! {
    arguments awww bmp config_overlay config_read draw edid exif ffprobe file_name gif
    http_chunks http_connection http_head http_query http_range http_request hyprland
    hyprpaper icc jpeg manifest mpv png process sse sway template tiff trace traits wal_qt webp
    words
}

/// Unused targets are left out of a program for one target, as libFuzzer would read their counters each
/// time.
const fn is_wanted(name: &str) -> bool {
    let Some(only) = option_env!("FUZZ_ONLY") else {
        return true;
    };
    let (name, only) = (name.as_bytes(), only.as_bytes());
    let mut at = 0;
    while at < name.len() && at < only.len() && name[at] == only[at] {
        at += 1;
    }
    at == name.len() && at == only.len()
}
