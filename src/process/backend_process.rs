//! A long-running process of a backend with its record and log: starts, adopts and ends it.
//!
//! Runs on the thread of the backend.

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

/// Maximum length in bytes of the part of a log that is quoted in a message.
const TAIL: usize = 4 << 10;
/// Maximum size in bytes of a file written by the process, as no thread empties its log when the
/// daemon has exited. Shared memory counts as well, and a buffer for an 8K screen has 133 MB.
const OUTPUT_MAX: u64 = 1 << 30;

/// A process of a backend, started by this daemon or an earlier one.
#[derive(Debug)]
pub struct BackendProcess {
    child: Child,
    record: Record,
    /// The path of the record; the log has the same path with another extension.
    pub(super) path: PathBuf,
    /// The log, locked before the process is started, so that it is not emptied.
    held: Option<File>,
}

impl BackendProcess {
    /// Starts a process and writes its new record, which is removed if that fails.
    pub(super) fn start(
        launch: &Launch,
        record: Record,
        path: PathBuf,
        mut file: File,
    ) -> Result<Self, Error> {
        match start(launch, &record, &path, &mut file) {
            Ok((child, held)) => Ok(Self {
                child,
                record,
                path,
                held: Some(held),
            }),
            Err(error) => {
                remove(&path);
                Err(error)
            }
        }
    }

    /// Adopts the process of a record if it is running; removes the record if not.
    pub(super) fn take_over(path: PathBuf) -> Option<Self> {
        let found = read(&path).and_then(|(record, who)| Some((record, Child::hold(who)?)));
        match found {
            Some((record, child)) => Some(Self {
                child,
                record,
                path,
                held: None,
            }),
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

    /// The file that receives stdout and stderr.
    pub fn log_path(&self) -> PathBuf {
        self.beside("log")
    }

    /// Lets the log be emptied; called when the starting thread has read it.
    pub fn release_log(&mut self) {
        if let Some(held) = self.held.take() {
            // Not only closed: a child that another thread starts now has the file, too, until its exec.
            flock(held, FlockOperation::Unlock).ok();
        }
    }

    /// Returns the length of the log: the position of the next output.
    pub fn log_length(&self) -> u64 {
        fs::metadata(self.log_path()).map_or(0, |metadata| metadata.len())
    }

    /// Returns the end of the log.
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

    /// Returns the last line of the log that is not a trace line of libwayland.
    pub fn last_words(&self) -> String {
        let tail = self.log_tail();
        let own = |line: &&str| !line.trim().is_empty() && !is_trace(line);
        tail.lines()
            .rfind(own)
            .unwrap_or("it printed nothing")
            .trim()
            .to_owned()
    }

    /// Returns the path of a file beside the record, which is removed with it: a socket, or a note
    /// about the process.
    pub fn beside(&self, extension: &str) -> PathBuf {
        self.path.with_extension(extension)
    }

    /// Ends the process with SIGTERM, and with SIGKILL after `grace`; removes its record when it is
    /// gone.
    pub fn end(self, grace: Duration) {
        if self.child.end(grace) {
            self.remove_record();
        } else {
            log::error!("cannot stop {}", self.record.shown());
        }
    }

    /// Kills a process that is known to ignore SIGTERM.
    pub fn kill(self) {
        if self.child.kill() {
            self.remove_record();
        }
    }

    /// Removes the record of a process that has exited.
    pub fn forget(self) {
        let how = self
            .child
            .ended()
            .map_or_else(String::new, |ended| format!(" ({ended})"));
        log::info!("exited{how}: {}", self.record.shown());
        self.remove_record();
    }

    fn remove_record(&self) {
        // A later process has the same number if the directory was removed in between.
        if read(&self.path).is_none_or(|(_, who)| who == self.child.identity()) {
            remove(&self.path);
        }
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
    // Opened a second time: a lock on the inherited file would last as long as the process.
    let held = File::open(&log_path).map_err(|source| Error::io("open", &log_path, source))?;
    flock(&held, FlockOperation::LockShared).map_err(|e| Error::io("lock", &log_path, e))?;
    let limits = ResourceLimits {
        output: Some(OUTPUT_MAX),
        ..launch.limits
    };
    let launch = launch.clone().limits(limits);
    let errors = log
        .try_clone()
        .map_err(|source| Error::io("open", &log_path, source))?;
    let child = launch.start(Some(log.into()), Some(errors.into()), Some(path))?;
    Ok((child, held))
}

/// Removes a record and the files beside it. The record is removed last, as its name can be reused
/// afterwards.
fn remove(path: &Path) {
    remove_beside(path);
    fs::remove_file(path).ok();
}

/// Removes the files beside a record, but not the record.
pub(super) fn remove_beside(path: &Path) {
    let directory = path.parent().map(fs::read_dir);
    for entry in directory.into_iter().flatten().flatten().flatten() {
        let file = entry.path();
        if file.file_stem() == path.file_stem() && file != path {
            fs::remove_file(file).ok();
        }
    }
}

/// Whether a line is from libwayland's trace, which starts with a time in brackets.
fn is_trace(line: &str) -> bool {
    let time = line.strip_prefix('[').and_then(|line| line.split_once(']'));
    time.is_some_and(|(time, _)| time.trim().parse::<f64>().is_ok())
}

/// The command line of a process, and the backend that uses it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub backend: String,
    /// The output that the process serves; `None` for all.
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
            env: launch
                .env
                .iter()
                .map(|(n, v)| (Text::from(n), Text::from(v)))
                .collect(),
        }
    }

    /// Whether `launch` would start the same command line.
    pub fn is(&self, launch: &Launch) -> bool {
        *self == Self::new(launch, &self.backend, self.output.as_deref())
    }

    pub fn args(&self) -> Vec<OsString> {
        self.args.iter().map(|text| text.0.clone()).collect()
    }

    /// The command line for messages and logs.
    pub fn shown(&self) -> String {
        show_command(Path::new(&self.program), &self.args())
    }
}

pub(super) fn read(path: &Path) -> Option<(Record, Identity)> {
    parse(&fs::read(path).ok()?)
}

/// Parses the two lines of a record: the command and the process.
pub(super) fn parse(bytes: &[u8]) -> Option<(Record, Identity)> {
    let mut lines = bytes.splitn(2, |&b| b == b'\n');
    let record = serde_json::from_slice(lines.next()?).ok()?;
    Some((record, Identity::from_stat(lines.next()?)?))
}
