//! A disk that does not answer: a FUSE file system without a server, mounted over a directory.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Accesses to the directory block until this is dropped.
pub struct DeadDisk {
    at: PathBuf,
    holder: Child,
}

impl DeadDisk {
    /// Returns `None` if this user may not mount file systems.
    pub fn mount(at: &Path) -> Option<Self> {
        let script = "exec 3<>/dev/fuse && \
                      mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 dead \"$0\" && \
                      echo mounted && exec cat";
        let mut holder = Command::new("sh")
            .args(["-c", script])
            .arg(at)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        if line != "mounted\n" {
            holder.wait().unwrap();
            return None;
        }
        Some(Self {
            at: at.to_owned(),
            holder,
        })
    }

    /// Accesses fail from now on.
    pub fn fail(&mut self) {
        self.holder.kill().ok();
        self.holder.wait().ok();
    }
}

impl Drop for DeadDisk {
    fn drop(&mut self) {
        // First, so that whoever looks again finds the directory below. `-c`: without a look at it.
        Command::new("umount")
            .arg("-lc")
            .arg(&self.at)
            .output()
            .ok();
        // Blocked accesses end.
        self.fail();
    }
}

/// An empty file system, unmounted when this is dropped.
pub struct Mounted(PathBuf);

impl Mounted {
    /// Returns `None` if this user may not mount file systems.
    pub fn tmpfs(at: &Path) -> Option<Self> {
        let mut mount = Command::new("mount");
        let mount = mount.args(["-t", "tmpfs", "home"]).arg(at).output();
        mount.unwrap().status.success().then(|| Self(at.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        Command::new("umount").arg("-l").arg(&self.0).output().ok();
    }
}
