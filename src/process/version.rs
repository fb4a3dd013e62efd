//! Finds the versions of programs: each program is asked until it has answered once, and again after it
//! was replaced.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{Error, Launch, run};
use crate::sys::{Cancel, lock};

/// Flags that make a program print its version and exit. The first versions of hyprpaper
/// 0.8 print their version only in their help.
pub(crate) const FLAGS: [&str; 2] = ["--version", "--help"];

/// A program as it is on disk now, by path, inode and time: another file under the same name differs.
type Stamp = (PathBuf, u64, i64);

/// The known versions, shared by all clones.
#[derive(Clone, Debug, Default)]
pub struct Versions(Arc<Mutex<HashMap<Stamp, Option<String>>>>);

impl Versions {
    /// The version that a program prints with one of these flags; `None` if it answers without one. Each
    /// flag may take as long as `patience`. A program that was late, or could not be asked, is asked
    /// again at the next call.
    pub(crate) fn of(
        &self,
        program: &Path,
        flags: &[&str],
        patience: Duration,
        cancel: Option<&Cancel>,
    ) -> Result<Option<String>, Error> {
        let metadata = program.metadata().map_err(|source| Error::Io {
            operation: "read the metadata of",
            path: program.to_owned(),
            source,
        })?;
        let stamp = (program.to_owned(), metadata.ino(), metadata.ctime());
        if let Some(known) = lock(&self.0).get(&stamp) {
            return Ok(known.clone());
        }
        // The lock is not held, as other threads may ask about other programs.
        let mut failed = None;
        let told = flags.iter().find_map(|flag| {
            let answer = ask(program, flag, patience, cancel);
            answer.unwrap_or_else(|error| {
                failed = Some(error);
                None
            })
        });
        if let (None, Some(error)) = (&told, failed) {
            return Err(error);
        }
        lock(&self.0).insert(stamp, told.clone());
        Ok(told)
    }
}

fn ask(
    program: &Path,
    flag: &str,
    patience: Duration,
    cancel: Option<&Cancel>,
) -> Result<Option<String>, Error> {
    let output = run(
        &Launch::new(program).args([flag]),
        patience,
        cancel.as_slice(),
    )?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    Ok(version_in(&stdout).or_else(|| version_in(&output.stderr)))
}

/// The first word of a text that is a version: `swaybg version 1.2.0`, `hyprpaper v0.8.1`.
pub(crate) fn version_in(text: &str) -> Option<String> {
    let version = |word: &str| {
        let word = word
            .trim_start_matches('v')
            .trim_end_matches([',', '.', ':', ';', ')']);
        let mut parts = word.split(['.', '-', '+']);
        let numbers = parts
            .by_ref()
            .take(2)
            .filter(|part| part.parse::<u32>().is_ok())
            .count();
        (numbers == 2).then(|| word.to_owned())
    };
    text.split_whitespace().find_map(version)
}

/// Major, minor and patch.
pub(crate) fn numbers(version: &str) -> (u32, u32, u32) {
    let mut parts = version
        .split(['.', '-', '+'])
        .map(|part| part.parse().unwrap_or(0));
    let mut next = || parts.next().unwrap_or(0);
    (next(), next(), next())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn version_is_found_in_a_text() {
        let check =
            |text, expected: Option<&str>| assert_eq!(version_in(text).as_deref(), expected);
        check("swaybg version 1.2.0\n", Some("1.2.0"));
        check(
            "feh version 3.9.1\nCompile-time switches: curl",
            Some("3.9.1"),
        );
        check("awww 0.11.2-master", Some("0.11.2-master"));
        check("hyprpaper v0.8.0, built from commit 1234", Some("0.8.0"));
        check("Usage: mpvpaper [options] <output>", None);
        check("", None);
        assert_eq!(numbers("0.11.2-master"), (0, 11, 2));
        assert_eq!(numbers("1.2"), (1, 2, 0));
    }

    const PATIENCE: Duration = Duration::from_secs(60);

    fn program(dir: &Path, script: &str) -> PathBuf {
        let program = dir.join("program");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        program
    }

    #[test]
    fn program_is_asked_once() {
        let versions = Versions::default();
        for (says, version) in [("process 1.2.3", Some("1.2.3")), ("a process", None)] {
            let dir = tempfile::tempdir().unwrap();
            let asked = dir.path().join("asked");
            let script = format!("echo x >> {}\necho {says}", asked.display());
            let program = program(dir.path(), &script);
            for _ in 0..3 {
                let told = versions
                    .clone()
                    .of(&program, &["--version"], PATIENCE, None)
                    .unwrap();
                assert_eq!(told.as_deref(), version);
            }
            assert_eq!(fs::read_to_string(asked).unwrap(), "x\n");
        }
        versions
            .of(Path::new("/nowhere"), &["--version"], PATIENCE, None)
            .unwrap_err();
    }

    #[test]
    fn program_that_was_late_is_asked_again() {
        let dir = tempfile::tempdir().unwrap();
        let slow = dir.path().join("slow");
        fs::write(&slow, "").unwrap();
        let script = format!(
            "[ $1 != --version ] || [ ! -e {} ] || exec sleep 1000\n\
             [ $1 != --version ] || echo process 1.2.3",
            slow.display()
        );
        let program = program(dir.path(), &script);
        let versions = Versions::default();
        let of = |patience| versions.of(&program, &["--version", "--help"], patience, None);
        // Without a version in the output, the program may only have been too slow.
        let error = of(Duration::from_millis(300)).unwrap_err();
        assert!(matches!(error, Error::Late { .. }), "{error}");
        fs::remove_file(slow).unwrap();
        assert_eq!(of(PATIENCE).unwrap().as_deref(), Some("1.2.3"));
    }
}
