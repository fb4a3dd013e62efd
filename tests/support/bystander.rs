//! A quiet client beside a fault: it asks for `/healthz` and a thumbnail by turns, each over a
//! connection of its own, and tells how long it waited. On a quiet machine 99 of a hundred are to be
//! answered within 50 ms; what fails is an answer that is none, and one that somebody's fault keeps.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::House;

/// Between two requests: quiet.
const PAUSE: Duration = Duration::from_millis(5);
/// Whatever else the machine does: longer waits only who waits for somebody that hangs.
const LONGEST: Duration = Duration::from_secs(15);

pub struct Bystander {
    end: Sender<()>,
    asking: JoinHandle<Waits>,
}

/// Until each answer, in milliseconds.
#[derive(Default)]
struct Waits {
    health: Vec<f64>,
    thumbnail: Vec<f64>,
}

impl Bystander {
    /// Begins to ask, for the thumbnail of this image if there is one.
    pub fn beside(house: &House, image: Option<i64>) -> Self {
        let client = house.client();
        let (end, ended) = channel();
        let asking = std::thread::spawn(move || {
            let mut waits = Waits::default();
            let thumbnail = image.map(|id| format!("/images/{id}/thumbnail"));
            while ended.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                let ask = |path: &str, waits: &mut Vec<f64>| {
                    let begun = Instant::now();
                    let answer = client.get(path);
                    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
                    assert!(begun.elapsed() < LONGEST, "{path} took {:?}", begun.elapsed());
                    waits.push(begun.elapsed().as_secs_f64() * 1e3);
                };
                ask("/healthz", &mut waits.health);
                if let Some(path) = &thumbnail {
                    ask(path, &mut waits.thumbnail);
                }
            }
            waits
        });
        Self { end, asking }
    }

    /// Prints what it waited for beside this.
    #[track_caller]
    pub fn end(self, beside: &str) {
        self.end.send(()).ok();
        let Waits { health, thumbnail } =
            self.asking.join().expect("a quiet client was not served");
        for (what, mut waits) in [("/healthz", health), ("a thumbnail", thumbnail)] {
            waits.sort_by(f64::total_cmp);
            let Some(last) = waits.len().checked_sub(1) else { continue };
            let part = |part: f64| waits[(last as f64 * part) as usize];
            eprintln!(
                "beside {beside}: {what} p50 {:.2} ms, p99 {:.2}, most {:.2}, of {}",
                part(0.5),
                part(0.99),
                part(1.0),
                waits.len()
            );
        }
    }
}
