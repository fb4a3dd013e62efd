//! A quiet client beside a fault: it requests `/healthz` and a thumbnail, one after the other, each
//! over a new connection, and measures the response times.
//!
//! On a quiet machine, 99 % of the responses should take less than 50 ms. The test fails on an
//! error response, on a response that takes very long, and if the median is much higher than before
//! the fault.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::TestDaemon;
use super::client::Client;

/// The pause between two requests.
const PAUSE: Duration = Duration::from_millis(5);
/// Maximum response time; even on a busy machine, a longer one means that something hangs.
const LONGEST: Duration = Duration::from_secs(15);
/// Number of requests before the fault, to measure the response time of this machine.
const QUIET: usize = 10;
/// Maximum median of the response times in milliseconds, even if the machine is busy.
const SLOW: f64 = 1_000.0;
/// Allowed factor between the medians with and without the fault.
const LATER: f64 = 20.0;

pub struct Bystander {
    quiet: Waits,
    end: Sender<()>,
    asking: JoinHandle<Waits>,
}

/// Response times in milliseconds.
#[derive(Default)]
struct Waits {
    health: Vec<f64>,
    thumbnail: Vec<f64>,
}

impl Waits {
    fn ask(&mut self, client: &Client, image: Option<i64>) {
        let ask = |path: &str, waits: &mut Vec<f64>| {
            let begun = Instant::now();
            let answer = client.get(path);
            assert_eq!(answer.status, 200, "{path}: {}", answer.text());
            assert!(
                begun.elapsed() < LONGEST,
                "{path} took {:?}",
                begun.elapsed()
            );
            waits.push(begun.elapsed().as_secs_f64() * 1e3);
        };
        ask("/healthz", &mut self.health);
        if let Some(id) = image {
            ask(&format!("/images/{id}/thumbnail"), &mut self.thumbnail);
        }
    }
}

impl Bystander {
    /// Sends requests before the fault, and then continues on a thread. Also requests the thumbnail
    /// of `image`, if given.
    #[track_caller]
    pub fn beside(daemon: &TestDaemon, image: Option<i64>) -> Self {
        let client = daemon.client();
        let mut quiet = Waits::default();
        (0..QUIET).for_each(|_| quiet.ask(&client, image));
        for waits in [&mut quiet.health, &mut quiet.thumbnail] {
            waits.sort_by(f64::total_cmp);
            let half = part(waits, 0.5);
            assert!(
                half < SLOW,
                "half of the answers take longer than {half:.0} ms"
            );
        }
        let (end, ended) = channel();
        let asking = std::thread::spawn(move || {
            let mut waits = Waits::default();
            while ended.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                waits.ask(&client, image);
            }
            waits
        });
        Self { quiet, end, asking }
    }

    /// Stops the requests and prints the response times; `beside` describes the fault.
    #[track_caller]
    pub fn end(self, beside: &str) {
        self.end.send(()).ok();
        let Waits { health, thumbnail } =
            self.asking.join().expect("a quiet client was not served");
        let Waits {
            health: before,
            thumbnail: thumbnail_before,
        } = self.quiet;
        for (what, mut waits, before) in [
            ("/healthz", health, before),
            ("a thumbnail", thumbnail, thumbnail_before),
        ] {
            if waits.is_empty() {
                continue;
            }
            waits.sort_by(f64::total_cmp);
            let (before, half) = (part(&before, 0.5), part(&waits, 0.5));
            eprintln!(
                "beside {beside}: {what} p50 {half:.2} ms ({before:.2} before), p99 {:.2}, \
                 most {:.2}, of {}",
                part(&waits, 0.99),
                part(&waits, 1.0),
                waits.len()
            );
            assert!(
                half < SLOW + LATER * before,
                "{what} beside {beside}: {half} ms"
            );
        }
    }
}

/// Returns the quantile `part` of sorted response times.
fn part(waits: &[f64], part: f64) -> f64 {
    let last = waits.len().saturating_sub(1);
    waits
        .get((last as f64 * part) as usize)
        .copied()
        .unwrap_or_default()
}
