//! The log: JSON lines in a rotated file, plain text on a terminal.
//!
//! Lines are written on the thread that logs. If the log file cannot be written, lines go to stderr.

mod file;
mod writer;

use crate::error_chain::plain;
use std::fmt;
use std::io::IsTerminal;
use std::sync::Arc;

use flexi_logger::{ErrorChannel, LogSpecification, Logger, LoggerHandle};
use log::LevelFilter;

use file::RotatedFile;
use writer::Writer;

pub(crate) use file::Settings;

/// The running log; dropping it stops it.
pub(crate) struct Log {
    // Stops flexi_logger when it is dropped.
    _handle: LoggerHandle,
    file: Arc<RotatedFile>,
}

impl Log {
    /// Starts logging, once per process. If the file cannot be opened, lines go to stderr, first a
    /// warning about that. With `quiet`, stderr gets warnings and errors only.
    pub(crate) fn start(
        settings: &Settings,
        quiet: bool,
    ) -> Result<Self, flexi_logger::FlexiLoggerError> {
        let file = Arc::new(RotatedFile::new(settings));
        let opened = file.reopen();
        let level = if quiet {
            LevelFilter::Warn
        } else {
            settings.level
        };
        let writer = Writer {
            file: Arc::clone(&file),
            level,
            is_terminal: std::io::stderr().is_terminal(),
        };
        let handle = Logger::with(specification(settings.level))
            .log_to_writer(Box::new(writer))
            .error_channel(ErrorChannel::DevNull)
            .start()?;
        if let Err(error) = opened {
            let path = settings.file.display();
            let error = plain(&error);
            log::warn!("cannot write the log {path}: {error}; logging to stderr");
        }
        Ok(Self {
            _handle: handle,
            file,
        })
    }

    /// Reopens the file after another program has moved it.
    pub(crate) fn reopen(&self) {
        if let Err(error) = self.file.reopen() {
            log::warn!("cannot reopen the log: {error}");
        }
    }
}

/// Logs murald's own lines from `level` on, and the warnings of libraries.
fn specification(level: LevelFilter) -> LogSpecification {
    LogSpecification::builder()
        .default(level.min(LevelFilter::Warn))
        .module("murald", level)
        .module("http", level)
        .build()
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log")
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}
