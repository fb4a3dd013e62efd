//! A playlist as it is played: its rule and its items, without what changes while it runs. Pure, but
//! for reading it from the database.

use std::collections::HashMap;

use super::schedule::Rule;
use crate::store::playlists::{self, Item};
use crate::store::{self, Connection};
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
    pub(super) items: Vec<Item>,
    /// Where each image comes first, for those in random order.
    indices: HashMap<i64, usize>,
}

impl PlaylistSpec {
    /// None where there is no such playlist.
    pub(super) fn read(connection: &Connection, id: i64) -> Result<Option<Self>, store::Error> {
        let found = playlists::with_items(connection, id)?;
        Ok(found.map(|(record, items)| Self::new(record, items)))
    }

    fn new(record: Playlist, items: Vec<Item>) -> Self {
        let Playlist { id, name, configuration, .. } = record;
        let rule = Rule::of(&configuration, items.iter().map(Item::minutes));
        let random =
            configuration.order == PlaylistOrder::Random && !matches!(rule, Rule::Slots(_));
        let indices = items.iter().enumerate().rev().filter(|_| random);
        Self {
            id,
            name,
            kind: configuration.kind,
            indices: indices.map(|(index, item)| (item.image_id, index)).collect(),
            random,
            rule,
            start_first: configuration.always_start_on_first_image,
            items,
        }
    }

    pub(super) fn ids(&self) -> Vec<i64> {
        self.items.iter().map(|item| item.image_id).collect()
    }

    /// Where an image comes first; only for those in random order.
    pub(super) fn index_of(&self, image_id: i64) -> Option<usize> {
        self.indices.get(&image_id).copied()
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
        matches!(self.rule, Rule::Slots(_))
    }
}
