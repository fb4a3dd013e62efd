//! Tests murald's own renderer, on headless sway and X servers.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use murald::internals::backends::{Backend, Error, Kind};
use murald::internals::config::BackendName;
use murald::internals::process::Launch;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{AtomEnum, ConnectionExt};

use crate::desktop::{Desktop, wait_until};
use crate::frames::Watcher;
use crate::support::PATIENCE;
use crate::wall::{BLACK, BLUE, Foreign, GREEN, RED, Wall, near};

const NAME: &str = "builtin";

fn wall(sizes: &[&str]) -> (Wall, Box<dyn Backend>) {
    let outputs = sizes.iter().filter(|size| !size.starts_with('-')).count();
    let wall = Wall::new(Desktop::wayland(sizes), outputs);
    let builtin = wall.backend(BackendName::Builtin);
    (wall, builtin)
}

fn show(wall: &Wall, builtin: &mut Box<dyn Backend>, pictures: &[(&str, &Path)]) {
    builtin.show(&wall.hang(pictures), &wall.cancel).unwrap();
}

/// The number of frames that the process keeps.
fn frames(wall: &Wall) -> usize {
    let process = wall.processes(NAME).remove(0).pid;
    let files = fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    let links = files.filter_map(|file| fs::read_link(file.unwrap().path()).ok());
    links
        .filter(|link| link.to_string_lossy().starts_with("/memfd:murald"))
        .count()
}

/// Red above, blue below.
fn halves(wall: &Wall) -> PathBuf {
    wall.picture(
        "halves.png",
        &["-size", "200x100", "xc:red", "xc:blue", "-append"],
    )
}

#[test]
fn each_output_has_its_own_picture_and_only_what_differs_is_changed() {
    let (wall, mut builtin) = wall(&["1280x720", "720x1280", "800x600"]);
    let (red, green) = (wall.flat("red.png", RED), wall.flat("green.jpg", GREEN));
    let odd = wall.flat("-b, #%20'\"\\\n$HOME.png", BLUE);
    let pictures = [
        ("HEADLESS-1", &*red),
        ("HEADLESS-2", &*green),
        ("HEADLESS-3", &*odd),
    ];
    show(&wall, &mut builtin, &pictures);
    for (output, color) in [
        ("HEADLESS-1", RED),
        ("HEADLESS-2", GREEN),
        ("HEADLESS-3", BLUE),
    ] {
        wall.pixels(output).is_all(color);
    }
    wall.set(NAME, "transition_type", "none");
    let before = wall.processes(NAME);
    show(
        &wall,
        &mut builtin,
        &[("HEADLESS-1", &*green), pictures[1], pictures[2]],
    );
    for (output, color) in [
        ("HEADLESS-1", GREEN),
        ("HEADLESS-2", GREEN),
        ("HEADLESS-3", BLUE),
    ] {
        wall.pixels(output).is_all(color);
    }
    assert_eq!(wall.processes(NAME), before, "one process for all of it");
    // The backdrop is black: it would be visible if it were above the wallpaper.
    wall.set(NAME, "backdrop", "dim");
    wall.set_json(NAME, "backdrop_dim", 1.into());
    show(&wall, &mut builtin, &pictures);
    assert_eq!(frames(&wall), 6);
    for (output, color) in [
        ("HEADLESS-1", RED),
        ("HEADLESS-2", GREEN),
        ("HEADLESS-3", BLUE),
    ] {
        wall.pixels(output).is_all(color);
    }
    let before = wall.processes(NAME);
    wall.set(NAME, "backdrop", "none");
    show(&wall, &mut builtin, &pictures);
    assert_eq!((frames(&wall), wall.processes(NAME)), (3, before.clone()));
    builtin.clear().unwrap();
    assert!(wall.processes(NAME).is_empty() && !before[0].is_running());
}

/// An import accepts such a picture; it is converted for murald's own renderer as for other backends.
#[test]
fn pictures_that_only_ffmpeg_decodes_are_shown() {
    let (wall, mut builtin) = wall(&["640x360"]);
    let fax = [
        "-size",
        "64x36",
        "xc:white",
        "-monochrome",
        "-compress",
        "Fax",
    ];
    let fax = wall.picture("fax.tiff", &fax);
    show(&wall, &mut builtin, &[("HEADLESS-1", &fax)]);
    wall.pixels("HEADLESS-1").is_all([255; 3]);
}

#[test]
fn every_fit_position_and_colour_by_pixels_also_scaled_and_rotated() {
    let (wall, mut builtin) = wall(&["800x400"]);
    wall.set(NAME, "transition_type", "none");
    let square = halves(&wall);
    let mut check = |fit: &str, spots: &[(usize, usize, [u8; 3])]| {
        wall.set(NAME, "fit_mode", fit);
        show(&wall, &mut builtin, &[("HEADLESS-1", &square)]);
        let seen = wall.pixels("HEADLESS-1");
        spots
            .iter()
            .for_each(|&(x, y, color)| seen.shows(x, y, color));
    };
    // The picture has 200 by 200 pixels, 100 rows of each colour.
    check("cover", &[(2, 2, RED), (98, 45, RED), (2, 55, BLUE)]);
    check(
        "contain",
        &[
            (24, 50, BLACK),
            (26, 2, RED),
            (74, 98, BLUE),
            (76, 50, BLACK),
        ],
    );
    check("fill", &[(2, 2, RED), (98, 98, BLUE)]);
    check("tile", &[(98, 2, RED), (98, 30, BLUE), (2, 52, RED)]);
    check(
        "center",
        &[
            (36, 50, BLACK),
            (38, 26, RED),
            (62, 74, BLUE),
            (50, 24, BLACK),
        ],
    );
    wall.set(NAME, "fill_color", "00ff00");
    wall.set(NAME, "position", "bottom-right");
    check("contain", &[(48, 50, GREEN), (52, 2, RED), (98, 98, BLUE)]);
    wall.set(NAME, "position", "0%,0%");
    check("cover", &[(2, 2, RED), (98, 98, RED)]);
    wall.positions(&mut *builtin, "HEADLESS-1");
    let mut check = |fit: &str, spots: &[(usize, usize, [u8; 3])]| {
        wall.set(NAME, "fit_mode", fit);
        show(&wall, &mut builtin, &[("HEADLESS-1", &square)]);
        let seen = wall.pixels("HEADLESS-1");
        spots
            .iter()
            .for_each(|&(x, y, color)| seen.shows(x, y, color));
    };
    wall.set(NAME, "position", "center");
    wall.desktop
        .output("swaymsg", &["-q", "output HEADLESS-1 scale 2"]);
    check(
        "contain",
        &[
            (24, 50, GREEN),
            (26, 2, RED),
            (74, 98, BLUE),
            (76, 50, GREEN),
        ],
    );
    check(
        "center",
        &[
            (36, 50, GREEN),
            (38, 26, RED),
            (62, 74, BLUE),
            (50, 24, GREEN),
        ],
    );
    wall.desktop
        .output("swaymsg", &["-q", "output HEADLESS-1 scale 1 transform 90"]);
    // The process paints again by itself, without a request: the picture stays upright.
    let seen = || wall.pixels("HEADLESS-1");
    wait_until("the rotated picture", || {
        let seen = seen();
        near(seen.part(50, 45), RED)
            && near(seen.part(50, 55), BLUE)
            && near(seen.part(50, 36), GREEN)
    });
}

#[test]
fn picture_of_the_outputs_size_is_shown_exactly_and_exif_is_honoured() {
    let (wall, mut builtin) = wall(&["640x360"]);
    wall.set(NAME, "transition_type", "none");
    let words = ["-size", "640x360", "plasma:red-blue", "-depth", "8"];
    let plain = wall.picture("plain.png", &words);
    show(&wall, &mut builtin, &[("HEADLESS-1", &plain)]);
    let shot = wall.dir.path().join("whole.png");
    wall.desktop.shot(&shot, "HEADLESS-1");
    let words = [plain.to_str().unwrap(), shot.to_str().unwrap()];
    let differing = wall.differing_pixels(words[0], words[1]);
    assert_eq!(differing, 0);
    for kind in ["bmp", "tiff", "webp", "gif"] {
        show(
            &wall,
            &mut builtin,
            &[("HEADLESS-1", &wall.flat(&format!("green.{kind}"), GREEN))],
        );
        wall.pixels("HEADLESS-1").is_all(GREEN);
    }
    show(&wall, &mut builtin, &[("HEADLESS-1", &wall.camera())]);
    let turned = wall.pixels("HEADLESS-1");
    turned.shows(50, 10, RED);
    turned.shows(50, 90, BLUE);
}

#[test]
fn errors_leave_what_was_shown() {
    let (wall, mut builtin) = wall(&["--pluggable", "640x480", "640x480"]);
    wall.set(NAME, "transition_type", "none");
    let before = wall.errors_leave_the_picture(&mut *builtin, NAME);
    assert_eq!(wall.processes(NAME), before);
}

#[test]
fn renderer_outlives_the_daemon_is_adopted_and_restored_after_its_death() {
    let (wall, mut first) = wall(&["640x480"]);
    let (red, blue) = (wall.flat("red.png", RED), wall.flat("blue.png", BLUE));
    let red = wall.hang(&[("HEADLESS-1", &red)]);
    first.show(&red, &wall.cancel).unwrap();
    let before = wall.processes(NAME);
    drop(first);
    let watcher = Watcher::start(&wall.desktop, "HEADLESS-1");
    let mut second = wall.backend(BackendName::Builtin);
    second.show(&red, &wall.cancel).unwrap();
    assert_eq!(wall.processes(NAME), before);
    second
        .show(&wall.hang(&[("HEADLESS-1", &blue)]), &wall.cancel)
        .unwrap();
    assert_eq!(
        wall.processes(NAME),
        before,
        "the same process shows the next picture"
    );
    let frames = watcher.finish();
    assert!(
        frames
            .iter()
            .all(|frame| frame[1] <= 3 && frame[0].max(frame[2]) > 120),
        "{frames:?}"
    );
    while wall.told.try_recv().is_ok() {}
    wall.desktop
        .output("kill", &["-9", &before[0].pid.to_string()]);
    wall.told.recv_timeout(PATIENCE).unwrap();
    assert!(!second.is_whole());
    second
        .show(&wall.hang(&[("HEADLESS-1", &blue)]), &wall.cancel)
        .unwrap();
    assert!(second.is_whole());
    wall.pixels("HEADLESS-1").is_all(BLUE);
    second.clear().unwrap();
    assert!(wall.processes(NAME).is_empty());
    let left: Vec<_> = fs::read_dir(wall.backends.records.directory())
        .unwrap()
        .flatten()
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A process that claims another version in every answer.
const STRANGER: &str = "import socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[2])
listener.listen()
while True:
    client, _ = listener.accept()
    client.recv(65536)
    client.sendall(b'{\"version\":\"0.0.0\",\"outcome\":{\"shown\":[]}}\\n')
";

#[test]
fn process_of_another_version_or_stopped_process_is_replaced() {
    let wall = Wall::new(Desktop::wayland(&["640x480"]), 1);
    let socket = wall.backends.records.directory().join("builtin-1.sock");
    let script = wall.dir.path().join("stranger.py");
    fs::write(&script, STRANGER).unwrap();
    let launch = Launch::new("/usr/bin/python3").args([
        script.as_os_str(),
        "--socket".as_ref(),
        socket.as_os_str(),
    ]);
    let stranger = wall
        .backends
        .records
        .start(NAME, None, |_| launch)
        .unwrap()
        .child()
        .identity();
    wait_until("its socket", || socket.exists());
    let mut builtin = wall.backend(BackendName::Builtin);
    show(
        &wall,
        &mut builtin,
        &[("HEADLESS-1", &wall.flat("red.png", RED))],
    );
    wall.pixels("HEADLESS-1").is_all(RED);
    let now = wall.processes(NAME);
    assert!(now.len() == 1 && now[0] != stranger && !stranger.is_running());
    // The same for a process that does not answer.
    wall.desktop
        .output("kill", &["-STOP", &now[0].pid.to_string()]);
    show(
        &wall,
        &mut builtin,
        &[("HEADLESS-1", &wall.flat("blue.png", BLUE))],
    );
    wall.pixels("HEADLESS-1").is_all(BLUE);
    let next = wall.processes(NAME);
    assert!(next.len() == 1 && next[0] != now[0] && !now[0].is_running());
}

#[test]
fn reconnected_outputs_get_their_pictures_without_the_daemon() {
    let (wall, mut builtin) = wall(&["640x480", "800x600"]);
    let (red, blue) = (wall.flat("red.png", RED), wall.flat("blue.png", BLUE));
    // The backdrop is black: it would be visible if it were above the wallpaper.
    wall.set(NAME, "backdrop", "blur");
    wall.set_json(NAME, "backdrop_dim", 1.into());
    show(
        &wall,
        &mut builtin,
        &[("HEADLESS-1", &red), ("HEADLESS-2", &blue)],
    );
    let process = wall.processes(NAME);
    drop(builtin);
    // Newer versions of sway answer before a command is done; 1.7 accepts it, but leaves its outputs as
    // they are.
    let goes = !wall
        .desktop
        .output("swaymsg", &["--version"])
        .ends_with(" 1.7");
    let are = |count| !goes || wall.backends.outputs.list().len() == count;
    // The second time the file is missing, and its last frame is shown.
    for round in 0..2 {
        wall.desktop
            .output("swaymsg", &["-q", "output HEADLESS-2 disable"]);
        wait_until("the output is off", || are(1));
        if round == 1 {
            fs::remove_file(&blue).unwrap();
        }
        wall.desktop
            .output("swaymsg", &["-q", "output HEADLESS-2 enable"]);
        wait_until("the output is on", || are(2));
        wait_until("the picture on the output that is back", || {
            near(wall.pixels("HEADLESS-2").part(50, 50), BLUE)
        });
    }
    wall.desktop.output(
        "swaymsg",
        &["-q", "output HEADLESS-1 mode --custom 1024x768"],
    );
    wait_until("the picture in the new size", || {
        let seen = wall.pixels("HEADLESS-1");
        seen.size() == (1024, 768) && near(seen.part(98, 98), RED)
    });
    wait_until("the frames in the new size", || frames(&wall) == 4);

    // A picture whose file is missing while its output changes is stretched, until it is set again.
    let colors = [
        "-size", "100x100", "xc:red", "xc:lime", "xc:blue", "+append",
    ];
    let (columns, aside) = (
        wall.picture("columns.png", &colors),
        wall.dir.path().join("aside.png"),
    );
    let mut builtin = wall.backend(BackendName::Builtin);
    let pictures = [("HEADLESS-1", &*columns)];
    show(&wall, &mut builtin, &pictures);
    fs::rename(&columns, &aside).unwrap();
    wall.desktop.output(
        "swaymsg",
        &["-q", "output HEADLESS-1 mode --custom 300x600"],
    );
    wait_until("the stretched picture", || {
        let seen = wall.pixels("HEADLESS-1");
        seen.size() == (300, 600) && near(seen.part(3, 50), RED)
    });
    fs::rename(&aside, &columns).unwrap();
    show(&wall, &mut builtin, &pictures);
    // Waits, as the renderer may learn of the new size after the request.
    wait_until("the whole picture", || {
        let seen = wall.pixels("HEADLESS-1");
        [3, 50, 97].iter().all(|&x| near(seen.part(x, 50), GREEN))
    });
    assert_eq!(wall.processes(NAME), process);
}

#[test]
fn picture_over_two_outputs_continues_on_the_second() {
    let (wall, mut builtin) = wall(&["400x400", "400x400"]);
    wall.set(NAME, "transition_type", "none");
    // Four columns, of which each output shows two.
    let words = [
        "-size", "200x400", "xc:red", "xc:blue", "xc:lime", "xc:black", "+append",
    ];
    let wide = wall.picture("wide.png", &words);
    let mut placements = wall.hang(&[("HEADLESS-1", &wide), ("HEADLESS-2", &wide)]);
    let names = ["HEADLESS-1", "HEADLESS-2"].map(str::to_owned);
    let span: Vec<_> = placements
        .iter()
        .map(|placement| placement.output.clone())
        .collect();
    for placement in &mut placements {
        (placement.extended_over, placement.span) = (names.to_vec(), span.clone());
    }
    builtin.show(&placements, &wall.cancel).unwrap();
    let (left, right) = (wall.pixels("HEADLESS-1"), wall.pixels("HEADLESS-2"));
    for (pixels, colors) in [(&left, [RED, BLUE]), (&right, [GREEN, BLACK])] {
        for (x, color) in [
            (0, colors[0]),
            (48, colors[0]),
            (52, colors[1]),
            (99, colors[1]),
        ] {
            pixels.shows(x, 50, color);
        }
    }
}

#[test]
fn foreign_program_is_reported_and_left_alone() {
    let (wall, mut builtin) = wall(&["640x480"]);
    let mut foreign = Foreign::start(&wall.desktop);
    show(
        &wall,
        &mut builtin,
        &[("HEADLESS-1", &wall.flat("red.png", RED))],
    );
    let warnings = wall.backends.conflict_warnings(BackendName::Builtin);
    assert!(warnings.iter().any(|warning| warning.contains("swaybg")));
    builtin.clear().unwrap();
    assert!(foreign.runs());
}

#[test]
fn over_x11_the_root_window_keeps_what_was_painted() {
    let wall = Wall::new(Desktop::x11(&["800x600", "640x480"]), 2);
    let names: Vec<String> = wall
        .backends
        .outputs
        .list()
        .iter()
        .map(|output| output.name.clone())
        .collect();
    let (one, other) = (names[0].as_str(), names[1].as_str());
    let (red, square) = (wall.flat("red.png", RED), halves(&wall));
    wall.set(NAME, "fit_mode", "contain");
    wall.set(NAME, "fill_color", "00ff00");
    let mut builtin = wall.backend(BackendName::Builtin);
    show(&wall, &mut builtin, &[(one, &red), (other, &square)]);
    wall.pixels(one).shows(50, 50, RED);
    let seen = wall.pixels(other);
    seen.shows(5, 50, GREEN);
    seen.shows(50, 5, RED);
    seen.shows(50, 95, BLUE);
    assert!(
        wall.processes(NAME).is_empty() && builtin.is_whole(),
        "nothing stays but the picture"
    );
    let pixmaps = || {
        let property = |name: &str| wall.desktop.output("xprop", &["-root", name]);
        let id = |text: String| text.rsplit(' ').next().unwrap().to_owned();
        (
            id(property("_XROOTPMAP_ID")),
            id(property("ESETROOT_PMAP_ID")),
        )
    };
    let first = pixmaps();
    assert!(first.0.starts_with("0x") && first.0 == first.1, "{first:?}");
    show(&wall, &mut builtin, &[(one, &square), (other, &red)]);
    wall.pixels(other).shows(50, 50, RED);
    assert_ne!(pixmaps(), first);
    let error = builtin.show(&wall.hang(&[(one, Path::new("/no.png"))]), &wall.cancel);
    assert!(matches!(error, Err(Error::File { .. })));
    wall.pixels(other).shows(50, 50, RED);
    // A picture that another backend has painted since is not painted over.
    let mut feh = wall.backend(BackendName::Feh);
    feh.show(&wall.hang(&[(one, &red), (other, &red)]), &wall.cancel)
        .unwrap();
    builtin.clear().unwrap();
    wall.pixels(one).is_all(RED);
    show(&wall, &mut builtin, &[(one, &red), (other, &red)]);
    feh.clear().unwrap();
    wall.pixels(one).shows(50, 50, RED);
    builtin.clear().unwrap();
    wall.pixels(one).is_all(BLACK);
}

#[test]
fn over_x11_a_picture_is_freed_once_it_is_replaced() {
    let wall = Wall::new(Desktop::x11(&["320x240"]), 1);
    let pictures = [wall.flat("red.png", RED), wall.flat("green.png", GREEN)];
    let name = wall.backends.outputs.list()[0].name.clone();
    let (server, number) = x11rb::connect(wall.desktop.var("DISPLAY")).unwrap();
    let root = server.setup().roots[number].root;
    let property = server
        .intern_atom(false, b"_XROOTPMAP_ID")
        .unwrap()
        .reply()
        .unwrap()
        .atom;
    let shown = || {
        let property = server
            .get_property(false, root, property, AtomEnum::PIXMAP, 0, 1)
            .unwrap();
        property.reply().unwrap().value32().unwrap().next().unwrap()
    };
    let is_there = |pixmap: u32| server.get_geometry(pixmap).unwrap().reply().is_ok();
    let mut builtin = wall.backend(BackendName::Builtin);
    // The server reuses the numbers of pixmaps.
    let mut all = BTreeSet::new();
    for picture in pictures.iter().cycle().take(30) {
        show(&wall, &mut builtin, &[(&name, picture)]);
        all.insert(shown());
    }
    let left: Vec<u32> = all.into_iter().filter(|&pixmap| is_there(pixmap)).collect();
    assert_eq!(left, [shown()]);
}

#[test]
fn animated_pictures_play_until_the_settings_forbid_it() {
    let (wall, mut builtin) = wall(&["640x480"]);
    wall.set(NAME, "transition_type", "none");
    let seen = || wall.pixels("HEADLESS-1").part(50, 50);
    for kind in ["gif", "webp", "apng"] {
        let words = [
            "-delay", "10", "-size", "64x48", "xc:red", "xc:blue", "-loop", "0",
        ];
        let path = match kind {
            "apng" => apng(&wall),
            kind => wall.picture(&format!("moving.{kind}"), &words),
        };
        let mut placements = wall.hang(&[("HEADLESS-1", &path)]);
        placements[0].kind = Kind::AnimatedImage;
        builtin.show(&placements, &wall.cancel).unwrap();
        for color in [BLUE, RED, BLUE] {
            wait_until(&format!("the next frame of a {kind}"), || {
                near(seen(), color)
            });
        }
        wall.set_json(NAME, "animate", false.into());
        builtin.show(&placements, &wall.cancel).unwrap();
        wait_until("the first frame", || near(seen(), RED));
        // Twice as long as a frame is shown.
        let until = Instant::now() + Duration::from_millis(200);
        while Instant::now() < until {
            assert!(near(seen(), RED), "{kind} still moves");
        }
        wall.set_json(NAME, "animate", true.into());
    }
}

/// An animation of red and blue, a tenth of a second each.
fn apng(wall: &Wall) -> PathBuf {
    let path = wall.dir.path().join("moving.png");
    let mut encoder = png::Encoder::new(fs::File::create(&path).unwrap(), 64, 48);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_animated(2, 0).unwrap();
    encoder.set_frame_delay(1, 10).unwrap();
    let mut writer = encoder.write_header().unwrap();
    for color in [RED, BLUE] {
        writer.write_image_data(&color.repeat(64 * 48)).unwrap();
    }
    writer.finish().unwrap();
    path
}
