//! Tests mpvpaper with a stand-in that has its command line and mpv's socket.

use std::fs;
use std::path::{Path, PathBuf};

use murald::internals::backends::{Backend, Error, Kind, Placement};
use murald::internals::config::BackendName;

use crate::stub::Stubs;
use crate::support::PATIENCE;

fn hang(stubs: &Stubs, videos: &[(&str, &Path)], audio: bool) -> Vec<Placement> {
    let placements = stubs.wall.hang(videos).into_iter();
    placements
        .map(|placement| Placement {
            kind: Kind::Video,
            audio_enabled: audio,
            ..placement
        })
        .collect()
}

fn show(stubs: &Stubs, backend: &mut dyn Backend, videos: &[(&str, &Path)]) -> Result<(), Error> {
    backend.show(&hang(stubs, videos, false), &stubs.wall.cancel)
}

/// A file with the head of a video, which is all that is read.
fn video(stubs: &Stubs, name: &str, content: &str) -> PathBuf {
    let path = stubs.root().join(name);
    fs::write(
        &path,
        [b"\0\0\0\x18ftypisom\0\0\0\0isommp42", content.as_bytes()].concat(),
    )
    .unwrap();
    path
}

#[test]
fn each_output_has_a_process_which_loads_the_next_video() {
    let stubs = Stubs::new(&["640x480", "640x480"]);
    let [mut first, mut second] =
        ["HEADLESS-1", "HEADLESS-2"].map(|output| stubs.wall.mpvpaper_on(output));
    let (one, odd) = (
        video(&stubs, "one.mp4", ""),
        video(&stubs, "-b, #%20'\"\n$HOME.mp4", ""),
    );
    show(&stubs, &mut *first, &[("HEADLESS-1", &one)]).unwrap();
    show(&stubs, &mut *second, &[("HEADLESS-2", &one)]).unwrap();
    let run = stubs.root().join("run");
    let calls = ["HEADLESS-1", "HEADLESS-2"].map(|output| {
        let socket = format!("{}/mpvpaper@{output}-1.sock", run.display());
        let options = format!("quiet no-audio loop input-ipc-server={socket}");
        ["-o", &options, output, one.to_str().unwrap()]
            .map(str::to_owned)
            .to_vec()
    });
    assert_eq!(stubs.calls("mpvpaper"), calls);
    let processes = stubs.wall.processes("mpvpaper");
    show(&stubs, &mut *second, &[("HEADLESS-2", &odd)]).unwrap();
    assert_eq!(stubs.wall.processes("mpvpaper"), processes);
    assert_eq!(
        stubs.note("mpvpaper-loads").join("\n"),
        odd.to_str().unwrap()
    );
    // Sound needs other options, so a new process replaces the old one.
    let loud = hang(&stubs, &[("HEADLESS-2", &odd)], true);
    second.show(&loud, &stubs.wall.cancel).unwrap();
    let now = stubs.wall.processes("mpvpaper");
    assert_eq!((now.len(), now[0]), (2, processes[0]));
    assert!(!processes.contains(&now[1]) && !processes[1].is_running());
    first.clear().unwrap();
    assert_eq!(stubs.wall.processes("mpvpaper"), now[1..]);
    second.clear().unwrap();
    assert!(stubs.wall.processes("mpvpaper").is_empty());
    let sockets = fs::read_dir(run).unwrap().flatten();
    assert_eq!(
        sockets
            .filter(|e| e.path().extension().is_some_and(|e| e == "sock"))
            .count(),
        0
    );
}

#[test]
fn mpvpaper_is_adopted_and_restored() {
    let stubs = Stubs::new(&["640x480"]);
    let (one, two) = (video(&stubs, "one.mp4", ""), video(&stubs, "two.mp4", ""));
    let mut first = stubs.wall.backend(BackendName::Mpvpaper);
    show(&stubs, &mut *first, &[("HEADLESS-1", &one)]).unwrap();
    show(&stubs, &mut *first, &[("HEADLESS-1", &two)]).unwrap();
    let process = stubs.wall.processes("mpvpaper");
    drop(first);
    let mut second = stubs.wall.backend(BackendName::Mpvpaper);
    show(&stubs, &mut *second, &[("HEADLESS-1", &two)]).unwrap();
    assert_eq!(
        stubs.note("mpvpaper-loads").len(),
        1,
        "it plays that already"
    );
    assert_eq!(stubs.wall.processes("mpvpaper"), process);
    // A loop has replaced the video under the same name.
    let mut placements = hang(&stubs, &[("HEADLESS-1", &two)], false);
    placements[0].content = "other".to_owned();
    second.show(&placements, &stubs.wall.cancel).unwrap();
    assert_eq!(
        stubs.note("mpvpaper-loads").len(),
        2,
        "it has to be told of that"
    );
    stubs
        .wall
        .desktop
        .output("kill", &["-9", &process[0].pid.to_string()]);
    stubs.wall.told.recv_timeout(PATIENCE).unwrap();
    assert!(!second.is_whole());
    show(&stubs, &mut *second, &[("HEADLESS-1", &two)]).unwrap();
    assert!(second.is_whole());
}

#[test]
fn failures_of_mpvpaper_are_reported() {
    let stubs = Stubs::new(&["640x480"]);
    let mut mpvpaper = stubs.wall.backend(BackendName::Mpvpaper);
    let (one, two) = (video(&stubs, "one.mp4", ""), video(&stubs, "two.mp4", ""));
    stubs.cue("mpvpaper", "die");
    let error = show(&stubs, &mut *mpvpaper, &[("HEADLESS-1", &one)]).unwrap_err();
    assert!(
        matches!(&error, Error::Unavailable(why) if why.contains("something is missing")),
        "{error}"
    );
    stubs.cue("mpvpaper", "late");
    show(&stubs, &mut *mpvpaper, &[("HEADLESS-1", &one)]).unwrap();
    stubs.cue("mpvpaper", "");
    let process = stubs.wall.processes("mpvpaper");
    // mpv cannot play this file, and continues with the old one.
    let broken = video(&stubs, "broken.mp4", "broken");
    let error = show(&stubs, &mut *mpvpaper, &[("HEADLESS-1", &broken)]).unwrap_err();
    assert!(
        matches!(&error, Error::File { path, .. } if *path == broken),
        "{error}"
    );
    // mpv is told to continue, and its answer is not awaited.
    crate::desktop::wait_until("the video before again", || {
        stubs.note("mpvpaper-loads").last().map(String::as_str) == one.to_str()
    });
    assert_eq!(stubs.wall.processes("mpvpaper"), process);
    // The connection breaks, so a new process is started.
    stubs.cue("mpvpaper", "break");
    let thread = {
        let (notes, calls) = (stubs.notes.clone(), stubs.calls("mpvpaper").len());
        std::thread::spawn(move || {
            crate::desktop::wait_until("a second start", || {
                fs::read_dir(notes.join("calls")).unwrap().count() > calls
            });
            fs::write(notes.join("cue-mpvpaper"), "").unwrap();
        })
    };
    show(&stubs, &mut *mpvpaper, &[("HEADLESS-1", &two)]).unwrap();
    thread.join().unwrap();
    assert!(!process[0].is_running());
    assert_eq!(stubs.wall.processes("mpvpaper").len(), 1);
    mpvpaper.clear().unwrap();
}

#[test]
fn process_that_hangs_is_killed_and_the_old_one_stays() {
    let stubs = Stubs::new(&["640x480"]);
    let mut mpvpaper = stubs.wall.backend(BackendName::Mpvpaper);
    let (one, broken) = (
        video(&stubs, "one.mp4", ""),
        video(&stubs, "broken.mp4", "broken"),
    );
    show(&stubs, &mut *mpvpaper, &[("HEADLESS-1", &one)]).unwrap();
    let process = stubs.wall.processes("mpvpaper");
    // Sound needs a new process.
    let loud = hang(&stubs, &[("HEADLESS-1", &broken)], true);
    let error = mpvpaper.show(&loud, &stubs.wall.cancel).unwrap_err();
    assert!(
        error.to_string().contains("did not start playing in time"),
        "{error}"
    );
    assert_eq!(stubs.note("mpvpaper-deaf").len(), 1);
    assert_eq!(stubs.wall.processes("mpvpaper"), process);
    mpvpaper.clear().unwrap();
}

#[test]
fn video_that_cannot_be_loaded_keeps_the_old_one_and_starts_nothing() {
    let stubs = Stubs::new(&["640x480"]);
    let mut mpvpaper = stubs.wall.backend(BackendName::Mpvpaper);
    let (one, broken) = (
        video(&stubs, "one.mp4", ""),
        video(&stubs, "broken.mp4", "broken"),
    );
    show(&stubs, &mut *mpvpaper, &[("HEADLESS-1", &one)]).unwrap();
    // mpv reports the reason and exits at once.
    stubs.cue("mpvpaper", "end");
    let error = show(&stubs, &mut *mpvpaper, &[("HEADLESS-1", &broken)]).unwrap_err();
    let said = "unrecognized file format";
    assert!(
        matches!(&error, Error::File { why, .. } if why == said),
        "{error}"
    );
    assert_eq!(stubs.calls("mpvpaper").len(), 1);
    assert_eq!(stubs.note("mpvpaper-deaf").len(), 0);
    // Its exit is reported, and the old video is restored.
    stubs.wall.told.recv_timeout(PATIENCE).unwrap();
    assert!(!mpvpaper.is_whole());
    stubs.cue("mpvpaper", "");
    show(&stubs, &mut *mpvpaper, &[("HEADLESS-1", &one)]).unwrap();
    assert_eq!(stubs.wall.processes("mpvpaper").len(), 1);
    mpvpaper.clear().unwrap();
}

#[test]
fn old_video_stays_until_the_new_one_is_visible() {
    let stubs = Stubs::new(&["640x480"]);
    let mut mpvpaper = stubs.wall.backend(BackendName::Mpvpaper);
    let (one, two) = (video(&stubs, "one.mp4", ""), video(&stubs, "two.mp4", ""));
    show(&stubs, &mut *mpvpaper, &[("HEADLESS-1", &one)]).unwrap();
    assert!(mpvpaper.warnings().is_empty());
    let old = stubs.wall.processes("mpvpaper");
    // The output is off. Sound needs a new process.
    stubs.cue("mpvpaper", "dark");
    let loud = hang(&stubs, &[("HEADLESS-1", &two)], true);
    mpvpaper.show(&loud, &stubs.wall.cancel).unwrap();
    let [warning] = &mpvpaper.warnings()[..] else {
        panic!("no warning")
    };
    assert!(
        warning.contains("HEADLESS-1") && warning.contains("off"),
        "{warning}"
    );
    assert!(old[0].is_running());
    assert_eq!(stubs.wall.processes("mpvpaper").len(), 2);
    // A daemon that ends leaves both processes, and the next one adopts both.
    drop(mpvpaper);
    let mut next = stubs.wall.backend(BackendName::Mpvpaper);
    assert_eq!(stubs.wall.processes("mpvpaper").len(), 2);
    let silent = hang(&stubs, &[("HEADLESS-1", &one)], false);
    next.show(&silent, &stubs.wall.cancel).unwrap();
    // The output is switched on.
    stubs.cue("mpvpaper", "");
    crate::desktop::wait_until("one process", || {
        stubs.wall.processes("mpvpaper").len() == 1
    });
    assert!(!old[0].is_running());
    assert!(next.is_whole());
    next.clear().unwrap();
    assert!(stubs.wall.processes("mpvpaper").is_empty());
}

/// As if each video were too much for the machine, so that mpv drops its frames.
#[test]
fn invisible_videos_do_not_accumulate() {
    let stubs = Stubs::new(&["640x480"]);
    let mut mpvpaper = stubs.wall.backend(BackendName::Mpvpaper);
    let video = video(&stubs, "one.mp4", "");
    show(&stubs, &mut *mpvpaper, &[("HEADLESS-1", &video)]).unwrap();
    let [seen] = stubs.wall.processes("mpvpaper")[..] else {
        panic!("one process")
    };
    stubs.cue("mpvpaper", "dark");
    for options in ["loop panscan=1", "loop", "loop mute=yes"] {
        stubs.wall.set("mpvpaper", "mpv_options", options);
        let before = stubs.wall.processes("mpvpaper");
        show(&stubs, &mut *mpvpaper, &[("HEADLESS-1", &video)]).unwrap();
        let processes = stubs.wall.processes("mpvpaper");
        let [kept, new] = processes[..] else {
            panic!("{processes:?}")
        };
        assert!(kept == seen && !before.contains(&new), "{processes:?}");
        let [warning] = &mpvpaper.warnings()[..] else {
            panic!("no warning")
        };
        assert!(warning.contains("too slow for the video"), "{warning}");
    }
    mpvpaper.clear().unwrap();
    assert!(stubs.wall.processes("mpvpaper").is_empty());
}

#[test]
fn video_that_stops_itself_while_hidden_is_left_to_continue() {
    let stubs = Stubs::new(&["640x480"]);
    stubs.wall.set_json("mpvpaper", "auto_stop", true.into());
    let mut mpvpaper = stubs.wall.backend(BackendName::Mpvpaper);
    let (one, two) = (video(&stubs, "one.mp4", ""), video(&stubs, "two.mp4", ""));
    show(&stubs, &mut *mpvpaper, &[("HEADLESS-1", &one)]).unwrap();
    let [old] = stubs.wall.processes("mpvpaper")[..] else {
        panic!("one process")
    };
    let is_stopped = |pid: i32| {
        // The link is missing for a moment while one program becomes another.
        let program = fs::read_link(format!("/proc/{pid}/exe"));
        program.is_ok_and(|program| program.ends_with("mpvpaper-holder"))
    };
    stubs.cue("mpvpaper", "hidden");
    crate::desktop::wait_until("it to stop itself", || is_stopped(old.pid));
    // The old process would continue with the old video, so the other gets its own process, which stops
    // as well.
    show(&stubs, &mut *mpvpaper, &[("HEADLESS-1", &two)]).unwrap();
    assert_eq!(mpvpaper.unseen(), ["HEADLESS-1"]);
    crate::desktop::wait_until("the old one's end", || !old.is_running());
    let [new] = stubs.wall.processes("mpvpaper")[..] else {
        panic!("one process")
    };
    assert!(is_stopped(new.pid));
    // The same holds for the next request and the next daemon; there is nothing to pause.
    show(&stubs, &mut *mpvpaper, &[("HEADLESS-1", &two)]).unwrap();
    drop(mpvpaper);
    let mut next = stubs.wall.backend(BackendName::Mpvpaper);
    show(&stubs, &mut *next, &[("HEADLESS-1", &two)]).unwrap();
    next.pause(&["HEADLESS-1".to_owned()].into(), &stubs.wall.cancel)
        .unwrap();
    assert_eq!(next.unseen(), ["HEADLESS-1"]);
    stubs.cue("mpvpaper", "");
    crate::desktop::wait_until("the video", || next.unseen().is_empty());
    assert!(next.is_whole() && new.is_running() && !is_stopped(new.pid));
    assert_eq!(
        (
            stubs.calls("mpvpaper").len(),
            stubs.note("mpvpaper-loads").len()
        ),
        (2, 0)
    );
    next.clear().unwrap();
    assert!(stubs.wall.processes("mpvpaper").is_empty());
}
