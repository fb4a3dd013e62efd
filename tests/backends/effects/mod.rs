//! Tests what each key of the settings does: the table has a row for every key, and each row is tried on
//! a backend, on the daemon or in the test that it names. Keys that only clients use are tested by
//! `keys.rs` (tests/config).

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use murald::internals::backends::{Backend, Kind, Placement};
use murald::internals::config::{BackendName, Section};
use serde_json::{Value, json};

use crate::desktop::Desktop;
use crate::stub::Stubs;
use crate::support::TestDaemon;
use crate::wal_qt::{forget, page, requests, routes};
use crate::wall::{BLUE, RED, Wall};

use table::Seen::{By, Called, In, NotCalled, Told};
use table::{LOOK, Row, table};

mod table;

#[test]
fn every_key_has_a_row() {
    let table = table();
    for section in Section::ALL
        .into_iter()
        .filter(|section| !section.is_client_s())
    {
        for key in section.keys() {
            let has = |row: &Row| row.0 == section.heading() && row.1 == key.name;
            assert!(
                table.iter().any(has),
                "{}.{} has no row",
                section.heading(),
                key.name
            );
        }
    }
    for (section, key, ..) in &table {
        let known = Section::ALL
            .into_iter()
            .find(|known| known.heading() == *section);
        let keys = known.map(Section::keys).unwrap_or_default();
        assert!(
            keys.iter().any(|known| known.name == *key),
            "{section}.{key} is no key"
        );
    }
}

#[test]
fn tests_named_by_the_table_exist() {
    for (section, key, _, seen) in table() {
        let In(file, test) = seen else { continue };
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
        let body = text.split(&format!("fn {test}()")).nth(1);
        let body = body.unwrap_or_else(|| panic!("{file} has no test {test}"));
        let body = body.split("#[test]").next().unwrap();
        assert!(
            body.contains(key),
            "{file}: {test} has nothing of {section}.{key}"
        );
    }
}

#[test]
fn settings_with_a_function_have_an_effect() {
    let mut tried: Vec<fn()> = Vec::new();
    for (.., seen) in table() {
        let By(how) = seen else { continue };
        if !tried.iter().any(|&known| std::ptr::fn_addr_eq(known, how)) {
            how();
            tried.push(how);
        }
    }
}

#[test]
fn settings_change_command_lines_and_files() {
    let stubs = Stubs::new(&["640x480"]);
    let red = stubs.wall.flat("red.png", RED);
    let video = stubs.root().join("video.mp4");
    fs::write(&video, b"\0\0\0\x18ftypisom\0\0\0\0isommp42").unwrap();
    for name in [
        BackendName::Awww,
        BackendName::Hyprpaper,
        BackendName::Mpvpaper,
    ] {
        let shows = if name == BackendName::Mpvpaper {
            &video
        } else {
            &red
        };
        let mut placements = stubs.wall.hang(&[("HEADLESS-1", shows)]);
        if name == BackendName::Mpvpaper {
            placements[0].kind = Kind::Video;
        }
        called(&stubs.wall, name, &placements, || said(&stubs));
    }
    let stubs = Stubs::on(Desktop::x11(&["640x480"]), 1);
    let red = stubs.wall.flat("red.png", RED);
    let placements = stubs.wall.hang(&[("VIRTUAL-1", &red)]);
    called(&stubs.wall, BackendName::Feh, &placements, || said(&stubs));
}

#[test]
fn settings_change_the_command_line_of_swaybg() {
    let wall = Wall::new(Desktop::wayland(&["640x480"]), 1);
    let red = wall.flat("red.png", RED);
    called(
        &wall,
        BackendName::Swaybg,
        &wall.hang(&[("HEADLESS-1", &red)]),
        || {
            let pid = wall.processes("swaybg")[0].pid;
            fs::read_to_string(format!("/proc/{pid}/cmdline"))
                .unwrap()
                .replace('\0', " ")
        },
    );
}

/// Tries the rows of a backend's command line: each must differ from the default.
fn called(wall: &Wall, name: BackendName, placements: &[Placement], said: impl Fn() -> String) {
    let mut backend = wall.backend(name);
    let mut look = || {
        backend.show(placements, &wall.cancel).unwrap();
        let said = said();
        backend.clear().unwrap();
        said
    };
    let heading = Section::BackendOptions(name).heading();
    let before = look();
    for (_, key, value, seen) in table().into_iter().filter(|row| row.0 == heading) {
        let (words, wanted) = match seen {
            Called(words) => (words, true),
            NotCalled(words) => (words, false),
            _ => continue,
        };
        wall.set_json(name.as_str(), key, value.clone());
        let now = look();
        wall.set_json(name.as_str(), key, default(&heading, key));
        assert_eq!(
            now.contains(words),
            wanted,
            "{heading}.{key} = {value}: {now}"
        );
        assert_eq!(
            before.contains(words),
            !wanted,
            "{heading}.{key} at its default: {before}"
        );
    }
}

/// Everything that backends were told since the last call: their arguments, and the file of hyprpaper.
fn said(stubs: &Stubs) -> String {
    let mut said = String::new();
    for program in [
        "awww",
        "awww-daemon",
        "feh",
        "hyprctl",
        "hyprpaper",
        "mpvpaper",
    ] {
        for call in stubs.calls(program) {
            said.push_str(&call.join(" "));
            said.push('\n');
        }
    }
    said.push_str(&stubs.note("hyprpaper-files").join("\n"));
    fs::remove_file(stubs.notes.join("hyprpaper-files")).ok();
    stubs.forget_calls();
    said
}

fn default(heading: &str, key: &str) -> Value {
    let section = Section::ALL
        .into_iter()
        .find(|section| section.heading() == heading)
        .unwrap();
    let key = section
        .keys()
        .iter()
        .find(|known| known.name == key)
        .unwrap();
    key.default.to_json().unwrap_or_default()
}

#[test]
fn host_of_wal_qt_is_sent_its_settings() {
    let (stubs, mut wal_qt, placements) = host();
    for (heading, key, value, seen) in table() {
        let Told(route, place, expected) = seen else {
            continue;
        };
        forget(&stubs);
        stubs.wall.set_json("wal-qt", key, value);
        wal_qt.show(&placements, &stubs.wall.cancel).unwrap();
        stubs.wall.set_json("wal-qt", key, default(heading, key));
        let asked = requests(&stubs);
        let body = asked
            .iter()
            .find(|(asked, _)| asked == route)
            .map(|(_, body)| body);
        let found = body.and_then(|body| body.pointer(place));
        assert_eq!(found, Some(&expected), "{heading}.{key}: {asked:?}");
    }
    wal_qt.clear().unwrap();
}

/// wal-qt with a running host and a picture shown.
fn host() -> (Stubs, Box<dyn Backend>, Vec<Placement>) {
    let stubs = Stubs::new(&["640x480"]);
    let red = stubs.wall.flat("red.png", RED);
    let placements = stubs.wall.hang(&[("HEADLESS-1", &red)]);
    let mut wal_qt = stubs.wall.backend(BackendName::WalQt);
    wal_qt.show(&placements, &stubs.wall.cancel).unwrap();
    (stubs, wal_qt, placements)
}

fn the_host_is_looked_for_where_it_is_said() {
    let (stubs, mut wal_qt, placements) = host();
    let run = stubs.root().join("run");
    symlink(run.join("wal-qt.sock"), run.join("other.sock")).unwrap();
    stubs
        .wall
        .set("wal-qt", "socket_path", "$XDG_RUNTIME_DIR/other.sock");
    wal_qt.show(&placements, &stubs.wall.cancel).unwrap();
    fs::remove_file(run.join("wal-qt.sock")).unwrap();
    stubs
        .wall
        .set("wal-qt", "socket_path", "$NOWHERE/wal-qt.sock");
    let error = wal_qt
        .show(&placements, &stubs.wall.cancel)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("socket_path") && error.contains("NOWHERE"),
        "{error}"
    );
    assert_eq!(stubs.note("wal-qt-env").len(), 1, "one host");
    wal_qt.clear().unwrap();
}

fn the_host_is_the_one_that_is_expected() {
    let (stubs, mut wal_qt, placements) = host();
    for (key, value, said) in [
        (
            "expected_service",
            "other",
            "the host is wal-qt with API version 0, not other with 0",
        ),
        (
            "expected_api_version",
            "1",
            "the host is wal-qt with API version 0, not wal-qt with 1",
        ),
    ] {
        stubs.wall.set("wal-qt", key, value);
        let error = wal_qt.show(&placements, &stubs.wall.cancel).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
        stubs
            .wall
            .set_json("wal-qt", key, default("backend.wal-qt", key));
    }
    wal_qt.show(&placements, &stubs.wall.cancel).unwrap();
    wal_qt.clear().unwrap();
}

/// On cue, the host takes 300 ms for each answer.
fn limits() {
    let (stubs, mut wal_qt, placements) = host();
    let set = |key, value: u32| stubs.wall.set_json("wal-qt", key, value.into());
    let mut looks = |key, value, cue: &str, color: &str| {
        set(key, value);
        // The settings are sent again, since the colour differs.
        stubs.wall.set("wal-qt", "fill_color", color);
        forget(&stubs);
        stubs.cue("wal-qt-host", cue);
        let shown = wal_qt.show(&placements, &stubs.wall.cancel);
        stubs.cue("wal-qt-host", "");
        (
            shown,
            routes(&stubs).iter().filter(|route| *route == LOOK).count(),
        )
    };
    assert_eq!(
        looks("request_timeout_ms", 60_000, "slow-look", "000001"),
        (Ok(()), 1)
    );
    let (shown, times) = looks("request_timeout_ms", 100, "slow-look", "000002");
    assert!(shown.is_ok() && times > 1, "asked {times} times: {shown:?}");
    assert_eq!(looks("request_timeout_ms", 60_000, "", "000003").1, 1);
    // A host that does not answer in time counts as a new one, and gets everything again.
    assert_eq!(
        looks("connect_timeout_ms", 60_000, "slow-health", "000003"),
        (Ok(()), 0)
    );
    assert_eq!(
        looks("connect_timeout_ms", 50, "slow-health", "000003"),
        (Ok(()), 1)
    );
    set("connect_timeout_ms", 60_000);
    let (shown, _) = looks("load_timeout_ms", 400, "accept-never", "000003");
    assert!(
        shown
            .unwrap_err()
            .to_string()
            .contains("not displayed within 400 ms")
    );
}

fn the_host_s_environment() {
    let (stubs, mut wal_qt, placements) = host();
    wal_qt.clear().unwrap();
    stubs
        .wall
        .set_json("wal-qt", "env", json!(["STUB_EXTRA=seven"]));
    wal_qt.show(&placements, &stubs.wall.cancel).unwrap();
    assert_eq!(stubs.note("wal-qt-env"), ["", "seven"]);
    wal_qt.clear().unwrap();
}

fn pages_may_use_the_network() {
    let (stubs, mut wal_qt, _) = host();
    let index = stubs.root().join("index.html");
    fs::write(&index, "<html>").unwrap();
    let placements = [page(&stubs, "HEADLESS-1", &index, json!({}), false)];
    for allowed in [false, true] {
        forget(&stubs);
        stubs
            .wall
            .set_json("wal-qt", "allow_network_wallpapers", json!(allowed));
        wal_qt.show(&placements, &stubs.wall.cancel).unwrap();
        let body = json!({ "allow_network_wallpapers": allowed });
        assert_eq!(requests(&stubs)[0], ("/settings/network".to_owned(), body));
    }
    wal_qt.clear().unwrap();
}

fn one_duration_for_two() {
    let (stubs, mut wal_qt, placements) = host();
    stubs
        .wall
        .patch(json!({ "backend": { "transition_duration_seconds": 7.5 } }));
    forget(&stubs);
    wal_qt.show(&placements, &stubs.wall.cancel).unwrap();
    assert_eq!(requests(&stubs)[0].1["duration_ms"], 7500);
    wal_qt.clear().unwrap();
    let mut awww = stubs.wall.backend(BackendName::Awww);
    let blue: PathBuf = stubs.wall.flat("blue.png", BLUE);
    awww.show(
        &stubs.wall.hang(&[("HEADLESS-1", &blue)]),
        &stubs.wall.cancel,
    )
    .unwrap();
    assert!(said(&stubs).contains("--transition-duration=7.5"));
    awww.clear().unwrap();
}

/// Both a Wayland compositor and an X server run, as with Xwayland.
fn the_compositor_is_the_one_that_is_named() {
    let (wayland, x11) = (Desktop::wayland(&["640x480"]), Desktop::x11(&["640x480"]));
    for (name, monitor) in [
        ("auto", "HEADLESS-1"),
        ("wayland", "HEADLESS-1"),
        ("x11", "VIRTUAL-1"),
    ] {
        let mut daemon = TestDaemon::on(&wayland);
        daemon.env("DISPLAY", x11.var("DISPLAY").unwrap());
        daemon.configure(&format!("[daemon]\ncompositor = '{name}'\n"));
        daemon.start();
        let found = daemon.client().get("/monitors").ok();
        let names: Vec<_> = found
            .as_array()
            .unwrap()
            .iter()
            .map(|found| &found["name"])
            .collect();
        assert_eq!(names, [monitor], "{name}");
        assert_eq!(daemon.stop(), Some(0));
    }
}
