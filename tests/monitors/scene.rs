//! Provides helpers that set pictures and read them from the screen.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::desktop::{Desktop, SetOnDrop, wait_until};
use crate::support::TestDaemon;
use crate::support::client::Answer;

pub(crate) type Rgb = [u8; 3];

pub(crate) const RED: Rgb = [200, 30, 30];
pub(crate) const GREEN: Rgb = [30, 180, 60];
pub(crate) const BLUE: Rgb = [40, 60, 200];

/// A plain picture; backends may darken it by a level or two.
pub(crate) fn plain(daemon: &TestDaemon, name: &str, color: Rgb) -> PathBuf {
    let path = daemon.root().join(name);
    image::RgbImage::from_pixel(640, 360, image::Rgb(color))
        .save(&path)
        .unwrap();
    path
}

/// The colour of an output's middle.
pub(crate) fn seen(desktop: &Desktop, daemon: &TestDaemon, output: &str) -> Rgb {
    let path = daemon.root().join(format!("shot-{output}.png"));
    desktop.shot(&path, output);
    let picture = image::open(&path).unwrap().into_rgb8();
    picture
        .get_pixel(picture.width() / 2, picture.height() / 2)
        .0
}

pub(crate) fn near(one: Rgb, other: Rgb) -> bool {
    one.iter().zip(other).all(|(&a, b)| a.abs_diff(b) <= 4)
}

#[track_caller]
pub(crate) fn see(desktop: &Desktop, daemon: &TestDaemon, output: &str, color: Rgb) {
    wait_until(&format!("{color:?} on {output}"), || {
        near(seen(desktop, daemon, output), color)
    });
}

pub(crate) fn set(daemon: &TestDaemon, image: i64, monitor: &str) -> Answer {
    daemon.client().post(
        "/wallpaper/set",
        &json!({ "image_id": image, "monitor": monitor }),
    )
}

/// Red, green and blue in the library.
pub(crate) fn three(daemon: &TestDaemon) -> [i64; 3] {
    let paths = [("red", RED), ("green", GREEN), ("blue", BLUE)]
        .map(|(name, color)| plain(daemon, &format!("{name}.png"), color));
    let one = |path: &PathBuf| daemon.import(&[path])[0];
    [one(&paths[0]), one(&paths[1]), one(&paths[2])]
}

/// The processes of this program on this desktop, by their environment. Processes without an option do
/// nothing and are left out: newer versions of sway start such a swaybg if they have no background.
pub(crate) fn running(program: &str, runtime: &str) -> Vec<u32> {
    let mut pids = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse() else {
            continue;
        };
        let read = |name: &str| fs::read(entry.path().join(name)).unwrap_or_default();
        let name = read("comm");
        let environment = read("environ");
        let wanted = format!("XDG_RUNTIME_DIR={runtime}");
        let ours = environment
            .split(|&byte| byte == 0)
            .any(|one| one == wanted.as_bytes());
        let words = read("cmdline")
            .split(|&byte| byte == 0)
            .filter(|word| !word.is_empty())
            .count();
        if ours && words > 1 && String::from_utf8_lossy(&name).trim() == program {
            pids.push(pid);
        }
    }
    pids
}

/// Samples an output as fast as possible during a change, and fails if it shows another colour; returns
/// the number of samples.
pub(crate) fn watch_for_gaps(
    desktop: &Desktop,
    daemon: &TestDaemon,
    output: &str,
    allowed: &[Rgb],
    change: impl FnOnce(),
) -> usize {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut samples = 0;
            while !done.load(Ordering::Relaxed) {
                let color = middle(desktop, daemon, output);
                assert!(
                    allowed.iter().any(|&one| near(color, one)),
                    "saw {color:?} on {output}"
                );
                samples += 1;
            }
            samples
        });
        // Set even if the change fails; otherwise the watcher would never stop.
        let told = SetOnDrop(&done);
        change();
        drop(told);
        watcher.join().unwrap()
    })
}

/// Reads the middle pixel straight from grim, without encoding a PNG: 15 ms.
fn middle(desktop: &Desktop, daemon: &TestDaemon, output: &str) -> Rgb {
    let path = daemon.root().join("watch.ppm");
    let mut grim = desktop.command("grim");
    let status = grim.args(["-t", "ppm", "-o", output]).arg(&path).status();
    assert!(status.unwrap().success());
    let bytes = fs::read(&path).unwrap();
    // A header of three lines, then the pixels, row after row.
    let mut lines = bytes.splitn(4, |&byte| byte == b'\n').skip(1);
    let size = String::from_utf8(lines.next().unwrap().to_vec()).unwrap();
    let (width, height) = size.split_once(' ').unwrap();
    let (width, height): (usize, usize) = (width.parse().unwrap(), height.parse().unwrap());
    let pixels = lines.nth(1).unwrap();
    pixels[(height / 2 * width + width / 2) * 3..][..3]
        .try_into()
        .unwrap()
}

pub(crate) fn in_library(daemon: &TestDaemon) -> PathBuf {
    daemon.images().join("halves.png")
}
