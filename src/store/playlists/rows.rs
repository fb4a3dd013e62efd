//! The images of a playlist as rows. Positions have gaps, so that an edit writes what it changes:
//! each row has an entry in the index of its image, far from the others, and a thousand of those are
//! megabytes of write-ahead log.

use std::ops::Range;

use rusqlite::{Connection, params};

use super::Error;

/// Between the positions of neighbours, where there is room.
const STEP: i64 = 1 << 20;

/// An image and its minutes since midnight.
pub(super) type Row = (i64, Option<u16>);

/// Makes these the images of a playlist.
pub(super) fn put(connection: &Connection, id: i64, rows: &[Row]) -> Result<(), Error> {
    let before = read(connection, id)?;
    let same = |pair: &(&(i64, Row), &Row)| pair.0.1 == *pair.1;
    let head = before.iter().zip(rows).take_while(same).count();
    let (old, new) = (&before[head..], &rows[head..]);
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(same).count();
    let (old, new) = (&old[..old.len() - tail], &new[..new.len() - tail]);
    let low = head.checked_sub(1).map(|last| before[last].0);
    let high = before.get(before.len() - tail).map(|row| row.0);
    if let Some((first, step)) = room(low, high, new.len()) {
        if let (Some(first), Some(last)) = (old.first(), old.last()) {
            delete(connection, id, first.0..last.0 + 1)?;
        }
        insert(connection, id, new, first, step)
    } else {
        // Neighbours have come too close: all get their distance again.
        delete(connection, id, i64::MIN..i64::MAX)?;
        insert(connection, id, rows, 0, STEP)
    }
}

/// First position and distance of so many between two others; none where they do not fit.
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

fn read(connection: &Connection, id: i64) -> Result<Vec<(i64, Row)>, Error> {
    let sql = "SELECT position, image_id, time FROM playlist_image WHERE playlist_id = ?1 \
        ORDER BY position";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([id], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn delete(connection: &Connection, id: i64, positions: Range<i64>) -> Result<(), Error> {
    let sql = "DELETE FROM playlist_image \
        WHERE playlist_id = ?1 AND position >= ?2 AND position < ?3";
    connection.prepare_cached(sql)?.execute(params![id, positions.start, positions.end])?;
    Ok(())
}

fn insert(
    connection: &Connection,
    id: i64,
    rows: &[Row],
    first: i64,
    step: i64,
) -> Result<(), Error> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO playlist_image (playlist_id, position, image_id, time) VALUES (?1, ?2, ?3, ?4)",
    )?;
    for (at, (image_id, time)) in rows.iter().enumerate() {
        statement.execute(params![id, first + at as i64 * step, image_id, time])?;
    }
    Ok(())
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

    /// A playlist without images, and pictures for it.
    fn empty(store: &Store, number: u8) -> (i64, Vec<i64>) {
        let insert = |at: u8| {
            let mut picture = picture(&format!("p{at}"), at.into());
            picture.checksum[0] = at;
            store.write(|c| images::insert(c, &picture)).unwrap()
        };
        let images = (0..number).map(insert).collect();
        let change = PlaylistChange { name: Some("one".into()), ..PlaylistChange::default() };
        (store.write(|c| super::super::insert(c, &change)).unwrap(), images)
    }

    fn rows(ids: &[i64]) -> Vec<Row> {
        ids.iter().map(|&id| (id, None)).collect()
    }

    fn put_and_read(store: &Store, id: i64, wanted: &[Row]) -> Vec<i64> {
        store.write(|c| put(c, id, wanted)).unwrap();
        let (positions, found): (Vec<_>, Vec<_>) =
            store.read(|c| read(c, id)).unwrap().into_iter().unzip();
        assert_eq!(found, wanted);
        positions
    }

    #[test]
    fn an_edit_leaves_the_rows_that_it_does_not_change() {
        let (_directory, store) = scratch();
        let (id, ids) = empty(&store, 4);
        let [a, b, c, d] = ids[..] else { panic!("{ids:?}") };
        let before = put_and_read(&store, id, &rows(&[a, b, c]));
        assert_eq!(put_and_read(&store, id, &rows(&[b, c])), before[1..]);
        assert_eq!(put_and_read(&store, id, &rows(&[b, c, d]))[..2], before[1..]);
        let after = put_and_read(&store, id, &rows(&[b, a, c, d]));
        assert_eq!((after[0], after[2]), (before[1], before[2]));
        let timed = put_and_read(&store, id, &[(b, None), (a, Some(7)), (c, None), (d, None)]);
        assert_eq!(timed, after);
        assert!(put_and_read(&store, id, &[]).is_empty());
    }

    #[test]
    fn where_there_is_no_room_left_all_move() {
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
        fn whatever_the_edit_the_list_is_what_was_asked_for(
            lists in proptest::collection::vec(proptest::collection::vec((0_usize..4, proptest::option::of(0_u16..2)), 0..8), 1..12)
        ) {
            let (_directory, store) = scratch();
            let (id, ids) = empty(&store, 4);
            for list in lists {
                let wanted: Vec<Row> = list.iter().map(|&(at, time)| (ids[at], time)).collect();
                put_and_read(&store, id, &wanted);
            }
        }
    }
}
