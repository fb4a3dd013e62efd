//! The servers under load: the daemon with a large library, and nginx with the same answers as files.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark starts its programs itself"
)]

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use murald::internals::digest;
use murald::internals::store::Store;
use murald::internals::store::images;

/// Clock ticks per second in /proc, the same on all Linux systems.
const TICKS: f64 = 100.0;

pub(crate) struct Daemon {
    pub(crate) socket: PathBuf,
    pub(crate) first_answer: Duration,
    child: Child,
    _home: tempfile::TempDir,
}

pub(crate) struct Nginx {
    pub(crate) socket: PathBuf,
    child: Child,
    _home: tempfile::TempDir,
}

impl Daemon {
    /// Starts the daemon with a library of `number` images, which have empty files, and thumbnails of
    /// one byte, as an empty one would not count.
    pub(crate) fn start(number: usize) -> Self {
        let home = tempfile::tempdir().unwrap();
        fill(home.path(), number);
        let run = home.path().join("run");
        std::fs::create_dir(&run).unwrap();
        let socket = run.join("murald.sock");
        let began = Instant::now();
        let child = Command::new(env!("CARGO_BIN_EXE_murald"))
            .arg("start")
            .env_clear()
            .env("HOME", home.path())
            .env("PATH", "/usr/bin:/bin")
            .env("XDG_RUNTIME_DIR", &run)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let answers = || {
            UnixStream::connect(&socket)
                .is_ok_and(|_| !super::load::body(&socket, &super::get("/healthz")).is_empty())
        };
        wait(answers);
        let first_answer = began.elapsed();
        Self {
            socket,
            first_answer,
            child,
            _home: home,
        }
    }

    /// Resident memory in MiB, and the number of its threads' wake-ups without requests.
    pub(crate) fn idle(&self, time: Duration) -> (f64, u64) {
        // The work of the start is finished when nothing happens for a second.
        let mut before = self.wakes();
        wait(|| {
            std::thread::sleep(Duration::from_secs(1));
            before == std::mem::replace(&mut before, self.wakes())
        });
        std::thread::sleep(time);
        (self.memory(), self.wakes() - before)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn memory(&self) -> f64 {
        let status = std::fs::read_to_string(self.proc("status")).unwrap();
        number(&status, "VmRSS:") as f64 / 1024.0
    }

    fn wakes(&self) -> u64 {
        let tasks = std::fs::read_dir(self.proc("task")).unwrap();
        let status =
            |task: PathBuf| std::fs::read_to_string(task.join("status")).unwrap_or_default();
        tasks
            .flatten()
            .map(|task| number(&status(task.path()), "voluntary_ctxt_switches:"))
            .sum()
    }

    fn proc(&self, name: &str) -> PathBuf {
        format!("/proc/{}/{name}", self.child.id()).into()
    }
}

/// Seconds of processor time of a process and its children.
pub(crate) fn processor(pid: u32) -> f64 {
    let read =
        |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let (stat, children) = (read("stat"), read(&format!("task/{pid}/children")));
    // Fields are counted after the name, which may contain anything. The 12th and 13th are user and
    // system time.
    let fields = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace();
    let ticks: f64 = fields
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<f64>().ok())
        .sum();
    let own = ticks / TICKS;
    own + children
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .map(processor)
        .sum::<f64>()
}

fn number(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

fn fill(home: &Path, number: usize) {
    let data = home.join(".local/share/murald");
    let (pictures, thumbnails) = (
        data.join("images"),
        home.join(".cache/murald/thumbnails/default"),
    );
    for directory in [&pictures, &thumbnails] {
        std::fs::create_dir_all(directory).unwrap();
    }
    let store = Store::open(&data.join("db/murald.sqlite3")).unwrap();
    let insert = |transaction: &rusqlite::Transaction<'_>| {
        (0..number).try_for_each(|at| {
            let image = super::row::row(at, &pictures);
            std::fs::write(&image.path, b"").unwrap();
            let hex = digest::hex(&image.checksum);
            std::fs::write(thumbnails.join(format!("{hex}.webp")), b"-").unwrap();
            images::insert(transaction, &image).map(drop)
        })
    };
    store
        .write::<_, murald::internals::store::Error>(insert)
        .unwrap();
}

impl Nginx {
    /// Starts nginx with these files; `None` if it is not installed.
    pub(crate) fn start(files: &[(&str, Vec<u8>)]) -> Option<Self> {
        let home = tempfile::tempdir().unwrap();
        let (root, socket) = (home.path(), home.path().join("s"));
        files
            .iter()
            .for_each(|(name, bytes)| std::fs::write(root.join(name), bytes).unwrap());
        // Does what the daemon does: JSON, persistent connections, a buffered log line for each request.
        let configuration = format!(
            "daemon off; worker_processes auto; pid {0}/pid; error_log stderr crit;\n\
             events {{ worker_connections 1024; }}\n\
             http {{ log_format line escape=json '{{\"ts\":\"$time_iso8601\",\"level\":\"info\",\
             \"target\":\"http\",\"msg\":\"$request_method $uri $status in $request_time s\",\
             \"request_id\":\"$connection-$connection_requests\",\"method\":\"$request_method\",\"path\":\"$uri\",\
             \"status\":$status,\"duration_s\":$request_time}}';\n\
             access_log {0}/log line buffer=64k flush=1s;\n\
             default_type application/json; keepalive_requests 1000;\n\
             sendfile on; client_body_temp_path {0}/a; proxy_temp_path {0}/b;\n\
             fastcgi_temp_path {0}/c; uwsgi_temp_path {0}/d; scgi_temp_path {0}/e;\n\
             open_file_cache max=10;\n\
             server {{ listen unix:{0}/s; root {0};\n\
             location = /healthz {{ return 200 '{{\"status\":\"ok\"}}'; }} }} }}\n",
            root.display()
        );
        std::fs::write(root.join("conf"), configuration).unwrap();
        let child = Command::new("nginx")
            .arg("-p")
            .arg(root)
            .arg("-c")
            .arg(root.join("conf"))
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        // The workers run as another user if root starts nginx.
        std::fs::set_permissions(root, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
        wait(|| UnixStream::connect(&socket).is_ok());
        Some(Self {
            socket,
            child,
            _home: home,
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

fn wait(mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !done() {
        assert!(Instant::now() < deadline, "a server does not start");
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Stops a server by SIGTERM, on which nginx also stops its workers.
fn end(child: &mut Child) {
    if let Some(pid) = rustix::process::Pid::from_raw(child.id() as i32) {
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).ok();
    }
    child.wait().ok();
}

impl Drop for Daemon {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}
