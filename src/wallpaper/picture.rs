//! The pictures of requests, or that are shown again: their rows, history entries and events.
//!
//! Runs on the thread `reconciler`, which writes rows here once the pictures are shown.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::request::Applied;
use crate::desktop::WallpaperChange;
use crate::store::assignments::Assignment;
use crate::store::{self, Connection, Store};
use crate::wire::{Event, HistorySource, Image, Mode, Source};

/// A change that is written and must still be published.
pub(super) struct Changed {
    pub(super) change: WallpaperChange,
    pub(super) events: Vec<Event>,
}

/// A picture, and the rows of the monitors that show it.
#[derive(Clone, Debug)]
pub(super) struct Picture {
    pub(super) image: Arc<Image>,
    /// The rows to write once the picture is shown; at least one. For a picture that is shown again,
    /// only the backend in them is new.
    pub(super) rows: Vec<Assignment>,
    /// Why it is shown in place of the assignment: for a workspace, or because the assigned file cannot
    /// be read (`restore`).
    pub(super) instead: Option<Source>,
}

impl Picture {
    pub(super) fn new(image: Image, rows: Vec<Assignment>) -> Self {
        Self {
            image: Arc::new(image),
            rows,
            instead: None,
        }
    }

    pub(super) fn monitors(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().map(|row| row.monitor.as_str())
    }

    fn names(&self) -> Vec<String> {
        self.monitors().map(str::to_owned).collect()
    }

    /// The image of each monitor, if each monitor has its own.
    pub(super) fn images(&self, applied: &Applied) -> BTreeMap<String, i64> {
        match self.rows[0].mode {
            Mode::Each => applied.images.clone(),
            Mode::Individual | Mode::Clone | Mode::Extend => BTreeMap::new(),
        }
    }

    /// Writes its entry into the history.
    pub(super) fn enter(
        &self,
        transaction: &Connection,
        source: &HistorySource,
        applied: &Applied,
    ) -> Result<(), store::Error> {
        let row = &self.rows[0];
        store::history::insert(
            transaction,
            &store::history::NewEntry {
                image_id: self.image.id,
                image_name: &self.image.name,
                monitors: &self.names(),
                mode: row.mode,
                set_at: row.set_at,
                source,
                backend: &row.backend,
                fit: row.fit,
                position: row.position,
                images: &self.images(applied),
            },
        )
    }

    /// Writes which backend shows the picture now, without a history entry; returns the change to
    /// publish. The pictures of workspaces are written elsewhere.
    pub(super) fn commit_restored(&self, store: &Store) -> Result<Changed, store::Error> {
        let put = match self.instead {
            None => store::assignments::put,
            Some(Source::Restore) => store::workspaces::put_stand_in,
            Some(_) => |_: &Connection, _: &Assignment| Ok(()),
        };
        store.write(|transaction| self.rows.iter().try_for_each(|row| put(transaction, row)))?;
        let own = |row: &Assignment| (row.monitor.clone(), row.image_id);
        let each = self.rows.iter().filter(|row| row.mode == Mode::Each);
        let source = self.instead.unwrap_or(Source::Restore);
        Ok(self.changed(source, each.map(own).collect()))
    }

    pub(super) fn changed(&self, source: Source, images: BTreeMap<String, i64>) -> Changed {
        let Self { image, rows, .. } = self;
        let backend = &rows[0].backend;
        let event = Event::WallpaperChanged {
            image_id: image.id,
            media_type: image.media_type,
            path: image.library_path(),
            tags: image.tags.clone(),
            monitors: self.names(),
            mode: rows[0].mode,
            source,
            backend: backend.clone(),
            colors: image.color_texts(),
            image_name: image.name.clone(),
            color: image.color(),
            images,
        };
        let change = WallpaperChange {
            image: Arc::clone(image),
            shown: rows
                .iter()
                .map(|row| (row.monitor.clone(), row.set_at))
                .collect(),
            backend: backend.clone(),
            source,
            by_hook: false,
        };
        Changed {
            change,
            events: vec![event],
        }
    }
}

/// The picture that a request wants on a monitor.
pub(super) struct Wish {
    pub(super) ticket: u64,
    pub(super) row: Assignment,
    pub(super) image: Arc<Image>,
    /// For a step back: how far the picture lies behind that of the monitor's row.
    pub(super) back: Option<u32>,
}

/// The wishes by monitor.
pub(super) type Wishes = BTreeMap<String, Wish>;

/// How far a step back of `steps` pictures leads behind the monitor's row. Over a wish that waits, the
/// first step leads to the row.
pub(super) fn steps_behind_row(wish: Option<&Wish>, steps: u32) -> u32 {
    match wish.map(|wish| wish.back) {
        None => steps,
        Some(Some(back)) => steps.saturating_add(back),
        Some(None) => steps.saturating_sub(1),
    }
}
