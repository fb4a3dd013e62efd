//! The options of awww, feh, hyprpaper, mpvpaper and swaybg, with the values of each program's command
//! line; and of murald's own renderer, `builtin`.

use super::forms::{
    COLOR, EASING, Easing, OPAQUE, is_bezier, is_color, is_easing, is_opaque, is_size, numbers,
};
use super::key::{Key, Value};
use super::settings_macro::settings;
use crate::wire::{Fit, Position, words};

words! {
    AwwwTransition {
        None = "none", Simple = "simple", Fade = "fade", Left = "left", Right = "right",
        Top = "top", Bottom = "bottom", Wipe = "wipe", Wave = "wave", Grow = "grow",
        Center = "center", Any = "any", Outer = "outer", Random = "random",
    }
}

words! {
    AwwwResize { Crop = "crop", Fit = "fit", No = "no", Stretch = "stretch" }
}

words! {
    AwwwFilter {
        Lanczos3 = "Lanczos3", Bilinear = "Bilinear", CatmullRom = "CatmullRom",
        Mitchell = "Mitchell", Nearest = "Nearest",
    }
}

words! {
    /// The server's pixel format; if empty, awww chooses.
    AwwwFormat { Default = "", Argb = "argb", Abgr = "abgr", Rgb = "rgb", Bgr = "bgr" }
}

settings! {
    /// `[backend.awww]`
    #[derive(Debug)]
    Awww {
        /// Transition between images
        transition_type: AwwwTransition = Key::word("wipe", AwwwTransition::WORDS),
        /// Change per frame: lower is smoother
        transition_step: u8 = Key::integer(90).within(1, 255),
        /// Duration of transitions in seconds; 0 uses awww's default
        transition_duration: f64 = Key::number(3.0).within(0, 120),
        /// Frame rate of transitions
        transition_fps: u16 = Key::integer(60).within(1, u16::MAX as i64),
        /// Direction of wipe and wave, in degrees
        transition_angle: f64 = Key::number(45.0),
        /// Origin of grow and outer: a name or X,Y
        transition_pos: String = Key::text("center").form(POINT, is_point),
        /// Easing of transitions: the numbers of a CSS cubic-bezier
        transition_bezier: String = Key::text("0.25,0.1,0.25,1.0").form(CURVE, is_curve),
        /// Width and height of the wave
        transition_wave: String = Key::text("20,20").form("WIDTH,HEIGHT", is_size),
        /// How to scale the image
        resize: AwwwResize = Key::word("crop", AwwwResize::WORDS),
        /// Colour around images, RRGGBB without #
        fill_color: String = Key::text("000000").form(COLOR, is_color),
        /// Scaling filter
        filter_type: AwwwFilter = Key::word("Lanczos3", AwwwFilter::WORDS),
        /// Invert the Y axis of transition_pos
        invert_y: bool = Key::flag(false),
        /// Pixel format of awww-daemon; empty uses its default
        daemon_format: AwwwFormat = Key::word("", AwwwFormat::WORDS),
    }
}

const POINT: &str = "center, top, bottom, left, right, top-left, top-right, bottom-left, \
    bottom-right, or X,Y: fractions of the monitor such as 0.4,0.9 or pixels such as 400,900";

/// awww reads integers as pixels and other numbers, also negative ones, as fractions.
fn is_point(text: &str) -> bool {
    let is_point = |point: Vec<f64>| point.len() == 2 && point.iter().all(|&part| part >= 0.0);
    Position::WORDS.contains(&text) || numbers(text).is_some_and(is_point)
}

const CURVE: &str = "four comma-separated numbers that are not all 0";

/// awww refuses a curve of zeros.
fn is_curve(text: &str) -> bool {
    is_bezier(text) && text.split(',').any(|part| part.trim().parse() != Ok(0.0))
}

words! {
    FehMode { Fill = "fill", Scale = "scale", Tile = "tile", Center = "center", Max = "max" }
}

settings! {
    /// `[backend.feh]`
    #[derive(Debug)]
    Feh {
        /// How to scale the image; other values act as fill
        mode: FehMode = Key::word("fill", FehMode::WORDS).otherwise(Value::Text("fill")),
        /// Colour around and behind images, RRGGBB without #
        fill_color: String = Key::text("000000").form(OPAQUE, is_opaque),
    }
}

words! {
    HyprpaperFit { Cover = "cover", Contain = "contain", Tile = "tile", Fill = "fill" }
}

settings! {
    /// `[backend.hyprpaper]`
    #[derive(Debug)]
    Hyprpaper {
        /// How to scale the image
        fit_mode: HyprpaperFit = Key::word("cover", HyprpaperFit::WORDS),
        /// File that murald writes for hyprpaper; empty: murald-hyprpaper.conf in $XDG_CONFIG_HOME/hypr
        config_path: String = Key::path(""),
    }
}

words! {
    /// The layers of layer-shell; mpvpaper's own choice if empty.
    MpvpaperLayer {
        Default = "", Background = "background", Bottom = "bottom", Top = "top",
        Overlay = "overlay",
    }
}

settings! {
    /// `[backend.mpvpaper]`
    #[derive(Debug)]
    Mpvpaper {
        /// Options for mpv, without the leading --
        mpv_options: String = Key::text("loop"),
        /// Verbosity of mpvpaper
        verbose: u8 = Key::integer(0).within(0, 2),
        /// Pause the video while windows hide it
        auto_pause: bool = Key::flag(false),
        /// Stop mpv while windows hide the video; overrides auto_pause
        auto_stop: bool = Key::flag(false),
        /// Layer to draw on; empty uses mpvpaper's default
        layer: MpvpaperLayer = Key::word("", MpvpaperLayer::WORDS),
        /// Seconds between the files of a slideshow; 0 disables it
        slideshow_secs: u32 = Key::integer(0).from(0),
    }
}

words! {
    SwaybgFit {
        Stretch = "stretch", Fit = "fit", Fill = "fill", Center = "center", Tile = "tile",
    }
}

settings! {
    /// `[backend.swaybg]`
    #[derive(Debug)]
    Swaybg {
        /// How to scale the image
        fit_mode: SwaybgFit = Key::word("fill", SwaybgFit::WORDS),
        /// Colour around and behind images, RRGGBB without #
        fill_color: String = Key::text("000000").form(OPAQUE, is_opaque),
    }
}

words! {
    BuiltinTransition {
        None = "none", Fade = "fade", Wipe = "wipe", Grow = "grow", Random = "random",
    }
}

words! {
    BuiltinBackdrop { None = "none", Same = "same", Blur = "blur", Dim = "dim" }
}

settings! {
    /// `[backend.builtin]`
    #[derive(Debug)]
    Builtin {
        /// Allow murald to draw images itself; false excludes builtin, even if it is selected
        enabled: bool = Key::flag(true),
        /// How to scale the image
        fit_mode: Fit = Key::word("cover", Fit::WORDS),
        /// Part of the image that is visible, or its position: a name or X%,Y%
        position: Position = Key::text("center").form(Position::FORM, is_position),
        /// Colour around and behind images, RRGGBB without #
        fill_color: String = Key::text("000000").form(OPAQUE, is_opaque),
        /// Transition between images (Wayland only)
        transition_type: BuiltinTransition = Key::word("fade", BuiltinTransition::WORDS),
        /// Duration of transitions in seconds; 0 disables them
        transition_duration: f64 = Key::number(0.6).within(0, 120),
        /// Direction of wipe in degrees: 0 is right to left, 90 top to bottom
        transition_angle: f64 = Key::number(45.0),
        /// Origin of grow: a name or X%,Y%
        transition_pos: Position = Key::text("center").form(Position::FORM, is_position),
        /// Easing of transitions: a CSS keyword or the numbers of a CSS cubic-bezier
        transition_easing: Easing = Key::text("ease-out").form(EASING, is_easing),
        /// Maximum frame rate of transitions
        fps_max: u32 = Key::integer(60).within(1, 1000),
        /// Play animated images
        animate: bool = Key::flag(true),
        /// A second surface with the image, below the wallpaper, for niri's overview (Wayland only)
        backdrop: BuiltinBackdrop = Key::word("none", BuiltinBackdrop::WORDS),
        /// Strength of blur: its standard deviation, in pixels of the monitor
        backdrop_blur: f64 = Key::number(24.0).within(1, 200),
        /// How much the backdrop is darkened, up to 1 (black); by default 0.3 with dim and 0 with blur
        backdrop_dim: Option<f64> = Key::optional_number().within(0, 1),
    }
}

fn is_position(text: &str) -> bool {
    text.parse::<Position>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transition_pos_takes_names_fractions_and_pixels() {
        for good in [
            "center",
            "bottom-right",
            "0.4,0.9",
            "400,900",
            "0.680,1",
            "0, 0",
        ] {
            assert!(is_point(good), "{good}");
        }
        for bad in [
            "", "middle", "Center", "0.4", "1,2,3", "40%,90%", "-1,5", "inf,0", "a,b", "1,",
        ] {
            assert!(!is_point(bad), "{bad}");
        }
    }

    #[test]
    fn curves_are_not_all_zeros() {
        assert!(is_curve(".54,0,.34,.99") && is_curve("0,0,0,1"));
        for bad in ["0,0,0,0", "0, 0.0, 0, 0", "1,2,3", "ease"] {
            assert!(!is_curve(bad), "{bad}");
        }
    }
}
