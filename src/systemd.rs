//! Supports systemd's readiness notification and socket activation without a library
//! (`sd_notify(3)`, `sd_listen_fds(3)`).

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};

use rustix::io::FdFlags;
use rustix::net::{AddressFamily, SocketType, sockopt};

use crate::paths::Env;

/// The first descriptor that the service manager passes.
const FIRST: i32 = 3;

/// Returns the listening socket that the service manager has passed, if any.
pub(crate) fn activated(env: &Env) -> io::Result<Option<UnixListener>> {
    let number = |name: &str| env.var(name)?.to_str()?.parse::<u32>().ok();
    if number("LISTEN_PID") != Some(std::process::id()) {
        return Ok(None);
    }
    match number("LISTEN_FDS") {
        Some(1) => {}
        None | Some(0) => return Ok(None),
        Some(more) => {
            let text = format!("the service manager passed {more} sockets instead of one");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
    }
    // SAFETY: LISTEN_PID is this process, so the descriptor is open and meant for it. It is taken
    // once at the start, before anything else could own it.
    let descriptor = unsafe { OwnedFd::from_raw_fd(FIRST) };
    rustix::io::fcntl_setfd(&descriptor, FdFlags::CLOEXEC)?;
    let is_stream = sockopt::socket_type(&descriptor)? == SocketType::STREAM;
    let is_local = sockopt::socket_domain(&descriptor)? == AddressFamily::UNIX;
    if !is_stream || !is_local || !sockopt::socket_acceptconn(&descriptor)? {
        let text = "the service manager passed no listening Unix socket: set ListenStream= of its socket unit to a path";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    Ok(Some(UnixListener::from(descriptor)))
}

/// Notifies the service manager, if it wants that.
#[derive(Debug)]
pub(crate) struct Notifier {
    to: Option<(UnixDatagram, SocketAddr)>,
}

impl Notifier {
    pub(crate) fn new(env: &Env) -> Self {
        let to = env.var("NOTIFY_SOCKET").and_then(|name| {
            let address = match name.as_bytes().strip_prefix(b"@") {
                Some(name) => SocketAddr::from_abstract_name(name),
                None => SocketAddr::from_pathname(&name),
            };
            Some((UnixDatagram::unbound().ok()?, address.ok()?))
        });
        Self { to }
    }

    pub(crate) fn ready(&self) {
        self.tell("READY=1");
    }

    pub(crate) fn stopping(&self) {
        self.tell("STOPPING=1");
    }

    fn tell(&self, state: &str) {
        if let Some((socket, address)) = &self.to
            && let Err(error) = socket.send_to_addr(state.as_bytes(), address)
        {
            log::warn!("cannot report {state} to the service manager: {error}");
        }
    }
}
