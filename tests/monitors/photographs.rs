//! Tests the main use as a whole: thirty photographs are imported and shown on real monitors, each
//! upright, under sway and X.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{ConnectionExt, ImageFormat};

use crate::desktop::{Desktop, SetOnDrop, wait_until};
use crate::support::TestDaemon;
use crate::support::photographs::{Photograph, distance, take};

/// The levels of 255 by which scaling, JPEG and grain may move the mean of a field.
const NEAR: f32 = 3.0;

/// A daemon with this many photographs, and their ids.
fn gallery(desktop: &Desktop, count: u32) -> (TestDaemon, Vec<Photograph>, Vec<i64>) {
    let daemon = TestDaemon::started_on(desktop);
    let directory = daemon.root().join("photographs");
    let photographs = take(&directory, count);
    assert_eq!(daemon.import(&[&directory]).len(), photographs.len());
    let page = daemon
        .client()
        .get("/images?per_page=200&sort_by=name&sort_order=asc")
        .ok();
    let images = page["data"].as_array().unwrap();
    for (image, photograph) in images.iter().zip(&photographs) {
        let stem = photograph.path.file_stem().unwrap().to_str().unwrap();
        assert_eq!(image["name"], stem);
        // The size as shown, also of photographs that are stored rotated.
        let (width, height) = photograph.picture.dimensions();
        assert_eq!(
            (&image["width"], &image["height"]),
            (&json!(width), &json!(height)),
            "{stem}"
        );
    }
    let ids = images
        .iter()
        .map(|image| image["id"].as_i64().unwrap())
        .collect();
    (daemon, photographs, ids)
}

fn shot(desktop: &Desktop, daemon: &TestDaemon, output: &str) -> image::RgbImage {
    let path = daemon.root().join("shot.png");
    desktop.shot(&path, output);
    image::open(&path).unwrap().into_rgb8()
}

/// Shows pairs on two outputs and checks both; the other photographs must not match.
fn each_its_own(desktop: &Desktop, outputs: [&str; 2], count: u32) {
    let (daemon, photographs, ids) = gallery(desktop, count);
    // 4, 9 and 14 are stored rotated.
    for (one, other) in [(0, 4), (9, 1), (2, 14)] {
        for (number, output) in [(one, outputs[0]), (other, outputs[1])] {
            let body = json!({ "image_id": ids[number], "monitor": output });
            daemon.client().post("/wallpaper/set", &body).ok();
        }
        for (number, output) in [(one, outputs[0]), (other, outputs[1])] {
            wait_until(&format!("photograph {number} on {output}"), || {
                distance(
                    &shot(desktop, &daemon, output),
                    &photographs[number].picture,
                ) < NEAR
            });
            let seen = shot(desktop, &daemon, output);
            for (stranger, photograph) in photographs.iter().enumerate() {
                let far = distance(&seen, &photograph.picture);
                assert_eq!(
                    far < NEAR * 2.0,
                    stranger == number,
                    "{stranger} for {number}: {far}"
                );
            }
        }
    }
}

#[test]
fn monitors_of_sway_show_their_photographs() {
    each_its_own(
        &Desktop::wayland(&["960x540", "800x600"]),
        ["HEADLESS-1", "HEADLESS-2"],
        30,
    );
}

#[test]
fn monitors_of_x_show_their_photographs() {
    each_its_own(
        &Desktop::x11(&["960x540", "800x600"]),
        ["VIRTUAL-1", "VIRTUAL-2"],
        15,
    );
}

#[test]
fn x_shows_no_frame_without_a_picture() {
    let desktop = Desktop::x11(&["1280x720"]);
    let daemon = TestDaemon::started_on(&desktop);
    let colors = [[200, 30, 30], [30, 180, 60]];
    let ids = colors.map(|color| {
        let path = daemon.root().join(format!("{}.png", color[0]));
        image::RgbImage::from_pixel(2560, 1440, image::Rgb(color))
            .save(&path)
            .unwrap();
        daemon.import(&[&path])[0]
    });
    let hang = |id: i64| {
        daemon
            .client()
            .post("/wallpaper/set", &json!({ "image_id": id }))
            .ok()
    };
    hang(ids[0]);
    let mut middle = eye(&desktop);
    wait_until("the first picture", || near(middle(), colors[0]));
    let done = AtomicBool::new(false);
    let samples = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut seen = [0_u32; 2];
            while !done.load(Ordering::Relaxed) {
                let color = middle();
                let which = colors.iter().position(|&one| near(color, one));
                seen[which.unwrap_or_else(|| panic!("saw {color:?}"))] += 1;
            }
            seen
        });
        let ended = SetOnDrop(&done);
        (0..10).for_each(|round| drop(hang(ids[(round + 1) % 2])));
        drop(ended);
        watcher.join().unwrap()
    });
    assert!(samples.iter().all(|&number| number >= 10), "{samples:?}");
}

/// Reads one pixel in the middle of the screen, thousands of times a second.
fn eye(desktop: &Desktop) -> impl FnMut() -> [u8; 3] + Send {
    let (connection, screen) = x11rb::connect(desktop.var("DISPLAY")).unwrap();
    let root = connection.setup().roots[screen].root;
    move || {
        let asked = connection
            .get_image(ImageFormat::Z_PIXMAP, root, 640, 360, 1, 1, !0)
            .unwrap();
        let data = asked.reply().unwrap().data;
        // Blue first, as on every little-endian X server of 24 bits.
        [data[2], data[1], data[0]]
    }
}

/// Scaling darkens by a level or two.
fn near(one: [u8; 3], other: [u8; 3]) -> bool {
    one.iter().zip(other).all(|(&a, b)| a.abs_diff(b) <= 4)
}
