//! Tests how the daemon starts a backend: what the program finds when it runs, and what is reported if
//! it cannot run.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use crate::desktop::{Desktop, wait_until};
use crate::hosted::Hosted;
use crate::hosted::videos;
use crate::rest::sockets;
use crate::support::{TestDaemon, may_unshare};
use crate::wall::{Pixels, near};

/// A daemon whose swaybg is a script, and a picture to show.
struct Scripted {
    daemon: TestDaemon,
    picture: i64,
    _desktop: Desktop,
}

impl Scripted {
    fn new(script: impl Fn(&TestDaemon) -> String) -> Self {
        Self::after(":", script)
    }

    /// Starts the daemon from a shell, after this command.
    fn after(shell: &str, script: impl Fn(&TestDaemon) -> String) -> Self {
        let desktop = Desktop::wayland(&["1"]);
        let mut daemon = TestDaemon::on(&desktop);
        let script = script(&daemon);
        daemon.stub("swaybg", &script);
        daemon.configure("[backend]\ntype = 'swaybg'\n");
        daemon.start_after(shell);
        let file = daemon.root().join("a.png");
        image::RgbImage::from_pixel(64, 36, image::Rgb([9, 99, 199]))
            .save(&file)
            .unwrap();
        let picture = daemon.import(&[&file])[0];
        Self {
            daemon,
            picture,
            _desktop: desktop,
        }
    }

    fn set(&self) -> crate::support::client::Answer {
        self.daemon
            .client()
            .post("/wallpaper/set", &json!({ "image_id": self.picture }))
    }
}

fn real_swaybg() -> PathBuf {
    murald::internals::process::which("swaybg").expect("swaybg is not installed")
}

#[test]
fn backend_is_the_daemon_s_own_child_in_a_session_of_its_own() {
    let scripted = Scripted::new(|daemon| {
        let (notes, swaybg) = (daemon.root().join("notes"), real_swaybg());
        format!(
            "#!/bin/sh\nread stat </proc/$$/stat\n{{ echo \"$stat\"; pwd; readlink /proc/$$/fd/0\n\
             grep 'Max file size' /proc/$$/limits; ls /proc/$$/fd; }} >'{}'\n\
             exec '{}' \"$@\"\n",
            notes.display(),
            swaybg.display()
        )
    });
    scripted.set().ok();
    let notes = fs::read_to_string(scripted.daemon.root().join("notes")).unwrap();
    let lines: Vec<&str> = notes.lines().collect();
    let fields: Vec<&str> = lines[0].rsplit_once(") ").unwrap().1.split(' ').collect();
    let pid = lines[0].split(' ').next().unwrap();
    let [parent, group, session] = [1, 2, 3].map(|at| fields[at]);
    assert_eq!(
        parent,
        scripted.daemon.pid().to_string(),
        "nobody stays between them"
    );
    assert_eq!((group, session), (pid, pid));
    assert_eq!(lines[1..3], ["/", "/dev/null"]);
    // The log needs a size limit, as it may never be emptied.
    assert!(lines[3].contains(&(1 << 30).to_string()), "{}", lines[3]);
    // Descriptors of the shell itself have higher numbers; nothing else of the daemon's is inherited.
    let open: Vec<&str> = lines[4..]
        .iter()
        .copied()
        .filter(|fd| fd.len() == 1)
        .collect();
    assert_eq!(open, ["0", "1", "2"]);
}

#[test]
fn backend_has_the_umask_that_the_daemon_was_started_with() {
    for umask in ["0027", "0000"] {
        let scripted = Scripted::after(&format!("umask {umask}"), |daemon| {
            let (note, swaybg) = (daemon.root().join("umask"), real_swaybg());
            format!(
                "#!/bin/sh\numask >'{}'\nexec '{}' \"$@\"\n",
                note.display(),
                swaybg.display()
            )
        });
        scripted.set().ok();
        let noted = fs::read_to_string(scripted.daemon.root().join("umask")).unwrap();
        assert_eq!(noted.trim(), umask);
    }
}

#[test]
fn backend_that_cannot_be_executed_is_named_with_the_cause() {
    let scripted = Scripted::new(|_| "#!/nowhere/interpreter\n".to_owned());
    let answer = scripted.set();
    assert_eq!(answer.status, 500, "{}", answer.text());
    let text = answer.text();
    assert!(
        text.contains("swaybg") && text.contains("No such file"),
        "{text}"
    );
    let runtime = fs::read_dir(scripted.daemon.socket().parent().unwrap())
        .unwrap()
        .flatten();
    let records: Vec<_> = runtime
        .flat_map(|entry| fs::read_dir(entry.path()).into_iter().flatten().flatten())
        .map(|entry| entry.file_name())
        .filter(|name| name.to_string_lossy().starts_with("swaybg-"))
        .collect();
    assert!(records.is_empty(), "{records:?}");
}

#[test]
fn pictures_are_shown_without_inotify() {
    let apart = ["--user", "--map-root-user"];
    if !may_unshare("pictures without inotify", &apart) {
        return;
    }
    let desktop = Desktop::wayland(&["320x180"]);
    let mut daemon = TestDaemon::on(&desktop);
    // The limit of a new user namespace is its own.
    let script = format!(
        "echo 0 > /proc/sys/user/max_inotify_instances && exec {} start",
        env!("CARGO_BIN_EXE_murald")
    );
    let mut command = daemon.command("unshare");
    command.args(apart).args(["/bin/sh", "-c", &script]);
    daemon.start_by(command);
    let client = daemon.client();
    let colors = [("builtin", [200, 30, 30]), ("swaybg", [30, 30, 200])];
    for (backend, color) in colors {
        client
            .post(&format!("/backends/{backend}/activate"), &json!({}))
            .ok();
        let path = daemon.root().join(format!("{backend}.png"));
        image::RgbImage::from_pixel(64, 36, image::Rgb(color))
            .save(&path)
            .unwrap();
        let answer = client.post("/wallpaper/set", &json!({ "path": path })).ok();
        assert_eq!(answer["backend"], backend);
        let shot = daemon.root().join("shot.png");
        let shown = || {
            desktop.shot(&shot, "HEADLESS-1");
            Pixels::read(&shot).part(50, 50)
        };
        wait_until("the picture", || near(shown(), color));
    }
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn videos_are_shown_without_inotify() {
    let apart = ["--user", "--map-root-user"];
    if !may_unshare("videos without inotify", &apart) {
        return;
    }
    let mut hosted = Hosted::with("mpvpaper", &["mpvpaper"], &["640x480"], "", &[]);
    let [video, _] = videos(&hosted);
    assert_eq!(hosted.daemon.stop(), Some(0));
    let script = format!(
        "echo 0 > /proc/sys/user/max_inotify_instances && exec {} start",
        env!("CARGO_BIN_EXE_murald")
    );
    let mut command = hosted.daemon.command("unshare");
    command.args(apart).args(["/bin/sh", "-c", &script]);
    hosted.daemon.start_by(command);
    hosted.set(&json!({ "image_id": video }));
    assert_eq!(sockets(&hosted).len(), 1);
    assert_eq!(hosted.daemon.stop(), Some(0));
}

/// A daemon may outlive its session, and one that cron or ssh has started never had any.
#[test]
fn daemon_without_a_session_uses_that_of_a_command() {
    let daemon = TestDaemon::started();
    let (socket, color) = (daemon.socket(), [9, 99, 199]);
    let path = daemon.root().join("a.png");
    image::RgbImage::from_pixel(64, 36, image::Rgb(color))
        .save(&path)
        .unwrap();
    for _ in 0..2 {
        let desktop = Desktop::wayland(&["320x180"]);
        let mut set = desktop.command(env!("CARGO_BIN_EXE_murald"));
        set.arg("--socket").arg(&socket).arg("set").arg(&path);
        let output = set.env("HOME", daemon.root()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let shot = daemon.root().join("shot.png");
        let shown = || {
            desktop.shot(&shot, "HEADLESS-1");
            Pixels::read(&shot).part(50, 50)
        };
        wait_until("the picture", || near(shown(), color));
        drop(desktop);
        // The next session has another runtime directory.
        wait_until("the end of the session", || {
            daemon.client().get("/info").ok()["session"].is_null()
        });
    }
}

#[test]
fn first_wallpaper_is_drawn_by_builtin_although_swaybg_is_installed() {
    let desktop = Desktop::wayland(&["320x180"]);
    let mut daemon = TestDaemon::on(&desktop);
    daemon.only(&["swaybg"]);
    for settings in ["", "[backend]\nselection_mode = 'auto'\n"] {
        daemon.configure(settings);
        daemon.start();
        let path = daemon.root().join("a.png");
        image::RgbImage::from_pixel(64, 36, image::Rgb([9, 99, 199]))
            .save(&path)
            .unwrap();
        let body = json!({ "path": path, "transition": "wipe" });
        let answer = daemon.client().post("/wallpaper/set", &body).ok();
        assert_eq!(answer["backend"], "builtin", "{settings}");
        assert_eq!(daemon.stop(), Some(0));
    }
    daemon.configure("[backend.builtin]\nenabled = false\n");
    daemon.start();
    let answer = daemon.client().post("/wallpaper/random", &json!({})).ok();
    assert_eq!(answer["backend"], "swaybg");
}

#[test]
fn refused_transition_names_those_of_the_backend() {
    let refused = |desktop: &Desktop, settings: &str| {
        let mut daemon = TestDaemon::on(desktop);
        daemon.configure(settings);
        daemon.start();
        let path = daemon.root().join("a.png");
        image::RgbImage::new(64, 36).save(&path).unwrap();
        let words = ["set", path.to_str().unwrap(), "--transition", "spiral"];
        let output = daemon.murald(&words).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    let builtin = "[backend]\ntype = 'builtin'\n";
    let said = refused(&Desktop::wayland(&["1"]), builtin);
    let expected =
        "--transition must be one of none, fade, wipe, grow, random with builtin, not \"spiral\"";
    assert!(said.contains(expected), "{said}");
    let said = refused(&Desktop::x11(&["1"]), builtin);
    let expected = "--transition must be none with builtin, not \"spiral\"";
    assert!(said.contains(expected), "{said}");
}
