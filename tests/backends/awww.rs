//! Tests awww with a stand-in that accepts what the real one accepts.

use std::path::Path;

use murald::internals::backends::{Backend, Error};
use murald::internals::config::BackendName;
use murald::internals::sys::Cancel;

use crate::stub::Stubs;
use crate::support::{PATIENCE, awww};
use crate::wall::{BLUE, RED};

fn show(stubs: &Stubs, awww: &mut dyn Backend, pictures: &[(&str, &Path)]) -> Result<(), Error> {
    awww.show(&stubs.wall.hang(pictures), &stubs.wall.cancel)
}

/// The calls of `awww img`, without their flags for the look: outputs and path.
fn images(stubs: &Stubs) -> Vec<(String, String)> {
    let calls = stubs
        .calls("awww")
        .into_iter()
        .filter(|call| call[0] == "img");
    let outputs = |call: &[String]| call[1].strip_prefix("--outputs=").unwrap().to_owned();
    calls
        .map(|call| (outputs(&call), call.last().unwrap().clone()))
        .collect()
}

#[test]
fn server_is_started_gets_calls_and_is_ended() {
    let stubs = Stubs::new(&["640x480", "640x480"]);
    stubs.wall.set("awww", "daemon_format", "argb");
    stubs.cue("awww-daemon", "late");
    let mut awww = stubs.wall.backend(BackendName::Awww);
    let (red, odd) = (
        stubs.wall.flat("red.png", RED),
        stubs.wall.flat("-b, #%20'\" $HOME.png", BLUE),
    );
    show(
        &stubs,
        &mut *awww,
        &[("HEADLESS-1", &red), ("HEADLESS-2", &red)],
    )
    .unwrap();
    assert_eq!(
        stubs.calls("awww-daemon"),
        [["--no-cache", "--format", "argb"]]
    );
    let both = (
        "HEADLESS-1,HEADLESS-2".to_owned(),
        red.to_str().unwrap().to_owned(),
    );
    assert_eq!(images(&stubs), [both]);
    let img = stubs
        .calls("awww")
        .into_iter()
        .find(|call| call[0] == "img")
        .unwrap();
    assert_eq!(img, awww::img("HEADLESS-1,HEADLESS-2", &red));
    // Only the output that differs gets a call.
    stubs.forget_calls();
    show(
        &stubs,
        &mut *awww,
        &[("HEADLESS-1", &red), ("HEADLESS-2", &odd)],
    )
    .unwrap();
    assert_eq!(
        images(&stubs),
        [("HEADLESS-2".to_owned(), odd.to_str().unwrap().to_owned())]
    );
    // The same picture gets another look.
    stubs.forget_calls();
    stubs.wall.set("awww", "resize", "fit");
    show(&stubs, &mut *awww, &[("HEADLESS-1", &red)]).unwrap();
    assert_eq!(images(&stubs).len(), 1);
    stubs.forget_calls();
    stubs.wall.set("awww", "resize", "crop");
    awww.show(
        &stubs.wall.seen_at("HEADLESS-1", &red, "left"),
        &stubs.wall.cancel,
    )
    .unwrap();
    assert_eq!(
        image::image_dimensions(&images(&stubs)[0].1).unwrap(),
        (640, 480)
    );
    stubs.wall.set("awww", "resize", "fit");
    stubs.forget_calls();
    show(&stubs, &mut *awww, &[("HEADLESS-1", &red)]).unwrap();
    // Changed transition settings set the picture again, once. The transition of one request is for that
    // request alone.
    stubs.wall.set_json("awww", "invert_y", true.into());
    stubs.wall.set_json("awww", "transition_fps", 30.into());
    for (own, calls) in [(None, 2), (Some("grow"), 2), (None, 2)] {
        awww.use_transition(own);
        show(&stubs, &mut *awww, &[("HEADLESS-1", &red)]).unwrap();
        assert_eq!(images(&stubs).len(), calls, "{own:?}");
    }
    let img = stubs
        .calls("awww")
        .into_iter()
        .rfind(|call| call[0] == "img")
        .unwrap();
    assert!(
        ["--invert-y", "--transition-fps=30"]
            .iter()
            .all(|flag| img.contains(&(*flag).into()))
    );
    let server = stubs.wall.processes("awww");
    assert_eq!(server.len(), 1);
    awww.clear().unwrap();
    assert!(!server[0].is_running());
}

#[test]
fn server_outlives_the_daemon_and_is_adopted() {
    let stubs = Stubs::new(&["640x480"]);
    let red = stubs.wall.flat("red.png", RED);
    let mut first = stubs.wall.backend(BackendName::Awww);
    show(&stubs, &mut *first, &[("HEADLESS-1", &red)]).unwrap();
    let server = stubs.wall.processes("awww");
    drop(first);
    stubs.forget_calls();
    let mut second = stubs.wall.backend(BackendName::Awww);
    show(&stubs, &mut *second, &[("HEADLESS-1", &red)]).unwrap();
    assert!(images(&stubs).is_empty() && stubs.calls("awww-daemon").is_empty());
    // The server dies: this is reported, and it is started again with its picture.
    stubs
        .wall
        .desktop
        .output("kill", &["-9", &server[0].pid.to_string()]);
    stubs.wall.told.recv_timeout(PATIENCE).unwrap();
    assert!(!second.is_whole());
    show(&stubs, &mut *second, &[("HEADLESS-1", &red)]).unwrap();
    assert_eq!(images(&stubs).len(), 1);
    assert!(second.is_whole());
    second.clear().unwrap();
    assert!(stubs.wall.processes("awww").is_empty());
}

#[test]
fn foreign_server_is_used_and_left_running() {
    let stubs = Stubs::new(&["640x480"]);
    let server = stubs
        .wall
        .desktop
        .command(stubs.root().join("bin/awww-daemon"));
    let mut server = crate::wall::Foreign::spawn(server);
    crate::desktop::wait_until("the server", || stubs.notes.join("awww-up").exists());
    let mut awww = stubs.wall.backend(BackendName::Awww);
    let red = stubs.wall.flat("red.png", RED);
    show(&stubs, &mut *awww, &[("HEADLESS-1", &red)]).unwrap();
    assert_eq!(stubs.calls("awww-daemon").len(), 1, "the one of the test");
    awww.clear().unwrap();
    assert!(server.runs());
}

#[test]
fn server_without_its_socket_ends_once_another_has_the_picture() {
    let stubs = Stubs::new(&["640x480"]);
    let mut awww = stubs.wall.backend(BackendName::Awww);
    let (red, blue) = (
        stubs.wall.flat("red.png", RED),
        stubs.wall.flat("blue.png", BLUE),
    );
    show(&stubs, &mut *awww, &[("HEADLESS-1", &red)]).unwrap();
    let old = stubs.wall.processes("awww").remove(0);
    std::fs::remove_file(stubs.notes.join("awww-up")).unwrap();
    stubs.cue("awww", "fail");
    show(&stubs, &mut *awww, &[("HEADLESS-1", &blue)]).unwrap_err();
    assert!(old.is_running(), "nobody else shows anything");
    assert_eq!(stubs.wall.processes("awww").len(), 1);
    stubs.cue("awww", "");
    show(&stubs, &mut *awww, &[("HEADLESS-1", &blue)]).unwrap();
    assert!(!old.is_running());
    // There is no transition from one server to the next.
    let img = stubs
        .calls("awww")
        .into_iter()
        .rfind(|call| call[0] == "img")
        .unwrap();
    assert!(
        img.contains(&"--transition-type=none".to_owned()),
        "{img:?}"
    );
    // The old server has left the socket of the new one alone.
    stubs.forget_calls();
    show(&stubs, &mut *awww, &[("HEADLESS-1", &red)]).unwrap();
    assert!(stubs.calls("awww-daemon").is_empty());
    awww.clear().unwrap();
}

#[test]
fn failures_of_awww_are_reported() {
    let stubs = Stubs::new(&["640x480"]);
    let mut awww = stubs.wall.backend(BackendName::Awww);
    let red = stubs.wall.flat("red.png", RED);
    let mut fails = |program: &str, cue: &str, said: &str| {
        stubs.cue(program, cue);
        let error = show(&stubs, &mut *awww, &[("HEADLESS-1", &red)]).unwrap_err();
        stubs.cue(program, "");
        assert!(error.to_string().contains(said), "{cue}: {error}");
        error
    };
    let error = fails("awww-daemon", "die", "failed to connect to wayland");
    assert!(matches!(error, Error::Unavailable(_)));
    assert!(stubs.wall.processes("awww").is_empty());
    // The client exits with success.
    let error = fails(
        "awww-daemon",
        "unsupported",
        "exited: [ERROR] WAYLAND PROTOCOL ERROR",
    );
    assert!(error.to_string().ends_with("Unsupported format"), "{error}");
    assert!(matches!(error, Error::Unavailable(_)));
    assert!(stubs.wall.processes("awww").is_empty());
    assert!(matches!(
        fails("awww", "garbage", "does not know the output"),
        Error::Refused(_)
    ));
    assert!(matches!(
        fails("awww", "hang", "did not exit within"),
        Error::Unavailable(_)
    ));
    show(&stubs, &mut *awww, &[("HEADLESS-1", &red)]).unwrap();
    let blue = stubs.wall.flat("blue.png", BLUE);
    stubs.cue("awww", "fail");
    let error = show(&stubs, &mut *awww, &[("HEADLESS-1", &blue)]).unwrap_err();
    assert!(
        matches!(&error, Error::Refused(why) if why.contains("it went wrong")),
        "{error}"
    );
    // A server that crashes during a call is started again and shows the picture.
    let before = stubs.wall.processes("awww");
    stubs.cue("awww", "crash");
    show(&stubs, &mut *awww, &[("HEADLESS-1", &blue)]).unwrap();
    let now = stubs.wall.processes("awww");
    assert!(now.len() == 1 && now != before && now[0].is_running());
    std::fs::write(stubs.notes.join("outputs"), "OTHER-1\n").unwrap();
    let error = show(&stubs, &mut *awww, &[("HEADLESS-1", &blue)]).unwrap_err();
    assert!(error.to_string().contains("HEADLESS-1"), "{error}");
    awww.clear().unwrap();
}

#[test]
fn picture_is_set_again_for_another_size() {
    let stubs = Stubs::new(&["640x480"]);
    let mut awww = stubs.wall.backend(BackendName::Awww);
    let red = stubs.wall.flat("red.png", RED);
    let mut tells = || {
        stubs.forget_calls();
        show(&stubs, &mut *awww, &[("HEADLESS-1", &red)]).unwrap();
        let calls = stubs
            .calls("awww")
            .into_iter()
            .filter(|call| call[0] == "img");
        calls
            .map(|call| call.contains(&"--transition-type=none".to_owned()))
            .collect::<Vec<_>>()
    };
    let geometry = |name: &str, says: &str| {
        std::fs::write(stubs.notes.join(format!("{name}-HEADLESS-1")), says).unwrap();
    };
    let change = |words: &str, width: u32| {
        stubs
            .wall
            .desktop
            .output("swaymsg", &["output", "HEADLESS-1", words]);
        let outputs = &stubs.wall.backends.outputs;
        crate::desktop::wait_until(words, || outputs.list()[0].logical_width == width);
    };
    assert_eq!(tells(), [false]);
    geometry("geometry", "480x640, scale: 1");
    change("transform 90", 480);
    assert_eq!(tells(), [true], "the same picture has no transition");
    assert!(tells().is_empty());
    // The server learns of the size after its client has asked for it.
    geometry("next-geometry", "240x320, scale: 2");
    change("scale 2", 240);
    assert_eq!(tells(), [true, true]);
    assert!(tells().is_empty());
    awww.clear().unwrap();
}

#[test]
fn picture_that_the_server_does_not_report_has_failed() {
    let stubs = Stubs::new(&["640x480"]);
    let mut awww = stubs.wall.backend(BackendName::Awww);
    let (red, link) = (
        stubs.wall.flat("red.png", RED),
        stubs.root().join("link.png"),
    );
    std::os::unix::fs::symlink(&red, &link).unwrap();
    stubs.cue("awww", "deaf");
    let error = show(&stubs, &mut *awww, &[("HEADLESS-1", &link)]).unwrap_err();
    let said = format!("awww does not show {} on HEADLESS-1", link.display());
    assert_eq!(error, Error::Refused(said));
    stubs.cue("awww", "");
    show(&stubs, &mut *awww, &[("HEADLESS-1", &link)]).unwrap();
    // A picture that is shown under another name is not set again.
    stubs.forget_calls();
    show(&stubs, &mut *awww, &[("HEADLESS-1", &link)]).unwrap();
    assert!(images(&stubs).is_empty());
    // A server that already shows a picture exits at the next one.
    stubs.cue("awww-daemon", "unsupported");
    let blue = stubs.wall.flat("blue.png", BLUE);
    let error = show(&stubs, &mut *awww, &[("HEADLESS-1", &blue)]).unwrap_err();
    assert!(error.to_string().contains("exited: [ERROR]"), "{error}");
    stubs.cue("awww-daemon", "");
    awww.clear().unwrap();
}

#[test]
fn file_is_blamed_only_for_its_own_faults() {
    let stubs = Stubs::new(&["640x480"]);
    let mut awww = stubs.wall.backend(BackendName::Awww);
    let red = stubs.wall.flat("red.png", RED);
    stubs.cue("awww", "usage");
    let error = show(&stubs, &mut *awww, &[("HEADLESS-1", &red)]).unwrap_err();
    let said = "awww failed: unexpected argument '--new' found";
    assert_eq!(error, Error::Refused(said.to_owned()));
    // The head of the file is intact.
    let cut = stubs.root().join("cut.png");
    let bytes = std::fs::read(&red).unwrap();
    std::fs::write(&cut, &bytes[..bytes.len() - 30]).unwrap();
    stubs.cue("awww", "undecodable");
    let error = show(&stubs, &mut *awww, &[("HEADLESS-1", &cut)]).unwrap_err();
    assert!(
        matches!(&error, Error::File { path, .. } if *path == cut),
        "{error}"
    );
    stubs.cue("awww", "");
    awww.clear().unwrap();
}

#[test]
fn negative_numbers_and_blanks_are_accepted() {
    let stubs = Stubs::new(&["640x480"]);
    let mut awww = stubs.wall.backend(BackendName::Awww);
    stubs
        .wall
        .set_json("awww", "transition_angle", serde_json::json!(-30));
    stubs.wall.set("awww", "transition_bezier", "-0.5, 0, 1, 1");
    stubs.wall.set("awww", "transition_wave", " 20, 20");
    let red = stubs.wall.flat("red.png", RED);
    show(&stubs, &mut *awww, &[("HEADLESS-1", &red)]).unwrap();
    awww.clear().unwrap();
}

#[test]
fn start_of_a_hanging_server_can_be_cancelled() {
    let stubs = Stubs::new(&["640x480"]);
    stubs.cue("awww-daemon", "hang");
    let mut awww = stubs.wall.backend(BackendName::Awww);
    let red = stubs.wall.flat("red.png", RED);
    let placements = stubs.wall.hang(&[("HEADLESS-1", &red)]);
    let cancel = Cancel::new().unwrap();
    let thread = {
        let cancel = cancel.clone();
        let calls = stubs.notes.join("calls");
        std::thread::spawn(move || {
            crate::desktop::wait_until("the server's start", || {
                let mut entries = std::fs::read_dir(&calls).unwrap().flatten();
                entries.any(|entry| {
                    entry
                        .file_name()
                        .to_string_lossy()
                        .starts_with("awww-daemon")
                })
            });
            cancel.cancel();
        })
    };
    assert_eq!(awww.show(&placements, &cancel), Err(Error::Cancelled));
    thread.join().unwrap();
    assert!(stubs.wall.processes("awww").is_empty());
}
