//! Stores the images of a playlist as rows, so that an edit writes only the rows it changes.
//!
//! Each row has an entry in the index by image, on a page of its own: writing a thousand of them
//! costs megabytes of write-ahead log. So a moved row keeps its number, and positions have gaps for
//! insertions.

use std::collections::HashMap;

use rusqlite::{Connection, params};

use super::Error;
use crate::store::assignments::image_or_color;
use crate::wire::Tone;

/// The usual distance between the positions of neighbours.
const STEP: i64 = 1 << 20;

/// An image and its time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) image_id: i64,
    /// Minutes since midnight if the playlist is of type `time_of_day`; otherwise not validated.
    pub(super) time: Option<i64>,
    /// A [`DayTime`](crate::wire::DayTime) if the playlist is of type `time_of_day`; otherwise not
    /// validated.
    pub(super) at: Option<String>,
    /// Light or dark, in a playlist of type `appearance`.
    pub(super) when: Option<Tone>,
}

/// A row in the database.
struct Kept {
    number: i64,
    position: i64,
    row: Row,
}

/// Returns the images of a playlist.
pub(super) fn get(connection: &Connection, id: i64) -> Result<Vec<Row>, Error> {
    Ok(read(connection, id)?
        .into_iter()
        .map(|kept| kept.row)
        .collect())
}

/// Sets the images of a playlist; returns whether they changed.
pub(super) fn put(connection: &Connection, id: i64, rows: &[Row]) -> Result<bool, Error> {
    let before = read(connection, id)?;
    let same = |(kept, row): &(&Kept, &Row)| kept.row == **row;
    let head = before.iter().zip(rows).take_while(same).count();
    let (old, new) = (&before[head..], &rows[head..]);
    let tail = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take_while(same)
        .count();
    let (old, new) = (&old[..old.len() - tail], &new[..new.len() - tail]);
    if old.is_empty() && new.is_empty() {
        return Ok(false);
    }
    let low = head.checked_sub(1).map(|last| before[last].position);
    let high = before.get(before.len() - tail).map(|kept| kept.position);
    let unused = before
        .iter()
        .map(|kept| kept.number + 1)
        .max()
        .unwrap_or_default();
    match room(low, high, new.len()) {
        Some((first, step)) => replace(connection, id, old, new, unused, first, step)?,
        // The gap is too small: renumber all positions.
        None => replace(connection, id, &before, rows, unused, 0, STEP)?,
    }
    Ok(true)
}

/// Returns the first position and the distance for `number` rows between two others; `None` if they
/// do not fit.
fn room(low: Option<i64>, high: Option<i64>, number: usize) -> Option<(i64, i64)> {
    let number = number as i64;
    match (low, high) {
        (None, None) => Some((0, STEP)),
        (Some(low), None) => Some((low + STEP, STEP)),
        (None, Some(high)) => Some((high - number * STEP, STEP)),
        (Some(low), Some(high)) => {
            let step = (high - low) / (number + 1);
            (step > 0).then_some((low + step, step))
        }
    }
}

/// Replaces `old` with `new`. Rows of images that stay are moved; new rows get numbers from
/// `unused` on.
fn replace(
    connection: &Connection,
    id: i64,
    old: &[Kept],
    new: &[Row],
    unused: i64,
    first: i64,
    step: i64,
) -> Result<(), Error> {
    let mut free: HashMap<i64, Vec<i64>> = HashMap::new();
    for kept in old.iter().rev() {
        free.entry(kept.row.image_id).or_default().push(kept.number);
    }
    let mut shift = connection.prepare_cached(
        "UPDATE playlist_image SET position = ?3, time = ?4, at = ?5, tone = ?6 \
         WHERE playlist_id = ?1 AND row = ?2",
    )?;
    let mut add = connection.prepare_cached(
        "INSERT INTO playlist_image (playlist_id, row, position, time, at, tone, image_id, color_id) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    let mut numbers = unused..;
    for (
        Row {
            image_id,
            time,
            at,
            when,
        },
        place,
    ) in new.iter().zip(0..)
    {
        let tone = when.map(Tone::as_str);
        let position = first + place * step;
        if let Some(number) = free.get_mut(image_id).and_then(Vec::pop) {
            shift.execute(params![id, number, position, time, at, tone])?;
        } else if let Some(number) = numbers.next() {
            let [image, color] = image_or_color(*image_id);
            add.execute(params![id, number, position, time, at, tone, image, color])?;
        }
    }
    let sql = "DELETE FROM playlist_image WHERE playlist_id = ?1 AND row = ?2";
    let mut remove = connection.prepare_cached(sql)?;
    for number in free.into_values().flatten() {
        remove.execute([id, number])?;
    }
    Ok(())
}

/// Returns the rows in order.
fn read(connection: &Connection, id: i64) -> Result<Vec<Kept>, Error> {
    let sql = "SELECT row, position, ifnull(image_id, color_id), time, at, tone FROM playlist_image \
        WHERE playlist_id = ?1 ORDER BY position";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([id], |row| {
        let (number, position) = (row.get(0)?, row.get(1)?);
        let tone: Option<String> = row.get(5)?;
        let when = tone.and_then(|tone| tone.parse().ok());
        let row = Row {
            image_id: row.get(2)?,
            time: row.get(3)?,
            at: row.get(4)?,
            when,
        };
        Ok(Kept {
            number,
            position,
            row,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;
    use crate::store::images;
    use crate::store::images::tests::picture;
    use crate::store::playlists::PlaylistChange;
    use crate::store::tests::scratch;
    use proptest::prelude::*;

    /// Creates a playlist without images, and images for it.
    fn empty(store: &Store, number: u8) -> (i64, Vec<i64>) {
        let insert = |at: u8| {
            let mut picture = picture(&format!("p{at}"), at.into());
            picture.checksum[0] = at;
            store.write(|c| images::insert(c, &picture)).unwrap()
        };
        let images = (0..number).map(insert).collect();
        let change = PlaylistChange {
            name: Some("one".into()),
            ..PlaylistChange::default()
        };
        (
            store.write(|c| super::super::insert(c, &change)).unwrap(),
            images,
        )
    }

    fn timed(image_id: i64, time: Option<i64>) -> Row {
        Row {
            image_id,
            time,
            at: time.map(|time| time.to_string()),
            when: None,
        }
    }

    fn rows(ids: &[i64]) -> Vec<Row> {
        ids.iter().map(|&id| timed(id, None)).collect()
    }

    /// Stores the rows and returns their numbers and positions, in order.
    fn put_and_read(store: &Store, id: i64, wanted: &[Row]) -> Vec<(i64, i64)> {
        store.write(|c| put(c, id, wanted)).unwrap();
        let kept = store.read(|c| read(c, id)).unwrap();
        assert_eq!(
            kept.iter().map(|kept| kept.row.clone()).collect::<Vec<_>>(),
            wanted
        );
        kept.iter()
            .map(|kept| (kept.number, kept.position))
            .collect()
    }

    #[test]
    fn edit_writes_only_changed_rows() {
        let (_directory, store) = scratch();
        let (id, ids) = empty(&store, 4);
        let [a, b, c, d] = ids[..] else {
            panic!("{ids:?}")
        };
        let before = put_and_read(&store, id, &rows(&[a, b, c]));
        assert_eq!(put_and_read(&store, id, &rows(&[b, c])), before[1..]);
        assert_eq!(
            put_and_read(&store, id, &rows(&[b, c, d]))[..2],
            before[1..]
        );
        let after = put_and_read(&store, id, &rows(&[b, a, c, d]));
        assert_eq!((after[0], after[2]), (before[1], before[2]));
        let [b_, a_, c_, d_] =
            [(b, None), (a, Some(7)), (c, None), (d, None)].map(|(id, time)| timed(id, time));
        assert_eq!(put_and_read(&store, id, &[b_, a_, c_, d_]), after);
        // In another order, images keep their row numbers.
        let mut turned = put_and_read(&store, id, &rows(&[d, c, a, b]));
        turned.reverse();
        let numbers = |rows: &[(i64, i64)]| rows.iter().map(|row| row.0).collect::<Vec<_>>();
        assert_eq!(numbers(&turned), numbers(&after));
        assert!(put_and_read(&store, id, &[]).is_empty());
    }

    #[test]
    fn positions_are_renumbered_if_no_gap_is_left() {
        let (_directory, store) = scratch();
        let (id, ids) = empty(&store, 3);
        let mut list = vec![ids[0], ids[1]];
        let mut moved = false;
        for _ in 0..50 {
            let before = put_and_read(&store, id, &rows(&list));
            list.insert(1, ids[2]);
            let after = put_and_read(&store, id, &rows(&list));
            moved |= before.last() != after.last();
        }
        assert!(moved && list.len() == 52);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn edited_list_is_read_back(
            lists in proptest::collection::vec(proptest::collection::vec((0_usize..4, proptest::option::of(0_i64..2)), 0..8), 1..12)
        ) {
            let (_directory, store) = scratch();
            let (id, ids) = empty(&store, 4);
            for list in lists {
                let wanted: Vec<Row> = list.iter().map(|&(at, time)| timed(ids[at], time)).collect();
                put_and_read(&store, id, &wanted);
            }
        }
    }
}
