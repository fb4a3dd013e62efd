//! The drawing process's end of its socket: reads requests and sends a response for each.
//!
//! Nothing here blocks: the loop calls it when the kernel reports the socket as ready.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use super::message::{LINE_MAX, Outcome, Request, Response, line};

/// The daemon has one; another may be taking over.
const CLIENTS_MAX: usize = 16;

/// Names a connection for as long as the process lives.
pub(super) type ClientId = u64;

pub(super) struct Server {
    listener: UnixListener,
    clients: Vec<Client>,
    last: ClientId,
}

struct Client {
    id: ClientId,
    stream: UnixStream,
    /// A line that has not ended yet.
    heard: Vec<u8>,
}

impl Server {
    pub(super) fn bind(path: &Path) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, clients: Vec::new(), last: 0 })
    }

    /// All that may have something to say.
    pub(super) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let clients = self.clients.iter().map(|client| client.stream.as_fd());
        std::iter::once(self.listener.as_fd()).chain(clients).collect()
    }

    /// The requests that have come; this waits for none. A request whose client has hung up is
    /// dropped: the client was answered that its picture is not shown.
    pub(super) fn receive(&mut self) -> Vec<(ClientId, Request)> {
        while let Ok((stream, _)) = self.listener.accept() {
            if self.clients.len() < CLIENTS_MAX && stream.set_nonblocking(true).is_ok() {
                self.last += 1;
                self.clients.push(Client { id: self.last, stream, heard: Vec::new() });
            }
        }
        let mut requests = Vec::new();
        self.clients.retain_mut(|client| {
            if !client.read() {
                return false;
            }
            for line in client.lines() {
                match Request::read(&line) {
                    Some(request) => requests.push((client.id, request)),
                    None => client.say(Outcome::NotUnderstood),
                }
            }
            true
        });
        requests
    }

    /// Whether a client still waits for its response.
    pub(super) fn is_waiting(&self, client: ClientId) -> bool {
        self.clients.iter().any(|known| known.id == client)
    }

    /// Responds to the client, if it is still there.
    pub(super) fn respond(&mut self, to: ClientId, outcome: Outcome) {
        if let Some(client) = self.clients.iter_mut().find(|client| client.id == to) {
            client.say(outcome);
        }
    }
}

impl Client {
    /// Reads what has come; `false` when there will be no more, or more than may be.
    fn read(&mut self) -> bool {
        let mut buffer = [0; 16 << 10];
        while self.heard.len() <= LINE_MAX {
            match self.stream.read(&mut buffer) {
                Ok(0) => return false,
                Ok(count) => self.heard.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        false
    }

    fn lines(&mut self) -> Vec<Vec<u8>> {
        let end = self.heard.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let whole: Vec<u8> = self.heard.drain(..end).collect();
        let lines = whole.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        lines.map(<[u8]>::to_vec).collect()
    }

    /// A line is far shorter than what a socket takes at once; who does not read loses it.
    fn say(&mut self, outcome: Outcome) {
        self.stream.write_all(&line(&Response::new(outcome))).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};

    fn request() -> String {
        let request = br#"{"version":"VERSION","outputs":[],"transition":{"effect":"none",
            "duration":0,"easing":[0,0,1,1],"fps_max":60}}"#;
        let request = String::from_utf8_lossy(request).replace('\n', "");
        request.replace("VERSION", super::super::message::VERSION)
    }

    #[test]
    fn a_line_may_come_in_pieces_and_nonsense_is_told_so() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("draw.sock");
        let mut server = Server::bind(&path).unwrap();
        let mut client = crate::sys::connect(&path).unwrap();
        client.set_nonblocking(false).unwrap();
        let request = request();
        let (one, other) = request.split_at(30);
        client.write_all(one.as_bytes()).unwrap();
        assert!(server.receive().is_empty());
        client.write_all(format!("{other}\nnonsense\n").as_bytes()).unwrap();
        let requests = server.receive();
        assert_eq!(requests.len(), 1);
        server.respond(requests[0].0, Outcome::Shown(Vec::new()));
        let mut lines = BufReader::new(client).lines();
        let mut next =
            || Response::read(lines.next().unwrap().unwrap().as_bytes()).unwrap().outcome;
        assert_eq!(next(), Outcome::NotUnderstood);
        assert_eq!(next(), Outcome::Shown(Vec::new()));
        drop(lines);
        server.receive();
        assert_eq!(server.descriptors().len(), 1, "whoever has gone is forgotten");
    }

    #[test]
    fn a_request_whose_client_has_hung_up_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("draw.sock");
        let mut server = Server::bind(&path).unwrap();
        let ask = || {
            let mut client = crate::sys::connect(&path).unwrap();
            client.write_all(format!("{}\n", request()).as_bytes()).unwrap();
            client
        };
        let (gone, waits) = (ask(), ask());
        drop(gone);
        let requests = server.receive();
        assert_eq!(requests.len(), 1);
        let asker = requests[0].0;
        assert!(server.is_waiting(asker));
        drop(waits);
        server.receive();
        assert!(!server.is_waiting(asker));
    }
}
