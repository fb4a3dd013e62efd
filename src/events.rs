//! The hub: every event goes to every subscriber that asked for its kind.
//!
//! Publishing runs in the thread where the thing happened and never waits: each subscriber has a
//! buffer of [`BUFFER`] events, and what does not fit is lost for that subscriber alone and counted.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

use crate::wire::{Event, EventKind, Timestamp};

/// Events kept for a subscriber that does not read (service.md, limits).
pub const BUFFER: usize = 64;

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
    subscribers: Arc<Mutex<Vec<Subscriber>>>,
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

    /// Tells every subscriber that wants it. Never blocks.
    pub fn publish(&self, event: &Event) {
        let kind = event.kind();
        let mut subscribers = self.lock();
        if !subscribers.iter().any(|subscriber| subscriber.kinds.contains(kind)) {
            return;
        }
        let json: Arc<str> = match event.to_json(Timestamp::now()) {
            Ok(json) => json.into(),
            Err(error) => {
                log::error!("event {kind} cannot be written as JSON: {error}");
                return;
            }
        };
        for subscriber in subscribers.iter_mut().filter(|s| s.kinds.contains(kind)) {
            subscriber.offer(Frame { kind, json: Arc::clone(&json), lost: subscriber.lost });
        }
    }

    /// Events published from now on. `ring` is called after each that fitted into the buffer;
    /// it must not block.
    pub fn subscribe(&self, kinds: Kinds, ring: impl Fn() + Send + 'static) -> Subscription {
        let (sender, receiver) = bounded(BUFFER);
        let mut subscribers = self.lock();
        let id = subscribers.last().map_or(0, |last| last.id + 1);
        subscribers.push(Subscriber { id, kinds, sender, lost: 0, ring: Box::new(ring) });
        drop(subscribers);
        Subscription { id, hub: self.clone(), receiver }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Subscriber>> {
        // The list is whole between any two statements that could panic.
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.hub.lock().retain(|subscriber| subscriber.id != self.id);
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("subscribers", &self.lock().len()).finish()
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
        assert!(hub.lock().is_empty());
    }
}
