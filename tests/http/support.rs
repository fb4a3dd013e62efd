//! A server on a socket in a temporary directory, with routes that misbehave on request, and a client
//! that sends exactly the bytes it is given.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use murald::internals::events::{EventBus, EventFilter};
use murald::internals::http::{
    Error, Limits, Reply as Answer, Request, Response, Route, Router, Server,
};
use murald::internals::thread::{Deaths, Spawner};
use tiny_http::Method::{self, Get, Post};

/// Shorter than any time limit for silent clients: an answer within this has not waited for one.
pub(crate) const PROMPT: Duration = Duration::from_secs(8);
/// The longest time to wait for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const LARGE: usize = 8 << 20;

/// A stack larger than the address space.
pub(crate) const ENDLESS: usize = if usize::BITS == 64 {
    (1_u64 << 47) as usize
} else {
    3 << 30
};

pub(crate) struct TestServer {
    pub(crate) bus: EventBus,
    /// The pending requests to `/later`.
    pub(crate) givers: Receiver<Giver>,
    pub(crate) server: Option<Server>,
    pub(crate) deaths: Deaths,
    pub(crate) directory: tempfile::TempDir,
    pub(crate) socket: PathBuf,
}

/// Answers a request to `/later`.
pub(crate) type Giver = Answer<Response, Error>;

/// The state of the misbehaving routes.
pub(crate) struct Odd {
    bus: EventBus,
    givers: Mutex<Sender<Giver>>,
    directory: PathBuf,
}

const fn route(
    method: Method,
    pattern: &'static str,
    handler: murald::internals::http::Handler<Odd>,
) -> Route<Odd> {
    Route {
        method,
        pattern,
        handler,
        bare: false,
    }
}

static ODD: [Route<Odd>; 11] = [
    route(Get, "/tiny", |_, _| {
        Ok(Response::bytes(200, "text/plain", b"tiny".as_slice()))
    }),
    route(Get, "/large", |_, _| {
        Ok(Response::bytes(200, "text/plain", vec![b'x'; LARGE]))
    }),
    route(Post, "/echo", |_, request| {
        Ok(Response::bytes(200, "text/plain", request.body().to_vec()))
    }),
    route(Get, "/echo/{name}", |_, request| {
        Ok(Response::bytes(
            200,
            "text/plain",
            request.placeholder().as_bytes().to_vec(),
        ))
    }),
    route(Get, "/panic", |_, _| panic!("on purpose")),
    route(Get, "/empty", |_, _| Ok(Response::empty(204))),
    route(Get, "/fail", |_, _| Err(Error::internal("SELECT secret"))),
    route(Get, "/later", later),
    // Opening the pipe blocks until there is a writer, also during a shutdown.
    route(Get, "/stuck", |odd, _| {
        Ok(Response::bytes(
            200,
            "text/plain",
            std::fs::read(odd.directory.join("pipe")).unwrap(),
        ))
    }),
    route(Get, "/file/{name}", |odd, request| {
        murald::internals::http::file(
            request,
            &odd.directory.join(request.placeholder()),
            "image/png",
        )
    }),
    route(Get, "/events", |odd, _| {
        Ok(Response::events(&odd.bus, EventFilter::ALL))
    }),
];

fn later(odd: &Odd, request: &Request<'_>) -> Result<Response, Error> {
    let patience = request
        .query()
        .value("ms", "milliseconds")?
        .unwrap_or(60_000);
    request.wait(Duration::from_millis(patience), |giver| {
        odd.givers.lock().unwrap().send(giver).unwrap()
    })
}

/// A router with the misbehaving routes.
pub(crate) fn odd_router(bus: &EventBus, give: Sender<Giver>, directory: &Path) -> Router<Odd> {
    let (givers, directory) = (Mutex::new(give), directory.to_owned());
    Router::new(
        Odd {
            bus: bus.clone(),
            givers,
            directory,
        },
        &ODD,
    )
}

impl TestServer {
    pub(crate) fn new() -> Self {
        Self::with(Limits::default())
    }

    pub(crate) fn with(limits: Limits) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("s");
        let listener = UnixListener::bind(&socket).unwrap();
        let (spawner, deaths) = Spawner::new();
        let (bus, (give, givers)) = (EventBus::new(), channel());
        let site = odd_router(&bus, give, directory.path());
        let server = Server::start(listener, &spawner, site, limits).unwrap();
        Self {
            bus,
            givers,
            server: Some(server),
            deaths,
            directory,
            socket,
        }
    }

    pub(crate) fn connect(&self) -> Client {
        Client::to(&self.socket)
    }

    /// Checks that a new client gets its answer in time, and that no thread has died.
    pub(crate) fn is_well(&self) {
        is_well(&self.socket, "/tiny");
        assert!(self.deaths.is_empty(), "{:?} died", self.deaths.try_recv());
    }

    /// Stops the server; no thread may be late.
    pub(crate) fn end(mut self) {
        let late = self.server.take().unwrap().end(Instant::now() + PATIENCE);
        assert!(late.is_empty(), "{late:?} are late");
        assert!(self.deaths.is_empty(), "{:?} died", self.deaths.try_recv());
    }
}

pub(crate) fn is_well(socket: &Path, path: &str) {
    let began = Instant::now();
    let mut client = Client::to(socket);
    let reply = client.get(path);
    assert_eq!(reply.status, 200, "{reply:?}");
    let took = began.elapsed();
    assert!(took < PROMPT, "a healthy client waited for {took:?}");
}

pub(crate) struct Client {
    pub(crate) socket: UnixStream,
    read: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Client {
    pub(crate) fn to(path: &Path) -> Self {
        Self::try_to(path).expect("somebody listens")
    }

    pub(crate) fn try_to(path: &Path) -> Option<Self> {
        let socket = UnixStream::connect(path).ok()?;
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        Some(Self {
            socket,
            read: Vec::new(),
        })
    }

    /// Sends bytes; ignores that the server has closed the connection.
    pub(crate) fn say(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        match self.socket.write_all(bytes.as_ref()) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("nobody reads: {error}"),
            _ => self,
        }
    }

    pub(crate) fn get(&mut self, path: &str) -> Reply {
        self.say(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"))
            .reply()
    }

    /// Whether a request is served. A client that is too slow for its time limit gets no answer.
    pub(crate) fn is_served(&mut self, path: &str) -> bool {
        self.say(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
        self.reply_to(false)
            .is_some_and(|reply| reply.status == 200)
    }

    /// The next answer.
    pub(crate) fn reply(&mut self) -> Reply {
        self.reply_to(false).expect("an answer")
    }

    /// The next answer; `None` if the server hangs up instead. An answer to `HEAD` has no body.
    pub(crate) fn reply_to(&mut self, head: bool) -> Option<Reply> {
        let end = loop {
            match self.read.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                Some(at) => break at + 4,
                None if self.more() => {}
                None => return None,
            }
        };
        let text = String::from_utf8(self.read.drain(..end).collect()).unwrap();
        let status = text
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .unwrap();
        let mut reply = Reply {
            status,
            head: text,
            body: Vec::new(),
        };
        if head || matches!(status, 100 | 204 | 304) {
            return Some(reply);
        }
        if let Some(length) = reply.header("Content-Length") {
            let length: usize = length.parse().unwrap();
            while self.read.len() < length {
                assert!(self.more(), "the body was cut short at {}", self.read.len());
            }
            reply.body = self.read.drain(..length).collect();
        }
        Some(reply)
    }

    /// Reads more; `false` at the end.
    pub(crate) fn more(&mut self) -> bool {
        let mut piece = [0; 64 << 10];
        match self.socket.read(&mut piece) {
            Ok(0) => false,
            Ok(read) => {
                self.read.extend_from_slice(&piece[..read]);
                true
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("no answer in time"),
            Err(_) => false,
        }
    }

    /// Bytes that were read, but not yet used.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.read).into_owned()
    }

    pub(crate) fn read_until(&mut self, text: &str) -> String {
        while !self.text().contains(text) {
            assert!(
                self.more(),
                "the end came before {text:?}: {:?}",
                self.text()
            );
        }
        let end = self.text().find(text).unwrap() + text.len();
        String::from_utf8(self.read.drain(..end).collect()).unwrap()
    }

    /// Waits until the server hangs up; true if it sent nothing more.
    pub(crate) fn is_hung_up(&mut self) -> bool {
        while self.more() {}
        self.read.is_empty()
    }
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}
