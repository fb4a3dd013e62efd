//! Real setters on real desktops: what is seen is compared pixel by pixel.

#![allow(clippy::disallowed_methods, clippy::print_stderr, clippy::unwrap_used)]

mod desktop;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, bounded};
use desktop::{Desktop, wait_until};
use murald::backends::{Backend, Error, Hanging, Kind, Setters, Versions};
use murald::compositor::{Output, Watch};
use murald::config::{BackendName, ConfigHandle};
use murald::events::Hub;
use murald::paths::Dirs;
use murald::process::{Cancel, Identity, Reaper, Roster};
use murald::thread::{Deaths, Spawner};

const RED: [u8; 3] = [255, 0, 0];
const GREEN: [u8; 3] = [0, 255, 0];
const BLUE: [u8; 3] = [0, 0, 255];
const WHITE: [u8; 3] = [255, 255, 255];
const BLACK: [u8; 3] = [0, 0, 0];

/// All that it takes to use a backend on a desktop, without a daemon.
struct Wall {
    setters: Setters,
    config: ConfigHandle,
    cancel: Cancel,
    told: Receiver<()>,
    tell: crossbeam_channel::Sender<()>,
    _watch: Watch,
    _deaths: Deaths,
    dir: tempfile::TempDir,
    // Last: the pictures are taken down before it goes.
    desktop: Desktop,
}

impl Wall {
    fn new(desktop: Desktop, outputs: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (spawner, deaths) = Spawner::new();
        let watch = Watch::start(&spawner, None, &desktop.env()).unwrap();
        let run = dir.path().join("run");
        let config = ConfigHandle::open(dir.path().join("config.toml"), Hub::new()).unwrap();
        let settings = config.clone();
        let setters = Setters {
            settings: Arc::new(move || settings.current()),
            outputs: watch.outputs(),
            roster: Roster::open(&run).unwrap(),
            reaper: Reaper::start(&spawner, &run).unwrap(),
            cache: dir.path().join("cache"),
            dirs: Dirs::of_process().unwrap(),
            versions: Versions::default(),
        };
        wait_until("the outputs", || setters.outputs.list().len() == outputs);
        let (tell, told) = bounded(1);
        let cancel = Cancel::new().unwrap();
        Self { setters, config, cancel, told, tell, _watch: watch, _deaths: deaths, dir, desktop }
    }

    fn backend(&self, name: BackendName) -> Box<dyn Backend> {
        self.setters.build(name, self.tell.clone()).unwrap()
    }

    fn set(&self, backend: &str, key: &str, value: &str) {
        let body = serde_json::json!({ "backend": { backend: { key: value } } });
        self.config.patch(body.as_object().unwrap()).unwrap();
    }

    /// Makes a picture with ImageMagick's words.
    fn picture(&self, name: &str, words: &[&str]) -> PathBuf {
        let path = self.dir.path().join(name);
        // A name of its own, so that the kind is ours to say.
        let plain = self.dir.path().join("made.tmp");
        let kind = name.rsplit('.').next().unwrap();
        let to = format!("{kind}:{}", plain.display());
        let status = Command::new("convert").args(words).arg(to).status().unwrap();
        assert!(status.success());
        fs::rename(plain, &path).unwrap();
        path
    }

    fn flat(&self, name: &str, color: [u8; 3]) -> PathBuf {
        let [r, g, b] = color;
        self.picture(name, &["-size", "64x36", &format!("xc:rgb({r},{g},{b})")])
    }

    /// A photograph that was stored lying on its side: red on top, blue below.
    fn camera(&self) -> PathBuf {
        let words = ["-size", "200x400", "xc:red", "xc:blue", "+append"];
        let path = self.picture("camera.jpg", &words);
        let mut jpeg = fs::read(&path).unwrap();
        // An EXIF block with nothing but orientation 6: the left column is the top row.
        let exif = b"\xff\xe1\0\x22Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
        jpeg.splice(2..2, exif.iter().copied());
        fs::write(&path, jpeg).unwrap();
        path
    }

    fn hang(&self, pictures: &[(&str, &Path)]) -> Vec<Hanging> {
        let outputs = self.setters.outputs.list();
        let hanging = |(name, path): &(&str, &Path)| Hanging {
            output: outputs.iter().find(|output| output.name == *name).unwrap().clone(),
            image_id: 1,
            path: (*path).to_owned(),
            kind: Kind::StaticImage,
            audio_enabled: false,
            web: None,
            extended_over: Vec::new(),
        };
        pictures.iter().map(hanging).collect()
    }

    fn pixels(&self, output: &str) -> Pixels {
        let png = self.dir.path().join("shot.png");
        self.desktop.shot(&png, output);
        Pixels::read(&png)
    }

    fn processes(&self, backend: &str) -> Vec<Identity> {
        let running = self.setters.roster.running(backend);
        running.iter().map(|setter| setter.child().identity()).collect()
    }
}

impl Drop for Wall {
    /// Setters outlive whoever starts them: also a test that fails.
    fn drop(&mut self) {
        for backend in self.setters.roster.backends() {
            for setter in self.setters.roster.running(&backend) {
                setter.kill();
            }
        }
    }
}

struct Pixels {
    width: usize,
    height: usize,
    rgb: Vec<u8>,
}

impl Pixels {
    fn read(png: &Path) -> Self {
        let output = Command::new("convert").arg(png).args(["-depth", "8", "ppm:-"]).output();
        let ppm = output.unwrap().stdout;
        let mut fields = ppm.splitn(5, |byte| byte.is_ascii_whitespace());
        assert_eq!(fields.next(), Some(&b"P6"[..]));
        let mut number = || std::str::from_utf8(fields.next().unwrap()).unwrap().parse().unwrap();
        let (width, height) = (number(), number());
        number();
        Self { width, height, rgb: fields.next().unwrap().to_vec() }
    }

    fn at(&self, x: usize, y: usize) -> [u8; 3] {
        let at = (y * self.width + x) * 3;
        self.rgb[at..at + 3].try_into().unwrap()
    }

    /// In hundredths of width and height.
    fn part(&self, x: usize, y: usize) -> [u8; 3] {
        self.at(self.width * x / 100, self.height * y / 100)
    }

    #[track_caller]
    fn is_all(&self, color: [u8; 3]) {
        // Scaled edges shade into what lies beside them.
        for (x, y) in [(10, 10), (50, 50), (90, 90), (10, 90), (90, 10), (30, 60)] {
            self.shows(x, y, color);
        }
    }

    #[track_caller]
    fn shows(&self, x: usize, y: usize, color: [u8; 3]) {
        let seen = self.part(x, y);
        assert!(near(seen, color), "at {x}%, {y}%: {seen:?}, not {color:?}");
    }
}

/// Setters that scale darken by a level or two.
fn near(a: [u8; 3], b: [u8; 3]) -> bool {
    a.iter().zip(b).all(|(a, b)| a.abs_diff(b) <= 12)
}

/// A swaybg that somebody else started; on no output, so that it shows nothing.
struct Foreign(std::process::Child);

impl Foreign {
    fn start(desktop: &Desktop) -> Self {
        let mut command = desktop.command("swaybg");
        command.args(["-o", "none", "-c", "#123456"]);
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    fn runs(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Photographs a spot of an output again and again.
struct Watcher {
    stop: crossbeam_channel::Sender<()>,
    count: Arc<AtomicUsize>,
    thread: std::thread::JoinHandle<Vec<[u8; 3]>>,
}

impl Watcher {
    /// A few pixels only, to a pipe, so that a frame takes some 10 ms.
    fn start(desktop: &Desktop, output: &Output) -> Self {
        let (stop, stopped) = bounded::<()>(0);
        let frame = {
            let (wayland, runtime) =
                (desktop.var("WAYLAND_DISPLAY"), desktop.var("XDG_RUNTIME_DIR"));
            let (wayland, runtime) = (wayland.unwrap().to_owned(), runtime.unwrap().to_owned());
            let middle = format!("{},{} 4x4", output.x + 100, output.y + 100);
            move || {
                let mut command = Command::new("grim");
                command.env("WAYLAND_DISPLAY", &wayland).env("XDG_RUNTIME_DIR", &runtime);
                command.args(["-t", "ppm", "-g", &middle, "-"]);
                let ppm = command.stderr(Stdio::null()).output().unwrap().stdout;
                let at = ppm.len() - (ppm.len() / 2 / 3) * 3;
                <[u8; 3]>::try_from(&ppm[at..at + 3]).unwrap()
            }
        };
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let thread = std::thread::spawn(move || {
            let mut seen = Vec::new();
            while stopped.try_recv() == Err(crossbeam_channel::TryRecvError::Empty) {
                seen.push(frame());
                counted.store(seen.len(), Ordering::Relaxed);
            }
            seen
        });
        Self { stop, count, thread }
    }

    fn frames(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    fn finish(self) -> Vec<[u8; 3]> {
        drop(self.stop);
        self.thread.join().unwrap()
    }
}

#[test]
fn swaybg_hangs_a_different_picture_on_each_output() {
    let wall = Wall::new(Desktop::wayland(&["1280x720", "720x1280", "800x600"]), 3);
    let mut swaybg = wall.backend(BackendName::Swaybg);
    let (red, green) = (wall.flat("red.png", RED), wall.flat("green.jpg", GREEN));
    let odd = wall.flat("-b, #%20'\"\\\n$HOME.png", BLUE);
    let pictures = [("HEADLESS-1", &*red), ("HEADLESS-2", &*green), ("HEADLESS-3", &*odd)];
    swaybg.show(&wall.hang(&pictures), &wall.cancel).unwrap();
    for (output, color) in [("HEADLESS-1", RED), ("HEADLESS-2", GREEN), ("HEADLESS-3", BLUE)] {
        wall.pixels(output).is_all(color);
    }
    assert_eq!(wall.processes("swaybg").len(), 1);
    // The others stay as they are when one changes.
    let pictures = [("HEADLESS-1", &*green), pictures[1], pictures[2]];
    swaybg.show(&wall.hang(&pictures), &wall.cancel).unwrap();
    for (output, color) in [("HEADLESS-1", GREEN), ("HEADLESS-2", GREEN), ("HEADLESS-3", BLUE)] {
        wall.pixels(output).is_all(color);
    }
    let before = wall.processes("swaybg");
    assert_eq!(before.len(), 1);
    swaybg.show(&wall.hang(&pictures), &wall.cancel).unwrap();
    assert_eq!(wall.processes("swaybg"), before, "nothing differs, nothing is done");
    swaybg.clear().unwrap();
    assert!(wall.processes("swaybg").is_empty() && !before[0].is_running());
}

#[test]
fn swaybg_shows_every_format_and_fit() {
    let wall = Wall::new(Desktop::wayland(&["800x400"]), 1);
    let mut swaybg = wall.backend(BackendName::Swaybg);
    let mut show = |path: &Path| {
        swaybg.show(&wall.hang(&[("HEADLESS-1", path)]), &wall.cancel).unwrap();
        wall.pixels("HEADLESS-1")
    };
    for kind in ["bmp", "tiff", "webp", "gif"] {
        show(&wall.flat(&format!("green.{kind}"), GREEN)).is_all(GREEN);
    }
    let turned = show(&wall.camera());
    turned.shows(50, 10, RED);
    turned.shows(50, 90, BLUE);
    let square = wall.picture("square.png", &["-size", "200x200", "xc:red", "xc:blue", "-append"]);
    for (mode, at, color) in [
        ("stretch", (2, 2), RED),
        ("fill", (2, 2), RED),
        ("fit", (2, 2), BLACK),
        ("center", (50, 2), RED),
        ("center", (2, 50), BLACK),
        ("tile", (98, 2), RED),
    ] {
        wall.set("swaybg", "fit_mode", mode);
        show(&square).shows(at.0, at.1, color);
    }
}

#[test]
fn swaybg_changes_without_a_blank_frame() {
    let wall = Wall::new(Desktop::wayland(&["1920x1080"]), 1);
    let mut swaybg = wall.backend(BackendName::Swaybg);
    // Large, so that it takes its time to load.
    let size = ["-size", "3840x2160"];
    let paint = |name: &str, color: &str| wall.picture(name, &[&size[..], &[color]].concat());
    let pictures = [paint("a.jpg", "xc:red"), paint("b.jpg", "xc:blue"), paint("c.jpg", "xc:lime")];
    let hang = |picture: &Path| wall.hang(&[("HEADLESS-1", picture)]);
    swaybg.show(&hang(&pictures[0]), &wall.cancel).unwrap();
    let watcher = Watcher::start(&wall.desktop, &wall.setters.outputs.list()[0]);
    let deadline = Instant::now() + Duration::from_secs(60);
    for picture in pictures.iter().cycle().skip(1) {
        swaybg.show(&hang(picture), &wall.cancel).unwrap();
        if watcher.frames() >= 100 || Instant::now() > deadline {
            break;
        }
    }
    let frames = watcher.finish();
    let blank = frames.iter().filter(|&&f| ![RED, GREEN, BLUE].iter().any(|&c| near(f, c)));
    assert_eq!(blank.count(), 0, "of {} frames", frames.len());
    let changes = frames.windows(2).filter(|pair| !near(pair[0], pair[1])).count();
    eprintln!("{} frames, {changes} changes seen", frames.len());
    assert!(changes >= 3, "{changes} changes in {} frames", frames.len());
}

#[test]
fn swaybg_errors_leave_what_hung() {
    let wall = Wall::new(Desktop::wayland(&["--pluggable", "640x480", "640x480"]), 2);
    let mut swaybg = wall.backend(BackendName::Swaybg);
    let red = wall.flat("red.png", RED);
    let scene = wall.hang(&[("WL-1", &red), ("WL-2", &red)]);
    swaybg.show(&scene, &wall.cancel).unwrap();
    let before = wall.processes("swaybg");
    let broken = wall.dir.path().join("broken.png");
    let bytes = fs::read(wall.picture("noise.png", &["-size", "64x64", "plasma:"])).unwrap();
    fs::write(&broken, &bytes[..bytes.len() / 2]).unwrap();
    for path in [&*broken, Path::new("/nowhere.png")] {
        let error = swaybg.show(&wall.hang(&[("WL-1", path)]), &wall.cancel).unwrap_err();
        assert!(matches!(&error, Error::File { path: named, .. } if named == path), "{error}");
    }
    let cancelled = Cancel::new().unwrap();
    cancelled.cancel();
    let blue = wall.flat("blue.png", BLUE);
    let error = swaybg.show(&wall.hang(&[("WL-1", &blue)]), &cancelled).unwrap_err();
    assert_eq!(error, Error::Cancelled);
    assert_eq!(wall.processes("swaybg"), before);
    wall.pixels("WL-1").is_all(RED);
    // An output that is gone is not waited for.
    wall.desktop.run("unplug", &["WL-2"]);
    let (begun, two) = (Instant::now(), wall.hang(&[("WL-1", &blue)]));
    let scene = [two[0].clone(), Hanging { path: blue, ..scene[1].clone() }];
    swaybg.show(&scene, &wall.cancel).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(9));
    wall.pixels("WL-1").is_all(BLUE);
    assert!(swaybg.show(&scene[1..], &wall.cancel).is_err());
    wall.pixels("WL-1").is_all(BLUE);
}

#[test]
fn swaybg_outlives_the_daemon_and_is_taken_over() {
    let wall = Wall::new(Desktop::wayland(&["640x480"]), 1);
    let (red, blue) = (wall.flat("red.png", RED), wall.flat("blue.png", BLUE));
    let red = wall.hang(&[("HEADLESS-1", &red)]);
    let mut first = wall.backend(BackendName::Swaybg);
    first.show(&red, &wall.cancel).unwrap();
    let before = wall.processes("swaybg");
    drop(first);
    let mut foreign = Foreign::start(&wall.desktop);
    let watcher = Watcher::start(&wall.desktop, &wall.setters.outputs.list()[0]);
    let mut second = wall.backend(BackendName::Swaybg);
    second.show(&red, &wall.cancel).unwrap();
    assert_eq!(wall.processes("swaybg"), before, "the same picture: nothing is started");
    second.show(&wall.hang(&[("HEADLESS-1", &blue)]), &wall.cancel).unwrap();
    let frames = watcher.finish();
    assert!(frames.iter().all(|&frame| near(frame, RED) || near(frame, BLUE)));
    assert!(!before[0].is_running());
    assert_eq!(wall.processes("swaybg").len(), 1);
    // It dies: told at once, and shown again.
    while wall.told.try_recv().is_ok() {}
    let pid = wall.processes("swaybg")[0].pid.to_string();
    wall.desktop.output("kill", &["-9", &pid]);
    wall.told.recv_timeout(Duration::from_secs(10)).unwrap();
    assert!(!second.is_whole());
    second.show(&wall.hang(&[("HEADLESS-1", &blue)]), &wall.cancel).unwrap();
    assert!(second.is_whole());
    wall.pixels("HEADLESS-1").is_all(BLUE);
    second.clear().unwrap();
    assert!(foreign.runs());
}

#[test]
fn feh_hangs_a_different_picture_on_each_monitor() {
    let wall = Wall::new(Desktop::x11(&["1280x720", "800x600", "640x480"]), 3);
    let mut feh = wall.backend(BackendName::Feh);
    let (red, green) = (wall.flat("red.png", RED), wall.flat("green.webp", GREEN));
    let odd = wall.flat("-b, #%20'\"\\\n$HOME.png", BLUE);
    let pictures = [("VIRTUAL-1", &*red), ("VIRTUAL-2", &*green), ("VIRTUAL-3", &*odd)];
    feh.show(&wall.hang(&pictures), &wall.cancel).unwrap();
    for (output, color) in [("VIRTUAL-1", RED), ("VIRTUAL-2", GREEN), ("VIRTUAL-3", BLUE)] {
        wall.pixels(output).is_all(color);
    }
    // One that cannot be read would move the others up.
    let gone = [pictures[0], ("VIRTUAL-2", Path::new("/nowhere.png")), pictures[2]];
    assert!(matches!(feh.show(&wall.hang(&gone), &wall.cancel), Err(Error::File { .. })));
    wall.pixels("VIRTUAL-3").is_all(BLUE);
    // A monitor without a picture is black, and the others keep theirs.
    feh.show(&wall.hang(&pictures[1..]), &wall.cancel).unwrap();
    for (output, color) in [("VIRTUAL-1", BLACK), ("VIRTUAL-2", GREEN), ("VIRTUAL-3", BLUE)] {
        wall.pixels(output).is_all(color);
    }
    feh.clear().unwrap();
    wall.pixels("VIRTUAL-2").is_all(BLACK);
}

#[test]
fn feh_fits_turns_and_follows_the_monitors() {
    let wall = Wall::new(Desktop::x11(&["--pluggable", "800x400", "400x400"]), 2);
    let mut feh = wall.backend(BackendName::Feh);
    let mut show = |pictures: &[(&str, &Path)]| {
        feh.show(&wall.hang(pictures), &wall.cancel).unwrap();
        wall.pixels(pictures[0].0)
    };
    let turned = show(&[("DUMMY0", &wall.camera())]);
    turned.shows(50, 10, RED);
    turned.shows(50, 90, BLUE);
    let square = wall.picture("square.png", &["-size", "200x200", "xc:red", "xc:white", "-append"]);
    for (mode, at, color) in [
        ("scale", (2, 2), RED),
        ("fill", (2, 2), RED),
        ("max", (2, 2), BLACK),
        ("center", (50, 2), RED),
        ("center", (2, 50), BLACK),
        ("tile", (98, 60), WHITE),
    ] {
        wall.set("feh", "mode", mode);
        show(&[("DUMMY0", &square)]).shows(at.0, at.1, color);
    }
    wall.set("feh", "mode", "fill");
    let (red, blue) = (wall.flat("red.png", RED), wall.flat("blue.png", BLUE));
    wall.desktop.run("unplug", &["DUMMY0"]);
    wait_until("one monitor", || wall.setters.outputs.list().len() == 1);
    show(&[("DUMMY1", &blue)]).is_all(BLUE);
    let again = wall.desktop.run("plug", &["800x400"]);
    wait_until("two monitors", || wall.setters.outputs.list().len() == 2);
    show(&[(&again, &red), ("DUMMY1", &blue)]).is_all(RED);
    wall.pixels("DUMMY1").is_all(BLUE);
}
