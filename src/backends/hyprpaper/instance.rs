//! Finds the running Hyprland instance, and handles the files that hyprpaper reads and locks.
//!
//! The environment of systemd's user manager may name a session that has ended. So an instance counts
//! only while its process runs, and the one in the environment comes first. Hyprpaper cannot be used
//! without an instance for the session. A configuration file that murald did not write is never
//! overwritten.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::backends::Error;
use crate::compositor::Session;
use crate::paths::{self, Dirs};
use crate::process::Identity;
use crate::sys::connect;

/// The variable that names the instance of this session.
pub(super) const SIGNATURE: &str = "HYPRLAND_INSTANCE_SIGNATURE";

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Instance {
    pub(super) signature: String,
    /// The directory of its sockets.
    directory: PathBuf,
}

impl Instance {
    fn new(runtime: &Path, signature: &str) -> Self {
        Self {
            directory: runtime.join(signature),
            signature: signature.to_owned(),
        }
    }

    /// The socket of this instance's hyprpaper.
    pub(super) fn socket(&self) -> PathBuf {
        self.directory.join(".hyprpaper.sock")
    }

    fn is_live(&self) -> bool {
        match self.lock_line(0).and_then(|pid| pid.parse().ok()) {
            Some(pid) => Identity::from_pid(pid).is_some(),
            None => connect(&self.directory.join(".socket.sock")).is_ok(),
        }
    }

    /// Whether the instance serves this display. Old versions do not name their display.
    fn serves(&self, socket: &Path) -> bool {
        self.lock_line(1)
            .is_none_or(|display| socket.file_name() == Some(OsStr::new(&display)))
    }

    /// A line of the lock file: line 0 is the PID, line 1 the display.
    fn lock_line(&self, number: usize) -> Option<String> {
        let text = fs::read_to_string(self.directory.join("hyprland.lock")).ok()?;
        Some(text.lines().nth(number)?.trim().to_owned())
    }
}

/// Whether a session belongs to a running Hyprland.
pub(in crate::backends) fn is_in(session: &Session, dirs: &Dirs) -> bool {
    let (Session::Wayland { socket }, Ok(runtime)) = (session, dirs.runtime()) else {
        return false;
    };
    living(&runtime.join("hypr")).any(|(_, instance)| instance.serves(socket))
}

/// The socket on which the Hyprland with this PID answers requests.
pub(in crate::backends) fn requests_socket(dirs: &Dirs, pid: i32) -> Option<PathBuf> {
    let runtime = dirs.runtime().ok()?.join("hypr");
    let pid = pid.to_string();
    let mut living = living(&runtime);
    let (_, instance) = living.find(|(_, one)| one.lock_line(0).as_ref() == Some(&pid))?;
    Some(instance.directory.join(".socket.sock"))
}

/// The instance that the environment names if it runs, otherwise the newest running one. If none runs,
/// the named one, which may be about to start.
pub(super) fn find(dirs: &Dirs) -> Option<Instance> {
    let runtime = dirs.runtime().ok()?.join("hypr");
    let name = dirs.env().var(SIGNATURE).filter(|name| !name.is_empty());
    let named = name
        .and_then(|name| name.into_string().ok())
        .map(|n| Instance::new(&runtime, &n));
    match named {
        Some(named) if named.is_live() => Some(named),
        named => newest(&runtime).or(named),
    }
}

fn newest(runtime: &Path) -> Option<Instance> {
    living(runtime)
        .max_by_key(|(made, _)| *made)
        .map(|(_, instance)| instance)
}

/// The running instances, with their start times.
fn living(runtime: &Path) -> impl Iterator<Item = (Option<SystemTime>, Instance)> {
    let entries = fs::read_dir(runtime).into_iter().flatten().flatten();
    let instance = |entry: fs::DirEntry| {
        let made = entry
            .metadata()
            .and_then(|metadata| metadata.modified())
            .ok();
        Some((made, Instance::new(runtime, entry.file_name().to_str()?)))
    };
    entries
        .filter_map(instance)
        .filter(|(_, instance)| instance.is_live())
}

/// The first line of every file that murald writes.
pub(super) const HEAD: &str = "# Written by murald, which overwrites it.";

/// Writes the configuration file, whole or not at all. Fails if there is one that murald did not write.
pub(super) fn write_config(path: &Path, text: &str) -> Result<(), Error> {
    let failed = |doing: &str, error: &io::Error| {
        Error::Unavailable(format!("cannot {doing} {}: {error}", path.display()))
    };
    match first_line(path) {
        Ok(Some(line)) if line != HEAD => {
            return Err(Error::Unavailable(format!(
                "{} was not written by murald: move it away, or set backend.hyprpaper.config_path",
                path.display()
            )));
        }
        Ok(_) => {}
        Err(error) => return Err(failed("read", &error)),
    }
    // If the user has made a symbolic link, its target is written.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    paths::replace(&target, text.as_bytes()).map_err(|error| failed("write", &error))
}

/// The first line of a file; `None` if there is no file.
fn first_line(path: &Path) -> io::Result<Option<String>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut line = Vec::new();
    BufReader::new(file)
        .take(4096)
        .read_until(b'\n', &mut line)?;
    Ok(Some(String::from_utf8_lossy(&line).trim_end().to_owned()))
}

const LOCK: &str = "hyprpaper.lock";

/// The removed lock file of one of our processes.
pub(super) struct Lock {
    path: PathBuf,
    number: i32,
}

impl Lock {
    /// Removes the lock file if it belongs to one of our processes, so that a new process can start
    /// before the old one ends. Hyprpaper never removes it.
    pub(super) fn take_from(runtime: &Path, is_ours: impl FnMut(&i32) -> bool) -> Option<Self> {
        let path = runtime.join(LOCK);
        let text = fs::read_to_string(&path).ok()?;
        let number = text.trim().parse().ok().filter(is_ours)?;
        // The new process reports a file that cannot be removed.
        fs::remove_file(&path).ok()?;
        Some(Self { path, number })
    }

    /// Restores the lock file of the old process, because the new one has not started.
    pub(super) fn put_back(self) {
        let Self { path, number } = self;
        if let Err(error) = fs::write(&path, number.to_string()) {
            log::warn!(
                "cannot restore hyprpaper's lock {}: {error}",
                path.display()
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::Env;

    #[test]
    fn running_instance_replaces_a_stale_signature() {
        let dir = tempfile::tempdir().unwrap();
        let runtime = dir.path().to_owned();
        let env = move |name: &str| match name {
            "HOME" | "XDG_RUNTIME_DIR" => Some(runtime.clone().into_os_string()),
            SIGNATURE => Some("stale".into()),
            _ => None,
        };
        let dirs = Dirs::new(Env::new(env)).unwrap();
        let found = || find(&dirs).map(|instance| instance.signature);
        let lock = |signature: &str, pid: u32| {
            let directory = dir.path().join("hypr").join(signature);
            fs::create_dir_all(&directory).unwrap();
            fs::write(
                directory.join("hyprland.lock"),
                format!("{pid}\nwayland-1\n"),
            )
            .unwrap();
        };
        assert_eq!(
            found().as_deref(),
            Some("stale"),
            "it may be about to come up"
        );
        lock("stale", 0);
        assert_eq!(found().as_deref(), Some("stale"), "there is no other");
        let is_in = |display: &str| {
            is_in(
                &Session::Wayland {
                    socket: Path::new("/run").join(display),
                },
                &dirs,
            )
        };
        assert!(!is_in("wayland-1"));
        lock("live", std::process::id());
        assert_eq!(found().as_deref(), Some("live"));
        assert!(
            is_in("wayland-1") && !is_in("wayland-2"),
            "another one's session"
        );
        lock("stale", std::process::id());
        assert_eq!(found().as_deref(), Some("stale"), "it lives after all");
    }

    #[test]
    fn only_files_of_murald_are_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hypr/x.conf");
        for text in ["a", "b"] {
            let text = format!("{HEAD}\n{text}\n");
            write_config(&path, &text).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        let theirs = dir.path().join("theirs.conf");
        fs::write(&theirs, "preload = /x\n").unwrap();
        let error = write_config(&theirs, HEAD).unwrap_err().to_string();
        assert!(error.contains("theirs.conf"), "{error}");
        assert_eq!(fs::read_to_string(&theirs).unwrap(), "preload = /x\n");
        fs::write(&theirs, "").unwrap();
        assert!(
            write_config(&theirs, HEAD).is_err(),
            "an empty one is not ours either"
        );
    }

    #[test]
    fn lock_of_another_process_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(LOCK);
        assert!(Lock::take_from(dir.path(), |_| true).is_none());
        for (text, stays) in [("42", false), ("43", true), ("", true), ("x42", true)] {
            fs::write(&path, text).unwrap();
            let taken = Lock::take_from(dir.path(), |number| *number == 42);
            assert_eq!((path.exists(), taken.is_some()), (stays, !stays), "{text}");
            taken.into_iter().for_each(Lock::put_back);
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }
}
