//! The ids that queries have found, kept until something changes that lists are made of: all pages of a
//! list come from one answer.

use std::collections::VecDeque;
use std::sync::Arc;

use super::query::Query;

/// Answers kept: a few galleries, with a filter and an order each.
const KEPT: usize = 16;
/// Ids of all of them: 4 MiB. One list may have more, as that of a million images.
const IDS_KEPT: usize = 1 << 19;

/// All ids of a list, in its order.
pub(super) type Hits = Arc<Vec<i64>>;

/// The version of the lists (see the table `library`), and the images that none of them has.
pub(super) type ListVersion = (i64, Vec<i64>);

#[derive(Debug, Default)]
pub(super) struct HitCache {
    version: ListVersion,
    /// The last used one first. Queries have no page.
    kept: VecDeque<(Query, Hits)>,
}

impl HitCache {
    pub(super) fn get(&mut self, version: &ListVersion, query: &Query) -> Option<Hits> {
        if *version != self.version {
            return None;
        }
        let at = self.kept.iter().position(|(kept, _)| kept == query)?;
        let (query, hits) = self.kept.remove(at)?;
        self.kept.push_front((query, Arc::clone(&hits)));
        Some(hits)
    }

    pub(super) fn keep(&mut self, version: &ListVersion, query: Query, hits: &Hits) {
        // A reader that began before the last change has found what is no longer so.
        if version.0 < self.version.0 {
            return;
        }
        if *version != self.version {
            self.kept.clear();
            self.version.clone_from(version);
        }
        self.kept.retain(|(kept, _)| *kept != query);
        self.kept.push_front((query, Arc::clone(hits)));
        let mut ids = 0;
        let fits = |(_, hits): &(Query, Hits)| {
            ids += hits.len();
            ids <= IDS_KEPT
        };
        let fitting = self.kept.iter().take(KEPT).map(fits).take_while(|&fits| fits).count();
        self.kept.truncate(fitting.max(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_are_those_of_one_version_and_bounded() {
        let mut cache = HitCache::default();
        let query = |word: usize| Query { search: word.to_string(), ..Query::default() };
        let hits = |number: usize| Arc::new(vec![7; number]);
        for word in 0..20 {
            cache.keep(&(5, vec![]), query(word), &hits(word));
        }
        let kept = |cache: &mut HitCache, version, word| {
            cache.get(&(version, vec![]), &query(word)).map(|hits| hits.len())
        };
        assert_eq!((kept(&mut cache, 5, 3), kept(&mut cache, 5, 4)), (None, Some(4)));
        assert_eq!((kept(&mut cache, 4, 4), kept(&mut cache, 6, 4)), (None, None));
        cache.keep(&(4, vec![]), query(50), &hits(1));
        assert_eq!(kept(&mut cache, 5, 50), None);
        // The list that was used last stays.
        cache.keep(&(5, vec![]), query(52), &hits(IDS_KEPT - 4));
        assert_eq!((kept(&mut cache, 5, 4), kept(&mut cache, 5, 19)), (Some(4), None));
        cache.keep(&(5, vec![]), query(51), &hits(IDS_KEPT + 1));
        assert_eq!(kept(&mut cache, 5, 51), Some(IDS_KEPT + 1), "one list is kept, however long");
        assert_eq!((kept(&mut cache, 5, 4), kept(&mut cache, 5, 52)), (None, None));
        cache.keep(&(6, vec![]), query(1), &hits(1));
        assert_eq!((kept(&mut cache, 6, 1), kept(&mut cache, 6, 51)), (Some(1), None));
        // Found without an image that lists have again.
        cache.keep(&(6, vec![7]), query(2), &hits(1));
        assert_eq!((kept(&mut cache, 6, 1), kept(&mut cache, 6, 2)), (None, None));
    }
}
