//! Tests the daemon as service managers and shells see it: lock, socket, signals, log and exit
//! codes.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

use crate::desktop::wait_until;
use crate::support::{Ended, PATIENCE, TestDaemon};

/// Runs `murald start`, which must fail by itself.
fn failed_start(daemon: &TestDaemon) -> Output {
    let mut child = daemon
        .murald(&["start"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("it ends", || child.try_wait().unwrap().is_some());
    child.wait_with_output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the lines of the log as JSON.
fn log(daemon: &TestDaemon) -> Vec<Value> {
    daemon
        .log()
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect()
}

#[test]
fn daemon_replaces_one_that_was_just_killed() {
    let daemon = TestDaemon::new();
    let mut killed = start_after(&daemon, ":");
    for _ in 0..5 {
        killed.kill().unwrap();
        // The killed daemon is not reaped yet, so the next one has to wait for its end.
        let next = daemon
            .murald(&["start"])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_until("the next answers", || {
            let running = fs::read_to_string(daemon.socket().with_extension("lock")).unwrap();
            running.starts_with(&format!("{}\n", next.id()))
                && UnixStream::connect(daemon.socket()).is_ok()
        });
        killed.wait().unwrap();
        killed = next;
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
}

#[test]
fn second_daemon_is_refused() {
    let mut daemon = TestDaemon::started();
    let second = failed_start(&daemon);
    assert_eq!(second.status.code(), Some(75), "{}", stderr(&second));
    assert!(
        stderr(&second).contains("already running"),
        "{}",
        stderr(&second)
    );
    assert_eq!(
        daemon.client().get("/healthz").ok(),
        json!({ "status": "ok" })
    );
    // A daemon with another socket must not use the same library, either.
    let other = daemon.root().join("other.sock");
    let mut command = daemon.murald(&["start", "--socket", other.to_str().unwrap()]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(75), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("db/murald.lock") && !other.exists(),
        "{}",
        stderr(&output)
    );
    // And one with another database must not use the same images.
    let config = daemon.root().join("second.toml");
    let database = daemon.root().join("second");
    let toml = format!("[daemon]\ndatabase_dir = {database:?}\nsocket_path = {other:?}\n");
    fs::write(&config, toml).unwrap();
    let mut command = daemon.murald(&["start", "--config", config.to_str().unwrap()]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(75), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("daemon.images_dir") && !other.exists(),
        "{}",
        stderr(&output)
    );
    assert_eq!(daemon.stop(), Some(0));
    assert!(!daemon.socket().exists());
}

#[test]
fn live_socket_of_another_program_is_not_replaced() {
    let mut daemon = TestDaemon::new();
    let other = UnixListener::bind(daemon.socket()).unwrap();
    assert_eq!(failed_start(&daemon).status.code(), Some(75));
    drop(other);
    // Without its listener, the socket is stale.
    assert!(daemon.socket().exists());
    daemon.start();
    daemon.client().get("/healthz").ok();
}

#[test]
fn socket_is_private_whatever_the_umask() {
    let mut daemon = TestDaemon::new();
    let mut command = daemon.command("/bin/sh");
    let script = format!("umask 000; exec {} start", env!("CARGO_BIN_EXE_murald"));
    let mut child = command
        .args(["-c", &script])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the socket", || daemon.socket().exists());
    assert_eq!(fs::metadata(daemon.socket()).unwrap().mode() & 0o777, 0o600);
    daemon.client().get("/healthz").ok();
    child.kill().unwrap();
    child.wait().unwrap();
    daemon.start();
}

/// The window of Waypaper Engine starts its daemon so, and finds the socket in the configuration file.
#[test]
fn link_without_arguments_starts_the_daemon_at_the_socket_of_its_configuration() {
    let daemon = TestDaemon::new();
    let link = daemon.root().join("waypaper-daemon");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_murald"), &link).unwrap();
    let mut command = daemon.command(&link);
    let errors = fs::File::create(daemon.root().join("errors")).unwrap();
    let _ended = Ended(
        command
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn()
            .unwrap(),
    );
    wait_until("the socket", || daemon.socket().exists());
    assert_eq!(daemon.client().get("/healthz").ok()["status"], "ok");
    let text = fs::read_to_string(daemon.config_file()).unwrap();
    let line = format!("\nsocket_path = \"{}\"\n", daemon.socket().display());
    assert!(text.contains(&line), "{text}");
}

/// Runs as root, or with a sudo that needs no password; test machines have one of them.
#[test]
fn other_users_are_refused_on_an_open_socket() {
    let daemon = TestDaemon::started();
    let socket = daemon.socket();
    for (path, mode) in [
        (daemon.root(), 0o755),
        (socket.parent().unwrap(), 0o755),
        (&socket, 0o666),
    ] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let mut nobody = if rustix::process::geteuid().is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command
    } else {
        let mut command = Command::new("sudo");
        command.args(["-n", "-u", "#65534"]);
        command
    };
    let connect = format!("UNIX-CONNECT:{}", socket.display());
    let output = nobody
        .args(["socat", "-u", &connect, "STDOUT"])
        .output()
        .unwrap();
    let answer = String::from_utf8_lossy(&output.stdout);
    assert!(
        answer.starts_with("HTTP/1.1 403 "),
        "{answer}{}",
        stderr(&output)
    );
    assert!(answer.contains("another user's"), "{answer}");
    daemon.client().get("/healthz").ok();
}

#[test]
fn invalid_settings_exit_with_78_and_the_file_is_unchanged() {
    let check = |toml: &str, says: &[&str]| {
        let daemon = TestDaemon::new();
        daemon.configure(toml);
        let output = failed_start(&daemon);
        assert_eq!(output.status.code(), Some(78), "{}", stderr(&output));
        let path = daemon.config_file();
        for part in says.iter().chain([&path.to_str().unwrap()]) {
            assert!(
                stderr(&output).contains(part),
                "{} lacks {part}",
                stderr(&output)
            );
        }
        assert_eq!(fs::read_to_string(path).unwrap(), toml);
        assert!(
            !stderr(&output).to_lowercase().contains("usage"),
            "{}",
            stderr(&output)
        );
    };
    check("[app]\ntheme = \n", &["line 2"]);
    check(
        "[daemon]\n\nlog_max_backups = \"three\"\n",
        &["line 3", "log_max_backups"],
    );
    check(
        "[daemon]\nimages_dir = \"$MURALD_NO_SUCH_THING/x\"\n",
        &["MURALD_NO_SUCH_THING"],
    );
    check(
        "[daemon]\nimages_dir = \"pictures\"\n",
        &["daemon.images_dir", "not absolute"],
    );
    let long = format!("[daemon]\nsocket_path = \"/tmp/{}\"\n", "x".repeat(103));
    check(&long, &["daemon.socket_path", "107 bytes"]);
}

#[test]
fn daemon_stops_in_time_whatever_clients_are_connected() {
    let mut daemon = TestDaemon::started();
    let mut events = daemon.events("");
    let silent = UnixStream::connect(daemon.socket()).unwrap();
    let mut half = UnixStream::connect(daemon.socket()).unwrap();
    half.write_all(b"POST /images HTTP/1.1\r\nContent-Length: 100\r\n\r\n{")
        .unwrap();
    let mut idle = UnixStream::connect(daemon.socket()).unwrap();
    idle.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        .unwrap();
    idle.read_exact(&mut [0; 64]).unwrap();
    daemon.signal("-TERM");
    assert!(events.try_next().is_none(), "the stream ends cleanly");
    assert_eq!(daemon.wait().code(), Some(0));
    assert!(
        !daemon.log().contains("continuing without"),
        "{}",
        daemon.log()
    );
    assert!(!daemon.socket().exists());
    drop((silent, half, idle));
}

#[test]
fn client_can_stop_the_daemon() {
    let mut daemon = TestDaemon::started();
    let answer = daemon.client().post("/shutdown", &json!({})).ok();
    assert_eq!(answer, json!({ "status": "shutting_down" }));
    assert_eq!(daemon.wait().code(), Some(0));
}

#[test]
fn service_manager_is_notified_of_ready_and_stopping() {
    let daemon = TestDaemon::new();
    // An abstract socket name, as systemd uses in containers.
    let name = format!("murald-test-{}", std::process::id());
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
    let manager = UnixDatagram::bind_addr(&address).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut command = daemon.murald(&["start"]);
    command
        .env("NOTIFY_SOCKET", format!("@{name}"))
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let hear = || {
        let mut buffer = [0; 64];
        let length = manager.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    };
    assert_eq!(hear(), "READY=1");
    daemon.client().get("/healthz").ok();
    daemon.client().post("/shutdown", &json!({})).ok();
    assert_eq!(hear(), "STOPPING=1");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn sighup_reopens_the_log_and_reloads_the_configuration() {
    let daemon = TestDaemon::started();
    let path = daemon.root().join("data/murald/daemon.log");
    fs::rename(&path, path.with_extension("old")).unwrap();
    daemon.signal("-HUP");
    wait_until("the new log", || daemon.log().contains("reopened the log"));
    daemon.client().get("/healthz").ok();
}

#[test]
fn requests_are_logged_with_their_ids() {
    let daemon = TestDaemon::started();
    let client = daemon.client();
    let own = client.send("GET", "/nowhere", "X-Request-ID: my.own-id_1\r\n", b"");
    own.fails(404);
    assert_eq!(own.header("x-request-id"), Some("my.own-id_1"));
    let refused = client.send("GET", "/nowhere", "X-Request-ID: not an id\r\n", b"");
    let fresh = refused.header("x-request-id").unwrap().to_owned();
    assert_ne!(fresh, "not an id");
    let of = |id: &str| {
        log(&daemon)
            .into_iter()
            .find(|line| line["request_id"] == id)
    };
    wait_until("the line", || {
        of("my.own-id_1").is_some() && of(&fresh).is_some()
    });
    // Successful requests and event streams are logged, too.
    let well = client
        .get("/healthz")
        .header("x-request-id")
        .unwrap()
        .to_owned();
    client.send("HEAD", "/events", "X-Request-ID: stream\r\n", b"");
    wait_until("the others", || {
        of(&well).is_some() && of("stream").is_some()
    });
    let line = of("my.own-id_1").unwrap();
    assert_eq!(
        (&line["method"], &line["path"], &line["status"]),
        (&json!("GET"), &json!("/nowhere"), &json!(404))
    );
    for field in ["ts", "level", "target", "msg", "duration_ms"] {
        assert!(!line[field].is_null(), "{line} lacks {field}");
    }
    // Successful requests are not written to stderr, as there may be very many.
    let said = || fs::read_to_string(daemon.root().join("stderr")).unwrap();
    wait_until("the others on stderr", || {
        [" started", "my.own-id_1", &fresh]
            .iter()
            .all(|text| said().contains(text))
    });
    let said = said();
    assert!(!said.contains(&well), "{said}");
}

#[test]
fn log_is_rotated_by_size() {
    let mut daemon = TestDaemon::new();
    daemon.configure("[daemon]\nlog_max_size_mb = 1\nlog_max_backups = 2\nlog_level = \"debug\"\n");
    daemon.start();
    let client = daemon.client();
    let long = "x".repeat(7000);
    let log = daemon.root().join("data/murald/daemon.log");
    let numbered = |number: u32| log.with_extension(format!("log.{number}"));
    for _ in 0..1000 {
        client.get(&format!("/{long}")).fails(404);
        if numbered(2).exists() {
            break;
        }
    }
    assert!(
        numbered(1).exists() && numbered(2).exists(),
        "not rotated twice"
    );
    assert!(fs::metadata(&log).unwrap().len() <= 1 << 20);
}

#[test]
fn daemon_starts_without_a_writable_log() {
    let mut daemon = TestDaemon::new();
    let file = daemon.root().join("in-the-way");
    fs::write(&file, "").unwrap();
    daemon.configure(&format!(
        "[daemon]\nlog_file = \"{}/daemon.log\"\n",
        file.display()
    ));
    daemon.start();
    daemon.client().get("/healthz").ok();
    let said = fs::read_to_string(daemon.root().join("stderr")).unwrap();
    assert!(said.contains("cannot write the log"), "{said}");
}

/// Starts a daemon with a socket as descriptor 3, as described in sd_listen_fds(3); the shell sets
/// LISTEN_PID.
fn given(daemon: &TestDaemon, socket: impl Into<OwnedFd>) -> Child {
    let script = format!(
        "exec 3<&0 </dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec {} start",
        env!("CARGO_BIN_EXE_murald")
    );
    let mut command = daemon.command("/bin/sh");
    command.args(["-c", &script]).stderr(Stdio::piped());
    command.stdin(Stdio::from(socket.into())).spawn().unwrap()
}

#[test]
fn unusable_socket_of_the_service_manager_is_refused() {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, socket};
    let daemon = TestDaemon::new();
    let local = TcpListener::bind("127.0.0.1:0").unwrap();
    let deaf = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
    bind(
        &deaf,
        &SocketAddrUnix::new(daemon.root().join("deaf.sock")).unwrap(),
    )
    .unwrap();
    let datagrams = UnixDatagram::bind(daemon.root().join("datagrams.sock")).unwrap();
    for socket in [local.into(), deaf, datagrams.into()] {
        let output = given(&daemon, socket).wait_with_output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && told.contains("no listening Unix socket"),
            "{told}"
        );
    }
}

#[test]
fn socket_of_the_service_manager_is_used() {
    let daemon = TestDaemon::new();
    let path = daemon.root().join("passed.sock");
    let mut child = given(&daemon, UnixListener::bind(&path).unwrap());
    let client = crate::support::client::Client::new(&path);
    assert_eq!(client.get("/healthz").ok(), json!({ "status": "ok" }));
    client.post("/shutdown", &json!({})).ok();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(path.exists(), "the socket is the service manager's");
}

#[test]
fn commands_reach_a_daemon_whose_runtime_directory_was_replaced() {
    let mut daemon = TestDaemon::started();
    let runtime = daemon.socket().parent().unwrap().to_owned();
    fs::remove_dir_all(&runtime).unwrap();
    fs::create_dir(&runtime).unwrap();
    let mut command = daemon.murald(&["status"]);
    let output = command.env_remove("MURALD_SOCKET").output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(daemon.client().get("/info").ok()["pid"], daemon.pid());
    daemon.ends_well();
}

#[test]
fn two_signals_together_are_one() {
    let mut daemon = TestDaemon::started();
    let pid = rustix::process::Pid::from_raw(daemon.pid().cast_signed()).unwrap();
    for _ in 0..2 {
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }
    assert_eq!(daemon.wait().code(), Some(0));
}

#[test]
fn second_signal_ends_the_daemon_at_once() {
    let mut daemon = TestDaemon::started();
    let picture = daemon.root().join("large.bmp");
    image::RgbImage::new(600, 600).save(&picture).unwrap();
    let id = daemon.import(&[&picture])[0];
    // A response that the client does not read delays the shutdown.
    let mut slow = UnixStream::connect(daemon.socket()).unwrap();
    write!(slow, "GET /images/{id}/raw HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    slow.read_exact(&mut [0; 64]).unwrap();
    daemon.signal("-INT");
    wait_until("the end has begun", || {
        UnixStream::connect(daemon.socket()).is_err()
    });
    // One that follows at once would be the same.
    std::thread::sleep(std::time::Duration::from_millis(200));
    daemon.signal("-INT");
    assert_eq!(daemon.wait().code(), Some(143));
}

#[test]
fn unwritable_directories_are_reported() {
    let mut daemon = TestDaemon::new();
    fs::create_dir_all(daemon.root().join("data/murald")).unwrap();
    // A file in place of the directory, so that even root cannot create it.
    fs::write(daemon.root().join("data/murald/images"), "").unwrap();
    daemon.start();
    let picture = daemon.root().join("a.png");
    image::RgbImage::new(8, 8).save(&picture).unwrap();
    let mut events = daemon.events("image_error,processing_complete");
    daemon
        .client()
        .post("/images", &json!({ "paths": [picture] }))
        .ok();
    let error = events.wait_for("image_error");
    assert!(
        error["error"].as_str().unwrap().contains("cannot"),
        "{error}"
    );
    assert_eq!(events.wait_for("processing_complete")["failed"], 1);
    daemon.client().get("/healthz").ok();
    fs::set_permissions(daemon.root(), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn version_is_printed_without_a_daemon() {
    let daemon = TestDaemon::new();
    let output = daemon.murald(&["--version"]).output().unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains(env!("CARGO_PKG_VERSION")));
    let unknown = daemon.murald(&["frobnicate"]).output().unwrap();
    assert_eq!(unknown.status.code(), Some(2));
    let nobody = Command::new(env!("CARGO_BIN_EXE_murald"))
        .args(["--socket", "/nowhere/murald.sock", "status"])
        .output()
        .unwrap();
    assert_eq!(nobody.status.code(), Some(69), "{}", stderr(&nobody));
}

/// Starts a daemon from a shell that has run `shell` before.
fn start_after(daemon: &TestDaemon, shell: &str) -> std::process::Child {
    let script = format!("{shell}; exec {} start", env!("CARGO_BIN_EXE_murald"));
    let mut command = daemon.command("/bin/sh");
    let child = command
        .args(["-c", &script])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("it listens", || {
        UnixStream::connect(daemon.socket()).is_ok()
    });
    child
}

#[test]
fn soft_limit_on_descriptors_is_raised() {
    let mut daemon = TestDaemon::new();
    daemon.start_after("ulimit -S -n 64");
    let crowd: Vec<_> = (0..100)
        .map(|_| UnixStream::connect(daemon.socket()).unwrap())
        .collect();
    daemon.client().get("/images").ok();
    drop(crowd);
    daemon.ends_well();
}
