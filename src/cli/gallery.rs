//! The HTTP server of `murald gallery`: one page, and the requests of that page to the daemon.
//!
//! Any local user and any web page can reach 127.0.0.1. So each request needs the secret in its path and
//! the server's own `Host`, and only the requests of `ALLOWED` reach the daemon. Each connection has a
//! thread of its own and carries one request.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};

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
const MOST_HEAD: u64 = 16 << 10;
/// The time for a request to arrive, and for the browser to read a part of the response.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time after the last event stream in which the page can be loaded again.
const GRACE: Duration = Duration::from_secs(15);

/// The server, which runs until the command ends.
pub(super) struct Gallery {
    token: String,
    /// The value of `Host` that names this server.
    host: String,
    socket: PathBuf,
    /// True when an event stream begins, false when one ends.
    streams: Sender<bool>,
}

/// The connection of a browser, whose request has to arrive by the deadline.
struct Browser {
    stream: TcpStream,
    deadline: Instant,
}

impl Read for Browser {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.deadline.checked_duration_since(Instant::now()) {
            Some(left) if !left.is_zero() => self.stream.set_read_timeout(Some(left))?,
            _ => return Err(ErrorKind::TimedOut.into()),
        }
        self.stream.read(buffer)
    }
}

impl Gallery {
    /// Listens on a free port. Returns the address of the page, and the beginnings and ends of streams.
    pub(super) fn open(socket: PathBuf) -> io::Result<(String, Receiver<bool>)> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let host = format!("127.0.0.1:{port}");
        let (streams, changes) = bounded(MOST_CONNECTIONS);
        let token = random()?;
        let address = format!("http://{host}/{token}/");
        let gallery = Arc::new(Self {
            token,
            host,
            socket,
            streams,
        });
        spawn("gallery", move || gallery.listen(&listener))?;
        Ok((address, changes))
    }

    fn listen(self: &Arc<Self>, listener: &TcpListener) {
        for stream in listener.incoming().flatten() {
            let gallery = Arc::clone(self);
            // Each thread holds the gallery, so its references count the connections. One connection
            // more is closed, and so is one whose thread does not start.
            if Arc::strong_count(&gallery) <= MOST_CONNECTIONS + 1 {
                // A failure to read or write ends only this connection.
                spawn("gallery-page", move || drop(gallery.serve(stream))).ok();
            }
        }
    }

    /// Answers the request of a connection.
    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut browser = BufReader::new(Browser {
            stream: stream.try_clone()?,
            deadline: Instant::now() + PATIENCE,
        });
        let head = read_head(&mut browser)?;
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut request = httparse::Request::new(&mut headers);
        if !request
            .parse(&head)
            .is_ok_and(|parsed| parsed.is_complete())
        {
            return refuse(&mut stream, "400 Bad Request", "");
        }
        match self.path(&request) {
            Ok("/") if request.method == Some("GET") => send_page(&mut stream),
            Ok(path) => self.pass_on(browser, &mut stream, &request, path),
            Err(status) => refuse(&mut stream, status, ""),
        }
    }

    /// The path behind the token; a status if the request is not the page's.
    fn path<'r>(&self, request: &httparse::Request<'_, 'r>) -> Result<&'r str, &'static str> {
        let is_own = |origin: &str| origin.strip_prefix("http://") == Some(&*self.host);
        let are_own = values(request, "origin").all(is_own);
        if !are_own || only(request, "host") != Some(&*self.host) {
            return Err("403 Forbidden");
        }
        let path = request.path.and_then(|path| path.strip_prefix('/'));
        path.and_then(|path| path.strip_prefix(&*self.token))
            .filter(|path| path.starts_with('/'))
            .ok_or("404 Not Found")
    }

    /// Passes an allowed request on to the daemon, and the response back to the browser.
    fn pass_on(
        &self,
        body: impl Read,
        browser: &mut TcpStream,
        request: &httparse::Request<'_, '_>,
        path: &str,
    ) -> io::Result<()> {
        let method = request.method.unwrap_or_default();
        let route = path.strip_prefix("/api");
        let Some(route) = route.filter(|route| is_allowed(method, route)) else {
            return refuse(browser, "404 Not Found", "");
        };
        if !route.starts_with("/events") {
            return self.exchange(body, browser, request, route);
        }
        self.streams.send(true).ok();
        let passed = self.exchange(body, browser, request, route);
        self.streams.send(false).ok();
        passed
    }

    fn exchange(
        &self,
        body: impl Read,
        browser: &mut TcpStream,
        request: &httparse::Request<'_, '_>,
        route: &str,
    ) -> io::Result<()> {
        let length = only(request, "content-length");
        let length = length.and_then(|length| length.parse().ok()).unwrap_or(0);
        let Ok(mut daemon) = connect(&self.socket) else {
            let body = r#"{"error":"murald is not running","code":502}"#;
            return refuse(browser, "502 Bad Gateway", body);
        };
        daemon.set_nonblocking(false)?;
        daemon.write_all(head_for_daemon(request, route, length).as_bytes())?;
        // The daemon answers without reading the body if that is too large.
        io::copy(&mut body.take(length), &mut daemon).ok();
        if route.starts_with("/events") {
            end_with(browser.try_clone()?, daemon.try_clone()?)?;
        }
        let mut daemon = BufReader::new(daemon);
        let mut status = Vec::new();
        daemon.read_until(b'\n', &mut status)?;
        browser.write_all(&status)?;
        browser.write_all(format!("{GUARD}{SANDBOX}").as_bytes())?;
        io::copy(&mut daemon, browser).map(drop)
    }
}

/// The values of a header; a value that is not UTF-8 is empty.
fn values<'r>(
    request: &'r httparse::Request<'_, '_>,
    name: &'r str,
) -> impl Iterator<Item = &'r str> {
    let headers = request.headers.iter();
    headers
        .filter(move |header| header.name.eq_ignore_ascii_case(name))
        .map(|header| str::from_utf8(header.value).unwrap_or_default())
}

/// The value of a header that is there exactly once.
fn only<'r>(request: &'r httparse::Request<'_, '_>, name: &'r str) -> Option<&'r str> {
    let mut values = values(request, name);
    values.next().filter(|_| values.next().is_none())
}

fn head_for_daemon(request: &httparse::Request<'_, '_>, route: &str, length: u64) -> String {
    let method = request.method.unwrap_or_default();
    let mut text = format!("{method} {route} HTTP/1.1\r\nHost: localhost\r\n");
    for name in PASSED_ON {
        for value in values(request, name) {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    text + &format!("Connection: close\r\nContent-Length: {length}\r\n\r\n")
}

/// Reads a head up to its empty line; one that is too large, or ends early, is incomplete.
fn read_head(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut from = from.take(MOST_HEAD);
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && from.read_until(b'\n', &mut head)? > 0 {}
    Ok(head)
}

/// Returns when the last event stream has ended and no other has begun since.
pub(super) fn wait_for_end(streams: &Receiver<bool>) {
    let mut open = 0_usize;
    let mut change = streams.recv().ok();
    while let Some(is_begin) = change {
        if is_begin {
            open += 1;
        } else {
            open -= 1;
        }
        change = if open > 0 {
            streams.recv().ok()
        } else {
            streams.recv_timeout(GRACE).ok()
        };
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
