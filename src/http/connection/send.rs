//! Bytes to the client. Most answers fit into the socket at once; where one does not, the worker
//! waits for its client, as long as that goes on reading.

use std::fs::File;
use std::io::IoSlice;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, send, sendmsg};

use super::{Connection, Stop};

const AT_ONCE: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
/// Sent at a time; the seat then says anew how long the client has not read.
const PIECE: usize = 256 << 10;
/// The same, of a file.
const FILE_PIECE: u64 = 1 << 20;
/// How long one that was shut may not read the answer to its last request.
const PARTING: Duration = Duration::from_millis(100);
/// More is not kept for the next answers.
const KEPT: usize = 64 << 10;

impl Connection<'_> {
    /// Sends what was gathered.
    pub(super) fn flush(&mut self) -> Result<(), Stop> {
        if self.buffers.output.is_empty() {
            return Ok(());
        }
        let sent = self.send(&self.buffers.output);
        self.buffers.output.clear();
        if self.buffers.output.capacity() > KEPT {
            self.buffers.output = Vec::new();
        }
        sent
    }

    /// Sends what was gathered and this behind it: at once, where the socket takes both.
    pub(super) fn send_behind(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        let output = &self.buffers.output;
        let both = [IoSlice::new(output), IoSlice::new(bytes)];
        let (mut nothing, flags) = (SendAncillaryBuffer::default(), AT_ONCE);
        let sent = match sendmsg(self.seat.socket(), &both, &mut nothing, flags) {
            Ok(sent) => sent,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(_) => return Err(Stop::Quietly),
        };
        let of_output = sent.min(output.len());
        let done = self.send(&output[of_output..]);
        self.buffers.output.clear();
        done?;
        self.send(&bytes[sent - of_output..])
    }

    fn send(&self, bytes: &[u8]) -> Result<(), Stop> {
        if bytes.is_empty() {
            return Ok(());
        }
        let mut rest = match send(self.seat.socket(), bytes, AT_ONCE) {
            Ok(sent) => &bytes[sent..],
            Err(Errno::AGAIN | Errno::INTR) => bytes,
            Err(_) => return Err(Stop::Quietly),
        };
        if rest.is_empty() {
            return Ok(());
        }
        while !rest.is_empty() {
            self.waits_for_reader();
            let piece = &rest[..rest.len().min(PIECE)];
            match send(self.seat.socket(), piece, SendFlags::NOSIGNAL) {
                Ok(sent) => rest = &rest[sent..],
                Err(Errno::INTR) => {}
                // Among them the time-out, and a shutdown for somebody else.
                Err(_) => return Err(Stop::Quietly),
            }
        }
        self.back_to_work()
    }

    /// Sends a part of a file without copying it through our memory.
    pub(super) fn send_file(&self, file: &File, offset: u64, length: u64) -> Result<(), Stop> {
        let (mut at, end) = (offset, offset + length);
        while at < end {
            self.waits_for_reader();
            let piece = usize::try_from((end - at).min(FILE_PIECE)).unwrap_or(usize::MAX);
            match rustix::fs::sendfile(self.seat.socket(), file, Some(&mut at), piece) {
                // The file has shrunk, and the length that was announced cannot be kept.
                Ok(0) => return Err(Stop::Quietly),
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return Err(Stop::Quietly),
            }
        }
        self.back_to_work()
    }

    fn waits_for_reader(&self) {
        if !self.seat.writes(Instant::now()) {
            // It was shut as its request came, and its worker is promised to a newcomer. Where this
            // fails, that one waits longer.
            self.seat.socket().set_write_timeout(Some(PARTING)).ok();
        }
        self.shared.seats.tell();
    }

    fn back_to_work(&self) -> Result<(), Stop> {
        if self.seat.works() { Ok(()) } else { Err(Stop::Quietly) }
    }
}
