//! Changes images in the library, and records renames that are not finished.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use rusqlite::types::Value;
use rusqlite::{Connection, params};
use serde_json::{Map, json};

use super::folders::{self, Refusal};
use super::images::{self, NewImage, text};
use super::{Error, derived, pending_files, purge, watched};
use crate::color::{self, Rgb};
use crate::wire::{Difference, Image, ListChange, PatchCapabilities, Position, WebMeta, collate};

/// Changes to an image; a field that is `None` is left unchanged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImageChange {
    pub tags: Option<ListChange<String>>,
    pub description: Option<String>,
    pub colors: Option<Vec<Rgb>>,
    /// The inner `None` means the root folder.
    pub folder_id: Option<Option<i64>>,
    pub is_selected: Option<bool>,
    pub audio_enabled: Option<bool>,
    /// The inner `None` means the position in the backend's settings.
    pub position: Option<Option<Position>>,
    /// Only HTML packages have these.
    pub overrides: Option<Map<String, serde_json::Value>>,
    pub capabilities: Option<PatchCapabilities>,
}

/// Changes the row of an existing image.
pub fn change(connection: &Connection, id: i64, change: &ImageChange) -> Result<(), Refusal> {
    if let Some(Some(folder)) = change.folder_id
        && !folders::exists(connection, folder)?
    {
        return Err(Refusal::NoFolder { id: folder });
    }
    let tags = change
        .tags
        .as_ref()
        .map(|tags| retagged(connection, id, tags));
    let tags = tags.transpose()?;
    let json = |value: serde_json::Value| value.to_string().into();
    let meta = change
        .capabilities
        .map(|capabilities| granted(connection, id, capabilities));
    let meta = meta.transpose()?.flatten();
    let columns: [(_, Option<Value>); 10] = [
        ("tags", tags.map(|tags| json(json!(tags)))),
        ("description", change.description.clone().map(Value::from)),
        (
            "colors",
            change.colors.as_ref().map(|colors| colors.concat().into()),
        ),
        (
            "hue_group",
            change
                .colors
                .as_deref()
                .map(|colors| color::hue_group(colors).into()),
        ),
        ("folder_id", change.folder_id.map(Value::from)),
        ("is_selected", change.is_selected.map(Value::from)),
        ("audio_enabled", change.audio_enabled.map(Value::from)),
        (
            "position",
            change
                .position
                .map(|position| position.map(|it| it.to_string()).into()),
        ),
        (
            "overrides",
            change
                .overrides
                .as_ref()
                .map(|overrides| json(json!(overrides))),
        ),
        ("web_meta", meta.as_ref().map(|meta| json(json!(meta)))),
    ];
    let given = columns
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    Ok(images::set(connection, id, given.collect())?)
}

/// Returns the tags of an image after a change.
fn retagged(
    connection: &Connection,
    id: i64,
    change: &ListChange<String>,
) -> Result<Vec<String>, Error> {
    let Difference { add, remove } = match change {
        ListChange::All(tags) => return Ok(tags.clone()),
        ListChange::Some(difference) => difference,
    };
    // Tags are removed regardless of case, as filters find them.
    let remove: HashSet<String> = remove.iter().map(|tag| collate::folded(tag)).collect();
    let mut tags = images::get(connection, id)?.map_or_else(Vec::new, |image| image.tags);
    tags.retain(|tag| !remove.contains(&collate::folded(tag)));
    for tag in add {
        if !tags.iter().any(|own| collate::is_same(own, tag)) {
            tags.push(tag.clone());
        }
    }
    Ok(tags)
}

/// Returns a package's metadata with the changed capabilities; `None` if the image is not a
/// package.
fn granted(
    connection: &Connection,
    id: i64,
    change: PatchCapabilities,
) -> Result<Option<WebMeta>, Error> {
    let mut meta = images::get(connection, id)?.and_then(|image| image.web_meta);
    if let Some(meta) = &mut meta {
        meta.capabilities = change.over(meta.capabilities);
    }
    Ok(meta)
}

/// Stores the path of a video's preview; returns `false` if the image is gone or its file has
/// changed.
pub(crate) fn set_preview(
    connection: &Connection,
    image: &Image,
    path: &Path,
) -> Result<bool, Error> {
    let now = images::get(connection, image.id)?;
    if now.is_none_or(|now| now.checksum != image.checksum) {
        return Ok(false);
    }
    images::set(connection, image.id, vec![("preview_path", text(path))])?;
    Ok(true)
}

/// Replaces an image's file; the user's own changes stay. The new file is no longer pending, the
/// old one and its preview are.
pub(crate) fn replace(connection: &Connection, old: &Image, new: &NewImage) -> Result<(), Error> {
    for path in purge::on_disk(old) {
        pending_files::mark(connection, path, None)?;
    }
    pending_files::unmark(connection, new.home())?;
    if old.web_meta.is_none() {
        // Equal files in watched directories keep the old content, which is another image's from now on.
        watched::forget_image(connection, old.id)?;
    }
    rewrite(connection, old, new)?;
    let columns = vec![
        ("name", new.name.clone().into()),
        ("path", text(&new.path)),
        ("missing_since", Value::Null),
    ];
    images::set(connection, old.id, columns)
}

/// Changes the name in the row only.
pub(crate) fn set_name(connection: &Connection, id: i64, name: &str) -> Result<(), Error> {
    images::set(connection, id, vec![("name", name.to_owned().into())])
}

/// Changes the path of an image whose file is used in place, and the name if there is a new one.
pub(crate) fn set_path(
    connection: &Connection,
    id: i64,
    path: &Path,
    name: Option<&str>,
) -> Result<(), Error> {
    let sql = "UPDATE image SET path = ?2, name = ifnull(?3, name), missing_since = NULL WHERE id = ?1 AND in_place";
    connection
        .prepare_cached(sql)?
        .execute(params![id, text(path), name])?;
    name.map_or(Ok(()), |_| derived::renew(connection, id))
}

/// Sets the path of a file that belongs to the library from now on.
pub(crate) fn move_into_library(
    connection: &Connection,
    id: i64,
    path: &Path,
) -> Result<(), Error> {
    images::set(
        connection,
        id,
        vec![
            ("path", text(path)),
            ("in_place", false.into()),
            ("missing_since", Value::Null),
        ],
    )
}

pub(crate) fn set_folder(
    connection: &Connection,
    id: i64,
    folder: Option<i64>,
) -> Result<(), Error> {
    images::set(connection, id, vec![("folder_id", folder.into())])
}

/// Updates an image after its file has changed; its old preview becomes pending.
pub(crate) fn rewrite(connection: &Connection, old: &Image, new: &NewImage) -> Result<(), Error> {
    if let Some(preview) = purge::preview(old) {
        pending_files::mark(connection, preview, None)?;
    }
    images::set(connection, old.id, images::content(new))
}

/// Moves the user's changes, and the uses of an image, to another image that has its content now.
/// The caller removes the row of `from`. Returns how many entries of playlists were moved.
pub(crate) fn unite(connection: &Connection, from: &Image, into: &Image) -> Result<usize, Error> {
    let mut tags = into.tags.clone();
    let is_new = |tag: &&String| !into.tags.iter().any(|own| collate::is_same(own, tag));
    tags.extend(from.tags.iter().filter(is_new).cloned());
    let ids = params![from.id, into.id];
    let mut columns = vec![("tags", json!(tags).to_string().into())];
    if into.description.is_empty() {
        columns.push(("description", from.description.clone().into()));
    }
    if let (Some(position), None) = (from.position, into.position) {
        columns.push(("position", position.to_string().into()));
    }
    images::set(connection, into.id, columns)?;
    // If a playlist has both images, the entry of `into` stays.
    let places = connection.execute(
        "UPDATE playlist_image SET image_id = ?2 WHERE image_id = ?1 AND playlist_id NOT IN \
         (SELECT playlist_id FROM playlist_image WHERE image_id = ?2)",
        ids,
    )?;
    // If a workspace has sound settings for both images, those of `into` stay.
    for table in [
        "assignments",
        "workspace_picture",
        "workspace_sound",
        "history",
        "watched_file",
    ] {
        let sql = format!("UPDATE OR IGNORE {table} SET image_id = ?2 WHERE image_id = ?1");
        connection.execute(&sql, ids)?;
    }
    Ok(places)
}

/// Selects or deselects all images; returns how many were changed.
pub(crate) fn select_all(connection: &Connection, selected: bool) -> Result<usize, Error> {
    let sql = "UPDATE image SET is_selected = ?1 WHERE is_selected <> ?1";
    Ok(connection.execute(sql, [selected])?)
}

/// A rename under way: the path in the row, and the path where the file may be already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rename {
    pub image_id: i64,
    pub from: PathBuf,
    pub to: PathBuf,
}

/// Records a rename before the file is moved.
pub(crate) fn begin_rename(connection: &Connection, rename: &Rename) -> Result<(), Error> {
    connection.execute(
        "INSERT OR REPLACE INTO rename (image_id, from_path, to_path) VALUES (?1, ?2, ?3)",
        params![rename.image_id, text(&rename.from), text(&rename.to)],
    )?;
    Ok(())
}

/// Stores the new name and path of the image and removes the record of the rename.
pub(crate) fn finish_rename(
    connection: &Connection,
    image: &Image,
    rename: &Rename,
    name: &str,
) -> Result<(), Error> {
    let meta = image.web_meta.as_ref().map(|meta| meta.moved(&rename.to));
    // A package's own preview moves with it; a video's preview is elsewhere.
    let preview = image.preview_path.as_deref().map(|preview| {
        preview
            .strip_prefix(&rename.from)
            .map_or(preview.to_owned(), |own| rename.to.join(own))
    });
    let path = meta.as_ref().map_or(&rename.to, |meta| &meta.entry_path);
    let columns = vec![
        ("name", name.to_owned().into()),
        ("path", text(path)),
        (
            "web_meta",
            meta.as_ref().map(|meta| json!(meta).to_string()).into(),
        ),
        ("preview_path", preview.as_deref().map_or(Value::Null, text)),
        ("missing_since", Value::Null),
    ];
    images::set(connection, rename.image_id, columns)?;
    forget_rename(connection, rename.image_id)
}

pub(crate) fn forget_rename(connection: &Connection, image_id: i64) -> Result<(), Error> {
    connection.execute("DELETE FROM rename WHERE image_id = ?1", [image_id])?;
    Ok(())
}

/// Returns the renames that the last run did not finish.
pub fn renames(connection: &Connection) -> Result<Vec<Rename>, Error> {
    let mut statement =
        connection.prepare_cached("SELECT image_id, from_path, to_path FROM rename")?;
    let rows = statement.query_map([], |row| {
        Ok(Rename {
            image_id: row.get(0)?,
            from: row.get::<_, String>(1)?.into(),
            to: row.get::<_, String>(2)?.into(),
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests;
