//! Reading past signals: what decodes a file takes a read that was interrupted for its end, and the
//! file for one that is broken. Runs in whoever reads; never waits itself.

use std::io::{self, Read, Seek, SeekFrom};

/// Reads once more where a signal came first.
pub(crate) struct Patient<R>(pub(crate) R);

impl<R: Read> Read for Patient<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

impl<R: Seek> Seek for Patient<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}
