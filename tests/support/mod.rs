//! Runs the real executable in an isolated environment: temporary directories, a clean environment,
//! its own `PATH`; and provides a client of its socket. If a test fails, the end of the log is
//! printed and the directory is kept.

// Each test program uses a part of this file.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::unwrap_used
)]

pub mod awww;
pub mod bystander;
pub mod client;
pub mod dead_disk;
pub mod dice;
pub mod kills;
pub mod photographs;
pub mod pty;
pub mod snapshot;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use client::{Client, Events};

/// Time limit for everything that must happen, generous for busy machines.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A test environment: a daemon and all its files.
pub struct TestDaemon {
    /// Kept if the test fails.
    directory: Option<tempfile::TempDir>,
    root: PathBuf,
    /// The runtime directory, that of the desktop if there is one.
    runtime: PathBuf,
    environment: Vec<(OsString, OsString)>,
    path: OsString,
    /// The backend of a daemon without settings: one whose processes and pictures tests examine.
    backend: Option<&'static str>,
    child: Option<Child>,
}

impl TestDaemon {
    /// Creates an environment without a desktop; does not start the daemon.
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().to_owned();
        let runtime = root.join("run");
        fs::create_dir(&runtime).unwrap();
        fs::set_permissions(&runtime, fs::Permissions::from_mode(0o700)).unwrap();
        let path = std::env::var_os("PATH").unwrap();
        Self {
            directory: Some(directory),
            root,
            runtime,
            environment: Vec::new(),
            path,
            backend: None,
            child: None,
        }
    }

    /// Creates an environment on a desktop, with its variables and runtime directory.
    pub fn on(desktop: &crate::desktop::Desktop) -> Self {
        let mut daemon = Self::new();
        daemon.runtime = desktop.var("XDG_RUNTIME_DIR").unwrap().into();
        let is_wayland = desktop.var("WAYLAND_DISPLAY").is_some();
        daemon.backend = Some(if is_wayland { "swaybg" } else { "feh" });
        for name in ["WAYLAND_DISPLAY", "DISPLAY", "XDG_SESSION_TYPE", "SWAYSOCK"] {
            if let Some(value) = desktop.var(name) {
                daemon.environment.push((name.into(), value.into()));
            }
        }
        daemon
    }

    /// Creates an environment without a desktop, and starts the daemon.
    pub fn started() -> Self {
        let mut daemon = Self::new();
        daemon.start();
        daemon
    }

    /// Creates an environment on a desktop, and starts the daemon.
    pub fn started_on(desktop: &crate::desktop::Desktop) -> Self {
        let mut daemon = Self::on(desktop);
        daemon.start();
        daemon
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn socket(&self) -> PathBuf {
        self.runtime.join("murald.sock")
    }

    pub fn config_file(&self) -> PathBuf {
        self.root.join("config/murald/config.toml")
    }

    pub fn images(&self) -> PathBuf {
        self.root.join("data/murald/images")
    }

    pub fn database(&self) -> PathBuf {
        self.root.join("data/murald/db/murald.sqlite3")
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.root.join("data/murald/daemon.log")).unwrap_or_default()
    }

    /// Writes the configuration file; called before the first start.
    pub fn configure(&self, toml: &str) {
        fs::create_dir_all(self.config_file().parent().unwrap()).unwrap();
        fs::write(self.config_file(), toml).unwrap();
    }

    pub fn env(&mut self, name: &str, value: impl AsRef<OsStr>) {
        self.environment
            .push((name.into(), value.as_ref().to_owned()));
    }

    /// Puts a script with this name on `PATH`, before all other directories.
    pub fn stub(&mut self, name: &str, script: &str) {
        let directory = self.root.join("bin");
        if !directory.exists() {
            fs::create_dir(&directory).unwrap();
            let old = std::mem::take(&mut self.path);
            let all = std::iter::once(directory.clone()).chain(std::env::split_paths(&old));
            self.path = std::env::join_paths(all).unwrap();
        }
        let path = directory.join(name);
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Puts the tested executable on `PATH`, by its name.
    pub fn stub_murald(&mut self) {
        let executable = env!("CARGO_BIN_EXE_murald");
        self.stub(
            "murald",
            &format!("#!/bin/sh\nexec '{executable}' \"$@\"\n"),
        );
    }

    /// Leaves only these programs on `PATH`, as links to the installed ones.
    pub fn only(&mut self, programs: &[&str]) {
        let directory = self.root.join("only");
        fs::create_dir_all(&directory).unwrap();
        for program in programs {
            let found = std::env::split_paths(&self.path)
                .map(|directory| directory.join(program))
                .find(|candidate| candidate.is_file());
            let found = found.unwrap_or_else(|| panic!("{program} is not installed"));
            std::os::unix::fs::symlink(found, directory.join(program)).unwrap();
        }
        self.path = directory.into_os_string();
    }

    /// Returns a command that runs in this environment.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", &self.root)
            .env("XDG_CONFIG_HOME", self.root.join("config"))
            .env("XDG_DATA_HOME", self.root.join("data"))
            .env("XDG_CACHE_HOME", self.root.join("cache"))
            .env("XDG_RUNTIME_DIR", &self.runtime)
            .env("TZ", "UTC")
            // Commands must not start a daemon by themselves.
            .env("MURALD_AUTOSTART", "0")
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }

    /// Returns a `murald` command with these arguments.
    pub fn murald(&self, args: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_murald"));
        command.args(args);
        command
    }

    /// Starts the daemon and waits until it is ready.
    pub fn start(&mut self) {
        let command = self.murald(&["start"]);
        self.start_by(command);
    }

    /// Starts the daemon from a shell that has run `shell` before.
    pub fn start_after(&mut self, shell: &str) {
        let script = format!("{shell}; exec {} start", env!("CARGO_BIN_EXE_murald"));
        let mut command = self.command("/bin/sh");
        command.args(["-c", &script]);
        self.start_by(command);
    }

    /// Starts the daemon with this command, and waits until it is ready.
    pub fn start_by(&mut self, mut command: Command) {
        if let Some(backend) = self.backend.filter(|_| !self.config_file().exists()) {
            self.configure(&format!("[backend]\ntype = '{backend}'\n"));
        }
        let notify = self.root.join("notify");
        fs::remove_file(&notify).ok();
        let ready = UnixDatagram::bind(&notify).unwrap();
        ready.set_read_timeout(Some(PATIENCE)).unwrap();
        let errors = fs::File::create(self.root.join("stderr")).unwrap();
        command
            .env("NOTIFY_SOCKET", &notify)
            .stdout(Stdio::null())
            .stderr(errors);
        self.child = Some(command.spawn().unwrap());
        let mut buffer = [0; 256];
        loop {
            match ready.recv(&mut buffer) {
                Ok(length) => break assert_eq!(&buffer[..length], b"READY=1"),
                // A receive with a time limit is interrupted if the test process is stopped and
                // continued.
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => panic!("the daemon is not ready: {error}"),
            }
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Returns the processor time that the daemon has used, which does not depend on other load.
    pub fn processor_time(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
        let fields = stat
            .rsplit_once(") ")
            .unwrap()
            .1
            .split(' ')
            .skip(11)
            .take(2);
        let ticks: u64 = fields.map(|field| field.parse::<u64>().unwrap()).sum();
        // The clock ticks of Linux are hundredths of a second.
        Duration::from_millis(ticks * 10)
    }

    pub fn signal(&self, signal: &str) {
        let status = Command::new("kill")
            .args([signal, &self.pid().to_string()])
            .status();
        assert!(status.unwrap().success());
    }

    /// Waits until the daemon has exited by itself; returns its status.
    pub fn wait(&mut self) -> ExitStatus {
        end_of(self.child.take().unwrap())
    }

    /// Sends SIGTERM and returns the exit code.
    pub fn stop(&mut self) -> Option<i32> {
        self.signal("-TERM");
        self.wait().code()
    }

    /// Stops the daemon, and checks that no thread had to be abandoned.
    #[track_caller]
    pub fn ends_well(&mut self) {
        assert_eq!(self.stop(), Some(0));
        let log = self.log();
        let late: Vec<&str> = log
            .lines()
            .filter(|line| line.contains("continuing without"))
            .collect();
        assert!(late.is_empty(), "{late:#?}");
    }

    pub fn kill9(&mut self) {
        self.signal("-KILL");
        self.wait();
    }

    /// Returns the processes that draw on this desktop, recognised by its directory in their
    /// arguments.
    pub fn drawing(&self) -> Vec<u32> {
        let words = [b"draw\0--socket\0", self.runtime.as_os_str().as_bytes()].concat();
        let draws = |pid: &u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.windows(words.len()).any(|part| part == words)
        };
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(draws).collect()
    }

    pub fn client(&self) -> Client {
        Client::new(&self.socket())
    }

    /// Subscribes to events; `types` is as in the query, empty for all.
    pub fn events(&self, types: &str) -> Events {
        Events::new(&self.socket(), types)
    }

    /// Imports files and waits for the end of the batch; returns the ids in the order of the
    /// events.
    pub fn import(&self, paths: &[&Path]) -> Vec<i64> {
        let mut events = self.events("image_processed,image_error,processing_complete");
        let answer = self
            .client()
            .post("/images", &serde_json::json!({ "paths": paths }));
        assert_eq!(answer.status, 202, "{}", answer.text());
        let mut ids = Vec::new();
        loop {
            let (kind, data) = events.next();
            match kind.as_str() {
                "image_processed" => ids.push(data["image"]["id"].as_i64().unwrap()),
                "image_error" => panic!("not imported: {data}"),
                _ => return ids,
            }
        }
    }
}

/// Reports what cannot be tested on this machine. Writes directly, as the output of macros is not
/// shown for passing tests. `contrib/test` repeats the report at its end.
#[allow(clippy::explicit_write, reason = "see above")]
pub fn left_out(what: &str, why: &str) {
    writeln!(std::io::stderr(), "left out: {what}: {why}").unwrap();
}

/// Whether `unshare` may create these namespaces here. If not, reports that the test is skipped:
/// containers and Ubuntu's AppArmor do not allow them.
pub fn may_unshare(test: &str, namespaces: &[&str]) -> bool {
    let probe = Command::new("unshare")
        .args(namespaces)
        .arg("true")
        .output();
    let allowed = probe.is_ok_and(|output| output.status.success());
    if !allowed {
        left_out(
            test,
            &format!("unshare {} is not allowed here", namespaces.join(" ")),
        );
    }
    allowed
}

/// Waits until a program has exited by itself.
pub fn end_of(mut child: Child) -> ExitStatus {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it does not end");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A program that is killed at the end of the test.
pub struct Ended(pub Child);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

impl Drop for TestDaemon {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // Processes of backends outlive the daemon; they end with the desktop.
            child.kill().ok();
            child.wait().ok();
        }
        if std::thread::panicking() {
            let log = self.log();
            let tail: Vec<&str> = log.lines().rev().take(30).collect();
            eprintln!("the end of the log, in {}:", self.root.display());
            tail.into_iter()
                .rev()
                .for_each(|line| eprintln!("  {line}"));
            std::mem::forget(self.directory.take());
        }
    }
}
