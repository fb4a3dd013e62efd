//! The verbs for the daemon itself: start, stop, status.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::Deserialize;
use serde_json::{Value, json};

use super::playlist_sheet::running;
use super::{
    Call, Cell, CellStyle, Error, Exit, Flag, Group, RequestPath, Start, Stdout, Table, Verb, View,
    at, items, more, number, span, text, written,
};
use crate::sys::poll_until;
use crate::wire::Conflict;

#[rustfmt::skip]
pub(super) const GROUP: Group = Group { title: "Daemon", verbs: &[
    Verb::own(&["start"], "Run the daemon in the foreground", start)
        .help("The daemon stops on SIGTERM, SIGINT or `murald stop`; the wallpapers stay on the \
               screen.\n\
               On SIGHUP it reopens the log, reloads the configuration and restores a missing socket."),
    Verb::own(&["stop"], "Stop the daemon and wait until it has stopped", stop)
        .flags(&[Flag::switch("--clear", "Remove the wallpapers from the screen")])
        .shows(&[&STOPPED])
        .help("If the daemon is not running, --clear removes the wallpapers of an earlier one."),
    Verb::own(&["status"], "Show whether the daemon runs and what each monitor displays", status)
        .shows(&[&STATUS]),
    super::doctor::DOCTOR,
    super::wallpaper::DEBUG,
    super::events::VERB,
    super::complete::COMPLETE,
]};

/// The time limit for a stop, which takes the daemon 5 s at most.
const GONE_WITHIN: Duration = Duration::from_secs(10);

const STOPPED: View = View::new("POST /shutdown", &[more("status")]).saying("stopped");
const STATUS: View = View::new(
    "",
    &[more(
        "info capabilities backends monitors wallpaper playlists",
    )],
)
.showing(show_status);
fn start(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let start = Start::from_call(call);
    if let Some(file) = start.config.as_ref().filter(|file| !file.exists()) {
        stdout.warn(format!("{} does not exist: creating it", file.display()));
    }
    (call.host().run)(start)
}

/// Stops the daemon. With `--clear` and without a daemon, removes the wallpapers of an earlier one.
fn stop(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let connection = call.connect()?;
    let pid = match connection.read::<Value>(&[&"info"]) {
        Ok(info) => info["pid"]
            .as_i64()
            .and_then(|pid| pid.try_into().ok())
            .unwrap_or_default(),
        // A mistyped socket says nothing about the daemon.
        Err(error) if call.globals.socket.is_some() => return Err(error),
        Err(_) if connection.has_nobody() && call.has("--clear") => {
            let ended = (call.host().take_down)(Start::from_call(call))?;
            return TAKEN_DOWN.tell(
                call,
                stdout,
                &json!({ "status": "cleared", "ended": ended }),
            );
        }
        Err(_) if connection.has_nobody() => {
            return NOT_RUNNING.tell(call, stdout, &json!({ "status": "not_running" }));
        }
        Err(error) => return Err(error),
    };
    // Opened before the daemon stops, or another process might have its number by then.
    let process = Pid::from_raw(pid).map(|pid| pidfd_open(pid, PidfdFlags::empty()));
    let body = json!({"clear": call.has("--clear")});
    let answer = connection.post(&RequestPath::new(&[&"shutdown"]), &body)?;
    // The daemon waits for its connections, so ours must not stay open.
    drop(connection);
    if let Some(Ok(process)) = process {
        let mut ended = [PollFd::new(&process, PollFlags::IN)];
        if poll_until(&mut ended, Some(Instant::now() + GONE_WITHIN)).is_ok_and(|ended| !ended) {
            let seconds = GONE_WITHIN.as_secs();
            return Err(
                Error::refused(format!("the daemon still runs after {seconds} s")).hint(format!(
                    "the log shows what it waits for; `kill {pid}` stops it at once"
                )),
            );
        }
    }
    STOPPED.show(call, stdout, &answer)
}

/// Prints nothing into a pipe.
const NOT_RUNNING: View = View::new("", &[more("status")])
    .showing(|_, stdout, _| stdout.note("the daemon is not running"));

const TAKEN_DOWN: View = View::new("", &[more("status ended")]).showing(|_, stdout, done| {
    stdout.say(match done["ended"].as_u64() {
        Some(0) | None => {
            "the daemon is not running, and there is no wallpaper to remove".to_owned()
        }
        Some(_) => "the daemon is not running; removed its wallpapers".to_owned(),
    })
});

fn status(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let connection = call.connect()?;
    let get = |name: &str| connection.read::<Value>(&[&name]);
    let info = get("info").map_err(|error| match call.config_problems() {
        // The daemon would not start with this configuration.
        Err(problem) if error.exit == Exit::Unavailable => error.hint(format!(
            "the daemon cannot start with this configuration: {}",
            problem.reason()
        )),
        _ => error,
    })?;
    if stdout.wants_data() {
        stdout.warn_all(&info);
    }
    let mut all = json!({
        "info": info,
        "capabilities": get("capabilities")?,
        "backends": get("backends")?,
        "monitors": get("monitors")?,
        "wallpaper": null,
        "playlists": connection.read::<Value>(&[&"playlists", &"active"])?,
    });
    // Last, as the daemon logs an error if there is no backend.
    match connection.read::<Value>(&[&"wallpaper", &"current"]) {
        Err(error) if error.exit == Exit::Refused => {}
        answer => all["wallpaper"] = answer?,
    }
    STATUS.tell(call, stdout, &all)
}

fn show_status(call: &Call, stdout: &mut Stdout, all: &Value) -> Result<(), Error> {
    let (monitors, shown) = (items(all, "monitors"), items(all, "wallpaper.monitors"));
    let bad = |text: &str| Cell::from(text).look(CellStyle::Bad);
    let uptime = span(number(all, "info.uptime"));
    let mut sheet = Table::sheet();
    sheet.field("version", text(all, "info.version"));
    sheet.field(
        "process",
        format!("{}, running for {uptime}", at(all, "info.pid")),
    );
    sheet.field("socket", call.connect()?.socket().display());
    sheet.field("backend", backend(items(all, "backends")));
    if monitors.is_empty() {
        sheet.field(
            "monitors",
            bad("none (no monitor is connected, or there is no compositor)"),
        );
    }
    for monitor in monitors {
        let here = shown
            .iter()
            .find(|shown| shown["monitor_name"] == monitor["name"]);
        sheet.field(
            &text(monitor, "name"),
            here.map_or_else(no_wallpaper, wallpaper),
        );
    }
    for one in items(all, "playlists") {
        sheet.field("playlist", running(one));
    }
    for warning in items(all, "info.warnings") {
        sheet.field("warning", bad(&written(warning)));
    }
    let active = items(all, "backends")
        .iter()
        .find(|one| one["active"] == true);
    for conflict in active.map_or(&[][..], |active| items(active, "conflicts")) {
        if let Ok(conflict) = Conflict::deserialize(conflict) {
            sheet.field("warning", bad(&conflict.to_string()));
        }
    }
    stdout.table(&sheet)
}

fn no_wallpaper() -> Cell {
    Cell::from("no wallpaper").look(CellStyle::Dim)
}

fn wallpaper(shown: &Value) -> Cell {
    // A plain colour has no id.
    let id = shown["image_id"]
        .as_i64()
        .map_or_else(String::new, |id| format!(" ({id})"));
    format!(
        "{}{id}, by {}",
        text(shown, "image_name"),
        text(shown, "backend")
    )
    .into()
}

fn backend(backends: &[Value]) -> Cell {
    match backends.iter().find(|backend| backend["active"] == true) {
        Some(active) => Cell::value(&active["name"]).look(CellStyle::Good),
        None => Cell::from("none; `murald doctor` says what is missing").look(CellStyle::Bad),
    }
}
