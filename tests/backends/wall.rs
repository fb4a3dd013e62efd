//! Provides a desktop, and everything that a backend needs on it without a daemon.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use crossbeam_channel::{Receiver, bounded};
use murald::internals::backends::{Backend, Backends, Error, Kind, Placement};
use murald::internals::compositor::Watch;
use murald::internals::config::{BackendName, ConfigHandle};
use murald::internals::decode::{self, Decoder};
use murald::internals::events::EventBus;
use murald::internals::kernel::Kernel;
use murald::internals::paths::{Dirs, Env};
use murald::internals::process::{Identity, ProcessRecords, Versions};
use murald::internals::sys::Cancel;
use murald::internals::thread::{Deaths, Spawner};

use crate::desktop::{Desktop, wait_until};

pub const RED: [u8; 3] = [255, 0, 0];
pub const GREEN: [u8; 3] = [0, 255, 0];
pub const BLUE: [u8; 3] = [0, 0, 255];
pub const WHITE: [u8; 3] = [255, 255, 255];
pub const BLACK: [u8; 3] = [0, 0, 0];

pub struct Wall {
    pub backends: Backends,
    config: ConfigHandle,
    pub cancel: Cancel,
    pub told: Receiver<()>,
    tell: crossbeam_channel::Sender<()>,
    _watch: Watch,
    _deaths: Deaths,
    pub dir: tempfile::TempDir,
    // Last, because the wallpapers are removed before the desktop ends.
    pub desktop: Desktop,
}

impl Wall {
    /// A wall with the programs of the system.
    pub fn new(desktop: Desktop, outputs: usize) -> Self {
        Self::with(
            desktop,
            outputs,
            tempfile::tempdir().unwrap(),
            Env::process(),
        )
    }

    /// A wall with other programs and directories.
    pub fn with(desktop: Desktop, outputs: usize, dir: tempfile::TempDir, env: Env) -> Self {
        let (spawner, deaths) = Spawner::new();
        let kernel = Kernel::start(&spawner).unwrap();
        let watch = Watch::start(&spawner, &kernel, None, &desktop.env()).unwrap();
        let run = dir.path().join("run");
        let config = ConfigHandle::open(dir.path().join("config.toml"), EventBus::new()).unwrap();
        let settings = config.clone();
        let program = Some(env!("CARGO_BIN_EXE_murald").into());
        let writable = vec![dir.path().to_owned()];
        let decode = decode::Settings {
            program,
            writable,
            imports: 1,
            silent_for: None,
        };
        let backends = Backends {
            decoder: Decoder::start(decode, &spawner).unwrap(),
            settings: Arc::new(move || settings.current()),
            outputs: watch.outputs(),
            records: ProcessRecords::open(&run).unwrap(),
            kernel,
            spawner,
            cache: dir.path().join("cache"),
            dirs: Dirs::new(env).unwrap(),
            versions: Versions::default(),
            own_program: Some(env!("CARGO_BIN_EXE_murald").into()),
        };
        wait_until("the outputs", || backends.outputs.list().len() == outputs);
        let (tell, told) = bounded(1);
        let cancel = Cancel::new().unwrap();
        Self {
            backends,
            config,
            cancel,
            told,
            tell,
            _watch: watch,
            _deaths: deaths,
            dir,
            desktop,
        }
    }

    /// A backend for all outputs, or for the first one if each has its own process.
    pub fn backend(&self, name: BackendName) -> Box<dyn Backend> {
        match name {
            BackendName::Mpvpaper => self.mpvpaper_on("HEADLESS-1"),
            _ => self.backends.build(name, None, self.tell.clone()),
        }
    }

    pub fn mpvpaper_on(&self, output: &str) -> Box<dyn Backend> {
        self.backends
            .build(BackendName::Mpvpaper, Some(output), self.tell.clone())
    }

    pub fn set(&self, backend: &str, key: &str, value: &str) {
        self.set_json(backend, key, value.into());
    }

    pub fn set_json(&self, backend: &str, key: &str, value: serde_json::Value) {
        self.patch(serde_json::json!({ "backend": { backend: { key: value } } }));
    }

    pub fn patch(&self, body: serde_json::Value) {
        self.config.patch(body.as_object().unwrap()).unwrap();
    }

    /// Makes a picture by ImageMagick's arguments.
    pub fn picture(&self, name: &str, words: &[&str]) -> PathBuf {
        let path = self.dir.path().join(name);
        // A neutral name, since the format is given in front of it.
        let plain = self.dir.path().join("made.tmp");
        let kind = name.rsplit('.').next().unwrap();
        let to = format!("{kind}:{}", plain.display());
        let status = Command::new("convert")
            .args(words)
            .arg(to)
            .status()
            .unwrap();
        assert!(status.success());
        fs::rename(plain, &path).unwrap();
        path
    }

    pub fn flat(&self, name: &str, color: [u8; 3]) -> PathBuf {
        let [r, g, b] = color;
        self.picture(name, &["-size", "64x36", &format!("xc:rgb({r},{g},{b})")])
    }

    /// A photograph that is stored rotated: red on top, blue below.
    pub fn camera(&self) -> PathBuf {
        let words = ["-size", "200x400", "xc:red", "xc:blue", "+append"];
        let path = self.picture("camera.jpg", &words);
        let mut jpeg = fs::read(&path).unwrap();
        // An EXIF block with nothing but orientation 6: the left column is the top row.
        let exif = b"\xff\xe1\0\x22Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
        jpeg.splice(2..2, exif.iter().copied());
        fs::write(&path, jpeg).unwrap();
        path
    }

    pub fn hang(&self, pictures: &[(&str, &Path)]) -> Vec<Placement> {
        let outputs = self.backends.outputs.list();
        let placement = |(name, path): &(&str, &Path)| Placement {
            output: outputs
                .iter()
                .find(|output| output.name == *name)
                .unwrap()
                .clone(),
            image_id: 1,
            path: (*path).to_owned(),
            content: String::new(),
            kind: Kind::StaticImage,
            audio_enabled: false,
            web: None,
            extended_over: Vec::new(),
            span: Vec::new(),
            fit: None,
            position: None,
            sound: None,
        };
        pictures.iter().map(placement).collect()
    }

    /// Shows each position of a square, red above blue, on an output that is twice as wide as high.
    pub fn positions(&self, backend: &mut dyn Backend, output: &str) {
        let square = self.picture(
            "halves.png",
            &["-size", "200x100", "xc:red", "xc:blue", "-append"],
        );
        for (position, at_70, at_80) in [
            ("top", RED, RED),
            ("0%,25%", RED, BLUE),
            ("center", BLUE, BLUE),
        ] {
            backend
                .show(&self.seen_at(output, &square, position), &self.cancel)
                .unwrap();
            let seen = self.pixels(output);
            for (y, color) in [(2, RED), (70, at_70), (80, at_80)] {
                seen.shows(98, y, color);
            }
        }
    }

    pub fn seen_at(&self, output: &str, path: &Path, position: &str) -> Vec<Placement> {
        let mut placements = self.hang(&[(output, path)]);
        placements[0].position = serde_json::from_value(position.into()).unwrap();
        placements
    }

    /// Has the backend fail on the pluggable outputs `WL-1` and `WL-2`, without a change of the picture.
    /// Returns the processes before the last change.
    #[track_caller]
    pub fn errors_leave_the_picture(&self, backend: &mut dyn Backend, name: &str) -> Vec<Identity> {
        let (red, blue) = (self.flat("red.png", RED), self.flat("blue.png", BLUE));
        let both = self.hang(&[("WL-1", &red), ("WL-2", &red)]);
        backend.show(&both, &self.cancel).unwrap();
        let before = self.processes(name);
        let broken = self.dir.path().join("broken.png");
        let bytes = fs::read(self.picture("noise.png", &["-size", "64x64", "plasma:"])).unwrap();
        fs::write(&broken, &bytes[..bytes.len() / 2]).unwrap();
        for path in [&*broken, Path::new("/nowhere.png")] {
            let placement = self.hang(&[("WL-1", path)]);
            let error = backend.show(&placement, &self.cancel).unwrap_err();
            assert!(
                matches!(&error, Error::File { path: named, .. } if named == path),
                "{error}"
            );
        }
        let cancelled = Cancel::new().unwrap();
        cancelled.cancel();
        let one = self.hang(&[("WL-1", &blue)]);
        let error = backend.show(&one, &cancelled).unwrap_err();
        assert_eq!(error, Error::Cancelled);
        assert_eq!(self.processes(name), before);
        self.pixels("WL-1").is_all(RED);
        // An output that is gone is not waited for.
        self.desktop.run("unplug", &["WL-2"]);
        let gone = Placement {
            path: blue,
            ..both[1].clone()
        };
        let placements = [one[0].clone(), gone];
        backend.show(&placements, &self.cancel).unwrap();
        self.pixels("WL-1").is_all(BLUE);
        assert!(backend.show(&placements[1..], &self.cancel).is_err());
        self.pixels("WL-1").is_all(BLUE);
        before
    }

    pub fn pixels(&self, output: &str) -> Pixels {
        let png = self.dir.path().join("shot.png");
        self.desktop.shot(&png, output);
        Pixels::read(&png)
    }

    /// How many pixels of two pictures of the same size differ at all.
    pub fn differing_pixels(&self, one: &str, other: &str) -> u64 {
        let words = ["-metric", "AE", one, other, "null:"];
        let output = Command::new("compare").args(words).output().unwrap();
        String::from_utf8(output.stderr)
            .unwrap()
            .trim()
            .parse()
            .unwrap()
    }

    pub fn processes(&self, backend: &str) -> Vec<Identity> {
        let running = self.backends.records.running(backend, None);
        running
            .iter()
            .map(|process| process.child().identity())
            .collect()
    }
}

impl Drop for Wall {
    /// Backends outlive the test, even one that fails, so they are killed here.
    fn drop(&mut self) {
        for (backend, _) in self.backends.records.left() {
            for process in self.backends.records.running(&backend, None) {
                process.kill();
            }
        }
    }
}

pub struct Pixels {
    width: usize,
    height: usize,
    rgb: Vec<u8>,
}

impl Pixels {
    pub fn read(png: &Path) -> Self {
        let output = Command::new("convert")
            .arg(png)
            .args(["-depth", "8", "ppm:-"])
            .output();
        let ppm = output.unwrap().stdout;
        let mut fields = ppm.splitn(5, |byte| byte.is_ascii_whitespace());
        assert_eq!(fields.next(), Some(&b"P6"[..]));
        let mut number = || {
            std::str::from_utf8(fields.next().unwrap())
                .unwrap()
                .parse()
                .unwrap()
        };
        let (width, height) = (number(), number());
        number();
        Self {
            width,
            height,
            rgb: fields.next().unwrap().to_vec(),
        }
    }

    fn at(&self, x: usize, y: usize) -> [u8; 3] {
        let at = (y * self.width + x) * 3;
        self.rgb[at..at + 3].try_into().unwrap()
    }

    pub fn size(&self) -> (usize, usize) {
        (self.width, self.height)
    }

    /// The pixel at a place in hundredths of width and height.
    pub fn part(&self, x: usize, y: usize) -> [u8; 3] {
        self.at(self.width * x / 100, self.height * y / 100)
    }

    #[track_caller]
    pub fn is_all(&self, color: [u8; 3]) {
        // Scaling blurs the edges, so only points inside are checked.
        for (x, y) in [(10, 10), (50, 50), (90, 90), (10, 90), (90, 10), (30, 60)] {
            self.shows(x, y, color);
        }
    }

    #[track_caller]
    pub fn shows(&self, x: usize, y: usize, color: [u8; 3]) {
        let seen = self.part(x, y);
        assert!(near(seen, color), "at {x}%, {y}%: {seen:?}, not {color:?}");
    }
}

/// Backends that scale darken by a level or two.
pub fn near(a: [u8; 3], b: [u8; 3]) -> bool {
    a.iter().zip(b).all(|(a, b)| a.abs_diff(b) <= 12)
}

/// A program that the user started.
pub struct Foreign(std::process::Child);

impl Foreign {
    /// A swaybg on no output, so that it shows nothing.
    pub fn start(desktop: &Desktop) -> Self {
        let mut command = desktop.command("swaybg");
        command.args(["-o", "none", "-c", "#123456"]);
        Self::spawn(command)
    }

    pub fn spawn(mut command: Command) -> Self {
        Self(
            command
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap(),
        )
    }

    pub fn runs(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
