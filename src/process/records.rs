//! Records the processes of backends, which may outlive the daemon, and keeps a log of each.
//!
//! A record `BACKEND-N.json`, or `BACKEND@OUTPUT-N.json` for a process that serves one output, has
//! two lines: the command as JSON, written before the start, and the process's own line of
//! `/proc/self/stat`, which the child appends before it executes the program. So a running process
//! is always recorded. The next daemon reads the records and adopts the processes that still run.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::backend_process::{self, Record};
use super::{BackendProcess, Error, Identity, Launch};

/// The directory of the records, accessible by the user only.
#[derive(Clone, Debug)]
pub struct ProcessRecords {
    directory: PathBuf,
}

/// The name of an output as part of a file's name or of an argument.
pub(crate) fn plain_name(output: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    output
        .chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .collect()
}

/// The name of a record without its number.
fn record_name(backend: &str, output: Option<&str>) -> String {
    output.map_or_else(
        || backend.to_owned(),
        |output| format!("{backend}@{}", plain_name(output)),
    )
}

impl ProcessRecords {
    /// Creates the directory if it is missing.
    pub fn open(directory: &Path) -> Result<Self, Error> {
        let records = Self::read_only(directory);
        records.make_directory()?;
        Ok(records)
    }

    /// Opens the directory for reading only; does not create it.
    pub(crate) fn read_only(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
        }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Starts a long-running process, whose command line may contain the path of its socket. The
    /// program is executed when this returns; the caller checks whether it shows anything.
    pub fn start(
        &self,
        backend: &str,
        output: Option<&str>,
        launch: impl FnOnce(&Path) -> Launch,
    ) -> Result<BackendProcess, Error> {
        let (path, file) = self.create(&record_name(backend, output))?;
        // An earlier process of the same number may have left a log, a socket or notes.
        backend_process::remove_beside(&path);
        let launch = launch(&path.with_extension("sock"));
        let record = Record::new(&launch, backend, output);
        BackendProcess::start(&launch, record, path, file)
    }

    /// Adopts the running processes of a backend; with `output`, only those that serve this output.
    /// Removes the records of processes that have ended, but leaves those of other outputs alone:
    /// another thread may be writing them.
    pub fn running(&self, backend: &str, output: Option<&str>) -> Vec<BackendProcess> {
        let wanted = record_name(backend, output);
        let is_any = |name: &str| output.is_none() && name.split('@').next() == Some(backend);
        let meant = |(name, _): &(String, PathBuf)| *name == wanted || is_any(name);
        let mut paths: Vec<PathBuf> = self.records().filter(meant).map(|(_, path)| path).collect();
        // Sorted by age, the oldest first.
        paths.sort_by_key(|path| fs::metadata(path).and_then(|m| m.modified()).ok());
        paths
            .into_iter()
            .filter_map(BackendProcess::take_over)
            .collect()
    }

    /// Returns the backends with running processes, and the output if a process serves only one.
    /// Called at the daemon's start, before any process is started; removes the records of
    /// processes that have ended.
    pub fn left(&self) -> Vec<(String, Option<String>)> {
        let processes = self
            .records()
            .filter_map(|(_, path)| BackendProcess::take_over(path));
        let mut left: Vec<_> = processes
            .map(|it| (it.record().backend.clone(), it.record().output.clone()))
            .collect();
        left.sort();
        left.dedup();
        left
    }

    /// Returns the running processes of backends, with the output if a process serves only one.
    pub(crate) fn all_running(&self) -> Vec<(String, Option<String>, Identity)> {
        let known = self
            .records()
            .filter_map(|(_, path)| backend_process::read(&path));
        let running = known.filter(|(_, who)| who.is_running());
        running
            .map(|(record, who)| (record.backend, record.output, who))
            .collect()
    }

    /// Ends all running processes, removes their records and returns their number. The caller makes
    /// sure that no daemon adopts them.
    pub(crate) fn end_all(&self, grace: Duration) -> usize {
        let running: Vec<_> = self
            .records()
            .filter_map(|(_, path)| BackendProcess::take_over(path))
            .collect();
        let ended = running.len();
        running.into_iter().for_each(|process| process.end(grace));
        ended
    }

    /// Returns the number of records whose process has ended or is missing.
    pub(crate) fn gone(&self) -> usize {
        self.records()
            .count()
            .saturating_sub(self.all_running().len())
    }

    /// Returns the names, without numbers, and the paths of all records.
    fn records(&self) -> impl Iterator<Item = (String, PathBuf)> {
        let entries = fs::read_dir(&self.directory)
            .into_iter()
            .flatten()
            .flatten();
        entries.filter_map(|entry| {
            let path = entry.path();
            let (name, number) = path
                .file_name()?
                .to_str()?
                .strip_suffix(".json")?
                .rsplit_once('-')?;
            number.parse::<u32>().ok()?;
            Some((name.to_owned(), path))
        })
    }

    fn make_directory(&self) -> Result<(), Error> {
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.directory);
        made.map_err(|source| Error::io("make", &self.directory, source))
    }

    /// Creates a record file with an unused number, and the directory if it was removed.
    fn create(&self, name: &str) -> Result<(PathBuf, File), Error> {
        self.make_directory()?;
        for number in 1u32.. {
            let path = self.directory.join(format!("{name}-{number}.json"));
            let mut options = OpenOptions::new();
            match options
                .append(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)
            {
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
        Launch::new("/bin/sh")
            .args(["-c", "echo hello; exec sleep 1000", "sh"])
            .args([odd])
    }

    #[test]
    fn removed_directory_is_created_again() {
        let (_dir, records) = records();
        let old = records.start("swaybg", None, |_| sleeper()).unwrap();
        fs::remove_dir_all(records.directory()).unwrap();
        let process = records.start("swaybg", None, |_| sleeper()).unwrap();
        assert_eq!(old.path, process.path);
        old.end(Duration::from_secs(5));
        assert_eq!(
            records.all_running().len(),
            1,
            "the record of the new process stays"
        );
        assert!(process.log_path().exists());
        process.end(Duration::from_secs(5));
    }

    #[test]
    fn next_daemon_adopts_running_processes() {
        let (_dir, records) = records();
        let process = records
            .start("swaybg", Some("DP-1"), |_| sleeper())
            .unwrap();
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
        assert_eq!(
            records.left(),
            [("swaybg".to_owned(), Some("DP-1".to_owned()))]
        );
        again.end(Duration::from_secs(5));
        assert!(!identity.is_running());
        assert_eq!(fs::read_dir(records.directory()).unwrap().count(), 0);
    }

    #[test]
    fn backend_has_its_own_session_and_log() {
        let (_dir, records) = records();
        let process = records.start("swaybg", None, |_| sleeper()).unwrap();
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
    fn process_with_a_reused_pid_is_not_adopted() {
        let (_dir, records) = records();
        let process = records.start("swaybg", None, |_| sleeper()).unwrap();
        let text = fs::read_to_string(&process.path).unwrap();
        let start = process.child().identity().start_time.to_string();
        fs::write(&process.path, text.replace(&start, "1")).unwrap();
        assert!(records.running("swaybg", None).is_empty());
        assert!(process.child().is_running(), "and is left alone");
        process.end(Duration::from_secs(5));
    }

    #[test]
    fn files_of_an_earlier_process_with_the_same_number_are_removed() {
        let (_dir, records) = records();
        let stale = ["log", "sock", "paused"];
        for extension in stale {
            fs::write(
                records.directory().join(format!("swaybg-1.{extension}")),
                "stale",
            )
            .unwrap();
        }
        let other = records.directory().join("swaybg-10.sock");
        fs::write(&other, "").unwrap();
        let process = records.start("swaybg", None, |_| sleeper()).unwrap();
        assert!(
            stale
                .iter()
                .all(|it| fs::read(process.beside(it)).unwrap_or_default() != b"stale")
        );
        assert!(!process.beside("sock").exists() && !process.beside("paused").exists());
        assert!(other.exists());
        process.end(Duration::from_secs(5));
    }

    #[test]
    fn failed_start_leaves_no_record() {
        let (_dir, records) = records();
        assert!(
            records
                .start("swaybg", None, |_| Launch::new("/nowhere/swaybg"))
                .is_err()
        );
        assert_eq!(fs::read_dir(records.directory()).unwrap().count(), 0);
    }

    #[test]
    fn process_that_ignores_sigterm_is_killed() {
        let (_dir, records) = records();
        let deaf = Launch::new("/bin/sh").args(["-c", "trap '' TERM; echo deaf; sleep 1000; :"]);
        let process = records.start("mpvpaper", None, |_| deaf).unwrap();
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
