//! The Hyprland that runs, among those that have run.
//!
//! The environment of a user manager may be that of a session that is over: an instance counts while
//! its process lives, and the one that the environment names comes first. Where none serves the session
//! hyprpaper is of no use.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::compositor::Session;
use crate::paths::Dirs;
use crate::process::Identity;
use crate::sys::connect;

/// The variable that names the instance of this session.
pub(super) const SIGNATURE: &str = "HYPRLAND_INSTANCE_SIGNATURE";

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Instance {
    pub(super) signature: String,
    /// Of its sockets.
    directory: PathBuf,
}

impl Instance {
    fn new(runtime: &Path, signature: &str) -> Self {
        Self { directory: runtime.join(signature), signature: signature.to_owned() }
    }

    /// Where its hyprpaper listens.
    pub(super) fn socket(&self) -> PathBuf {
        self.directory.join(".hyprpaper.sock")
    }

    fn is_live(&self) -> bool {
        match self.lock_line(0).and_then(|pid| pid.parse().ok()) {
            Some(pid) => Identity::of(pid).is_some(),
            None => connect(&self.directory.join(".socket.sock")).is_ok(),
        }
    }

    /// Old ones do not say which display is theirs.
    fn serves(&self, socket: &Path) -> bool {
        self.lock_line(1).is_none_or(|display| socket.file_name() == Some(OsStr::new(&display)))
    }

    /// Its process and the display that it serves, a line each.
    fn lock_line(&self, number: usize) -> Option<String> {
        let text = fs::read_to_string(self.directory.join("hyprland.lock")).ok()?;
        Some(text.lines().nth(number)?.trim().to_owned())
    }
}

/// Whether a session is that of a Hyprland which lives.
pub(in crate::backends) fn is_in(session: &Session, dirs: &Dirs) -> bool {
    let (Session::Wayland { socket }, Ok(runtime)) = (session, dirs.runtime()) else {
        return false;
    };
    living(&runtime.join("hypr")).any(|(_, instance)| instance.serves(socket))
}

/// The one that the environment names while it lives, else the one that was started last. Where none
/// lives it is the named one: it may be about to come up.
pub(super) fn find(dirs: &Dirs) -> Option<Instance> {
    let runtime = dirs.runtime().ok()?.join("hypr");
    let name = dirs.env().var(SIGNATURE).filter(|name| !name.is_empty());
    let named = name.and_then(|name| name.into_string().ok()).map(|n| Instance::new(&runtime, &n));
    match named {
        Some(named) if named.is_live() => Some(named),
        named => newest(&runtime).or(named),
    }
}

fn newest(runtime: &Path) -> Option<Instance> {
    living(runtime).max_by_key(|(made, _)| *made).map(|(_, instance)| instance)
}

/// Those that live, with when they were started.
fn living(runtime: &Path) -> impl Iterator<Item = (Option<SystemTime>, Instance)> {
    let entries = fs::read_dir(runtime).into_iter().flatten().flatten();
    let instance = |entry: fs::DirEntry| {
        let made = entry.metadata().and_then(|metadata| metadata.modified()).ok();
        Some((made, Instance::new(runtime, entry.file_name().to_str()?)))
    };
    entries.filter_map(instance).filter(|(_, instance)| instance.is_live())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::Env;

    #[test]
    fn stale_signature_gives_way_to_the_instance_that_lives() {
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
            fs::write(directory.join("hyprland.lock"), format!("{pid}\nwayland-1\n")).unwrap();
        };
        assert_eq!(found().as_deref(), Some("stale"), "it may be about to come up");
        lock("stale", 0);
        assert_eq!(found().as_deref(), Some("stale"), "there is no other");
        let is_in = |display: &str| {
            is_in(&Session::Wayland { socket: Path::new("/run").join(display) }, &dirs)
        };
        assert!(!is_in("wayland-1"));
        lock("live", std::process::id());
        assert_eq!(found().as_deref(), Some("live"));
        assert!(is_in("wayland-1") && !is_in("wayland-2"), "another one's session");
        lock("stale", std::process::id());
        assert_eq!(found().as_deref(), Some("stale"), "it lives after all");
    }
}
