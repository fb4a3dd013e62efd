//! Tests backends that hang, with a real daemon: other monitors are not affected.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::{Value, json};

use crate::desktop::wait_until;
use crate::hosted::{Hosted, videos};

#[test]
fn backend_that_hangs_at_its_start_blocks_no_other_request() {
    let mut hosted = Hosted::with(
        "hyprpaper",
        &["hyprpaper", "hyprctl"],
        &["640x480"],
        "",
        &[("HYPRLAND_INSTANCE_SIGNATURE", "sig")],
    );
    hosted.become_hyprland();
    let id = hosted.picture("one.png");
    hosted.cue("hyprpaper", "hang");
    let mut asks = UnixStream::connect(hosted.daemon.socket()).unwrap();
    let body = json!({ "image_id": id }).to_string();
    let length = body.len();
    write!(
        asks,
        "POST /wallpaper/set HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let started = || hosted.daemon.log().contains("started hyprpaper");
    wait_until("its start", started);
    for path in [
        "/healthz",
        "/images",
        "/monitors",
        "/wallpaper/current",
        "/backends",
    ] {
        hosted.daemon.client().get(path).ok();
    }
    asks.set_nonblocking(true).unwrap();
    let unanswered = asks.read(&mut [0]).expect_err("nobody had to wait for it");
    assert_eq!(unanswered.kind(), ErrorKind::WouldBlock);
    hosted.daemon.ends_well();
}

#[test]
fn backend_that_hangs_blocks_no_other_monitor() {
    let outputs = ["640x480", "640x480", "640x480"];
    let hosted = Hosted::with("mpvpaper", &["mpvpaper"], &outputs, "", &[]);
    hosted
        .daemon
        .client()
        .patch(
            "/config",
            &json!({ "backend": { "selection_mode": "auto" } }),
        )
        .ok();
    let (red, blue, [video, _]) = (
        hosted.picture("one.png"),
        hosted.picture("two.png"),
        videos(&hosted),
    );
    hosted.set(&json!({ "image_id": red }));
    hosted.cue("mpvpaper", "hang");
    let client = hosted.daemon.client();
    let set = |id: i64, monitor: &str| {
        client.post(
            "/wallpaper/set",
            &json!({ "image_id": id, "monitor": monitor }),
        )
    };
    std::thread::scope(|scope| {
        let hangs = scope.spawn(|| set(video, "HEADLESS-1"));
        wait_until("its start", || hosted.starts("mpvpaper") == 1);
        // Requests for the same monitor wait; those for others overtake them.
        let waits = scope.spawn(|| set(blue, "HEADLESS-1"));
        // One is enough: on a busy machine more would take as long as the video may hang.
        assert_eq!(set(blue, "HEADLESS-2").ok()["status"], "set");
        assert!(!hangs.is_finished() && !waits.is_finished());
        let error = hangs.join().unwrap().fails(500);
        assert!(
            error["details"].as_str().unwrap().contains("HEADLESS-1"),
            "{error}"
        );
        assert_eq!(waits.join().unwrap().ok()["status"], "set");
    });
    let current = client.get("/wallpaper/current").ok();
    let all = current["monitors"].as_array().unwrap().iter();
    let shown: Vec<&Value> = all.map(|monitor| &monitor["image_id"]).collect();
    assert_eq!(shown, [&json!(blue), &json!(blue), &json!(red)]);
}

#[test]
fn video_that_hangs_at_the_start_blocks_no_other_backend() {
    let outputs = ["640x480", "640x480"];
    let mut hosted = Hosted::with("mpvpaper", &["mpvpaper"], &outputs, "", &[]);
    hosted
        .daemon
        .client()
        .patch(
            "/config",
            &json!({ "backend": {
                "selection_mode": "auto", "auto_priorities": { "image": ["swaybg"] },
            } }),
        )
        .ok();
    let [video, _] = videos(&hosted);
    let still = hosted.picture("one.png");
    hosted.set(&json!({ "image_id": video, "monitor": "HEADLESS-1" }));
    hosted.set(&json!({ "image_id": still, "monitor": "HEADLESS-2" }));
    let pids = ["mpvpaper@HEADLESS-1-1.json", "swaybg-1.json"].map(|name| recorded(&hosted, name));
    assert_eq!(hosted.daemon.stop(), Some(0));
    hosted.cue("mpvpaper", "hang");
    for pid in pids {
        hosted.desktop.output("kill", &["-9", &pid]);
    }
    hosted.daemon.start();
    wait_until("the still", || {
        let png = hosted.daemon.root().join("shot.png");
        hosted.desktop.shot(&png, "HEADLESS-2");
        let seen = image::open(&png).unwrap().into_rgb8();
        let wanted = [b'o', b'n', 199];
        seen.get_pixel(320, 240)
            .0
            .iter()
            .zip(wanted)
            .all(|(one, other)| one.abs_diff(other) <= 4)
    });
    assert!(
        !hosted
            .daemon
            .log()
            .contains("did not start playing in time"),
        "the video hangs still"
    );
}

#[test]
fn video_that_hangs_blocks_no_other_monitor_of_its_backend() {
    let outputs = ["640x480", "640x480", "640x480"];
    let mut hosted = Hosted::with("mpvpaper", &["mpvpaper"], &outputs, "", &[]);
    let [red, blue] = videos(&hosted);
    let client = hosted.daemon.client();
    let mut events = hosted.daemon.events("wallpaper_changed");
    let set = |image: i64, monitors: Value| {
        client.post(
            "/wallpaper/set",
            &json!({ "image_id": image, "monitors": monitors }),
        )
    };
    set(red, json!(["HEADLESS-2", "HEADLESS-3"])).ok();
    assert_eq!(
        events.wait_for("wallpaper_changed")["monitors"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let starts = || fs::read_dir(hosted.notes.join("calls")).unwrap().count();
    assert_eq!(starts(), 2);
    hosted.cue("mpvpaper", "hang");
    std::thread::scope(|scope| {
        let hangs = scope.spawn(|| set(red, json!(["HEADLESS-1"])));
        wait_until("the start", || starts() == 3);
        for id in [blue, red, blue] {
            assert_eq!(set(id, json!(["HEADLESS-2"])).ok()["status"], "set");
        }
        assert_eq!(
            set(blue, json!(["HEADLESS-2", "HEADLESS-3"])).ok()["status"],
            "set"
        );
        assert!(!hangs.is_finished());
        let error = hangs.join().unwrap().fails(500);
        assert!(
            error["details"].as_str().unwrap().contains("HEADLESS-1"),
            "{error}"
        );
    });
    assert_eq!(starts(), 3, "the others were told by a word");

    // If one of two monitors fails, the other goes back to its old picture. The failed one was never
    // announced there, so its return is no event.
    hosted.cue("mpvpaper", "die");
    let mut events = hosted
        .daemon
        .events("wallpaper_changed,wallpaper_apply_failed");
    set(red, json!(["HEADLESS-1", "HEADLESS-2"])).fails(500);
    assert_eq!(events.next().0, "wallpaper_apply_failed");
    hosted.cue("mpvpaper", "");
    set(red, json!(["HEADLESS-3"])).ok();
    let next = events.next();
    assert_eq!(next.1["monitors"], json!(["HEADLESS-3"]), "{next:?}");
    let client = hosted.daemon.client();
    let current = client.get("/wallpaper/current").ok();
    let shown = |at: usize| current["monitors"][at]["image_id"].clone();
    assert_eq!([shown(0), shown(1)], [json!(blue), json!(red)]);

    // The same when the video is restored after a start.
    set(blue, json!(["HEADLESS-3"])).ok();
    set(red, json!(["HEADLESS-1"])).ok();
    let pid = recorded(&hosted, "mpvpaper@HEADLESS-1-1.json");
    assert_eq!(hosted.daemon.stop(), Some(0));
    hosted.cue("mpvpaper", "hang");
    // It may have exited by itself.
    hosted
        .desktop
        .command("kill")
        .args(["-9", &pid])
        .output()
        .unwrap();
    hosted.daemon.start();
    let starts = || fs::read_dir(hosted.notes.join("calls")).unwrap().count();
    wait_until("the start", || starts() == 6);
    let client = hosted.daemon.client();
    let set = |image: i64, monitor: &str| {
        client
            .post(
                "/wallpaper/set",
                &json!({ "image_id": image, "monitor": monitor }),
            )
            .ok()
    };
    assert_eq!(set(red, "HEADLESS-2")["status"], "set");
    let current = client.get("/wallpaper/current").ok();
    let all = current["monitors"].as_array().unwrap().iter();
    let shown: Vec<&Value> = all.map(|monitor| &monitor["image_id"]).collect();
    assert_eq!(shown, [&json!(red), &json!(red), &json!(blue)]);
    assert_eq!(starts(), 6);
}

/// The recorded process of a backend: the second line of its record is its `/proc/self/stat`.
pub fn recorded(hosted: &Hosted, name: &str) -> String {
    let murald = Path::new(hosted.desktop.var("XDG_RUNTIME_DIR").unwrap()).join("murald");
    let backends = fs::read_dir(murald)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let text = fs::read_to_string(backends.join(name)).unwrap();
    text.lines()
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .to_owned()
}
