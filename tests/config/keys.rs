//! Every setting with its default, written down a second time: the schema cannot lose, change or gain
//! one by mistake.

use murald::internals::config::{Config, Section};
use serde_json::{Value, json};

use crate::support::Watched;

/// Each section with its keys and defaults; null means unset.
fn table() -> Vec<(&'static str, Value)> {
    vec![
        (
            "app",
            json!({
                "kill_daemon_on_exit": false,
                "notifications": true,
                "start_minimized": false,
                "minimize_instead_of_close": false,
                "show_monitor_modal_on_start": true,
                "startup_intro": true,
                "images_per_page": 50,
                "theme": "dark",
                "font_preset": "bundled",
                "font_family_body": "",
                "font_family_display": "",
                "font_family_mono": "",
                "image_history_limit": 100,
                "sort_by": "imported_at",
                "sort_order": "desc",
            }),
        ),
        ("workspaces", json!({})),
        (
            "library",
            json!({"watch": [], "watch_folders": true, "exclude": []}),
        ),
        (
            "daemon",
            json!({
                "images_dir": "$XDG_DATA_HOME/murald/images",
                "thumbnails_dir": "$XDG_CACHE_HOME/murald/thumbnails",
                "database_dir": "$XDG_DATA_HOME/murald/db",
                "socket_path": socket(),
                "log_level": "info",
                "log_file": "$XDG_DATA_HOME/murald/daemon.log",
                "log_max_size_mb": 10,
                "log_max_backups": 3,
                "compositor": "auto",
            }),
        ),
        (
            "backend",
            json!({"type": "awww", "selection_mode": "fixed", "transition_duration_seconds": null}),
        ),
        (
            "backend.auto_priorities",
            json!({
                "image": ["awww", "hyprpaper", "swaybg", "feh", "wal-qt"],
                "video": ["mpvpaper", "wal-qt"],
                "web": ["wal-qt"],
            }),
        ),
        (
            "backend.awww",
            json!({
                "transition_type": "wipe",
                "transition_step": 90,
                "transition_duration": 3,
                "transition_fps": 60,
                "transition_angle": 45,
                "transition_pos": "center",
                "transition_bezier": "0.25,0.1,0.25,1.0",
                "transition_wave": "20,20",
                "resize": "crop",
                "fill_color": "000000",
                "filter_type": "Lanczos3",
                "invert_y": false,
                "daemon_format": "",
            }),
        ),
        (
            "backend.feh",
            json!({"mode": "fill", "fill_color": "000000"}),
        ),
        (
            "backend.hyprpaper",
            json!({"fit_mode": "cover", "config_path": ""}),
        ),
        (
            "backend.mpvpaper",
            json!({
                "mpv_options": "loop",
                "verbose": 0,
                "auto_pause": false,
                "auto_stop": false,
                "layer": "",
                "slideshow_secs": 0,
            }),
        ),
        (
            "backend.swaybg",
            json!({"fit_mode": "fill", "fill_color": "000000"}),
        ),
        ("backend.wal-qt", wal_qt()),
        (
            "backend.builtin",
            json!({
                "enabled": true,
                "fit_mode": "cover",
                "position": "center",
                "fill_color": "000000",
                "transition_type": "fade",
                "transition_duration": 0.6,
                "transition_angle": 45,
                "transition_pos": "center",
                "transition_easing": "ease-out",
                "fps_max": 60,
                "animate": true,
                "backdrop": "none",
                "backdrop_blur": 24,
                "backdrop_dim": null,
            }),
        ),
        ("location", json!({"latitude": null, "longitude": null})),
        (
            "hooks",
            json!({"wallpaper_changed": "", "timeout_seconds": 60}),
        ),
        (
            "power",
            json!({
                "pause_on_battery": false,
                "pause_when_locked": false,
                "pause_when_idle": false,
                "pause_when_covered": false,
                "max_child_memory_mb": 0,
            }),
        ),
        ("desktop", json!({"stills": "auto"})),
        (
            "monitors",
            json!({"selected_monitors": [], "image_set_type": "individual"}),
        ),
        (
            "remote_gallery",
            json!({
                "enabled": false,
                "api_key": "",
                "scroll_mode": "paginated",
                "blur_nsfw_thumbnails": true,
            }),
        ),
    ]
}

/// The graphical client reads the path from the file and expands only `~`.
fn socket() -> Value {
    match std::env::var("XDG_RUNTIME_DIR") {
        Ok(directory) => json!(format!("{directory}/murald.sock")),
        Err(_) => Section::Daemon
            .key("socket_path")
            .unwrap()
            .default
            .to_json()
            .unwrap(),
    }
}

fn wal_qt() -> Value {
    json!({
        "socket_path": "$XDG_RUNTIME_DIR/wal-qt.sock",
        "expected_service": "wal-qt",
        "expected_api_version": "0",
        "connect_timeout_ms": 500,
        "request_timeout_ms": 1500,
        "load_timeout_ms": 15000,
        "env": [],
        "transition": "none",
        "duration_ms": 300,
        "transition_bezier": "0.54,0,0.34,0.99",
        "transition_angle_deg": 0,
        "transition_origin_x_percent": 50,
        "transition_origin_y_percent": 50,
        "transition_wave_amplitude_percent": 5,
        "transition_wave_frequency": 3,
        "image_fit_mode": "cover",
        "image_rendering": "auto",
        "fill_color": "000000ff",
        "video_audio_default": false,
        "allow_network_wallpapers": false,
        "parallax_enabled": false,
        "parallax_zoom": 120,
        "parallax_step_percent": 5,
        "parallax_workspace_chunk_size": 10,
        "parallax_animation_ms": 600,
        "parallax_reset_ms": 400,
        "parallax_easing": "0.215,0.610,0.355,1.000",
        "parallax_compositor_driver": "auto",
        "parallax_direction": "horizontal",
    })
}

#[test]
fn every_config_key_has_a_row() {
    let defaults = Config::default();
    for section in Section::ALL {
        let heading = section.heading();
        let (_, row) = table()
            .into_iter()
            .find(|(name, _)| *name == heading)
            .expect("a row");
        let row = row.as_object().unwrap();
        let keys: Vec<_> = section.keys().iter().map(|key| key.name).collect();
        assert_eq!(keys, row.keys().collect::<Vec<_>>(), "{heading}");
        let shown = defaults.section(section);
        for (name, default) in row {
            assert_eq!(
                shown.get(name).unwrap_or(&Value::Null),
                default,
                "{heading}.{name}"
            );
        }
    }
    assert_eq!(table().len(), Section::ALL.len());
}

/// The daemon stores settings of clients unchanged, whatever their values.
#[test]
fn client_keys_of_the_config_are_stored() {
    let room = Watched::new();
    for section in Section::ALL
        .into_iter()
        .filter(|section| section.is_client_s())
    {
        for key in section.keys() {
            let other = match key.default.to_json().unwrap() {
                Value::Bool(flag) => json!(!flag),
                Value::Number(_) => json!(-7),
                Value::String(_) => json!("something # else"),
                _ => json!(["DP-1", "HDMI-A-1"]),
            };
            let body = json!({ key.name: other });
            room.handle
                .patch_section(section, body.as_object().unwrap())
                .unwrap();
            assert_eq!(
                room.handle.current().section(section)[key.name],
                other,
                "{}",
                key.name
            );
        }
    }
}
