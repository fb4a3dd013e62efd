//! Stores which image each monitor shows, also for disconnected monitors. The row of a monitor whose
//! image was deleted stays without an image until the monitor shows another one.
//! The functions run in the caller's transaction.

use rusqlite::{Connection, Row, named_params};

use super::Error;
use super::row::{self, json, optional_word, word};
use crate::color;
use crate::wire::{Fit, Mode, Position, Sound, Timestamp};

/// One monitor's wallpaper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assignment {
    pub monitor: String,
    /// Below 0: a plain colour ([`color::from_image_id`]).
    pub image_id: i64,
    pub mode: Mode,
    /// The monitors that were set together, this one among them.
    pub together: Vec<String>,
    pub backend: String,
    pub set_at: Timestamp,
    /// The requested fit, if any.
    pub fit: Option<Fit>,
    /// The requested position, if any.
    pub position: Option<Position>,
    /// The sound settings made for this image on this monitor, if any.
    pub sound: Option<Sound>,
}

/// Stored instead of a monitor's name: for the last image set on all monitors, and for the image of
/// new monitors. No compositor uses such names.
const EVERY_MONITOR: &str = "*";
const DEFAULT: &str = "*default";
/// In place of a workspace: the image stands in for the assignment, whose file cannot be read.
pub(super) const STAND_IN: &str = "";
const COLUMNS: &str =
    "monitor, ifnull(image_id, color_id), mode, together, backend, set_at, fit, position, sound";

/// Sorted by monitor.
pub(crate) fn all(connection: &Connection) -> Result<Vec<Assignment>, Error> {
    let sql = format!(
        "SELECT {COLUMNS} FROM assignments WHERE substr(monitor, 1, 1) NOT IN ('*', '@') \
         AND ifnull(image_id, color_id) IS NOT NULL ORDER BY monitor"
    );
    row::all(connection.prepare_cached(&sql)?.query([])?, from_row)
}

/// The images of all connectors, of the default and of all monitors.
pub(crate) fn image_ids(connection: &Connection) -> Result<Vec<i64>, Error> {
    let sql = "SELECT DISTINCT ifnull(image_id, color_id) FROM assignments \
               WHERE substr(monitor, 1, 1) <> '@' AND ifnull(image_id, color_id) IS NOT NULL";
    let mut statement = connection.prepare_cached(sql)?;
    let ids = statement.query_map([], |row| row.get(0))?;
    Ok(ids.collect::<Result<_, _>>()?)
}

/// The image that was last set for all monitors.
pub(crate) fn for_every_monitor(connection: &Connection) -> Result<Option<Assignment>, Error> {
    of(connection, EVERY_MONITOR)
}

/// The image for a new monitor.
pub(crate) fn default(connection: &Connection) -> Result<Option<Assignment>, Error> {
    of(connection, DEFAULT)
}

fn of(connection: &Connection, monitor: &str) -> Result<Option<Assignment>, Error> {
    let sql = format!("SELECT {COLUMNS} FROM assignments WHERE monitor = ?1");
    Ok(row::all(connection.prepare_cached(&sql)?.query([monitor])?, from_row)?.pop())
}

/// Stores the image that was set for all monitors; the monitor in `assignment` is ignored.
pub(crate) fn put_for_every_monitor(
    connection: &Connection,
    assignment: &Assignment,
) -> Result<(), Error> {
    put(
        connection,
        &Assignment {
            monitor: EVERY_MONITOR.to_owned(),
            ..assignment.clone()
        },
    )
}

/// Stores the image for new monitors; the monitor in `assignment` is ignored.
pub(crate) fn put_default(connection: &Connection, assignment: &Assignment) -> Result<(), Error> {
    put(
        connection,
        &Assignment {
            monitor: DEFAULT.to_owned(),
            ..assignment.clone()
        },
    )
}

/// The columns `image_id` and `color_id` of an id, one of which is null.
pub(super) fn image_or_color(id: i64) -> [Option<i64>; 2] {
    if color::from_image_id(id).is_some() {
        [None, Some(id)]
    } else {
        [Some(id), None]
    }
}

/// Inserts or replaces a monitor's row, as the monitor shows its picture. If `set_at` is unchanged, the
/// stored sound stays: only [`set_sound`] changes it.
pub(crate) fn put(connection: &Connection, assignment: &Assignment) -> Result<(), Error> {
    let [image, color] = image_or_color(assignment.image_id);
    connection
        .prepare_cached(
            "INSERT INTO assignments \
             (monitor, image_id, color_id, mode, together, backend, set_at, fit, position, sound) VALUES \
             (:monitor, :image_id, :color_id, :mode, :together, :backend, :set_at, :fit, :position, \
             :sound) ON CONFLICT (monitor) DO UPDATE SET image_id = excluded.image_id, \
             color_id = excluded.color_id, mode = excluded.mode, together = excluded.together, \
             backend = excluded.backend, set_at = excluded.set_at, fit = excluded.fit, \
             position = excluded.position, \
             sound = CASE WHEN set_at = excluded.set_at THEN sound ELSE excluded.sound END",
        )?
        .execute(named_params! {
            ":monitor": assignment.monitor,
            ":image_id": image,
            ":color_id": color,
            ":mode": assignment.mode.as_str(),
            ":together": serde_json::json!(assignment.together).to_string(),
            ":backend": assignment.backend,
            ":set_at": assignment.set_at.as_micros(),
            ":fit": assignment.fit.map(Fit::as_str),
            ":position": assignment.position.map(|position| position.to_string()),
            ":sound": assignment.sound.map(|sound| serde_json::json!(sound).to_string()),
        })?;
    connection
        .prepare_cached("DELETE FROM workspace_picture WHERE monitor = ?1 AND workspace = ?2")?
        .execute([&*assignment.monitor, STAND_IN])?;
    Ok(())
}

/// Stores the sound of an image for a monitor, and for the workspaces that show it there.
pub(crate) fn set_sound(
    connection: &Connection,
    (monitor, image_id): (&str, i64),
    sound: Sound,
) -> Result<(), Error> {
    let sound = serde_json::json!(sound).to_string();
    for sql in [
        "UPDATE assignments SET sound = ?3 WHERE monitor = ?1 AND image_id = ?2",
        "INSERT OR REPLACE INTO workspace_sound SELECT workspace, image_id, ?3 \
         FROM workspace_picture WHERE monitor = ?1 AND image_id = ?2",
    ] {
        connection
            .prepare_cached(sql)?
            .execute((monitor, image_id, &sound))?;
    }
    Ok(())
}

/// Removes a deleted image from all assignments; returns how many monitors had it. These monitors
/// begin at the end of their history again.
pub(crate) fn purge_image(connection: &Connection, image_id: i64) -> Result<usize, Error> {
    for sql in [
        "DELETE FROM assignments WHERE image_id = ?1 AND substr(monitor, 1, 1) = '*'",
        "DELETE FROM walk WHERE monitor IN (SELECT monitor FROM assignments WHERE image_id = ?1)",
    ] {
        connection.prepare_cached(sql)?.execute([image_id])?;
    }
    let sql = "UPDATE assignments SET image_id = NULL, sound = NULL WHERE image_id = ?1";
    Ok(connection.prepare_cached(sql)?.execute([image_id])?)
}

/// The connectors of monitors whose image was deleted.
pub(crate) fn without_image(connection: &Connection) -> Result<Vec<String>, Error> {
    let sql = "SELECT monitor FROM assignments \
               WHERE ifnull(image_id, color_id) IS NULL AND substr(monitor, 1, 1) <> '@'";
    let mut statement = connection.prepare_cached(sql)?;
    let names = statement.query_map([], |row| row.get(0))?;
    Ok(names.collect::<Result<_, _>>()?)
}

fn from_row(row: &Row<'_>) -> Result<Assignment, Error> {
    Ok(Assignment {
        monitor: row.get(0)?,
        image_id: row.get(1)?,
        mode: word(row, 2)?,
        together: json(row, 3)?.unwrap_or_default(),
        backend: row.get(4)?,
        set_at: Timestamp::from_micros(row.get(5)?),
        fit: optional_word(row, 6)?,
        position: optional_word(row, 7)?,
        sound: json(row, 8).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::images;
    use crate::store::images::tests::picture;
    use crate::store::tests::scratch;

    #[test]
    fn default_and_image_of_all_monitors_are_not_listed_as_monitors() {
        let (_directory, store) = scratch();
        let [a, b] = ["a", "b"].map(|name| {
            store
                .write(|c| images::insert(c, &picture(name, 1)))
                .unwrap()
        });
        let of = |image_id, fit| Assignment {
            monitor: "DP-1".to_owned(),
            image_id,
            mode: Mode::Extend,
            together: vec!["DP-1".to_owned(), "DP-2".to_owned()],
            backend: "feh".to_owned(),
            set_at: Timestamp::from_micros(7),
            fit,
            position: fit.map(|_| "25%,0%".parse().unwrap()),
            sound: None,
        };
        let (own, every) = (of(a, Some(Fit::Contain)), of(b, None));
        let colored = of(color::image_id([30, 30, 46]), None);
        store.write(|c| put(c, &colored)).unwrap();
        assert_eq!(store.read(all).unwrap(), [colored]);
        let read = |get: fn(&Connection) -> Result<Option<Assignment>, Error>| {
            store.read(get).unwrap().map(|found| found.image_id)
        };
        assert_eq!((read(for_every_monitor), read(default)), (None, None));
        store.write(|c| put(c, &every)).unwrap();
        store.write(|c| put(c, &own)).unwrap();
        store.write(|c| put_for_every_monitor(c, &every)).unwrap();
        assert_eq!((read(for_every_monitor), read(default)), (Some(b), None));
        store.write(|c| put_default(c, &own)).unwrap();
        assert_eq!((read(for_every_monitor), read(default)), (Some(b), Some(a)));
        assert_eq!(store.read(all).unwrap(), std::slice::from_ref(&own));
        let newer = "UPDATE assignments SET fit = 'x', position = 'x', sound = '{}x' WHERE monitor = 'DP-1'";
        store
            .write(|c| c.execute(newer, []).map_err(Error::from))
            .unwrap();
        let plain = Assignment {
            fit: None,
            position: None,
            ..own.clone()
        };
        assert_eq!(
            store.read(all).unwrap(),
            [plain],
            "words of another version"
        );
        store.write(|c| put(c, &own)).unwrap();
        // `purge_image` does not count the default and the image of all monitors.
        assert_eq!(store.write(|c| purge_image(c, b)).unwrap(), 0);
        assert_eq!((read(for_every_monitor), read(default)), (None, Some(a)));
        assert_eq!(store.write(|c| purge_image(c, a)).unwrap(), 1);
        assert_eq!(store.read(without_image).unwrap(), ["DP-1"]);
        assert_eq!(
            (read(default), store.read(all).unwrap()),
            (None, Vec::new())
        );
    }
}
