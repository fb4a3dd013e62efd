//! flexi_logger's end of the log file. Runs on the thread that logs.

use std::io;
use std::sync::Arc;

use flexi_logger::DeferredNow;
use flexi_logger::writers::LogWriter;
use log::Record;

use super::file::RotatedFile;
use super::line;
use super::requests::Requests;

pub(super) struct Writer(pub(super) Arc<RotatedFile>, pub(super) Arc<Requests>);

impl LogWriter for Writer {
    fn write(&self, now: &mut DeferredNow, record: &Record<'_>) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(256);
        line::json(&mut bytes, now, record)?;
        bytes.push(b'\n');
        // What was gathered before it stands before it.
        self.1.flush();
        // A full disk loses lines, not the daemon.
        self.0.write(&bytes).ok();
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        self.1.flush();
        Ok(())
    }
}
