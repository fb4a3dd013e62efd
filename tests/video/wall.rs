//! Stills that only ffmpeg decodes, on real monitors: whole, and cut for two.

use std::path::Path;

use serde_json::json;

use crate::desktop::{Desktop, wait_until};
use crate::film::{has_encoder, make};
use crate::support::{House, left_out};

type Rgb = [u8; 3];

const RED: Rgb = [200, 30, 30];
const BLUE: Rgb = [40, 60, 200];

/// Two monitors of 640 × 360 side by side, left of the picture red and right of it blue.
const HALVES: &str = "color=0xc81e1e:s=640x360[a];color=0x283cc8:s=640x360[b];[a][b]hstack";

fn see(desktop: &Desktop, house: &House, output: &str, color: Rgb) {
    let shot = house.root().join("shot.png");
    wait_until(&format!("{color:?} on {output}"), || {
        desktop.shot(&shot, output);
        middle(&shot).iter().zip(color).all(|(&a, b)| a.abs_diff(b) <= 12)
    });
}

fn middle(picture: &Path) -> Rgb {
    let picture = image::open(picture).unwrap().into_rgb8();
    picture.get_pixel(picture.width() / 2, picture.height() / 2).0
}

#[test]
fn pictures_that_only_ffmpeg_decodes_are_shown_and_cut() {
    let desktop = Desktop::wayland(&["640x360", "640x360"]);
    let mut house = House::on(&desktop);
    house.configure("[backend]\ntype = \"swaybg\"\n");
    house.start();
    let check = |name: &str, encoder: &str, options: &[&str]| {
        if !has_encoder(encoder) {
            left_out(name, &format!("this ffmpeg has no {encoder}"));
            return;
        }
        let options = [&["-frames:v", "1", "-c:v", encoder], options].concat();
        let id = house.import(&[&make(&house, name, HALVES, &options)])[0];
        let hang = |body| house.client().post("/wallpaper/set", &body).ok();
        let hung = hang(json!({ "image_id": id, "mode": "extend" }));
        assert_eq!(hung["mode"], "extend");
        see(&desktop, &house, "HEADLESS-1", RED);
        see(&desktop, &house, "HEADLESS-2", BLUE);
        let blue = make(&house, &format!("blue-{name}"), "color=0x283cc8:s=640x360", &options);
        let blue = house.import(&[&blue])[0];
        hang(json!({ "image_id": blue }));
        see(&desktop, &house, "HEADLESS-1", BLUE);
    };
    check("halves.jxl", "libjxl", &[]);
    check("halves.avif", "libaom-av1", &["-still-picture", "1", "-pix_fmt", "yuv444p"]);
    let left = std::fs::read_dir(house.root().join("cache/murald/backends")).into_iter();
    let left = left.flatten().flatten().flat_map(|at| std::fs::read_dir(at.path())).flatten();
    let parts: Vec<_> = left.flatten().map(|at| at.path()).collect();
    assert!(parts.iter().all(|at| at.extension().is_none_or(|e| e != "part")), "{parts:?}");
}
