//! The index against a plain scan over the same entries, and its tables.

use super::*;
use crate::color::{self, hue_group};
use crate::wire::collate::{folded, sort_key};
use crate::wire::{MediaFilter, Orientation};

fn entry(id: i64) -> Entry {
    // Every value has its own period, so that all combinations come up.
    let n = id as u64;
    let pick = |step: u64| (n.wrapping_mul(step) >> 3) as u8;
    let grey = pick(37);
    let colors = match n % 6 {
        0 => vec![],
        1 => vec![[grey; 3]],
        // As many as somebody may set by hand.
        2 => (0..12).map(|at| [pick(91 + at), pick(53 * at), pick(17)]).collect(),
        _ => vec![[pick(91), pick(53), pick(17)], [grey; 3], [200, 30, pick(29)]],
    };
    Entry {
        id,
        name: format!("{} {}", ["Lake", "forest", "Äther", "night sky"][n as usize % 4], n % 7),
        title: n.is_multiple_of(9).then(|| "E\u{301}cran calme".to_owned()),
        media_type: if n.is_multiple_of(5) { MediaType::Video } else { MediaType::Image },
        animated: n.is_multiple_of(7),
        folder_id: [None, Some(1), Some(2)][n as usize % 3],
        tags: ["Blue", "dark", "calm"].iter().take(n as usize % 4).map(|t| t.to_string()).collect(),
        hue_group: hue_group(&colors),
        colors,
        size: (600 + 100 * (n % 5) as u32, 700 + 100 * (n % 3) as u32),
        file_size: n % 11,
        imported_at: 1000 - (n as i64 % 13),
    }
}

fn queries() -> Vec<Query> {
    let near = |color, within| Near { color, within };
    let some = |change: &dyn Fn(&mut Query)| {
        let mut query = Query { limit: 1000, ..Query::default() };
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
        some(&|q| q.search = "écRAN calm".into()),
        some(&|q| q.search = "A\u{308}th".into()),
        some(&|q| q.tags = vec!["Blue".into(), "dark".into()]),
        some(&|q| q.tags = vec!["bLUE".into(), "LAKE".into()]),
        some(&|q| q.tags = vec!["no such".into()]),
        some(&|q| q.folder = Some(None)),
        some(&|q| q.folder = Some(Some(2))),
        some(&|q| q.hue_groups = vec![99]),
        some(&|q| q.hue_groups = vec![0, 11, 7]),
        some(&|q| q.colors = vec![entry(3).colors[0]]),
        some(&|q| q.colors_near = vec![near([200, 30, 40], 12.0), near([128; 3], 20.0)]),
        some(&|q| q.orientation = Some(Orientation::Portrait)),
        some(&|q| q.orientation = Some(Orientation::Square)),
        some(&|q| (q.min_width, q.min_height) = (800, 800)),
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
            queries.push(some(&|q| (q.sort_by, q.descending) = (*sort_by, descending)));
            queries.push(some(&|q| {
                (q.sort_by, q.descending) = (*sort_by, descending);
                (q.offset, q.limit, q.media_type) = (7, 5, Some(MediaFilter::Image));
            }));
            queries.push(some(&|q| {
                (q.sort_by, q.descending) = (*sort_by, descending);
                (q.offset, q.limit, q.media_type) = (157, 50, Some(MediaFilter::Image));
            }));
            // So few that they are sorted by themselves.
            queries.push(some(&|q| {
                (q.sort_by, q.descending, q.search) = (*sort_by, descending, "lake 3".into());
            }));
            queries
                .push(some(&|q| (q.sort_by, q.descending, q.offset) = (*sort_by, descending, 148)));
        }
    }
    queries
}

/// The same by looking at everything.
fn scan(entries: &[Entry], query: &Query) -> Found {
    let mut found: Vec<&Entry> =
        entries.iter().filter(|entry| fits(entries, entry, query)).collect();
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
        if query.descending && !last { ascending.reverse() } else { ascending }
    });
    let ids = found.iter().map(|entry| entry.id);
    let page = ids.skip(query.offset as usize).take(query.limit as usize).collect();
    Found { ids: page, total: found.len() as u64 }
}

/// Group, and saturation in thousandths of the colour that decides.
fn hue(entry: &Entry) -> (u8, u16) {
    let group = hue_group(&entry.colors);
    let decides = entry.colors.iter().find(|&&rgb| hue_group(&[rgb]) == group && group != 99);
    let saturation = decides.map_or(0.0, |&rgb| color::hsl(rgb).saturation);
    (group, (saturation * 1000.0) as u16)
}

fn build(entries: impl IntoIterator<Item = Entry>) -> Index {
    let mut index = Index::default();
    entries.into_iter().for_each(|entry| index.append(&entry));
    index.finish();
    index
}

fn fits(entries: &[Entry], entry: &Entry, query: &Query) -> bool {
    let close =
        |one: Rgb, other: Rgb, within| color::lab(one).distance(color::lab(other)) <= within;
    let any = |within: f32, of: &[Rgb]| {
        entry.colors.iter().any(|&one| of.iter().any(|&other| close(one, other, within)))
    };
    let title = entry.title.as_deref().unwrap_or_default();
    let text = folded(&format!("{}\n{title}\n{}", entry.name, entry.tags.join("\n")));
    let is_of = |filter| match filter {
        MediaFilter::Gif => entry.animated,
        filter => entry.media_type.as_str() == filter.as_str(),
    };
    let tagged =
        |tag: &String| entry.tags.iter().any(|own| own.to_lowercase() == tag.to_lowercase());
    query.media_type.is_none_or(is_of)
        && query.animated.is_none_or(|animated| entry.animated == animated)
        && folded(&query.search).split_whitespace().all(|word| text.contains(word))
        && query.tags.iter().all(tagged)
        && query.colors.iter().all(|color| entry.colors.contains(color))
        && query.colors_near.iter().all(|near| any(near.within, &[near.color]))
        && (query.hue_groups.is_empty() || query.hue_groups.contains(&hue_group(&entry.colors)))
        && query.orientation.is_none_or(|wanted| Orientation::of(entry.size) == wanted)
        && entry.size.0 >= query.min_width
        && entry.size.1 >= query.min_height
        && entry.name.to_lowercase().starts_with(&query.name_prefix.to_lowercase())
        && query.folder.is_none_or(|folder| entry.folder_id == folder)
        && query.similar_to.is_none_or(|(id, within)| {
            let reference = entries.iter().find(|other| other.id == id);
            entry.id != id && reference.is_some_and(|other| any(within, &other.colors))
        })
}

fn check_all(index: &Index, entries: &[Entry]) {
    for query in queries() {
        assert_eq!(index.find(&query, &Known::default()), scan(entries, &query), "{query:?}");
    }
}

#[test]
fn index_finds_what_a_scan_finds() {
    let entries: Vec<Entry> = (1..=400).map(entry).collect();
    check_all(&build(entries.iter().cloned()), &entries);
    check_all(&Index::default(), &[]);
}

#[test]
fn index_stays_in_step_with_changes() {
    let mut entries: Vec<Entry> = (1..=300).map(entry).collect();
    let mut index = build(entries.iter().cloned());
    for id in (1..=300).step_by(2) {
        index.remove(id);
    }
    entries.retain(|entry| entry.id % 2 == 0);
    for entry in entries.iter_mut().filter(|entry| entry.id % 3 == 0) {
        entry.name = format!("renamed {}", entry.id);
        entry.tags = vec!["lake".into(), ["Blue", "BLUE"][entry.id as usize % 4 / 2].into()];
        entry.animated = !entry.animated;
        entry.colors = vec![[250, 10, 10]];
        entry.hue_group = hue_group(&entry.colors);
        entry.folder_id = Some(7);
        entry.file_size += 1;
        index.put(std::slice::from_ref(entry));
    }
    for id in 301..=350 {
        entries.push(entry(id));
        index.put(&[entry(id)]);
    }
    index.remove(9999);
    check_all(&index, &entries);
    assert_eq!(index.tags(), ["BLUE", "Blue", "calm", "dark", "lake"]);
    let seventh = Query { folder: Some(Some(7)), ..Query::default() };
    let lie_there = entries.iter().filter(|e| e.folder_id == Some(7)).count() as u64;
    assert_eq!(index.find(&seventh, &Known::default()).total, lie_there);
    (1..=350).for_each(|id| index.remove(id));
    assert_eq!(index.tags(), [""; 0], "nobody has one any more");
}

#[test]
fn what_sorts_as_before_stays_where_it_is() {
    let mut entries: Vec<Entry> = (1..=300).map(entry).collect();
    let mut index = build(entries.iter().cloned());
    for entry in entries.iter_mut().filter(|entry| entry.id % 4 == 0) {
        entry.tags = vec!["calm".into()];
    }
    (0..3).for_each(|_| index.put(&entries));
    assert!(SortBy::ALL.iter().all(|&sort| index.orders.len(sort) == 300));
    check_all(&index, &entries);
    // There and back: the dead stand among the living.
    for name in ["else", "again", "else"] {
        entries[7].name = name.into();
        index.put(&entries[7..8]);
    }
    index.put(&entries[5..9]);
    assert_eq!(index.orders.len(SortBy::Name), 303);
    assert_eq!(index.orders.len(SortBy::Hue), 300);
    check_all(&index, &entries);
}

#[test]
fn index_takes_many_changes_at_once() {
    let mut entries: Vec<Entry> = (1..=100).map(entry).collect();
    let mut index = build(entries.iter().cloned());
    entries.extend((101..=400).map(entry));
    for entry in entries.iter_mut().filter(|entry| entry.id % 2 == 0) {
        entry.name = format!("{} again", entry.id % 90);
        entry.imported_at = entry.id % 50;
    }
    let changed: Vec<Entry> =
        entries.iter().filter(|entry| entry.id > 100 || entry.id % 2 == 0).cloned().collect();
    index.put(&changed);
    check_all(&index, &entries);
    assert!(!index.is_worn());
    (0..30).for_each(|_| index.put(&changed));
    assert!(index.is_worn());
    check_all(&index, &entries);
}

#[test]
fn index_is_worn_by_a_quarter_and_by_a_thousand_at_least() {
    for (living, borne) in [(400, 1000), (8000, 2000)] {
        let entries: Vec<Entry> = (1..=living).map(entry).collect();
        let mut index = build(entries.iter().cloned());
        let mut left = borne;
        while left > 0 {
            let now = entries.len().min(left);
            index.put(&entries[..now]);
            left -= now;
        }
        assert!(!index.is_worn(), "{borne} of {living}");
        index.put(&entries[..1]);
        assert!(index.is_worn(), "{borne} and one of {living}");
        assert_eq!(index.len() as i64, living);
    }
}

#[test]
fn words_that_go_and_come_back_are_found() {
    let named = |id: i64, name: String| Entry { name, ..entry(id) };
    let mut index = build((1..=300).map(|id| named(id, format!("only{id} lake lake"))));
    let found = |index: &Index, search: &str| {
        index.find(&Query { search: search.into(), ..Query::default() }, &Known::default()).total
    };
    // Far more words without an image than with one.
    (1..=290).for_each(|id| index.put(&[named(id, "lakes".into())]));
    assert_eq!(
        (found(&index, "only"), found(&index, "lake"), found(&index, "only7")),
        (10, 300, 0)
    );
    (1..=5).for_each(|id| index.put(&[named(id, format!("only{id} Lake"))]));
    assert_eq!(
        (found(&index, "only"), found(&index, "akes"), found(&index, "only5")),
        (15, 285, 1)
    );
    (1..=300).for_each(|id| index.remove(id));
    assert_eq!((found(&index, "only"), found(&index, "l")), (0, 0));
}

#[test]
fn likeness_orders_by_the_mean_of_the_nearest_colours() {
    let of = |id: i64, colors: &[Rgb]| Entry { id, colors: colors.to_vec(), ..entry(id) };
    let (red, blue) = ([200, 20, 20], [20, 20, 200]);
    let entries = [
        of(1, &[red, blue]),
        of(2, &[[210, 30, 30]]),
        of(3, &[red, blue, [0, 255, 0]]),
        of(4, &[[205, 25, 20], [25, 20, 205]]),
        of(5, &[red, blue]),
    ];
    let index = build(entries);
    let query = Query {
        similar_to: Some((1, 18.0)),
        by_likeness: true,
        limit: 3,
        offset: 0,
        ..Query::default()
    };
    let found = index.find(&query, &Known::default());
    assert_eq!((found.ids.as_slice(), found.total), (&[3, 5, 4][..], 4));
    let rest = index.find(&Query { offset: 3, ..query }, &Known::default());
    assert_eq!(rest.ids, [2]);
}

#[test]
fn likeness_is_the_mean_of_the_nearest() {
    let entries: Vec<Entry> = (1..=300).map(entry).collect();
    let index = build(entries.iter().cloned());
    let apart = |one: &Rgb, other: &Rgb| {
        let (one, other) = (color::lab(*one), color::lab(*other));
        let parts = [one.l - other.l, one.a - other.a, one.b - other.b];
        parts.map(|part| f64::from(part).powi(2)).iter().sum::<f64>().sqrt()
    };
    let unlike = |of: &Entry, other: &Entry| {
        let nearest = |one: &Rgb| other.colors.iter().map(|c| apart(one, c)).reduce(f64::min);
        let sum: f64 = of.colors.iter().filter_map(nearest).sum();
        sum / of.colors.len() as f64
    };
    // Of one colour, of three and of twelve.
    for reference in [7, 9, 8] {
        let query = Query {
            similar_to: Some((reference, 300.0)),
            by_likeness: true,
            limit: 1000,
            ..Query::default()
        };
        let found = index.find(&query, &Known::default()).ids;
        let with_colors = entries.iter().filter(|entry| !entry.colors.is_empty()).count();
        assert_eq!(found.len(), with_colors - 1);
        let of = |id: i64| &entries[id as usize - 1];
        let seen: Vec<f64> = found.iter().map(|&id| unlike(of(reference), of(id))).collect();
        // Colours are kept to a hundredth.
        for (at, pair) in seen.windows(2).enumerate() {
            assert!(pair[0] < pair[1] + 0.05, "{reference}: {at}: {pair:?}");
        }
    }
}

#[test]
fn pages_by_likeness_are_parts_of_one_order() {
    let index = build((1..=400).map(entry));
    let query = Query { similar_to: Some((9, 60.0)), by_likeness: true, ..Query::default() };
    let page = |offset, limit| {
        index.find(&Query { offset, limit, ..query.clone() }, &Known::default()).ids
    };
    let all = page(0, 1000);
    assert!(all.len() > 200, "{}", all.len());
    for limit in [1, 7, 50] {
        let offsets = (0..all.len() as u64).step_by(limit as usize);
        let pages: Vec<i64> = offsets.flat_map(|offset| page(offset, limit)).collect();
        assert_eq!(pages, all);
    }
}
