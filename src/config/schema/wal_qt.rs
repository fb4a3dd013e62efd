//! `[backend.wal-qt]`: the options of the web engine that shows images, videos and HTML wallpapers.

use super::forms::{BEZIER, Bezier, COLOR, is_bezier, is_color};
use super::key::{Key, Rule, Value};
use super::settings_macro::settings;
use crate::wire::words;

words! {
    WalQtTransition {
        None = "none", Fade = "fade", Left = "left", Right = "right", Top = "top",
        Bottom = "bottom", Wipe = "wipe", Grow = "grow", Outer = "outer", Wave = "wave",
        Center = "center", BlurThrough = "blur_through", Any = "any", Random = "random",
    }
}

words! {
    ImageFit {
        Fill = "fill", Contain = "contain", Cover = "cover", None = "none",
        ScaleDown = "scale-down",
    }
}

words! {
    ImageRendering {
        Auto = "auto", Smooth = "smooth", HighQuality = "high-quality",
        CrispEdges = "crisp-edges", Pixelated = "pixelated",
    }
}

words! {
    ParallaxDriver { Auto = "auto", Off = "off", Hyprland = "hyprland", Sway = "sway" }
}

words! {
    ParallaxDirection { Horizontal = "horizontal", Vertical = "vertical" }
}

settings! {
    /// `[backend.wal-qt]`
    #[derive(Debug)]
    WalQt {
        /// Control socket of wal-qt
        socket_path: String = Key::path("$XDG_RUNTIME_DIR/wal-qt.sock"),
        /// Service name that wal-qt must report
        expected_service: String = Key::text("wal-qt"),
        /// API version that wal-qt must report
        expected_api_version: String = Key::text("0"),
        /// Time limit for an answer at startup, in milliseconds
        connect_timeout_ms: u32 = Key::integer(500).from(1),
        /// Time limit for an answer to a request, in milliseconds
        request_timeout_ms: u32 = Key::integer(1500).from(1),
        /// Time limit for loading a wallpaper, in milliseconds
        load_timeout_ms: u32 = Key::integer(15000).from(1),
        /// Additional environment variables, as KEY=VALUE
        env: Vec<String> = Key::list(&[]).form(ENV, is_env),
        /// Transition between images; other values act as fade
        transition: WalQtTransition = Key::word("none", WalQtTransition::WORDS)
            .otherwise(Value::Text("fade")),
        /// Duration of transitions in milliseconds
        duration_ms: u32 = Key::integer(300).from(1),
        /// Easing of transitions: the numbers of a CSS cubic-bezier
        transition_bezier: Bezier = Key::text("0.54,0,0.34,0.99").form(BEZIER, is_bezier),
        /// Direction of transitions, in degrees
        transition_angle_deg: f64 = Key::number(0.0),
        /// Origin of grow and outer, in percent of the width
        transition_origin_x_percent: f64 = Key::number(50.0).within(-200, 200),
        /// Origin of grow and outer, in percent of the height
        transition_origin_y_percent: f64 = Key::number(50.0).within(-200, 200),
        /// Height of the waves, in percent
        transition_wave_amplitude_percent: f64 = Key::number(5.0).ruled(NOT_NEGATIVE),
        /// Number of waves
        transition_wave_frequency: f64 = Key::number(3.0).ruled(NOT_NEGATIVE),
        /// How to scale the image, as CSS object-fit
        image_fit_mode: ImageFit = Key::word("cover", ImageFit::WORDS),
        /// Scaling filter, as CSS image-rendering
        image_rendering: ImageRendering = Key::word("auto", ImageRendering::WORDS),
        /// Colour around images, RRGGBB or RRGGBBAA; wal-qt may ignore it
        fill_color: String = Key::text("000000ff").form(COLOR, is_color),
        /// Unmute videos when they are imported
        video_audio_default: bool = Key::flag(false),
        /// Let HTML wallpapers use the network
        allow_network_wallpapers: bool = Key::flag(false),
        /// Shift the wallpaper when the workspace changes (Hyprland and Sway)
        parallax_enabled: bool = Key::flag(false),
        /// Zoom of the image while parallax is on, in percent; below 100 acts as 100
        parallax_zoom: f64 = Key::number(120.0),
        /// Shift per workspace, in percent
        parallax_step_percent: f64 = Key::number(5.0).ruled(Rule::Positive),
        /// Number of workspaces in one cycle
        parallax_workspace_chunk_size: u32 = Key::integer(10).from(1),
        /// Duration of a shift, in milliseconds
        parallax_animation_ms: u32 = Key::integer(600).from(1),
        /// Duration of the return to the centre, in milliseconds
        parallax_reset_ms: u32 = Key::integer(400).from(1),
        /// Easing of shifts, as a CSS cubic-bezier; other values act as the default
        parallax_easing: Bezier = Key::text(EASING).form(BEZIER, is_bezier)
            .otherwise(Value::Text(EASING)),
        /// Compositor whose workspaces are followed
        parallax_compositor_driver: ParallaxDriver = Key::word("auto", ParallaxDriver::WORDS),
        /// Direction of shifts, unless an HTML wallpaper sets its own
        parallax_direction: ParallaxDirection = Key::word("horizontal", ParallaxDirection::WORDS),
    }
}

impl WalQt {
    /// The angle from 0 to below 360.
    pub fn angle_deg(&self) -> f64 {
        self.transition_angle_deg.rem_euclid(360.0)
    }

    /// The zoom as a factor, at least 1.0.
    pub fn parallax_factor(&self) -> f64 {
        (self.parallax_zoom / 100.0).max(1.0)
    }
}

const EASING: &str = "0.215,0.610,0.355,1.000";
const NOT_NEGATIVE: Rule = Rule::Range(0.0, f64::MAX);
const ENV: &str = "KEY=VALUE, KEY none of WAYLAND_DISPLAY, XDG_RUNTIME_DIR, DISPLAY, PATH, HOME, \
                   LD_PRELOAD, LD_LIBRARY_PATH";
/// Variables that would change the process's connections, or the code that it runs.
const FORBIDDEN: [&str; 7] = [
    "WAYLAND_DISPLAY",
    "XDG_RUNTIME_DIR",
    "DISPLAY",
    "PATH",
    "HOME",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
];

fn is_env(entry: &str) -> bool {
    let Some((name, _)) = entry.split_once('=') else {
        return false;
    };
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let named = name.bytes().all(letter) && name.starts_with(|c: char| !c.is_ascii_digit());
    named && !FORBIDDEN.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_entries() {
        for good in ["A=", "QT_SCALE=1=2", "_x9=y z"] {
            assert!(is_env(good), "{good}");
        }
        for bad in [
            "",
            "A",
            "=x",
            "9A=x",
            "A B=x",
            "PATH=/x",
            "LD_PRELOAD=",
            "HOME=/",
        ] {
            assert!(!is_env(bad), "{bad}");
        }
    }
}
