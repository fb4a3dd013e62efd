//! Starts programs for the daemon and manages their processes; no other module of the daemon starts
//! programs. (The client starts the daemon, in `cli/start.rs`, and pickers.)
//!
//! A process gets its own session and process group and no terminal. Processes of backends
//! ([`ProcessRecords`]) write to a log, are recorded on disk and outlive the daemon. One-shots
//! ([`run`]) are killed when they exceed their time limit; so are the user's commands
//! ([`Scripts`]), but not the processes that these leave running.
//!
//! A process is identified by its PID and start time and signalled through a pidfd, so that other
//! processes are never hit. Runs on the calling thread, except for the [`LogLimit`], which has its
//! own.

mod backend_process;
mod child;
#[cfg(parsers)]
#[path = "../../tests/fuzz/src/parsers/process.rs"]
pub mod fuzz;
mod identity;
mod launch;
mod logs;
mod oneshot;
mod orders;
mod records;
mod sandbox;
mod scripts;
pub(crate) mod text;
pub(crate) mod version;

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) use backend_process::BackendProcess;
use child::reap_killed;
pub(crate) use child::{Child, Ended};
pub use identity::Identity;
pub use launch::Launch;
pub(crate) use launch::{helper_main, own_program, show_command};
pub(crate) use logs::LogLimit;
pub(crate) use oneshot::{Output, STDOUT_MAX, run, run_with_progress};
pub(crate) use orders::{ResourceLimits, keep_files_private};
pub use records::ProcessRecords;
pub(crate) use records::plain_name;
pub(crate) use sandbox::confine;
pub(crate) use scripts::{Groups, Scripts};
pub use version::Versions;

/// Returns the executable of this name on `PATH`.
pub fn which(program: &str) -> Option<PathBuf> {
    which_in(program, &std::env::var_os("PATH")?)
}

/// Returns the executable of this name in a list of directories like `PATH`. Skips relative
/// directories, whose meaning depends on where the daemon was started.
pub(crate) fn which_in(program: &str, path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(program))
        .find(|candidate| {
            candidate.is_file()
                && rustix::fs::access(candidate, rustix::fs::Access::EXEC_OK).is_ok()
        })
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program could not be executed.
    #[error("cannot start {}", program.display())]
    Start { program: PathBuf, source: io::Error },
    /// The program did not exit within its time limit and was killed.
    #[error("{command} did not exit within {} ms and was killed", limit.as_millis())]
    Late { command: String, limit: Duration },
    /// The program reported no progress for this long and was killed.
    #[error("{command} made no progress for {} s and was killed", limit.as_secs())]
    Silent { command: String, limit: Duration },
    /// The caller cancelled it, and the program was killed.
    #[error("cancelled")]
    Cancelled,
    /// An operation on a file or descriptor for the process failed.
    #[error("cannot {operation} {}", path.display())]
    Io {
        operation: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

impl Error {
    fn io(operation: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        Self::Io {
            operation,
            path: path.to_owned(),
            source: source.into(),
        }
    }
}

/// Returns the last `max` bytes of a program's output, as text for a message.
fn tail(bytes: &[u8], max: usize) -> String {
    let cut = bytes.len().saturating_sub(max);
    plain(&String::from_utf8_lossy(&bytes[cut..]))
        .trim()
        .to_owned()
}

/// Removes colours and other control characters of terminals; the text is for replies and logs.
pub(crate) fn plain(said: &str) -> String {
    let mut plain = String::with_capacity(said.len());
    let mut letters = said.chars();
    while let Some(letter) = letters.next() {
        match letter {
            // CSI: skip the parameters and the final letter. From other escape sequences, only the
            // control character is removed.
            '\x1b' if letters.as_str().starts_with('[') => {
                letters
                    .by_ref()
                    .skip(1)
                    .find(|end| matches!(end, '@'..='~'));
            }
            '\n' | '\t' => plain.push(letter),
            other if other.is_control() => {}
            other => plain.push(other),
        }
    }
    plain
}

/// Whether a word can be shown unquoted in a command line.
fn is_plain(word: &OsStr) -> bool {
    !word.is_empty()
        && word
            .as_bytes()
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || b"-_./,:=+@%".contains(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn program_output_is_reported_without_colors() {
        let said = "\x1b[1;31mERR \x1b[0mfrom toolkit ]:\r\n\tno screen\x1b]0;t\x07 \x1b[";
        assert_eq!(
            tail(said.as_bytes(), 1000),
            "ERR from toolkit ]:\n\tno screen]0;t"
        );
        // Truncated within an escape sequence.
        assert_eq!(
            tail(said.as_bytes(), said.len() - 3),
            ";31mERR from toolkit ]:\n\tno screen]0;t"
        );
    }

    #[test]
    fn which_finds_executable_files_in_absolute_directories() {
        let dir = tempfile::tempdir().unwrap();
        let (empty, full) = (dir.path().join("a"), dir.path().join("b"));
        fs::create_dir_all(empty.join("feh")).unwrap();
        fs::create_dir(&full).unwrap();
        fs::write(full.join("feh"), "").unwrap();
        let path = std::env::join_paths([Path::new("."), &empty, &full]).unwrap();
        assert_eq!(
            which_in("feh", &path),
            None,
            "a directory, and a file that cannot be executed"
        );
        fs::set_permissions(full.join("feh"), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(which_in("feh", &path), Some(full.join("feh")));
    }
}
