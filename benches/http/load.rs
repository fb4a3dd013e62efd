//! Generates load on a Unix socket: each connection always has one request under way.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

/// The time before the measurement.
const WARM_UP: Duration = Duration::from_millis(200);
/// `{}` in a request is replaced by a scattered number from 1 to this; `{+n}` by such a number plus `n`.
const PAGES: u64 = 200;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) per_second: f64,
    /// All requests, including those of the warm-up.
    pub(crate) requests: f64,
    /// Processor time of the server for each request, in microseconds.
    pub(crate) processor: f64,
    /// Latencies in microseconds.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

struct Connection {
    socket: UnixStream,
    read: Vec<u8>,
    /// The size of the answer, once its head has come.
    expected: Option<usize>,
    asked: Instant,
    number: u64,
    served: u32,
}

pub(crate) fn run(path: &Path, request: &str, connections: usize, length: Duration) -> Figures {
    let poll = epoll::create(CreateFlags::CLOEXEC).unwrap();
    let mut all: Vec<Connection> = (0..connections)
        .map(|number| Connection::new(path, number as u64))
        .collect();
    for (at, connection) in all.iter_mut().enumerate() {
        let data = EventData::new_u64(at as u64);
        epoll::add(&poll, &connection.socket, data, EventFlags::IN).unwrap();
        connection.ask(request);
    }
    let began = Instant::now();
    let mut requests = 0.0;
    let mut latencies: Vec<u32> = Vec::with_capacity(1 << 20);
    let mut events = Vec::with_capacity(connections);
    let mut piece = vec![0; 256 << 10];
    while began.elapsed() < WARM_UP + length {
        events.clear();
        epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), None).unwrap();
        for &Event { data, .. } in &events {
            let at = data.u64() as usize;
            let connection = &mut all[at];
            let read = connection.socket.read(&mut piece).unwrap();
            assert!(read > 0, "the server hung up");
            if !connection.take(&piece[..read]) {
                continue;
            }
            requests += 1.0;
            if began.elapsed() > WARM_UP {
                latencies.push(connection.asked.elapsed().as_nanos() as u32);
            }
            // Servers close a connection after a thousand requests, so it is replaced before.
            if connection.served == 999 {
                *connection = Connection::new(path, connection.number);
                epoll::add(&poll, &connection.socket, data, EventFlags::IN).unwrap();
            }
            connection.ask(request);
        }
    }
    let seconds = (began.elapsed() - WARM_UP).as_secs_f64();
    latencies.sort_unstable();
    let at = |share: f64| {
        let place = (latencies.len() as f64 * share) as usize;
        f64::from(latencies[place.min(latencies.len() - 1)]) / 1000.0
    };
    let per_second = latencies.len() as f64 / seconds;
    Figures {
        per_second,
        requests,
        processor: 0.0,
        p50: at(0.5),
        p99: at(0.99),
    }
}

/// The body of the answer to a single request.
pub(crate) fn body(path: &Path, request: &str) -> Vec<u8> {
    let mut connection = Connection::new(path, 0);
    connection.socket.write_all(request.as_bytes()).unwrap();
    let mut piece = vec![0; 256 << 10];
    loop {
        let read = connection.socket.read(&mut piece).unwrap();
        assert!(read > 0, "the server hung up");
        connection.read.extend_from_slice(&piece[..read]);
        if let Some(head) = head_of(&connection.read)
            && connection.read.len() >= head + length_of(&connection.read[..head])
        {
            return connection.read.split_off(head);
        }
    }
}

impl Connection {
    fn new(path: &Path, number: u64) -> Self {
        let socket = UnixStream::connect(path).unwrap();
        let (read, asked) = (Vec::with_capacity(64 << 10), Instant::now());
        Self {
            socket,
            read,
            expected: None,
            asked,
            number,
            served: 0,
        }
    }

    fn ask(&mut self, request: &str) {
        self.asked = Instant::now();
        self.served += 1;
        if let Some((before, rest)) = request.split_once('{') {
            let (plus, after) = rest.split_once('}').unwrap();
            self.number = self
                .number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let page = (self.number >> 33) % PAGES + 1 + plus.parse().unwrap_or(0);
            let request = format!("{before}{page}{after}");
            self.socket.write_all(request.as_bytes()).unwrap();
        } else {
            self.socket.write_all(request.as_bytes()).unwrap();
        }
    }

    /// Adds a piece of the answer; returns whether it is complete.
    fn take(&mut self, piece: &[u8]) -> bool {
        // Only the head is parsed: the generator must cost less than the server.
        let before = self.read.len();
        self.read.extend_from_slice(piece);
        if self.expected.is_none()
            && let Some(head) = head_of(&self.read)
        {
            assert!(
                self.read.starts_with(b"HTTP/1.1 200"),
                "{}",
                String::from_utf8_lossy(&self.read)
            );
            self.expected = Some(head + length_of(&self.read[..head]));
        }
        let done = self.expected == Some(before + piece.len());
        if done {
            self.read.clear();
            self.expected = None;
        }
        done
    }
}

fn head_of(bytes: &[u8]) -> Option<usize> {
    bytes
        .windows(4)
        .position(|end| end == b"\r\n\r\n")
        .map(|at| at + 4)
}

fn length_of(head: &[u8]) -> usize {
    let text = std::str::from_utf8(head).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "));
    line.unwrap().trim().parse().unwrap()
}
