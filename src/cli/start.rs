//! Starts a daemon for commands that need one: by the service manager if the user has enabled the unit,
//! else as a detached process.

use std::ffi::OsStr;
use std::io::{IsTerminal, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Error;
use super::call::{Call, DETACHED};
use super::columns::text;
use super::connection::{Connection, RequestPath};
use super::error::Exit;
use super::terminal::warn;
use crate::paths::Dirs;
use crate::sys::is_listened_on;

/// The wait for a daemon that has just been started, and for its monitors.
const WITHIN: Duration = Duration::from_secs(10);
/// The time between two tries.
const PACE: Duration = Duration::from_millis(20);

/// Starts a daemon if none is running, unless `MURALD_AUTOSTART` is 0.
pub(super) fn ensure(call: &Call) -> Result<(), Error> {
    let connection = call.connect()?;
    // The command itself reports any other failure.
    if !connection.has_nobody()
        || std::env::var_os("MURALD_AUTOSTART").is_some_and(|value| value == "0")
    {
        return Ok(());
    }
    let rival = if by_unit(call) {
        None
    } else {
        by_ourselves(call, connection.socket())?
    };
    match rival {
        // The other daemon listens on another socket.
        Some(rival)
            if call
                .elsewhere()
                .is_some_and(|other| other != connection.socket()) =>
        {
            return Err(rival);
        }
        // Another command's daemon may have been quicker: wait for that one.
        rival => answers(&connection).map_err(|lost| rival.unwrap_or(lost))?,
    }
    tell(&connection);
    // The daemon started, so the problems are settings that it does not use.
    for problem in call.config_problems().unwrap_or_default() {
        warn(problem);
    }
    tell_of_login();
    monitors(&connection);
    Ok(())
}

/// Has the service manager start the daemon, and returns whether it did. The unit uses the default
/// socket and configuration only.
fn by_unit(call: &Call) -> bool {
    if call.names_socket() || call.globals.config.is_some() {
        return false;
    }
    systemctl(&["is-enabled", "murald.service"]) && systemctl(&["start", "murald.service"])
}

/// Starts the daemon as a process, which closes its outputs when it is ready. Returns its error if
/// another daemon runs.
fn by_ourselves(call: &Call, socket: &Path) -> Result<Option<Error>, Error> {
    let failed = |error| Error::new(Exit::Internal, "cannot start a daemon").because(error);
    let mut command = command(std::env::current_exe().map_err(failed)?);
    command
        .arg("start")
        .arg("--socket")
        .arg(std::path::absolute(socket).map_err(failed)?);
    if let Some(config) = &call.globals.config {
        command
            .arg("--config")
            .arg(std::path::absolute(config).map_err(failed)?);
    }
    // The daemon must not notify the service manager if a service runs this command.
    command
        .env(DETACHED, "1")
        .env_remove("NOTIFY_SOCKET")
        .current_dir("/");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let mut said = Vec::new();
    let mut stderr = child.stderr.take().expect("it is piped");
    stderr.read_to_end(&mut said).map_err(failed)?;
    if is_listened_on(socket) {
        return Ok(None);
    }
    let deadline = Instant::now() + WITHIN;
    let status = loop {
        match child.try_wait().map_err(failed)? {
            Some(status) => break status,
            // The daemon runs; the caller finds out whether it answers.
            None if Instant::now() >= deadline => return Ok(None),
            None => std::thread::sleep(PACE),
        }
    };
    let code = status.code();
    let error = ended(code, &String::from_utf8_lossy(&said));
    // Another command was quicker, and its daemon can be used.
    if code == Some(75) {
        Ok(Some(error))
    } else {
        Err(error)
    }
}

/// The daemon's last message as an error with the daemon's exit code.
fn ended(code: Option<i32>, said: &str) -> Error {
    let words = said
        .rfind("murald: ")
        .map_or("it says nothing", |at| &said[at + 8..]);
    let exit = match code {
        Some(75) => Exit::Running,
        Some(78) => Exit::Config,
        _ => Exit::Internal,
    };
    Error::new(
        exit,
        format!("the daemon did not start: {}", words.trim_end()),
    )
}

/// A program that a command runs; the daemon's children are started by the module `process`.
#[expect(
    clippy::disallowed_methods,
    reason = "the module `process` is for the daemon"
)]
pub(super) fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

fn answers(connection: &Connection) -> Result<(), Error> {
    let deadline = Instant::now() + WITHIN;
    loop {
        match connection.get(&RequestPath::new(&[&"healthz"])) {
            Err(error) if error.exit == Exit::Unavailable && Instant::now() < deadline => {
                std::thread::sleep(PACE);
            }
            answer => return answer.map(drop),
        }
    }
}

fn tell(connection: &Connection) {
    let info: Value = connection.read(&[&"info"]).unwrap_or_default();
    let pid = &info["pid"];
    let log = text(&info, "paths.log");
    warn(format!("started murald (process {pid}, log {log})"));
}

/// Prints once, on a terminal, how to start murald with the session, unless a unit is enabled.
fn tell_of_login() {
    let Some(note) = Dirs::from_process()
        .ok()
        .map(|dirs| dirs.state().join("login-hint"))
    else {
        return;
    };
    let is_enabled = |unit: &&str| systemctl(&["is-enabled", unit]);
    if !std::io::stderr().is_terminal()
        || note.exists()
        || ["murald.service", "murald.socket"].iter().any(is_enabled)
    {
        return;
    }
    let text = if systemctl(&["--version"]) {
        "`systemctl --user enable murald` starts it with every login"
    } else {
        "`murald start` in your compositor's configuration starts it with every login"
    };
    warn(format!("{text} (see murald-tutorial(7))"));
    // Without the note, the hint is printed again after the next start.
    note.parent().map(std::fs::create_dir_all);
    std::fs::write(note, "").ok();
}

/// Runs `systemctl --user`; false if it fails or is not installed.
fn systemctl(words: &[&str]) -> bool {
    let mut command = command("systemctl");
    command.arg("--user").args(words).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Waits until the daemon knows a monitor, as the compositor may take a while. Without a compositor,
/// the command itself reports that.
fn monitors(connection: &Connection) {
    if ["WAYLAND_DISPLAY", "DISPLAY"]
        .iter()
        .all(|name| std::env::var_os(name).is_none())
    {
        return;
    }
    let deadline = Instant::now() + WITHIN;
    while Instant::now() < deadline {
        let found = connection.read(&[&"monitors"]);
        if found.is_ok_and(|monitors: Vec<Value>| !monitors.is_empty()) {
            return;
        }
        std::thread::sleep(PACE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_quotes_a_daemon_that_has_exited() {
        let said = "{\"level\":\"info\"}\nmurald: /c.toml, line 3: no\nhint: fix the file\n";
        let told = ended(Some(78), said);
        assert_eq!(told.exit, Exit::Config);
        let expected = "murald: the daemon did not start: /c.toml, line 3: no\nhint: fix the file";
        assert_eq!(told.to_string(), expected);
        assert_eq!(ended(None, "").exit, Exit::Internal);
    }
}
