//! Runs a thread that follows a compositor's socket for another module.
//!
//! It searches for the socket, a few times at growing intervals, and then when the outputs change. A
//! connection that breaks is tried again in the same way, and then every 30 s until the outputs change.
//! A session without such a socket causes no wake-ups.

use std::io;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, TryRecvError, at, bounded, never, select};

use super::{Connection, Protocol, Topics};
use crate::compositor::Outputs;
use crate::paths::Env;
use crate::sys::{Cancel, CancelOnDrop};
use crate::thread::{self, OwnedThread, Spawner};

/// The first pause between tries; each one after is twice as long: 6 s in all.
const PAUSE: Duration = Duration::from_millis(100);
const TRIES: u32 = 6;
/// The pause between later tries, if there was a connection since the outputs changed.
const LATER: Duration = Duration::from_secs(30);
/// A connection that lasts longer than this resets the number of tries.
const GOOD: Duration = Duration::from_secs(5);

/// The socket to look for, and the events to follow.
pub(crate) struct Source {
    pub(crate) outputs: Outputs,
    pub(crate) env: Env,
    /// The protocol to look for; `None` for any.
    pub(crate) wanted: Option<Protocol>,
    pub(crate) topics: &'static Topics,
    /// Called if there is no session, or none with such a socket.
    pub(crate) none: Box<dyn Fn() + Send>,
}

/// Cancels the wait on a connection, and closes the channel of a thread without a connection.
type Stop = (CancelOnDrop, Sender<()>);

/// A thread that follows the compositor.
pub(crate) type Following = OwnedThread<Stop>;

/// A [`Following`] that settings turn on and off.
pub(crate) type Toggle<K> = thread::Toggle<K, Stop>;

/// Starts a thread. `follow` reads the next report of each connection, until that breaks or the wait is
/// cancelled.
pub(crate) fn start(
    spawner: &Spawner,
    name: &'static str,
    source: Source,
    mut follow: impl FnMut(&mut Connection, &Cancel) -> io::Result<()> + Send + 'static,
) -> io::Result<Following> {
    let cancel = Cancel::new()?;
    let (end, ended) = bounded(0);
    let theirs = cancel.clone();
    let mut follow = move |connection: &mut Connection| {
        let error = loop {
            if let Err(error) = follow(connection, &theirs) {
                break error;
            }
        };
        if !theirs.is_cancelled() {
            log::info!("lost the connection to the compositor: {error}");
        }
    };
    let thread = spawner.spawn(name, move || source.run(&ended, &mut follow))?;
    Ok(OwnedThread::new((CancelOnDrop(cancel), end), thread))
}

impl Source {
    /// Ends when the connection is cancelled and `end` is closed.
    fn run(&self, end: &Receiver<()>, follow: &mut dyn FnMut(&mut Connection)) {
        let outputs = self.outputs.subscribe();
        let mut tries = 0;
        let mut was_connected = false;
        loop {
            let began = Instant::now();
            if let Some(mut connection) = self.connect() {
                was_connected = true;
                follow(&mut connection);
                if began.elapsed() > GOOD {
                    tries = 0;
                }
            }
            let again = if tries < TRIES {
                at(Instant::now() + PAUSE * (1 << tries))
            } else if was_connected {
                at(Instant::now() + LATER)
            } else {
                never()
            };
            select! {
                recv(end) -> _ => return,
                recv(outputs) -> _ => (tries, was_connected) = (0, false),
                recv(again) -> _ => tries += 1,
            }
        }
    }

    fn connect(&self) -> Option<Connection> {
        // Before the first look at the outputs, it is not known whether there is a session.
        let is_known = matches!(
            self.outputs.looked().opened().try_recv(),
            Err(TryRecvError::Disconnected)
        );
        let open = |it| Connection::open(self.wanted, self.topics, (&it, &self.env));
        let connection = self.outputs.session().and_then(open);
        if connection.is_none() && is_known {
            (self.none)();
        }
        connection
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::compositor::Session;
    use crate::compositor::ipc::WORKSPACES;

    #[test]
    fn broken_connection_is_retried() {
        let dir = tempfile::tempdir().unwrap();
        let [wayland, i3] = ["wayland-0", "i3"].map(|name| dir.path().join(name));
        let _compositor = UnixListener::bind(&wayland).unwrap();
        let listener = UnixListener::bind(&i3).unwrap();
        // Answers each connection once with the visible workspace, and closes it.
        std::thread::spawn(move || {
            for (stream, name) in listener.incoming().zip(["first", "second"]) {
                let mut stream = stream.unwrap();
                let all = format!(r#"[{{"output":"A","name":"{name}","num":1,"visible":true}}]"#);
                // The subscription, and the requests for the version and the visible workspaces.
                stream.read_exact(&mut [0; 55]).unwrap();
                let head = [(all.len() as u32).to_ne_bytes(), 1_u32.to_ne_bytes()].concat();
                stream
                    .write_all(&[b"i3-ipc", &*head, all.as_bytes()].concat())
                    .unwrap();
            }
        });
        let (spawner, _deaths) = Spawner::new();
        let source = Source {
            outputs: Outputs::fixed(Session::Wayland { socket: wayland }, Vec::new()),
            env: Env::from([("SWAYSOCK", i3.to_str().unwrap())]),
            wanted: None,
            topics: &WORKSPACES,
            none: Box::new(|| ()),
        };
        let (tell, told) = bounded(8);
        let following = start(&spawner, "follow", source, move |connection, cancel| {
            let (_, visible) = connection.next(cancel)?;
            tell.send(visible[0].name.clone()).unwrap();
            Ok(())
        });
        let next = || told.recv_timeout(Duration::from_secs(60)).unwrap();
        assert_eq!([next(), next()], ["first", "second"]);
        assert!(
            following
                .unwrap()
                .end(Instant::now() + Duration::from_secs(60))
        );
    }
}
