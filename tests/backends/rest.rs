//! Tests that videos and HTML wallpapers are paused while the session is locked, and resumed afterwards.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use murald::internals::backends::{Kind, Placement};
use murald::internals::config::BackendName;
use serde_json::{Value, json};

use crate::desktop::wait_until;
use crate::hosted::{Hosted, videos};
use crate::stub::Stubs;

const LOCKED: &str = "[power]\npause_when_locked = true";

pub fn tell(hosted: &Hosted, state: &str) {
    let output = hosted.daemon.murald(&["power", state]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// The pauses that mpv got on an output, the oldest first.
pub fn told(hosted: &Hosted, output: &str) -> Vec<bool> {
    let notes = fs::read_to_string(hosted.notes.join("mpvpaper-pauses")).unwrap_or_default();
    let of_it = |line: &str| Some(line.strip_prefix(output)?.trim() == "true");
    notes.lines().filter_map(of_it).collect()
}

/// The sockets of the mpv processes that run.
pub fn sockets(hosted: &Hosted) -> Vec<PathBuf> {
    files(hosted, "sock")
        .into_iter()
        .filter(|path| UnixStream::connect(path).is_ok())
        .collect()
}

/// The files of mpvpaper in the runtime directory whose names end so.
fn files(hosted: &Hosted, ending: &str) -> Vec<PathBuf> {
    let mut files = ending_so(&backends(hosted), ending);
    files.sort();
    files
}

fn backends(hosted: &Hosted) -> PathBuf {
    let murald = Path::new(hosted.desktop.var("XDG_RUNTIME_DIR").unwrap()).join("murald");
    fs::read_dir(murald)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path()
}

fn ending_so(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let paths = fs::read_dir(directory)
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    paths
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == ending)
        })
        .collect()
}

/// Kills the daemon, and starts one as in a new session.
fn in_another_session(hosted: &mut Hosted) {
    hosted.daemon.kill9();
    fs::remove_file(backends(hosted).join("session")).unwrap();
    hosted.daemon.start();
}

/// Sends a command to mpv as its user would; returns the answer's data.
pub fn mpv(socket: &Path, command: &Value) -> Value {
    let mut stream = UnixStream::connect(socket).unwrap();
    writeln!(stream, "{}", json!({ "command": command, "request_id": 9 })).unwrap();
    let lines = BufReader::new(stream).lines().map(|line| line.unwrap());
    let mut answers = lines.map(|line| serde_json::from_str::<Value>(&line).unwrap());
    answers
        .find(|said| said["request_id"] == 9)
        .expect("an answer")["data"]
        .take()
}

pub fn is_paused(socket: &Path) -> bool {
    mpv(socket, &json!(["get_property", "pause"])) == true
}

/// A video that plays on two monitors by mpvpaper; also another video, and the sockets of both processes.
fn playing() -> (Hosted, i64, [PathBuf; 2]) {
    let monitors = ["640x480", "640x480"];
    let hosted = Hosted::with("mpvpaper", &["mpvpaper"], &monitors, LOCKED, &[]);
    let [video, other] = videos(&hosted);
    hosted.set(&json!({ "image_id": video }));
    let playing = sockets(&hosted).try_into().unwrap();
    (hosted, other, playing)
}

#[test]
fn videos_are_paused_while_the_session_is_locked_unless_they_are_set_then() {
    let (mut hosted, other, playing) = playing();
    let [one, two] = &playing;
    tell(&hosted, "locked");
    wait_until("both to stand still", || is_paused(one) && is_paused(two));
    // The video that was set plays, and the other stays paused.
    hosted.set(&json!({ "image_id": other, "monitors": ["HEADLESS-1"] }));
    wait_until("the one that was set to play", || !is_paused(one));
    assert!(is_paused(two));
    tell(&hosted, "unlocked");
    wait_until("both to play", || !is_paused(one) && !is_paused(two));
    wait_until("no note of it", || files(&hosted, "paused").is_empty());
    // The next daemon knows that the session is still locked; a daemon of another session resumes the
    // videos.
    tell(&hosted, "locked");
    wait_until("both to stand still again", || {
        is_paused(one) && is_paused(two)
    });
    hosted.daemon.kill9();
    hosted.daemon.start();
    hosted.set(&json!({ "image_id": other, "monitors": ["HEADLESS-1"] }));
    assert!(is_paused(two));
    in_another_session(&mut hosted);
    wait_until("both to play again", || !is_paused(one) && !is_paused(two));
    assert_eq!(sockets(&hosted), playing, "they are the same processes");
    let mut told = told(&hosted, "HEADLESS-2");
    told.dedup();
    assert_eq!(told, [true, false, true, false]);
}

#[test]
fn videos_play_again_after_the_daemon_has_stopped() {
    let (hosted, _, [one, two]) = playing();
    tell(&hosted, "locked");
    wait_until("both to be paused", || is_paused(&one) && is_paused(&two));
    let output = hosted.daemon.murald(&["stop"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(!is_paused(&one) && !is_paused(&two));
}

#[test]
fn video_that_its_user_has_paused_stays_paused() {
    let (hosted, _, [one, two]) = playing();
    mpv(&two, &json!(["set_property", "pause", true]));
    tell(&hosted, "locked");
    wait_until("the other to stand still", || is_paused(&one));
    tell(&hosted, "unlocked");
    wait_until("the other to play", || !is_paused(&one));
    // Another round, so that any late effect of the first one has happened.
    tell(&hosted, "locked");
    wait_until("the other to stand still again", || is_paused(&one));
    assert!(is_paused(&two));
    assert_eq!(told(&hosted, "HEADLESS-2"), [true], "that was the user");
}

#[test]
fn wal_qt_pauses_videos_and_pages() {
    let mut hosted = Hosted::new(&["640x480", "640x480"], LOCKED, &[]);
    let [video, _] = videos(&hosted);
    let page = hosted.page("none");
    let on = |id: i64, monitor: &str| json!({ "image_id": id, "monitors": [monitor] });
    hosted.set(&on(video, "HEADLESS-1"));
    hosted.set(&on(page, "HEADLESS-2"));
    let client = hosted.daemon.client();
    let refused = client
        .post("/wallpaper/sound", &json!({ "muted": true }))
        .fails(409);
    assert!(
        refused["error"]
            .as_str()
            .unwrap()
            .contains("wal-qt on HEADLESS-1 cannot"),
        "{refused}"
    );
    let video_s = client.get(&format!("/images/{video}")).ok()["path"].clone();
    let page_s = client.get(&format!("/images/{page}")).ok()["web_meta"]["entry_path"].clone();
    let sees = |hosted: &Hosted, expected: &[(&Value, bool)]| {
        let mut expected: Vec<Value> = expected
            .iter()
            .map(|(source, paused)| json!({ "source_target": source, "paused": paused }))
            .collect();
        expected.sort_by_key(Value::to_string);
        wait_until(&format!("{expected:?}"), || {
            let asked = hosted.requests().into_iter();
            let asked = asked.filter(|(route, _)| route == "/wallpaper/playback");
            let mut asked: Vec<Value> = asked.map(|(_, body)| body).collect();
            asked.sort_by_key(Value::to_string);
            asked == expected
        });
        hosted.forget();
    };
    hosted.forget();
    tell(&hosted, "locked");
    sees(&hosted, &[(&video_s, true), (&page_s, true)]);
    // A page that is set plays, because it is loaded again.
    let still = hosted.picture("one.png");
    hosted.set(&on(still, "HEADLESS-2"));
    sees(&hosted, &[(&page_s, false)]);
    hosted.set(&on(page, "HEADLESS-2"));
    hosted.forget();
    in_another_session(&mut hosted);
    sees(&hosted, &[(&video_s, false)]);
}

/// A video whose content is its name.
fn video(stubs: &Stubs, name: &str) -> PathBuf {
    let path = stubs.root().join(name);
    fs::write(
        &path,
        [b"\0\0\0\x18ftypisom\0\0\0\0isommp42", name.as_bytes()].concat(),
    )
    .unwrap();
    path
}

fn placed(stubs: &Stubs, video: &Path) -> Vec<Placement> {
    let placements = stubs.wall.hang(&[("HEADLESS-1", video)]).into_iter();
    placements
        .map(|placement| Placement {
            kind: Kind::Video,
            ..placement
        })
        .collect()
}

#[test]
fn video_whose_pause_has_failed_is_paused_again_and_resumed() {
    let stubs = Stubs::new(&["640x480"]);
    let (all, none) = (["HEADLESS-1".to_owned()].into(), [].into());
    let mut mpvpaper = stubs.wall.backend(BackendName::Mpvpaper);
    let video = placed(&stubs, &video(&stubs, "one.mp4"));
    mpvpaper.show(&video, &stubs.wall.cancel).unwrap();
    let mut pause = |outputs, cue| {
        stubs.cue("mpvpaper", cue);
        let done = mpvpaper.pause(outputs, &stubs.wall.cancel).is_ok();
        let last = stubs.note("mpvpaper-pauses").pop();
        (done, last.is_some_and(|last| last == "HEADLESS-1 true"))
    };
    assert_eq!(pause(&all, "break-pause"), (false, false));
    assert_eq!(pause(&all, ""), (true, true));
    assert_eq!(pause(&none, ""), (true, false));
    // mpv has paused, but its answer was lost: murald must still resume it.
    assert_eq!(pause(&all, "pause-unsaid"), (false, true));
    assert_eq!(pause(&none, ""), (true, false));
}

#[test]
fn invisible_video_is_paused_too_and_stays_unseen() {
    let stubs = Stubs::new(&["640x480"]);
    let hang = |path: &Path, audio_enabled: bool| -> Vec<Placement> {
        let video = |one| Placement {
            audio_enabled,
            ..one
        };
        placed(&stubs, path).into_iter().map(video).collect()
    };
    let (one, two) = (video(&stubs, "one.mp4"), video(&stubs, "two.mp4"));
    let all = ["HEADLESS-1".to_owned()].into();
    let mut mpvpaper = stubs.wall.backend(BackendName::Mpvpaper);
    mpvpaper
        .show(&hang(&one, false), &stubs.wall.cancel)
        .unwrap();
    mpvpaper.pause(&all, &stubs.wall.cancel).unwrap();
    let told = |expected: &[bool]| {
        let notes = stubs.note("mpvpaper-pauses");
        let expected: Vec<_> = expected
            .iter()
            .map(|rests| format!("HEADLESS-1 {rests}"))
            .collect();
        assert_eq!(notes, expected);
    };
    told(&[true]);
    // The output is off. The paused video is resumed for the next one, which is then paused too.
    stubs.cue("mpvpaper", "dark");
    mpvpaper
        .show(&hang(&two, false), &stubs.wall.cancel)
        .unwrap();
    told(&[true, false]);
    mpvpaper.pause(&all, &stubs.wall.cancel).unwrap();
    told(&[true, false, true]);
    // If the video is set again, it must play to report frames, also under the next daemon.
    drop(mpvpaper);
    let mut mpvpaper = stubs.wall.backend(BackendName::Mpvpaper);
    mpvpaper
        .show(&hang(&two, false), &stubs.wall.cancel)
        .unwrap();
    told(&[true, false, true, false]);
    // Both the waiting process and the one before it are paused.
    mpvpaper
        .show(&hang(&one, true), &stubs.wall.cancel)
        .unwrap();
    mpvpaper.pause(&all, &stubs.wall.cancel).unwrap();
    told(&[true, false, true, false, true, true]);
    stubs.cue("mpvpaper", "");
    assert_eq!(mpvpaper.unseen(), ["HEADLESS-1"]);
    mpvpaper.pause(&[].into(), &stubs.wall.cancel).unwrap();
    wait_until("its frames to be seen", || mpvpaper.unseen().is_empty());
    assert!(mpvpaper.is_whole());
    assert_eq!(stubs.wall.processes("mpvpaper").len(), 1);
    told(&[true, false, true, false, true, true, false, false]);
    mpvpaper.clear().unwrap();
    assert!(ending_so(&stubs.root().join("run"), "paused").is_empty());
}
