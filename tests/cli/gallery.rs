//! `murald gallery`: which requests its server refuses, how it opens and ends, and its page in a browser.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::desktop::{Desktop, wait_until};
use crate::support::TestDaemon;

/// A running gallery, which is killed at the end.
struct Gallery {
    process: Child,
    host: String,
    token: String,
}

impl Gallery {
    fn start(daemon: &TestDaemon, flags: &[&str]) -> Self {
        let mut command = daemon.murald(&[&["gallery"], flags].concat());
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut address)
            .unwrap();
        let address = address.trim().strip_prefix("http://").unwrap();
        let (host, token) = address.trim_end_matches('/').split_once('/').unwrap();
        let (host, token) = (host.to_owned(), token.to_owned());
        Self {
            process,
            host,
            token,
        }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.host).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        stream
    }

    /// Sends a request in which `HOST` and `TOKEN` are replaced by the right ones; returns the response.
    fn ask(&self, request: &str) -> String {
        let mut stream = self.connect();
        let request = request
            .replace("HOST", &self.host)
            .replace("TOKEN", &self.token);
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = Vec::new();
        // The server may close before it has read all of a refused request.
        stream.read_to_end(&mut response).ok();
        String::from_utf8_lossy(&response).into_owned()
    }

    #[track_caller]
    fn check(&self, request: &str, status: &str) {
        let response = self.ask(request);
        let expected = format!("HTTP/1.1 {status} ");
        assert!(response.starts_with(&expected), "{request:?}: {response}");
    }
}

impl Drop for Gallery {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

#[test]
fn gallery_serves_its_own_page_only() {
    let daemon = TestDaemon::started();
    let gallery = Gallery::start(&daemon, &["--no-open"]);
    let page = gallery.ask("GET /TOKEN/ HTTP/1.1\r\nHost: HOST\r\n\r\n");
    assert!(page.starts_with("HTTP/1.1 200 "), "{page}");
    assert!(
        page.contains("script-src 'nonce-") && !page.contains("NONCE"),
        "{page}"
    );
    assert!(!page.to_lowercase().contains("access-control-"), "{page}");

    let one = "HTTP/1.1\r\nHost: HOST\r\n";
    gallery.check(&format!("GET /TOKEN/api/images {one}\r\n"), "200");
    gallery.check(
        &format!("GET /TOKEN/api/images {one}Origin: http://HOST\r\n\r\n"),
        "200",
    );
    let set = "Content-Length: 2\r\nContent-Type: application/json\r\n";
    gallery.check(
        &format!("POST /TOKEN/api/wallpaper/back {one}{set}Origin: http://HOST\r\n\r\n{{}}"),
        "503",
    );

    // Without the secret.
    let other = "0".repeat(32);
    for path in [
        "/",
        "/api/images",
        &format!("/{other}/"),
        &format!("/{other}/api/images"),
        "//TOKEN/",
    ] {
        gallery.check(&format!("GET {path} {one}\r\n"), "404");
    }
    // A name of another site that leads to this address, and no or two names.
    for hosts in [
        "Host: evil.example\r\n",
        "Host: evil.example:80\r\n",
        "",
        "Host: HOST\r\nHost: HOST\r\n",
    ] {
        gallery.check(&format!("GET /TOKEN/ HTTP/1.1\r\n{hosts}\r\n"), "403");
    }
    // A page of another site.
    for origin in [
        "http://evil.example",
        "null",
        "https://HOST",
        "http://127.0.0.1",
    ] {
        let request =
            format!("POST /TOKEN/api/wallpaper/back {one}{set}Origin: {origin}\r\n\r\n{{}}");
        gallery.check(&request, "403");
    }
    // The page does not need these.
    for request in [
        "GET /TOKEN/api/config",
        "PATCH /TOKEN/api/config",
        "POST /TOKEN/api/shutdown",
        "GET /TOKEN/api/library/watch",
        "GET /TOKEN/api/images/../config",
        "GET /TOKEN/api/images/1/../../config",
        "GET /TOKEN/api/images/%2e%2e/config",
        "POST /TOKEN/api/images",
        "POST /TOKEN/",
        "GET /TOKEN/gallery.html",
    ] {
        gallery.check(&format!("{request} {one}\r\n"), "404");
    }
    // An upgrade is not offered.
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\n";
    gallery.check(&format!("GET /TOKEN/api/images {one}{upgrade}\r\n"), "200");
    // Requests that are no HTTP, or too large.
    gallery.check("no http\r\n\r\n", "400");
    gallery.check(
        &format!("GET /TOKEN/ {one}X: {}\r\n\r\n", "x".repeat(20_000)),
        "400",
    );
    let large = "Content-Length: 9000000\r\n";
    gallery.check(
        &format!("POST /TOKEN/api/wallpaper/set {one}{large}\r\n"),
        "413",
    );
    assert!(daemon.client().is_served("/healthz"));
}

#[test]
fn files_of_the_library_run_no_scripts_in_the_gallery() {
    let mut daemon = TestDaemon::started();
    let package = daemon.root().join("package");
    std::fs::create_dir(&package).unwrap();
    std::fs::write(
        package.join("index.html"),
        "<script>fetch('../../..')</script>",
    )
    .unwrap();
    let body = serde_json::json!({ "path": package });
    let id = daemon.client().post("/images/import-web", &body).ok()["id"].clone();
    let gallery = Gallery::start(&daemon, &["--no-open"]);
    let raw = gallery.ask(&format!(
        "GET /TOKEN/api/images/{id}/raw HTTP/1.1\r\nHost: HOST\r\n\r\n"
    ));
    assert!(
        raw.contains("Content-Security-Policy: default-src 'none'; sandbox\r\n"),
        "{raw}"
    );
    daemon.ends_well();
}

#[test]
fn slow_clients_do_not_delay_the_gallery() {
    let daemon = TestDaemon::started();
    let gallery = Gallery::start(&daemon, &["--no-open"]);
    let mut slow: Vec<TcpStream> = (0..40).map(|_| gallery.connect()).collect();
    for stream in &mut slow {
        stream.write_all(b"GET / HTTP/1.1\r\nX: ").unwrap();
    }
    gallery.check(
        "GET /TOKEN/api/images HTTP/1.1\r\nHost: HOST\r\n\r\n",
        "200",
    );
    // They are disconnected in the end, also one whose request goes on bit by bit.
    let busy = &mut slow[1];
    busy.set_read_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    wait_until("the end of a busy client", || {
        busy.write_all(b"x").is_err() || matches!(busy.read(&mut [0]), Ok(0))
    });
    assert_eq!(slow[0].read(&mut [0]).unwrap_or(0), 0);
}

#[test]
fn gallery_opens_a_file_of_the_users_and_ends_after_its_page() {
    let mut daemon = TestDaemon::started();
    let opened = daemon.root().join("opened");
    daemon.stub(
        "xdg-open",
        &format!(
            "#!/bin/sh\nprintf %s \"$1\" >'{0}.new'\nmv '{0}.new' '{0}'\n",
            opened.display()
        ),
    );
    let mut gallery = Gallery::start(&daemon, &[]);
    wait_until("xdg-open", || opened.exists());
    let link = std::fs::read_to_string(&opened).unwrap();
    assert!(
        !link.contains(&gallery.token),
        "the secret is in a command line: {link}"
    );
    assert_eq!(
        std::fs::metadata(&link).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert!(
        std::fs::read_to_string(&link)
            .unwrap()
            .contains(&gallery.token)
    );

    let mut stream = gallery.connect();
    let events = "GET /TOKEN/api/events HTTP/1.1\r\nHost: HOST\r\n\r\n";
    let events = events
        .replace("HOST", &gallery.host)
        .replace("TOKEN", &gallery.token);
    stream.write_all(events.as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line).unwrap();
    assert!(line.starts_with("HTTP/1.1 200 "), "{line}");
    assert!(
        gallery.process.try_wait().unwrap().is_none(),
        "the gallery ended under its page"
    );
    let closed = Instant::now();
    drop(stream);
    wait_until("the end of the gallery", || {
        gallery.process.try_wait().unwrap().is_some()
    });
    assert!(
        closed.elapsed() >= Duration::from_secs(10),
        "the page could not be loaded again"
    );
    assert!(!Path::new(&link).exists());

    std::fs::remove_file(&opened).unwrap();
    let mut gallery = Gallery::start(&daemon, &[]);
    wait_until("xdg-open", || opened.exists());
    let link = std::fs::read_to_string(&opened).unwrap();
    kill_process(Pid::from_child(&gallery.process), Signal::TERM).unwrap();
    gallery.process.wait().unwrap();
    assert!(!Path::new(&link).exists());
    daemon.ends_well();
}

#[test]
fn gallery_can_be_used_in_a_browser() {
    let desktop = Desktop::wayland(&[]);
    let mut daemon = TestDaemon::on(&desktop);
    daemon.env("MURALD_AUTOSTART", "1");
    let pictures = daemon.root().join("pictures");
    std::fs::create_dir(&pictures).unwrap();
    for at in 0..120_u8 {
        let color = image::Rgb([at * 2, 255 - at, at.wrapping_mul(37)]);
        image::RgbImage::from_pixel(96, 54, color)
            .save(pictures.join(format!("p{at}.png")))
            .unwrap();
    }
    daemon.start();
    assert!(
        daemon
            .murald(&["import", "--quiet"])
            .arg(&pictures)
            .status()
            .unwrap()
            .success()
    );
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/gallery/browser");
    let mut browser = daemon.command(script);
    browser
        .arg(env!("CARGO_BIN_EXE_murald"))
        .arg(daemon.root().join("gallery.png"));
    let output = browser.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{}{told}",
        String::from_utf8_lossy(&output.stdout)
    );
}
