//! The thread `thumbs`: the thumbnails that nobody has asked for yet, made while nobody needs the
//! machine.
//!
//! It sleeps until it is told that something may be missing (a start, an import, a thumbnail that
//! had to be made at once), waits until that has not happened for a while, and then makes what is
//! missing, one at a time, as long as the machine is idle. Then it sleeps again, without a deadline.
//! It never makes one that somebody else is making, and tries a broken picture once each time.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded, select};

use super::Thumbnails;
use super::context::{Idle, ImportContext};
use crate::battery::Supplies;
use crate::memory;
use crate::paths::Env;
use crate::store::{self, Store, images};
use crate::thread::{Spawner, Thread};
use crate::wire::{Image, Resolution};

/// How long before a machine that was busy is looked at again, while there is something to make.
const BUSY_AGAIN: Duration = Duration::from_secs(60);
/// Rows read at a time.
const ROWS: usize = 100;
/// The percentage of the last ten seconds in which a program waited for a processor, up to which a
/// machine counts as idle.
const PRESSURE_MAX: f32 = 5.0;

/// Tells the thread that thumbnails may be missing, and that somebody is at work.
#[derive(Clone, Debug)]
pub(super) struct Wake(Sender<()>);

impl Wake {
    pub(super) fn send(&self) {
        self.0.try_send(()).ok();
    }
}

/// Starts the thread, where it is wanted; `end` is closed when the daemon ends.
pub(super) fn start(
    idle: Option<Idle>,
    context: &ImportContext,
    end: Receiver<()>,
    spawner: &Spawner,
) -> io::Result<(Wake, Option<Thread>)> {
    // One is as good as many.
    let (wake, woken) = bounded(1);
    let (store, thumbnails) = (context.store.clone(), context.thumbnails.clone());
    let worker = idle.map(|idle| Worker { idle, store, thumbnails, woken, end });
    let thread = worker.map(|worker| spawner.spawn("thumbs", move || worker.run())).transpose()?;
    Ok((Wake(wake), thread))
}

struct Worker {
    idle: Idle,
    store: Store,
    thumbnails: Thumbnails,
    woken: Receiver<()>,
    end: Receiver<()>,
}

/// Why a round is over.
#[derive(Debug, PartialEq, Eq)]
enum Over {
    /// Nothing is missing any more.
    Done,
    /// Somebody is at work: again, when it is quiet.
    Woken,
    /// The machine is needed for something else.
    Busy,
    End,
}

impl Worker {
    /// The body of the thread.
    fn run(self) {
        loop {
            select! {
                recv(self.woken) -> wake => if wake.is_err() { return },
                recv(self.end) -> _ => return,
            }
            let mut broken = HashSet::new();
            let mut wait = self.idle.after;
            loop {
                if !self.is_quiet_for(wait) {
                    return;
                }
                match self.round(&mut broken) {
                    Ok(Over::Done) => break,
                    Ok(Over::Woken) => wait = self.idle.after,
                    Ok(Over::Busy) => wait = BUSY_AGAIN,
                    Ok(Over::End) => return,
                    Err(error) => {
                        log::warn!("no thumbnails are made for now: {error}");
                        break;
                    }
                }
            }
            memory::trim();
        }
    }

    /// Waits until nobody has given a wake for so long; false at the end.
    fn is_quiet_for(&self, time: Duration) -> bool {
        loop {
            select! {
                recv(self.woken) -> wake => if wake.is_err() { return false },
                recv(self.end) -> _ => return false,
                default(time) => return true,
            }
        }
    }

    /// Looks at every image and makes what is missing.
    fn round(&self, broken: &mut HashSet<String>) -> Result<Over, store::Error> {
        let mut last = 0;
        loop {
            let page = self.store.read(|c| images::after(c, last, ROWS))?;
            let Some(image) = page.last() else { return Ok(Over::Done) };
            last = image.id;
            for image in &page {
                if broken.contains(&image.checksum) {
                    continue;
                }
                for size in self.thumbnails.missing(image) {
                    if let Some(over) = self.interrupted() {
                        return Ok(over);
                    }
                    if !self.make(image, size) {
                        broken.insert(image.checksum.clone());
                        break;
                    }
                }
            }
        }
    }

    fn interrupted(&self) -> Option<Over> {
        if self.end.try_recv() == Err(TryRecvError::Disconnected) {
            return Some(Over::End);
        }
        match self.woken.try_recv() {
            Ok(()) => Some(Over::Woken),
            Err(TryRecvError::Disconnected) => Some(Over::End),
            Err(TryRecvError::Empty) => (!(self.idle.is_idle)()).then_some(Over::Busy),
        }
    }

    fn make(&self, image: &Image, size: Resolution) -> bool {
        let made = self.thumbnails.get(image, size);
        if let Err(error) = &made {
            log::debug!("no thumbnail {size} of image {}: {}", image.id, error.reason());
        }
        made.is_ok()
    }
}

/// Whether nobody waits for a processor, and the machine is not on battery.
pub(crate) fn machine_is_idle() -> bool {
    !Supplies::of(&Env::process()).on_battery() && is_unhurried()
}

fn is_unhurried() -> bool {
    match fs::read_to_string("/proc/pressure/cpu") {
        Ok(text) => pressure(&text).is_none_or(|share| share < PRESSURE_MAX),
        // Kernels that do not measure it: what runs besides ourselves.
        Err(_) => fs::read_to_string("/proc/loadavg").is_ok_and(|text| {
            let load = text.split(' ').next().and_then(|first| first.parse::<f32>().ok());
            load.is_some_and(|load| load < 1.5)
        }),
    }
}

/// The first number of a line like `some avg10=0.12 avg60=...`.
fn pressure(text: &str) -> Option<f32> {
    text.strip_prefix("some avg10=")?.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_is_read_from_the_kernels_words() {
        let check = |text, expected| assert_eq!(pressure(text), expected, "{text}");
        check("some avg10=0.12 avg60=1.00 avg300=0.50 total=7\nfull avg10=0.00", Some(0.12));
        check("some avg10=93.75 avg60=89.24", Some(93.75));
        check("", None);
        check("some", None);
    }
}
