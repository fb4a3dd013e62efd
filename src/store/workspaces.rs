//! Stores the images that monitors show instead of their assignments: for workspaces, and while the
//! file of an assignment cannot be read. The functions run in the caller's transaction.

use rusqlite::{Connection, Row, named_params};

use super::Error;
use super::assignments::{self, Assignment, STAND_IN};
use super::row;
use crate::wire::{Mode, Sound, Timestamp};

/// The image that a workspace shows on a monitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkspacePicture {
    pub workspace: String,
    /// Has the form of an assignment, but is not stored as one.
    pub row: Assignment,
}

impl WorkspacePicture {
    /// `since` is the time at which the workspace became visible.
    pub(crate) fn new(
        (workspace, monitor): (String, String),
        image_id: i64,
        backend: String,
        since: Timestamp,
    ) -> Self {
        let row = Assignment {
            monitor,
            image_id,
            mode: Mode::Individual,
            together: Vec::new(),
            backend,
            set_at: since,
            fit: None,
            position: None,
            sound: None,
        };
        Self { workspace, row }
    }
}

/// Returns those of workspaces, sorted by monitor.
pub(crate) fn all(connection: &Connection) -> Result<Vec<WorkspacePicture>, Error> {
    let mut all = with_stand_ins(connection)?;
    all.retain(|picture| picture.workspace != STAND_IN);
    Ok(all)
}

fn with_stand_ins(connection: &Connection) -> Result<Vec<WorkspacePicture>, Error> {
    let sql = "SELECT workspace, monitor, ifnull(image_id, color_id), backend, set_at, sound \
               FROM workspace_picture LEFT JOIN workspace_sound USING (workspace, image_id) ORDER BY monitor";
    row::all(connection.prepare_cached(sql)?.query([])?, from_row)
}

/// Returns the sound settings of a workspace's video.
pub(crate) fn sound(
    connection: &Connection,
    workspace: &str,
    image_id: i64,
) -> Result<Option<Sound>, Error> {
    let sql = "SELECT sound FROM workspace_sound WHERE workspace = ?1 AND image_id = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query((workspace, image_id))?;
    // Settings that cannot be read, for example of another version of murald, are ignored.
    Ok(rows
        .next()?
        .and_then(|row| row::json(row, 0).unwrap_or_default()))
}

/// Replaces all stored images of workspaces.
pub(crate) fn replace(connection: &Connection, all: &[WorkspacePicture]) -> Result<(), Error> {
    let sql = "DELETE FROM workspace_picture WHERE workspace <> ?1";
    connection.execute(sql, [STAND_IN])?;
    let mut all = all.iter();
    all.try_for_each(|WorkspacePicture { workspace, row }| put(connection, workspace, row))
}

/// Stores the image that stands in for an assignment, until the monitor's assignment is written.
pub(crate) fn put_stand_in(connection: &Connection, row: &Assignment) -> Result<(), Error> {
    put(connection, STAND_IN, row)
}

fn put(connection: &Connection, workspace: &str, row: &Assignment) -> Result<(), Error> {
    let [image, color] = assignments::image_or_color(row.image_id);
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO workspace_picture \
             (workspace, monitor, image_id, color_id, backend, set_at) \
             VALUES (:workspace, :monitor, :image_id, :color_id, :backend, :set_at)",
        )?
        .execute(named_params! {
            ":workspace": workspace,
            ":monitor": row.monitor,
            ":image_id": image,
            ":color_id": color,
            ":backend": row.backend,
            ":set_at": row.set_at.as_micros(),
        })?;
    Ok(())
}

/// Returns the wallpaper of each monitor: the image that it shows instead of its assignment, or else
/// the assignment.
pub(crate) fn shown(connection: &Connection) -> Result<Vec<Assignment>, Error> {
    let rows = assignments::all(connection)?;
    let instead = with_stand_ins(connection)?.into_iter();
    Ok(over(rows, instead.map(|picture| picture.row)))
}

/// Replaces the assignments of monitors whose workspaces have their own images.
pub(crate) fn over(
    mut rows: Vec<Assignment>,
    pictures: impl Iterator<Item = Assignment>,
) -> Vec<Assignment> {
    for picture in pictures {
        rows.retain(|row| row.monitor != picture.monitor);
        rows.push(picture);
    }
    rows.sort_by(|one, other| one.monitor.cmp(&other.monitor));
    rows
}

fn from_row(row: &Row<'_>) -> Result<WorkspacePicture, Error> {
    let since = Timestamp::from_micros(row.get(4)?);
    let names = (row.get(0)?, row.get(1)?);
    let mut picture = WorkspacePicture::new(names, row.get(2)?, row.get(3)?, since);
    picture.row.sound = row::json(row, 5).unwrap_or_default();
    Ok(picture)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::images;
    use crate::store::images::tests::picture;
    use crate::store::tests::scratch;

    #[test]
    fn image_of_a_workspace_replaces_the_assignment_while_it_exists() {
        let (_directory, store) = scratch();
        let [a, b] = ["a", "b"].map(|name| {
            store
                .write(|c| images::insert(c, &picture(name, 1)))
                .unwrap()
        });
        let of = |monitor: &str, id| {
            let names = ("2".to_owned(), monitor.to_owned());
            WorkspacePicture::new(names, id, "feh".to_owned(), Timestamp::from_micros(7))
        };
        for monitor in ["A", "B"] {
            store
                .write(|c| assignments::put(c, &of(monitor, a).row))
                .unwrap();
        }
        store.write(|c| replace(c, &[of("B", b)])).unwrap();
        assert_eq!(store.read(all).unwrap(), [of("B", b)]);
        assert_eq!(store.read(shown).unwrap(), [of("A", a).row, of("B", b).row]);
        // The sound is stored for the workspace, not in the assignment.
        let muted = Sound {
            muted: true,
            volume: 30,
        };
        store
            .write(|c| assignments::set_sound(c, ("B", b), muted))
            .unwrap();
        assert_eq!(store.read(all).unwrap()[0].row.sound, Some(muted));
        store.write(|c| replace(c, &[])).unwrap();
        assert_eq!(store.read(|c| sound(c, "2", b)).unwrap(), Some(muted));
        assert_eq!(store.read(|c| sound(c, "3", b)).unwrap(), None);
        store.write(|c| replace(c, &[of("B", b)])).unwrap();
        assert_eq!(store.read(shown).unwrap()[1].sound, Some(muted));
        let newer = "UPDATE workspace_sound SET sound = '{}x'";
        store
            .write(|c| c.execute(newer, []).map_err(Error::from))
            .unwrap();
        assert_eq!(store.read(|c| sound(c, "2", b)).unwrap(), None);
        assert_eq!(store.read(all).unwrap()[0].row.sound, None);
        store
            .write(|c| Ok::<_, Error>(c.execute("DELETE FROM image WHERE id = ?1", [b])?))
            .unwrap();
        assert_eq!(store.read(shown).unwrap(), [of("A", a).row, of("B", a).row]);
    }
}
