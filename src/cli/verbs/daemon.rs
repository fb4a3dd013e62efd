//! The verbs for the daemon itself: start, stop, status, version.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::Error;
use super::super::call::Call;
use super::super::columns::{View, more};
use super::super::connection::{Connection, RequestPath};
use super::super::error::Exit;
use super::super::stdout::Stdout;
use super::super::table::{Cell, CellStyle, Table};
use super::super::terminal::span;
use super::super::verb::{Flag, Group, Task, Verb};
use crate::sys::poll_until;
use crate::wire::{ActivePlaylist, BackendInfo, CurrentWallpaper, Monitor};

#[rustfmt::skip]
pub(super) const GROUP: Group = Group { title: "Daemon", verbs: &[
    Verb::main(&["start"], "Run the daemon in the foreground", Task::Daemon)
        .help("The daemon stops on SIGTERM, SIGINT or `murald stop`; the wallpapers stay on the \
               screen.\n\
               On SIGHUP it reopens the log, reloads the configuration and restores a missing socket."),
    Verb::main(&["stop"], "Stop the daemon and wait until it has stopped", Task::Stop)
        .flags(&[Flag::switch("--clear", "Remove the wallpapers from the screen")])
        .shows(&[&View::sheet("POST /shutdown", &[more("status")])])
        .help("If the daemon is not running, --clear removes the wallpapers of an earlier one."),
    Verb::own(&["status"], "Show whether the daemon runs and what each monitor displays", status)
        .shows(&[&View::sheet("", &[more("info capabilities backends monitors wallpaper playlists")])]),
    Verb::main(&["doctor"], "Find out why no wallpaper appears (works without a daemon)", Task::Doctor)
        .shows(&[&View::sheet("", &[more("subject state text step")])])
        .help("Checks the configuration, directories, the socket, the database, the session, its \
               backends and other programs that draw there.\n\
               Each row is STATE, SUBJECT and TEXT. STATE is \"ok\", \"note\" for possible problems, \
               or \"fix\" with the step to fix a problem. Exits with 1 if there is a \"fix\"."),
    Verb::own(&["version"], "Print the versions of the command and the daemon", version)
        .shows(&[&View::sheet("", &[more("version daemon")])])
        .help("Prints only the version of the command if the daemon is not running."),
    super::wallpaper::DEBUG,
    super::events::VERB,
    super::complete::COMPLETE,
]};

/// The daemon gives itself 5 s.
const GONE_WITHIN: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
struct Info {
    version: String,
    pid: i32,
    uptime: u64,
    #[serde(default)]
    warnings: Vec<String>,
}

fn info(connection: &Connection) -> Result<Info, Error> {
    connection.get(&RequestPath::new(&[&"info"]))?.read()
}

/// The outcome of `stop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    Daemon,
    NoDaemon,
}

pub(crate) fn stop(call: &Call, stdout: &mut Stdout) -> Result<Stopped, Error> {
    let connection = call.connect()?;
    let pid = match info(&connection) {
        Ok(Info { pid, .. }) => pid,
        Err(_) if connection.has_nobody() => return none_to_stop(call, stdout),
        Err(error) => return Err(error),
    };
    // Before it is told, or its number might be another's by then.
    let process = Pid::from_raw(pid).map(|pid| pidfd_open(pid, PidfdFlags::empty()));
    let body = json!({"clear": call.has("--clear")});
    let answer = connection.post(&RequestPath::new(&[&"shutdown"]), &body)?;
    // Our own connection must not be one that it waits for.
    drop(connection);
    if let Some(Ok(process)) = process {
        let mut ended = [PollFd::new(&process, PollFlags::IN)];
        if poll_until(&mut ended, Some(Instant::now() + GONE_WITHIN)).is_ok_and(|ended| !ended) {
            let seconds = GONE_WITHIN.as_secs();
            return Err(Error::refused(format!("the daemon still runs after {seconds} s"))
                .hint(format!("its log says which part is late; `kill {pid}` ends it at once")));
        }
    }
    stdout.show(&answer, |stdout, _: Value| stdout.say("stopped"))?;
    Ok(Stopped::Daemon)
}

fn none_to_stop(call: &Call, stdout: &mut Stdout) -> Result<Stopped, Error> {
    if call.has("--clear") {
        return Ok(Stopped::NoDaemon);
    }
    match stdout.wants_data() {
        true => stdout.data(&json!({ "status": "not_running" }))?,
        false => stdout.note("no daemon runs")?,
    }
    Ok(Stopped::NoDaemon)
}

fn status(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let connection = call.connect()?;
    let get = |name: &str| connection.get(&RequestPath::new(&[&name]));
    let (about, backends, monitors) = (get("info")?, get("backends")?, get("monitors")?);
    let playlists = connection.get(&RequestPath::new(&[&"playlists", &"active"]))?;
    // Without a backend there is no answer to this, and the status says so.
    let current = match connection.get(&RequestPath::new(&[&"wallpaper", &"current"])) {
        Err(error) if error.exit == Exit::Refused => None,
        answer => Some(answer?),
    };
    if stdout.wants_data() {
        let current: Option<Value> = current.map(|answer| answer.read()).transpose()?;
        let all = json!({
            "info": about.read::<Value>()?,
            "capabilities": get("capabilities")?.read::<Value>()?,
            "backends": backends.read::<Value>()?,
            "monitors": monitors.read::<Value>()?,
            "wallpaper": current,
            "playlists": playlists.read::<Value>()?,
        });
        return stdout.data(&all);
    }
    let about: Info = about.read()?;
    let backends: Vec<BackendInfo> = backends.read()?;
    let current: Option<CurrentWallpaper> = current.map(|answer| answer.read()).transpose()?;
    let mut sheet = Table::sheet();
    sheet.field("version", &about.version);
    sheet.field("process", format!("{}, running for {}", about.pid, span(about.uptime)));
    sheet.field("socket", connection.socket().display());
    sheet.field("backend", backend(&backends));
    let shown = current.map(|current| current.monitors).unwrap_or_default();
    let monitors: Vec<Monitor> = monitors.read()?;
    if monitors.is_empty() {
        sheet.field(
            "monitors",
            Cell::from("none, or no compositor can be reached").look(CellStyle::Bad),
        );
    }
    for monitor in monitors {
        let here = shown.iter().find(|shown| shown.monitor_name == monitor.name);
        let cell = here.map_or_else(
            || Cell::from("no wallpaper").look(CellStyle::Dim),
            |shown| {
                let id = shown.image_id.map_or_else(|| "deleted".to_owned(), |id| id.to_string());
                format!("{} ({id}), by {}", shown.image_name, shown.backend).into()
            },
        );
        sheet.field(&monitor.name, cell);
    }
    for one in playlists.read::<Vec<ActivePlaylist>>()? {
        let paused = if one.paused { ", paused" } else { "" };
        let text = format!("{} on {}{paused}", one.playlist_name, one.applied_to.join(", "));
        sheet.field("playlist", text);
    }
    for warning in &about.warnings {
        sheet.field("warning", Cell::from(warning).look(CellStyle::Bad));
    }
    stdout.table(&sheet)
}

fn backend(backends: &[BackendInfo]) -> Cell {
    let has_builtin = backends.iter().any(|one| one.name == "builtin" && one.available);
    match backends.iter().find(|backend| backend.active) {
        Some(active) if active.name == "swaybg" && has_builtin => {
            let step = "`murald backends activate builtin`";
            Cell::from(format!("swaybg, without transitions; with them: {step}")).raw("swaybg")
        }
        Some(active) => Cell::from(&active.name).look(CellStyle::Good),
        None => Cell::from("none; `murald doctor` says what is missing").look(CellStyle::Bad),
    }
}

fn version(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    const OURS: &str = env!("CARGO_PKG_VERSION");
    let daemon = match call.connect()?.get(&RequestPath::new(&[&"info"])) {
        Err(error) if error.exit == Exit::Unavailable => None,
        answer => Some(answer?),
    };
    if stdout.wants_data() {
        let daemon: Option<Value> = daemon.map(|answer| answer.read()).transpose()?;
        return stdout.data(&json!({"version": OURS, "daemon": daemon}));
    }
    let mut sheet = Table::sheet();
    sheet.field("murald", OURS);
    match daemon {
        Some(answer) => {
            let info: Info = answer.read()?;
            sheet.field("daemon", format!("{}, process {}", info.version, info.pid));
        }
        None => stdout.note("no daemon runs")?,
    }
    stdout.table(&sheet)
}
