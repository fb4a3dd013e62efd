//! The lines of requests: gathered by the workers, written together by the thread `log`.
//!
//! There may be a hundred thousand a second, and a line of its own for each would cost more than the
//! answer. They go to the file alone; to stderr only where there is no file.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use log::Level;

use super::file::RotatedFile;
use crate::wire::Timestamp;

/// How long a line may wait for company.
const GATHER: Duration = Duration::from_millis(250);
/// Bytes that wait no longer.
const ENOUGH: usize = 64 << 10;
/// Bytes that wait for a disk that is slow; further lines are lost.
const MOST: usize = 512 << 10;

/// A request and its answer.
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
    gathered: Mutex<Gathered>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct Gathered {
    bytes: Vec<u8>,
    lost: u64,
    ended: bool,
    clock: Clock,
}

/// The time as the log writes it, made once a second.
#[derive(Debug, Default)]
struct Clock {
    second: i64,
    text: String,
}

static LOG: OnceLock<Arc<Requests>> = OnceLock::new();

/// Logs a request, if there is a log and its level has it.
pub(crate) fn request(line: &RequestLine<'_>) {
    if Level::Info <= log::max_level()
        && let Some(requests) = LOG.get()
    {
        requests.add(line, Timestamp::now());
    }
}

impl Requests {
    pub(super) fn new(file: Arc<RotatedFile>) -> Arc<Self> {
        Arc::new(Self { file, gathered: Mutex::default(), wake: Condvar::new() })
    }

    /// From now on it is these that [`request`] adds to.
    pub(super) fn publish(self: &Arc<Self>) {
        LOG.set(Arc::clone(self)).ok();
    }

    fn add(&self, line: &RequestLine<'_>, now: Timestamp) {
        let mut gathered = self.lock();
        let before = gathered.bytes.len();
        if before > MOST {
            gathered.lost += 1;
            return;
        }
        gathered.push(line, now);
        let crossed = before < ENOUGH && gathered.bytes.len() >= ENOUGH;
        drop(gathered);
        if before == 0 || crossed {
            self.wake.notify_one();
        }
    }

    /// The thread's whole life.
    pub(super) fn run(&self) {
        let mut gathered = self.lock();
        while !gathered.ended {
            if gathered.bytes.is_empty() {
                gathered = self.wake.wait(gathered).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let deadline = Instant::now() + GATHER;
            while gathered.bytes.len() < ENOUGH && !gathered.ended {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                let waited = self.wake.wait_timeout(gathered, left);
                gathered = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            drop(gathered);
            self.flush();
            gathered = self.lock();
        }
        drop(gathered);
        self.flush();
    }

    /// Writes what is gathered.
    pub(super) fn flush(&self) {
        let mut gathered = self.lock();
        let (bytes, lost) =
            (std::mem::take(&mut gathered.bytes), std::mem::take(&mut gathered.lost));
        drop(gathered);
        if bytes.is_empty() {
            return;
        }
        // A full disk loses lines, not the daemon.
        if !self.file.is_open() {
            io::stderr().write_all(&bytes).ok();
        } else {
            self.file.write(&bytes).ok();
        }
        if lost > 0 {
            log::warn!("{lost} lines of requests are not in the log: its disk is too slow");
        }
    }

    pub(super) fn end(&self) {
        self.lock().ended = true;
        self.wake.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Gathered> {
        // At worst a line is cut where a thread died.
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gathered {
    fn push(&mut self, line: &RequestLine<'_>, now: Timestamp) {
        let RequestLine { id, method, path, status, duration } = *line;
        let micros = duration.as_micros();
        let (whole, part) = (micros / 1000, micros % 1000);
        let (before, after) = self.clock.around(now);
        let (bytes, fraction) = (&mut self.bytes, now.as_micros().rem_euclid(1_000_000));
        let mut put = |text: std::fmt::Arguments<'_>| {
            bytes.write_fmt(text).expect("a Vec takes everything");
        };
        put(format_args!(
            r#"{{"ts":"{before}{fraction:06}{after}","level":"info","target":"http","#
        ));
        // Both may have anything in them that is no control character.
        let (method, path) = (Escaped(method), Escaped(path));
        put(format_args!(r#""msg":"{method} {path} {status} in {whole}.{part:03} ms","#));
        put(format_args!(r#""request_id":"{id}","method":"{method}","path":"{path}","#));
        put(format_args!("\"status\":{status},\"duration_ms\":{whole}.{part:03}}}\n"));
    }
}

impl Clock {
    /// What stands before and after the fraction of the second.
    fn around(&mut self, now: Timestamp) -> (&str, &str) {
        let second = now.as_micros().div_euclid(1_000_000);
        if self.second != second || self.text.is_empty() {
            self.second = second;
            self.text = Timestamp::from_micros(second * 1_000_000).to_string();
        }
        let (before, rest) = self.text.split_once('.').unwrap_or((&self.text, ""));
        let fraction = rest.bytes().take_while(u8::is_ascii_digit).count();
        (&self.text[..=before.len().min(self.text.len() - 1)], &rest[fraction..])
    }
}

/// Within a string of JSON.
#[derive(Clone, Copy)]
struct Escaped<'a>(&'a str);

impl std::fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.0.bytes().any(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)) {
            return f.write_str(self.0);
        }
        let quoted = serde_json::to_string(self.0).map_err(|_| std::fmt::Error)?;
        f.write_str(&quoted[1..quoted.len() - 1])
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::Settings;
    use super::*;

    fn requests(directory: &std::path::Path) -> Arc<Requests> {
        let file = directory.join("daemon.log");
        let level = log::LevelFilter::Info;
        let settings = Settings { level, file, max_size: 1 << 20, backups: 1 };
        let file = Arc::new(RotatedFile::new(&settings));
        file.reopen().unwrap();
        Requests::new(file)
    }

    const LINE: RequestLine<'_> = RequestLine {
        id: "r-1",
        method: "GET",
        path: "/a\"b\\c",
        status: 404,
        duration: Duration::from_micros(1_053),
    };

    #[test]
    fn request_lines_are_json_and_gathered() {
        let directory = tempfile::tempdir().unwrap();
        let requests = requests(directory.path());
        let now = Timestamp::from_micros(1_790_000_000_000_456);
        requests.add(&LINE, now);
        requests.add(&LINE, now);
        let text = || std::fs::read_to_string(directory.path().join("daemon.log")).unwrap();
        assert_eq!(text(), "");
        requests.flush();
        let lines: Vec<serde_json::Value> =
            text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        let expected = serde_json::json!({
            "ts": now.to_string(), "level": "info", "target": "http",
            "msg": "GET /a\"b\\c 404 in 1.053 ms", "request_id": "r-1", "method": "GET",
            "path": "/a\"b\\c", "status": 404, "duration_ms": 1.053,
        });
        assert_eq!(lines[0], expected);
    }

    #[test]
    fn request_log_is_flushed_at_end_and_bounded_on_slow_disks() {
        let directory = tempfile::tempdir().unwrap();
        let requests = requests(directory.path());
        for _ in 0..10_000 {
            requests.add(&LINE, Timestamp::now());
        }
        assert!(requests.lock().bytes.len() < 2 * MOST && requests.lock().lost > 0);
        requests.end();
        requests.run();
        let written = std::fs::metadata(directory.path().join("daemon.log")).unwrap().len();
        assert!(written > MOST as u64 && requests.lock().lost == 0);
    }
}
