//! The log lines of requests: gathered by the threads of connections, and written by the thread
//! `log`.
//!
//! There may be a hundred thousand a second, so writing each separately would cost more than the
//! request. Lines go to the file; all except successful GETs also go to stderr, and all of them do
//! if there is no file.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use log::Level;
use serde::Serialize;

use super::file::{RotatedFile, Stderr};
use crate::sys::{lock, unpoisoned};
use crate::wire::Timestamp;

/// How long a line may wait for others.
const GATHER: Duration = Duration::from_millis(250);
/// Number of bytes that are written at once.
const ENOUGH: usize = 64 << 10;
/// Maximum number of bytes that wait for a slow disk; further lines are lost.
const MOST: usize = 512 << 10;

/// Expected length of a line in bytes.
const LENGTH: usize = 320;

/// A request and its response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestLine<'a> {
    pub id: &'a str,
    pub method: &'a str,
    pub path: &'a str,
    pub status: u16,
    pub duration: Duration,
}

#[derive(Debug)]
pub(super) struct Requests {
    file: Arc<RotatedFile>,
    stderr: Stderr,
    gathered: Mutex<Gathered>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct Gathered {
    bytes: Vec<u8>,
    /// Lines for stderr. No extra limit is needed, as they are not longer than those in `bytes`.
    said: Vec<u8>,
    lost: u64,
    ended: bool,
}

static LOG: OnceLock<Arc<Requests>> = OnceLock::new();

/// Logs a request, if requests are logged and the level includes it.
pub(crate) fn request(line: &RequestLine<'_>) {
    if line.level() <= log::max_level()
        && let Some(requests) = LOG.get()
    {
        requests.add(line, Timestamp::now());
    }
}

/// A JSON line, with the fields in the same order as in other lines.
#[derive(Serialize)]
struct JsonLine<'a> {
    ts: Timestamp,
    level: &'static str,
    target: &'static str,
    msg: fmt::Arguments<'a>,
    request_id: &'a str,
    method: &'a str,
    path: &'a str,
    status: u16,
    duration_ms: f64,
}

impl RequestLine<'_> {
    fn level(&self) -> Level {
        if self.status >= 500 {
            Level::Error
        } else {
            Level::Info
        }
    }

    fn is_successful_get(&self) -> bool {
        self.method == "GET" && self.status < 400
    }

    fn json(&self, ts: Timestamp) -> Vec<u8> {
        let Self {
            id: request_id,
            method,
            path,
            status,
            duration,
        } = *self;
        let duration_ms = duration.as_micros() as f64 / 1000.0;
        let mut out = Vec::with_capacity(LENGTH);
        let written = serde_json::to_writer(
            &mut out,
            &JsonLine {
                ts,
                level: if self.level() == Level::Error {
                    "error"
                } else {
                    "info"
                },
                target: "http",
                msg: format_args!("{method} {path} {status} in {duration_ms:.3} ms"),
                request_id,
                method,
                path,
                status,
                duration_ms,
            },
        );
        written.expect("texts and numbers are JSON");
        out.push(b'\n');
        out
    }

    /// The line as text, in the same format as `plain_line`.
    fn plain(&self) -> String {
        let Self {
            id,
            method,
            path,
            status,
            duration,
        } = self;
        let took = duration.as_secs_f64() * 1000.0;
        let level = self.level();
        format!("{level:5} {method} {path} {status} in {took:.3} ms request_id={id:?}\n")
    }
}

impl Requests {
    pub(super) fn new(file: Arc<RotatedFile>, stderr: Stderr) -> Arc<Self> {
        Arc::new(Self {
            file,
            stderr,
            gathered: Mutex::default(),
            wake: Condvar::new(),
        })
    }

    /// Makes [`request`] use this instance.
    pub(super) fn publish(self: &Arc<Self>) {
        LOG.set(Arc::clone(self)).ok();
    }

    fn add(&self, line: &RequestLine<'_>, now: Timestamp) {
        // Formatted outside the lock, for which other threads wait.
        let json = line.json(now);
        let mut gathered = self.lock();
        let before = gathered.bytes.len();
        if before > MOST {
            gathered.lost += 1;
            return;
        }
        gathered.bytes.extend_from_slice(&json);
        if !line.is_successful_get() && line.level() <= self.stderr.level {
            match self.stderr.is_terminal {
                true => gathered.said.extend_from_slice(line.plain().as_bytes()),
                false => gathered.said.extend_from_slice(&json),
            }
        }
        let crossed = before < ENOUGH && gathered.bytes.len() >= ENOUGH;
        drop(gathered);
        if before == 0 || crossed {
            self.wake.notify_one();
        }
    }

    /// Runs the thread until `end` is called.
    pub(super) fn run(&self) {
        let mut gathered = self.lock();
        while !gathered.ended {
            if gathered.bytes.is_empty() {
                gathered = unpoisoned(self.wake.wait(gathered));
                continue;
            }
            let deadline = Instant::now() + GATHER;
            while gathered.bytes.len() < ENOUGH && !gathered.ended {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                let waited = self.wake.wait_timeout(gathered, left);
                gathered = unpoisoned(waited).0;
            }
            drop(gathered);
            self.flush();
            gathered = self.lock();
        }
        drop(gathered);
        self.flush();
    }

    /// Writes the gathered lines.
    pub(super) fn flush(&self) {
        let mut gathered = self.lock();
        let Gathered {
            bytes, said, lost, ..
        } = &mut *gathered;
        let (bytes, said, lost) = (
            std::mem::take(bytes),
            std::mem::take(said),
            std::mem::take(lost),
        );
        drop(gathered);
        if bytes.is_empty() {
            return;
        }
        // If the disk is full, lines are lost.
        if !self.file.is_open() {
            io::stderr().write_all(&bytes).ok();
        } else {
            self.file.write(&bytes).ok();
            io::stderr().write_all(&said).ok();
        }
        if lost > 0 {
            log::warn!("{lost} requests were not logged: the disk is too slow");
        }
    }

    pub(super) fn end(&self) {
        self.lock().ended = true;
        self.wake.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Gathered> {
        // A thread that panicked may leave a truncated line, but nothing worse.
        lock(&self.gathered)
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::Settings;
    use super::*;

    fn requests(directory: &std::path::Path) -> Arc<Requests> {
        let file = directory.join("daemon.log");
        let level = log::LevelFilter::Info;
        let settings = Settings {
            level,
            file,
            max_size: 1 << 20,
            backups: 1,
        };
        let file = Arc::new(RotatedFile::new(&settings));
        file.reopen().unwrap();
        Requests::new(
            file,
            Stderr {
                level: log::LevelFilter::Off,
                is_terminal: false,
            },
        )
    }

    const LINE: RequestLine<'_> = RequestLine {
        id: "r-1",
        method: "GET",
        path: "/a\"b\\c",
        status: 404,
        duration: Duration::from_micros(1_053),
    };

    #[test]
    fn request_lines_are_gathered_as_json() {
        let directory = tempfile::tempdir().unwrap();
        let requests = requests(directory.path());
        let now = Timestamp::from_micros(1_790_000_000_000_456);
        requests.add(&LINE, now);
        requests.add(&LINE, now);
        let text = || std::fs::read_to_string(directory.path().join("daemon.log")).unwrap();
        assert_eq!(text(), "");
        requests.flush();
        let lines: Vec<serde_json::Value> = text()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 2);
        let expected = serde_json::json!({
            "ts": now.to_string(), "level": "info", "target": "http",
            "msg": "GET /a\"b\\c 404 in 1.053 ms", "request_id": "r-1", "method": "GET",
            "path": "/a\"b\\c", "status": 404, "duration_ms": 1.053,
        });
        assert_eq!(lines[0], expected);
    }

    #[test]
    fn successful_gets_are_not_written_to_stderr() {
        let directory = tempfile::tempdir().unwrap();
        let said = |is_terminal, level, method, status| {
            let mut requests = Arc::into_inner(requests(directory.path())).unwrap();
            requests.stderr = Stderr { level, is_terminal };
            requests.add(
                &RequestLine {
                    method,
                    status,
                    ..LINE
                },
                Timestamp::now(),
            );
            let gathered = requests.lock();
            let said = String::from_utf8(gathered.said.clone()).unwrap();
            assert!(is_terminal || said.is_empty() || said.as_bytes() == gathered.bytes);
            said
        };
        use log::LevelFilter::{Info, Warn};
        for (method, status) in [("GET", 200), ("GET", 304)] {
            assert_eq!(said(false, Info, method, status), "");
        }
        for (method, status) in [("GET", 404), ("POST", 200), ("HEAD", 200), ("PATCH", 400)] {
            assert!(said(false, Info, method, status).contains(r#""level":"info""#));
            assert_eq!(said(false, Warn, method, status), "");
        }
        assert!(said(false, Warn, "GET", 500).contains(r#""level":"error""#));
        let plain = "ERROR POST /a\"b\\c 503 in 1.053 ms request_id=\"r-1\"\n";
        assert_eq!(said(true, Warn, "POST", 503), plain);
    }

    #[test]
    fn request_log_is_flushed_at_the_end_and_bounded_on_slow_disks() {
        let directory = tempfile::tempdir().unwrap();
        let requests = requests(directory.path());
        for _ in 0..10_000 {
            requests.add(&LINE, Timestamp::now());
        }
        assert!(requests.lock().bytes.len() < 2 * MOST && requests.lock().lost > 0);
        requests.end();
        requests.run();
        let written = std::fs::metadata(directory.path().join("daemon.log"))
            .unwrap()
            .len();
        assert!(written > MOST as u64 && requests.lock().lost == 0);
    }
}
