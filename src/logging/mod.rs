//! The log: JSON lines in a rotated file, plain text on a terminal.
//!
//! flexi_logger writes lines on the thread that logs; the many lines of requests are gathered and
//! written by the thread `log`. If the log file cannot be written, lines go to stderr.

mod file;
mod requests;
mod writer;

use std::fmt;
use std::io::IsTerminal;
use std::sync::Arc;

use flexi_logger::{Duplicate, ErrorChannel, LogSpecification, Logger, LoggerHandle};
use log::LevelFilter;

use file::RotatedFile;
use requests::Requests;
use writer::Writer;

pub(crate) use file::Settings;
use file::Stderr;
pub(crate) use requests::{RequestLine, request};

use crate::thread::{Spawner, Thread};

/// The running log; dropping it stops it.
pub(crate) struct Log {
    // Stops flexi_logger when it is dropped.
    _handle: LoggerHandle,
    file: Arc<RotatedFile>,
    requests: Arc<Requests>,
    // Joined after `Drop` has told it to stop.
    thread: Option<Thread>,
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
        let stderr = Stderr {
            level,
            is_terminal: std::io::stderr().is_terminal(),
        };
        let requests = Requests::new(Arc::clone(&file), stderr);
        let format = if stderr.is_terminal {
            writer::plain_line
        } else {
            writer::json_line
        };
        let handle = Logger::with(specification(settings.level))
            .log_to_writer(Box::new(Writer(Arc::clone(&file), Arc::clone(&requests))))
            .duplicate_to_stderr(if quiet {
                Duplicate::Warn
            } else {
                Duplicate::All
            })
            .format_for_stderr(format)
            // A closed stderr must not stop the daemon.
            .panic_if_error_channel_is_broken(false)
            .error_channel(ErrorChannel::DevNull)
            .start()?;
        if let Err(error) = opened {
            let path = settings.file.display();
            log::warn!("cannot write the log {path}: {error}; logging to stderr");
        }
        Ok(Self {
            _handle: handle,
            file,
            requests,
            thread: None,
        })
    }

    /// Starts logging requests as well.
    pub(crate) fn log_requests(&mut self, spawner: &Spawner) -> std::io::Result<()> {
        let requests = Arc::clone(&self.requests);
        self.thread = Some(spawner.spawn("log", move || requests.run())?);
        self.requests.publish();
        Ok(())
    }

    /// Reopens the file after another program has moved it.
    pub(crate) fn reopen(&self) {
        self.requests.flush();
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

impl Drop for Log {
    fn drop(&mut self) {
        self.requests.end();
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log")
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}
