//! Compares the palettes of all images with the colours of a query, and keeps the ids that queries
//! have found.
//!
//! Colours are in CIELAB, rounded to hundredths: colours of three bytes stay distinct, and a ΔE
//! changes by less than 0.02.

use std::array;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use rusqlite::Connection;

use super::Error;
use super::query::{Near, Query};
use super::values::Values;
use crate::color::{Lab, lab};

/// L, a and b of a colour in steps of a hundredth, shifted so that none is negative.
pub(super) type Place = [i16; 3];

/// Steps per unit of Lab.
const STEPS: f32 = 100.0;
/// In steps; makes a and b of every sRGB colour positive.
const ORIGIN: [f32; 3] = [0.0, 9_000.0, 11_000.0];
/// A ΔE76 above that of any two sRGB colours: the largest is 259 (green and blue).
const FARTHEST: f32 = 300.0;

/// The palettes of all images.
pub(super) type Palettes = Values<Place>;

impl Palettes {
    pub(super) fn read(
        kept: &Mutex<Arc<Self>>,
        version: i64,
        connection: &Connection,
    ) -> Result<Arc<Self>, Error> {
        Self::of_version(kept, version, connection, "colors", |bytes, all| {
            all.extend(bytes.as_chunks().0.iter().map(|&rgb| place(lab(rgb))));
        })
    }

    /// Returns those of `ids` that match the colour filters of a query, and the distance of the
    /// reference's colours from their own.
    pub(super) fn matching(&self, query: &Query, ids: &[i64]) -> Vec<(i64, f32)> {
        let exact = query.colors.iter().map(|&color| (place(lab(color)), 0));
        let near = |&Near { color, within }: &Near| (place(lab(color)), limit(within));
        let wanted: Vec<(Place, i32)> = exact.chain(query.colors_near.iter().map(near)).collect();
        let has_all = |colors: &[Place]| {
            wanted
                .iter()
                .all(|&(place, limit)| nearest(colors, place) <= limit)
        };
        let like = query.similar_to;
        let like = like.map(|(id, within)| (id, groups(self.of(id)), limit(within) as f32));
        self.find(ids, |id, colors| {
            if colors.is_empty() || !has_all(colors) {
                return None;
            }
            let Some((other, reference, limit)) = &like else {
                return Some((id, 0.0));
            };
            let unlikeness = compare(colors, reference, *limit)?;
            (*other != id).then_some((id, unlikeness))
        })
    }
}

/// Colours that are compared at once, part by part; the processor does eight in a few instructions.
struct Group {
    parts: [[f32; LANES]; 3],
    count: usize,
}

const LANES: usize = 8;

fn groups(colors: &[Place]) -> Vec<Group> {
    let group = |colors: &[Place]| Group {
        parts: [0, 1, 2].map(|part| {
            array::from_fn(|at| colors.get(at).map_or(0.0, |color| f32::from(color[part])))
        }),
        count: colors.len(),
    };
    colors.chunks(LANES).map(group).collect()
}

/// Returns the sum of the distances from each colour of the reference to the nearest in `colors`;
/// `None` if no squared distance is within the limit.
fn compare(colors: &[Place], reference: &[Group], limit: f32) -> Option<f32> {
    let (mut is_near, mut sum) = (false, 0.0);
    for Group { parts, count } in reference {
        let mut least = [f32::INFINITY; LANES];
        for color in colors.iter().map(|color| color.map(f32::from)) {
            for (at, least) in least.iter_mut().enumerate() {
                let [l, a, b] = [0, 1, 2].map(|part| parts[part][at] - color[part]);
                let squared = l * l + a * a + b * b;
                *least = if squared < *least { squared } else { *least };
            }
        }
        for &squared in least.iter().take(*count) {
            is_near |= squared <= limit;
            sum += squared.sqrt();
        }
    }
    is_near.then_some(sum)
}

/// Returns the squared distance from `place` to the nearest of the colours.
fn nearest(colors: &[Place], place: Place) -> i32 {
    colors
        .iter()
        .map(|&color| distance(color, place))
        .min()
        .unwrap_or(i32::MAX)
}

/// Returns the squared distance of two colours, in steps.
fn distance(one: Place, other: Place) -> i32 {
    // As both are positive, the difference fits into 16 bits, which makes the product cheap.
    let l = i32::from(one[0].wrapping_sub(other[0]));
    let a = i32::from(one[1].wrapping_sub(other[1]));
    let b = i32::from(one[2].wrapping_sub(other[2]));
    l * l + a * a + b * b
}

/// Returns the square of a ΔE76, in steps.
fn limit(within: f32) -> i32 {
    let steps = f64::from(within.min(FARTHEST)) * f64::from(STEPS);
    (steps * steps) as i32
}

fn place(Lab { l, a, b }: Lab) -> Place {
    let mut place = [0; 3];
    for (to, (from, origin)) in place.iter_mut().zip([l, a, b].into_iter().zip(ORIGIN)) {
        *to = (from * STEPS + origin).round() as i16;
    }
    place
}

/// Number of cached results: enough for several clients with a filter and an order each.
const KEPT: usize = 16;
/// Number of ids in all cached results: 4 MiB. A single result may be larger, for example that of a
/// million images.
const IDS_KEPT: usize = 1 << 19;

/// All ids of a list, in order.
pub(super) type Hits = Arc<Vec<i64>>;

/// The version of the lists (see the table `library`), and the unreadable images, which no list
/// has.
pub(super) type ListVersion = (i64, Vec<i64>);

/// The results of the latest queries, kept until a change may affect lists, so that all pages of a
/// list come from one result.
#[derive(Debug, Default)]
pub(super) struct HitCache {
    version: ListVersion,
    /// The most recently used first. The queries have no page.
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
        // A reader that began before the last change has an outdated result.
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
        let fitting = self
            .kept
            .iter()
            .take(KEPT)
            .map(fits)
            .take_while(|&fits| fits)
            .count();
        self.kept.truncate(fitting.max(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_colors_have_distinct_places() {
        let parts = || (0..=254_u8).step_by(6).chain([254]);
        for r in parts() {
            for (g, b) in parts().flat_map(|g| parts().map(move |b| (g, b))) {
                let own = place(lab([r, g, b]));
                for other in 1..8 {
                    let next = [r + (other & 1), g + (other >> 1 & 1), b + (other >> 2)];
                    assert_ne!(own, place(lab(next)), "{r} {g} {b} and {next:?}");
                }
            }
        }
    }

    #[test]
    fn all_colors_are_within_the_farthest_distance() {
        let corner = |at: u8| [at & 1, at >> 1 & 1, at >> 2].map(|part| part * 255);
        for (one, other) in (0..8).flat_map(|one| (0..8).map(move |other| (one, other))) {
            let mut palettes = Palettes::default();
            palettes.add(1, |all| all.push(place(lab(corner(one)))));
            let found = |within| {
                let colors_near = vec![Near {
                    color: corner(other),
                    within,
                }];
                palettes
                    .matching(
                        &Query {
                            colors_near,
                            ..Query::default()
                        },
                        &[1],
                    )
                    .len()
            };
            assert_eq!(found(1e9), 1, "{one} {other}");
            assert_eq!(found(0.0), usize::from(one == other), "{one} {other}");
        }
    }

    #[test]
    fn cached_hits_are_of_one_version_and_bounded() {
        let mut cache = HitCache::default();
        let query = |word: usize| Query {
            search: word.to_string(),
            ..Query::default()
        };
        let hits = |number: usize| Arc::new(vec![7; number]);
        for word in 0..20 {
            cache.keep(&(5, vec![]), query(word), &hits(word));
        }
        let kept = |cache: &mut HitCache, version, word| {
            cache
                .get(&(version, vec![]), &query(word))
                .map(|hits| hits.len())
        };
        assert_eq!(
            (kept(&mut cache, 5, 3), kept(&mut cache, 5, 4)),
            (None, Some(4))
        );
        assert_eq!(
            (kept(&mut cache, 4, 4), kept(&mut cache, 6, 4)),
            (None, None)
        );
        cache.keep(&(4, vec![]), query(50), &hits(1));
        assert_eq!(kept(&mut cache, 5, 50), None);
        // The most recently used list stays.
        cache.keep(&(5, vec![]), query(52), &hits(IDS_KEPT - 4));
        assert_eq!(
            (kept(&mut cache, 5, 4), kept(&mut cache, 5, 19)),
            (Some(4), None)
        );
        cache.keep(&(5, vec![]), query(51), &hits(IDS_KEPT + 1));
        assert_eq!(
            kept(&mut cache, 5, 51),
            Some(IDS_KEPT + 1),
            "one list is kept, however long"
        );
        assert_eq!(
            (kept(&mut cache, 5, 4), kept(&mut cache, 5, 52)),
            (None, None)
        );
        cache.keep(&(6, vec![]), query(1), &hits(1));
        assert_eq!(
            (kept(&mut cache, 6, 1), kept(&mut cache, 6, 51)),
            (Some(1), None)
        );
        // The result was found without an image that lists have again.
        cache.keep(&(6, vec![7]), query(2), &hits(1));
        assert_eq!(
            (kept(&mut cache, 6, 1), kept(&mut cache, 6, 2)),
            (None, None)
        );
    }
}
