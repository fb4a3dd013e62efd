//! The HTTP server of `murald gallery`: one page, and the requests of that page to the daemon.
//!
//! Any local user and any web page can reach 127.0.0.1. So each request needs the secret in its path and
//! the server's own `Host`, and only the requests of `ALLOWED` reach the daemon. Each connection has a
//! thread of its own and carries one request.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use crate::sys::connect;

const PAGE: &str = include_str!("../../contrib/gallery/gallery.html");
/// The requests that are passed on; `{}` is an ID.
const ALLOWED: &[&str] = &[
    "GET /events",
    "GET /images",
    "PATCH /images",
    "DELETE /images",
    "GET /images/tags",
    "GET /images/{}/thumbnail",
    "GET /images/{}/raw",
    "GET /folders",
    "GET /folders/{}/path",
    "GET /monitors",
    "GET /wallpaper/current",
    "POST /wallpaper/set",
    "POST /wallpaper/back",
    "GET /playlists",
    "POST /playlists",
    "PATCH /playlists/{}",
    "GET /playlists/active",
    "POST /playlists/active/next",
    "POST /playlists/{}/start",
    "POST /playlists/{}/stop",
    "POST /playlists/{}/pause",
    "POST /playlists/{}/resume",
    "POST /playlists/{}/next",
];
/// Headers of the page's requests that the daemon uses.
const PASSED_ON: &[&str] = &["content-type", "if-none-match", "range"];
/// Headers of every response.
const GUARD: &str = "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
    Cross-Origin-Resource-Policy: same-origin\r\n";
/// A file of the library that is opened as a document cannot run scripts.
const SANDBOX: &str = "Content-Security-Policy: default-src 'none'; sandbox\r\n";

const MOST_CONNECTIONS: usize = 64;
const MOST_HEAD: usize = 16 << 10;
const MOST_BODY: u64 = 8 << 20;
/// The time for a request to arrive, and for the browser to read a part of the response.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time after the last event stream in which the page can be loaded again.
const GRACE: Duration = Duration::from_secs(15);

/// The server, which runs until the command ends.
pub(super) struct Gallery {
    token: String,
    /// The values of `Host` that name this server.
    hosts: [String; 2],
    socket: PathBuf,
    /// True when an event stream begins, false when one ends.
    streams: Sender<bool>,
}

/// The head of a request, and the part of its body that came with it.
struct Request {
    method: String,
    target: String,
    /// The names are in lower case.
    headers: Vec<(String, String)>,
    early: Vec<u8>,
}

impl Gallery {
    /// Listens on a free port. Returns the address of the page, and the beginnings and ends of streams.
    pub(super) fn open(socket: PathBuf) -> io::Result<(String, Receiver<bool>)> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let hosts = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
        let (streams, changes) = bounded(MOST_CONNECTIONS);
        let token = random()?;
        let address = format!("http://{}/{token}/", hosts[0]);
        let gallery = Arc::new(Self {
            token,
            hosts,
            socket,
            streams,
        });
        spawn("gallery", move || gallery.listen(&listener))?;
        Ok((address, changes))
    }

    fn listen(self: &Arc<Self>, listener: &TcpListener) {
        for mut stream in listener.incoming().flatten() {
            let gallery = Arc::clone(self);
            // Each thread holds the gallery, so its references count the connections. One connection
            // more is closed, and so is one whose thread does not start.
            if Arc::strong_count(&gallery) <= MOST_CONNECTIONS + 1 {
                spawn("gallery-page", move || gallery.serve(&mut stream)).ok();
            }
        }
    }

    /// Answers the request of a connection. A failure to read or write ends only that connection.
    fn serve(&self, stream: &mut TcpStream) {
        let answered = stream.set_write_timeout(Some(PATIENCE)).and_then(|()| {
            let request = match read(stream) {
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    return refuse(stream, "400 Bad Request", "");
                }
                request => request?,
            };
            match self.path(&request) {
                Ok("/") if request.method == "GET" => send_page(stream),
                Ok(path) => self.pass_on(stream, &request, path),
                Err(status) => refuse(stream, status, ""),
            }
        });
        answered.ok();
    }

    /// The path behind the token; a status if the request is not the page's.
    fn path<'r>(&self, request: &'r Request) -> Result<&'r str, &'static str> {
        let host = request.only("host").unwrap_or_default();
        let is_own = |origin: &str| origin.strip_prefix("http://") == Some(host);
        let are_own = request.all("origin").all(is_own);
        if !are_own || !self.hosts.iter().any(|own| own == host) {
            return Err("403 Forbidden");
        }
        let path = request.target.strip_prefix('/');
        path.and_then(|path| path.strip_prefix(&*self.token))
            .filter(|path| path.starts_with('/'))
            .ok_or("404 Not Found")
    }

    /// Passes an allowed request on to the daemon, and the response back.
    fn pass_on(&self, browser: &mut TcpStream, request: &Request, path: &str) -> io::Result<()> {
        let route = path
            .strip_prefix("/api")
            .filter(|route| is_allowed(&request.method, route));
        let Some(route) = route else {
            return refuse(browser, "404 Not Found", "");
        };
        let is_stream = route.starts_with("/events");
        if is_stream {
            self.streams.send(true).ok();
        }
        let passed = self.exchange(browser, request, route, is_stream);
        if is_stream {
            self.streams.send(false).ok();
        }
        passed
    }

    fn exchange(
        &self,
        browser: &mut TcpStream,
        request: &Request,
        route: &str,
        is_stream: bool,
    ) -> io::Result<()> {
        let length = request.only("content-length");
        let length = length.and_then(|length| length.parse().ok()).unwrap_or(0);
        if length > MOST_BODY {
            return refuse(browser, "413 Content Too Large", "");
        }
        let Ok(mut daemon) = connect(&self.socket) else {
            let body = r#"{"error":"murald is not running","code":502}"#;
            return refuse(browser, "502 Bad Gateway", body);
        };
        daemon.set_nonblocking(false)?;
        daemon.write_all(request.for_daemon(route, length).as_bytes())?;
        let mut body = request.early.chain(browser.try_clone()?).take(length);
        io::copy(&mut body, &mut daemon)?;
        if is_stream {
            end_with(browser.try_clone()?, daemon.try_clone()?)?;
        }
        browser.write_all(&guarded_head(&mut daemon)?)?;
        io::copy(&mut daemon, browser).map(drop)
    }
}

impl Request {
    fn all<'r>(&'r self, name: &'r str) -> impl Iterator<Item = &'r str> {
        let named = self.headers.iter().filter(move |(one, _)| one == name);
        named.map(|(_, value)| value.as_str())
    }

    /// The value of a header that is there exactly once.
    fn only<'r>(&'r self, name: &'r str) -> Option<&'r str> {
        let mut values = self.all(name);
        values.next().filter(|_| values.next().is_none())
    }

    fn for_daemon(&self, route: &str, length: u64) -> String {
        let mut text = format!("{} {route} HTTP/1.1\r\nHost: localhost\r\n", self.method);
        for (name, value) in &self.headers {
            if PASSED_ON.contains(&&**name) {
                text.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        text.push_str(&format!(
            "Connection: close\r\nContent-Length: {length}\r\n\r\n"
        ));
        text
    }
}

/// Returns when the last event stream has ended and no other has begun since.
pub(super) fn wait_for_end(streams: &Receiver<bool>) {
    let (mut open, mut end) = (0_usize, None);
    loop {
        let change = match end {
            Some(end) => streams.recv_deadline(end),
            None => streams.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match change {
            Ok(true) => open += 1,
            Ok(false) => open -= 1,
            Err(_) => return,
        }
        end = (open == 0).then(|| Instant::now() + GRACE);
    }
}

pub(super) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(run)
        .map(drop)
}

/// 128 random bits in hexadecimal digits.
fn random() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

fn is_allowed(method: &str, route: &str) -> bool {
    let path = route.split('?').next().unwrap_or_default();
    let is_id = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let pattern: Vec<_> = path
        .split('/')
        .map(|part| if is_id(part) { "{}" } else { part })
        .collect();
    ALLOWED.contains(&&*format!("{method} {}", pattern.join("/")))
}

/// Reads the head of a request; a malformed or too large one is `InvalidData`.
fn read(stream: &mut TcpStream) -> io::Result<Request> {
    let deadline = Instant::now() + PATIENCE;
    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        let count = stream.read(&mut part)?;
        if count == 0 || left.is_zero() {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&part[..count]);
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut head = httparse::Request::new(&mut headers);
        match head.parse(&bytes) {
            Ok(httparse::Status::Complete(end)) => return Ok(request(&head, &bytes[end..])),
            Ok(httparse::Status::Partial) if bytes.len() < MOST_HEAD => {}
            _ => return Err(ErrorKind::InvalidData.into()),
        }
    }
}

fn request(head: &httparse::Request<'_, '_>, early: &[u8]) -> Request {
    let header = |header: &httparse::Header<'_>| {
        let value = String::from_utf8_lossy(header.value).into_owned();
        (header.name.to_ascii_lowercase(), value)
    };
    Request {
        method: head.method.unwrap_or_default().to_owned(),
        target: head.path.unwrap_or_default().to_owned(),
        headers: head.headers.iter().map(header).collect(),
        early: early.to_vec(),
    }
}

/// Reads the head of the daemon's response, and adds the headers that protect the page.
fn guarded_head(daemon: &mut UnixStream) -> io::Result<Vec<u8>> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    // Byte by byte, nothing of the body is read with it.
    while !head.ends_with(b"\r\n\r\n") {
        daemon.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    head.truncate(head.len() - 2);
    head.extend_from_slice(format!("{GUARD}{SANDBOX}\r\n").as_bytes());
    Ok(head)
}

/// Ends the stream from the daemon when the browser closes its side.
fn end_with(mut browser: TcpStream, daemon: UnixStream) -> io::Result<()> {
    browser.set_read_timeout(None)?;
    spawn("gallery-end", move || {
        while browser.read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
        daemon.shutdown(Shutdown::Both).ok();
    })
}

fn send_page(stream: &mut TcpStream) -> io::Result<()> {
    let nonce = random()?;
    let headers = format!(
        "Content-Type: text/html; charset=utf-8\r\nContent-Security-Policy: default-src 'none'; \
         script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src 'self' data:; \
         media-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'\r\n"
    );
    respond(stream, "200 OK", &headers, &PAGE.replace("NONCE", &nonce))
}

fn refuse(stream: &mut TcpStream, status: &str, body: &str) -> io::Result<()> {
    let headers = format!("Content-Type: application/json\r\n{SANDBOX}");
    respond(stream, status, &headers, body)
}

fn respond(stream: &mut TcpStream, status: &str, headers: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}{GUARD}Cache-Control: no-store\r\nConnection: close\r\n\
         Content-Length: {length}\r\n\r\n"
    );
    stream.write_all(format!("{head}{body}").as_bytes())
}
