//! Stores the images of a playlist as rows.

use rusqlite::{Connection, params};

use super::{Error, Item, items};
use crate::store::assignments::image_or_color;
use crate::wire::Tone;

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

/// Returns the images of a playlist, in order.
pub(super) fn get(connection: &Connection, id: i64) -> Result<Vec<Row>, Error> {
    let row = |(item, at): (Item, Option<String>)| Row {
        image_id: item.image_id,
        time: item.time,
        at,
        when: item.when,
    };
    Ok(items(connection, id)?.into_iter().map(row).collect())
}

/// Sets the images of a playlist; returns whether they changed.
pub(super) fn put(connection: &Connection, id: i64, rows: &[Row]) -> Result<bool, Error> {
    if get(connection, id)? == rows {
        return Ok(false);
    }
    connection.execute("DELETE FROM playlist_image WHERE playlist_id = ?1", [id])?;
    let mut add = connection.prepare_cached(
        "INSERT INTO playlist_image (playlist_id, row, position, time, at, tone, image_id, color_id) \
         VALUES (?1, ?2, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for (position, row) in (0_i64..).zip(rows) {
        let tone = row.when.map(Tone::as_str);
        let [image, color] = image_or_color(row.image_id);
        add.execute(params![id, position, row.time, row.at, tone, image, color])?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::images;
    use crate::store::images::tests::picture;
    use crate::store::playlists::PlaylistChange;
    use crate::store::tests::scratch;

    #[test]
    fn edited_list_is_read_back() {
        let (_directory, store) = scratch();
        let insert = |at: u8| {
            let mut picture = picture(&format!("p{at}"), at.into());
            picture.checksum[0] = at;
            store.write(|c| images::insert(c, &picture)).unwrap()
        };
        let [a, b, c] = [0, 1, 2].map(insert);
        let change = PlaylistChange {
            name: Some("one".into()),
            ..PlaylistChange::default()
        };
        let id = store.write(|c| super::super::insert(c, &change)).unwrap();
        for list in [&[][..], &[a, b, c], &[c, a, a], &[b, c], &[]] {
            let row = |&image_id: &i64| Row {
                image_id,
                time: (image_id == a).then_some(7),
                at: (image_id == b).then(|| "dawn".to_owned()),
                when: (image_id == c).then_some(Tone::Dark),
            };
            let rows: Vec<Row> = list.iter().map(row).collect();
            let is_new = store.read(|c| get(c, id)).unwrap() != rows;
            assert_eq!(store.write(|c| put(c, id, &rows)).unwrap(), is_new);
            assert_eq!(store.read(|c| get(c, id)).unwrap(), rows);
            assert!(!store.write(|c| put(c, id, &rows)).unwrap());
        }
    }
}
