//! Tests sessions that do not support murald's own renderer, or have no memory for it: this is reported,
//! and another backend is used.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use murald::internals::config::BackendName;
use serde_json::json;

use crate::desktop::Desktop;
use crate::hosted::Hosted;
use crate::support::TestDaemon;
use crate::wall::{BLUE, RED, Wall};

#[test]
fn without_layer_shell_no_backend_is_used_and_the_desktops_own_command_is_named() {
    let bare = BareCompositor::start();
    let socket = bare.socket.to_str().unwrap();
    let env = [("WAYLAND_DISPLAY", socket)];
    let hosted = Hosted::with("swaybg", &["awww", "awww-daemon"], &["640x480"], "", &env);
    let picture = hosted.picture("one.png");
    let client = hosted.daemon.client();
    let refused = client
        .post("/wallpaper/set", &json!({ "image_id": picture }))
        .fails(503);
    assert_eq!(refused["error_code"], "no_backend");
    let told = refused["error"].as_str().unwrap();
    for part in [
        "does not support wlr-layer-shell",
        "gsettings set",
        "plasma-apply-wallpaperimage",
    ] {
        assert!(told.contains(part), "{told}");
    }
    client.get("/wallpaper/current").fails(503);
    has_no_place(&hosted.daemon, "wlr-layer-shell");
    let doctor = hosted.daemon.murald(&["doctor"]).output().unwrap();
    let found = String::from_utf8(doctor.stdout).unwrap();
    let row = found
        .lines()
        .find(|row| row.starts_with("fix\tbackend\t"))
        .unwrap();
    assert!(
        row.contains("wlr-layer-shell") && row.contains("gsettings set"),
        "{found}"
    );
    assert!(
        !found.contains("ok\tbackend") && !row.contains("install"),
        "{found}"
    );
    // The renderer reports the same.
    let mut draw = hosted
        .daemon
        .murald(&["draw", "--socket", "/nowhere/draw.sock"]);
    let output = draw.env("WAYLAND_DISPLAY", socket).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("this compositor does not offer zwlr_layer_shell_v1"),
        "{said}"
    );
    assert!(!output.status.success());
}

#[test]
fn x_server_without_true_colour_is_left_to_other_backends() {
    let wall = Wall::new(Desktop::x11(&["--depth", "8", "800x600"]), 1);
    let red = wall.flat("red.png", RED);
    let output = wall.backends.outputs.list()[0].name.clone();
    let mut builtin = wall.backend(BackendName::Builtin);
    let error = builtin
        .show(&wall.hang(&[(&output, &red)]), &wall.cancel)
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("the X server has no true-colour visual"),
        "{error}"
    );
    let mut daemon = TestDaemon::on(&wall.desktop);
    daemon.only(&[]);
    daemon.start();
    let id = daemon.import(&[&red])[0];
    let refused = daemon
        .client()
        .post("/wallpaper/set", &json!({ "image_id": id }))
        .fails(503);
    assert_eq!(refused["error_code"], "no_backend");
    let told = refused["error"].as_str().unwrap();
    assert!(
        told.contains("TrueColor") && told.ends_with("is installed: feh"),
        "{told}"
    );
    has_no_place(&daemon, "TrueColor");
    let doctor = daemon.murald(&["doctor"]).output().unwrap();
    let found = String::from_utf8(doctor.stdout).unwrap();
    assert!(
        found.contains("TrueColor") && found.contains("install one of feh"),
        "{found}"
    );
    // The next backend is used, and shows what such a server can.
    let feh = wall.desktop.output("sh", &["-c", "command -v feh"]);
    std::os::unix::fs::symlink(feh, daemon.root().join("only/feh")).unwrap();
    let answer = daemon
        .client()
        .post("/wallpaper/set", &json!({ "image_id": id }))
        .ok();
    assert_eq!(answer["backend"], "feh");
    let [r, g, b] = wall.pixels(&output).part(50, 50);
    assert!(r > 150 && g < 90 && b < 90, "{r} {g} {b}");
}

/// Checks what is reported about the builtin backend.
fn has_no_place(daemon: &TestDaemon, lacks: &str) {
    let client = daemon.client();
    let all = client.get("/backends").ok();
    let own = all
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == "builtin")
        .unwrap();
    assert_eq!(
        (&own["installed"], &own["available"]),
        (&json!(true), &json!(false))
    );
    let refused = client
        .post("/backends/builtin/activate", &json!({}))
        .fails(503);
    let told = refused["error"].as_str().unwrap();
    assert!(told.contains(lacks), "{told}");
}

#[test]
fn without_shared_memory_the_old_picture_stays() {
    let wall = Wall::new(Desktop::wayland(&["640x480"]), 1);
    wall.set("builtin", "transition_type", "none");
    let (red, blue) = (wall.flat("red.png", RED), wall.flat("blue.png", BLUE));
    let mut builtin = wall.backend(BackendName::Builtin);
    builtin
        .show(&wall.hang(&[("HEADLESS-1", &red)]), &wall.cancel)
        .unwrap();
    let process = wall.processes("builtin");
    let pid = process[0].pid.to_string();
    // The limit of the file size also applies to shared memory.
    wall.desktop
        .output("prlimit", &["--pid", &pid, "--fsize=4096:"]);
    let blue = wall.hang(&[("HEADLESS-1", &blue)]);
    let error = builtin.show(&blue, &wall.cancel).unwrap_err().to_string();
    let expected = "cannot allocate shared memory for a frame of 640 × 480 pixels";
    assert!(error.contains(expected), "{error}");
    wall.pixels("HEADLESS-1").is_all(RED);
    wall.desktop
        .output("prlimit", &["--pid", &pid, "--fsize=1000000000:"]);
    builtin.show(&blue, &wall.cancel).unwrap();
    wall.pixels("HEADLESS-1").is_all(BLUE);
    assert_eq!(wall.processes("builtin"), process);
}

/// A Wayland compositor with an output but without layer shell, which sway cannot be. It speaks just
/// enough of the protocol for clients to find that out.
struct BareCompositor {
    socket: PathBuf,
    _directory: tempfile::TempDir,
}

const GLOBALS: [(&str, u32); 3] = [("wl_compositor", 4), ("wl_shm", 1), ("wl_output", 4)];
const DISPLAY: u32 = 1;

impl BareCompositor {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("wayland-bare");
        let listener = UnixListener::bind(&socket).unwrap();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                std::thread::spawn(move || serve(client));
            }
        });
        Self {
            socket,
            _directory: directory,
        }
    }
}

/// Serves a client until it disconnects.
fn serve(mut client: UnixStream) {
    let (mut head, mut registry) = ([0; 8], None);
    while client.read_exact(&mut head).is_ok() {
        let (object, word) = (number(&head, 0), number(&head, 4));
        let mut body = vec![0; (word >> 16) as usize - head.len()];
        client.read_exact(&mut body).unwrap();
        let mut say = |event: Event| client.write_all(&event.bytes()).ok();
        match (object, word & 0xffff) {
            // sync: done, and the object is free again.
            (DISPLAY, 0) => {
                say(Event::new(number(&body, 0), 0).number(0));
                say(Event::new(DISPLAY, 1).number(number(&body, 0)));
            }
            (DISPLAY, 1) => {
                registry = Some(number(&body, 0));
                for (name, (interface, version)) in GLOBALS.iter().enumerate() {
                    let event = Event::new(number(&body, 0), 0).number(name as u32);
                    say(event.text(interface).number(*version));
                }
            }
            (object, 0) if Some(object) == registry && number(&body, 0) == 2 => {
                let output = number(&body, body.len() - 4);
                let place = (0..5).fold(Event::new(output, 0), |event, _| event.number(0));
                say(place.text("maker").text("model").number(0));
                say(Event::new(output, 1)
                    .number(1)
                    .number(640)
                    .number(480)
                    .number(60_000));
                say(Event::new(output, 4).text("HEADLESS-1"));
                say(Event::new(output, 2));
            }
            _ => {}
        }
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// An event to send.
struct Event {
    object: u32,
    code: u32,
    arguments: Vec<u8>,
}

impl Event {
    fn new(object: u32, code: u32) -> Self {
        Self {
            object,
            code,
            arguments: Vec::new(),
        }
    }

    fn number(mut self, number: u32) -> Self {
        self.arguments.extend(number.to_ne_bytes());
        self
    }

    /// Adds a text with its final zero byte and padding.
    fn text(self, text: &str) -> Self {
        let mut event = self.number(text.len() as u32 + 1);
        event.arguments.extend(text.bytes());
        let length = event.arguments.len() + 1;
        event.arguments.resize(length.next_multiple_of(4), 0);
        event
    }

    fn bytes(self) -> Vec<u8> {
        let length = 8 + self.arguments.len() as u32;
        let head = [
            self.object.to_ne_bytes(),
            (length << 16 | self.code).to_ne_bytes(),
        ]
        .concat();
        [head, self.arguments].concat()
    }
}
