//! The Hyprland that runs, among those that have run.
//!
//! The environment of a user manager may be that of a session that is over: an instance counts while
//! its process lives, and the one that the environment names comes first.

use std::fs;
use std::path::{Path, PathBuf};

use super::SIGNATURE;
use crate::paths::Dirs;
use crate::process::Identity;
use crate::sys::connect;

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
        // Its process and the display that it serves, a line each.
        let lock = fs::read_to_string(self.directory.join("hyprland.lock")).ok();
        let pid = lock.and_then(|text| text.lines().next()?.trim().parse().ok());
        match pid {
            Some(pid) => Identity::of(pid).is_some(),
            None => connect(&self.directory.join(".socket.sock")).is_ok(),
        }
    }
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
    let entries = fs::read_dir(runtime).ok()?.flatten();
    let instance = |entry: fs::DirEntry| {
        let made = entry.metadata().and_then(|metadata| metadata.modified()).ok();
        Some((made, Instance::new(runtime, entry.file_name().to_str()?)))
    };
    let live = entries.filter_map(instance).filter(|(_, instance)| instance.is_live());
    live.max_by_key(|(made, _)| *made).map(|(_, instance)| instance)
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
        lock("live", std::process::id());
        assert_eq!(found().as_deref(), Some("live"));
        lock("stale", std::process::id());
        assert_eq!(found().as_deref(), Some("stale"), "it lives after all");
    }
}
