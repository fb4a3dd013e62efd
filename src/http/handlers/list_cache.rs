//! A cache of lists of images that were written as JSON a moment ago.
//!
//! A gallery asks for the same page again and again while nothing changes. An answer is used again
//! as long as the database has not changed (its generation) and no thumbnail has been added or
//! removed. A large answer that is used a second time becomes a file in memory: the kernel sends
//! its pages without a copy.

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use rustix::fs::{MemfdFlags, memfd_create};

use crate::http::connection::GATHERED;
use crate::http::response::Body;
use crate::http::{Error, Paging};
use crate::memory;
use crate::store::Store;
use crate::store::query::Query;
use crate::sys::lock;

/// Lists kept: a few galleries with a few pages each.
const KEPT: usize = 16;
/// Bytes of all of them, so that pages of large web packages do not stay: a full page of pictures has
/// two hundred kilobytes.
const BYTES_KEPT: u64 = 4 << 20;

#[derive(Default)]
pub struct ListCache {
    /// The last used one first.
    kept: Mutex<VecDeque<List>>,
}

struct List {
    asked: Asked,
    state: ListState,
    /// JSON, as bytes or in a file.
    body: Body,
}

/// The page stands in the answer: beyond all offsets, different pages have the same query.
pub(super) type Asked = (Query, Paging);

/// Equal if the same query has the same answer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ListState {
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
    ) -> Result<Body, Error> {
        // Read before the list is made: a change in between makes the list stale, not wrong.
        let state = ListState { generation: store.generation(), thumbnails };
        let body = match self.find(asked, &state) {
            Some(Body::Shared(json)) if json.len() > GATHERED => match in_file(&json) {
                Ok(body) => body,
                // Out of descriptors, say.
                Err(_) => return Ok(Body::Shared(json)),
            },
            Some(body) => return Ok(body),
            None => {
                let mut json = make()?;
                json.shrink_to_fit();
                Body::Shared(Arc::new(json))
            }
        };
        self.keep(List { asked: asked.clone(), state, body: body.clone() });
        Ok(body)
    }

    fn keep(&self, list: List) {
        if list.body.length() > BYTES_KEPT {
            // Its rows took twenty times as much, in blocks that the allocator would keep.
            memory::trim();
            return;
        }
        let mut kept = lock(&self.kept);
        kept.retain(|old| old.asked != list.asked && old.state == list.state);
        kept.push_front(list);
        let mut bytes = 0;
        let fits = |list: &List| {
            bytes += list.body.length();
            bytes <= BYTES_KEPT
        };
        let fitting = kept.iter().take(KEPT).map(fits).take_while(|&fits| fits).count();
        kept.truncate(fitting);
    }

    fn find(&self, asked: &Asked, state: &ListState) -> Option<Body> {
        let mut kept = lock(&self.kept);
        let at = kept.iter().position(|list| list.state == *state && list.asked == *asked)?;
        kept.swap(0, at);
        kept.front().map(|list| list.body.clone())
    }
}

fn in_file(json: &[u8]) -> io::Result<Body> {
    let mut file = File::from(memfd_create("list", MemfdFlags::CLOEXEC)?);
    file.write_all(json)?;
    Ok(Body::File { file: Arc::new(file), offset: 0, length: json.len() as u64 })
}

impl fmt::Debug for ListCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListCache").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

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
        let state = ListState { generation: 1, thumbnails: 1 };
        let keep = |page, bytes: u64, state: &ListState| {
            let body = Body::Shared(vec![b' '; bytes as usize].into());
            cache.keep(List { asked: asked(page), state: state.clone(), body });
        };
        (0..20).for_each(|page| keep(page, 1000, &state));
        assert_eq!(pages(&cache), (4..20).rev().collect::<Vec<_>>());
        // Older lists that do not fit beside it are dropped.
        keep(20, BYTES_KEPT - 3000, &state);
        assert_eq!(pages(&cache), [20, 19, 18, 17]);
        assert!(cache.find(&asked(17), &state).is_some());
        keep(21, BYTES_KEPT + 1, &state);
        assert_eq!(
            pages(&cache).len(),
            4,
            "one that is larger than all that is kept drives none out"
        );
        // Lists from before a change are not used after it.
        keep(22, 10, &state);
        keep(23, 10, &ListState { generation: 2, ..state.clone() });
        assert_eq!(pages(&cache), [23]);
        assert!(cache.find(&asked(23), &state).is_none());
    }

    #[test]
    fn a_large_list_that_is_asked_for_again_is_sent_from_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("db")).unwrap();
        let cache = ListCache::default();
        let get = |page, bytes: usize| {
            let make = || Ok((0..bytes).map(|at| b'a' + (at % 23) as u8).collect());
            cache.get(&asked(page), (&store, 1), make).unwrap()
        };
        let (small, large) = (GATHERED, GATHERED + 1);
        for _ in 0..3 {
            assert!(matches!(get(1, small), Body::Shared(json) if json.len() == small));
        }
        let Body::Shared(json) = get(2, large) else {
            panic!("nobody knows that it is asked again")
        };
        for _ in 0..2 {
            let Body::File { file, offset: 0, length } = get(2, 0) else { panic!("in no file") };
            let mut sent = vec![0; length as usize];
            file.read_exact_at(&mut sent, 0).unwrap();
            assert!(sent == *json);
        }
    }
}
