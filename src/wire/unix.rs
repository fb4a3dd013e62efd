//! HTTP over a Unix socket: the transport under ureq, for the command and for a second daemon.
//!
//! Runs on the calling thread. Waits end with ureq's time limits, or when the `interrupt` becomes
//! readable. With neither (an event stream) they last as long as the server, except for the wait for a
//! place in its queue.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::net::sockopt::{Timeout as SocketTimeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport,
};
use ureq::{Agent, Error};

use crate::sys::poll_until;

/// Bytes of the buffer for each direction; no head is longer. Each page of it that is used costs a
/// command as much as ten system calls.
const BUFFER: usize = 16 << 10;
/// The time for a server with a full queue to accept a connection: one that is alive does so in
/// milliseconds.
const QUEUE: Duration = Duration::from_secs(5);

/// An agent that connects to the socket at `path`, for requests to `http://localhost/...`. A status
/// is an answer, not an error, and redirects are not followed.
pub(crate) fn agent(path: impl Into<PathBuf>, interrupt: Option<OwnedFd>) -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .proxy(None)
        .max_redirects(0)
        .timeout_connect(Some(QUEUE))
        .input_buffer_size(BUFFER)
        .output_buffer_size(BUFFER)
        .user_agent(concat!("murald/", env!("CARGO_PKG_VERSION")))
        .build();
    let interrupt = interrupt.map(Arc::new);
    Agent::with_parts(
        config,
        UnixConnector {
            path: path.into(),
            interrupt,
        },
        NoNames,
    )
}

/// A socket has a path and no address, but ureq demands one.
#[derive(Debug)]
struct NoNames;

impl Resolver for NoNames {
    fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let mut addresses = self.empty();
        addresses.push(SocketAddr::from(([127, 0, 0, 1], 0)));
        Ok(addresses)
    }
}

#[derive(Debug)]
struct UnixConnector {
    path: PathBuf,
    interrupt: Option<Arc<OwnedFd>>,
}

impl Connector for UnixConnector {
    type Out = UnixTransport;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        _: Option<()>,
    ) -> Result<Option<UnixTransport>, Error> {
        let stream = self
            .open(details.timeout)
            .map_err(|error| ended(error, details.timeout))?;
        let config = details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Ok(Some(UnixTransport {
            stream,
            interrupt: self.interrupt.clone(),
            buffers,
        }))
    }
}

impl UnixConnector {
    fn open(&self, timeout: NextTimeout) -> io::Result<UnixStream> {
        let socket = rustix::net::socket_with(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )?;
        // Limits the wait for a place in the server's queue; it ends with EAGAIN.
        set_socket_timeout(
            &socket,
            SocketTimeout::Send,
            timeout.not_zero().map(|after| *after),
        )?;
        rustix::net::connect(&socket, &SocketAddrUnix::new(&self.path)?)?;
        let stream = UnixStream::from(socket);
        stream.set_nonblocking(true)?;
        Ok(stream)
    }
}

struct UnixTransport {
    /// Nonblocking: all waits are in [`wait`].
    stream: UnixStream,
    interrupt: Option<Arc<OwnedFd>>,
    buffers: LazyBuffers,
}

impl fmt::Debug for UnixTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UnixTransport")
    }
}

impl Transport for UnixTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        let timeout = timeout.for_write();
        let until = deadline(timeout);
        let mut rest = &self.buffers.output()[..amount];
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait(
                        &self.stream,
                        self.interrupt.as_deref(),
                        PollFlags::OUT,
                        until,
                    )
                    .map_err(|error| ended(error, timeout))?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let timeout = timeout.for_read();
        let until = deadline(timeout);
        loop {
            match self.stream.read(self.buffers.input_append_buf()) {
                Ok(read) => {
                    self.buffers.input_appended(read);
                    return Ok(read > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait(
                        &self.stream,
                        self.interrupt.as_deref(),
                        PollFlags::IN,
                        until,
                    )
                    .map_err(|error| ended(error, timeout))?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn is_open(&mut self) -> bool {
        // Between two requests, a read either would block or finds the end.
        matches!(self.stream.read(&mut [0]), Err(e) if e.kind() == io::ErrorKind::WouldBlock)
    }
}

fn wait(
    stream: &UnixStream,
    interrupt: Option<&OwnedFd>,
    wanted: PollFlags,
    until: Option<Instant>,
) -> io::Result<()> {
    let mut fds = vec![PollFd::new(stream, wanted)];
    fds.extend(interrupt.map(|interrupt| PollFd::new(interrupt, PollFlags::IN)));
    if !poll_until(&mut fds, until)? {
        return Err(io::ErrorKind::TimedOut.into());
    }
    if fds.get(1).is_some_and(|fd| !fd.revents().is_empty()) {
        return Err(io::Error::new(
            io::ErrorKind::Interrupted,
            "no longer wanted",
        ));
    }
    Ok(())
}

fn deadline(timeout: NextTimeout) -> Option<Instant> {
    let after: Option<Duration> = timeout.not_zero().map(|after| *after);
    after.and_then(|after| Instant::now().checked_add(after))
}

fn ended(error: io::Error, timeout: NextTimeout) -> Error {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Error::Timeout(timeout.reason),
        _ => Error::Io(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::Spawner;
    use std::os::unix::net::UnixListener;
    use std::path::Path;

    /// Answers each connection with `answer` and closes it; for an empty answer it stays silent.
    fn server(dir: &Path, answers: Vec<&'static str>) -> (PathBuf, crate::thread::Thread) {
        let path = dir.join("test.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let (spawner, _deaths) = Spawner::new();
        let thread = spawner.spawn("server", move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).unwrap();
                    head.extend(byte);
                }
                if answer.is_empty() {
                    // Stays silent until the client gives up.
                    stream.read_to_end(&mut head).ok();
                } else {
                    stream.write_all(answer.as_bytes()).unwrap();
                }
            }
        });
        (path, thread.unwrap())
    }

    #[test]
    fn answer_with_any_status_is_returned() {
        let dir = tempfile::tempdir().unwrap();
        // The server announces that it closes the connection: an agent that kept it would race with
        // the end.
        let not_found =
            "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
        let until_close = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it";
        let (path, _server) = server(dir.path(), vec![not_found, until_close]);
        let agent = agent(path, None);
        for (status, body) in [(404, "{}"), (200, "all of it")] {
            let mut answer = agent.get("http://localhost/x").call().unwrap();
            assert_eq!(answer.status().as_u16(), status);
            assert_eq!(answer.body_mut().read_to_string().unwrap(), body);
        }
    }

    #[test]
    fn client_leaves_silent_server_at_deadline_or_cancel() {
        let dir = tempfile::tempdir().unwrap();
        let (path, _server) = server(dir.path(), vec!["", ""]);
        let limited = agent(&path, None)
            .get("http://localhost/")
            .config()
            .timeout_global(Some(Duration::from_millis(30)))
            .build()
            .call();
        assert!(matches!(limited, Err(Error::Timeout(_))), "{limited:?}");
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        rustix::io::write(&writer, b"!").unwrap();
        let interrupted = agent(&path, Some(reader)).get("http://localhost/").call();
        assert!(matches!(interrupted, Err(Error::Io(_))), "{interrupted:?}");
    }

    #[test]
    fn missing_socket_is_reported_as_not_found() {
        let dir = tempfile::tempdir().unwrap();
        let call = agent(dir.path().join("none.sock"), None)
            .get("http://localhost/")
            .call();
        assert!(matches!(call, Err(Error::Io(error)) if error.kind() == io::ErrorKind::NotFound));
    }
}
