//! Resolves words that name images, playlists and folders to ids, before any request changes something.
//!
//! A word is looked up in this order: the current wallpaper, ids, paths, names, files in the working
//! directory, names of files, prefixes of names, colours. `id:` and `name:` say which kind it is.
//! Digits on standard input are ids.

mod names;

use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::call::Call;
use super::connection::{Connection, RequestPath, travelling};
use super::template::written;
use super::terminal::count;
use super::value::expand_stdin;
use super::verb::{Kind, Verb};
use super::{Error, suggest};
use crate::color;
use crate::digest::hex;
use crate::paths::{Dirs, from_uri, open_regular};
use crate::wire::{CurrentMonitor, Data, Format, Ids, Page};

pub(super) use names::path;
use names::{Named, exactly, nothing, only};

/// The number of records in one page.
const PAGE: u64 = 200;
/// The maximum number of names that are compared for a suggestion.
const COMPARED: u64 = 2000;

/// Replaces all words that name a record by ids; for `set`, also replaces names of files to import by
/// absolute paths.
pub(super) fn resolve(verb: &Verb, call: &mut Call) -> Result<(), Error> {
    say_which(verb, call)?;
    expand_stdin(verb, call)?;
    let given = call.clone();
    for (name, value) in &mut call.values {
        let Some(kind) = verb.kind(name) else {
            continue;
        };
        let word = match kind {
            Kind::Item => value.get_mut("image_id"),
            kind if kind.is_reference() => Some(&mut *value),
            _ => None,
        };
        if let Some(word) = word.filter(|word| word.is_string()) {
            let meant = one(kind, &written(word), &given);
            let told = |error| with_quotes(error, verb, name, kind, &given);
            *word = meant.map_err(|error| told(not_a_time(error, word, kind, &given)))?;
            if let (Kind::Item, Some(item)) = (kind, value.as_object_mut())
                && item["image_id"].is_string()
                && let Some(color) = item.remove("image_id")
            {
                item.insert("color".to_owned(), color);
            }
        }
    }
    see_all(verb, call)
}

/// The error for an image of a playlist if the text after its `@` is not a time.
fn not_a_time(error: Error, word: &Value, kind: Kind, call: &Call) -> Error {
    let dated = word.as_str().and_then(|word| word.rsplit_once('@'));
    match dated.filter(|(image, _)| kind == Kind::Item && one(kind, image, call).is_ok()) {
        Some((_, time)) => names::not_a_time(time, &error),
        None => error,
    }
}

/// Hints at quotes if several words are one name.
fn with_quotes(error: Error, verb: &Verb, name: &str, kind: Kind, call: &Call) -> Error {
    let is_argument = verb.arguments.iter().any(|one| one.name == name);
    let words: Vec<String> = call.all(name).into_iter().map(written).collect();
    let whole = words.join(" ");
    let may_be = error.status() == Some(404) && is_argument && words.len() > 1;
    let is_name = may_be && one(kind, &whole, call).is_ok();
    if is_name {
        error.hint(suggest::quotes(&whole))
    } else {
        error
    }
}

/// The id of the record that a word names.
fn one(kind: Kind, word: &str, call: &Call) -> Result<Value, Error> {
    if word == "-" {
        return Err(Error::usage(
            "\"-\" is standard input only for commands that take several images",
        ));
    }
    if let Some(id) = word.strip_prefix("id:") {
        let id = id.parse().ok().filter(|id: &i64| *id > 0);
        return id.map(Value::from).ok_or_else(|| {
            Error::usage(format!("the ID in {word:?} must be a number of at least 1"))
        });
    }
    let connection = &call.connect()?;
    if let Some(monitor) = current_of(word) {
        let shown = current(connection, monitor)?;
        return match &shown.color {
            Some(color) if takes_colors(kind) => Ok(color.as_str().into()),
            _ => in_library(&shown).map(Value::from),
        };
    }
    if let Some(name) = word.strip_prefix("name:") {
        let (what, known) = candidates(kind, name, connection)?;
        return Ok(names::whole(what, name, &known)?.id.into());
    }
    if kind == Kind::PictureOrPlaylist
        && let Some(name) = word.strip_prefix("playlist:")
    {
        if name.is_empty() {
            return Err(Error::usage("playlist: must be followed by a name"));
        }
        // The daemon looks it up by its whole name.
        let all = playlists(connection)?;
        return Ok(format!("playlist:{}", names::playlist(name, &all)?.name).into());
    }
    match kind {
        Kind::FolderOrRoot if word == "root" => Ok(word.into()),
        Kind::Folder if word == "root" => Err(Error::usage(
            "root is not a folder that can be shown or changed",
        )),
        Kind::Folder | Kind::FolderOrRoot => {
            // A name anywhere in the tree, or the names from the root down with `/` between.
            names::folder(word, &folders(connection)?).map(Value::from)
        }
        Kind::Playlist => Ok(names::playlist(word, &playlists(connection)?)?.id.into()),
        kind => image(connection, word, kind),
    }
}

/// The records of a kind that may have exactly this name, and the noun for them.
fn candidates(
    kind: Kind,
    name: &str,
    connection: &Connection,
) -> Result<(&'static str, Vec<Named>), Error> {
    Ok(match kind {
        Kind::Folder | Kind::FolderOrRoot => ("folder", folders(connection)?),
        Kind::Playlist => ("playlist", playlists(connection)?),
        _ => ("image", images(connection, "name", name)?),
    })
}

/// An image of the library; for some kinds also a file that could be one, as a path, or a colour.
fn image(connection: &Connection, word: &str, kind: Kind) -> Result<Value, Error> {
    let files = matches!(kind, Kind::Picture | Kind::PictureOrPlaylist);
    let at = |path: &Path| {
        if files {
            travelling(path).map(Value::from)
        } else {
            at_path(connection, word, path).map(Value::from)
        }
    };
    if let Some(path) = is_path(word) {
        return at(&path);
    }
    let rgb = color::parse(word).filter(|_| takes_colors(kind));
    if let Some(rgb) = rgb.filter(|_| word.starts_with('#')) {
        return Ok(color::hex(rgb).into());
    }
    // Looked up by the whole name first, as hundreds of names may begin with the word.
    if let Some(one) = images(connection, "name", word)?.first() {
        return Ok(one.id.into());
    }
    let known = images(connection, "name_prefix", word)?;
    if let Some(one) = exactly(word, &known) {
        return Ok(one.id.into());
    }
    if Path::new(word).symlink_metadata().is_ok() {
        return at(Path::new(word));
    }
    if let Some(id) = by_file_name(connection, word)? {
        return Ok(id.into());
    }
    if let Some(one) = only(word, &known)? {
        return Ok(one.id.into());
    }
    match (rgb, color::parse_hex(word)) {
        (Some(rgb), None) => Ok(color::hex(rgb).into()),
        (Some(_), _) => Err(nothing("image", word, &[]).hint(meant_color(word))),
        (None, _) if kind == Kind::Picture && word.starts_with('#') => Err(Error::usage(format!(
            "a colour must be #rgb or #rrggbb, not {word:?}"
        ))),
        (None, _) => Err(unknown(connection, word)?),
    }
}

/// The error for a word that names no image: other words of an image may have it.
fn unknown(connection: &Connection, word: &str) -> Result<Error, Error> {
    let error = nothing("image", word, &some_names(connection)?);
    let found = RequestPath::new(&[&"images", &"ids"]).query("search", Some(word));
    Ok(
        match connection.get(&found)?.read::<Ids>()?.ids.len() as u64 {
            0 => error,
            found => error.hint(format!(
                "`murald images search '{word}'` finds {}",
                count(found, "image")
            )),
        },
    )
}

/// The monitor of `current:MONITOR`; `Some(None)` for `current`, which means all monitors.
fn current_of(word: &str) -> Option<Option<&str>> {
    let monitor = word.strip_prefix("current")?;
    if monitor.is_empty() {
        Some(None)
    } else {
        monitor.strip_prefix(':').map(Some)
    }
}

/// The image whose file had this name, such as `sunset.jpg`.
fn by_file_name(connection: &Connection, word: &str) -> Result<Option<i64>, Error> {
    let Some((stem, extension)) = word.rsplit_once('.') else {
        return Ok(None);
    };
    if !Format::ALL
        .iter()
        .any(|format| format.has_extension(extension))
    {
        return Ok(None);
    }
    let mut alike = images(connection, "name_prefix", stem)?;
    alike.retain(|image| {
        image
            .format
            .is_some_and(|format| format.has_extension(extension))
    });
    Ok(exactly(stem, &alike).map(|one| one.id))
}

/// Names to compare a mistyped one with.
fn some_names(connection: &Connection) -> Result<Vec<Named>, Error> {
    let all = RequestPath::new(&[&"images"])
        .query("sort_by", Some("name"))
        .query("per_page", Some(PAGE));
    let mut names = Vec::new();
    for page in 1..=COMPARED / PAGE {
        let found: Page<Named> = connection
            .get(&all.clone().query("page", Some(page)))?
            .read()?;
        names.extend(found.data);
        if page >= found.pagination.total_pages {
            break;
        }
    }
    Ok(names)
}

/// The first page of images that a parameter finds, by name. The name that is the prefix itself is the
/// first of all that begin with it.
fn images(connection: &Connection, parameter: &str, value: &str) -> Result<Vec<Named>, Error> {
    let place = RequestPath::new(&[&"images"])
        .query(parameter, Some(value))
        .query("sort_by", Some("name"))
        .query("sort_order", Some("asc"))
        .query("per_page", Some(PAGE));
    let mut known = connection.get(&place)?.read::<Page<Named>>()?.data;
    known.sort_by_key(|image| image.id);
    Ok(known)
}

/// The path of a word that begins with `.`, `~` or `file://`, or has a `/`: names have none.
fn is_path(word: &str) -> Option<PathBuf> {
    if let Some(path) = from_uri(word) {
        return Some(path);
    }
    match word.as_bytes().first() {
        Some(b'~') => Dirs::from_process()
            .ok()
            .map(|dirs| dirs.tilde(Path::new(word))),
        Some(b'.') => Some(word.into()),
        _ => word.contains('/').then(|| word.into()),
    }
}

/// The image with this file or its content.
fn at_path(connection: &Connection, word: &str, path: &Path) -> Result<i64, Error> {
    let unread = |error| Error::refused(format!("cannot read {word}")).because(error);
    let real = std::fs::canonicalize(path).map_err(unread)?;
    if let Some(stem) = real.file_stem().and_then(|stem| stem.to_str())
        && let Some(image) = images(connection, "name", stem)?
            .iter()
            .find(|it| it.path == real)
    {
        return Ok(image.id);
    }
    if real.is_file() {
        let checksum = checksum(&real).map_err(unread)?;
        if let Some(image) = images(connection, "checksum", &checksum)?.first() {
            return Ok(image.id);
        }
    }
    Err(Error::not_found(format!("{word} is not in the library"))
        .hint("`murald import PATH` imports it, `murald set PATH` also shows it"))
}

fn checksum(path: &Path) -> std::io::Result<String> {
    let mut hash = Sha256::new();
    let mut file = open_regular(path)?;
    let mut piece = vec![0; 64 << 10];
    loop {
        match file.read(&mut piece)? {
            0 => break,
            read => hash.update(&piece[..read]),
        }
    }
    Ok(format!("sha256:{}", hex(&hash.finalize())))
}

/// The image on a monitor; without a monitor, the images on all.
fn current(connection: &Connection, monitor: Option<&str>) -> Result<CurrentMonitor, Error> {
    #[derive(serde::Deserialize)]
    struct Current {
        monitors: Vec<CurrentMonitor>,
    }
    let shown = connection
        .read::<Current>(&[&"wallpaper", &"current"])?
        .monitors;
    let choices = || {
        let choice =
            |one: &CurrentMonitor| format!("current:{} is {}", one.monitor_name, one.label());
        shown.iter().map(choice).collect::<Vec<_>>().join(", ")
    };
    if let Some(name) = monitor {
        let one = shown.iter().find(|one| one.monitor_name == name);
        let nothing = || {
            let error = Error::not_found(format!("nothing is shown on {name}"));
            if shown.is_empty() {
                error
            } else {
                error.hint(choices())
            }
        };
        return one.cloned().ok_or_else(nothing);
    }
    match shown.first() {
        None => Err(Error::not_found("nothing is shown")),
        Some(first) if shown.iter().all(|one| is_same(one, first)) => Ok(first.clone()),
        Some(_) => Err(Error::refused("the monitors show different images").hint(choices())),
    }
}

fn is_same(one: &CurrentMonitor, other: &CurrentMonitor) -> bool {
    (one.image_id, &one.image_path, &one.color) == (other.image_id, &other.image_path, &other.color)
}

fn in_library(shown: &CurrentMonitor) -> Result<i64, Error> {
    let refused = || Error::refused(format!("{} is a plain colour", shown.image_name));
    shown.image_id.ok_or_else(refused)
}

fn playlists(connection: &Connection) -> Result<Vec<Named>, Error> {
    connection.read(&[&"playlists"])
}

fn folders(connection: &Connection) -> Result<Vec<Named>, Error> {
    let all = RequestPath::new(&[&"folders"]).query("parent_id", Some("all"));
    Ok(connection.get(&all)?.read::<Data<Named>>()?.data)
}

/// The hint for an id that was meant as a colour.
pub(super) fn colored_like_an_id(verb: &Verb, call: &Call) -> Option<String> {
    let colors = call.values.iter().filter_map(|(name, value)| {
        let kind = verb.kind(name).filter(|kind| takes_colors(*kind))?;
        id(kind, value).map(|id| id.to_string())
    });
    let digits = colors.into_iter().find(|digits| digits.len() == 6)?;
    Some(meant_color(&digits))
}

fn meant_color(digits: &str) -> String {
    format!("did you mean the colour '#{digits}'?")
}

/// The id in a value of the command line, if it is one.
fn id(kind: Kind, value: &Value) -> Option<i64> {
    match kind {
        Kind::Item => value["image_id"].as_i64(),
        kind if kind.is_reference() => value.as_i64(),
        _ => None,
    }
}

/// Looks up digits. Refuses those that are the id of one record and the name of another, and those that
/// are only the name of an image. A folder or a playlist may be named by its digits if no other has this
/// id.
fn say_which(verb: &Verb, call: &mut Call) -> Result<(), Error> {
    for at in 0..call.values.len() {
        let (name, value) = &call.values[at];
        let Some((kind, id)) = verb
            .kind(name)
            .and_then(|kind| Some((kind, id(kind, value)?)))
        else {
            continue;
        };
        let connection = &call.connect()?;
        let word = id.to_string();
        let (what, mut known) = candidates(kind, &word, connection)?;
        if kind_is_image(kind) && known.iter().any(|one| one.name == word && one.id != id) {
            known.extend(connection.read::<Named>(&[&"images", &id]).ok());
        }
        let fits = known.iter().filter(|one| one.id == id || one.name == word);
        let fits: Vec<&Named> = fits.collect();
        match fits[..] {
            [one] if !kind_is_image(kind) => call.values[at].1 = one.id.into(),
            [one] if one.id != id => {
                let error = Error::not_found(format!("no image with ID {id}"));
                return Err(error.hint(format!("an image is named {id}: use name:{id}")));
            }
            [] if matches!(kind, Kind::Folder | Kind::FolderOrRoot) => {
                return Err(Error::not_found(format!("no {what} {id}")));
            }
            [_, _, ..] if fits.iter().any(|one| one.id == id) => {
                let error = names::several(&word, &fits, &known);
                return Err(error.hint(format!("use id:{id} or name:{id}")));
            }
            _ => {}
        }
    }
    Ok(())
}

fn takes_colors(kind: Kind) -> bool {
    matches!(kind, Kind::Picture | Kind::PictureOrPlaylist | Kind::Item)
}

fn kind_is_image(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Image | Kind::Picture | Kind::PictureOrPlaylist | Kind::Item
    )
}

/// Refuses ids of images that do not exist, before anything is done to one of several images.
fn see_all(verb: &Verb, call: &Call) -> Result<(), Error> {
    let Some(many) = verb.list().filter(|it| kind_is_image(it.kind)) else {
        return Ok(());
    };
    let wanted: Vec<i64> = call
        .all(many.name)
        .into_iter()
        .filter_map(|value| id(many.kind, value))
        .collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let known: Ids = call.connect()?.read(&[&"images", &"ids"])?;
    let known: HashSet<i64> = known.ids.into_iter().collect();
    let missing: Vec<String> = wanted
        .iter()
        .filter(|id| !known.contains(id))
        .map(i64::to_string)
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(Error::not_found(format!(
            "no image with ID {}",
            missing.join(", ")
        )))
    }
}
