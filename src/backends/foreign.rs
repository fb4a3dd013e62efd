//! Finds programs that draw backgrounds on our compositor and that murald did not start. They may hide
//! the wallpaper, or be hidden by it. They are reported and left alone.
//!
//! Hyprland lists the surfaces on its background layer. On another Wayland compositor, a program is
//! recognized by its executable, and its compositor by its environment; over X11, by its window. Runs on
//! the caller's thread and takes a millisecond or two.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::context::Backends;
use super::hyprpaper::instance::requests_socket;
use super::socket::listener;
use crate::compositor::{DesktopWindow, Session, desktop_windows, ipc};
use crate::config::BackendName;
use crate::draw::VERB;
use crate::paths::Dirs;
use crate::process::version::FLAGS;
use crate::process::{Identity, ProcessRecords};
use crate::sys::Cancel;
use crate::wire::Conflict;

/// Programs that draw on the background layer of Wayland and stay: wallpaper programs, and shells
/// and file managers with a wallpaper of their own.
const PROGRAMS: [&str; 24] = [
    "awww-daemon",
    "azote",
    "cosmic-bg",
    "glpaper",
    "gslapper",
    "hyprpaper",
    "linux-wallpaperengine",
    "mpvpaper",
    "mpvpaper-holder",
    "murald",
    "noctalia",
    "oguri",
    "pcmanfm",
    "pcmanfm-qt",
    "plasmashell",
    "qs",
    "quickshell",
    "swaybg",
    "swww-daemon",
    "wal-qt-host",
    "wbg",
    "wpaperd",
    "wpaperd-daemon",
    "xfdesktop",
];

/// The conflicting programs that run on our compositor now.
pub(super) fn find(backends: &Backends) -> Vec<Conflict> {
    let Backends {
        outputs,
        records,
        dirs,
        ..
    } = backends;
    match outputs.session() {
        Some(Session::Wayland { socket }) => match backgrounds(&socket, dirs) {
            Some(listed) => {
                let client = |(namespace, pid): (String, Option<i32>)| {
                    let program = pid.and_then(program).unwrap_or(namespace);
                    let is_foreign = pid.is_none_or(|pid| !is_ours(pid, records));
                    is_foreign.then_some(Conflict { program, pid })
                };
                listed.into_iter().filter_map(client).collect()
            }
            None => clients(records, &socket),
        },
        Some(Session::X11 { display }) => {
            let windows = desktop_windows(&display, &outputs.list());
            // A program has one window for each monitor.
            let mut found: Vec<Conflict> = windows.into_iter().filter_map(owner).collect();
            found.dedup();
            found
        }
        None => Vec::new(),
    }
}

/// Whether such a program was started after a process of ours, so that its surfaces may lie above ours.
pub(crate) fn is_any_newer(backends: &Backends) -> bool {
    let ours = backends.records.all_running();
    let is_newer = |theirs: Identity| {
        let mut ours = ours.iter();
        ours.any(|(.., ours)| theirs.start_time > ours.start_time)
    };
    let theirs = find(backends).into_iter().filter_map(|one| one.pid);
    theirs.filter_map(Identity::from_pid).any(is_newer)
}

/// Whether we have started this process, or it has ended.
fn is_ours(pid: i32, records: &ProcessRecords) -> bool {
    let is_it = |who| records.all_running().iter().any(|(.., ours)| *ours == who);
    Identity::from_pid(pid).is_none_or(|who| is_it(who) || !who.is_running())
}

/// The program whose window hides the wallpaper.
fn owner(DesktopWindow { class, pid }: DesktopWindow) -> Option<Conflict> {
    let program = pid.and_then(program).or(class)?;
    Some(Conflict { program, pid })
}

/// The surfaces below all windows, by namespace and process; `None` unless the compositor at this socket
/// is Hyprland, which lists them.
fn backgrounds(socket: &Path, dirs: &Dirs) -> Option<Vec<(String, Option<i32>)>> {
    let requests = requests_socket(dirs, listener(socket)?.identity().pid)?;
    let never = Cancel::new().ok()?;
    parse_layers(&ipc::ask(&requests, b"j/layers", &never).ok()?)
}

/// Reads the answer: surfaces by monitor and level, of which 0 is the background. A process appears
/// once, however many monitors it serves.
fn parse_layers(answer: &Value) -> Option<Vec<(String, Option<i32>)>> {
    let mut found = Vec::new();
    for monitor in answer.as_object()?.values() {
        for surface in monitor["levels"]["0"].as_array()? {
            let namespace = surface["namespace"].as_str()?.to_owned();
            let pid = surface["pid"].as_i64().and_then(|pid| pid.try_into().ok());
            let background = (namespace, pid.filter(|&pid| pid > 0));
            if !found.contains(&background) {
                found.push(background);
            }
        }
    }
    Some(found)
}

/// The known programs that draw as clients of the Wayland compositor at this socket.
fn clients(records: &ProcessRecords, socket: &Path) -> Vec<Conflict> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let foreign = |pid: i32| {
        let program = program(pid).filter(|name| PROGRAMS.contains(&name.as_str()))?;
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        (draws(&program, &words) && is_on(pid, socket) && !is_ours(pid, records)).then_some(
            Conflict {
                program,
                pid: Some(pid),
            },
        )
    };
    let mut found: Vec<Conflict> = pids.filter_map(foreign).collect();
    found.sort_by_key(|conflict| conflict.pid);
    found
}

/// Describes in a sentence how to stop a conflicting program. Sway passes a connection to the
/// swaybg that it starts.
pub(super) fn remedy(Conflict { program, pid }: &Conflict) -> &'static str {
    let is_of_sway = || pid.is_some_and(|pid| variable(pid, b"WAYLAND_SOCKET").is_some());
    if program == "swaybg" && is_of_sway() {
        "remove `output * bg` from sway's configuration, and log in again"
    } else {
        "stop it and what starts it, or turn off its wallpaper"
    }
}

/// The name of a process's executable, without the additions of a NixOS wrapper.
fn program(pid: i32) -> Option<String> {
    let path = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let name = path.file_name()?.to_str()?;
    let name = name.strip_suffix(" (deleted)").unwrap_or(name);
    Some(
        name.trim_start_matches('.')
            .trim_end_matches("-wrapped")
            .to_owned(),
    )
}

/// Whether a program with this command line draws. Sway 1.10 and 1.12 (not 1.7) start swaybg even if
/// their configuration has no background; without an option swaybg draws nothing. A program that murald
/// asks for its version draws nothing either.
fn draws(program: &str, command_line: &[u8]) -> bool {
    let words: Vec<&[u8]> = command_line.split(|&byte| byte == 0).skip(1).collect();
    let first = words.first().copied().unwrap_or_default();
    match program {
        "murald" => first == VERB.as_bytes(),
        // Without this option, pcmanfm is only a file manager.
        "pcmanfm" | "pcmanfm-qt" => words.contains(&&b"--desktop"[..]),
        // An empty command line belongs to a process that is only about to become this program.
        _ if first.is_empty() => program != "swaybg" && !command_line.is_empty(),
        _ => FLAGS.iter().all(|flag| flag.as_bytes() != first),
    }
}

/// Whether a backend uses this program even if murald did not start it.
pub(super) fn is_used(backend: BackendName, program: &str) -> bool {
    match backend {
        BackendName::Awww => matches!(program, "awww-daemon" | "swww-daemon"),
        BackendName::WalQt => program == "wal-qt-host",
        BackendName::Feh
        | BackendName::Hyprpaper
        | BackendName::Mpvpaper
        | BackendName::Swaybg
        | BackendName::Builtin => false,
    }
}

/// Whether a process is a client of the compositor at this socket.
fn is_on(pid: i32, socket: &Path) -> bool {
    let display = variable(pid, b"WAYLAND_DISPLAY").unwrap_or_else(|| "wayland-0".into());
    let runtime = variable(pid, b"XDG_RUNTIME_DIR").unwrap_or_default();
    let file = |path: &Path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    file(&runtime.join(display)).is_some_and(|it| Some(it) == file(socket))
}

/// A variable that a process was started with, if it is not empty.
fn variable(pid: i32, name: &[u8]) -> Option<PathBuf> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut all = environment.split(|&byte| byte == 0);
    let value = all.find_map(|one| one.strip_prefix(name)?.strip_prefix(b"="))?;
    (!value.is_empty()).then(|| PathBuf::from(OsString::from_vec(value.to_vec())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_shows_whether_a_program_draws() {
        let check = |program, words: &[u8], expected| assert_eq!(draws(program, words), expected);
        check("swaybg", b"swaybg\0", false);
        check("swaybg", b"swaybg\0-c\0#000000\0", true);
        check("hyprpaper", b"hyprpaper\0", true);
        check("hyprpaper", b"/usr/bin/hyprpaper\0-c\0/x\0", true);
        check("hyprpaper", b"hyprpaper\0--version\0", false);
        check("hyprpaper", b"hyprpaper\0--help\0", false);
        check("hyprpaper", b"", false);
        check("murald", b"murald\0start\0", false);
        check("murald", b"murald\0draw\0--socket\0/x\0", true);
        check("pcmanfm", b"pcmanfm\0/home\0", false);
        check("pcmanfm-qt", b"pcmanfm-qt\0--profile\0x\0--desktop\0", true);
    }

    #[test]
    fn test_process_is_no_background_program() {
        let own = std::process::id().try_into().unwrap();
        assert!(program(own).is_some_and(|name| !PROGRAMS.contains(&name.as_str())));
        assert!(!is_on(own, Path::new("/nowhere")));
    }

    #[test]
    fn backgrounds_are_read_from_level_0_of_every_monitor() {
        let wallpaper = r#"{"address": "0x1", "x": 0, "y": 0, "w": 9, "h": 9, "namespace": "wallpaper", "pid": 7}"#;
        let old = r#"{"address": "0x2", "x": 0, "y": 0, "w": 9, "h": 9, "namespace": "other", "pid": -1}"#;
        let bar = r#"{"address": "0x3", "x": 0, "y": 0, "w": 9, "h": 1, "namespace": "quickshell", "pid": 8}"#;
        let levels =
            |zero: &str| format!(r#"{{"levels": {{"0": [{zero}], "1": [], "2": [{bar}]}}}}"#);
        let (one, two) = (levels(wallpaper), levels(&format!("{wallpaper}, {old}")));
        let answer = format!(r#"{{"DP-1": {one}, "DP-2": {two}}}"#);
        let background = |namespace: &str, pid| (namespace.to_owned(), pid);
        let expected = [background("wallpaper", Some(7)), background("other", None)];
        let parsed = |answer: &str| parse_layers(&serde_json::from_str(answer).unwrap());
        assert_eq!(parsed(&answer).unwrap(), expected);
        let empty = format!(r#"{{"DP-1": {}}}"#, levels(""));
        assert_eq!(parsed(&empty).unwrap(), []);
        assert_eq!(parsed("[]"), None);
    }
}
