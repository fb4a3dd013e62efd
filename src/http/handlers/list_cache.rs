//! ListCache of images that were written as JSON a moment ago.
//!
//! A gallery asks for the same page again and again while nothing changes. An answer is used again
//! as long as the database has not changed (its generation) and no thumbnail has come or gone.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::http::{Error, Paging};
use crate::library::Thumbnails;
use crate::store::Store;
use crate::store::index::Query;

/// ListCache kept: a few galleries with a few pages each, some hundred kilobytes.
const KEPT: usize = 16;

#[derive(Default)]
pub struct ListCache {
    /// The last used one first.
    kept: Mutex<VecDeque<List>>,
}

struct List {
    asked: Asked,
    state: State,
    json: Arc<[u8]>,
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
        (store, thumbnails): (&Store, &Thumbnails),
        make: impl FnOnce() -> Result<Vec<u8>, Error>,
    ) -> Result<Arc<[u8]>, Error> {
        // Before the list is made: what changes meanwhile makes it stale, not wrong.
        let state = State { generation: store.generation(), thumbnails: thumbnails.generation() };
        if let Some(json) = self.find(asked, &state) {
            return Ok(json);
        }
        let json: Arc<[u8]> = make()?.into();
        let list = List { asked: asked.clone(), state, json: Arc::clone(&json) };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|old| old.asked != list.asked && old.state == list.state);
        kept.truncate(KEPT - 1);
        kept.push_front(list);
        Ok(json)
    }

    fn find(&self, asked: &Asked, state: &State) -> Option<Arc<[u8]>> {
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
