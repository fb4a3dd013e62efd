//! The images that a playlist has at a time: written down, or what its source finds.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::store::index::Query;
use crate::store::playlists::Item;
use crate::store::{self, Store};

#[derive(Debug, Default)]
pub(super) struct Items {
    list: Vec<Item>,
    /// Where each image comes first: made when many are looked for.
    indices: OnceLock<HashMap<i64, usize>>,
    /// [`Store::findings`] when a source last found this; 0 where none did.
    found: AtomicU64,
}

impl Items {
    pub(super) fn new(list: Vec<Item>) -> Self {
        Self { list, ..Self::default() }
    }

    /// What a source finds now, where the same one has found `self` before: it is looked for only if
    /// something has changed since, and the list keeps its address where it is the same.
    pub(super) fn renewed(
        self: &Arc<Self>,
        store: &Store,
        source: &Query,
    ) -> Result<Arc<Self>, store::Error> {
        let findings = store.findings();
        if self.found.load(Ordering::Relaxed) == findings {
            return Ok(Arc::clone(self));
        }
        let list = store.find_items(source)?;
        let same = list == self.list;
        let renewed = if same { Arc::clone(self) } else { Arc::new(Self::new(list)) };
        renewed.found.store(findings, Ordering::Relaxed);
        Ok(renewed)
    }

    pub(super) fn ids(&self) -> Vec<i64> {
        self.list.iter().map(|item| item.image_id).collect()
    }

    /// Where an image comes first: a look for one, of a list that may be long and used once.
    pub(super) fn index_of(&self, image_id: i64) -> Option<usize> {
        match self.indices.get() {
            Some(indices) => indices.get(&image_id).copied(),
            None => self.list.iter().position(|item| item.image_id == image_id),
        }
    }

    /// The same for many looks.
    pub(super) fn indices(&self) -> &HashMap<i64, usize> {
        self.indices.get_or_init(|| {
            let indices = self.list.iter().enumerate().rev();
            indices.map(|(index, item)| (item.image_id, index)).collect()
        })
    }
}

impl Deref for Items {
    type Target = [Item];

    fn deref(&self) -> &[Item] {
        &self.list
    }
}

/// With this, two handles of one list are equal without a look at it.
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

    /// So a list that nobody has edited is no other, however often it is read.
    #[test]
    fn items_are_the_same_where_their_lists_are() {
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
