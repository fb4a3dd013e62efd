//! One process of a backend that stays, its record and its log: started, taken over, ended, forgotten.
//!
//! Runs in the thread of the backend that it serves.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::text::{self, Text};
use super::{Child, Error, Identity, Launch, ResourceLimits, show_command, tail};

/// How much of a log is quoted in a message at most.
const TAIL: usize = 4 << 10;
/// The bytes that a process may write to a file: nobody empties its log once the daemon is gone.
/// Shared memory counts too, and a buffer for an 8K screen has 133 MB.
const OUTPUT_MAX: u64 = 1 << 30;

/// A process of a backend, started by this daemon or an earlier one.
#[derive(Debug)]
pub struct BackendProcess {
    child: Child,
    record: Record,
    /// The path of the record and, with another extension, the log.
    pub(super) path: PathBuf,
    /// The log, locked since before the process could write to it: the reaper does not empty it.
    held: Option<File>,
}

impl BackendProcess {
    /// Starts one, and writes its new record, which is removed where that fails.
    pub(super) fn start(
        launch: &Launch,
        record: Record,
        path: PathBuf,
        mut file: File,
    ) -> Result<Self, Error> {
        match start(launch, &record, &path, &mut file) {
            Ok((child, held)) => Ok(Self { child, record, path, held: Some(held) }),
            Err(error) => {
                remove(&path);
                Err(error)
            }
        }
    }

    /// Returns the process of a record if it runs, else removes the record.
    pub(super) fn take_over(path: PathBuf) -> Option<Self> {
        let found = read(&path).and_then(|(record, who)| Some((record, Child::hold(who)?)));
        match found {
            Some((record, child)) => Some(Self { child, record, path, held: None }),
            None => {
                remove(&path);
                None
            }
        }
    }

    pub fn child(&self) -> &Child {
        &self.child
    }

    pub fn record(&self) -> &Record {
        &self.record
    }

    /// The file that gets both its streams.
    pub fn log_path(&self) -> PathBuf {
        self.beside("log")
    }

    /// Lets the reaper empty the log. Whoever starts a process calls this when it has read the log.
    pub fn release_log(&mut self) {
        drop(self.held.take());
    }

    /// How much it has written: where what it writes from now on begins.
    pub fn log_length(&self) -> u64 {
        fs::metadata(self.log_path()).map_or(0, |metadata| metadata.len())
    }

    /// The end of what it wrote.
    pub fn log_tail(&self) -> String {
        let read = || -> io::Result<Vec<u8>> {
            let mut file = File::open(self.log_path())?;
            let end = file.seek(SeekFrom::End(0))?;
            file.seek(SeekFrom::Start(end.saturating_sub(TAIL as u64)))?;
            let mut bytes = Vec::new();
            file.take(TAIL as u64).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        tail(&read().unwrap_or_default(), TAIL)
    }

    /// The last line of the process's log that is not libwayland's trace.
    pub fn last_words(&self) -> String {
        let tail = self.log_tail();
        let own = |line: &&str| !line.trim().is_empty() && !is_trace(line);
        tail.lines().rfind(own).unwrap_or("it said nothing").trim().to_owned()
    }

    /// A file of its own beside the record, removed with it: its socket, or a note about it.
    pub fn beside(&self, extension: &str) -> PathBuf {
        self.path.with_extension(extension)
    }

    /// Ends it: SIGTERM, and SIGKILL after `grace`; forgets it once it is gone.
    pub fn end(self, grace: Duration) {
        if self.child.end(grace) {
            remove(&self.path);
        } else {
            log::error!("cannot stop {}", self.record.shown());
        }
    }

    /// Ends it at once, for one that is known not to hear SIGTERM.
    pub fn kill(self) {
        if self.child.kill() {
            remove(&self.path);
        }
    }

    /// Forgets one that has ended.
    pub fn forget(self) {
        let how = self.child.ended().map_or_else(String::new, |ended| format!(" ({ended})"));
        log::info!("exited{how}: {}", self.record.shown());
        remove(&self.path);
    }
}

fn start(
    launch: &Launch,
    record: &Record,
    path: &Path,
    file: &mut File,
) -> Result<(Child, File), Error> {
    let failed = |operation, source| Error::io(operation, path, source);
    let mut line = serde_json::to_vec(record).map_err(|e| failed("write", e.into()))?;
    line.push(b'\n');
    file.write_all(&line).map_err(|e| failed("write", e))?;
    let log_path = path.with_extension("log");
    let log = OpenOptions::new()
        .append(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&log_path)
        .map_err(|source| Error::io("create", &log_path, source))?;
    // Opened once more: a lock of the file that the process inherits would stay as long as it runs.
    let held = File::open(&log_path).map_err(|source| Error::io("open", &log_path, source))?;
    flock(&held, FlockOperation::LockShared).map_err(|e| Error::io("lock", &log_path, e))?;
    let limits = ResourceLimits { output: Some(OUTPUT_MAX), ..ResourceLimits::default() };
    let launch = launch.clone().limits(limits);
    let errors = log.try_clone().map_err(|source| Error::io("open", &log_path, source))?;
    let child = launch.start(Some(log.into()), Some(errors.into()), Some(path))?;
    Ok((child, held))
}

/// Removes a record and the files beside it. The record goes last: its name is not given again before.
fn remove(path: &Path) {
    remove_beside(path);
    fs::remove_file(path).ok();
}

/// Removes the files beside a record.
pub(super) fn remove_beside(path: &Path) {
    let directory = path.parent().map(fs::read_dir);
    for entry in directory.into_iter().flatten().flatten().flatten() {
        let file = entry.path();
        if file.file_stem() == path.file_stem() && file != path {
            fs::remove_file(file).ok();
        }
    }
}

/// Whether a line is of libwayland's trace, which begins with a time in brackets.
fn is_trace(line: &str) -> bool {
    let time = line.strip_prefix('[').and_then(|line| line.split_once(']'));
    time.is_some_and(|(time, _)| time.trim().parse::<f64>().is_ok())
}

/// A command that was started, and the backend it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub backend: String,
    /// The output it serves; none when it serves all.
    pub output: Option<String>,
    #[serde(with = "text")]
    program: OsString,
    args: Vec<Text>,
    env: Vec<(Text, Text)>,
}

impl Record {
    pub(super) fn new(launch: &Launch, backend: &str, output: Option<&str>) -> Self {
        Self {
            backend: backend.to_owned(),
            output: output.map(str::to_owned),
            program: launch.program.clone().into_os_string(),
            args: launch.args.iter().map(Text::from).collect(),
            env: launch.env.iter().map(|(n, v)| (Text::from(n), Text::from(v))).collect(),
        }
    }

    /// Whether the same command line would be started again.
    pub fn is(&self, launch: &Launch) -> bool {
        *self == Self::new(launch, &self.backend, self.output.as_deref())
    }

    pub fn args(&self) -> Vec<OsString> {
        self.args.iter().map(|text| text.0.clone()).collect()
    }

    /// For messages and logs.
    pub fn shown(&self) -> String {
        show_command(Path::new(&self.program), &self.args())
    }
}

pub(super) fn read(path: &Path) -> Option<(Record, Identity)> {
    parse(&fs::read(path).ok()?)
}

/// Parses the two lines of a record: the command, and the process.
pub(super) fn parse(bytes: &[u8]) -> Option<(Record, Identity)> {
    let mut lines = bytes.splitn(2, |&b| b == b'\n');
    let record = serde_json::from_slice(lines.next()?).ok()?;
    Some((record, Identity::from_stat(lines.next()?)?))
}
