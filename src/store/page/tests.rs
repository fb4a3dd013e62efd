//! Tests that lists find what a plain scan finds.

mod consistency;
mod filters;

use std::path::Path;

use super::*;
use crate::color::{self, Rgb, hue_group};
use crate::store::edits::{self, ImageChange};
use crate::store::folders;
use crate::store::images::tests::{package, picture};
use crate::store::images::{NewImage, NewPackage};
use crate::store::purge;
use crate::store::query::Near;
use crate::store::tests::scratch;
use crate::store::watched::{self, Stamp, WatchedFile};
use crate::wire::collate::folded;
use crate::wire::{Format, MediaFilter, MediaType, Orientation, SortBy};

/// Returns the ids of a query's page and the total, as clients get them.
fn shown(store: &Store, query: &Query) -> (Vec<i64>, u64) {
    let mut json = b"[".to_vec();
    let write = |row: Image, json: &mut Vec<u8>| serde_json::to_writer(json, &row.id);
    let total = store.write_page(query, &mut json, write).unwrap();
    json.push(b']');
    (serde_json::from_slice(&json).unwrap(), total)
}

/// Returns the names on the first page.
pub(crate) fn names(store: &Store) -> Vec<String> {
    let mut json = b"[".to_vec();
    let write = |row: Image, json: &mut Vec<u8>| serde_json::to_writer(json, &row.name);
    let total = store
        .write_page(&Query::default(), &mut json, write)
        .unwrap();
    json.push(b']');
    let names: Vec<String> = serde_json::from_slice(&json).unwrap();
    assert_eq!(names.len() as u64, total);
    names
}

/// The columns of an image that lists depend on.
#[derive(Clone)]
struct Entry {
    id: i64,
    name: String,
    title: Option<String>,
    format: Format,
    animated: bool,
    folder_id: Option<i64>,
    tags: Vec<String>,
    colors: Vec<Rgb>,
    size: (u32, u32),
    file_size: u64,
    imported_at: i64,
}

fn entry(id: i64) -> Entry {
    // Values have different periods, so that all combinations occur.
    let n = id as u64;
    let pick = |step: u64| (n.wrapping_mul(step) >> 3) as u8;
    let grey = pick(37);
    let colors = match n % 6 {
        0 => vec![],
        1 => vec![[grey; 3]],
        // As many colours as the user may set.
        2 => (0..12)
            .map(|at| [pick(91 + at), pick(53 * at), pick(17)])
            .collect(),
        _ => vec![
            [pick(91), pick(53), pick(17)],
            [grey; 3],
            [200, 30, pick(29)],
        ],
    };
    let word = ["Lake", "forest", "Äther", "night sky"][n as usize % 4];
    let name = match n % 10 {
        // All these names have the same sort key.
        0 => format!("tie{}", "0".repeat(n as usize / 10)),
        _ => format!("{word} {} {n}", n % 7),
    };
    Entry {
        id,
        name,
        title: n.is_multiple_of(9).then(|| "E\u{301}cran calme".to_owned()),
        format: if n.is_multiple_of(5) {
            Format::Mp4
        } else {
            Format::Png
        },
        animated: n.is_multiple_of(7),
        folder_id: [None, Some(1), Some(2)][n as usize % 3],
        tags: ["Blue", "dark", "calm"]
            .iter()
            .take(n as usize % 4)
            .map(|t| t.to_string())
            .collect(),
        colors,
        size: (600 + 100 * (n % 5) as u32, 700 + 100 * (n % 3) as u32),
        file_size: n % 11,
        imported_at: 1000 - (n as i64 % 13),
    }
}

/// Creates a library with these images.
fn library(entries: &[Entry]) -> (tempfile::TempDir, Store) {
    let (directory, store) = scratch();
    store
        .write(|c| -> Result<(), folders::Refusal> {
            for (name, parent) in [("one", None), ("two", None), ("Drei", Some(2))] {
                folders::insert(c, name, parent)?;
            }
            entries.iter().try_for_each(|entry| add(c, entry))
        })
        .unwrap();
    (directory, store)
}

fn add(connection: &Connection, entry: &Entry) -> Result<(), folders::Refusal> {
    let mut checksum = [0; 32];
    checksum[..8].copy_from_slice(&entry.id.to_be_bytes());
    let web = entry.title.as_ref().map(|title| {
        let package = package("page").web.unwrap();
        let description = format!("Über {}", entry.id % 4);
        let meta = crate::wire::WebMeta {
            title: title.clone(),
            description,
            ..package.meta
        };
        NewPackage { meta, ..package }
    });
    let new = NewImage {
        format: entry.format,
        animated: entry.animated,
        folder_id: entry.folder_id,
        colors: entry.colors.clone(),
        hue_group: hue_group(&entry.colors),
        width: entry.size.0,
        height: entry.size.1,
        checksum,
        web,
        ..picture(&entry.name, entry.file_size)
    };
    let id = images::insert(connection, &new)?;
    assert_eq!(id, entry.id);
    let sql = "UPDATE image SET imported_at = ?2 WHERE id = ?1";
    connection.execute(sql, [id, entry.imported_at])?;
    edits::change(connection, id, &tagged(&entry.tags))
}

fn tagged(tags: &[impl ToString]) -> ImageChange {
    let tags = Some(
        tags.iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .into(),
    );
    ImageChange {
        tags,
        ..ImageChange::default()
    }
}

fn queries() -> Vec<Query> {
    let near = |color, within| Near { color, within };
    let some = |change: &dyn Fn(&mut Query)| {
        let mut query = Query {
            limit: 1000,
            ..Query::default()
        };
        change(&mut query);
        query
    };
    let mut queries = vec![
        some(&|_| ()),
        some(&|q| q.media_type = Some(MediaFilter::Video)),
        some(&|q| q.media_type = Some(MediaFilter::Web)),
        some(&|q| q.media_type = Some(MediaFilter::Gif)),
        some(&|q| q.animated = Some(true)),
        some(&|q| q.animated = Some(false)),
        some(&|q| (q.media_type, q.animated) = (Some(MediaFilter::Gif), Some(false))),
        some(&|q| q.search = " LAKE 3 ".into()),
        some(&|q| q.search = "äth".into()),
        some(&|q| q.search = "dark sky".into()),
        some(&|q| q.search = "k".into()),
        some(&|q| q.search = "igh AL".into()),
        some(&|q| q.search = "lakes".into()),
        some(&|q| q.search = "a\0".into()),
        some(&|q| q.search = "a% _".into()),
        some(&|q| q.search = "297".into()),
        some(&|q| q.search = "forest 121".into()),
        some(&|q| q.search = "e\0st 121".into()),
        some(&|q| q.search = "no\"thing".into()),
        some(&|q| (q.tags, q.search) = (vec!["Blue".into()], "121".into())),
        some(&|q| q.search = "dREI 1".into()),
        some(&|q| q.search = "two/d lake".into()),
        some(&|q| q.search = "écRAN calm".into()),
        some(&|q| q.search = "u\u{308}ber 2".into()),
        some(&|q| q.search = "A\u{308}th".into()),
        some(&|q| q.tags = vec!["Blue".into(), "dark".into()]),
        some(&|q| q.tags = vec!["bLUE".into(), "LAKE".into()]),
        some(&|q| q.tags = vec!["no such".into()]),
        some(&|q| q.tags = vec!["blue".into(), "BLUE".into()]),
        some(&|q| q.tags = (0..3000).map(|tag| tag.to_string()).collect()),
        some(&|q| q.search = (0..3000).map(|word| format!("{word} ")).collect()),
        some(&|q| q.search = "l a k e n i g h t s y f o r d u c m ".into()),
        some(&|q| (q.tags, q.search) = (vec!["Blue".into()], "lake".into())),
        some(&|q| q.folder = Some(None)),
        some(&|q| q.folder = Some(Some(2))),
        some(&|q| q.hue_groups = vec![99]),
        some(&|q| q.hue_groups = vec![0, 11, 7]),
        some(&|q| q.colors = vec![entry(3).colors[0]]),
        some(&|q| q.colors_near = vec![near([200, 30, 40], 12.0), near([128; 3], 20.0)]),
        some(&|q| q.orientation = Some(Orientation::Portrait)),
        some(&|q| q.orientation = Some(Orientation::Landscape)),
        some(&|q| q.orientation = Some(Orientation::Square)),
        some(&|q| (q.min_width, q.min_height) = (800, 800)),
        some(&|q| q.name = Some("A\u{308}ther 2 2".into())),
        some(&|q| q.name = Some("lake 1 8".into())),
        some(&|q| q.name_prefix = "ÄTH".into()),
        some(&|q| q.name_prefix = "lake 3".into()),
        some(&|q| q.similar_to = Some((9, 5.0))),
        some(&|q| q.similar_to = Some((100_000, 500.0))),
        some(&|q| {
            q.folder = Some(Some(1));
            q.search = "a".into();
            q.colors_near = vec![near([0; 3], 60.0)];
        }),
    ];
    for sort_by in SortBy::ALL {
        for descending in [false, true] {
            let mut sorted = |change: &dyn Fn(&mut Query)| {
                let order = Query {
                    sort_by: *sort_by,
                    descending,
                    ..some(&|_| ())
                };
                let mut query = order;
                change(&mut query);
                queries.push(query);
            };
            let media_type = Some(MediaFilter::Image);
            sorted(&|_| ());
            sorted(&|q| (q.offset, q.limit, q.media_type) = (7, 5, media_type));
            sorted(&|q| (q.offset, q.limit, q.media_type) = (157, 50, media_type));
            sorted(&|q| q.search = "lake 3".into());
            sorted(&|q| q.search = "forest 121".into());
            sorted(&|q| q.colors_near = vec![near([200, 30, 40], 12.0)]);
            sorted(&|q| q.offset = 148);
            sorted(&|q| q.offset = u64::MAX);
        }
    }
    queries
}

/// Returns the same as [`shown`] by looking at every entry.
fn scan(entries: &[Entry], query: &Query) -> (Vec<i64>, u64) {
    let mut found: Vec<&Entry> = entries
        .iter()
        .filter(|entry| fits(entries, entry, query))
        .collect();
    found.sort_by(|a, b| {
        let by_key = match query.sort_by {
            SortBy::Name => sort_key(&a.name).cmp(&sort_key(&b.name)),
            SortBy::ImportedAt => a.imported_at.cmp(&b.imported_at),
            SortBy::FileSize => a.file_size.cmp(&b.file_size),
            SortBy::Hue => hue(a).cmp(&hue(b)),
        };
        let ascending = by_key.then(a.id.cmp(&b.id));
        let neutral = |entry: &Entry| hue_group(&entry.colors) == 99;
        let last = query.sort_by == SortBy::Hue && neutral(a) != neutral(b);
        if query.descending && !last {
            ascending.reverse()
        } else {
            ascending
        }
    });
    let ids = found.iter().map(|entry| entry.id);
    let offset = usize::try_from(query.offset).unwrap();
    (
        ids.skip(offset).take(query.limit as usize).collect(),
        found.len() as u64,
    )
}

/// Returns the hue group, and the saturation of its colour in thousandths.
fn hue(entry: &Entry) -> (u8, u16) {
    let group = hue_group(&entry.colors);
    let decides = entry
        .colors
        .iter()
        .find(|&&rgb| hue_group(&[rgb]) == group && group != 99);
    let saturation = decides.map_or(0.0, |&rgb| color::hsl(rgb).saturation);
    (group, (saturation * 1000.0) as u16)
}

fn fits(entries: &[Entry], entry: &Entry, query: &Query) -> bool {
    let close =
        |one: Rgb, other: Rgb, within| color::lab(one).distance(color::lab(other)) <= within;
    let any = |within: f32, of: &[Rgb]| {
        entry
            .colors
            .iter()
            .any(|&one| of.iter().any(|&other| close(one, other, within)))
    };
    let page = entry
        .title
        .as_ref()
        .map(|title| format!("{title}\nÜber {}", entry.id % 4));
    let page = page.unwrap_or_default();
    let text = folded(&format!(
        "{}\n{page}\n{}",
        entry.name,
        entry.tags.join("\n")
    ));
    let folder = match entry.folder_id {
        Some(1) => "one",
        Some(2) => "two",
        Some(3) => "two/drei",
        _ => "",
    };
    let is_of = |filter| match filter {
        MediaFilter::Image => entry.format.media_type() == MediaType::Image,
        MediaFilter::Video => entry.format.media_type() == MediaType::Video,
        MediaFilter::Web => false,
        MediaFilter::Gif => entry.animated,
    };
    let has_tag = |tag: &String| entry.tags.iter().any(|own| folded(own) == folded(tag));
    query.media_type.is_none_or(is_of)
        && query
            .animated
            .is_none_or(|animated| entry.animated == animated)
        && folded(&query.search)
            .split_whitespace()
            .all(|word| text.contains(word) || folder.contains(word))
        && query.tags.iter().all(has_tag)
        && query
            .colors
            .iter()
            .all(|color| entry.colors.contains(color))
        && query
            .colors_near
            .iter()
            .all(|near| any(near.within, &[near.color]))
        && (query.hue_groups.is_empty() || query.hue_groups.contains(&hue_group(&entry.colors)))
        && query
            .orientation
            .is_none_or(|wanted| Orientation::from_size(entry.size) == wanted)
        && entry.size.0 >= query.min_width
        && entry.size.1 >= query.min_height
        && query
            .name
            .as_ref()
            .is_none_or(|name| name.replace("A\u{308}", "Ä") == entry.name)
        && folded(&entry.name).starts_with(&folded(&query.name_prefix))
        && query.folder.is_none_or(|folder| entry.folder_id == folder)
        && query.similar_to.is_none_or(|(id, within)| {
            let reference = entries.iter().find(|other| other.id == id);
            entry.id != id && reference.is_some_and(|other| any(within, &other.colors))
        })
}

fn check_all(store: &Store, entries: &[Entry]) {
    for query in queries() {
        // The first result comes from the database, the second from the cache.
        for _ in 0..2 {
            assert_eq!(shown(store, &query), scan(entries, &query), "{query:?}");
        }
    }
}

#[test]
fn lists_find_what_a_scan_finds() {
    let entries: Vec<Entry> = (1..=400).map(entry).collect();
    check_all(&library(&entries).1, &entries);
    check_all(&scratch().1, &[]);
}

#[test]
fn lists_follow_changes() {
    let mut entries: Vec<Entry> = (1..=300).map(entry).collect();
    let (_directory, store) = library(&entries);
    check_all(&store, &entries);
    let gone: Vec<i64> = (1..=300).step_by(2).collect();
    store.write(|c| purge::delete(c, &gone, false)).unwrap();
    entries.retain(|entry| entry.id % 2 == 0);
    check_all(&store, &entries);
    for entry in entries.iter_mut().filter(|entry| entry.id % 3 == 0) {
        entry.name = format!("renamed {}", entry.id);
        entry.tags = vec![
            "lake".into(),
            ["Blue", "BLUE"][entry.id as usize % 4 / 2].into(),
        ];
        entry.colors = vec![[250, 10, 10]];
        entry.folder_id = Some(3);
    }
    let change = |c: &Connection, entry: &Entry| {
        edits::set_name(c, entry.id, &entry.name)?;
        let colors = Some(entry.colors.clone());
        let folder_id = Some(entry.folder_id);
        edits::change(
            c,
            entry.id,
            &ImageChange {
                colors,
                folder_id,
                ..tagged(&entry.tags)
            },
        )
    };
    store
        .write(|c| {
            entries
                .iter()
                .filter(|entry| entry.id % 3 == 0)
                .try_for_each(|entry| change(c, entry))?;
            (301..=350).map(entry).try_for_each(|new| add(c, &new))
        })
        .unwrap();
    entries.extend((301..=350).map(entry));
    check_all(&store, &entries);
    assert_eq!(
        store.tags().unwrap(),
        ["BLUE", "Blue", "calm", "dark", "lake"]
    );
    let all: Vec<i64> = (1..=350).collect();
    store.write(|c| purge::delete(c, &all, false)).unwrap();
    assert_eq!(store.tags().unwrap(), [""; 0], "no image has one any more");
    check_all(&store, &[]);
}

fn likest(id: i64, within: f32, limit: u64) -> Query {
    Query {
        similar_to: Some((id, within)),
        by_likeness: true,
        limit,
        ..Query::default()
    }
}

#[test]
fn most_similar_images_come_first() {
    let (red, blue) = ([200, 20, 20], [20, 20, 200]);
    let palettes: [&[Rgb]; 5] = [
        &[red, blue],
        &[[210, 30, 30]],
        &[red, blue, [0, 255, 0]],
        &[[205, 25, 20], [25, 20, 205]],
        &[red, blue],
    ];
    let of = |(id, colors): (i64, &[Rgb])| Entry {
        colors: colors.to_vec(),
        ..entry(id)
    };
    let entries: Vec<Entry> = (1..).zip(palettes).map(of).collect();
    let (_directory, store) = library(&entries);
    let query = likest(1, 18.0, 3);
    assert_eq!(shown(&store, &query), (vec![3, 5, 4], 4));
    assert_eq!(shown(&store, &Query { offset: 3, ..query }), (vec![2], 4));
}

#[test]
fn similarity_is_the_mean_distance_of_nearest_colors() {
    let entries: Vec<Entry> = (1..=300).map(entry).collect();
    let (_directory, store) = library(&entries);
    let apart = |one: &Rgb, other: &Rgb| {
        let (one, other) = (color::lab(*one), color::lab(*other));
        let parts = [one.l - other.l, one.a - other.a, one.b - other.b];
        parts
            .map(|part| f64::from(part).powi(2))
            .iter()
            .sum::<f64>()
            .sqrt()
    };
    let unlike = |of: &Entry, other: &Entry| {
        let nearest = |one: &Rgb| other.colors.iter().map(|c| apart(one, c)).reduce(f64::min);
        let sum: f64 = of.colors.iter().filter_map(nearest).sum();
        sum / of.colors.len() as f64
    };
    // References with one, three and twelve colours.
    for reference in [7, 9, 8] {
        let (found, _) = shown(&store, &likest(reference, 300.0, 1000));
        let with_colors = entries
            .iter()
            .filter(|entry| !entry.colors.is_empty())
            .count();
        assert_eq!(found.len(), with_colors - 1);
        let of = |id: i64| &entries[id as usize - 1];
        let seen: Vec<f64> = found
            .iter()
            .map(|&id| unlike(of(reference), of(id)))
            .collect();
        // Colours are stored with a precision of a hundredth.
        for (at, pair) in seen.windows(2).enumerate() {
            assert!(pair[0] < pair[1] + 0.05, "{reference}: {at}: {pair:?}");
        }
    }
}
