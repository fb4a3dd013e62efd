//! Runs a real daemon on a real desktop, with stand-ins for its backends.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::desktop::{Desktop, wait_until};
use crate::hangs::recorded;
use crate::stub;
use crate::support::TestDaemon;
use crate::support::client::Events;

/// A daemon whose backend is a stand-in.
pub struct Hosted {
    pub desktop: Desktop,
    pub daemon: TestDaemon,
    pub notes: PathBuf,
    // Last, because a daemon that still runs would start them again.
    _stand_ins: StandIns,
}

/// Backends outlive the daemon; dropping this kills those that belong to these notes.
struct StandIns(PathBuf);

impl Hosted {
    /// A daemon with the stand-in for wal-qt's host.
    pub fn new(outputs: &[&str], settings: &str, env: &[(&str, &str)]) -> Self {
        Self::with("wal-qt", &["wal-qt-host"], outputs, settings, env)
    }

    pub fn with(
        backend: &str,
        programs: &[&str],
        outputs: &[&str],
        settings: &str,
        env: &[(&str, &str)],
    ) -> Self {
        let desktop = Desktop::wayland(outputs);
        let mut daemon = TestDaemon::on(&desktop);
        let notes = daemon.root().join("notes");
        fs::create_dir_all(notes.join("calls")).unwrap();
        fs::write(notes.join("outputs"), "HEADLESS-1\nHEADLESS-2\n").unwrap();
        let runtime = Path::new(desktop.var("XDG_RUNTIME_DIR").unwrap());
        for program in programs {
            daemon.stub(program, &stub::script(program, &notes, runtime));
        }
        daemon.configure(&format!(
            "[backend]\ntype = '{backend}'\n[backend.{backend}]\n{settings}\n"
        ));
        for (name, value) in env {
            daemon.env(name, value);
        }
        daemon.start();
        Self {
            desktop,
            daemon,
            _stand_ins: StandIns(notes.clone()),
            notes,
        }
    }

    /// Makes the session look like a Hyprland that runs as long as the test.
    pub fn become_hyprland(&self) {
        let runtime = Path::new(self.desktop.var("XDG_RUNTIME_DIR").unwrap());
        let instance = runtime.join("hypr/sig");
        fs::create_dir_all(&instance).unwrap();
        let display = self.desktop.var("WAYLAND_DISPLAY").unwrap();
        let lock = format!("{}\n{display}\n", std::process::id());
        fs::write(instance.join("hyprland.lock"), lock).unwrap();
    }

    /// Sets what a program does wrong from now on; nothing if empty.
    pub fn cue(&self, name: &str, what: &str) {
        fs::write(self.notes.join(format!("cue-{name}")), what).unwrap();
    }

    pub fn picture(&self, name: &str) -> i64 {
        let path = self.daemon.root().join(name);
        // Two pictures with the same content would be one image.
        let color = [name.as_bytes()[0], name.as_bytes()[1], 199];
        image::RgbImage::from_pixel(640, 360, image::Rgb(color))
            .save(&path)
            .unwrap();
        self.daemon.import(&[&path])[0]
    }

    pub fn page(&self, direction: &str) -> i64 {
        let root = self.daemon.root().join("page");
        fs::create_dir(&root).unwrap();
        let manifest = json!({
            "title": "Rain", "parallax_direction": direction,
            "wallpaper_config": { "speed": { "default": 2, "max": 10 } },
        });
        fs::write(root.join("waypaper.json"), manifest.to_string()).unwrap();
        fs::write(root.join("index.html"), "<html>").unwrap();
        let answer = self
            .daemon
            .client()
            .post("/images/import-web", &json!({ "path": root }))
            .ok();
        answer["id"].as_i64().unwrap()
    }

    pub fn set(&self, body: &Value) {
        self.daemon.client().post("/wallpaper/set", body).ok();
    }

    /// The POST requests to the host: routes and bodies.
    pub fn requests(&self) -> Vec<(String, Value)> {
        let text = fs::read_to_string(self.notes.join("wal-qt-requests")).unwrap_or_default();
        let parse = |line: &str| {
            let (route, body) = line.strip_prefix("POST ")?.split_once(' ')?;
            Some((route.to_owned(), serde_json::from_str(body).ok()?))
        };
        text.lines().filter_map(parse).collect()
    }

    /// How often a program was started.
    pub fn starts(&self, program: &str) -> usize {
        let calls = fs::read_dir(self.notes.join("calls")).unwrap().flatten();
        let is_its = |name: &std::ffi::OsStr| {
            Path::new(name)
                .file_stem()
                .is_some_and(|stem| stem == program)
        };
        calls.filter(|call| is_its(&call.file_name())).count()
    }

    pub fn forget(&self) {
        fs::remove_file(self.notes.join("wal-qt-requests")).ok();
    }
}

impl Drop for StandIns {
    fn drop(&mut self) {
        let notes = format!("STUB_NOTES={}", self.0.display());
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            if environment
                .split(|&byte| byte == 0)
                .any(|one| one == notes.as_bytes())
            {
                let pid = entry.file_name();
                Command::new("kill")
                    .arg("-9")
                    .arg(pid)
                    .stderr(Stdio::null())
                    .status()
                    .ok();
            }
        }
    }
}

/// Tests what a client sees when a stand-in fails: at its start, and while a picture is shown.
fn mishaps(hosted: &Hosted, start: (&str, &str, &str), others: &[(&str, &str, &str)]) {
    let contents = [hosted.picture("one.png"), hosted.picture("other.png")];
    mishaps_with(hosted, contents, start, others);
}

fn mishaps_with(
    hosted: &Hosted,
    [one, other]: [i64; 2],
    start: (&str, &str, &str),
    others: &[(&str, &str, &str)],
) {
    let client = hosted.daemon.client();
    let set = |id| client.post("/wallpaper/set", &json!({ "image_id": id }));
    let mut events = hosted.daemon.events("wallpaper_apply_failed");
    let mut fails = |(program, cue, said): (&str, &str, &str), id: i64| {
        hosted.cue(program, cue);
        let answer = set(id).fails(500);
        hosted.cue(program, "");
        let details = answer["details"].as_str().unwrap();
        assert!(details.contains(said), "{program} {cue}: {answer}");
        let (kind, event) = events.next();
        assert_eq!(
            (kind.as_str(), &event["image_id"]),
            ("wallpaper_apply_failed", &json!(id))
        );
        assert_eq!(event["error"], details);
        assert_eq!(
            event["backend"],
            client.get("/config").ok()["backend"]["type"]
        );
    };
    let hangs = || {
        client
            .get("/wallpaper/current")
            .ok()
            .get("image_id")
            .cloned()
    };
    fails(start, one);
    assert_eq!(hangs(), None);
    set(one).ok();
    for &mishap in others {
        fails(mishap, other);
        assert_eq!(hangs(), Some(json!(one)));
    }
    set(other).ok();
    assert_eq!(hangs(), Some(json!(other)));
}

#[test]
fn failures_of_wal_qt_reach_the_client() {
    let hosted = Hosted::new(&["640x480"], "", &[]);
    let host = "wal-qt-host";
    mishaps(
        &hosted,
        (host, "die", "something is missing"),
        &[
            (host, "fail", "HEADLESS-1: no picture"),
            (host, "accept-fail", "HEADLESS-1: no picture"),
            (host, "refuse", "422: it will not"),
            (host, "garbage", "invalid JSON"),
        ],
    );
}

#[test]
fn failures_of_awww_reach_the_client() {
    let hosted = Hosted::with("awww", &["awww", "awww-daemon"], &["640x480"], "", &[]);
    mishaps(
        &hosted,
        ("awww-daemon", "die", "failed to connect to wayland"),
        &[
            ("awww", "fail", "it went wrong"),
            ("awww", "garbage", "does not know the output"),
        ],
    );
}

#[test]
fn failures_of_hyprpaper_reach_the_client() {
    let env = [("HYPRLAND_INSTANCE_SIGNATURE", "sig")];
    let programs = ["hyprpaper", "hyprctl"];
    let hosted = Hosted::with("hyprpaper", &programs, &["640x480"], "", &env);
    hosted.become_hyprland();
    mishaps(
        &hosted,
        ("hyprpaper", "die", "something is missing"),
        &[("hyprctl", "refuse", "it will not")],
    );
}

#[test]
fn hyprpaper_is_skipped_without_hyprland() {
    let env = [("HYPRLAND_INSTANCE_SIGNATURE", "sig")];
    let programs = ["hyprpaper", "hyprctl"];
    let hosted = Hosted::with("hyprpaper", &programs, &["640x480"], "", &env);
    let printed = |verb: &str| {
        String::from_utf8(hosted.daemon.murald(&[verb]).output().unwrap().stdout).unwrap()
    };
    let state = || {
        let list = hosted.daemon.client().get("/backends").ok();
        let all = list.as_array().unwrap().iter();
        let its = all
            .filter(|one| one["name"] == "hyprpaper")
            .collect::<Vec<_>>()[0];
        json!([its["installed"], its["available"], its["active"]])
    };
    hosted.set(&json!({ "image_id": hosted.picture("one.png") }));
    assert_eq!(state(), json!([true, false, false]));
    assert!(printed("backends").contains("Hyprland only"));
    let warnings = || hosted.daemon.client().get("/config").ok()["warnings"].to_string();
    let told = "backend.type: hyprpaper works on Hyprland only; using builtin";
    assert!(warnings().contains(told), "{}", warnings());
    recorded(&hosted, "builtin-1.json");
    let examined = printed("doctor");
    assert!(
        examined.contains("using builtin; set backend.type to builtin"),
        "{examined}"
    );
    hosted.become_hyprland();
    // While builtin draws, another backend waits for the next start or for this.
    let activate = "/backends/hyprpaper/activate";
    hosted.daemon.client().post(activate, &json!({})).ok();
    hosted.set(&json!({ "image_id": hosted.picture("two.png") }));
    assert_eq!(state(), json!([true, true, true]));
    assert!(!warnings().contains("backend.type"), "{}", warnings());
}

#[test]
fn failures_of_mpvpaper_reach_the_client() {
    let hosted = Hosted::with("mpvpaper", &["mpvpaper"], &["640x480"], "", &[]);
    let videos = videos(&hosted);
    mishaps_with(
        &hosted,
        videos,
        ("mpvpaper", "die", "something is missing"),
        &[],
    );
    // mpvpaper cannot show a still.
    let still = hosted.picture("one.png");
    let refused = hosted
        .daemon
        .client()
        .post("/wallpaper/set", &json!({ "image_id": still }));
    let refused = refused.fails(400);
    assert_eq!(refused["error_code"], "incompatible_backend");
    assert_eq!(refused["meta"]["backend"], "mpvpaper");
}

#[test]
fn backend_that_does_not_start_is_retried_and_reported_once() {
    let mut hosted = Hosted::new(&["640x480"], "", &[]);
    let id = hosted.picture("one.png");
    hosted.set(&json!({ "image_id": id }));
    let kill = |hosted: &Hosted| {
        let pids = fs::read_to_string(hosted.notes.join("wal-qt-pid")).unwrap();
        hosted
            .desktop
            .output("kill", &["-9", pids.lines().last().unwrap()]);
    };
    // The host exits while the daemon is stopped, and does not start at once.
    assert_eq!(hosted.daemon.stop(), Some(0));
    kill(&hosted);
    hosted.cue("wal-qt-host", "die");
    let before = hosted.starts("wal-qt-host");
    hosted.daemon.start();
    let types = "wallpaper_restore_failed,backend_unavailable,wallpaper_changed";
    let mut events = hosted.daemon.events(types);
    is_out(&hosted, &mut events, id, before);
    // The next outage is reported again.
    hosted.cue("wal-qt-host", "die");
    let before = hosted.starts("wal-qt-host");
    kill(&hosted);
    is_out(&hosted, &mut events, id, before);
}

/// Follows an outage of the host from its first event to its end.
fn is_out(hosted: &Hosted, events: &mut Events, image: i64, before: usize) {
    // The first start, and two retries.
    wait_until("the third try", || {
        hosted.starts("wal-qt-host") >= before + 3
    });
    hosted.cue("wal-qt-host", "");
    let (kind, failed) = events.next();
    assert_eq!(
        (&*kind, &failed["backend"]),
        ("wallpaper_restore_failed", &json!("wal-qt"))
    );
    let (kind, trouble) = events.next();
    assert_eq!(
        (&*kind, &trouble["backend"]),
        ("backend_unavailable", &json!("wal-qt"))
    );
    assert_eq!(trouble["retrying"], true);
    // Nothing else was reported about these tries.
    let (kind, back) = events.next();
    assert_eq!(
        (&*kind, &back["source"]),
        ("wallpaper_changed", &json!("restore"))
    );
    assert_eq!(back["image_id"], image);
}

/// Two videos in the library.
pub fn videos(hosted: &Hosted) -> [i64; 2] {
    ["red", "blue"].map(|color| {
        let path = hosted.daemon.root().join(format!("{color}.mp4"));
        let source = format!("color={color}:s=64x36:d=1");
        let mut ffmpeg = Command::new("ffmpeg");
        ffmpeg.args(["-nostdin", "-v", "error", "-f", "lavfi", "-i", &source]);
        assert!(ffmpeg.arg(&path).status().unwrap().success());
        hosted.daemon.import(&[&path])[0]
    })
}

#[test]
fn backend_for_videos_is_used_as_soon_as_it_is_installed() {
    // awww is not installed, and feh does not draw on Wayland.
    let mut hosted = Hosted::with("awww", &["feh"], &["640x480"], "", &[]);
    let [video, _] = videos(&hosted);
    let picture = hosted.picture("red.png");
    hosted.set(&json!({ "image_id": picture }));
    let body = json!({ "image_id": video });
    let refused = hosted.daemon.client().post("/wallpaper/set", &body);
    refused.fails(400);
    let runtime = Path::new(hosted.desktop.var("XDG_RUNTIME_DIR").unwrap());
    let script = stub::script("mpvpaper", &hosted.notes, runtime);
    hosted.daemon.stub("mpvpaper", &script);
    let shown = hosted.daemon.client().post("/wallpaper/set", &body).ok();
    assert_eq!(shown["backend"], "mpvpaper");
}

#[test]
fn shown_page_gets_changed_settings() {
    let hosted = Hosted::new(&["640x480"], "", &[]);
    let page = hosted.page("vertical");
    hosted.set(&json!({ "image_id": page }));
    let loads =
        |asked: &[(String, Value)]| asked.iter().any(|(route, _)| route == "/wallpaper/load");
    assert!(loads(&hosted.requests()));
    let client = hosted.daemon.client();
    let entry = client.get(&format!("/images/{page}")).ok()["web_meta"]["entry_path"].clone();
    let told = |change: Value, route: &str, field: &str, value: Value| {
        hosted.forget();
        client.patch(&format!("/images/{page}"), &change).ok();
        wait_until(route, || !hosted.requests().is_empty());
        let expected = json!({ "source_target": entry, field: value });
        assert_eq!(hosted.requests(), [(route.to_owned(), expected)]);
    };
    let values = json!({ "speed": 7 });
    let change = json!({ "wallpaper_config_overrides": values });
    told(change, "/wallpaper/config", "values", values);
    let change = json!({ "web_capabilities": { "keyboard": true } });
    let allowed =
        json!({ "pointer_interactive": false, "keyboard": true, "audio_reactive": false });
    told(change, "/wallpaper/capabilities", "capabilities", allowed);
    // A restarted host gets all of this with the page.
    hosted.forget();
    let mut events = hosted.daemon.events("wallpaper_changed");
    let pid = fs::read_to_string(hosted.notes.join("wal-qt-pid")).unwrap();
    hosted.desktop.output("kill", &["-9", pid.trim()]);
    events.wait_for("wallpaper_changed");
    let asked = hosted.requests();
    let load = asked
        .iter()
        .find(|(route, _)| route == "/wallpaper/load")
        .unwrap();
    assert_eq!(load.1["wallpaper_config_values"], json!({ "speed": 7 }));
}

#[test]
fn host_of_a_shown_page_shows_all_monitors() {
    let hosted = Hosted::new(&["640x480", "640x480"], "", &[]);
    let client = hosted.daemon.client();
    let auto = json!({ "selection_mode": "auto", "auto_priorities": { "image": ["swaybg"] } });
    client.patch("/config", &json!({ "backend": auto })).ok();
    let (red, blue) = (hosted.picture("one.png"), hosted.picture("two.png"));
    let page = hosted.page("vertical");
    let set = |id: i64, monitors: Value| {
        client
            .post(
                "/wallpaper/set",
                &json!({ "image_id": id, "monitors": monitors }),
            )
            .ok()
    };
    let shown_by = |expected: &str| {
        wait_until(expected, || {
            let current = client.get("/wallpaper/current").ok();
            let mut monitors = current["monitors"].as_array().unwrap().iter();
            monitors.all(|monitor| monitor["backend"] == expected)
        });
    };
    let is_swaybg_there = || {
        let murald = Path::new(hosted.desktop.var("XDG_RUNTIME_DIR").unwrap()).join("murald");
        let backends = fs::read_dir(murald)
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        backends.join("swaybg-1.json").exists()
    };
    assert_eq!(set(red, json!([]))["backend"], "swaybg");
    set(page, json!(["HEADLESS-1"]));
    shown_by("wal-qt");
    wait_until("the end of what is covered", || !is_swaybg_there());
    let loads = hosted.requests();
    let loads = loads.iter().filter(|(route, _)| route == "/wallpaper/load");
    let of = |body: &Value| json!([body["kind"], body["targets"][0]["name"]]);
    let loads: Vec<Value> = loads.map(|(_, body)| of(body)).collect();
    assert_eq!(
        loads,
        [json!(["web", "HEADLESS-1"]), json!(["image", "HEADLESS-2"])]
    );
    let answer = set(blue, json!(["HEADLESS-2"]));
    assert_eq!(
        (&answer["backend"], answer.get("warnings")),
        (&json!("wal-qt"), None)
    );
    // No HTML wallpaper is left, so the host ends.
    assert_eq!(set(red, json!(["HEADLESS-1"]))["backend"], "swaybg");
    shown_by("swaybg");
}

/// Videos and HTML wallpapers get their stills from the real ffmpeg; the stand-in shows both.
#[test]
fn animated_image_has_a_still_before_its_event() {
    let hosted = Hosted::new(&["640x360"], "", &[]);
    let daemon = &hosted.daemon;
    let video = daemon.root().join("video.mp4");
    let made = Command::new("ffmpeg")
        .args([
            "-nostdin",
            "-v",
            "error",
            "-f",
            "lavfi",
            "-i",
            "color=0x1ec81e:s=320x180:r=30:d=2",
        ])
        .args([
            "-c:v",
            "libx264",
            "-preset",
            "ultrafast",
            "-pix_fmt",
            "yuv420p",
        ])
        .arg(&video)
        .status();
    assert!(made.unwrap().success());
    let video = daemon.import(&[&video])[0];
    let page = hosted.page("none");
    let link = daemon.root().join(".local/state/murald/current/HEADLESS-1");
    let mut events = daemon.events("wallpaper_changed");
    for (id, size) in [(video, (320, 180)), (page, (480, 270)), (video, (320, 180))] {
        daemon
            .client()
            .post("/wallpaper/set", &json!({ "image_id": id }))
            .ok();
        assert_eq!(events.wait_for("wallpaper_changed")["image_id"], id);
        let still = fs::read_link(&link).unwrap();
        assert_eq!(
            still.parent().unwrap(),
            daemon.root().join(".local/state/murald/stills")
        );
        let picture = image::open(&still).unwrap().into_rgb8();
        assert_eq!(picture.dimensions(), size);
        if id == video {
            let [r, g, b] = picture.get_pixel(160, 90).0;
            assert!(r < 60 && g > 170 && b < 60, "{r} {g} {b}");
        }
    }
}
