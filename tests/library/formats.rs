//! Imports files as other programs write them, through the real daemon: checks their records, and
//! compares their thumbnails with ImageMagick's view of the same files, which shares no decoder with
//! ours.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use image::RgbImage;
use serde_json::{Value, json};

use crate::support::TestDaemon;

const SIZE: (u32, u32) = (96, 64);

/// A file that is made of the scene, and its expected record.
struct Case {
    /// Its extension is the right one.
    file: &'static str,
    /// Arguments of `convert`, between the scene and the file.
    made: &'static str,
    format: &'static str,
    animated: bool,
    /// The mean difference that the thumbnail may have, in levels of 255: twice what lossy coding costs.
    within: f64,
}

const fn still(file: &'static str, made: &'static str, format: &'static str) -> Case {
    Case {
        file,
        made,
        format,
        animated: false,
        within: 4.0,
    }
}

const CASES: &[Case] = &[
    still("plain.png", "", "png"),
    still(
        "sixteen.png",
        "-depth 16 -define png:color-type=2 -define png:bit-depth=16",
        "png",
    ),
    still(
        "palette.png",
        "+dither -colors 200 -define png:color-type=3",
        "png",
    ),
    still("few.png", "+dither -colors 4 -type Palette", "png"),
    still(
        "grey.png",
        "-colorspace Gray -define png:color-type=0",
        "png",
    ),
    still(
        "grey16.png",
        "-colorspace Gray -depth 16 -define png:color-type=0 -define png:bit-depth=16",
        "png",
    ),
    still(
        "bitmap.png",
        "-colorspace Gray -threshold 50% -define png:color-type=0 -define png:bit-depth=1",
        "png",
    ),
    still("interlaced.png", "-interlace PNG", "png"),
    still("plain.jpg", "-quality 92", "jpg"),
    still("progressive.jpg", "-quality 92 -interlace JPEG", "jpg"),
    still("full.jpg", "-quality 92 -sampling-factor 1x1", "jpg"),
    still("grey.jpg", "-quality 92 -colorspace Gray", "jpg"),
    still("inks.jpg", "-quality 92 -colorspace CMYK", "jpg"),
    still("plain.gif", "+dither", "gif"),
    still("grey.gif", "-colorspace Gray", "gif"),
    still("interlaced.gif", "+dither -interlace GIF", "gif"),
    still("lossy.webp", "-quality 92", "webp"),
    still("lossless.webp", "-define webp:lossless=true", "webp"),
    still("plain.bmp", "", "bmp"),
    still("palette.bmp", "+dither -colors 200 -type Palette", "bmp"),
    still(
        "runs.bmp",
        "+dither -colors 200 -type Palette -compress RLE",
        "bmp",
    ),
    still("plain.tiff", "-compress None", "tiff"),
    still("packed.tiff", "-compress LZW", "tiff"),
    still("zip.tiff", "-compress Zip", "tiff"),
    still("sixteen.tiff", "-depth 16", "tiff"),
    still("grey.tiff", "-colorspace Gray", "tiff"),
    still("inks.tiff", "-colorspace CMYK", "tiff"),
    still("palette.tiff", "+dither -colors 200 -type Palette", "tiff"),
    // Few colours give hard edges, which resizing blurs.
    Case {
        within: 8.0,
        ..still(
            "few.tiff",
            "+dither -colors 16 -type Palette -depth 4",
            "tiff",
        )
    },
    still("tiles.tiff", "-define tiff:tile-geometry=64x64", "tiff"),
    still(
        "planes.tiff",
        "-interlace Plane -define tiff:tile-geometry=32x32",
        "tiff",
    ),
    still("photograph.tiff", "-compress JPEG -quality 95", "tiff"),
    // Like palettes, these two are decoded by ffmpeg.
    still("turned.tiff", "-define tiff:fill-order=lsb", "tiff"),
    still("fax.tiff", "-monochrome -compress Fax", "tiff"),
    Case {
        animated: true,
        ..still(
            "moves.gif",
            "+dither ( +clone -negate ) -set delay 10",
            "gif",
        )
    },
    Case {
        animated: true,
        ..still("moves.webp", "( +clone -negate ) -set delay 10", "webp")
    },
];

#[test]
fn files_of_other_programs_have_the_right_record_and_thumbnail() {
    let mut daemon = TestDaemon::new();
    let scene = scene(daemon.root());
    daemon.start();
    let mut wrong = Vec::new();
    for case in CASES {
        let path = daemon.root().join(case.file);
        convert(&scene, case.made, &path);
        let record = record(&daemon, &path);
        let said = (
            &record["format"],
            &record["animated"],
            &record["width"],
            &record["height"],
        );
        assert_eq!(
            said,
            (
                &case.format.into(),
                &case.animated.into(),
                &SIZE.0.into(),
                &SIZE.1.into()
            ),
            "{}",
            case.file
        );
        assert_eq!(record["duration"], 0.0, "{}", case.file);
        let distance = distance(&thumbnail(&daemon, &record), &shown(&path, ""));
        if distance > case.within {
            wrong.push(format!("{}: {distance:.1}", case.file));
        }
    }
    assert!(wrong.is_empty(), "these look different: {wrong:?}");
}

#[test]
fn error_names_the_variety_that_no_program_shows_correctly() {
    let mut daemon = TestDaemon::new();
    let scene = scene(daemon.root());
    daemon.start();
    let refused = |name: &str, made: &str| {
        let path = daemon.root().join(name);
        convert(&scene, made, &path);
        let body = json!({ "paths": [path], "wait": true });
        let answer = daemon.client().post("/images", &body).ok();
        answer["errors"][0]["error"].as_str().unwrap().to_owned()
    };
    let why = refused("lab.tiff", "-colorspace Lab");
    let said = [
        "this variety of TIFF is not supported: ",
        "photometric interpretation 8",
    ];
    assert!(said.iter().all(|part| why.contains(part)), "{why}");
}

#[test]
fn picture_without_its_end_marker_is_imported_with_a_note() {
    let mut daemon = TestDaemon::new();
    let scene = scene(daemon.root());
    daemon.start();
    let (whole, cut) = (
        daemon.root().join("whole.jpg"),
        daemon.root().join("cut.jpg"),
    );
    convert(&scene, "-quality 92", &whole);
    let content = fs::read(&whole).unwrap();
    fs::write(&cut, &content[..content.len() - 2]).unwrap();
    let mut events = daemon.events("image_processed");
    let body = json!({ "paths": [cut], "wait": true });
    let answer = daemon.client().post("/images", &body).ok();
    let note = "its end marker is missing";
    assert_eq!(answer["notes"], json!([{ "path": cut, "note": note }]));
    assert_eq!(events.next().1["note"], note);
    let record = daemon
        .client()
        .get(&format!("/images/{}", answer["images"][0]))
        .ok();
    assert!(distance(&thumbnail(&daemon, &record), &shown(&whole, "")) < 4.0);
    // A file that is imported by `set` gives the same note.
    let other = daemon.root().join("other.jpg");
    fs::write(
        &other,
        [&content[..content.len() - 2], &[0xff, 0xfe, 0, 2]].concat(),
    )
    .unwrap();
    let body = json!({ "path": other, "default": true });
    let answer = daemon.client().post("/wallpaper/set", &body).ok();
    assert_eq!(
        answer["warnings"],
        json!([format!("imported {}: {note}", other.display())])
    );
}

#[test]
fn pictures_of_all_eight_orientations_are_turned_upright() {
    let mut daemon = TestDaemon::new();
    let scene = scene(daemon.root());
    daemon.start();
    let plain = daemon.root().join("plain.jpg");
    convert(&scene, "-quality 92", &plain);
    let plain = fs::read(plain).unwrap();
    for orientation in 1..=8 {
        let path = daemon.root().join(format!("turned {orientation}.jpg"));
        fs::write(&path, tagged(&plain, orientation)).unwrap();
        let record = record(&daemon, &path);
        let (width, height) = if orientation < 5 {
            SIZE
        } else {
            (SIZE.1, SIZE.0)
        };
        let said = (&record["width"], &record["height"]);
        assert_eq!(
            said,
            (&width.into(), &height.into()),
            "orientation {orientation}"
        );
        let distance = distance(&thumbnail(&daemon, &record), &shown(&path, "-auto-orient"));
        assert!(distance < 4.0, "orientation {orientation}: {distance:.1}");
    }
}

#[test]
fn animated_png_is_recognised() {
    let mut daemon = TestDaemon::new();
    let scene = scene(daemon.root());
    daemon.start();
    let path = daemon.root().join("moves.png");
    let made = Command::new("ffmpeg")
        .args(["-v", "error", "-loop", "1", "-t", "0.5", "-r", "10", "-i"])
        .arg(&scene)
        // The colours change, because ffmpeg merges equal frames into one.
        .args(["-vf", "hue=h=90*t", "-f", "apng", "-plays", "0"])
        .arg(&path)
        .status();
    assert!(made.unwrap().success());
    let record = record(&daemon, &path);
    assert_eq!(
        (&record["format"], &record["animated"]),
        (&"png".into(), &true.into())
    );
    assert!(distance(&thumbnail(&daemon, &record), &shown(&path, "")) < 4.0);
}

/// Display P3, as telephones write it. Little CMS, through vips, gives the expected sRGB.
#[test]
fn photograph_in_a_wider_colour_space_is_converted_to_srgb() {
    let mut daemon = TestDaemon::new();
    let scene = scene(daemon.root());
    daemon.start();
    let vips = |from: &Path, to: &str, arguments: &[&str]| {
        let status = Command::new("vips")
            .arg("icc_transform")
            .arg(from)
            .arg(daemon.root().join(to))
            .args(arguments)
            .status();
        assert!(status.unwrap().success(), "{to}");
    };
    let wide = ["wide.jpg", "wide.png", "wide.webp", "wide.tif"].map(|file| (file, "p3"));
    let inks = ["inks.jpg", "inks.tif"].map(|file| (file, "cmyk"));
    for (file, profile) in wide.into_iter().chain(inks) {
        let quality = if file.ends_with("jpg") || file.ends_with("webp") {
            "[Q=95]"
        } else {
            ""
        };
        vips(
            &scene,
            &format!("{file}{quality}"),
            &[profile, "--input-profile", "srgb"],
        );
        let path = daemon.root().join(file);
        vips(&path, "expected.png", &["srgb", "--embedded"]);
        let record = record(&daemon, &path);
        let expected = shown(&daemon.root().join("expected.png"), "");
        let ours = distance(&thumbnail(&daemon, &record), &expected);
        let ignored = distance(&shown(&path, "-strip"), &expected);
        assert!(
            ours < 4.0 && ours * 2.0 < ignored,
            "{file}: {ours:.1}, ignored {ignored:.1}"
        );
        let colors = |record: &Value| record["colors"].as_array().unwrap().len();
        assert!(colors(&record) > 2, "{file}");
    }
}

/// A picture that looks different after any turn, mirroring or exchange of channels.
fn scene(root: &Path) -> PathBuf {
    let path = root.join("scene.png");
    let picture = RgbImage::from_fn(SIZE.0, SIZE.1, |x, y| {
        let corner = x < SIZE.0 / 3 && y < SIZE.1 / 3;
        let (red, green) = ((x * 255 / SIZE.0) as u8, (y * 255 / SIZE.1) as u8);
        image::Rgb(if corner {
            [30, 60, 220]
        } else {
            [red, green, 40]
        })
    });
    picture.save(&path).unwrap();
    path
}

fn convert(from: &Path, made: &str, to: &Path) {
    let status = Command::new("convert")
        .arg(from)
        .args(made.split_whitespace())
        .arg(to)
        .status();
    assert!(status.unwrap().success(), "{made} {}", to.display());
}

/// Imports a file, and returns its record.
fn record(daemon: &TestDaemon, path: &Path) -> Value {
    let id = daemon.import(&[path])[0];
    daemon.client().get(&format!("/images/{id}")).ok()
}

/// A thumbnail as ImageMagick decodes it.
fn thumbnail(daemon: &TestDaemon, record: &Value) -> RgbImage {
    let answer = daemon
        .client()
        .get(&format!("/images/{}/thumbnail", record["id"]));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let path = daemon.root().join("thumbnail.webp");
    fs::write(&path, answer.body).unwrap();
    shown(&path, "")
}

/// The first frame of a file as ImageMagick shows it.
fn shown(path: &Path, options: &str) -> RgbImage {
    let mut first = path.as_os_str().to_owned();
    first.push("[0]");
    let output = Command::new("convert")
        .arg(first)
        .args(options.split_whitespace())
        .args([
            "-colorspace",
            "sRGB",
            "-alpha",
            "off",
            "-depth",
            "8",
            "-type",
            "TrueColor",
            "ppm:-",
        ])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    ppm(&output.stdout)
}

fn ppm(bytes: &[u8]) -> RgbImage {
    let fields = bytes
        .splitn(5, |byte| byte.is_ascii_whitespace())
        .collect::<Vec<_>>();
    let number = |at: usize| {
        std::str::from_utf8(fields[at])
            .unwrap()
            .parse::<u32>()
            .unwrap()
    };
    assert_eq!((fields[0], fields[3]), (&b"P6"[..], &b"255"[..]));
    RgbImage::from_raw(number(1), number(2), fields[4].to_vec()).unwrap()
}

/// The mean difference, in levels of 255.
fn distance(one: &RgbImage, other: &RgbImage) -> f64 {
    assert_eq!(one.dimensions(), other.dimensions());
    let differences = one
        .iter()
        .zip(other.iter())
        .map(|(a, b)| f64::from(a.abs_diff(*b)));
    differences.sum::<f64>() / one.len() as f64
}

/// A JPEG with an Exif orientation.
fn tagged(plain: &[u8], orientation: u8) -> Vec<u8> {
    // One TIFF entry: Orientation (0x112), type SHORT, count 1.
    let mut exif =
        b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    exif[24] = orientation;
    let mut bytes = plain[..2].to_vec();
    bytes.extend([0xff, 0xe1]);
    bytes.extend((exif.len() as u16 + 2).to_be_bytes());
    bytes.extend(exif);
    bytes.extend(&plain[2..]);
    bytes
}
