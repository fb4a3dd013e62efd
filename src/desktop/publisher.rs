//! The thread `desktop`: after each change it reads what monitors show, updates the files, and reports
//! the change.
//!
//! A change that waits for a still delays no other change, and waits for a limited time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, at, bounded, never, select};

use super::directory::{self, StateDirectory};
use super::handle::{DesktopMessage, Tell};
use super::hook::{Hook, WallpaperChange};
use super::palette::{MonitorImage, Palette, Palettes, color_files, read_shown};
use super::stills::{FinishedStill, MakeStill, STILLS, Still, Stills};
use crate::color::Rgb;
use crate::compositor::Outputs;
use crate::config::ConfigHandle;
use crate::decode::Decoder;
use crate::error_chain::chain;
use crate::events::{EventBus, EventFilter, Message, Subscription};
use crate::media::PlainColors;
use crate::store::Store;
use crate::transcode::Transcoder;
use crate::wire::{EventKind, GalleryDomain};

/// How long a change waits for its still.
const STILL_WITHIN: Duration = Duration::from_secs(30);

/// The handles that the thread needs.
pub(crate) struct Sources {
    pub store: Store,
    pub bus: EventBus,
    pub outputs: Outputs,
    pub transcoder: Transcoder,
    pub decoder: Decoder,
    pub make_still: MakeStill,
    pub config: ConfigHandle,
    pub fill: FillOf,
    pub colors: PlainColors,
    /// `$XDG_STATE_HOME/murald`
    pub directory: PathBuf,
}

/// The colour that a backend shows behind transparent pixels.
pub(crate) type FillOf = Box<dyn Fn(&str) -> Rgb + Send>;

pub(super) struct Publisher {
    store: Store,
    bus: EventBus,
    outputs: Outputs,
    stills: Stills,
    made: Receiver<FinishedStill>,
    fill: FillOf,
    colors: PlainColors,
    directory: StateDirectory,
    hook: Hook,
    /// The pictures on connected monitors; `None` without a compositor.
    shown: Option<BTreeMap<String, MonitorImage>>,
    /// The content of the files, by monitor.
    published: BTreeMap<String, Palette>,
    /// Monitors whose image has no still yet, with the image.
    pending: BTreeMap<String, i64>,
    waiting: Vec<PendingChange>,
    /// The files were removed because the daemon ends.
    cleared: bool,
}

/// A change that is not reported yet.
struct PendingChange {
    changes: Vec<WallpaperChange>,
    tell: Tell,
    until: Instant,
}

impl Publisher {
    pub(super) fn new(sources: Sources, hook: Hook) -> Self {
        let Sources {
            store,
            bus,
            outputs,
            make_still,
            config,
            fill,
            colors,
            directory,
            ..
        } = sources;
        let tools = (sources.transcoder, sources.decoder);
        let (stills, made) = Stills::new(directory.join(STILLS), tools, make_still, config);
        Self {
            store,
            bus,
            outputs,
            stills,
            made,
            fill,
            colors,
            directory: StateDirectory::new(directory),
            hook,
            shown: None,
            published: BTreeMap::new(),
            pending: BTreeMap::new(),
            waiting: Vec::new(),
            cleared: false,
        }
    }

    pub(super) fn run(mut self, messages: &Receiver<DesktopMessage>, ended: &Receiver<()>) {
        let outputs = self.outputs.subscribe();
        let made = self.made.clone();
        // Names, colours and files of the shown images may change.
        let (ring, edited) = bounded(1);
        let library = subscribe(&self.bus, ring);
        self.read();
        self.update_files();
        loop {
            let late = self.waiting.iter().map(|waiting| waiting.until).min();
            select! {
                recv(messages) -> message => match message {
                    Ok(DesktopMessage::Changed(changes, tell)) => self.on_changed(changes, tell),
                    Ok(DesktopMessage::Clear(done)) => self.clear(done),
                    Err(_) => break,
                },
                recv(made) -> made => made.into_iter().for_each(|made| self.stills.on_made(made)),
                recv(outputs) -> _ => self.read(),
                recv(edited) -> _ => {
                    // Other events are ignored: a change has its own picture, and adds to the history.
                    let concerns = |news: &Message| {
                        news.lost > 0 || news.domain == Some(GalleryDomain::Images)
                    };
                    if library.receiver().try_iter().filter(concerns).count() > 0 {
                        self.read();
                    }
                }
                recv(late.map_or_else(never, at)) -> _ => {}
                recv(ended) -> _ => break,
            }
            self.update_files();
            self.report_ready_changes(Instant::now());
        }
        self.end(messages);
    }

    fn on_changed(&mut self, changes: Vec<WallpaperChange>, tell: Tell) {
        self.stills.retry_failed();
        let outputs = self.outputs.list();
        let is_connected = |name: &str| outputs.iter().any(|output| output.name == name);
        match &mut self.shown {
            Some(shown) => {
                for change in &changes {
                    let new = change
                        .shown
                        .iter()
                        .filter(|(monitor, _)| is_connected(monitor));
                    shown.extend(new.map(|(monitor, set_at)| {
                        let image = Arc::clone(&change.image);
                        (
                            monitor.clone(),
                            MonitorImage {
                                image,
                                backend: change.backend.clone(),
                                set_at: *set_at,
                            },
                        )
                    }));
                }
            }
            None => self.read(),
        }
        let until = Instant::now() + STILL_WITHIN;
        self.waiting.push(PendingChange {
            changes,
            tell,
            until,
        });
    }

    fn clear(&mut self, done: Tell) {
        self.cleared = true;
        self.directory.clear();
        done();
    }

    /// Reads what monitors show: at the start, after edits, and when outputs come or go.
    fn read(&mut self) {
        // Without a session the files stay, since all monitors may come back.
        let read = || read_shown(&self.store, &self.outputs, &self.colors);
        self.shown = match self.outputs.session().map(|_| read()) {
            Some(Ok(shown)) => Some(shown),
            None => None,
            Some(Err(error)) => {
                log::warn!("cannot read the current wallpapers: {}", chain(&error));
                None
            }
        };
    }

    /// Updates the files; a monitor keeps its old entry until its still is made.
    fn update_files(&mut self) {
        self.pending.clear();
        let (Some(all), false) = (&self.shown, self.cleared) else {
            return;
        };
        let mut before = std::mem::take(&mut self.published);
        for (monitor, shown) in all {
            let fill = (self.fill)(&shown.backend);
            let (still, colors) = match self.stills.of(&shown.image, fill) {
                Still::At(path, colors) => (Some(path), colors),
                Still::Missing => (None, None),
                Still::Pending => {
                    self.pending.insert(monitor.clone(), shown.image.id);
                    self.published.extend(before.remove_entry(monitor));
                    continue;
                }
            };
            self.published
                .insert(monitor.clone(), Palette::new(monitor, shown, still, colors));
        }
        self.write();
    }

    fn write(&mut self) {
        let still = |palette: &Palette| palette.still.clone();
        let newest = newest(&self.published);
        let stills = self
            .published
            .iter()
            .filter_map(|(monitor, palette)| Some((monitor.as_str(), palette.still.as_deref()?)));
        let used: BTreeSet<&Path> = stills.clone().map(|(_, still)| still).collect();
        let newest_still: Option<PathBuf> = newest.and_then(still);
        let links = directory::link_targets(stills, newest_still.as_deref());
        let monitors = self
            .published
            .iter()
            .map(|(name, palette)| (name.as_str(), palette));
        match color_files(&Palettes {
            newest,
            monitors: monitors.collect(),
        }) {
            Ok(files) => self.directory.write(&links, files),
            Err(error) => log::warn!("cannot write the palette as JSON: {error}"),
        }
        // After the links, because their old targets must exist until now.
        self.stills.tidy(&used);
    }

    /// Reports the changes that are ready, in order.
    fn report_ready_changes(&mut self, now: Instant) {
        let pending = &self.pending;
        let is_ready = |waiting: &mut PendingChange| {
            waiting.until <= now || waiting.changes.iter().all(|change| !waits(change, pending))
        };
        let ready: Vec<PendingChange> = self.waiting.extract_if(.., is_ready).collect();
        for PendingChange { changes, tell, .. } in ready {
            tell();
            for change in changes.iter().filter(|change| !change.by_hook) {
                self.hook.changed(change, self.still(change));
            }
        }
    }

    /// The still to which the links of a change point.
    fn still(&self, change: &WallpaperChange) -> Option<PathBuf> {
        let monitors = change.shown.iter().map(|(monitor, _)| monitor);
        let mut palettes = monitors.filter_map(|monitor| self.published.get(monitor));
        palettes
            .find(|palette| palette.image_id == change.image.id)?
            .still
            .clone()
    }

    /// Reports all remaining changes.
    fn end(mut self, messages: &Receiver<DesktopMessage>) {
        let mut rest = Vec::new();
        for message in messages.try_iter() {
            match message {
                DesktopMessage::Changed(_, tell) => rest.push(tell),
                DesktopMessage::Clear(done) => self.clear(done),
            }
        }
        if !rest.is_empty() {
            self.read();
            self.update_files();
        }
        let waiting = self.waiting.into_iter().map(|waiting| waiting.tell);
        waiting.chain(rest).for_each(|tell| tell());
    }
}

fn subscribe(bus: &EventBus, ring: Sender<()>) -> Subscription {
    // If the channel is full, the thread is about to look.
    bus.subscribe(
        [EventKind::GalleryChanged]
            .into_iter()
            .collect::<EventFilter>(),
        move || {
            ring.try_send(()).ok();
        },
    )
}

/// The palette that was set last; among those set together, that of the first monitor by name.
fn newest(published: &BTreeMap<String, Palette>) -> Option<&Palette> {
    published
        .values()
        .rev()
        .max_by_key(|palette| palette.set_at)
}

/// Whether the files of a monitor still lack this change. Monitors that show another image by now do
/// not count.
fn waits(change: &WallpaperChange, pending: &BTreeMap<String, i64>) -> bool {
    change
        .shown
        .iter()
        .any(|(monitor, _)| pending.get(monitor) == Some(&change.image.id))
}
