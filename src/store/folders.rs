//! Stores the folder tree, and checks its rules within the transaction that writes.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::Error;
use super::error::unless_taken;
use crate::wire::collate::{folded, sort_key};
use crate::wire::{Folder, Timestamp};

/// Maximum depth of nested folders.
pub(crate) const DEPTH_MAX: usize = 32;
/// Maximum length of a name in bytes.
pub(crate) const NAME_MAX: usize = 255;

/// Why a folder is not created, changed or moved.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("no folder with ID {id}")]
    NoFolder { id: i64 },
    /// A sibling has this name.
    #[error("a folder named {name:?} already exists here")]
    Taken { name: String },
    /// The folder would be inside itself.
    #[error("a folder cannot be moved into itself or into a folder inside it")]
    Cycle { id: i64 },
    #[error("folders can be nested at most {DEPTH_MAX} deep")]
    TooDeep,
    #[error(transparent)]
    Store(#[from] Error),
}

impl From<rusqlite::Error> for Refusal {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}

/// Selects the folders of a list.
#[derive(Clone, Debug, Default)]
pub(crate) struct FolderQuery {
    /// Folders inside this one; `None` is the root.
    pub parent: Option<i64>,
    /// Also include nested folders.
    pub deep: bool,
    /// A part of the name, ignoring case.
    pub search: Option<String>,
}

/// A folder's new values; `None` keeps the old value.
#[derive(Clone, Debug, Default)]
pub struct FolderChange {
    pub name: Option<String>,
    /// The inner `None` means the root.
    pub parent: Option<Option<i64>>,
}

const SELECT: &str = "SELECT id, name, parent_id, created_at, updated_at, \
    (SELECT count(*) FROM image WHERE folder_id = folder.id), \
    (SELECT count(*) FROM folder AS child WHERE child.parent_id = folder.id), \
    (WITH RECURSIVE within(id) AS (SELECT folder.id UNION SELECT child.id \
     FROM folder AS child JOIN within ON child.parent_id = within.id) \
     SELECT count(*) FROM image WHERE folder_id IN within) FROM folder";

pub(crate) fn exists(connection: &Connection, id: i64) -> Result<bool, Error> {
    Ok(connection
        .prepare_cached("SELECT 1 FROM folder WHERE id = ?1")?
        .exists([id])?)
}

pub(crate) fn get(connection: &Connection, id: i64) -> Result<Option<Folder>, Error> {
    let sql = format!("{SELECT} WHERE id = ?1");
    Ok(connection
        .prepare_cached(&sql)?
        .query_row([id], from_row)
        .optional()?)
}

/// Returns the folder of this name in a folder, or at the root.
pub(crate) fn child(
    connection: &Connection,
    name: &str,
    parent: Option<i64>,
) -> Result<Option<Folder>, Error> {
    let sql = format!("{SELECT} WHERE name = ?1 AND parent_id IS ?2");
    Ok(connection
        .prepare_cached(&sql)?
        .query_row(params![name, parent], from_row)
        .optional()?)
}

/// Returns folders sorted by name, in natural order.
pub(crate) fn list(connection: &Connection, query: &FolderQuery) -> Result<Vec<Folder>, Error> {
    let within = match (query.deep, query.parent) {
        (false, _) => "parent_id IS ?1",
        (true, None) => "?1 IS NULL",
        (true, Some(_)) => {
            "id IN (WITH RECURSIVE within(id) AS (SELECT id FROM folder WHERE parent_id = ?1 UNION \
             SELECT folder.id FROM folder JOIN within ON folder.parent_id = within.id) \
             SELECT id FROM within)"
        }
    };
    let sql = format!("{SELECT} WHERE {within} ORDER BY id");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut folders = statement
        .query_map([query.parent], from_row)?
        .collect::<Result<Vec<_>, _>>()?;
    // Not in SQL, as its `lower()` supports ASCII only.
    if let Some(part) = query.search.as_deref().map(folded) {
        folders.retain(|folder| folded(&folder.name).contains(&part));
    }
    folders.sort_by_cached_key(|folder| sort_key(&folder.name));
    Ok(folders)
}

/// Returns the folders from the root down to this one; empty if it does not exist.
pub(crate) fn path(connection: &Connection, id: i64) -> Result<Vec<Folder>, Error> {
    let mut path = Vec::new();
    let mut next = Some(id);
    while let Some(folder) = next.map(|id| get(connection, id)).transpose()?.flatten() {
        next = folder.parent_id;
        path.insert(0, folder);
        if path.len() > DEPTH_MAX {
            return Err(Error::Damaged {
                what: format!("folder {id} is inside itself"),
            });
        }
    }
    Ok(path)
}

/// Returns all folders with their paths from the root, folded: `photos/2015`.
pub(super) fn paths(connection: &Connection) -> Result<Vec<(i64, String)>, Error> {
    let mut statement = connection.prepare_cached(
        "WITH RECURSIVE tree(id, path) AS (SELECT id, name FROM folder WHERE parent_id IS NULL UNION ALL \
         SELECT folder.id, path || '/' || name FROM folder JOIN tree ON parent_id = tree.id) \
         SELECT id, path FROM tree",
    )?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
    let folders: Vec<_> = rows.collect::<Result<_, _>>()?;
    Ok(folders
        .into_iter()
        .map(|(id, path)| (id, folded(&path)))
        .collect())
}

pub fn insert(connection: &Connection, name: &str, parent: Option<i64>) -> Result<i64, Refusal> {
    if depth(connection, parent)? >= DEPTH_MAX {
        return Err(Refusal::TooDeep);
    }
    let now = Timestamp::now().as_micros();
    let inserted = connection
        .prepare_cached(
            "INSERT INTO folder (name, parent_id, created_at, updated_at) VALUES (?1, ?2, ?3, ?3)",
        )?
        .execute(params![name, parent, now]);
    unless_taken(inserted, || Refusal::Taken {
        name: name.to_owned(),
    })?;
    Ok(connection.last_insert_rowid())
}

/// Changes a folder; returns whether anything changed.
pub(crate) fn update(
    connection: &Connection,
    id: i64,
    change: &FolderChange,
) -> Result<bool, Refusal> {
    let folder = get(connection, id)?.ok_or(Refusal::NoFolder { id })?;
    let parent = change.parent.unwrap_or(folder.parent_id);
    let name = change.name.as_deref().unwrap_or(&folder.name);
    if parent == folder.parent_id && name == folder.name {
        return Ok(false);
    }
    if parent != folder.parent_id {
        let within = subtree(connection, id)?;
        if parent.is_some_and(|parent| within.iter().any(|&(inside, _)| inside == parent)) {
            return Err(Refusal::Cycle { id });
        }
        let height = within.iter().map(|&(_, level)| level).max().unwrap_or(1);
        if depth(connection, parent)? + height > DEPTH_MAX {
            return Err(Refusal::TooDeep);
        }
    }
    let updated = connection
        .prepare_cached(
            "UPDATE folder SET name = ?2, parent_id = ?3, updated_at = ?4 WHERE id = ?1",
        )?
        .execute(params![id, name, parent, Timestamp::now().as_micros()]);
    unless_taken(updated, || Refusal::Taken {
        name: name.to_owned(),
    })?;
    Ok(true)
}

/// Removes a folder and moves its content to its parent; returns the number of moved images. A
/// child whose name is taken there gets the suffix `_1`, `_2` and so on.
pub(crate) fn dissolve(connection: &Connection, id: i64) -> Result<usize, Refusal> {
    let folder = get(connection, id)?.ok_or(Refusal::NoFolder { id })?;
    let images = connection.execute(
        "UPDATE image SET folder_id = ?2 WHERE folder_id = ?1",
        params![id, folder.parent_id],
    )?;
    let children = list(
        connection,
        &FolderQuery {
            parent: Some(id),
            ..FolderQuery::default()
        },
    )?;
    // Rename it first: a child may have the same name, and moves beside it.
    connection.execute(
        "UPDATE folder SET name = name || char(0) || id, parent_id = ?2 WHERE id = ?1",
        params![id, folder.parent_id],
    )?;
    for child in children {
        let name = free_name(connection, &child.name, folder.parent_id)?;
        let change = FolderChange {
            name: Some(name),
            parent: Some(folder.parent_id),
        };
        update(connection, child.id, &change)?;
    }
    connection.execute("DELETE FROM folder WHERE id = ?1", [id])?;
    Ok(images)
}

/// Returns the ids of a folder and all folders below it, with their levels; the folder's own level
/// is 1.
pub(crate) fn subtree(connection: &Connection, id: i64) -> Result<Vec<(i64, usize)>, Error> {
    let mut statement = connection.prepare_cached(
        "WITH RECURSIVE within(id, level) AS (SELECT ?1, 1 UNION ALL SELECT folder.id, level + 1 \
         FROM folder JOIN within ON folder.parent_id = within.id WHERE level <= ?2) \
         SELECT id, level FROM within ORDER BY level, id",
    )?;
    let rows = statement.query_map(params![id, DEPTH_MAX as u32], |row| {
        Ok((row.get(0)?, row.get::<_, u32>(1)? as usize))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Returns the images in a folder and in all folders below it.
pub(crate) fn images_below(connection: &Connection, id: i64) -> Result<Vec<i64>, Error> {
    let mut images = Vec::new();
    for (folder, _) in subtree(connection, id)? {
        let mut statement =
            connection.prepare_cached("SELECT id FROM image WHERE folder_id = ?1")?;
        for image in statement.query_map([folder], |row| row.get(0))? {
            images.push(image?);
        }
    }
    Ok(images)
}

/// Removes a folder and all folders below it, which must contain no images; returns how many.
pub(crate) fn remove(connection: &Connection, id: i64) -> Result<usize, Error> {
    let within = subtree(connection, id)?;
    // Children first: a folder must be empty to be deleted.
    for (folder, _) in within.iter().rev() {
        connection.execute("DELETE FROM folder WHERE id = ?1", [folder])?;
    }
    Ok(within.len())
}

/// The outcome of moving images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moved {
    /// The number of distinct existing images that are now in the folder.
    pub there: usize,
    /// The number of images that were in another folder before.
    pub came: usize,
}

/// Moves images into a folder, or to the root.
pub(crate) fn move_images(
    connection: &Connection,
    images: &[i64],
    folder: Option<i64>,
) -> Result<Moved, Refusal> {
    if let Some(id) = folder
        && !exists(connection, id)?
    {
        return Err(Refusal::NoFolder { id });
    }
    let mut look = connection.prepare_cached("SELECT folder_id FROM image WHERE id = ?1")?;
    let mut put = connection.prepare_cached("UPDATE image SET folder_id = ?2 WHERE id = ?1")?;
    let mut moved = Moved::default();
    for image in images.iter().collect::<BTreeSet<_>>() {
        let before: Option<Option<i64>> = look.query_row([image], |row| row.get(0)).optional()?;
        moved.there += usize::from(before.is_some());
        if before.is_some_and(|before| before != folder) {
            moved.came += put.execute(params![image, folder])?;
        }
    }
    Ok(moved)
}

/// Returns the depth of a folder; the root is 0.
fn depth(connection: &Connection, folder: Option<i64>) -> Result<usize, Refusal> {
    let Some(id) = folder else { return Ok(0) };
    // Not by `path`, which counts all images below each folder.
    let mut statement = connection.prepare_cached(
        "WITH RECURSIVE above(id, parent_id, level) AS (SELECT id, parent_id, 1 FROM folder WHERE id = ?1 \
         UNION ALL SELECT folder.id, folder.parent_id, level + 1 FROM folder JOIN above \
         ON folder.id = above.parent_id WHERE level <= ?2) SELECT max(level) FROM above",
    )?;
    let depth: Option<u32> =
        statement.query_row(params![id, DEPTH_MAX as u32], |row| row.get(0))?;
    depth
        .map(|depth| depth as usize)
        .ok_or(Refusal::NoFolder { id })
}

fn free_name(connection: &Connection, name: &str, parent: Option<i64>) -> Result<String, Error> {
    let sql = "SELECT 1 FROM folder WHERE name = ?1 AND parent_id IS ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let numbered = (1u32..).map(|number| {
        let end = format!("_{number}");
        let room = name.len().min(NAME_MAX - end.len());
        let whole = (0..=room)
            .rev()
            .find(|&at| name.is_char_boundary(at))
            .unwrap_or(0);
        format!("{}{end}", &name[..whole])
    });
    for candidate in std::iter::once(name.to_owned()).chain(numbered) {
        if !statement.exists(params![candidate, parent])? {
            return Ok(candidate);
        }
    }
    unreachable!("four billion folders of one name")
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<Folder> {
    Ok(Folder {
        id: row.get(0)?,
        name: row.get(1)?,
        parent_id: row.get(2)?,
        created_at: Timestamp::from_micros(row.get(3)?),
        updated_at: Timestamp::from_micros(row.get(4)?),
        image_count: row.get::<_, i64>(5)?.unsigned_abs(),
        folder_count: row.get::<_, i64>(6)?.unsigned_abs(),
        images_below: row.get::<_, i64>(7)?.unsigned_abs(),
    })
}

#[cfg(test)]
mod tests;
