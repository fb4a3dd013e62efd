//! A quiet client beside a fault: it asks for `/healthz` and a thumbnail by turns, each over a
//! connection of its own, and tells how long it waited. On a quiet machine 99 of a hundred are to be
//! answered within 50 ms. What fails is an answer that is none, one that somebody's fault keeps, and a
//! client that waits for most of its answers longer than the machine's own business makes it.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::House;
use super::client::Client;

/// Between two requests: quiet.
const PAUSE: Duration = Duration::from_millis(5);
/// Whatever else the machine does: longer waits only who waits for somebody that hangs.
const LONGEST: Duration = Duration::from_secs(15);
/// Asked first, to know how long an answer takes here and now.
const QUIET: usize = 10;
/// Half of the answers come sooner, even where all processors are somebody else's.
const SLOW: f64 = 1_000.0;
/// By so much may those beside a fault be later.
const LATER: f64 = 20.0;

pub struct Bystander {
    quiet: Waits,
    end: Sender<()>,
    asking: JoinHandle<Waits>,
}

/// Until each answer, in milliseconds.
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
            assert!(begun.elapsed() < LONGEST, "{path} took {:?}", begun.elapsed());
            waits.push(begun.elapsed().as_secs_f64() * 1e3);
        };
        ask("/healthz", &mut self.health);
        if let Some(id) = image {
            ask(&format!("/images/{id}/thumbnail"), &mut self.thumbnail);
        }
    }
}

impl Bystander {
    /// Asks while there is no fault yet, and then goes on; for the thumbnail of this image if there is
    /// one.
    #[track_caller]
    pub fn beside(house: &House, image: Option<i64>) -> Self {
        let client = house.client();
        let mut quiet = Waits::default();
        (0..QUIET).for_each(|_| quiet.ask(&client, image));
        for waits in [&mut quiet.health, &mut quiet.thumbnail] {
            waits.sort_by(f64::total_cmp);
            let half = part(waits, 0.5);
            assert!(half < SLOW, "half of the answers take longer than {half:.0} ms");
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

    /// Prints what it waited for beside this.
    #[track_caller]
    pub fn end(self, beside: &str) {
        self.end.send(()).ok();
        let Waits { health, thumbnail } =
            self.asking.join().expect("a quiet client was not served");
        let Waits { health: before, thumbnail: thumbnail_before } = self.quiet;
        for (what, mut waits, before) in
            [("/healthz", health, before), ("a thumbnail", thumbnail, thumbnail_before)]
        {
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
            assert!(half < SLOW + LATER * before, "{what} beside {beside}: {half} ms");
        }
    }
}

/// The wait that this part of them does not exceed; they are sorted.
fn part(waits: &[f64], part: f64) -> f64 {
    let last = waits.len().saturating_sub(1);
    waits.get((last as f64 * part) as usize).copied().unwrap_or_default()
}
