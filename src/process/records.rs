//! The processes of backends that we started and that may outlive us: a record and a log file of each.
//!
//! A record `BACKEND-N.json`, or `BACKEND@OUTPUT-N.json` of one that serves one output, has two lines:
//! what was started, as JSON, written before the start; and
//! the process's own line of `/proc/self/stat`, which the child appends before it becomes the
//! program. So there is no instant at which a process runs that nobody knows. The next daemon reads
//! them and takes over what still runs.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::backend_process::{self, Record};
use super::{BackendProcess, Error, Identity, Launch};

/// The directory of the records, ours alone.
#[derive(Clone, Debug)]
pub struct ProcessRecords {
    directory: PathBuf,
}

/// The name of an output as a part of a file's name, and of a word.
pub(crate) fn plain_name(output: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    output.chars().map(|c| if is_plain(c) { c } else { '_' }).collect()
}

/// The name of a record without its number.
fn record_name(backend: &str, output: Option<&str>) -> String {
    output.map_or_else(|| backend.to_owned(), |output| format!("{backend}@{}", plain_name(output)))
}

impl ProcessRecords {
    /// Makes the directory where it is missing.
    pub fn open(directory: &Path) -> Result<Self, Error> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(|source| Error::io("make", directory, source))?;
        Ok(Self { directory: directory.to_owned() })
    }

    /// To look at alone: nothing is made.
    pub(crate) fn at(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Starts a process that stays. It runs when this returns; whether it shows anything is the
    /// caller's question.
    pub fn start(
        &self,
        launch: &Launch,
        backend: &str,
        output: Option<&str>,
    ) -> Result<BackendProcess, Error> {
        self.start_with(backend, output, |_| launch.clone())
    }

    /// As [`Self::start`], for one whose command line names a socket of its own.
    pub fn start_with(
        &self,
        backend: &str,
        output: Option<&str>,
        launch: impl FnOnce(&Path) -> Launch,
    ) -> Result<BackendProcess, Error> {
        let (path, file) = self.create(&record_name(backend, output))?;
        // An earlier process of the same number may have left its log, socket or notes.
        backend_process::remove_beside(&path);
        let launch = launch(&path.with_extension("sock"));
        let record = Record::new(&launch, backend, output);
        BackendProcess::start(&launch, record, path, file)
    }

    /// The processes of a backend that run; with `output`, those that serve it alone. What is on
    /// record and has ended is forgotten. Files of other outputs are not touched: they may just be
    /// being written by whoever sees to those.
    pub fn running(&self, backend: &str, output: Option<&str>) -> Vec<BackendProcess> {
        let wanted = record_name(backend, output);
        let is_any = |name: &str| output.is_none() && name.split('@').next() == Some(backend);
        let meant = |(name, _): &(String, PathBuf)| *name == wanted || is_any(name);
        let mut paths: Vec<PathBuf> = self.records().filter(meant).map(|(_, path)| path).collect();
        // The oldest first.
        paths.sort_by_key(|path| fs::metadata(path).and_then(|m| m.modified()).ok());
        paths.into_iter().filter_map(BackendProcess::take_over).collect()
    }

    /// The backends that have processes that run, with the output that each serves where it is one.
    /// For the start, before any is started: what is on record and has ended is forgotten.
    pub fn left(&self) -> Vec<(String, Option<String>)> {
        let processes = self.records().filter_map(|(_, path)| BackendProcess::take_over(path));
        let mut left: Vec<_> =
            processes.map(|it| (it.record().backend.clone(), it.record().output.clone())).collect();
        left.sort();
        left.dedup();
        left
    }

    /// The backends' processes that run now, with the output that each serves where it is one.
    pub(crate) fn who_runs(&self) -> Vec<(String, Option<String>, Identity)> {
        let known = self.records().filter_map(|(_, path)| backend_process::read(&path));
        let running = known.filter(|(_, who)| who.is_running());
        running.map(|(record, who)| (record.backend, record.output, who)).collect()
    }

    /// Ends all that run, and forgets them; how many those were. The caller sees to it that nobody takes
    /// them over.
    pub(crate) fn end_all(&self, grace: Duration) -> usize {
        let running: Vec<_> =
            self.records().filter_map(|(_, path)| BackendProcess::take_over(path)).collect();
        let ended = running.len();
        running.into_iter().for_each(|process| process.end(grace));
        ended
    }

    /// How many records are of processes that have ended, or of none.
    pub(crate) fn gone(&self) -> usize {
        self.records().count().saturating_sub(self.who_runs().len())
    }

    /// The names, without their numbers, and the paths of all records.
    fn records(&self) -> impl Iterator<Item = (String, PathBuf)> {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        entries.filter_map(|entry| {
            let path = entry.path();
            let (name, number) =
                path.file_name()?.to_str()?.strip_suffix(".json")?.rsplit_once('-')?;
            number.parse::<u32>().ok()?;
            Some((name.to_owned(), path))
        })
    }

    /// A record file of an unused number.
    fn create(&self, name: &str) -> Result<(PathBuf, File), Error> {
        for number in 1u32.. {
            let path = self.directory.join(format!("{name}-{number}.json"));
            let mut options = OpenOptions::new();
            match options.append(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => return Ok((path, file)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(Error::io("create", &path, source)),
            }
        }
        unreachable!("four thousand million processes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    use std::time::Instant;

    fn records() -> (tempfile::TempDir, ProcessRecords) {
        let dir = tempfile::tempdir().unwrap();
        let records = ProcessRecords::open(&dir.path().join("processes")).unwrap();
        (dir, records)
    }

    fn sleeper() -> Launch {
        let odd = OsString::from_vec(b"a b\xff#".to_vec());
        Launch::new("/bin/sh").args(["-c", "echo hello; exec sleep 1000", "sh"]).args([odd])
    }

    #[test]
    fn the_next_daemon_finds_what_runs() {
        let (_dir, records) = records();
        let process = records.start(&sleeper(), "swaybg", Some("DP-1")).unwrap();
        let identity = process.child().identity();
        drop(process);
        let mut found = records.running("swaybg", None);
        let again = found.pop().unwrap();
        assert!(found.is_empty());
        assert_eq!(again.child().identity(), identity);
        assert_eq!(again.record().output.as_deref(), Some("DP-1"));
        assert!(again.record().is(&sleeper()));
        assert!(!again.record().is(&sleeper().args(["more"])));
        assert_eq!(records.running("swaybg", Some("DP-1")).len(), 1);
        assert!(records.running("swaybg", Some("DP-2")).is_empty());
        assert!(records.running("feh", None).is_empty());
        assert_eq!(records.left(), [("swaybg".to_owned(), Some("DP-1".to_owned()))]);
        again.end(Duration::from_secs(5));
        assert!(!identity.is_running());
        assert_eq!(fs::read_dir(records.directory()).unwrap().count(), 0);
    }

    #[test]
    fn backend_has_its_own_session_and_log() {
        let (_dir, records) = records();
        let process = records.start(&sleeper(), "swaybg", None).unwrap();
        let pid = rustix::process::Pid::from_raw(process.child().identity().pid);
        assert_eq!(rustix::process::getsid(pid).ok(), pid);
        assert_eq!(rustix::process::getpgid(pid).ok(), pid);
        let deadline = Instant::now() + Duration::from_secs(60);
        while process.log_tail() != "hello" {
            assert!(Instant::now() < deadline, "log: {}", process.log_tail());
            std::thread::yield_now();
        }
        process.end(Duration::from_secs(5));
    }

    #[test]
    fn a_reused_number_is_not_taken_over() {
        let (_dir, records) = records();
        let process = records.start(&sleeper(), "swaybg", None).unwrap();
        let text = fs::read_to_string(&process.path).unwrap();
        let start = process.child().identity().start_time.to_string();
        fs::write(&process.path, text.replace(&start, "1")).unwrap();
        assert!(records.running("swaybg", None).is_empty());
        assert!(process.child().is_running(), "and is left alone");
        process.end(Duration::from_secs(5));
    }

    #[test]
    fn files_of_an_earlier_process_of_the_same_number_are_removed() {
        let (_dir, records) = records();
        let stale = ["log", "sock", "paused"];
        for extension in stale {
            fs::write(records.directory().join(format!("swaybg-1.{extension}")), "stale").unwrap();
        }
        let other = records.directory().join("swaybg-10.sock");
        fs::write(&other, "").unwrap();
        let process = records.start(&sleeper(), "swaybg", None).unwrap();
        assert!(
            stale.iter().all(|it| fs::read(process.beside(it)).unwrap_or_default() != b"stale")
        );
        assert!(!process.beside("sock").exists() && !process.beside("paused").exists());
        assert!(other.exists());
        process.end(Duration::from_secs(5));
    }

    #[test]
    fn a_failed_start_leaves_no_record() {
        let (_dir, records) = records();
        assert!(records.start(&Launch::new("/nowhere/swaybg"), "swaybg", None).is_err());
        assert_eq!(fs::read_dir(records.directory()).unwrap().count(), 0);
    }

    #[test]
    fn one_that_ignores_sigterm_is_killed() {
        let (_dir, records) = records();
        let deaf = Launch::new("/bin/sh").args(["-c", "trap '' TERM; echo deaf; sleep 1000; :"]);
        let process = records.start(&deaf, "mpvpaper", None).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while process.log_tail() != "deaf" {
            assert!(Instant::now() < deadline, "never started");
            std::thread::yield_now();
        }
        let identity = process.child().identity();
        process.end(Duration::from_millis(50));
        assert!(!identity.is_running());
    }
}
