//! The table: every key of the settings that the daemon reads, and how its effect is seen.

use serde_json::{Value, json};

use super::{
    limits, one_duration_for_two, pages_may_use_the_network,
    the_compositor_is_the_one_that_is_named, the_host_is_looked_for_where_it_is_said,
    the_host_is_the_one_that_is_expected, the_host_s_environment,
};

/// A section, a key, a value other than the default, and how its effect is seen.
pub type Row = (&'static str, &'static str, Value, Seen);

pub enum Seen {
    /// The words are in the backend's calls, joined by blanks.
    Called(&'static str),
    /// The words are no longer in the calls.
    NotCalled(&'static str),
    /// A request to wal-qt's host has the value: the route, the place in the body, and the value.
    Told(&'static str, &'static str, Value),
    /// A function tries it.
    By(fn()),
    /// A test in another file tries it, and names the key.
    In(&'static str, &'static str),
}

use Seen::{By, Called, In, NotCalled, Told};

const LOAD: &str = "/wallpaper/load";
pub const LOOK: &str = "/settings/image-presentation";
const DAEMON: (&str, &str) = ("tests/config/daemon.rs", "paths_of_the_config_are_used");
const PARALLAX: (&str, &str) = (
    "tests/backends/parallax.rs",
    "parallax_follows_the_workspaces_of_sway",
);
const VIDEO: (&str, &str) = (
    "tests/video/import.rs",
    "poster_is_the_frame_at_one_tenth_and_thumbnails_are_recreated",
);
const ENABLED: (&str, &str) = (
    "tests/monitors/endure.rs",
    "backend_that_is_installed_later_is_found",
);
const HOOK: &str = "tests/programs/hook.rs";
const STILLS: &str = "animation_has_a_still_while_it_is_shown";
const COVERED: (&str, &str) = (
    "tests/backends/covered.rs",
    "videos_pause_under_a_window_that_is_full_screen",
);
const REST: (&str, &str) = (
    "tests/playlists/power.rs",
    "playlists_pause_while_locked_or_idle_if_set",
);
const BATTERY: &str = "playlists_pause_on_battery_if_set";
const MEMORY: &str = "memory_of_a_process_that_plays_videos_is_limited";
const SUN: (&str, &str) = (
    "tests/playlists/light.rs",
    "sun_times_need_latitude_and_longitude",
);
const WATCH: (&str, &str) = (
    "tests/library/watch/settings.rs",
    "each_setting_of_the_library_has_its_effect",
);
const CHOICE: (&str, &str) = (
    "src/wallpaper/backend_choice.rs",
    "each_setting_affects_the_choice",
);

pub fn table() -> Vec<Row> {
    [
        daemon(),
        awww(),
        others(),
        builtin(),
        wal_qt(),
        wal_qt_parallax(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn daemon() -> Vec<Row> {
    let here = |key| ("daemon", key, Value::Null, In(DAEMON.0, DAEMON.1));
    let log = In("tests/daemon/process.rs", "log_is_rotated_by_size");
    let log_too = In("tests/daemon/process.rs", "log_is_rotated_by_size");
    let choice = |section, key| (section, key, Value::Null, In(CHOICE.0, CHOICE.1));
    vec![
        here("images_dir"),
        here("thumbnails_dir"),
        here("database_dir"),
        here("socket_path"),
        here("log_level"),
        here("log_file"),
        ("daemon", "log_max_size_mb", Value::Null, log),
        ("daemon", "log_max_backups", Value::Null, log_too),
        (
            "daemon",
            "compositor",
            Value::Null,
            By(the_compositor_is_the_one_that_is_named),
        ),
        choice("backend", "type"),
        choice("backend", "selection_mode"),
        (
            "backend",
            "transition_duration_seconds",
            Value::Null,
            By(one_duration_for_two),
        ),
        choice("backend.auto_priorities", "image"),
        choice("backend.auto_priorities", "video"),
        choice("backend.auto_priorities", "web"),
        ("library", "watch", Value::Null, In(WATCH.0, WATCH.1)),
        (
            "library",
            "exclude",
            Value::Null,
            In(
                WATCH.0,
                "excluded_files_are_not_imported_and_known_images_stay",
            ),
        ),
        (
            "library",
            "watch_folders",
            Value::Null,
            In(WATCH.0, WATCH.1),
        ),
        (
            "desktop",
            "stills",
            Value::Null,
            In("tests/programs/files.rs", STILLS),
        ),
        ("location", "latitude", Value::Null, In(SUN.0, SUN.1)),
        ("location", "longitude", Value::Null, In(SUN.0, SUN.1)),
        (
            "power",
            "pause_on_battery",
            Value::Null,
            In(REST.0, BATTERY),
        ),
        (
            "power",
            "max_child_memory_mb",
            Value::Null,
            In("tests/backends/memory.rs", MEMORY),
        ),
        (
            "power",
            "pause_when_locked",
            Value::Null,
            In(REST.0, REST.1),
        ),
        ("power", "pause_when_idle", Value::Null, In(REST.0, REST.1)),
        (
            "power",
            "pause_when_covered",
            Value::Null,
            In(COVERED.0, COVERED.1),
        ),
        (
            "hooks",
            "wallpaper_changed",
            Value::Null,
            In(HOOK, "hook_settings_are_checked_and_apply_at_once"),
        ),
        (
            "hooks",
            "timeout_seconds",
            Value::Null,
            In(HOOK, "hanging_hook_delays_nothing_and_is_killed"),
        ),
    ]
}

fn awww() -> Vec<Row> {
    let row = |key, value, seen| ("backend.awww", key, value, seen);
    vec![
        row(
            "transition_type",
            json!("grow"),
            Called("--transition-type=grow"),
        ),
        row(
            "transition_type",
            json!("none"),
            NotCalled("--transition-step"),
        ),
        row("transition_step", json!(7), Called("--transition-step=7")),
        row(
            "transition_duration",
            json!(1.5),
            Called("--transition-duration=1.5"),
        ),
        row(
            "transition_duration",
            json!(0),
            NotCalled("--transition-duration"),
        ),
        row("transition_fps", json!(144), Called("--transition-fps=144")),
        row(
            "transition_angle",
            json!(30),
            Called("--transition-angle=30"),
        ),
        row(
            "transition_pos",
            json!("top-left"),
            Called("--transition-pos=top-left"),
        ),
        row(
            "transition_pos",
            json!("0.4,0.9"),
            Called("--transition-pos=0.4,0.9"),
        ),
        row(
            "transition_bezier",
            json!("0,0,1,1"),
            Called("--transition-bezier=0,0,1,1"),
        ),
        row(
            "transition_wave",
            json!("5,6"),
            Called("--transition-wave=5,6"),
        ),
        row("resize", json!("fit"), Called("--resize=fit")),
        row("fill_color", json!("102030"), Called("--fill-color=102030")),
        row("filter_type", json!("Nearest"), Called("--filter=Nearest")),
        row("invert_y", json!(true), Called("--invert-y")),
        row(
            "daemon_format",
            json!("argb"),
            Called("--no-cache --format argb"),
        ),
    ]
}

fn others() -> Vec<Row> {
    let mpvpaper = |key, value, seen| ("backend.mpvpaper", key, value, seen);
    vec![
        (
            "backend.feh",
            "mode",
            json!("max"),
            Called("--bg-max --image-bg"),
        ),
        (
            "backend.feh",
            "fill_color",
            json!("1e1E2e"),
            Called("--image-bg #1e1e2e --"),
        ),
        (
            "backend.swaybg",
            "fit_mode",
            json!("tile"),
            Called("-m tile"),
        ),
        (
            "backend.swaybg",
            "fill_color",
            json!("1e1E2e"),
            Called("-c #1e1E2e"),
        ),
        (
            "backend.hyprpaper",
            "fit_mode",
            json!("contain"),
            Called("fit_mode = contain"),
        ),
        (
            "backend.hyprpaper",
            "config_path",
            json!("$HOME/p.conf"),
            Called("home/p.conf"),
        ),
        mpvpaper(
            "mpv_options",
            json!("loop hwdec=no"),
            Called("no-audio loop hwdec=no input-ipc"),
        ),
        mpvpaper("verbose", json!(1), Called("-v -o")),
        mpvpaper("verbose", json!(2), Called("-vv -o")),
        mpvpaper("auto_pause", json!(true), Called("-p -o")),
        mpvpaper("auto_stop", json!(true), Called("-s -o")),
        mpvpaper("layer", json!("top"), Called("-l top -o")),
        mpvpaper("slideshow_secs", json!(9), Called("-n 9 -o")),
    ]
}

fn builtin() -> Vec<Row> {
    let row = |key, (file, test)| ("backend.builtin", key, Value::Null, In(file, test));
    let pixels = "every_fit_position_and_colour_by_pixels_also_scaled_and_rotated";
    let pixels = ("tests/backends/builtin.rs", pixels);
    let told = (
        "src/backends/builtin.rs",
        "settings_are_passed_to_the_renderer",
    );
    vec![
        row("enabled", ENABLED),
        row("fit_mode", pixels),
        row("position", pixels),
        row("fill_color", pixels),
        row("transition_type", told),
        row("transition_duration", told),
        row("transition_angle", told),
        row("transition_pos", told),
        row("transition_easing", told),
        row("fps_max", told),
        row("backdrop", told),
        row("backdrop_blur", told),
        row("backdrop_dim", told),
        row(
            "animate",
            (
                "tests/backends/builtin.rs",
                "animated_pictures_play_until_the_settings_forbid_it",
            ),
        ),
    ]
}

fn wal_qt() -> Vec<Row> {
    let row = |key, value, seen| ("backend.wal-qt", key, value, seen);
    let by = |key, how: fn()| ("backend.wal-qt", key, Value::Null, By(how));
    let load = |key, value: Value, at| row(key, value.clone(), Told(LOAD, at, value));
    vec![
        by("socket_path", the_host_is_looked_for_where_it_is_said),
        by("expected_service", the_host_is_the_one_that_is_expected),
        by("expected_api_version", the_host_is_the_one_that_is_expected),
        by("connect_timeout_ms", limits),
        by("request_timeout_ms", limits),
        by("load_timeout_ms", limits),
        by("env", the_host_s_environment),
        load("transition", json!("fade"), "/transition"),
        load("duration_ms", json!(77), "/duration_ms"),
        row(
            "transition_bezier",
            json!("0,0.5,1,1"),
            Told(
                LOAD,
                "/transition_params/bezier",
                json!([0.0, 0.5, 1.0, 1.0]),
            ),
        ),
        row(
            "transition_angle_deg",
            json!(-90),
            Told(LOAD, "/transition_params/angle_deg", json!(270.0)),
        ),
        load(
            "transition_origin_x_percent",
            json!(7.5),
            "/transition_params/origin_x_percent",
        ),
        load(
            "transition_origin_y_percent",
            json!(8.5),
            "/transition_params/origin_y_percent",
        ),
        load(
            "transition_wave_amplitude_percent",
            json!(9.5),
            "/transition_params/wave_amplitude_percent",
        ),
        load(
            "transition_wave_frequency",
            json!(2.5),
            "/transition_params/wave_frequency",
        ),
        load("image_fit_mode", json!("contain"), "/image_fit_mode"),
        load("image_rendering", json!("pixelated"), "/image_rendering"),
        row(
            "fill_color",
            json!("11223344"),
            Told(LOOK, "/fill_color", json!("11223344")),
        ),
        row("video_audio_default", json!(true), In(VIDEO.0, VIDEO.1)),
        by("allow_network_wallpapers", pages_may_use_the_network),
    ]
}

fn wal_qt_parallax() -> Vec<Row> {
    let row = |key, value, seen| ("backend.wal-qt", key, value, seen);
    let load = |key, value: Value, at| row(key, value.clone(), Told(LOAD, at, value));
    vec![
        load("parallax_enabled", json!(true), "/parallax/enabled"),
        row(
            "parallax_zoom",
            json!(150),
            Told(LOAD, "/parallax/zoom", json!(1.5)),
        ),
        load(
            "parallax_step_percent",
            json!(6.5),
            "/parallax/step_percent",
        ),
        row(
            "parallax_workspace_chunk_size",
            json!(4),
            In(PARALLAX.0, PARALLAX.1),
        ),
        load("parallax_animation_ms", json!(88), "/parallax/animation_ms"),
        load("parallax_reset_ms", json!(99), "/parallax/reset_ms"),
        row(
            "parallax_easing",
            json!("0,0,1,0.5"),
            Told(LOAD, "/parallax/easing", json!([0.0, 0.0, 1.0, 0.5])),
        ),
        row(
            "parallax_compositor_driver",
            json!("off"),
            In(PARALLAX.0, PARALLAX.1),
        ),
        row(
            "parallax_direction",
            json!("vertical"),
            In(PARALLAX.0, PARALLAX.1),
        ),
    ]
}
