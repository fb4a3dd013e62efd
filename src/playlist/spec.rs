//! A playlist as it is played: its rule and its items, without what changes while it runs. Pure, but
//! for reading it from the database.

use std::sync::Arc;

use super::items::Items;
use super::schedule::Rule;
use crate::store::index::{Query, filter};
use crate::store::playlists::{self, Item};
use crate::store::{self, Connection, Store};
use crate::wire::{Playlist, PlaylistOrder, PlaylistType};

/// Which way a step leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    Backward,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct PlaylistSpec {
    pub(super) id: i64,
    pub(super) name: String,
    pub(super) kind: PlaylistType,
    pub(super) rule: Rule,
    pub(super) random: bool,
    pub(super) start_first: bool,
    /// What finds the items of one that lives; none where they are written down.
    pub(super) source: Option<Arc<Query>>,
    pub(super) items: Arc<Items>,
}

impl PlaylistSpec {
    /// None where there is no such playlist. One that lives comes without items: within a
    /// transaction the index is not to be asked ([`Self::look_up`]).
    pub(super) fn read(connection: &Connection, id: i64) -> Result<Option<Self>, store::Error> {
        let found = playlists::with_items(connection, id)?;
        found.map(|(record, items)| Self::new(record, items)).transpose()
    }

    /// The same with what the source of one that lives finds now.
    pub(super) fn find(store: &Store, id: i64) -> Result<Option<Self>, store::Error> {
        let Some(mut spec) = store.read(|c| Self::read(c, id))? else { return Ok(None) };
        if let Some(items) = spec.look_up(store)? {
            spec.items = items;
        }
        Ok(Some(spec))
    }

    fn new(record: Playlist, items: Vec<Item>) -> Result<Self, store::Error> {
        let Playlist { id, name, configuration, source, .. } = record;
        let rule = Rule::of(&configuration, &items);
        let unreadable = |bad| store::Error::Damaged {
            what: format!("the source of playlist {id} cannot be read: {bad}"),
        };
        let source = source.as_ref().map(filter::of_source).transpose().map_err(unreadable)?;
        Ok(Self {
            id,
            name,
            kind: configuration.kind,
            random: configuration.order == PlaylistOrder::Random && !rule.has_slots(),
            rule,
            start_first: configuration.always_start_on_first_image,
            source: source.map(Arc::new),
            items: Arc::new(Items::new(items)),
        })
    }

    /// What the source of one that lives finds now; none of any other.
    pub(super) fn look_up(&self, store: &Store) -> Result<Option<Arc<Items>>, store::Error> {
        let look = |source: &Arc<Query>| self.items.renewed(store, source);
        self.source.as_ref().map(look).transpose()
    }

    /// Takes over what the same source has found already, when this was read.
    pub(super) fn adopt(&mut self, other: &Self) {
        if self.source.is_some() && self.source == other.source {
            self.items = Arc::clone(&other.items);
        }
    }

    pub(super) fn ids(&self) -> Vec<i64> {
        self.items.ids()
    }

    /// The next item in the list's own order, or the one before.
    pub(super) fn beside(&self, index: usize, direction: Direction) -> usize {
        let number = self.items.len().max(1);
        match direction {
            Direction::Forward => (index + 1) % number,
            Direction::Backward => (index + number - 1) % number,
        }
    }

    /// Whether it follows the clock, so that there is nothing to step to.
    pub(super) fn has_slots(&self) -> bool {
        self.rule.has_slots()
    }

    pub(super) fn is_living(&self) -> bool {
        self.source.is_some()
    }

    /// Whether it lives, and nothing is found: it waits until something is.
    pub(super) fn rests(&self) -> bool {
        self.is_living() && self.items.is_empty()
    }
}
