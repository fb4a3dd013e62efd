//! The hub: every event goes to every subscriber that asked for its kind.
//!
//! What the daemon does at its start would be heard by nobody: that is kept for a moment, for those who
//! come as soon as they can.
//!
//! Publishing runs in the thread where the thing happened and never waits: each subscriber has a
//! buffer of [`BUFFER`] events, and what does not fit is lost for that subscriber alone and counted.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

use crate::wire::{Event, EventKind, Source, Timestamp};

/// Events kept for a subscriber that does not read (service.md, limits).
pub const BUFFER: usize = 64;

/// How long after the start a subscriber still hears what happened since then.
const START: Duration = Duration::from_secs(5);

/// An event as it travels: serialised once for all subscribers.
#[derive(Clone, Debug)]
pub struct Frame {
    pub kind: EventKind,
    /// The payload, one line of JSON.
    pub json: Arc<str>,
    /// How many events this subscriber lost just before this one.
    pub lost: u64,
}

/// The kinds of event that a subscriber wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds(u32);

impl Kinds {
    pub const ALL: Self = Self(u32::MAX);

    pub fn contains(self, kind: EventKind) -> bool {
        self.0 & (1 << kind as u32) != 0
    }

    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl FromIterator<EventKind> for Kinds {
    fn from_iter<I: IntoIterator<Item = EventKind>>(kinds: I) -> Self {
        Self(kinds.into_iter().fold(0, |bits, kind| bits | 1 << kind as u32))
    }
}

/// Where events are published; clones are the same hub.
#[derive(Clone, Default)]
pub struct Hub {
    audience: Arc<Mutex<Audience>>,
}

#[derive(Default)]
struct Audience {
    subscribers: Vec<Subscriber>,
    kept: Option<Kept>,
}

/// The last events of the start, no more than a subscriber's buffer holds.
struct Kept {
    until: Instant,
    frames: VecDeque<Frame>,
}

struct Subscriber {
    id: u64,
    kinds: Kinds,
    sender: Sender<Frame>,
    lost: u64,
    /// Called after each event that fitted, for a reader that waits on more than its channel.
    ring: Box<dyn Fn() + Send>,
}

/// One subscriber's end; dropping it unsubscribes.
pub struct Subscription {
    id: u64,
    hub: Hub,
    receiver: Receiver<Frame>,
}

impl Hub {
    pub fn new() -> Self {
        Self::default()
    }

    /// One that keeps the events of the start, which is now.
    pub fn of_the_start() -> Self {
        let kept = Kept { until: Instant::now() + START, frames: VecDeque::with_capacity(BUFFER) };
        let audience = Audience { subscribers: Vec::new(), kept: Some(kept) };
        Self { audience: Arc::new(Mutex::new(audience)) }
    }

    /// Tells every subscriber that wants it. Never blocks.
    pub fn publish(&self, event: &Event) {
        let kind = event.kind();
        let mut audience = self.lock();
        let wanted = audience.subscribers.iter().any(|one| one.kinds.contains(kind));
        let kept = is_of_the_start(event) && audience.kept().is_some();
        if !wanted && !kept {
            return;
        }
        let json: Arc<str> = match event.to_json(Timestamp::now()) {
            Ok(json) => json.into(),
            Err(error) => {
                log::error!("event {kind} cannot be written as JSON: {error}");
                return;
            }
        };
        if let (true, Some(kept)) = (kept, &mut audience.kept) {
            kept.keep(Frame { kind, json: Arc::clone(&json), lost: 0 });
        }
        for subscriber in audience.subscribers.iter_mut().filter(|s| s.kinds.contains(kind)) {
            subscriber.offer(Frame { kind, json: Arc::clone(&json), lost: subscriber.lost });
        }
    }

    /// Events published from now on, and those kept of the start. `ring` is called after each that fitted into the buffer;
    /// it must not block.
    pub fn subscribe(&self, kinds: Kinds, ring: impl Fn() + Send + 'static) -> Subscription {
        let (sender, receiver) = bounded(BUFFER);
        let mut audience = self.lock();
        let id = audience.subscribers.last().map_or(0, |last| last.id + 1);
        let mut subscriber = Subscriber { id, kinds, sender, lost: 0, ring: Box::new(ring) };
        let kept = audience.kept().into_iter().flat_map(|kept| kept.frames.iter());
        kept.filter(|frame| kinds.contains(frame.kind))
            .for_each(|frame| subscriber.offer(frame.clone()));
        audience.subscribers.push(subscriber);
        drop(audience);
        Subscription { id, hub: self.clone(), receiver }
    }

    fn lock(&self) -> MutexGuard<'_, Audience> {
        // The list is whole between any two statements that could panic.
        self.audience.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the daemon does at its start without being asked. What clients ask for is theirs to follow.
fn is_of_the_start(event: &Event) -> bool {
    match event {
        Event::WallpaperChanged { source, .. } => *source == Source::Restore,
        Event::PlaylistImageChanged { source, .. } => source.is_some(),
        Event::BackendUnavailable { .. }
        | Event::WallpaperRestoreFailed { .. }
        | Event::ImageOrphanPurged { .. } => true,
        _ => false,
    }
}

impl Audience {
    /// What is kept, as long as it is.
    fn kept(&mut self) -> Option<&mut Kept> {
        if self.kept.as_ref().is_some_and(|kept| kept.until <= Instant::now()) {
            self.kept = None;
        }
        self.kept.as_mut()
    }
}

impl Kept {
    fn keep(&mut self, frame: Frame) {
        if self.frames.len() == BUFFER {
            self.frames.pop_front();
        }
        self.frames.push_back(frame);
    }
}

impl Subscriber {
    fn offer(&mut self, frame: Frame) {
        match self.sender.try_send(frame) {
            Ok(()) => {
                self.lost = 0;
                (self.ring)();
            }
            Err(TrySendError::Full(_)) => self.lost += 1,
            // The subscription is being dropped and will take itself off the list.
            Err(TrySendError::Disconnected(_)) => {}
        }
    }
}

impl Subscription {
    pub fn receiver(&self) -> &Receiver<Frame> {
        &self.receiver
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.hub.lock().subscribers.retain(|subscriber| subscriber.id != self.id);
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("subscribers", &self.lock().subscribers.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::GalleryDomain;

    fn gallery() -> Event {
        Event::GalleryChanged { domain: GalleryDomain::Images }
    }

    #[test]
    fn a_subscriber_hears_only_what_it_asked_for() {
        let hub = Hub::new();
        let all = hub.subscribe(Kinds::ALL, || ());
        let some = hub.subscribe([EventKind::ConfigChanged].into_iter().collect(), || ());
        hub.publish(&gallery());
        assert_eq!(all.receiver().try_recv().unwrap().kind, EventKind::GalleryChanged);
        assert!(some.receiver().is_empty());
    }

    #[test]
    fn what_does_not_fit_is_counted_for_that_subscriber_alone() {
        let hub = Hub::new();
        let slow = hub.subscribe(Kinds::ALL, || ());
        for _ in 0..BUFFER + 3 {
            hub.publish(&gallery());
        }
        let quick = hub.subscribe(Kinds::ALL, || ());
        let first = slow.receiver().try_iter().map(|frame| frame.lost).sum::<u64>();
        hub.publish(&gallery());
        assert_eq!((first, slow.receiver().try_recv().unwrap().lost), (0, 3));
        assert_eq!(quick.receiver().try_recv().unwrap().lost, 0);
        hub.publish(&gallery());
        assert_eq!(slow.receiver().try_recv().unwrap().lost, 0);
    }

    #[test]
    fn a_dropped_subscription_is_off_the_list() {
        let hub = Hub::new();
        let one = hub.subscribe(Kinds::ALL, || ());
        let two = hub.subscribe(Kinds::ALL, || ());
        drop(one);
        hub.publish(&gallery());
        assert_eq!(two.receiver().len(), 1);
        drop(two);
        assert!(hub.lock().subscribers.is_empty());
    }

    #[test]
    fn what_happened_at_the_start_is_heard_by_those_who_come_at_once() {
        let hub = Hub::of_the_start();
        let failed = || Event::WallpaperRestoreFailed { backend: "feh".into(), error: "no".into() };
        for _ in 0..BUFFER + 3 {
            hub.publish(&failed());
            hub.publish(&gallery());
        }
        let heard = |kinds| hub.subscribe(kinds, || ()).receiver().try_iter().count();
        let others = [EventKind::ConfigChanged].into_iter().collect();
        assert_eq!((heard(Kinds::ALL), heard(others)), (BUFFER, 0));
        let early = hub.subscribe(Kinds::ALL, || ());
        early.receiver().try_iter().count();
        hub.publish(&failed());
        assert_eq!(early.receiver().try_iter().count(), 1, "each but once");
        hub.lock().kept.as_mut().unwrap().until = Instant::now();
        assert_eq!((heard(Kinds::ALL), hub.lock().kept.is_some()), (0, false));
    }
}
