//! Tests images that other programs decode: each variety that one of these decodes wrongly, made
//! with the formats' own encoders, as a thumbnail and on real monitors.

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use image::{Rgba, RgbaImage};
use murald::internals::media;
use serde_json::{Value, json};

use crate::desktop::{Desktop, wait_until};
use crate::support::{TestDaemon, left_out};

type Rgb = [u8; 3];

/// The quarters of the encoded image, clockwise from the top left.
const QUARTERS: [Rgb; 4] = [[255, 0, 0], [0, 255, 0], [255, 255, 255], [0, 0, 255]];
const SIZE: (u32, u32) = (384, 216);

/// Four tiles of 192 × 128, the last row cropped to 126 (Debian 12's heif-enc cannot write this).
const TILES: &[u8] = include_bytes!("samples/tiles.heic");
/// The colour (217,39,39) in Adobe RGB, encoded with `cjxl -d 0.1`.
const ADOBE: &[u8] = include_bytes!("samples/adobe.jxl");

struct Screen {
    desktop: Desktop,
    daemon: TestDaemon,
}

impl Screen {
    /// Encodes a sample; returns `None` if the encoder is not installed.
    fn encode(&self, name: &str, program: &str, arguments: &[&str]) -> Option<PathBuf> {
        let path = self.daemon.root().join(name);
        let mut command = Command::new(program);
        command
            .current_dir(self.daemon.root())
            .args(arguments)
            .arg(&path);
        match command.stdout(Stdio::null()).stderr(Stdio::null()).status() {
            Ok(status) => assert!(status.success(), "{program} {arguments:?}"),
            Err(error) => {
                left_out(name, &format!("{program}: {error}"));
                return None;
            }
        }
        Some(path)
    }

    /// Imports a file and checks the quarters of its thumbnail and of the screen; returns its
    /// record.
    fn check(&self, path: &Path, colors: [Rgb; 4]) -> Value {
        let id = self.daemon.import(&[path])[0];
        let shown = path.file_name().unwrap().to_string_lossy();
        let answer = self.daemon.client().get(&format!("/images/{id}/thumbnail"));
        assert_eq!(answer.status, 200, "{shown}: {}", answer.text());
        let mut webp = Cursor::new(&answer.body);
        let probe = media::probe(&mut webp).unwrap();
        let (width, height) = (probe.width, probe.height);
        let picture = probe.decode(&mut webp, (width, height)).unwrap();
        let bytes = picture.pixels().len() / (width * height) as usize;
        let pixel = |x: u32, y: u32| -> Rgb {
            let at = (y * width + x) as usize * bytes;
            let pixel = &picture.pixels()[at..at + bytes];
            // Composite over black.
            let alpha = u32::from(pixel.get(3).copied().unwrap_or(255));
            [0, 1, 2].map(|at| (u32::from(pixel[at]) * alpha / 255) as u8)
        };
        assert_near(
            &format!("thumbnail of {shown}"),
            quarters((width, height), pixel),
            colors,
        );
        self.daemon
            .client()
            .post("/wallpaper/set", &json!({ "image_id": id }))
            .ok();
        self.see("HEADLESS-1", colors);
        self.daemon.client().get(&format!("/images/{id}")).ok()
    }

    fn see(&self, output: &str, colors: [Rgb; 4]) {
        let shot = self.daemon.root().join("shot.png");
        wait_until(&format!("{colors:?} on {output}"), || {
            self.desktop.shot(&shot, output);
            let shot = image::open(&shot).unwrap().into_rgb8();
            is_near(
                quarters(shot.dimensions(), |x, y| shot.get_pixel(x, y).0),
                colors,
            )
        });
    }
}

/// Returns the colours at the centres of the quarters, clockwise.
fn quarters((width, height): (u32, u32), pixel: impl Fn(u32, u32) -> Rgb) -> [Rgb; 4] {
    let (left, right, upper, lower) = (width / 4, width * 3 / 4, height / 4, height * 3 / 4);
    [(left, upper), (right, upper), (right, lower), (left, lower)].map(|(x, y)| pixel(x, y))
}

fn is_near(seen: [Rgb; 4], expected: [Rgb; 4]) -> bool {
    seen.iter()
        .flatten()
        .zip(expected.iter().flatten())
        .all(|(a, &b)| a.abs_diff(b) <= 6)
}

fn assert_near(what: &str, seen: [Rgb; 4], expected: [Rgb; 4]) {
    assert!(
        is_near(seen, expected),
        "{what} has {seen:?}, not {expected:?}"
    );
}

fn order(corners: [usize; 4]) -> [Rgb; 4] {
    corners.map(|corner| QUARTERS[corner])
}

fn write_sources(root: &Path) {
    let whole = RgbaImage::from_fn(SIZE.0, SIZE.1, |x, y| {
        let at = [[0, 1], [3, 2]][(y >= SIZE.1 / 2) as usize][(x >= SIZE.0 / 2) as usize];
        let [r, g, b] = QUARTERS[at];
        Rgba([r, g, b, 255])
    });
    let rgb = image::DynamicImage::ImageRgba8(whole.clone()).into_rgb8();
    rgb.save(root.join("q.png")).unwrap();
    let halved = RgbaImage::from_fn(SIZE.0, SIZE.1, |x, y| {
        let Rgba([r, g, b, _]) = *whole.get_pixel(x, y);
        Rgba([r, g, b, if x < SIZE.0 / 2 { 0 } else { 255 }])
    });
    halved.save(root.join("alpha.png")).unwrap();
    image::RgbImage::from_pixel(64, 64, image::Rgb([148; 3]))
        .save(root.join("gray.png"))
        .unwrap();
    image::RgbImage::from_pixel(64, 64, image::Rgb([128, 102, 77]))
        .save(root.join("p3.png"))
        .unwrap();
    // EXIF orientation 6: avifenc converts it to `irot`, and decoders write both to their PNG
    // files.
    fs::write(
        root.join("turn.exif"),
        b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0",
    )
    .unwrap();
}

#[test]
fn images_that_other_programs_decode_are_shown_correctly() {
    let desktop = Desktop::wayland(&["640x360", "640x360"]);
    let mut daemon = TestDaemon::on(&desktop);
    daemon.configure("[backend]\ntype = \"swaybg\"\n");
    daemon.start();
    write_sources(daemon.root());
    let screen = Screen { desktop, daemon };
    let avif = |name: &str, options: &[&str], source, corners| {
        let arguments = [&["-s", "9"], options, &[source]].concat();
        let path = screen.encode(&format!("{name}.avif"), "avifenc", &arguments)?;
        Some(screen.check(&path, corners))
    };
    let upright = order([0, 1, 2, 3]);
    avif("plain", &[], "q.png", upright);
    avif("deep", &["-d", "10", "-y", "444"], "q.png", upright);
    avif("grid", &["--grid", "2x2"], "q.png", upright);
    avif(
        "cropped",
        &["--crop", "0,0,192,108"],
        "q.png",
        order([0; 4]),
    );
    if let Some(turned) = avif(
        "turned",
        &["--exif", "turn.exif"],
        "q.png",
        order([3, 0, 1, 2]),
    ) {
        assert_eq!(
            (&turned["width"], &turned["height"]),
            (&json!(216), &json!(384))
        );
    }
    avif(
        "mirrored",
        &["--irot", "1", "--imir", "1"],
        "q.png",
        order([2, 1, 0, 3]),
    );
    // heif-convert refuses this file, and ffmpeg shows it upside down.
    avif(
        "deep-mirrored",
        &["-d", "10", "--imir", "0"],
        "q.png",
        order([3, 2, 1, 0]),
    );
    let half = [[0; 3], QUARTERS[1], QUARTERS[2], [0; 3]];
    avif("alpha", &[], "alpha.png", half);
    // No program divides the colours by alpha again.
    if let Some(path) = screen.encode("premultiplied.avif", "avifenc", &["-p", "alpha.png"]) {
        let body = json!({ "paths": [path], "wait": true });
        let answer = screen.daemon.client().post("/images", &body).ok();
        let error = &answer["errors"][0]["error"];
        assert_eq!(
            error,
            "no program that murald knows decodes this AVIF correctly"
        );
    }
    // The samples mean white in PQ, not grey.
    avif(
        "pq",
        &["-d", "10", "--cicp", "9/16/9"],
        "gray.png",
        [[231; 3]; 4],
    );
    avif("p3", &["--cicp", "12/13/6"], "p3.png", [[132, 101, 74]; 4]);
    let bytes = |name: &str, bytes: &[u8], corners| {
        let path = screen.daemon.root().join(name);
        fs::write(&path, bytes).unwrap();
        screen.check(&path, corners)
    };
    bytes("tiles.heic", TILES, upright);
    bytes("adobe.jxl", ADOBE, [[252, 34, 34]; 4]);
    if let Some(path) = screen.encode("q.jxl", "cjxl", &["q.png"]) {
        screen.check(&path, upright);
    }
    // swaybg ignores colour profiles; this is Display P3 by code points.
    bytes(
        "wide.png",
        &wide_png(&screen.daemon.root().join("p3.png")),
        [[132, 101, 74]; 4],
    );
    drawing(&screen);
    screen
        .daemon
        .client()
        .post(
            "/wallpaper/set",
            &json!({ "image_id": 1, "mode": "extend" }),
        )
        .ok();
    screen.see("HEADLESS-1", order([0, 0, 3, 3]));
    screen.see("HEADLESS-2", order([1, 1, 2, 2]));
    let copies = screen.daemon.root().join("cache/murald/backends");
    let copies = fs::read_dir(copies).into_iter().flatten().flatten();
    let copies = copies
        .filter_map(|at| fs::read_dir(at.path().join("copies")).ok())
        .flatten();
    let names: Vec<_> = copies.flatten().map(|at| at.file_name()).collect();
    assert!(
        names
            .iter()
            .all(|name| !name.to_string_lossy().starts_with('.')),
        "{names:?}"
    );
}

/// Adds a chunk with the code points of Display P3 to a PNG.
fn wide_png(path: &Path) -> Vec<u8> {
    let mut png = fs::read(path).unwrap();
    let chunk = b"cICP\x0c\x0d\0\x01";
    let mut sum = flate2::Crc::new();
    sum.update(chunk);
    let chunk = [&4_u32.to_be_bytes(), &chunk[..], &sum.sum().to_be_bytes()].concat();
    // After the signature and the header.
    png.splice(33..33, chunk);
    png
}

/// Checks an SVG without a size, which is rendered in the monitor's resolution.
fn drawing(screen: &Screen) {
    let [a, b, c, d] = QUARTERS.map(|[r, g, b]| format!("rgb({r},{g},{b})"));
    let rect = |x, y, fill| format!("<rect x='{x}' y='{y}' width='8' height='4.5' fill='{fill}'/>");
    let (a, b, c, d) = (
        rect(0., 0., a),
        rect(8., 0., b),
        rect(8., 4.5, c),
        rect(0., 4.5, d),
    );
    let svg = format!(
        "<?xml version='1.0'?><svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 9'>{a}{b}{c}{d}</svg>"
    );
    let path = screen.daemon.root().join("drawing.svg");
    fs::write(&path, svg).unwrap();
    let record = screen.check(&path, order([0, 1, 2, 3]));
    assert_eq!(
        (&record["format"], &record["width"]),
        (&json!("svg"), &json!(1920))
    );
    let copies = screen
        .daemon
        .root()
        .join("cache/murald/backends/swaybg/copies");
    let sizes: Vec<_> = fs::read_dir(copies)
        .unwrap()
        .map(|entry| image::image_dimensions(entry.unwrap().path()).unwrap())
        .collect();
    assert!(sizes.contains(&(640, 360)), "{sizes:?}");
}

#[test]
fn image_that_no_installed_program_decodes_correctly_is_refused_with_a_suggestion() {
    let mut daemon = TestDaemon::new();
    daemon.only(&["sh", "ffmpeg", "ffprobe"]);
    daemon.start();
    let refused = |name: &str, bytes: &[u8]| {
        let path = daemon.root().join(name);
        fs::write(&path, bytes).unwrap();
        let mut events = daemon.events("image_error");
        daemon
            .client()
            .post("/images", &json!({ "paths": [path] }))
            .ok();
        events.next().1["error"].as_str().unwrap().to_owned()
    };
    let tiles =
        "no installed program decodes this HEIC correctly; install heif-dec or heif-convert";
    assert_eq!(refused("tiles.heic", TILES), tiles);
    let drawing = "no installed program decodes this SVG correctly; install rsvg-convert";
    assert_eq!(refused("a.svg", b"<svg/>\n"), drawing);
    // ffmpeg tries this file, and fails.
    let head = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic\0\0\0\x08mdat";
    let failed = refused("a.heic", head);
    assert!(
        failed.ends_with("; install heif-dec or heif-convert, which decodes HEIC"),
        "{failed}"
    );
    assert!(
        !failed.contains("/tmp") && !failed.contains(".murald"),
        "{failed}"
    );
}
