//! What version a backend is: asked of the program once, and again after it was replaced.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::process::{Launch, run};

/// A program that only wants to print a line. Short, as somebody waits for the answer.
const LIMIT: Duration = Duration::from_millis(500);

/// Cloneable; all clones remember the same.
#[derive(Clone, Debug, Default)]
pub struct Versions(Arc<Mutex<HashMap<Stamp, Option<String>>>>);

/// A program as it is on disk now: another file under the same name has another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Stamp {
    path: PathBuf,
    inode: u64,
    changed: i64,
}

impl Versions {
    /// The version that a program tells with one of these flags. May take half a
    /// second for each when the program is a new one.
    pub fn of(&self, program: &Path, flags: &[&str]) -> Option<String> {
        let metadata = program.metadata().ok()?;
        let (inode, changed) = (metadata.ino(), metadata.ctime());
        let stamp = Stamp { path: program.to_owned(), inode, changed };
        if let Some(known) = self.lock().get(&stamp) {
            return known.clone();
        }
        // Not under the lock: others may ask about other programs meanwhile.
        let told = flags.iter().find_map(|flag| ask(program, flag));
        self.lock().insert(stamp, told.clone());
        told
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Stamp, Option<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ask(program: &Path, flag: &str) -> Option<String> {
    let output = run(&Launch::new(program).args([flag]), LIMIT, None).ok()?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    version_in(&stdout).or_else(|| version_in(&output.stderr))
}

/// The first word of a text that is a version: `swaybg version 1.2.0`, `hyprpaper v0.8.1`.
pub(super) fn version_in(text: &str) -> Option<String> {
    let version = |word: &str| {
        let word = word.trim_start_matches('v').trim_end_matches([',', '.', ':', ';', ')']);
        let mut parts = word.split(['.', '-', '+']);
        let numbers = parts.by_ref().take(2).filter(|part| part.parse::<u32>().is_ok()).count();
        (numbers == 2).then(|| word.to_owned())
    };
    text.split_whitespace().find_map(version)
}

/// Major, minor and patch.
pub(super) fn numbers(version: &str) -> (u32, u32, u32) {
    let mut parts = version.split(['.', '-', '+']).map(|part| part.parse().unwrap_or(0));
    let mut next = || parts.next().unwrap_or(0);
    (next(), next(), next())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn versions_in_texts() {
        let check =
            |text, expected: Option<&str>| assert_eq!(version_in(text).as_deref(), expected);
        check("swaybg version 1.2.0\n", Some("1.2.0"));
        check("feh version 3.9.1\nCompile-time switches: curl", Some("3.9.1"));
        check("awww 0.11.2-master", Some("0.11.2-master"));
        check("hyprpaper v0.8.0, built from commit 1234", Some("0.8.0"));
        check("Usage: mpvpaper [options] <output>", None);
        check("", None);
        assert_eq!(numbers("0.11.2-master"), (0, 11, 2));
        assert_eq!(numbers("1.2"), (1, 2, 0));
    }

    #[test]
    fn a_program_is_asked_once() {
        let dir = tempfile::tempdir().unwrap();
        let (program, asked) = (dir.path().join("process"), dir.path().join("asked"));
        let script = format!("#!/bin/sh\necho x >> {}\necho process 1.2.3\n", asked.display());
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let versions = Versions::default();
        for _ in 0..3 {
            assert_eq!(versions.clone().of(&program, &["--version"]).as_deref(), Some("1.2.3"));
        }
        assert_eq!(fs::read_to_string(asked).unwrap(), "x\n");
        assert_eq!(versions.of(Path::new("/nowhere"), &["--version"]), None);
    }
}
