//! Many or hostile clients: other clients must be answered during the attack and after it.

use std::io::{BufRead, BufReader, ErrorKind, Lines, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use murald::internals::events::EventBus;
use murald::internals::http::{Limits, Server};
use murald::internals::thread::Spawner;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

use super::support::{Client, ENDLESS, TestServer, is_well, odd_router};
use crate::wait::wait_until;

/// A server in its own process, so that its descriptors and memory can be limited and measured.
struct Apart {
    child: Child,
    socket: PathBuf,
    // Kept open, as the child's test harness prints to it.
    _said: Lines<BufReader<ChildStdout>>,
    _directory: tempfile::TempDir,
}

const SOCKET: &str = "MURALD_TEST_SOCKET";
const DESCRIPTORS: &str = "MURALD_TEST_DESCRIPTORS";
const IDLE: &str = "MURALD_TEST_IDLE";
/// The time limit of silent clients when there are many.
const SOON: Duration = Duration::from_millis(200);

/// Not a test by itself: the body of [`Apart`]'s process.
#[test]
fn serve_apart() {
    let Some(socket) = std::env::var_os(SOCKET) else {
        return;
    };
    if let Ok(number) = std::env::var(DESCRIPTORS) {
        let number = number.parse().ok();
        setrlimit(
            Resource::Nofile,
            Rlimit {
                current: number,
                maximum: number,
            },
        )
        .unwrap();
    }
    let listener = UnixListener::bind(&socket).unwrap();
    let (spawner, _deaths) = Spawner::new();
    let site = odd_router(&EventBus::new(), channel().0, Path::new(&socket));
    let mut limits = Limits::default();
    if std::env::var_os(IDLE).is_none() {
        limits.idle = SOON;
    }
    let _server = Server::start(listener, &spawner, site, limits).unwrap();
    println!("\nserving");
    // The process runs until it is killed.
    loop {
        std::thread::park();
    }
}

impl Apart {
    /// Silent clients are disconnected soon.
    fn new(descriptors: Option<u64>) -> Self {
        Self::with(|command| {
            command.envs(descriptors.map(|number| (DESCRIPTORS, number.to_string())));
        })
    }

    fn with(change: impl FnOnce(&mut Command)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("s");
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "hazards::serve_apart", "--nocapture"])
            .env(SOCKET, &socket);
        change(&mut command);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(
            said.by_ref()
                .map_while(Result::ok)
                .any(|line| line == "serving")
        );
        Self {
            child,
            socket,
            _said: said,
            _directory: directory,
        }
    }

    fn is_well(&self) {
        is_well(&self.socket, "/tiny");
    }

    /// Waits until a new client is served, for which silent ones may have to be closed first.
    fn serves(&self) {
        wait_until("a client is served", || {
            Client::to(&self.socket).is_served("/tiny")
        });
    }

    /// Number of threads that serve connections.
    fn threads(&self) -> usize {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let name = |task: PathBuf| std::fs::read_to_string(task.join("comm")).unwrap_or_default();
        // The test's executable may be named http-HASH.
        let number = |name: String| name.trim().strip_prefix("http-")?.parse::<u16>().ok();
        tasks
            .flatten()
            .filter_map(|task| number(name(task.path())))
            .count()
    }

    /// Voluntary context switches of the listener's thread.
    fn rests(&self) -> u64 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let status =
            |task: PathBuf| std::fs::read_to_string(task.join("status")).unwrap_or_default();
        let mut all = tasks.flatten().map(|task| status(task.path()));
        let listener = all
            .find(|status| status.starts_with("Name:\tlisten\n"))
            .unwrap();
        let field = "voluntary_ctxt_switches:";
        let line = listener
            .lines()
            .find_map(|line| line.strip_prefix(field))
            .unwrap();
        line.trim().parse().unwrap()
    }

    /// Resident memory in MiB, without the pages of the program's file, which the kernel may drop.
    fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"))
            .unwrap();
        line.trim()
            .split(' ')
            .next()
            .unwrap()
            .parse::<u64>()
            .unwrap()
            / 1024
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Connects without blocking: if the backlog is full, it tries again.
fn crowd(socket: &Path, number: usize) -> Vec<UnixStream> {
    let mut crowd = Vec::with_capacity(number);
    wait_until("the crowd connects", || {
        while crowd.len() < number {
            match UnixStream::connect(socket) {
                Ok(one) => crowd.push(one),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(error) => panic!("connection {}: {error}", crowd.len()),
            }
        }
        true
    });
    crowd
}

fn raise_descriptors() {
    let now = getrlimit(Resource::Nofile);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: now.maximum,
            maximum: now.maximum,
        },
    )
    .unwrap();
}

#[test]
fn ten_thousand_silent_connections_cost_little_memory() {
    raise_descriptors();
    let server = Apart::new(None);
    server.is_well();
    let before = server.memory();
    let most = getrlimit(Resource::Nofile)
        .current
        .unwrap_or(u64::MAX)
        .saturating_sub(500);
    let number = usize::try_from(most).unwrap().min(10_000);
    let silent = crowd(&server.socket, number);
    server.serves();
    let grown = server.memory().saturating_sub(before);
    println!("{number} silent connections: {before} MiB and {grown} more");
    assert!(grown < 20, "{number} silent connections took {grown} MiB");
    drop(silent);
    server.serves();
}

#[test]
fn server_survives_a_lack_of_descriptors() {
    let server = Apart::new(Some(20));
    for _ in 0..3 {
        drop(crowd(&server.socket, 40));
        server.serves();
    }
    // No descriptor becomes free: the listener must pause before it tries to accept the client again.
    let none = Rlimit {
        current: Some(3),
        maximum: Some(3),
    };
    let pid = Pid::from_raw(server.child.id().cast_signed());
    prlimit(pid, Resource::Nofile, none).unwrap();
    let (_waiting, before) = (crowd(&server.socket, 1), server.rests());
    wait_until("the listener pauses", || server.rests() > before + 5);
}

#[test]
fn thread_of_a_connection_ends_with_it() {
    // Many clients may need more than the time after which silent ones are disconnected.
    let server = Apart::with(|command| {
        command.env(IDLE, "default");
    });
    let mut clients: Vec<_> = (0..20).map(|_| Client::to(&server.socket)).collect();
    for client in &mut clients {
        assert_eq!(client.get("/tiny").text(), "tiny");
    }
    assert_eq!(server.threads(), 20);
    drop(clients);
    wait_until("the threads exit", || server.threads() == 0);
    server.is_well();
}

#[test]
fn connection_is_refused_if_no_thread_can_start() {
    let server = TestServer::with(Limits {
        stack: ENDLESS,
        ..Limits::default()
    });
    let mut client = server.connect();
    let refused = client.reply();
    assert_eq!(
        (refused.status, refused.header("Retry-After")),
        (503, Some("1"))
    );
    assert!(client.is_hung_up());
    server.end();
}

#[test]
fn connection_beyond_the_limit_is_refused_until_a_silent_one_times_out() {
    let limits = Limits {
        connections: 4,
        idle: SOON,
        ..Limits::default()
    };
    let server = TestServer::with(limits);
    let mut waiting = server.connect();
    waiting.say("GET /later HTTP/1.1\r\n\r\n");
    let giver = server.givers.recv().unwrap();
    let _others: Vec<_> = (0..3).map(|_| server.connect()).collect();
    let mut new = server.connect();
    let refused = new.get("/tiny");
    assert_eq!(
        (refused.status, refused.header("Retry-After")),
        (503, Some("1"))
    );
    assert!(new.is_hung_up());
    wait_until("a silent one is closed", || {
        server.connect().is_served("/tiny")
    });
    // A client that waits for its answer does not count as silent.
    drop(giver);
    assert_eq!(waiting.reply().status, 500);
    server.end();
}

#[test]
fn slow_connections_of_every_kind_time_out() {
    let slow = [
        "",
        "GET /tiny HTTP/1.1\r\n\r\n",
        "GET /ti",
        "POST /echo HTTP/1.1\r\nContent-Length: 100\r\n\r\nabc",
        "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
        "GET /large HTTP/1.1\r\n\r\n",
        "GET /large HTTP/1.1\r\n\r\nGET /large HTTP/1.1\r\n\r\n",
    ];
    for bytes in slow {
        let limits = Limits {
            connections: 4,
            idle: SOON,
            pause: SOON,
            write_pause: SOON,
            ..Limits::default()
        };
        let server = TestServer::with(limits);
        let mut crowd: Vec<_> = (0..40).map(|_| server.connect()).collect();
        for client in &mut crowd {
            client.say(bytes);
        }
        wait_until("a client is served", || server.connect().is_served("/tiny"));
        drop(crowd);
        server.end();
    }
}

#[test]
fn endless_head_is_refused() {
    let server = TestServer::new();
    let mut client = server.connect();
    client.say("GET /tiny HTTP/1.1\r\nX: ");
    let piece = vec![b'a'; 1 << 20];
    let mut sent = 0;
    while client.socket.write_all(&piece).is_ok() {
        sent += 1;
        assert!(sent < 100, "the server reads without end");
    }
    assert_eq!(client.reply().status, 431);
    server.is_well();
    server.end();
}

#[test]
fn pipelined_requests_are_not_buffered_if_nobody_reads_the_answers() {
    let server = TestServer::new();
    let client = server.connect();
    client.socket.set_nonblocking(true).unwrap();
    let many = b"GET /large HTTP/1.1\r\n\r\n".repeat(1000);
    let mut socket = &client.socket;
    wait_until(
        "the server stops reading",
        || matches!(socket.write(&many), Err(error) if error.kind() == ErrorKind::WouldBlock),
    );
    server.is_well();
    drop(client);
    server.is_well();
    server.end();
}

#[test]
fn simultaneous_clients_are_all_answered() {
    let server = TestServer::new();
    let mut clients: Vec<_> = (0..64).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.say("GET /tiny HTTP/1.1\r\n\r\n");
    }
    for client in &mut clients {
        assert_eq!(client.reply().text(), "tiny");
    }
    server.end();
}

#[test]
fn handler_panics_are_answered() {
    let server = TestServer::new();
    let mut client = server.connect();
    for _ in 0..20 {
        let reply = client.get("/panic");
        assert_eq!(
            (reply.status, reply.json()["error"].as_str()),
            (500, Some("internal error"))
        );
    }
    let secret = client.get("/fail");
    assert!(
        secret.status == 500 && !secret.text().contains("SELECT"),
        "{}",
        secret.text()
    );
    server.is_well();
    server.end();
}
