//! Lists of images that were written as JSON a moment ago.
//!
//! A gallery asks for the same page again and again while nothing changes. An answer is used again
//! as long as the database has not changed (its generation) and no thumbnail has come or gone.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::http::{Error, Paging};
use crate::memory;
use crate::store::Store;
use crate::store::index::Query;

/// Lists kept: a few galleries with a few pages each.
const KEPT: usize = 16;
/// Bytes of all of them, so that pages of large web packages do not stay: a full page of pictures has
/// two hundred kilobytes.
const BYTES_KEPT: usize = 4 << 20;

#[derive(Default)]
pub struct ListCache {
    /// The last used one first.
    kept: Mutex<VecDeque<List>>,
}

struct List {
    asked: Asked,
    state: State,
    json: Arc<Vec<u8>>,
}

/// The page stands in the answer: beyond all offsets, different pages have the same query.
pub(super) type Asked = (Query, Paging);

/// Equal where the same query has the same answer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    generation: u64,
    thumbnails: u64,
}

impl ListCache {
    /// The list, or a new one from `make`.
    pub(super) fn get(
        &self,
        asked: &Asked,
        (store, thumbnails): (&Store, u64),
        make: impl FnOnce() -> Result<Vec<u8>, Error>,
    ) -> Result<Arc<Vec<u8>>, Error> {
        // Before the list is made: what changes meanwhile makes it stale, not wrong.
        let state = State { generation: store.generation(), thumbnails };
        if let Some(json) = self.find(asked, &state) {
            return Ok(json);
        }
        let mut json = make()?;
        json.shrink_to_fit();
        let json = Arc::new(json);
        self.keep(List { asked: asked.clone(), state, json: Arc::clone(&json) });
        Ok(json)
    }

    fn keep(&self, list: List) {
        if list.json.len() > BYTES_KEPT {
            // Its rows took twenty times as much, in blocks that the allocator would keep.
            memory::trim();
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|old| old.asked != list.asked && old.state == list.state);
        kept.push_front(list);
        let mut bytes = 0;
        let fits = |list: &List| {
            bytes += list.json.len();
            bytes <= BYTES_KEPT
        };
        let fitting = kept.iter().take(KEPT).map(fits).take_while(|&fits| fits).count();
        kept.truncate(fitting);
    }

    fn find(&self, asked: &Asked, state: &State) -> Option<Arc<Vec<u8>>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|list| list.state == *state && list.asked == *asked)?;
        kept.swap(0, at);
        kept.front().map(|list| Arc::clone(&list.json))
    }
}

impl fmt::Debug for ListCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListCache").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(page: u64) -> Asked {
        (Query::default(), Paging { page, per_page: 50 })
    }

    fn pages(cache: &ListCache) -> Vec<u64> {
        cache.kept.lock().unwrap().iter().map(|list| list.asked.1.page).collect()
    }

    #[test]
    fn lists_are_kept_up_to_a_number_and_a_size() {
        let cache = ListCache::default();
        let state = State { generation: 1, thumbnails: 1 };
        let keep = |page, bytes: usize, state: &State| {
            let json = vec![b' '; bytes].into();
            cache.keep(List { asked: asked(page), state: state.clone(), json });
        };
        (0..20).for_each(|page| keep(page, 1000, &state));
        assert_eq!(pages(&cache), (4..20).rev().collect::<Vec<_>>());
        // What is older than fits beside it goes.
        keep(20, BYTES_KEPT - 3000, &state);
        assert_eq!(pages(&cache), [20, 19, 18, 17]);
        assert!(cache.find(&asked(17), &state).is_some());
        keep(21, BYTES_KEPT + 1, &state);
        assert_eq!(
            pages(&cache).len(),
            4,
            "one that is larger than all that is kept drives none out"
        );
        // What was written before a change is of no use after it.
        keep(22, 10, &state);
        keep(23, 10, &State { generation: 2, ..state.clone() });
        assert_eq!(pages(&cache), [23]);
        assert!(cache.find(&asked(23), &state).is_none());
    }
}
