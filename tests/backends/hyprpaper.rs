//! Tests hyprpaper and hyprctl with stand-ins that accept what the real ones accept.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use murald::internals::backends::{Backend, Error};
use murald::internals::config::BackendName;

use crate::stub::Stubs;
use crate::support::PATIENCE;
use crate::wall::{BLUE, RED};

fn show(stubs: &Stubs, backend: &mut dyn Backend, pictures: &[(&str, &Path)]) -> Result<(), Error> {
    backend.show(&stubs.wall.hang(pictures), &stubs.wall.cancel)
}

/// The number of starts of hyprpaper, without queries of its version.
fn starts(stubs: &Stubs) -> usize {
    stubs
        .calls("hyprpaper")
        .iter()
        .filter(|call| call[0] == "-c")
        .count()
}

/// The changes through hyprctl, without queries of what is shown.
fn changes(stubs: &Stubs) -> Vec<Vec<String>> {
    let calls = stubs.calls("hyprctl").into_iter();
    calls.filter(|call| call[1..] != ["listactive"]).collect()
}

/// Whether a path is another name of a file by a hard link, not a symbolic one.
fn is_twin(path: &Path, file: &Path) -> bool {
    let inode = |path: &Path| fs::symlink_metadata(path).unwrap().ino();
    path != file && inode(path) == inode(file)
}

#[test]
fn hyprpaper_is_started_with_a_file_and_sent_changes() {
    let stubs = Stubs::new(&["640x480", "640x480"]);
    let mut hyprpaper = stubs.wall.backend(BackendName::Hyprpaper);
    let (red, odd) = (
        stubs.wall.flat("red.png", RED),
        stubs.wall.flat("b, #$HOME.png", BLUE),
    );
    stubs.cue("hyprpaper", "late");
    show(
        &stubs,
        &mut *hyprpaper,
        &[("HEADLESS-1", &red), ("HEADLESS-2", &red)],
    )
    .unwrap();
    let file = stubs.root().join("home/.config/hypr/murald-hyprpaper.conf");
    assert_eq!(
        stubs.calls("hyprpaper").last().unwrap()[..],
        ["-c", file.to_str().unwrap()]
    );
    let block = |output: &str, path: &Path| {
        let path = path.display();
        format!(
            "\nwallpaper {{\n    monitor = {output}\n    path = {path}\n    fit_mode = cover\n}}\n"
        )
    };
    let text = fs::read_to_string(&file).unwrap();
    let tail = block("HEADLESS-1", &red) + &block("HEADLESS-2", &red);
    assert!(
        text.ends_with(&format!("\nsplash = false\nipc = true\n{tail}")),
        "{text}"
    );
    assert!(changes(&stubs).is_empty());
    let process = stubs.wall.processes("hyprpaper");
    // hyprpaper crops only at the centre, so it gets a copy of the output's size for another position.
    let mut seen = stubs
        .wall
        .hang(&[("HEADLESS-1", &red), ("HEADLESS-2", &red)]);
    seen[0].position = serde_json::from_value("left".into()).unwrap();
    hyprpaper.show(&seen, &stubs.wall.cancel).unwrap();
    let [call] = &changes(&stubs)[..] else {
        panic!("one change")
    };
    let cut = call[2]
        .strip_prefix("HEADLESS-1,")
        .unwrap()
        .strip_suffix(",cover")
        .unwrap();
    assert_eq!(image::image_dimensions(cut).unwrap(), (640, 480));
    // A name that hyprpaper could misread is replaced by another.
    show(
        &stubs,
        &mut *hyprpaper,
        &[("HEADLESS-1", &red), ("HEADLESS-2", &odd)],
    )
    .unwrap();
    let calls = changes(&stubs);
    assert_eq!(calls.len(), 3);
    let link = calls[2][2]
        .strip_prefix("HEADLESS-2,")
        .unwrap()
        .strip_suffix(",cover")
        .unwrap();
    assert!(is_twin(link.as_ref(), &odd));
    assert_eq!(stubs.wall.processes("hyprpaper"), process);
    // Only the configuration file can set `fill`, so a new process starts before the old one ends.
    stubs.wall.set("hyprpaper", "fit_mode", "fill");
    show(&stubs, &mut *hyprpaper, &[("HEADLESS-1", &red)]).unwrap();
    assert_eq!(starts(&stubs), 2);
    let now = stubs.wall.processes("hyprpaper");
    assert!(now.len() == 1 && now != process && !process[0].is_running());
    hyprpaper.clear().unwrap();
    assert!(stubs.wall.processes("hyprpaper").is_empty());
}

#[test]
fn version_before_0_8_gets_its_own_requests() {
    let stubs = Stubs::new(&["640x480"]);
    fs::write(stubs.notes.join("hyprpaper-old"), "x").unwrap();
    stubs.wall.set("hyprpaper", "fit_mode", "contain");
    let mut hyprpaper = stubs.wall.backend(BackendName::Hyprpaper);
    let (red, blue) = (
        stubs.wall.flat("red.png", RED),
        stubs.wall.flat("blue.png", BLUE),
    );
    show(&stubs, &mut *hyprpaper, &[("HEADLESS-1", &red)]).unwrap();
    show(&stubs, &mut *hyprpaper, &[("HEADLESS-1", &blue)]).unwrap();
    // Each fit has its own spelling of a path, as below.
    let [red, blue] = [red, blue].map(|path| {
        format!(
            "{}/./{}",
            stubs.root().display(),
            path.file_name().unwrap().display()
        )
    });
    let value = format!("HEADLESS-1,contain:{blue}");
    let expected = [
        "listactive".to_owned(),
        format!("preload {blue}"),
        format!("wallpaper {value}"),
        "listactive".to_owned(),
        format!("unload {red}"),
    ];
    // It has its own socket and reports no version, by which it is recognized.
    assert_eq!(stubs.note("hyprpaper-requests"), expected);
    assert!(stubs.calls("hyprctl").is_empty());
    assert_eq!(starts(&stubs), 1);
    assert!(stubs.note("hyprpaper-files")[0].contains("|preload = "));
}

/// Such a hyprpaper draws a path only once, whatever it is told, and answers `ok`.
#[test]
fn version_before_0_8_shows_each_fit_of_a_picture() {
    let stubs = Stubs::new(&["640x480", "640x480"]);
    fs::write(stubs.notes.join("hyprpaper-old"), "x").unwrap();
    let mut hyprpaper = stubs.wall.backend(BackendName::Hyprpaper);
    let red = stubs.wall.flat("red.png", RED);
    for fits in [["cover", "contain"], ["tile", "cover"], ["cover", "cover"]] {
        let mut placements = stubs
            .wall
            .hang(&[("HEADLESS-1", &red), ("HEADLESS-2", &red)]);
        for (placement, fit) in placements.iter_mut().zip(fits) {
            placement.fit = serde_json::from_value(fit.into()).unwrap();
        }
        hyprpaper.show(&placements, &stubs.wall.cancel).unwrap();
    }
    let expected = [
        ["HEADLESS-1 cover", "HEADLESS-2 contain"],
        ["HEADLESS-1 tile", "HEADLESS-2 cover"],
    ];
    assert_eq!(
        stubs.note("hyprpaper-seen"),
        [expected.as_flattened(), &["HEADLESS-1 cover"]].concat()
    );
    assert_eq!(starts(&stubs), 1);
    hyprpaper.clear().unwrap();
}

#[test]
fn version_before_0_8_warns_that_it_has_no_fill() {
    let stubs = Stubs::new(&["640x480", "640x480"]);
    fs::write(stubs.notes.join("hyprpaper-old"), "x").unwrap();
    let mut hyprpaper = stubs.wall.backend(BackendName::Hyprpaper);
    let red = stubs.wall.flat("red.png", RED);
    let told = |hyprpaper: &mut dyn Backend| -> Vec<String> {
        hyprpaper
            .warnings()
            .into_iter()
            .filter(|warning| warning.contains("`fill`"))
            .collect()
    };
    let mut placements = stubs
        .wall
        .hang(&[("HEADLESS-1", &red), ("HEADLESS-2", &red)]);
    placements[1].fit = serde_json::from_value("fill".into()).unwrap();
    hyprpaper.show(&placements, &stubs.wall.cancel).unwrap();
    let warnings = told(&mut *hyprpaper);
    assert!(
        warnings.len() == 1 && warnings[0].contains("on HEADLESS-2"),
        "{warnings:?}"
    );
    show(
        &stubs,
        &mut *hyprpaper,
        &[("HEADLESS-1", &red), ("HEADLESS-2", &red)],
    )
    .unwrap();
    assert_eq!(told(&mut *hyprpaper), [""; 0]);
    hyprpaper.clear().unwrap();
}

/// Such a hyprpaper replaces a link by its target, and never resolves it again.
#[test]
fn version_before_0_8_gets_no_links() {
    let stubs = Stubs::new(&["640x480"]);
    fs::write(stubs.notes.join("hyprpaper-old"), "x").unwrap();
    let mut hyprpaper = stubs.wall.backend(BackendName::Hyprpaper);
    let (red, odd) = (
        stubs.wall.flat("red.png", RED),
        stubs.wall.flat("b, #$HOME.png", BLUE),
    );
    let link = stubs.root().join("link.png");
    symlink("red.png", &link).unwrap();
    for (path, file) in [(&link, &red), (&odd, &odd)] {
        show(&stubs, &mut *hyprpaper, &[("HEADLESS-1", path)]).unwrap();
        let shown = stubs.note("hyprpaper-shown")[0]
            .split_once(": ")
            .unwrap()
            .1
            .to_owned();
        assert!(is_twin(shown.as_ref(), file), "{shown}");
    }
    hyprpaper.clear().unwrap();
}

#[test]
fn slow_hyprpaper_is_not_taken_for_an_old_version() {
    let stubs = Stubs::new(&["640x480"]);
    let red = stubs.wall.flat("red.png", RED);
    let mut hyprpaper = stubs.wall.backend(BackendName::Hyprpaper);
    stubs.cue("hyprpaper", "late-version");
    let error = show(&stubs, &mut *hyprpaper, &[("HEADLESS-1", &red)]).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("hyprpaper --version did not exit within"),
        "{error}"
    );
    assert_eq!(starts(&stubs), 0);
    // It is not remembered as an old version either.
    stubs.cue("hyprpaper", "");
    show(&stubs, &mut *hyprpaper, &[("HEADLESS-1", &red)]).unwrap();
    assert!(stubs.note("hyprpaper-files")[0].contains("|ipc = true|"));
    hyprpaper.clear().unwrap();
}

#[test]
fn hyprpaper_that_answers_ok_and_shows_nothing_has_failed() {
    let stubs = Stubs::new(&["640x480"]);
    let (red, blue) = (
        stubs.wall.flat("red.png", RED),
        stubs.wall.flat("blue.png", BLUE),
    );
    let mut hyprpaper = stubs.wall.backend(BackendName::Hyprpaper);
    stubs.cue("hyprpaper", "lie");
    let error = show(&stubs, &mut *hyprpaper, &[("HEADLESS-1", &red)]).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("on HEADLESS-1: it reports another wallpaper"),
        "{error}"
    );
    assert!(stubs.wall.processes("hyprpaper").is_empty());
    stubs.cue("hyprpaper", "");
    show(&stubs, &mut *hyprpaper, &[("HEADLESS-1", &red)]).unwrap();
    stubs.cue("hyprctl", "lie");
    let error = show(&stubs, &mut *hyprpaper, &[("HEADLESS-1", &blue)]).unwrap_err();
    assert!(
        error.to_string().contains("blue.png on HEADLESS-1"),
        "{error}"
    );
    hyprpaper.clear().unwrap();
    // Versions before 0.8 report this only in the log.
    let stubs = Stubs::new(&["640x480"]);
    fs::write(stubs.notes.join("hyprpaper-old"), "x").unwrap();
    let red = stubs.wall.flat("red.png", RED);
    let mut old = stubs.wall.backend(BackendName::Hyprpaper);
    stubs.cue("hyprpaper", "lie");
    let error = show(&stubs, &mut *old, &[("HEADLESS-1", &red)]).unwrap_err();
    assert!(
        error.to_string().contains("does not have a target"),
        "{error}"
    );
}

#[test]
fn directory_of_the_socket_may_be_created_late() {
    let stubs = Stubs::new(&["640x480"]);
    fs::remove_dir_all(stubs.root().join("run/hypr")).unwrap();
    let red = stubs.wall.flat("red.png", RED);
    let mut hyprpaper = stubs.wall.backend(BackendName::Hyprpaper);
    stubs.cue("hyprpaper", "late-directory");
    show(&stubs, &mut *hyprpaper, &[("HEADLESS-1", &red)]).unwrap();
    hyprpaper.clear().unwrap();
}

#[test]
fn hyprpaper_is_adopted_and_restored() {
    let stubs = Stubs::new(&["640x480"]);
    let red = stubs.wall.flat("red.png", RED);
    let mut first = stubs.wall.backend(BackendName::Hyprpaper);
    show(&stubs, &mut *first, &[("HEADLESS-1", &red)]).unwrap();
    let process = stubs.wall.processes("hyprpaper");
    drop(first);
    let mut second = stubs.wall.backend(BackendName::Hyprpaper);
    show(&stubs, &mut *second, &[("HEADLESS-1", &red)]).unwrap();
    assert_eq!(stubs.wall.processes("hyprpaper"), process);
    stubs
        .wall
        .desktop
        .output("kill", &["-9", &process[0].pid.to_string()]);
    stubs.wall.told.recv_timeout(PATIENCE).unwrap();
    assert!(!second.is_whole());
    show(&stubs, &mut *second, &[("HEADLESS-1", &red)]).unwrap();
    assert!(second.is_whole());
    assert_eq!(starts(&stubs), 2);
}

#[test]
fn process_whose_socket_was_removed_is_replaced() {
    for is_old in [false, true] {
        let stubs = Stubs::new(&["640x480"]);
        if is_old {
            fs::write(stubs.notes.join("hyprpaper-old"), "x").unwrap();
        }
        let mut hyprpaper = stubs.wall.backend(BackendName::Hyprpaper);
        let (red, blue) = (
            stubs.wall.flat("red.png", RED),
            stubs.wall.flat("blue.png", BLUE),
        );
        show(&stubs, &mut *hyprpaper, &[("HEADLESS-1", &red)]).unwrap();
        let old = stubs.wall.processes("hyprpaper");
        fs::remove_file(stubs.root().join("run/hypr/sig/.hyprpaper.sock")).unwrap();
        // The old process stays if the new one shows nothing.
        stubs.cue("hyprpaper", "lie");
        show(&stubs, &mut *hyprpaper, &[("HEADLESS-1", &blue)]).unwrap_err();
        assert_eq!(stubs.wall.processes("hyprpaper"), old);
        if is_old {
            let lock = fs::read_to_string(stubs.root().join("run/hyprpaper.lock")).unwrap();
            assert_eq!(lock, old[0].pid.to_string());
        }
        stubs.cue("hyprpaper", "");
        show(&stubs, &mut *hyprpaper, &[("HEADLESS-1", &blue)]).unwrap();
        assert!(stubs.note("hyprpaper-shown")[0].ends_with("/blue.png"));
        let [new] = stubs.wall.processes("hyprpaper")[..] else {
            panic!("one process")
        };
        assert!(new.is_running() && !old[0].is_running());
        show(&stubs, &mut *hyprpaper, &[("HEADLESS-1", &red)]).unwrap();
        assert_eq!(stubs.wall.processes("hyprpaper"), [new]);
        hyprpaper.clear().unwrap();
    }
}

#[test]
fn failures_of_hyprpaper_are_reported() {
    let stubs = Stubs::new(&["640x480"]);
    let mut hyprpaper = stubs.wall.backend(BackendName::Hyprpaper);
    let (red, blue) = (
        stubs.wall.flat("red.png", RED),
        stubs.wall.flat("blue.png", BLUE),
    );
    stubs.cue("hyprpaper", "die");
    let error = show(&stubs, &mut *hyprpaper, &[("HEADLESS-1", &red)]).unwrap_err();
    assert!(
        matches!(&error, Error::Unavailable(why) if why.contains("something is missing")),
        "{error}"
    );
    stubs.cue("hyprpaper", "");
    show(&stubs, &mut *hyprpaper, &[("HEADLESS-1", &red)]).unwrap();
    let process = stubs.wall.processes("hyprpaper");
    for (cue, said) in [("refuse", "it will not"), ("hang", "did not exit within")] {
        stubs.cue("hyprctl", cue);
        let error = show(&stubs, &mut *hyprpaper, &[("HEADLESS-1", &blue)]).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
    stubs.cue("hyprctl", "");
    show(&stubs, &mut *hyprpaper, &[("HEADLESS-1", &blue)]).unwrap();
    assert_eq!(stubs.wall.processes("hyprpaper"), process);
    // A process that crashes during a call is started again and shows the picture.
    stubs.cue("hyprctl", "crash");
    show(&stubs, &mut *hyprpaper, &[("HEADLESS-1", &red)]).unwrap();
    assert!(stubs.note("hyprpaper-shown")[0].ends_with("/red.png"));
    let now = stubs.wall.processes("hyprpaper");
    assert!(now.len() == 1 && now != process && now[0].is_running());
    hyprpaper.clear().unwrap();
    // A configuration file that the user wrote is not overwritten.
    let file = stubs.root().join("home/own.conf");
    fs::write(&file, "preload = /x\n").unwrap();
    stubs
        .wall
        .set("hyprpaper", "config_path", file.to_str().unwrap());
    let error = show(&stubs, &mut *hyprpaper, &[("HEADLESS-1", &red)]).unwrap_err();
    assert!(error.to_string().contains("own.conf"), "{error}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "preload = /x\n");
    // A hyprpaper that another program started keeps its socket.
    stubs.wall.set("hyprpaper", "config_path", "");
    let mut theirs = stubs
        .wall
        .desktop
        .command(stubs.root().join("bin/hyprpaper"));
    theirs.args(["-c", "/dev/null"]);
    let mut theirs = crate::wall::Foreign::spawn(theirs);
    let socket = stubs.root().join("run/hypr/sig/.hyprpaper.sock");
    crate::desktop::wait_until("it", || {
        std::os::unix::net::UnixStream::connect(&socket).is_ok()
    });
    let error = show(&stubs, &mut *hyprpaper, &[("HEADLESS-1", &red)]).unwrap_err();
    assert!(error.to_string().contains("did not start"), "{error}");
    assert!(theirs.runs());
}
