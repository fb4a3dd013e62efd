//! A real daemon on a real desktop whose wallpapers go to the stand-in for wal-qt's host.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use crate::desktop::{Desktop, wait_until};
use crate::stub;
use crate::support::House;

/// A daemon whose only setter is the stand-in for wal-qt's host.
pub struct Hosted {
    pub desktop: Desktop,
    pub house: House,
    pub notes: PathBuf,
}

impl Hosted {
    pub fn new(outputs: &[&str], settings: &str, env: &[(&str, &str)]) -> Self {
        let desktop = Desktop::wayland(outputs);
        let mut house = House::on(&desktop);
        let notes = house.root().join("notes");
        fs::create_dir_all(notes.join("calls")).unwrap();
        let runtime = Path::new(desktop.var("XDG_RUNTIME_DIR").unwrap());
        house.stub("wal-qt-host", &stub::script("wal-qt-host", &notes, runtime));
        house.configure(&format!("[backend]\ntype = 'wal-qt'\n[backend.wal-qt]\n{settings}\n"));
        for (name, value) in env {
            house.env(name, value);
        }
        house.start();
        Self { desktop, house, notes }
    }

    pub fn picture(&self, name: &str) -> i64 {
        let path = self.house.root().join(name);
        image::RgbImage::from_pixel(640, 360, image::Rgb([9, 99, 199])).save(&path).unwrap();
        self.house.import(&[&path])[0]
    }

    pub fn page(&self, direction: &str) -> i64 {
        let root = self.house.root().join("page");
        fs::create_dir(&root).unwrap();
        let manifest = json!({ "title": "Rain", "parallax_direction": direction });
        fs::write(root.join("waypaper.json"), manifest.to_string()).unwrap();
        fs::write(root.join("index.html"), "<html>").unwrap();
        let answer = self.house.client().post("/images/import-web", &json!({ "path": root })).ok();
        answer["id"].as_i64().unwrap()
    }

    pub fn set(&self, body: &Value) {
        self.house.client().post("/wallpaper/set", body).ok();
    }

    /// What the host was asked by POST: routes and bodies.
    pub fn requests(&self) -> Vec<(String, Value)> {
        let text = fs::read_to_string(self.notes.join("wal-qt-requests")).unwrap_or_default();
        let parse = |line: &str| {
            let (route, body) = line.strip_prefix("POST ")?.split_once(' ')?;
            Some((route.to_owned(), serde_json::from_str(body).ok()?))
        };
        text.lines().filter_map(parse).collect()
    }

    pub fn forget(&self) {
        fs::remove_file(self.notes.join("wal-qt-requests")).ok();
    }
}

impl Drop for Hosted {
    /// Setters outlive the daemon.
    fn drop(&mut self) {
        let pids = fs::read_to_string(self.notes.join("wal-qt-pid")).unwrap_or_default();
        for pid in pids.lines() {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let notes = format!("STUB_NOTES={}", self.notes.display());
            // The number may be another's by now.
            if environment.split(|&byte| byte == 0).any(|entry| entry == notes.as_bytes()) {
                Command::new("kill").args(["-9", pid]).status().ok();
            }
        }
    }
}

#[test]
fn a_setter_that_hangs_holds_no_other_monitor() {
    let settings = "load_timeout_ms = 4000\n[backend.auto_priorities]\nimage = ['swaybg']";
    let hosted = Hosted::new(&["640x480", "640x480", "640x480"], settings, &[]);
    hosted
        .house
        .client()
        .patch("/config", &json!({ "backend": { "selection_mode": "auto" } }))
        .ok();
    let (red, blue, page) =
        (hosted.picture("a.png"), hosted.picture("b.png"), hosted.page("vertical"));
    hosted.set(&json!({ "image_id": red }));
    fs::write(hosted.notes.join("cue-wal-qt-host"), "hang").unwrap();
    let client = hosted.house.client();
    let set = |id: i64, monitor: &str| {
        client.post("/wallpaper/set", &json!({ "image_id": id, "monitor": monitor }))
    };
    std::thread::scope(|scope| {
        let hangs = scope.spawn(|| set(page, "HEADLESS-1"));
        wait_until("the load", || {
            hosted.requests().iter().any(|(route, _)| route == "/wallpaper/load")
        });
        let asked = Instant::now();
        // Its own monitor has to wait; what comes for others passes it.
        let waits = scope.spawn(|| set(blue, "HEADLESS-1"));
        for id in [blue, red, blue] {
            assert_eq!(set(id, "HEADLESS-2").ok()["status"], "set");
        }
        assert!(!hangs.is_finished() && !waits.is_finished(), "{:?}", asked.elapsed());
        let error = hangs.join().unwrap().fails(500);
        assert!(error["details"].as_str().unwrap().contains("4000 ms"), "{error}");
        assert_eq!(waits.join().unwrap().ok()["status"], "set");
    });
    let current = client.get("/wallpaper/current").ok();
    let all = current["monitors"].as_array().unwrap().iter();
    let shown: Vec<&Value> = all.map(|monitor| &monitor["image_id"]).collect();
    assert_eq!(shown, [&json!(blue), &json!(blue), &json!(red)]);
}

#[test]
fn a_page_that_hangs_is_told_what_changes() {
    let hosted = Hosted::new(&["640x480"], "", &[]);
    let page = hosted.page("vertical");
    hosted.set(&json!({ "image_id": page }));
    let loads =
        |asked: &[(String, Value)]| asked.iter().any(|(route, _)| route == "/wallpaper/load");
    assert!(loads(&hosted.requests()));
    let client = hosted.house.client();
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
    // A host that is started anew is given all of it with the page.
    hosted.forget();
    let mut events = hosted.house.events("wallpaper_changed");
    let pid = fs::read_to_string(hosted.notes.join("wal-qt-pid")).unwrap();
    hosted.desktop.output("kill", &["-9", pid.trim()]);
    events.wait_for("wallpaper_changed");
    let asked = hosted.requests();
    let load = asked.iter().find(|(route, _)| route == "/wallpaper/load").unwrap();
    assert_eq!(load.1["wallpaper_config_values"], json!({ "speed": 7 }));
}
