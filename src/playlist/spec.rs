//! The spec of a playlist: its rule and its items, without its place. Pure, except for reading
//! it from the database.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::schedule::Rule;
use crate::store::filter;
use crate::store::playlists::{self, Item};
use crate::store::query::Query;
use crate::store::{self, Connection, Store};
use crate::wire::{Playlist, PlaylistOrder, PlaylistType};

/// The direction of a step.
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
    /// The query of a dynamic playlist; none if the items are listed.
    pub(super) source: Option<Arc<Query>>,
    pub(super) items: Arc<Items>,
}

impl PlaylistSpec {
    /// None if there is no such playlist. The items of a dynamic one are missing, as the index must
    /// not be queried inside a transaction ([`Self::look_up`]).
    pub(super) fn read(connection: &Connection, id: i64) -> Result<Option<Self>, store::Error> {
        let found = playlists::with_items(connection, id)?;
        found
            .map(|(record, items)| Self::new(record, items))
            .transpose()
    }

    /// The same, with the items that the source of a dynamic playlist finds now.
    pub(super) fn find(store: &Store, id: i64) -> Result<Option<Self>, store::Error> {
        let Some(mut spec) = store.read(|c| Self::read(c, id))? else {
            return Ok(None);
        };
        if let Some(items) = spec.look_up(store)? {
            spec.items = items;
        }
        Ok(Some(spec))
    }

    fn new(record: Playlist, items: Vec<Item>) -> Result<Self, store::Error> {
        let Playlist {
            id,
            name,
            configuration,
            source,
            ..
        } = record;
        let rule = Rule::from_configuration(&configuration, &items);
        let unreadable = |bad| store::Error::Damaged {
            what: format!("the source of playlist {id} cannot be read: {bad}"),
        };
        let source = source
            .as_ref()
            .map(filter::from_source)
            .transpose()
            .map_err(unreadable)?;
        let random = match configuration.order {
            PlaylistOrder::Ordered => false,
            PlaylistOrder::Random => !rule.has_slots(),
        };
        Ok(Self {
            id,
            name,
            kind: configuration.kind,
            random,
            rule,
            start_first: configuration.always_start_on_first_image,
            source: source.map(Arc::new),
            items: Arc::new(Items::new(items)),
        })
    }

    /// The items that the source of a dynamic playlist finds now; none for any other.
    pub(super) fn look_up(&self, store: &Store) -> Result<Option<Arc<Items>>, store::Error> {
        let look = |source: &Arc<Query>| self.items.renewed(store, source);
        self.source.as_ref().map(look).transpose()
    }

    /// Adopts the items that `other` has found, if its source is the same.
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

    /// Whether it follows the clock, so that it has no steps.
    pub(super) fn has_slots(&self) -> bool {
        self.rule.has_slots()
    }

    pub(super) fn is_dynamic(&self) -> bool {
        self.source.is_some()
    }

    /// Whether it is dynamic and its source finds no image.
    pub(super) fn is_waiting(&self) -> bool {
        self.is_dynamic() && self.items.is_empty()
    }
}

#[derive(Debug, Default)]
pub(super) struct Items {
    list: Vec<Item>,
    /// The first index of each image, built by [`Self::indices`].
    indices: OnceLock<HashMap<i64, usize>>,
    /// [`Store::findings`] when a source last found this list; 0 if none did.
    found: AtomicU64,
}

impl Items {
    pub(super) fn new(list: Vec<Item>) -> Self {
        Self {
            list,
            ..Self::default()
        }
    }

    /// The items that a source finds now, if the same source has found `self` before. Queries only
    /// if something has changed since, and returns the same `Arc` if the list is the same.
    pub(super) fn renewed(
        self: &Arc<Self>,
        store: &Store,
        source: &Query,
    ) -> Result<Arc<Self>, store::Error> {
        let findings = store.findings()?;
        if self.found.load(Ordering::Relaxed) == findings {
            return Ok(Arc::clone(self));
        }
        let list = store.find_items(source)?;
        let same = list == self.list;
        let renewed = if same {
            Arc::clone(self)
        } else {
            Arc::new(Self::new(list))
        };
        renewed.found.store(findings, Ordering::Relaxed);
        Ok(renewed)
    }

    pub(super) fn ids(&self) -> Vec<i64> {
        self.list.iter().map(|item| item.image_id).collect()
    }

    /// The first index of an image. Builds no map for a single lookup.
    pub(super) fn index_of(&self, image_id: i64) -> Option<usize> {
        match self.indices.get() {
            Some(indices) => indices.get(&image_id).copied(),
            None => self.list.iter().position(|item| item.image_id == image_id),
        }
    }

    /// The first index of each image, for many lookups.
    pub(super) fn indices(&self) -> &HashMap<i64, usize> {
        self.indices.get_or_init(|| {
            let indices = self.list.iter().enumerate().rev();
            indices
                .map(|(index, item)| (item.image_id, index))
                .collect()
        })
    }
}

impl Deref for Items {
    type Target = [Item];

    fn deref(&self) -> &[Item] {
        &self.list
    }
}

/// With `Eq`, `Arc` compares equal pointers without comparing the items.
impl Eq for Items {}

impl PartialEq for Items {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::MediaType;

    /// A list that nobody has edited stays equal, however often it is read.
    #[test]
    fn items_are_equal_if_their_lists_are() {
        let items = |ids: &[i64]| {
            let item = |&image_id: &i64| Item {
                image_id,
                media_type: MediaType::Image,
                animated: false,
                time: None,
                at: None,
                when: None,
            };
            Items::new(ids.iter().map(item).collect())
        };
        let used = items(&[1, 2]);
        used.indices();
        used.found.store(7, Ordering::Relaxed);
        assert_eq!(used, items(&[1, 2]));
        assert_ne!(used, items(&[2, 1]));
    }
}
