//! The images that a migration needs: the daemon imports files in watched directories by itself, the
//! command imports the others in place.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;

use super::super::Error;
use super::super::connection::{Connection, RequestPath};
use super::super::error::Exit;
use super::super::reference::travelling;
use super::super::sse::{Events, Item, listen};
use crate::wire::collate::path_key;
use crate::wire::{Format, LibraryWatch, Page};

/// So long nothing new must have come in before the rest is asked for by name.
const SETTLED: Duration = Duration::from_secs(5);
const PACE: Duration = Duration::from_millis(50);
const EVENTS: &str = "image_processed,image_error,processing_complete,processing_cancelled";
/// Endings of pictures and films that are not the format's own name.
const OTHER: [&str; 7] = ["jpeg", "jpe", "tif", "heif", "m4v", "apng", "jfif"];

/// What has become of files, each under the name that was asked for.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) ids: BTreeMap<PathBuf, i64>,
    /// And why.
    pub(super) failed: Vec<(PathBuf, String)>,
}

#[derive(Deserialize)]
struct KnownImage {
    id: i64,
    path: PathBuf,
}

/// Pictures and films below a directory, by their endings: the other program may keep notes beside them.
pub(super) fn below(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let Ok(entries) = fs::read_dir(directory) else { return files };
    for entry in entries.flatten() {
        let (path, kind) = (entry.path(), entry.file_type());
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        // Links to directories are not followed: one could lead in a circle.
        if kind.is_ok_and(|kind| kind.is_dir()) {
            files.extend(below(&path));
        } else if is_picture(&path) {
            files.push(path);
        }
    }
    files.sort_by_cached_key(|path| (path_key(path), path.clone()));
    files
}

fn is_picture(path: &Path) -> bool {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    let ending = ending.as_deref().unwrap_or_default();
    ending != "html" && (Format::WORDS.contains(&ending) || OTHER.contains(&ending))
}

/// The ids of these files, which are images afterwards where they can be.
pub(super) fn ids(connection: &Connection, files: &[PathBuf]) -> Result<Taken, Error> {
    let mut taken = Taken::default();
    let mut wanted: Vec<(PathBuf, PathBuf)> = Vec::new();
    for file in files {
        match fs::canonicalize(file) {
            Ok(real) => wanted.push((file.clone(), real)),
            Err(error) => taken.failed.push((file.clone(), error.to_string())),
        }
    }
    come_by_themselves(connection, &mut wanted, &mut taken)?;
    if !wanted.is_empty() {
        import(connection, &wanted, &mut taken)?;
    }
    Ok(taken)
}

/// Takes those out of `wanted` that are images, and waits for those that will be.
fn come_by_themselves(
    connection: &Connection,
    wanted: &mut Vec<(PathBuf, PathBuf)>,
    taken: &mut Taken,
) -> Result<(), Error> {
    let place = RequestPath::new(&[&"library", &"watch"]);
    let LibraryWatch { watch, .. } = connection.get(&place)?.read()?;
    let is_watched = |real: &Path| {
        watch.iter().filter_map(|one| one.directory.as_ref()).any(|one| real.starts_with(one))
    };
    let (mut count, mut since) = (None, Instant::now());
    loop {
        let now = total(connection)?;
        if count != Some(now) {
            (count, since) = (Some(now), Instant::now());
            let known = images(connection)?;
            wanted.retain(|(file, real)| {
                let id = known.get(real);
                taken.ids.extend(id.map(|&id| (file.clone(), id)));
                id.is_none()
            });
        }
        if since.elapsed() > SETTLED || !wanted.iter().any(|(_, real)| is_watched(real)) {
            return Ok(());
        }
        std::thread::sleep(PACE);
    }
}

fn page(number: u64, size: u64) -> RequestPath {
    // By what does not change while more come in.
    let place = RequestPath::new(&[&"images"]).query("sort_by", Some("imported_at"));
    let place = place.query("sort_order", Some("asc"));
    place.query("page", Some(number)).query("per_page", Some(size))
}

fn total(connection: &Connection) -> Result<u64, Error> {
    let Page { pagination, .. } = connection.get(&page(1, 1))?.read::<Page<KnownImage>>()?;
    Ok(pagination.total_items)
}

fn images(connection: &Connection) -> Result<BTreeMap<PathBuf, i64>, Error> {
    let mut known = BTreeMap::new();
    for number in 1.. {
        let Page { data, pagination } =
            connection.get(&page(number, 200))?.read::<Page<KnownImage>>()?;
        known.extend(data.into_iter().map(|image| (image.path, image.id)));
        if number >= pagination.total_pages {
            break;
        }
    }
    Ok(known)
}

#[derive(Deserialize)]
struct Batch {
    batch_id: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ImportOutcome {
    batch_id: String,
    path: PathBuf,
    image: Option<Id>,
    error: String,
}

#[derive(Deserialize)]
struct Id {
    id: i64,
}

/// Where they lie; what has the content of an image is that image.
fn import(
    connection: &Connection,
    wanted: &[(PathBuf, PathBuf)],
    taken: &mut Taken,
) -> Result<(), Error> {
    let paths: Result<Vec<String>, Error> =
        wanted.iter().map(|(_, real)| travelling(real)).collect();
    // Before the import begins, or its first events would be missed.
    let mut events = listen(connection, EVENTS)?;
    let body = json!({ "paths": paths?, "in_place": true });
    let Batch { batch_id } = connection.post(&RequestPath::new(&[&"images"]), &body)?.read()?;
    let mut left: Vec<&(PathBuf, PathBuf)> = wanted.iter().collect();
    while let Some((kind, told)) = next(&mut events)? {
        if told.batch_id != batch_id {
            continue;
        }
        if kind.starts_with("processing_") {
            break;
        }
        left.retain(|(file, real)| {
            if *real != told.path {
                return true;
            }
            match &told.image {
                Some(image) => taken.ids.extend([(file.clone(), image.id)]),
                None => taken.failed.push((file.clone(), told.error.clone())),
            }
            false
        });
    }
    let unheard = left.into_iter().map(|(file, _)| (file.clone(), "the log says why".to_owned()));
    taken.failed.extend(unheard);
    Ok(())
}

fn next(events: &mut Events<impl Read>) -> Result<Option<(String, ImportOutcome)>, Error> {
    loop {
        match events.next().map_err(Error::of_lost_daemon)? {
            Some(Item::Event { kind, data }) => {
                if let Ok(told) = serde_json::from_str(&data) {
                    return Ok(Some((kind, told)));
                }
            }
            Some(Item::Lost(_)) => {}
            None => return Err(Error::new(Exit::Unavailable, "the daemon ended meanwhile")),
        }
    }
}
