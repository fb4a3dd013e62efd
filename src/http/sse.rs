//! Event streams: one thread (`sse-N`) for each client that listens.
//!
//! The thread owns the client's socket, and its writes never block. It waits in `poll` for an
//! event, for the client to leave and for the end of the server. It wakes by itself for the next
//! keepalive, and to close the connection of a client that reads nothing for too long. While its
//! client does not read, the thread takes no events: the bus drops and counts them for this client
//! alone.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};

use super::connections::{Client, ClientThreads};
use super::error::Error;
use super::limits::Limits;
use crate::events::{EventBus, EventFilter, Message, Subscription};
use crate::sys::{Waker, poll_until};

/// Bytes of events that are gathered for one write.
const PIECE: usize = 16 << 10;
/// The time to send the last bytes of a stream when the server ends.
const FAREWELL: Duration = Duration::from_millis(200);

/// All event streams of a server.
pub(super) struct Streams {
    limits: Limits,
    threads: ClientThreads,
    end: Arc<Waker>,
}

struct Stream {
    client: Arc<Client>,
    subscription: Subscription,
    rung: Arc<Waker>,
    end: Arc<Waker>,
    chunked: bool,
    pending: Vec<u8>,
    /// The number of bytes of `pending` that were sent.
    sent: usize,
    progress: Instant,
    next_keepalive: Instant,
    limits: Limits,
}

enum Flow {
    Goes,
    Ended,
}

impl Streams {
    /// `end` wakes all streams and ends them.
    pub(super) fn new(end: Waker, limits: &Limits) -> Self {
        Self {
            limits: limits.clone(),
            threads: ClientThreads::new(
                "sse",
                "event streams",
                limits.streams,
                limits.stream_stack,
            ),
            end: Arc::new(end),
        }
    }

    /// Starts a stream, which begins with the head of the answer. On failure (503) the connection
    /// stays with the caller, which answers the error.
    pub(super) fn open(
        &self,
        client: Arc<Client>,
        head: Vec<u8>,
        (bus, filter): (&EventBus, EventFilter),
        chunked: bool,
    ) -> Result<(), Error> {
        let failed = |error: io::Error| Error::busy("no descriptor is available").cause(error);
        let rung = Arc::new(Waker::new().map_err(failed)?);
        let ring = Arc::clone(&rung);
        let now = Instant::now();
        let stream = Stream {
            client,
            subscription: bus.subscribe(filter, move || ring.wake()),
            rung,
            end: Arc::clone(&self.end),
            chunked,
            pending: head,
            sent: 0,
            progress: now,
            next_keepalive: now + self.limits.keepalive,
            limits: self.limits.clone(),
        };
        self.threads.start(move || stream.run())
    }

    /// Ends all streams; returns the names of the threads that were late.
    pub(super) fn end(&self, deadline: Instant) -> Vec<String> {
        self.end.wake();
        self.threads.end(deadline)
    }
}

impl Stream {
    fn run(mut self) {
        // A client that has read this line receives all events from now on.
        self.push(b": connected\n\n");
        loop {
            self.gather();
            match self.flush() {
                Flow::Goes
                    if self.pending.is_empty() && !self.subscription.receiver().is_empty() => {}
                Flow::Goes => match self.wait() {
                    Ok(Flow::Goes) => {}
                    Ok(Flow::Ended) | Err(_) => break,
                },
                Flow::Ended => break,
            }
        }
    }

    /// Takes events for the next write, once the last one is sent.
    fn gather(&mut self) {
        if !self.pending.is_empty() {
            return;
        }
        let now = Instant::now();
        let mut text = String::new();
        // Reset before looking: an event after the look wakes the thread again.
        self.rung.reset();
        while text.len() < PIECE
            && let Ok(message) = self.subscription.receiver().try_recv()
        {
            write_event(&mut text, &message);
        }
        if now >= self.next_keepalive {
            text.push_str(": keepalive\n\n");
            self.next_keepalive = now + self.limits.keepalive;
        }
        if !text.is_empty() {
            self.progress = now;
            self.push(text.as_bytes());
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        if self.chunked {
            self.pending
                .extend_from_slice(format!("{:x}\r\n", bytes.len()).as_bytes());
            self.pending.extend_from_slice(bytes);
            self.pending.extend_from_slice(b"\r\n");
        } else {
            self.pending.extend_from_slice(bytes);
        }
    }

    fn flush(&mut self) -> Flow {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        while self.sent < self.pending.len() {
            match send(&self.client.socket, &self.pending[self.sent..], flags) {
                Ok(sent) => {
                    self.sent += sent;
                    self.progress = Instant::now();
                }
                Err(Errno::AGAIN) => return Flow::Goes,
                Err(Errno::INTR) => {}
                Err(_) => return Flow::Ended,
            }
        }
        self.pending.clear();
        self.sent = 0;
        Flow::Goes
    }

    /// Waits for something to do.
    fn wait(&mut self) -> io::Result<Flow> {
        let stuck = !self.pending.is_empty();
        let due = if stuck {
            self.progress + self.limits.stream_pause
        } else {
            self.next_keepalive
        };
        if due <= Instant::now() {
            return Ok(if stuck { Flow::Ended } else { Flow::Goes });
        }
        // Without flags a socket still reports that its other end is gone.
        let socket = if stuck {
            PollFlags::OUT
        } else {
            PollFlags::empty()
        };
        // The bus drops events that do not fit, so the waker is ignored while the client is stuck.
        let events = if stuck {
            PollFlags::empty()
        } else {
            PollFlags::IN
        };
        let mut waited = [
            PollFd::new(&self.client.socket, socket),
            PollFd::from_borrowed_fd(self.rung.as_fd(), events),
            PollFd::from_borrowed_fd(self.end.as_fd(), PollFlags::IN),
        ];
        poll_until(&mut waited, Some(due))?;
        let gone = waited[0]
            .revents()
            .intersects(PollFlags::HUP | PollFlags::ERR);
        let ending = waited[2].revents().contains(PollFlags::IN);
        if ending && !gone {
            self.farewell();
        }
        Ok(if gone || ending {
            Flow::Ended
        } else {
            Flow::Goes
        })
    }

    /// Sends the events from before the end, and ends the stream properly. A client that does not
    /// read gets neither.
    fn farewell(&mut self) {
        let deadline = Instant::now() + FAREWELL;
        let mut closed = false;
        while let Flow::Goes = self.flush() {
            if self.pending.is_empty() {
                self.gather();
                if self.pending.is_empty() {
                    if closed || !self.chunked {
                        return;
                    }
                    closed = true;
                    self.pending.extend_from_slice(b"0\r\n\r\n");
                }
                continue;
            }
            let mut waited = [PollFd::new(&self.client.socket, PollFlags::OUT)];
            if !poll_until(&mut waited, Some(deadline)).unwrap_or(false) {
                return;
            }
        }
    }
}

fn write_event(text: &mut String, message: &Message) {
    use std::fmt::Write;
    if message.lost > 0 {
        writeln!(text, ": lost {}", message.lost).expect("a String takes everything");
    }
    let kind = message.kind;
    let json = &message.json;
    write!(text, "event: {kind}\ndata: {json}\n\n").expect("a String takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::EventKind;

    #[test]
    fn event_reports_how_many_were_lost_before_it() {
        let message = |lost| Message {
            kind: EventKind::ConfigChanged,
            domain: None,
            json: "{}".into(),
            lost,
        };
        let check = |lost, expected| {
            let mut text = String::new();
            write_event(&mut text, &message(lost));
            assert_eq!(text, expected);
        };
        check(0, "event: config_changed\ndata: {}\n\n");
        check(3, ": lost 3\nevent: config_changed\ndata: {}\n\n");
    }
}
