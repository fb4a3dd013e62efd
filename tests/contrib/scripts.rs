//! Tests the scripts for rofi, fuzzel, fzf, waybar and others, with the real program if Debian has it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

use crate::desktop::{Desktop, wait_until};
use crate::support::TestDaemon;

/// A test daemon with two pictures, `red lake` and `blue hill`, and `murald` on the path.
pub fn daemon(desktop: &Desktop) -> TestDaemon {
    let (daemon, pictures) = with_files(desktop);
    pictures.iter().for_each(|path| {
        daemon.import(&[path]);
    });
    daemon
}

/// The same, with the pictures in a watched directory: they have no thumbnails yet.
fn watching(desktop: &Desktop) -> TestDaemon {
    let (daemon, pictures) = with_files(desktop);
    let mut watch = daemon.command("murald");
    watch
        .args(["watch", "add"])
        .arg(pictures[0].parent().unwrap());
    run(watch);
    wait_until("the pictures are in the library", || {
        let images = daemon.client().get("/images").ok()["data"].take();
        let has_none = |image: &Value| image["thumbnails"]["default"].is_null();
        images
            .as_array()
            .unwrap()
            .iter()
            .filter(|&one| has_none(one))
            .count()
            == 2
    });
    daemon
}

fn with_files(desktop: &Desktop) -> (TestDaemon, Vec<PathBuf>) {
    let mut daemon = TestDaemon::on(desktop);
    daemon.stub_murald();
    daemon.start();
    let directory = daemon.root().join("pictures");
    fs::create_dir(&directory).unwrap();
    let draw = |(name, color): (&str, [u8; 3])| {
        let path = directory.join(format!("{name}.png"));
        let picture = image::RgbImage::from_pixel(64, 36, image::Rgb(color));
        picture.save(&path).unwrap();
        path
    };
    let colors = [("red lake", [200, 30, 30]), ("blue hill", [40, 60, 200])];
    (daemon, colors.map(draw).to_vec())
}

pub fn script(daemon: &TestDaemon, path: &str) -> Command {
    daemon.command(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("contrib")
            .join(path),
    )
}

fn run(mut command: Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    output
}

/// The name of the image on the first monitor.
fn hangs(daemon: &TestDaemon) -> Value {
    daemon.client().get("/wallpaper/current").ok()["monitors"][0]["image_name"].take()
}

#[test]
fn fzf_sets_the_picked_image() {
    let desktop = Desktop::wayland(&["640x360", "640x360"]);
    let daemon = daemon(&desktop);
    let mut pick = script(&daemon, "pick/murald-pick");
    pick.args(["--monitor", "HEADLESS-1", "fzf", "--filter", "hill"]);
    run(pick);
    assert_eq!(hangs(&daemon), "blue hill");
    // If nothing matches, the wallpaper stays.
    let mut pick = script(&daemon, "pick/murald-pick");
    pick.args(["fzf", "--filter", "zzz"]);
    let output = pick.output().unwrap();
    assert_eq!(
        (output.status.code(), output.stderr.is_empty()),
        (Some(1), true),
        "{output:?}"
    );
    assert_eq!(hangs(&daemon), "blue hill");
    // `murald pick` runs the script that is built into the executable.
    let by_verb = |words: &str, options: &str| {
        let mut pick = daemon.command("murald");
        pick.args(words.split(' '))
            .env("FZF_DEFAULT_OPTS", options)
            .output()
            .unwrap()
    };
    let output = by_verb(
        "pick fzf --monitor HEADLESS-1 --monitor HEADLESS-2",
        "--filter lake",
    );
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "red lake (1) is on HEADLESS-1, HEADLESS-2\n"
    );
    assert_eq!(hangs(&daemon), "red lake");
    // Only images that match a filter are offered.
    let output = by_verb("pick fzf --hue-group blue", "--filter lake");
    assert_eq!(
        (output.status.code(), output.stderr.is_empty()),
        (Some(1), true),
        "{output:?}"
    );
    let output = by_verb("pick fzf --tags none", "--filter lake");
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "murald: no image matches\n"
    );
    let tagged = by_verb("pick fzf --tag sea", "--filter ''");
    assert!(tagged.status.success(), "{tagged:?}");
    for expected in [2, 4] {
        // The playlist is created first, then extended.
        let added = by_verb("pick fzf --playlist shore --tags sea", "--filter ''");
        assert!(added.status.success(), "{added:?}");
        let playlists = daemon.client().get("/playlists").ok();
        assert_eq!(playlists[0]["images"].as_array().unwrap().len(), expected);
    }
    // Debian's rofi is for X11 only, and the desktop is Wayland's.
    let x11 = by_verb("pick rofi", "");
    let told = String::from_utf8_lossy(&x11.stderr);
    assert!(
        told.starts_with("murald: this rofi needs an X server"),
        "{told}"
    );
    let refused = by_verb("pick fzf --tag sea --playlist shore", "--filter ''");
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    // The command that fzf runs for its preview.
    let preview = [
        "images",
        "show",
        "1",
        "--picture",
        "blocks",
        "--size",
        "20x5",
    ];
    let shown = run({
        let mut show = daemon.command("murald");
        show.args(preview);
        show
    });
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(
        shown.contains('▀') && shown.contains("name\tred lake\n"),
        "{shown}"
    );
}

#[test]
fn rofi_sets_the_picked_image() {
    let desktop = Desktop::x11(&["800x600"]);
    let daemon = watching(&desktop);
    shows_pictures(&desktop, &daemon, "rofi", "VIRTUAL-1");
    pick(
        &daemon,
        &["rofi", "-filter", "lake"],
        &["xdotool", "key", "Return"],
    );
    assert_eq!(hangs(&daemon), "red lake");
    // Shift and Return mark an image, Tab goes to the next one, Return ends. Keys that come too early
    // are lost: then the menu is opened again.
    wait_until("both images are tagged", || {
        let words = ["--tag", "sea", "rofi"];
        let mut several = End::spawn(script(&daemon, "pick/murald-pick").args(words));
        wait_until("the window is closed", || {
            for key in ["shift+Return", "Tab", "shift+Return", "Return"] {
                let mut press = daemon.command("xdotool");
                press.args(["key", key]);
                run(press);
            }
            several.0.try_wait().unwrap().is_some()
        });
        let tagged = daemon.client().get("/images?tags=sea").ok();
        tagged["pagination"]["total_items"] == 2
    });
}

#[test]
fn fuzzel_sets_the_picked_image() {
    // High enough for the menu's eight rows of pictures.
    let desktop = Desktop::wayland(&["800x600"]);
    let daemon = watching(&desktop);
    shows_pictures(&desktop, &daemon, "fuzzel", "HEADLESS-1");
    pick(&daemon, &["fuzzel"], &["wtype", "-k", "Return"]);
    // The first by name.
    assert_eq!(hangs(&daemon), "blue hill");
}

#[test]
fn nsxiv_sets_the_picked_image() {
    let desktop = Desktop::x11(&["800x600"]);
    let daemon = daemon(&desktop);
    shows_pictures(&desktop, &daemon, "nsxiv", "VIRTUAL-1");
    // Marks the first by name.
    pick(&daemon, &["nsxiv"], &["xdotool", "key", "m", "q"]);
    assert_eq!(hangs(&daemon), "blue hill");
}

#[test]
fn wofi_shows_pictures() {
    let desktop = Desktop::wayland(&["800x600"]);
    let daemon = watching(&desktop);
    shows_pictures(&desktop, &daemon, "wofi", "HEADLESS-1");
}

/// Opens a menu and waits until a screenshot has the colours of both pictures, not just their names.
fn shows_pictures(desktop: &Desktop, daemon: &TestDaemon, menu: &str, output: &str) {
    let mut process = End::spawn(script(daemon, "pick/murald-pick").arg(menu));
    let shot = daemon.root().join("shot.png");
    wait_until(&format!("{menu} shows both pictures"), || {
        let ended = process.0.try_wait().unwrap();
        assert!(ended.is_none(), "{menu}: {ended:?}");
        desktop.shot(&shot, output);
        let shown = image::open(&shot).unwrap().into_rgb8();
        let is = |pixel: &image::Rgb<u8>, color: [u8; 3]| {
            pixel
                .0
                .iter()
                .zip(color)
                .all(|(one, other)| one.abs_diff(other) < 16)
        };
        let count = |color| shown.pixels().filter(|pixel| is(pixel, color)).count();
        [[200, 30, 30], [40, 60, 200]]
            .into_iter()
            .all(|color| count(color) > 400)
    });
}

/// Opens a menu and sends a key until the menu closes. A key that comes too early is lost, or closes the
/// menu before its list is there: then it is opened again.
fn pick(daemon: &TestDaemon, line: &[&str], key: &[&str]) {
    wait_until("a wallpaper is set", || {
        let mut pick = End::spawn(script(daemon, "pick/murald-pick").args(line));
        wait_until("the window is closed", || {
            let struck = daemon.command(key[0]).args(&key[1..]).output().unwrap();
            assert!(struck.status.success(), "{struck:?}");
            pick.0.try_wait().unwrap().is_some()
        });
        daemon.client().get("/wallpaper/current").ok()["monitors"] != json!([])
    });
}

/// A process that is killed at the end of the test, with its children.
pub struct End(pub Child);

impl End {
    pub fn spawn(command: &mut Command) -> Self {
        Self(command.process_group(0).spawn().unwrap())
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.id());
        Command::new("kill")
            .args(["-KILL", "--", &group])
            .status()
            .ok();
        self.0.wait().ok();
    }
}

#[test]
fn waybar_script_prints_every_change() {
    let desktop = Desktop::wayland(&["640x360"]);
    let mut daemon = daemon(&desktop);
    // The stream of events opens late, as on a busy machine.
    let late = "[ \"$1\" != events ] || sleep 1";
    let executable = env!("CARGO_BIN_EXE_murald");
    daemon.stub(
        "murald",
        &format!("#!/bin/sh\n{late}\nexec '{executable}' \"$@\"\n"),
    );
    let mut child = End::spawn(script(&daemon, "waybar/murald-waybar").stdout(Stdio::piped()));
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!(next()["class"], "still");
    daemon
        .client()
        .post("/wallpaper/set", &json!({ "image_id": 1 }))
        .ok();
    // This change has no event yet.
    let line = loop {
        let line = next();
        if line["text"] == "red lake" {
            break line;
        }
    };
    assert_eq!(line["class"], "still");
    assert_eq!(line["tooltip"], "HEADLESS-1: red lake");
    let playlist = json!({
        "name": "both", "configuration": { "type": "manual" },
        "images": [{ "image_id": 1 }, { "image_id": 2 }],
    });
    let id = daemon.client().post("/playlists", &playlist).json()["id"].clone();
    daemon
        .client()
        .post(&format!("/playlists/{id}/start"), &json!({}))
        .ok();
    while next()["class"] != "playing" {}
    daemon
        .client()
        .post(&format!("/playlists/{id}/pause"), &json!({}))
        .ok();
    while next()["class"] != "paused" {}
    // The script exits with the daemon, and waybar restarts it.
    run(daemon.murald(&["stop"]));
    wait_until("the exit of the script", || {
        child.0.try_wait().unwrap().is_some()
    });
}

#[test]
fn waybar_script_shows_the_wallpaper_of_its_bar() {
    let desktop = Desktop::wayland(&["640x360", "640x360"]);
    let daemon = daemon(&desktop);
    for (image, monitor) in [(1, "HEADLESS-1"), (2, "HEADLESS-2")] {
        let body = json!({ "image_id": image, "monitor": monitor });
        daemon.client().post("/wallpaper/set", &body).ok();
    }
    for (output, expected) in [("", "blue hill, red lake"), ("HEADLESS-1", "red lake")] {
        let mut module = script(&daemon, "waybar/murald-waybar");
        module.env("WAYBAR_OUTPUT_NAME", output);
        let mut child = End::spawn(module.stdout(Stdio::piped()));
        let mut line = String::new();
        BufReader::new(child.0.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(said["text"], expected);
    }
}

/// waybar runs the module with our configuration, and shows its output.
#[test]
fn waybar_runs_the_module_with_our_configuration() {
    let desktop = Desktop::wayland(&["640x360"]);
    let daemon = daemon(&desktop);
    let contrib = Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib");
    let text = fs::read_to_string(contrib.join("waybar/config.jsonc")).unwrap();
    let told = daemon.root().join("told");
    let module = daemon.root().join("module");
    let real = contrib.join("waybar/murald-waybar");
    let tee = format!(
        "#!/bin/sh\n'{}' | tee '{}'\n",
        real.display(),
        told.display()
    );
    fs::write(&module, tee).unwrap();
    fs::set_permissions(&module, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let text = text.replace(
        "/usr/share/murald/waybar/murald-waybar",
        module.to_str().unwrap(),
    );
    let config = daemon.root().join("waybar.jsonc");
    fs::write(&config, text).unwrap();
    let log = fs::File::create(daemon.root().join("waybar.log")).unwrap();
    // waybar needs a session bus.
    let mut bar = daemon.command("dbus-run-session");
    bar.args(["--", "waybar", "--config"]).arg(&config);
    bar.stdout(log.try_clone().unwrap()).stderr(log);
    let _bar = End::spawn(&mut bar);
    daemon
        .client()
        .post("/wallpaper/set", &json!({ "image_id": 1 }))
        .ok();
    wait_until("the picture in waybar's module", || {
        fs::read_to_string(&told)
            .unwrap_or_default()
            .contains("red lake")
    });
    let said = fs::read_to_string(daemon.root().join("waybar.log")).unwrap();
    assert!(!said.contains("[error]"), "{said}");
}

#[test]
fn example_scripts_work() {
    let desktop = Desktop::wayland(&["640x360"]);
    let daemon = daemon(&desktop);
    let mut curl = script(&daemon, "examples/with-curl");
    curl.args(["#2838c0", "hill"]);
    let said = String::from_utf8(run(curl).stdout).unwrap();
    assert_eq!(said, "image 2 is on HEADLESS-1\n");
    let mut curl = script(&daemon, "examples/with-curl");
    assert_eq!(curl.arg("#00ff00").output().unwrap().status.code(), Some(1));
    let said = run(script(&daemon, "examples/with-socat")).stdout;
    let said: Value = serde_json::from_slice(&said).unwrap();
    assert_eq!(said["status"], "set");
    // `random` picks another image than the current one.
    assert_eq!(hangs(&daemon), "red lake");
    let mut python = script(&daemon, "examples/with-python");
    let mut python = python.arg("hill").stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(python.stdout.take().unwrap()).lines();
    let mut said = lines
        .map(Result::unwrap)
        .filter(|line| !line.starts_with("2 "));
    assert_eq!(said.next().unwrap(), "blue hill is on HEADLESS-1");
    daemon
        .client()
        .post("/wallpaper/set", &json!({ "image_id": 1 }))
        .ok();
    let next = said.find(|line| line == "now: red lake");
    python.kill().unwrap();
    python.wait().unwrap();
    assert!(next.is_some());
}
