//! `murald slideshow`: watches a directory, makes a dynamic playlist of it and starts that.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::Error;
use super::super::call::Call;
use super::super::columns::{View, more, number, text};
use super::super::connection::{Connection, RequestPath, travelling};
use super::super::stdout::Stdout;
use super::super::terminal::count;
use super::super::verb::{Argument, Flag, Kind, Verb};
use super::image_sheet::TOTAL;
use super::{INTERVAL, MONITORS, library};
use crate::wire::Format;

/// The scan of a large directory takes longer, but the first picture is found by then.
const WITHIN: Duration = Duration::from_secs(10);
const PACE: Duration = Duration::from_millis(50);

const STARTED: View = View::sheet("POST /playlists/{id}/start", &[more("status")]);

#[rustfmt::skip]
pub(super) const SLIDESHOW: Verb =
    Verb::own(&["slideshow"], "Cycle through the images in a directory", slideshow)
        .takes(&[Argument::one("DIR", Kind::Directory, "Its path")]).shows(&[&STARTED]).starting()
        .flags(&[
            INTERVAL,
            Flag::switch("--shuffle", "Shuffle; by name without this flag"),
            Flag::switch("--each", "A different image on each monitor"),
            MONITORS,
        ])
        .help("    murald slideshow ~/Pictures/mountains --interval 10m --shuffle\n\n\
               The directory is watched, as by `murald watch add`; new pictures are included. This \
               creates a playlist named after the directory; running the command again updates and \
               restarts it. Starts the daemon if it is not running.");

fn slideshow(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let word = call.word("DIR");
    let unread = |error| Error::refused(format!("cannot read {word}")).because(error);
    let real = fs::canonicalize(&word).map_err(unread)?;
    if !real.is_dir() {
        return Err(Error::refused(format!("{word} is not a directory"))
            .hint("`murald set PICTURE` shows one picture"));
    }
    let (path, connection) = (travelling(&real)?, call.connect()?);
    library::ensure(&connection, &path)?;
    let images = first_pictures(&connection, &word, &path, WITHIN)?;
    // The scan of a large directory goes on, so its files are counted, too.
    let images = images.max(pictures_below(&real));
    let playlist = playlist(call, &connection, &path)?;
    let mut body = json!({});
    if call.has("--each") {
        body["mode"] = "each".into();
    }
    if call.has("--monitor") {
        body["monitors"] = json!(call.all("--monitor"));
    }
    let place = RequestPath::new(&[&"playlists", &playlist["id"], &"start"]);
    let answer = connection.post(&place, &body)?;
    stdout.show(&answer, |stdout, _: Value| {
        let (name, of) = (text(&playlist, "name"), count(images, "picture"));
        stdout.say(format!("started slideshow of {name} ({}): {of}", playlist["id"]))
    })
}

/// Waits for the first image of a watched directory and returns the number of images.
fn first_pictures(
    connection: &Connection,
    word: &str,
    directory: &str,
    within: Duration,
) -> Result<u64, Error> {
    let deadline = Instant::now() + within;
    let place = RequestPath::new(&[&"images"]).query("directory", Some(directory));
    let place = place.query("recursive", Some(true)).query("per_page", Some(1));
    loop {
        let page: Value = connection.get(&place)?.read()?;
        match number(&page, TOTAL) {
            0 if Instant::now() > deadline => {
                return Err(Error::refused(format!("no pictures found in {word}"))
                    .hint("it is now watched; `murald watch list` shows its state"));
            }
            0 => std::thread::sleep(PACE),
            images => return Ok(images),
        }
    }
}

/// Creates the playlist of this name, or updates it.
fn playlist(call: &Call, connection: &Connection, name: &str) -> Result<Value, Error> {
    let order = if call.has("--shuffle") { "random" } else { "ordered" };
    let mut configuration = json!({ "type": "timer", "order": order });
    if let Some(interval) = call.value("--interval") {
        configuration["interval"] = interval.clone();
    }
    let source = json!({ "directory": name });
    let body = json!({ "name": name, "source": source, "configuration": configuration });
    let place = RequestPath::new(&[&"playlists"]);
    let all: Vec<Value> = connection.get(&place)?.read()?;
    match all.iter().find(|one| one["name"] == name) {
        Some(one) => {
            connection.patch(&RequestPath::new(&[&"playlists", &one["id"]]), &body)?.read()
        }
        None => connection.post(&place, &body)?.read(),
    }
}

/// Extensions of pictures and videos that are not the name of a format.
const OTHER_EXTENSIONS: [&str; 7] = ["jpeg", "jpe", "tif", "heif", "m4v", "apng", "jfif"];

/// How many pictures and videos a directory has, by their extensions.
fn pictures_below(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    let visible =
        entries.flatten().filter(|one| !one.file_name().as_encoded_bytes().starts_with(b"."));
    let count = visible.map(|entry| {
        // Links to directories are not followed: one could lead in a circle.
        match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            true => pictures_below(&entry.path()),
            false => u64::from(is_picture(&entry.path())),
        }
    });
    count.sum()
}

fn is_picture(path: &Path) -> bool {
    let extension = path.extension().map(|one| one.to_string_lossy().to_lowercase());
    let extension = extension.as_deref().unwrap_or_default();
    extension != "html"
        && (Format::WORDS.contains(&extension) || OTHER_EXTENSIONS.contains(&extension))
}
