//! The log: JSON lines in a rotated file, plain text for people.
//!
//! Lines are written by the thread that logs, through flexi_logger; no thread of its own, no timer.
//! A log file that cannot be written never keeps the daemon from running: stderr has the lines.

mod file;
mod line;

use std::fmt;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;

use flexi_logger::{Duplicate, ErrorChannel, LogSpecification, Logger, LoggerHandle};
use log::LevelFilter;

use file::{RotatedFile, Writer};

/// What is logged where.
#[derive(Clone, Debug)]
pub struct Settings {
    pub level: LevelFilter,
    pub file: PathBuf,
    /// Bytes at which the file is rotated.
    pub max_size: u64,
    /// Rotated files that are kept.
    pub backups: u32,
}

/// The running log.
pub struct Log {
    handle: LoggerHandle,
    file: Arc<RotatedFile>,
}

impl Log {
    /// Starts logging, once for the process. Where the file cannot be opened, stderr has the lines
    /// and this one as the first.
    pub fn start(settings: &Settings) -> Result<Self, flexi_logger::FlexiLoggerError> {
        let file = Arc::new(RotatedFile::new(settings));
        let opened = file.reopen();
        let format = if std::io::stderr().is_terminal() { line::plain } else { line::json };
        let handle = Logger::with(specification(settings.level))
            .log_to_writer(Box::new(Writer(Arc::clone(&file))))
            .duplicate_to_stderr(Duplicate::All)
            .format_for_stderr(format)
            // A closed stderr is not worth dying for.
            .panic_if_error_channel_is_broken(false)
            .error_channel(ErrorChannel::DevNull)
            .start()?;
        if let Err(error) = opened {
            let path = settings.file.display();
            log::warn!("the log {path} cannot be written: {error}; stderr has it all");
        }
        Ok(Self { handle, file })
    }

    /// Closes the file and opens it anew, for whoever moved it away.
    pub fn reopen(&self) {
        if let Err(error) = self.file.reopen() {
            log::warn!("the log cannot be opened again: {error}");
        }
    }

    pub fn set_level(&self, level: LevelFilter) {
        self.handle.set_new_spec(specification(level));
    }
}

/// Our own lines from `level` on; of the packages that we use, only warnings.
fn specification(level: LevelFilter) -> LogSpecification {
    LogSpecification::builder()
        .default(level.min(LevelFilter::Warn))
        .module("murald", level)
        .module("http", level)
        .build()
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("file", &self.file).finish_non_exhaustive()
    }
}
