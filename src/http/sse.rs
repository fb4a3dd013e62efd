//! Event streams: one thread (`sse-N`) for each client that listens.
//!
//! The thread owns the client's socket. It waits in `poll` for an event, for the client to go and
//! for the end of the server, with a time-out only for the next keepalive. While its client does
//! not read it takes no more events: the hub drops and counts them for this client alone.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::bell::Bell;
use super::limits::{Limits, Permit, Semaphore};
use crate::events::{Frame, Hub, Kinds, Subscription};
use crate::thread::{Spawner, Thread};

/// Events gathered into one write.
const PIECE: usize = 16 << 10;
/// For the last bytes of a stream when the server ends.
const FAREWELL: Duration = Duration::from_millis(200);

/// All event streams of a server.
pub(super) struct Streams {
    spawner: Spawner,
    keepalive: Duration,
    pause: Duration,
    seats: Arc<Semaphore>,
    end: Arc<Bell>,
    number: AtomicU64,
    /// `None` once the end has begun.
    threads: Mutex<Option<Vec<Thread>>>,
}

/// Leave to open one stream: a place among the streams, and one for its bell's descriptor.
#[derive(Debug)]
pub(super) struct Seat {
    _seat: Permit,
    _bell: Permit,
}

/// What a stream is opened with.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) seat: Seat,
    pub(super) hub: Hub,
    pub(super) kinds: Kinds,
    pub(super) chunked: bool,
}

struct Stream {
    socket: UnixStream,
    subscription: Subscription,
    rung: Arc<Bell>,
    end: Arc<Bell>,
    chunked: bool,
    pending: Vec<u8>,
    /// How much of `pending` the client took.
    sent: usize,
    progress: Instant,
    next_keepalive: Instant,
    keepalive: Duration,
    pause: Duration,
    _claims: (Permit, Seat),
}

enum Flow {
    Goes,
    Ended,
}

impl Streams {
    pub(super) fn new(spawner: &Spawner, limits: &Limits) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            spawner: spawner.clone(),
            keepalive: limits.keepalive,
            pause: limits.stream_pause,
            seats: Semaphore::new(limits.streams),
            end: Arc::new(Bell::new()?),
            number: AtomicU64::new(0),
            threads: Mutex::new(Some(Vec::new())),
        }))
    }

    pub(super) fn seat(&self, descriptors: &Arc<Semaphore>) -> Option<Seat> {
        Some(Seat { _seat: self.seats.claim()?, _bell: descriptors.claim()? })
    }

    /// Starts a stream whose head is in `pending`. Where that fails the socket is closed.
    pub(super) fn start(
        &self,
        opening: Opening,
        (socket, pending, claim): (UnixStream, Vec<u8>, Permit),
    ) -> io::Result<()> {
        let Opening { seat, hub, kinds, chunked } = opening;
        let rung = Arc::new(Bell::new()?);
        let ring = Arc::clone(&rung);
        let now = Instant::now();
        let stream = Stream {
            socket,
            subscription: hub.subscribe(kinds, move || ring.ring()),
            rung,
            end: Arc::clone(&self.end),
            chunked,
            pending,
            sent: 0,
            progress: now,
            next_keepalive: now + self.keepalive,
            keepalive: self.keepalive,
            pause: self.pause,
            _claims: (claim, seat),
        };
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(threads) = threads.as_mut() else { return Ok(()) };
        threads.retain(|thread| !thread.has_ended());
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        // The number is for the log; the kernel shows ten digits of it.
        let name = format!("sse-{}", number % 10_000_000_000);
        threads.push(self.spawner.spawn(&name, move || stream.run())?);
        Ok(())
    }

    /// Ends all streams; returns the names of the threads that were late.
    pub(super) fn end(&self, deadline: Instant) -> Vec<String> {
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.end.ring();
        let mut late = Vec::new();
        for thread in threads.unwrap_or_default() {
            let name = thread.name().to_owned();
            if !thread.join_by(deadline) {
                late.push(name);
            }
        }
        late
    }
}

impl Stream {
    fn run(mut self) {
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

    /// Takes events for the next write, if the last one is out.
    fn gather(&mut self) {
        if !self.pending.is_empty() {
            return;
        }
        let now = Instant::now();
        let mut text = String::new();
        // Silenced before looking: an event after the look rings again.
        self.rung.silence();
        while text.len() < PIECE
            && let Ok(frame) = self.subscription.receiver().try_recv()
        {
            write_event(&mut text, &frame);
        }
        if now >= self.next_keepalive {
            text.push_str(": keepalive\n\n");
            self.next_keepalive = now + self.keepalive;
        }
        if !text.is_empty() {
            self.progress = now;
            self.push(text.as_bytes());
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        if self.chunked {
            self.pending.extend_from_slice(format!("{:x}\r\n", bytes.len()).as_bytes());
            self.pending.extend_from_slice(bytes);
            self.pending.extend_from_slice(b"\r\n");
        } else {
            self.pending.extend_from_slice(bytes);
        }
    }

    fn flush(&mut self) -> Flow {
        use std::io::Write;
        while self.sent < self.pending.len() {
            match (&self.socket).write(&self.pending[self.sent..]) {
                Ok(sent) => {
                    self.sent += sent;
                    self.progress = Instant::now();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Flow::Goes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
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
        let due = if stuck { self.progress + self.pause } else { self.next_keepalive };
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(if stuck { Flow::Ended } else { Flow::Goes });
        }
        // Without flags a socket still reports that its other end is gone.
        let socket = if stuck { PollFlags::OUT } else { PollFlags::empty() };
        // What does not fit is lost in the hub: the bell says nothing while the client is stuck.
        let bell = if stuck { PollFlags::empty() } else { PollFlags::IN };
        let mut waited = [
            PollFd::new(&self.socket, socket),
            PollFd::from_borrowed_fd(self.rung.as_fd(), bell),
            PollFd::from_borrowed_fd(self.end.as_fd(), PollFlags::IN),
        ];
        match poll(&mut waited, Some(&timespec(left))) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let gone = waited[0].revents().intersects(PollFlags::HUP | PollFlags::ERR);
        let ending = waited[2].revents().contains(PollFlags::IN);
        if ending && !gone {
            self.farewell();
        }
        Ok(if gone || ending { Flow::Ended } else { Flow::Goes })
    }

    /// What was published before the end, and a clean end; a stuck client has lost both.
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
            let left = deadline.saturating_duration_since(Instant::now());
            let mut waited = [PollFd::new(&self.socket, PollFlags::OUT)];
            if left.is_zero() || poll(&mut waited, Some(&timespec(left))).is_err() {
                return;
            }
        }
    }
}

fn write_event(text: &mut String, frame: &Frame) {
    use std::fmt::Write;
    if frame.lost > 0 {
        writeln!(text, ": lost {}", frame.lost).expect("a String takes everything");
    }
    let (kind, json) = (frame.kind, &frame.json);
    write!(text, "event: {kind}\ndata: {json}\n\n").expect("a String takes everything");
}

fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::EventKind;

    #[test]
    fn an_event_says_what_was_lost_before_it() {
        let frame = |lost| Frame { kind: EventKind::ConfigChanged, json: "{}".into(), lost };
        let check = |lost, expected| {
            let mut text = String::new();
            write_event(&mut text, &frame(lost));
            assert_eq!(text, expected);
        };
        check(0, "event: config_changed\ndata: {}\n\n");
        check(3, ": lost 3\nevent: config_changed\ndata: {}\n\n");
    }
}
