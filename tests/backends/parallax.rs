//! Tests parallax with the real sway and a stand-in for Hyprland's two sockets. The daemon is real, and
//! the host of wal-qt is a stand-in.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crossbeam_channel::{Receiver, unbounded};
use serde_json::{Value, json};

use crate::desktop::wait_until;
use crate::hosted::Hosted;
use crate::support::{PATIENCE, TestDaemon};

/// Helpers for a daemon that follows workspaces.
impl Hosted {
    fn following(outputs: &[&str], settings: &str, env: &[(&str, &str)]) -> Self {
        Self::new(
            outputs,
            &format!("parallax_enabled = true\n{settings}"),
            env,
        )
    }

    fn patch(&self, key: &str, value: Value) {
        let body = json!({ key: value });
        self.daemon
            .client()
            .patch("/config/backends/wal-qt", &body)
            .ok();
    }

    /// The moves that the host got, as `OUTPUT direction`.
    fn moves(&self) -> Vec<String> {
        let asked = self.requests().into_iter();
        let moves = asked.filter(|(route, _)| route == "/wallpaper/parallax-move");
        let word = |body: Value| {
            format!(
                "{} {}",
                body["name"].as_str().unwrap(),
                body["direction"].as_str().unwrap()
            )
        };
        moves.map(|(_, body)| word(body)).collect()
    }

    /// Waits for exactly these moves since the last time.
    #[track_caller]
    fn moved(&self, expected: &[&str]) {
        wait_until(&format!("{expected:?}"), || {
            self.moves().len() >= expected.len()
        });
        assert_eq!(self.moves(), expected);
        self.forget();
    }

    fn sway(&self, command: &str) {
        self.desktop.output("swaymsg", &["-q", command]);
    }

    fn follows(&self, times: usize) {
        let said = "following the workspaces at";
        wait_until(said, || self.daemon.log().matches(said).count() >= times);
    }
}

#[test]
fn parallax_follows_the_workspaces_of_sway() {
    let settings = "parallax_workspace_chunk_size = 4";
    let mut followed = Hosted::following(&["640x480", "800x600"], settings, &[]);
    let (one, other, page) = (
        followed.picture("a.png"),
        followed.picture("b.png"),
        followed.page("vertical"),
    );
    followed.follows(1);
    followed.sway("workspace 11 output HEADLESS-2");
    for (id, monitor) in [(one, "HEADLESS-1"), (page, "HEADLESS-2")] {
        followed.set(&json!({ "image_id": id, "monitor": monitor }));
    }
    // Sway has put 1 and 2 on the outputs. A workspace without a number, and one that only gets the
    // focus, is no step. Two events about one workspace are one step.
    followed.sway("focus output HEADLESS-1");
    followed.forget();
    for step in ["3", "4", "10", "3"] {
        followed.sway(&format!("workspace {step}"));
    }
    let (left, right) = ("HEADLESS-1 left", "HEADLESS-1 right");
    followed.moved(&[right, right, left, right]);
    followed.sway("workspace 2; workspace 11; workspace 2");
    followed.moved(&["HEADLESS-2 up", "HEADLESS-2 down"]);
    followed.patch("parallax_direction", json!("vertical"));
    followed.sway("workspace 3; workspace 4");
    followed.moved(&["HEADLESS-1 down"]);
    followed.patch("parallax_direction", json!("horizontal"));
    followed.patch("parallax_workspace_chunk_size", json!(20));
    // A picture over both outputs moves on both.
    followed.set(&json!({ "image_id": other, "mode": "extend" }));
    followed.sway("workspace 10");
    followed.moved(&[right, "HEADLESS-2 right"]);
    let mut events = followed.daemon.events("wallpaper_changed");
    followed.desktop.again();
    followed.follows(2);
    assert_eq!(events.wait_for("wallpaper_changed")["source"], "restore");
    followed.forget();
    followed.sway("focus output HEADLESS-2; workspace 7; workspace 8");
    followed.moved(&[right, "HEADLESS-2 right", right, "HEADLESS-2 right"]);
    for (key, value) in [
        ("parallax_compositor_driver", json!("off")),
        ("parallax_enabled", json!(false)),
    ] {
        followed.patch(key, value);
        assert!(
            !threads(&followed.daemon).contains(&"parallax".to_owned()),
            "{key}"
        );
        followed.patch("parallax_compositor_driver", json!("sway"));
    }
    followed.sway("workspace 9");
    followed.patch("parallax_enabled", json!(true));
    followed.follows(4);
    assert_eq!(followed.moves(), [""; 0]);
    assert_eq!(followed.daemon.stop(), Some(0));
}

fn threads(daemon: &TestDaemon) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{}/task", daemon.pid()))
        .unwrap()
        .flatten();
    let name = |task: fs::DirEntry| fs::read_to_string(task.path().join("comm")).ok();
    tasks
        .filter_map(name)
        .map(|name| name.trim().to_owned())
        .collect()
}

/// A stand-in for Hyprland's sockets, which rejects what the real one does not know.
struct Hyprland {
    /// The workspace that each output shows.
    shown: Arc<Mutex<Vec<(&'static str, i64)>>>,
    /// Gets a message for each query of these.
    asked: Receiver<()>,
    directory: PathBuf,
    events: UnixListener,
    listener: Option<UnixStream>,
}

impl Hyprland {
    fn start(runtime: &Path) -> Self {
        let directory = runtime.join("hypr/sig");
        fs::create_dir_all(&directory).unwrap();
        let requests = UnixListener::bind(directory.join(".socket.sock")).unwrap();
        let events = UnixListener::bind(directory.join(".socket2.sock")).unwrap();
        let shown = Arc::new(Mutex::new(vec![("HEADLESS-1", 1), ("HEADLESS-2", 11)]));
        let theirs = Arc::clone(&shown);
        let (ring, asked) = unbounded();
        std::thread::spawn(move || {
            for stream in requests.incoming() {
                let mut stream = stream.unwrap();
                let mut asked = [0; 64];
                let length = stream.read(&mut asked).unwrap();
                // Other connections only check that a program listens.
                if &asked[..length] == b"j/monitors" {
                    let answer = monitors(&theirs.lock().unwrap());
                    stream.write_all(answer.as_bytes()).ok();
                    ring.send(()).ok();
                }
            }
        });
        Self {
            shown,
            asked,
            directory,
            events,
            listener: None,
        }
    }

    /// Waits until the daemon has connected and asked what is shown.
    fn accept(&mut self) {
        self.listener = Some(self.events.accept().unwrap().0);
        self.asked.recv_timeout(PATIENCE).unwrap();
    }

    fn say(&mut self, lines: &str) {
        self.listener
            .as_mut()
            .unwrap()
            .write_all(lines.as_bytes())
            .unwrap();
    }

    /// Shows another workspace, reports it and waits for the query.
    fn show(&mut self, output: &str, workspace: i64) {
        self.begin_to_show(output, workspace);
        self.asked.recv_timeout(PATIENCE).unwrap();
    }

    /// Reports it as versions 1 and 2 of the event, in one piece.
    fn begin_to_show(&mut self, output: &str, workspace: i64) {
        let mut shown = self.shown.lock().unwrap();
        shown
            .iter_mut()
            .find(|(name, _)| *name == output)
            .unwrap()
            .1 = workspace;
        drop(shown);
        self.say(&format!(
            "workspace>>{workspace}\nworkspacev2>>{workspace},{workspace}\n"
        ));
    }

    fn restart(&mut self) {
        self.listener = None;
        let path = self.directory.join(".socket2.sock");
        fs::remove_file(&path).unwrap();
        self.events = UnixListener::bind(&path).unwrap();
        self.accept();
    }
}

fn monitors(shown: &[(&str, i64)]) -> String {
    let one = |(name, id): &(&str, i64)| {
        json!({ "id": 0, "name": name, "focused": true, "specialWorkspace": { "id": 0, "name": "" },
            "activeWorkspace": { "id": id, "name": id.to_string() } })
    };
    Value::from(shown.iter().map(one).collect::<Vec<_>>()).to_string()
}

#[test]
fn parallax_follows_the_workspaces_of_hyprland() {
    let settings = "parallax_compositor_driver = 'hyprland'";
    let env = [("HYPRLAND_INSTANCE_SIGNATURE", "sig")];
    let followed = Hosted::following(&["640x480", "640x480"], settings, &env);
    let runtime = followed.desktop.var("XDG_RUNTIME_DIR").unwrap().to_owned();
    let mut hyprland = Hyprland::start(Path::new(&runtime));
    let (one, page) = (followed.picture("a.png"), followed.page("vertical"));
    for (id, monitor) in [(one, "HEADLESS-1"), (page, "HEADLESS-2")] {
        followed.set(&json!({ "image_id": id, "monitor": monitor }));
    }
    // Hyprland was not there when the daemon began to look for it.
    hyprland.accept();
    followed.follows(1);
    followed.forget();
    hyprland.say("activewindow>>kitty,workspace>>2\nopenwindow>>1,2,3\n");
    hyprland.show("HEADLESS-1", 2);
    followed.moved(&["HEADLESS-1 right"]);
    hyprland.show("HEADLESS-1", 8);
    followed.moved(&["HEADLESS-1 left"]);
    hyprland.show("HEADLESS-2", 12);
    followed.moved(&["HEADLESS-2 down"]);
    // A named workspace has an id below zero.
    hyprland.show("HEADLESS-2", -1337);
    hyprland.show("HEADLESS-2", 11);
    hyprland.show("HEADLESS-2", 12);
    followed.moved(&["HEADLESS-2 down"]);
    // Changes while Hyprland was away are no steps.
    hyprland.shown.lock().unwrap()[0].1 = 3;
    hyprland.restart();
    followed.follows(2);
    hyprland.show("HEADLESS-1", 4);
    followed.moved(&["HEADLESS-1 right"]);
    // A host that hangs does not get the missed moves later.
    let cue = followed.notes.join("cue-wal-qt-host");
    fs::write(&cue, "hang-move").unwrap();
    hyprland.show("HEADLESS-1", 5);
    wait_until("the request", || !followed.moves().is_empty());
    for workspace in 6..9 {
        hyprland.begin_to_show("HEADLESS-1", workspace);
    }
    fs::remove_file(&cue).unwrap();
    wait_until("the host's silence", || {
        followed.daemon.log().contains("does not follow")
    });
    // Moves are also dropped while the host catches up.
    let mut workspace = 8;
    wait_until("a step", || {
        workspace = 15 - workspace;
        hyprland.show("HEADLESS-1", workspace);
        followed.moves().len() > 1
    });
    assert!(followed.moves().len() < 4, "{:?}", followed.moves());
}
