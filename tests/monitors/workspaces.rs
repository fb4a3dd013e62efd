//! Tests wallpapers of workspaces on real sway and i3: in pixels, and in what clients see.

use std::fs;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::desktop::{Desktop, wait_until};
use crate::scene::{BLUE, GREEN, RED, near, see, seen, set, three};
use crate::support::{TestDaemon, left_out};

const OUTPUT: &str = "HEADLESS-1";

struct Scene {
    desktop: Desktop,
    daemon: TestDaemon,
}

impl Scene {
    fn show(&self, workspace: &str) {
        self.desktop
            .output("swaymsg", &["-q", &format!("workspace {workspace}")]);
    }

    fn patch(&self, entries: &Value) {
        self.daemon
            .client()
            .patch("/config/workspaces", entries)
            .ok();
    }

    /// The workspace whose wallpaper the first monitor shows, and the image.
    fn current(&self) -> (Value, Value) {
        let current = self.daemon.client().get("/wallpaper/current").ok();
        let first = &current["monitors"][0];
        (first["workspace"].clone(), first["image_name"].clone())
    }

    fn entry(&self, name: &str) -> Value {
        let all = self.daemon.client().get("/workspaces").ok();
        all.as_array()
            .unwrap()
            .iter()
            .find(|one| one["name"] == name)
            .cloned()
            .unwrap_or_default()
    }

    fn history(&self) -> usize {
        self.daemon
            .client()
            .get("/images/history")
            .ok()
            .as_array()
            .unwrap()
            .len()
    }

    #[track_caller]
    fn sees(&self, color: [u8; 3]) {
        see(&self.desktop, &self.daemon, OUTPUT, color);
    }
}

fn scene() -> Scene {
    let desktop = Desktop::wayland(&["640x480", "640x480"]);
    let daemon = drawing(&desktop);
    desktop.output("swaymsg", &["-q", "focus output HEADLESS-1"]);
    Scene { desktop, daemon }
}

/// A daemon with the builtin backend and no transition.
fn drawing(desktop: &Desktop) -> TestDaemon {
    let mut daemon = TestDaemon::on(desktop);
    daemon.configure("[backend]\ntype = 'builtin'\n[backend.builtin]\ntransition_type = 'none'\n");
    daemon.start();
    daemon
}

#[test]
fn workspace_shows_its_wallpaper_while_it_is_visible() {
    let mut scene = scene();
    let [red, green, blue] = three(&scene.daemon);
    set(&scene.daemon, red, "*").ok();
    scene.patch(&json!({ "3": "green", "4:web": format!("id:{blue}"), "5": "none" }));
    let entry = json!({ "name": "3", "image_id": green, "image_name": "green", "playlist_id": null,
        "monitor": null, "warning": null });
    assert_eq!(scene.entry("3"), entry);
    assert_eq!(scene.entry("5")["warning"], "no image named \"none\"");
    let (before, mut events) = (scene.history(), scene.daemon.events("wallpaper_changed"));
    scene.show("3");
    scene.sees(GREEN);
    let event = events.wait_for("wallpaper_changed");
    assert_eq!(
        (&event["source"], &event["monitors"]),
        (&json!("workspace"), &json!([OUTPUT]))
    );
    assert_eq!(scene.current(), (json!("3"), json!("green")));
    wait_until("its monitor", || scene.entry("3")["monitor"] == OUTPUT);
    see(&scene.desktop, &scene.daemon, "HEADLESS-2", RED);
    // A wallpaper that is set there is hidden.
    let answer = set(&scene.daemon, blue, OUTPUT).ok();
    assert_eq!(answer["hidden_by"], json!({ OUTPUT: "3" }));
    assert!(
        answer["warnings"][0]
            .as_str()
            .unwrap()
            .contains("workspace 3"),
        "{answer}"
    );
    assert_eq!(
        (scene.history(), scene.current().0),
        (before + 1, json!("3"))
    );
    assert!(near(seen(&scene.desktop, &scene.daemon, OUTPUT), GREEN));
    // After a kill, the daemon still shows it.
    scene.daemon.kill9();
    scene.daemon.start();
    assert_eq!(scene.current(), (json!("3"), json!("green")));
    scene.sees(GREEN);
    let mut events = scene.daemon.events("wallpaper_changed");
    scene.show("1");
    scene.sees(BLUE);
    wait_until("the restored one", || {
        events.wait_for("wallpaper_changed")["source"] == "restore"
    });
    assert_eq!(scene.current(), (Value::Null, json!("blue")));
    let why = scene
        .daemon
        .client()
        .get(&format!("/why?monitor={OUTPUT}"))
        .ok();
    assert_eq!(
        why[0]["source"]["type"], "restore",
        "it was set before the daemon started"
    );
    // An entry that matches no image leaves the assignment visible.
    scene.show("5");
    wait_until("its monitor", || scene.entry("5")["monitor"] == OUTPUT);
    scene.sees(BLUE);
    assert_eq!(scene.history(), before + 1);
    assert_eq!(scene.daemon.stop(), Some(0));
}

#[test]
fn playlist_that_a_workspace_hides_says_so() {
    let mut scene = scene();
    let [red, _, blue] = three(&scene.daemon);
    scene.patch(&json!({ "3": "green" }));
    scene.show("3");
    scene.sees(GREEN);
    let images = [red, blue].map(|id| json!({ "image_id": id }));
    let body = json!({ "name": "two", "configuration": { "type": "manual" }, "images": images });
    let id = scene.daemon.client().post("/playlists", &body).ok()["id"].clone();
    let hidden = "HEADLESS-1 shows the wallpaper of workspace 3 until another workspace is visible";
    for action in ["start", "next"] {
        let path = format!("/playlists/{id}/{action}");
        let answer = scene.daemon.client().post(&path, &json!({})).ok();
        assert_eq!(answer["warnings"], json!([hidden]), "{action}");
    }
    let printed = scene.daemon.murald(&["next"]).output().unwrap();
    assert!(
        String::from_utf8_lossy(&printed.stderr).contains(hidden),
        "{printed:?}"
    );
    assert!(near(seen(&scene.desktop, &scene.daemon, OUTPUT), GREEN));
    assert_eq!(scene.daemon.stop(), Some(0));
}

#[test]
fn entries_follow_renames_deletions_and_playlists() {
    let scene = scene();
    let [red, green, blue] = three(&scene.daemon);
    set(&scene.daemon, red, "*").ok();
    scene.patch(&json!({ "3": "green", "4": "playlist:sea" }));
    scene.show("3");
    scene.sees(GREEN);
    let client = scene.daemon.client();
    client
        .patch(&format!("/images/{green}"), &json!({ "name": "lake" }))
        .ok();
    assert_eq!(
        client.get("/config/workspaces").ok(),
        json!({ "3": "lake", "4": "playlist:sea" })
    );
    assert_eq!(scene.current(), (json!("3"), json!("lake")));
    // Two renames at once leave the entry with one of the names; without the file there is none.
    std::thread::scope(|scope| {
        for name in ["pond", "lake"] {
            let client = scene.daemon.client();
            let rename =
                move || client.patch(&format!("/images/{green}"), &json!({ "name": name }));
            scope.spawn(move || drop(rename().ok()));
        }
    });
    assert_eq!(scene.entry("3")["image_id"], green);
    client
        .patch(&format!("/images/{green}"), &json!({ "name": "lake" }))
        .ok();
    let file = scene.daemon.config_file();
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, "[").unwrap();
    client
        .patch(&format!("/images/{green}"), &json!({ "name": "sea" }))
        .fails(409);
    fs::write(&file, text).unwrap();
    assert_eq!(scene.current(), (json!("3"), json!("lake")));
    // The picture of a playlist is shown as soon as the playlist exists, and follows its changes.
    scene.show("4");
    scene.sees(RED);
    let images: Vec<Value> = [blue, green]
        .iter()
        .map(|id| json!({ "image_id": id }))
        .collect();
    let playlist =
        json!({ "name": "sea", "images": images, "configuration": { "type": "manual" } });
    let playlist = client.post("/playlists", &playlist).ok()["id"].clone();
    scene.sees(BLUE);
    assert_eq!(scene.entry("4")["playlist_id"], playlist);
    let on = json!({ "monitors": ["HEADLESS-2"] });
    client
        .post(&format!("/playlists/{playlist}/start"), &on)
        .ok();
    client
        .post(&format!("/playlists/{playlist}/next"), &json!({}))
        .ok();
    scene.sees(GREEN);
    client
        .post(&format!("/playlists/{playlist}/stop"), &json!({}))
        .ok();
    scene.sees(BLUE);
    scene.show("3");
    scene.sees(GREEN);
    client
        .send(
            "DELETE",
            "/images",
            "",
            json!({ "ids": [green] }).to_string().as_bytes(),
        )
        .ok();
    scene.sees(RED);
    let entry = scene.entry("3");
    assert_eq!(
        (&entry["image_id"], &entry["warning"]),
        (&Value::Null, &json!("no image named \"lake\""))
    );
    scene.show("4");
    scene.sees(BLUE);
    client
        .patch("/config/workspaces", &json!({ "4": 7 }))
        .fails(400);
    // The answer comes once the change is visible.
    client
        .patch("/config/workspaces", &json!({ "4": null }))
        .ok();
    assert!(near(seen(&scene.desktop, &scene.daemon, OUTPUT), RED));
    // The same if the first entry starts the follower.
    client
        .patch("/config/workspaces", &json!({ "3": null }))
        .ok();
    client
        .patch("/config/workspaces", &json!({ "4": "blue" }))
        .ok();
    assert!(near(seen(&scene.desktop, &scene.daemon, OUTPUT), BLUE));
    client.post("/config/reset", &json!({})).ok();
    assert_eq!(client.get("/workspaces").ok(), json!([]));
}

#[test]
fn many_switches_leave_the_right_picture_and_leak_nothing() {
    let scene = scene();
    let [red, green, _] = three(&scene.daemon);
    set(&scene.daemon, red, "*").ok();
    scene.patch(&json!({ "3": "green", "4": "blue" }));
    scene.show("3");
    scene.sees(GREEN);
    let pid = scene.daemon.pid();
    let open = || fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    let (before, files) = (scene.history(), open());
    for (workspace, image) in
        [("3", "green"), ("4", "blue"), ("1", "red"), ("4", "blue")].repeat(10)
    {
        scene.show(workspace);
        wait_until(workspace, || scene.current().1 == image);
    }
    scene.sees(BLUE);
    // Only the last of many is shown.
    scene
        .desktop
        .output("swaymsg", &["-q", &"workspace 3; workspace 4; ".repeat(20)]);
    scene.show("3");
    scene.sees(GREEN);
    assert_eq!(scene.history(), before);
    // A connection of a client may still be open.
    wait_until("as few files as before", || open() <= files + 2);
    set(&scene.daemon, green, OUTPUT).ok();
}

/// The window manager of an X server, ended when dropped.
struct I3(Child);

impl I3 {
    /// None if it is not installed.
    fn start(desktop: &Desktop, daemon: &TestDaemon) -> Option<Self> {
        let config = daemon.root().join("i3");
        fs::write(&config, "# i3 config file (v4)\n").unwrap();
        let mut i3 = desktop.command("i3");
        let i3 = i3
            .arg("-c")
            .arg(config)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let i3 = Self(i3.spawn().ok()?);
        let version = || {
            desktop
                .command("i3-msg")
                .args(["-t", "get_version"])
                .output()
        };
        wait_until("i3", || {
            version().is_ok_and(|output| output.status.success())
        });
        Some(i3)
    }
}

impl Drop for I3 {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn workspace_shows_a_plain_colour() {
    let mut scene = scene();
    let [red, ..] = three(&scene.daemon);
    set(&scene.daemon, red, "*").ok();
    let run = |words: &[&str]| {
        let output = scene.daemon.murald(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        assert_eq!(output.stderr, b"", "{words:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    run(&["workspace", "set", "2", "red"]);
    run(&["workspace", "set", "3", "#0a32c8"]);
    scene.show("3");
    scene.sees([10, 50, 200]);
    assert_eq!(scene.current(), (json!("3"), json!("#0a32c8")));
    let entry = scene.entry("3");
    assert_eq!(
        (&entry["image_id"], &entry["color"], &entry["warning"]),
        (&Value::Null, &json!("#0a32c8"), &Value::Null)
    );
    let list = run(&["workspace", "list", "--format", "{name} {image_name}"]);
    assert_eq!(list, "2 red\n3 #0a32c8\n");
    scene.daemon.kill9();
    scene.daemon.start();
    assert_eq!(scene.current(), (json!("3"), json!("#0a32c8")));
    scene.show("1");
    scene.sees(RED);
}

#[test]
fn workspace_set_warns_if_no_workspaces_are_followed() {
    let desktop = Desktop::x11(&["640x480"]);
    let daemon = drawing(&desktop);
    three(&daemon);
    let set = daemon
        .murald(&["workspace", "set", "3", "red"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&set.stderr);
    assert!(
        set.status.success() && said.contains("only sway, i3 and Hyprland report them"),
        "{set:?}"
    );
    let entry = daemon.client().get("/workspaces").ok()[0].take();
    assert_eq!(entry["image_name"], "red");
}

#[test]
fn workspaces_of_i3_show_their_wallpapers() {
    let desktop = Desktop::x11(&["640x480"]);
    let daemon = drawing(&desktop);
    let Some(_i3) = I3::start(&desktop, &daemon) else {
        return left_out("workspaces of i3", "i3 is not installed");
    };
    let show = |name: &str| drop(desktop.output("i3-msg", &["-q", &format!("workspace {name}")]));
    let [red, ..] = three(&daemon);
    set(&daemon, red, "*").ok();
    daemon
        .client()
        .patch(
            "/config/workspaces",
            &json!({ "3": "green", "4:web": "blue" }),
        )
        .ok();
    for (workspace, color) in [("3", GREEN), ("4:web", BLUE), ("1", RED)] {
        show(workspace);
        see(&desktop, &daemon, "VIRTUAL-1", color);
    }
}
