//! The event bus: passes every event to the subscribers that asked for its kind.
//!
//! Publishing runs on the thread where something happened and never blocks: each subscriber has a
//! buffer of [`BUFFER`] events; events that do not fit are lost for that subscriber and counted.
//! Events of the daemon's start are kept for a moment, for clients that connect as soon as
//! possible.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

use crate::sys::lock;
use crate::wire::{Event, EventKind, GalleryDomain, Source, Timestamp};

/// Number of events that are kept for a subscriber that does not read.
pub const BUFFER: usize = 64;

/// How long after the start a new subscriber still gets the events since then.
const START: Duration = Duration::from_secs(5);

/// An event as it is sent, serialised once for all subscribers.
#[derive(Clone, Debug)]
pub struct Message {
    pub kind: EventKind,
    /// The part of the library that has changed.
    pub domain: Option<GalleryDomain>,
    /// The payload, one line of JSON.
    pub json: Arc<str>,
    /// The number of events that this subscriber lost just before this one.
    pub lost: u64,
}

/// The kinds of event that a subscriber wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventFilter(u32);

impl EventFilter {
    pub const ALL: Self = Self(u32::MAX);

    pub fn contains(self, kind: EventKind) -> bool {
        self.0 & (1 << kind as u32) != 0
    }

    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl FromIterator<EventKind> for EventFilter {
    fn from_iter<I: IntoIterator<Item = EventKind>>(kinds: I) -> Self {
        Self(
            kinds
                .into_iter()
                .fold(0, |bits, kind| bits | 1 << kind as u32),
        )
    }
}

/// Publishes events; clones share the subscribers.
#[derive(Clone, Default)]
pub struct EventBus {
    state: Arc<Mutex<BusState>>,
}

#[derive(Default)]
struct BusState {
    subscribers: Vec<Subscriber>,
    startup: Option<StartupEvents>,
}

/// The latest events of the start, at most as many as a subscriber's buffer holds.
struct StartupEvents {
    until: Instant,
    messages: VecDeque<Message>,
}

struct Subscriber {
    id: u64,
    filter: EventFilter,
    sender: Sender<Message>,
    lost: u64,
    /// Called after each event that fitted into the buffer, for a reader that waits for other
    /// events, too.
    wake: Box<dyn Fn() + Send>,
}

/// Receives events; dropping it unsubscribes.
pub struct Subscription {
    id: u64,
    bus: EventBus,
    receiver: Receiver<Message>,
}

impl EventBus {
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a bus that keeps the events of the daemon's start, which is now.
    pub fn for_startup() -> Self {
        let startup = StartupEvents {
            until: Instant::now() + START,
            messages: VecDeque::with_capacity(BUFFER),
        };
        let state = BusState {
            subscribers: Vec::new(),
            startup: Some(startup),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Passes an event to every subscriber that wants it. Never blocks.
    pub fn publish(&self, event: &Event) {
        let kind = event.kind();
        let domain = match event {
            Event::GalleryChanged { domain } => Some(*domain),
            _ => None,
        };
        let mut state = self.lock();
        let wanted = state
            .subscribers
            .iter()
            .any(|one| one.filter.contains(kind));
        let kept = is_startup_event(event) && state.startup().is_some();
        if !wanted && !kept {
            return;
        }
        let json: Arc<str> = match event.to_json(Timestamp::now()) {
            Ok(json) => json.into(),
            Err(error) => {
                log::error!("cannot write event {kind} as JSON: {error}");
                return;
            }
        };
        if let (true, Some(startup)) = (kept, &mut state.startup) {
            startup.keep(Message {
                kind,
                domain,
                json: Arc::clone(&json),
                lost: 0,
            });
        }
        for subscriber in state
            .subscribers
            .iter_mut()
            .filter(|s| s.filter.contains(kind))
        {
            subscriber.offer(Message {
                kind,
                domain,
                json: Arc::clone(&json),
                lost: subscriber.lost,
            });
        }
    }

    /// Subscribes to events from now on, and to those kept from the start. `wake` is called after
    /// each event that fitted into the buffer; it must not block.
    pub fn subscribe(&self, filter: EventFilter, wake: impl Fn() + Send + 'static) -> Subscription {
        let (sender, receiver) = bounded(BUFFER);
        let mut state = self.lock();
        let id = state.subscribers.last().map_or(0, |last| last.id + 1);
        let mut subscriber = Subscriber {
            id,
            filter,
            sender,
            lost: 0,
            wake: Box::new(wake),
        };
        let kept = state
            .startup()
            .into_iter()
            .flat_map(|kept| kept.messages.iter());
        kept.filter(|message| filter.contains(message.kind))
            .for_each(|message| subscriber.offer(message.clone()));
        state.subscribers.push(subscriber);
        drop(state);
        Subscription {
            id,
            bus: self.clone(),
            receiver,
        }
    }

    fn lock(&self) -> MutexGuard<'_, BusState> {
        // A panic while the lock is held leaves the list intact.
        lock(&self.state)
    }
}

/// Whether the event reports what the daemon does by itself when it starts. Clients see the results
/// of their own requests anyway.
fn is_startup_event(event: &Event) -> bool {
    match event {
        Event::WallpaperChanged { source, .. } => {
            matches!(source, Source::Restore | Source::Workspace)
        }
        Event::PlaylistImageChanged { source, .. } => source.is_some(),
        Event::BackendUnavailable { .. }
        | Event::WallpaperRestoreFailed { .. }
        | Event::ImageOrphanPurged { .. } => true,
        _ => false,
    }
}

impl BusState {
    /// Returns the events kept for late subscribers, until their time is over.
    fn startup(&mut self) -> Option<&mut StartupEvents> {
        if self
            .startup
            .as_ref()
            .is_some_and(|startup| startup.until <= Instant::now())
        {
            self.startup = None;
        }
        self.startup.as_mut()
    }
}

impl StartupEvents {
    fn keep(&mut self, message: Message) {
        if self.messages.len() == BUFFER {
            self.messages.pop_front();
        }
        self.messages.push_back(message);
    }
}

impl Subscriber {
    fn offer(&mut self, message: Message) {
        match self.sender.try_send(message) {
            Ok(()) => {
                self.lost = 0;
                (self.wake)();
            }
            Err(TrySendError::Full(_)) => self.lost += 1,
            // The subscription is being dropped and will remove itself from the list.
            Err(TrySendError::Disconnected(_)) => {}
        }
    }
}

impl Subscription {
    pub fn receiver(&self) -> &Receiver<Message> {
        &self.receiver
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.bus
            .lock()
            .subscribers
            .retain(|subscriber| subscriber.id != self.id);
    }
}

impl fmt::Debug for EventBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventBus")
            .field("subscribers", &self.lock().subscribers.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::GalleryDomain;

    fn gallery() -> Event {
        Event::GalleryChanged {
            domain: GalleryDomain::Images,
        }
    }

    #[test]
    fn subscriber_gets_only_filtered_events() {
        let bus = EventBus::new();
        let all = bus.subscribe(EventFilter::ALL, || ());
        let some = bus.subscribe([EventKind::ConfigChanged].into_iter().collect(), || ());
        bus.publish(&gallery());
        assert_eq!(
            all.receiver().try_recv().unwrap().kind,
            EventKind::GalleryChanged
        );
        assert!(some.receiver().is_empty());
    }

    #[test]
    fn full_buffer_counts_lost_events_per_subscriber() {
        let bus = EventBus::new();
        let slow = bus.subscribe(EventFilter::ALL, || ());
        for _ in 0..BUFFER + 3 {
            bus.publish(&gallery());
        }
        let quick = bus.subscribe(EventFilter::ALL, || ());
        let first = slow
            .receiver()
            .try_iter()
            .map(|message| message.lost)
            .sum::<u64>();
        bus.publish(&gallery());
        assert_eq!((first, slow.receiver().try_recv().unwrap().lost), (0, 3));
        assert_eq!(quick.receiver().try_recv().unwrap().lost, 0);
        bus.publish(&gallery());
        assert_eq!(slow.receiver().try_recv().unwrap().lost, 0);
    }

    #[test]
    fn dropped_subscription_unsubscribes() {
        let bus = EventBus::new();
        let one = bus.subscribe(EventFilter::ALL, || ());
        let two = bus.subscribe(EventFilter::ALL, || ());
        drop(one);
        bus.publish(&gallery());
        assert_eq!(two.receiver().len(), 1);
        drop(two);
        assert!(bus.lock().subscribers.is_empty());
    }

    #[test]
    fn startup_events_are_kept_for_early_subscribers() {
        let bus = EventBus::for_startup();
        let failed = || Event::WallpaperRestoreFailed {
            backend: "feh".into(),
            error: "no".into(),
        };
        for _ in 0..BUFFER + 3 {
            bus.publish(&failed());
            bus.publish(&gallery());
        }
        let heard = |filter| bus.subscribe(filter, || ()).receiver().try_iter().count();
        let others = [EventKind::ConfigChanged].into_iter().collect();
        assert_eq!((heard(EventFilter::ALL), heard(others)), (BUFFER, 0));
        let early = bus.subscribe(EventFilter::ALL, || ());
        early.receiver().try_iter().count();
        bus.publish(&failed());
        assert_eq!(early.receiver().try_iter().count(), 1, "each but once");
        bus.lock().startup.as_mut().unwrap().until = Instant::now();
        assert_eq!(
            (heard(EventFilter::ALL), bus.lock().startup.is_some()),
            (0, false)
        );
    }
}
