//! Measures the daemon as clients see it: requests per second and latency on its socket, beside nginx if
//! that is installed, and its memory and wake-ups when idle.
//!
//! `cargo bench --bench http [-- WORD]`; with a word, only the lines that contain it. The daemon is the
//! real executable with 10,000 images. All servers are measured in turn within each round, and the
//! median of the rounds is printed. One thread generates the load, which needs about as much processor
//! time as the server. `MURALD_BENCH_SECONDS` (2) is the length of one measurement, `MURALD_BENCH_IDLE`
//! (10) that of the idle measurement, in seconds.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark"
)]

mod load;
mod row;
mod servers;

use std::path::Path;
use std::time::Duration;

use load::Figures;
use servers::{Daemon, Nginx};

const ROUNDS: usize = 5;
const IMAGES: usize = 10_000;
const LIST: &str = "/images?per_page=50";
const ONE: &str = "/images/4711";

struct Subject<'a> {
    what: &'static str,
    pid: u32,
    socket: &'a Path,
    request: String,
    connections: usize,
    /// The index of the subject that it is compared with.
    beside: Option<usize>,
}

fn main() {
    let seconds = |name, default| {
        let text = std::env::var(name).ok();
        Duration::from_secs(text.and_then(|text| text.parse().ok()).unwrap_or(default))
    };
    let length = seconds("MURALD_BENCH_SECONDS", 2);
    let daemon = Daemon::start(IMAGES);
    println!(
        "first answer       {:>8.1} ms after the start",
        daemon.first_answer.as_secs_f64() * 1e3
    );
    let idle = seconds("MURALD_BENCH_IDLE", 10);
    let (memory, wakes) = daemon.idle(idle);
    println!("idle daemon        {memory:>8.1} MiB resident, {wakes} wake-ups in {idle:?}");

    let body = |path| load::body(&daemon.socket, &get(path));
    let nginx = Nginx::start(&[("images", body(LIST)), ("one", body(ONE))]);
    let mut subjects = subjects(&daemon, nginx.as_ref());
    if let Some(word) = std::env::args().skip(1).find(|word| !word.starts_with('-')) {
        subjects.retain(|subject| subject.what.contains(&word));
        subjects
            .iter_mut()
            .for_each(|subject| subject.beside = None);
    }
    let mut rounds: Vec<Vec<Figures>> = subjects.iter().map(|_| Vec::new()).collect();
    for _ in 0..ROUNDS {
        for (subject, figures) in subjects.iter().zip(&mut rounds) {
            let (request, connections) = (&subject.request, subject.connections);
            let before = servers::processor(subject.pid);
            let mut found = load::run(subject.socket, request, connections, length);
            found.processor = (servers::processor(subject.pid) - before) / found.requests * 1e6;
            figures.push(found);
        }
    }
    let medians: Vec<Figures> = rounds.into_iter().map(median).collect();
    print(&subjects, &medians);
    println!("after the load     {:>8.1} MiB resident", daemon.memory());
    if nginx.is_none() {
        println!("nginx is not on PATH: nothing to compare with");
    }
}

fn subjects<'a>(daemon: &'a Daemon, nginx: Option<&'a Nginx>) -> Vec<Subject<'a>> {
    let mut subjects = Vec::new();
    for (path, what, file) in [
        ("/healthz", "/healthz", "/healthz"),
        (LIST, "a list of 50 of 10,000", "/images"),
        (ONE, "one of 10,000", "/one"),
    ] {
        for connections in [1, 8, 64] {
            let beside = nginx.map(|nginx| {
                let (pid, socket) = (nginx.pid(), &nginx.socket);
                let (what, request) = ("nginx, the same bytes", get(file));
                let subject = Subject {
                    what,
                    pid,
                    socket,
                    request,
                    connections,
                    beside: None,
                };
                subjects.push(subject);
                subjects.len() - 1
            });
            let (pid, socket, request) = (daemon.pid(), &daemon.socket, get(path));
            subjects.push(Subject {
                what,
                pid,
                socket,
                request,
                connections,
                beside,
            });
        }
    }
    // A different page each time, so that no answer can be reused.
    let request = "GET /images?per_page=50&page={} HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned();
    let (pid, socket) = (daemon.pid(), &daemon.socket);
    subjects.push(Subject {
        what: "any of its 200 pages",
        pid,
        socket,
        request,
        connections: 8,
        beside: None,
    });
    subjects
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

/// The round with the median of requests per second.
fn median(mut rounds: Vec<Figures>) -> Figures {
    rounds.sort_by(|one, other| one.per_second.total_cmp(&other.per_second));
    rounds.swap_remove(rounds.len() / 2)
}

fn print(subjects: &[Subject<'_>], medians: &[Figures]) {
    println!();
    println!(
        "{:24} {:>11} {:>10} {:>8} {:>8} {:>8} {:>9} {:>9}",
        "", "connections", "requests/s", "p50 µs", "p99 µs", "CPU µs", "to nginx", "CPU"
    );
    for (subject, figures) in subjects.iter().zip(medians) {
        let beside = subject.beside.map(|at| medians[at]);
        let ratio = |of: fn(&Figures) -> f64| {
            beside.map_or_else(String::new, |beside| {
                format!("{:.2}", of(figures) / of(&beside))
            })
        };
        let Figures {
            per_second,
            p50,
            p99,
            processor,
            ..
        } = figures;
        println!(
            "{:24} {:>11} {per_second:>10.0} {p50:>8.0} {p99:>8.0} {processor:>8.1} {:>9} {:>9}",
            subject.what,
            subject.connections,
            ratio(|figures| figures.per_second),
            ratio(|figures| figures.processor)
        );
    }
    println!();
}
