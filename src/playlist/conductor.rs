//! The thread `playlist`: what wakes it, and what is due when it wakes.
//!
//! It owns the running playlists. It reads and writes the database; it never waits for a backend.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crossbeam_channel::{Receiver, Sender, bounded, select};

use super::commands::Command;
use super::course::{Course, Tune, Way};
use super::pending::Pending;
use super::perform::{Attempt, Report};
use super::schedule::{LATE, Verdict};
use super::{Failure, Wall};
use crate::clock::{Alarm, Deadlines, Now};
use crate::events::{EventBus, Message, Subscription};
use crate::store::{self, Connection, Store, playlists};
use crate::wire::{Event, EventKind};

/// Events that may concern a running playlist.
pub(super) const NEWS: &[EventKind] =
    &[EventKind::GalleryChanged, EventKind::ImageOrphanPurged, EventKind::ConfigChanged];

/// What the conductor listens to.
pub(super) struct Ears {
    pub(super) commands: Receiver<Command>,
    pub(super) reports: Receiver<()>,
    /// The alarm clock.
    pub(super) rings: Receiver<()>,
    pub(super) outputs: Receiver<()>,
    pub(super) news: Subscription,
    /// Closes at the end.
    pub(super) end: Receiver<()>,
}

/// A playlist that runs.
pub(super) struct Performance {
    pub(super) tune: Tune,
    pub(super) course: Course,
    /// The change in hand; reports of others are about the past.
    pub(super) change: u64,
    /// Monitors that the reconciler has been asked for and has not answered.
    pub(super) asked: Vec<String>,
    /// Nothing of it can be shown, and that has been told.
    pub(super) starved: bool,
}

impl Performance {
    pub(super) fn new(tune: Tune, course: Course) -> Self {
        Self { tune, course, change: 0, asked: Vec::new(), starved: false }
    }

    /// The declared monitors that are connected.
    pub(super) fn applied_to(&self, connected: &[String]) -> Vec<String> {
        self.course.applied_to(connected)
    }
}

/// Reports that the conductor has not heard. One for each request at most, and the reconciler bounds
/// these.
pub(super) type Outbox = Arc<Mutex<Vec<Report>>>;

pub(super) struct Conductor {
    pub(super) store: Store,
    pub(super) bus: EventBus,
    pub(super) wall: Box<dyn Wall>,
    time: Box<dyn Fn() -> Now + Send>,
    pub(super) boot_id: String,
    pub(super) running: BTreeMap<i64, Performance>,
    /// What clients wait for.
    pub(super) pending: BTreeMap<i64, Pending>,
    pub(super) outbox: Outbox,
    pub(super) ring: Sender<()>,
    /// Changes so far.
    pub(super) changes: u64,
}

impl Conductor {
    pub(super) fn new(
        store: Store,
        bus: EventBus,
        wall: Box<dyn Wall>,
        time: Box<dyn Fn() -> Now + Send>,
        boot_id: String,
    ) -> (Self, Receiver<()>) {
        let (ring, reports) = bounded(1);
        let conductor = Self {
            store,
            bus,
            wall,
            time,
            boot_id,
            running: BTreeMap::new(),
            pending: BTreeMap::new(),
            outbox: Outbox::default(),
            ring,
            changes: 0,
        };
        (conductor, reports)
    }

    pub(super) fn run(mut self, ears: &Ears, alarm: &Alarm) {
        self.restore();
        self.follow(ears, alarm);
        let ids: Vec<i64> = self.pending.keys().copied().collect();
        ids.into_iter().for_each(|id| self.call_off(id, &|| Failure::Ending));
    }

    fn follow(&mut self, ears: &Ears, alarm: &Alarm) {
        loop {
            if let Err(error) = alarm.set(self.deadlines()) {
                log::error!("the alarm cannot be set, playlists do not change: {error}");
            }
            select! {
                recv(ears.commands) -> command => match command {
                    Ok(command) => {
                        // What was told to everybody before is known to whoever asks now.
                        ears.news.receiver().try_iter().for_each(|message| self.heed(&message));
                        self.take(command);
                    }
                    // The server has ended, and the daemon is about to.
                    Err(_) => return,
                },
                recv(ears.news.receiver()) -> message => if let Ok(message) = message {
                    self.heed(&message);
                },
                recv(ears.reports) -> _ => self.hear(),
                recv(ears.outputs) -> _ => self.serve_all(),
                recv(ears.rings) -> _ => {}
                recv(ears.end) -> _ => return,
            }
            self.wake();
        }
    }

    pub(super) fn now(&self) -> Now {
        (self.time)()
    }

    /// Goes on with what ran when the daemon ended.
    pub(super) fn restore(&mut self) {
        if let Err(error) = self.load() {
            log::error!("the running playlists cannot be read: {error}");
        }
        self.wake();
        self.serve_all();
    }

    fn load(&mut self) -> Result<(), store::Error> {
        for id in self.store.read(playlists::running)? {
            let (score, course) = self.store.read(|c| {
                Ok::<_, store::Error>((
                    playlists::score(c, id)?,
                    playlists::state::<Course>(c, id)?,
                ))
            })?;
            let Some((score, mut course)) = score.zip(course) else { continue };
            let tune = Tune::from(score);
            if tune.items.is_empty() {
                self.store.write(|c| playlists::save(c, id, false, &course))?;
                continue;
            }
            course.edit(&tune, seed());
            course.resume_after_restart(&self.now(), &self.boot_id);
            log::info!("the playlist {:?} runs on", tune.name);
            self.running.insert(id, Performance::new(tune, course));
        }
        Ok(())
    }

    /// What to be woken for.
    pub(super) fn deadlines(&self) -> Deadlines {
        let (now, connected) = (self.now(), self.wall.connected());
        let waits = self.running.iter().filter_map(|(id, one)| {
            if self.is_held(*id) {
                return None;
            }
            // While no monitor is there nothing can change.
            one.course.place.monitors.iter().find(|name| connected.contains(name))?;
            match one.course.judge(&one.tune, &now) {
                Verdict::Wait(deadlines) => Some(deadlines),
                // Since the look of a moment ago.
                Verdict::Step { due, .. } => Some(Deadlines { boot: Some(due), wall: None }),
                Verdict::TakeUp { .. } => {
                    Some(Deadlines { boot: None, wall: Some(now.wall.timestamp()) })
                }
            }
        });
        waits.fold(Deadlines::default(), Deadlines::or)
    }

    /// Makes all changes that are due.
    pub(super) fn wake(&mut self) {
        let ids: Vec<i64> = self.running.keys().copied().collect();
        let changed: Vec<i64> = ids.into_iter().filter(|&id| self.attend(id, false)).collect();
        // Written when all are on their way: another's write must not make a change late.
        self.note(&changed);
    }

    /// Makes a playlist's change if one is due; whether there was one. What an edit or a command
    /// brings about was not missed: it is `fresh`.
    pub(super) fn attend(&mut self, id: i64, fresh: bool) -> bool {
        let now = self.now();
        let connected = self.wall.connected();
        if self.is_held(id) {
            return false;
        }
        let Some(one) = self.running.get_mut(&id) else { return false };
        if one.applied_to(&connected).is_empty() {
            return false;
        }
        let missed = match one.course.judge(&one.tune, &now) {
            Verdict::Wait(_) => return false,
            Verdict::Step { due, missed } => {
                one.course.step(&one.tune, Way::Forward);
                // On the beat, as long as it is not lost.
                let lateness = now.boot.since(due);
                let lost = lateness >= LATE || one.tune.rule.is_timer_within(lateness);
                one.course.changed(if lost { now.boot } else { due }, &now);
                missed
            }
            Verdict::TakeUp { slot, missed } => {
                let shown = std::mem::take(&mut one.course.shown_on);
                let before = one.course.place.image_id;
                one.course.take_up(&one.tune, slot);
                if fresh && one.course.place.image_id == before {
                    // An edit that leaves the picture in its slot changes nothing to be seen.
                    one.course.shown_on = shown;
                    return true;
                }
                one.course.changed(now.boot, &now);
                missed
            }
        };
        self.perform(id, Attempt::new(Way::Forward, missed && !fresh));
        true
    }

    /// Something that others did may concern a running playlist.
    pub(super) fn heed(&mut self, message: &Message) {
        let all = message.lost > 0;
        if all || message.kind == EventKind::ConfigChanged {
            self.serve_all();
        }
        // Of the gallery only images: history changes with every picture.
        let images = match message.kind {
            EventKind::GalleryChanged => message.json.contains(r#""domain":"images""#),
            kind => kind == EventKind::ImageOrphanPurged,
        };
        if all || images {
            let ids: Vec<i64> = self.running.keys().copied().collect();
            ids.into_iter().for_each(|id| self.reload_if_shorter(id));
        }
    }

    /// An image that left the library has left its playlists, too.
    pub(super) fn reload_if_shorter(&mut self, id: i64) {
        let Some(one) = self.running.get(&id) else { return };
        let length = self.store.read(|c| playlists::length(c, id));
        if length.is_ok_and(|length| length == one.tune.items.len()) {
            return;
        }
        let course = one.course.clone();
        match self.store.write(|c| edit(c, id, course)) {
            Ok(Edited::On { tune, course, lost }) => self.go_on(id, tune, *course, lost),
            Ok(Edited::Empty) => self.drop_stopped(id),
            Err(error) => log::error!("playlist {id} cannot be read anew: {error}"),
        }
    }

    /// Goes on with an edited list; `lost`: the image that it stood at is gone.
    pub(super) fn go_on(&mut self, id: i64, tune: Tune, course: Course, lost: bool) {
        let now = self.now();
        let Some(one) = self.running.get_mut(&id) else { return };
        (one.tune, one.course) = (tune, course);
        if lost {
            one.course.changed(now.boot, &now);
        }
        let change = one.change;
        let attended = self.attend(id, true);
        // After the slot that it is time for: only that one is to be seen.
        if lost && self.running.get(&id).is_some_and(|one| one.change == change) {
            self.perform(id, Attempt::new(Way::Forward, false));
        }
        if attended || lost {
            self.note(&[id]);
        }
        if self.running.get(&id).is_some_and(|one| one.starved) {
            self.serve(id);
        }
    }

    /// Takes a playlist off that is stopped in the database already.
    pub(super) fn drop_stopped(&mut self, id: i64) {
        if let Some(one) = self.running.remove(&id) {
            self.call_off_steps(id, &|| Failure::NotRunning { name: one.tune.name.clone() });
            let (action, stopped) = (None, None);
            let event = Event::PlaylistStopped { playlist_id: Some(id), action, stopped };
            self.bus.publish(&event);
        }
    }

    /// Writes where playlists stand, without waiting for the disk.
    pub(super) fn note(&self, ids: &[i64]) {
        let courses: Vec<_> =
            ids.iter().filter_map(|id| Some((*id, &self.running.get(id)?.course))).collect();
        if courses.is_empty() {
            return;
        }
        let noted = self.store.note(|c| {
            courses.iter().try_for_each(|(id, course)| playlists::save(c, *id, true, course))
        });
        if let Err(error) = noted {
            log::error!("the place of playlists {ids:?} cannot be written: {error}");
        }
    }

    pub(super) fn outbox(&self) -> Vec<Report> {
        std::mem::take(&mut *self.outbox.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What an edit made of a running playlist.
pub(super) enum Edited {
    /// It has no images any more and is stopped.
    Empty,
    /// It goes on; `lost`: the image that it stood at is gone.
    On { tune: Tune, course: Box<Course>, lost: bool },
}

/// Fits a place to its list, which has been edited, and writes it.
pub(super) fn edit(c: &Connection, id: i64, mut course: Course) -> Result<Edited, store::Error> {
    let tune = playlists::score(c, id)?.map(Tune::from).filter(|tune| !tune.items.is_empty());
    let Some(tune) = tune else {
        playlists::save(c, id, false, &course)?;
        return Ok(Edited::Empty);
    };
    let lost = course.edit(&tune, seed());
    playlists::save(c, id, true, &course)?;
    Ok(Edited::On { tune, course: Box::new(course), lost })
}

/// A number that nobody foresees, from the keys that the standard library draws for its hash maps.
pub(super) fn seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests;
