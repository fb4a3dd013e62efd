//! The verbs that create and change playlists.

use serde_json::{Map, Value, json};

use super::super::Error;
use super::super::call::Call;
use super::super::connection::{Connection, RequestPath};
use super::super::edit_lock;
use super::super::stdout::Stdout;
use super::super::verb::{Argument, Flag, Kind, NULL, Verb};
use super::playlist_sheet::{ONE, people, place};
use super::{ON_OFF, gallery};
use crate::wire::{Playlist, PlaylistOrder, PlaylistType};

const ITEMS: &str = "Images, - for standard input; IMAGE@HH:MM or IMAGE@sunset-30m for time_of_day, IMAGE@light for appearance";
const TYPE: Flag =
    Flag::value("--type", "TYPE", Kind::Words(PlaylistType::WORDS), "When the image changes");
pub(super) const INTERVAL: Flag = Flag::value(
    "--interval",
    "TIME",
    Kind::Span,
    "Between two changes of a timer: 90 (seconds), 10m, 2h, 1d",
);
const ORDER: Flag = Flag::value(
    "--order",
    "ORDER",
    Kind::Words(PlaylistOrder::WORDS),
    "In the order given, or shuffled",
);
const FIXED: Flag =
    Flag::switch("--fixed", "With filters: the images that pass them now, and no others later");
const FIRST: Flag = Flag::value(
    "--from-first",
    "WHICH",
    ON_OFF,
    "Start with the first image each time, or where it was",
);

pub(super) const CREATE: Verb = Verb::new(&["playlist", "create"], "Create a playlist", create)
    .arguments(&[
        Argument::one("NAME", Kind::Text, "Its name"),
        Argument::any("IMAGE", Kind::Item, ITEMS),
    ])
    .flags(&gallery::together::<9, { gallery::FILTERS.len() }, { 9 + gallery::FILTERS.len() }>([
        TYPE,
        INTERVAL,
        ORDER,
        FIRST,
        FIXED,
        NULL,
        gallery::SEARCH,
        Flag::value(
            "--sort-by",
            "WHAT",
            gallery::SORTS,
            "The order of what filters find; name by default",
        ),
        Flag::value("--sort-order", "ORDER", gallery::DIRECTIONS, "Rising, by default, or falling"),
    ]))
    .help(
        "    murald playlist create evening lake 4 5 --interval 10m --order random\n    \
         murald playlist create day lake@07:00 dusk@19:30\n    \
         murald playlist create trips --folder travel --order random\n    \
         murald playlist create sky lake@dawn night@dusk+30m\n\n\
         A timer changes the image after each interval; it is the default, with 5 minutes.\n\
         The type manual changes it only when you ask for it, time_of_day at the times that\n\
         the images have, appearance with light and dark, and day_of_week every day: the\n\
         first image is Sunday's, the second Monday's, and so on. Images with times, or with\n\
         @light and @dark, say the type themselves. Times by the sun (sunrise, sunset, dawn, dusk) need to know where\n\
         you are: `murald config set location.latitude 52.5`, and location.longitude.\n\n\
         With filters instead of images it lives: what passes them comes in before the next\n\
         change, and what does not goes. With --fixed it has those that pass them now.",
    );
pub(super) const EDIT: Verb = Verb::new(&["playlist", "edit"], "Change a playlist", edit)
    .arguments(&[ONE, Argument::any("IMAGE", Kind::Item, "Its images, in place of those it has")])
    .flags(&[Flag::value("--name", "NAME", Kind::Text, "Its name"), TYPE, INTERVAL, ORDER, FIRST])
    .help("A playlist that runs goes on with the change.");
pub(super) const ADD: Verb =
    Verb::new(&["playlist", "add"], "Add images to the end of a playlist", add)
        .arguments(&[ONE, Argument::any("IMAGE", Kind::Item, ITEMS)])
        .flags(&gallery::together::<2, { gallery::FILTERS.len() }, { 2 + gallery::FILTERS.len() }>(
            [NULL, gallery::SEARCH],
        ))
        .help("With filters, all images that pass them now.");
pub(super) const REMOVE: Verb =
    Verb::new(&["playlist", "remove"], "Take images out of a playlist", remove)
        .arguments(&[ONE, Argument::some("IMAGE", Kind::Image, "The images")])
        .help("An image that is in it several times is taken out everywhere.");

/// Only what was said: the daemon has the defaults, and keeps the rest.
fn configuration(call: &Call) -> Map<String, Value> {
    const FIELDS: [(&str, &str); 3] =
        [("type", "--type"), ("interval", "--interval"), ("order", "--order")];
    let mut configuration = Map::new();
    if let Some(kind) = meant_type(call) {
        configuration.insert("type".to_owned(), json!(kind));
    }
    for (field, flag) in FIELDS {
        if let Some(value) = call.value(flag) {
            configuration.insert(field.to_owned(), value.clone());
        }
    }
    if let Some(word) = call.text("--from-first") {
        configuration.insert("always_start_on_first_image".to_owned(), (word == "on").into());
    }
    configuration
}

fn body(call: &Call) -> Map<String, Value> {
    let mut body = Map::new();
    let configuration = configuration(call);
    if !configuration.is_empty() {
        body.insert("configuration".to_owned(), configuration.into());
    }
    let images = call.all("IMAGE");
    if !images.is_empty() {
        body.insert("images".to_owned(), json!(images));
    }
    body
}

/// The type that goes by what is said of the images: their times, or light and dark.
fn meant_type(call: &Call) -> Option<PlaylistType> {
    let says = |field: &str| call.all("IMAGE").into_iter().any(|item| item.get(field).is_some());
    if says("when") {
        return Some(PlaylistType::Appearance);
    }
    (says("time") || says("at")).then_some(PlaylistType::TimeOfDay)
}

fn create(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let mut body = body(call);
    body.insert("name".to_owned(), call.word("NAME").into());
    let filters = gallery::narrows(call)?;
    if !filters && call.has("--fixed") {
        return Err(Error::usage("--fixed takes what filters find now: give a filter"));
    }
    if filters && (call.has("--fixed") || call.has("IMAGE")) {
        body.insert("images".to_owned(), chosen(call, &call.connect()?)?.into());
    } else if filters {
        body.insert("source".to_owned(), gallery::source(call).into());
    } else if !call.has("IMAGE") {
        return Err(nothing_given());
    }
    let connection = call.connect()?;
    let answer = connection.post(&RequestPath::new(&[&"playlists"]), &Value::Object(body))?;
    stdout.show(&answer, |stdout, playlist: Playlist| people(stdout, &playlist, &connection))
}

fn nothing_given() -> Error {
    Error::usage("IMAGE is missing, or - for standard input, or a filter").hint(
        "`murald playlist create NAME lake hill` has these two, \
         `murald playlist create NAME --folder travel` what is in that folder",
    )
}

fn edit(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let mut body = body(call);
    if let Some(name) = call.value("--name") {
        body.insert("name".to_owned(), name.clone());
    }
    if body.is_empty() {
        return Err(Error::usage("no change is given")
            .hint("see `murald playlist edit --help` for what can be changed"));
    }
    change(call, stdout, |_| Ok(Value::Object(body)))
}

/// Writes what `body` makes of the playlist as it is now, while no other command changes it.
fn change(
    call: &Call,
    stdout: &mut Stdout,
    body: impl FnOnce(&Connection) -> Result<Value, Error>,
) -> Result<(), Error> {
    let connection = call.connect()?;
    let place = place(call);
    let answer = edit_lock::hold(&connection, || connection.patch(&place, &body(&connection)?))?;
    stdout.show(&answer, |stdout, playlist: Playlist| people(stdout, &playlist, &connection))
}

fn add(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let more = chosen(call, &call.connect()?)?;
    change(call, stdout, |connection| {
        let mut images = images(call, connection)?;
        images.extend(more);
        Ok(json!({ "images": images }))
    })
}

/// Those that are named, with their times, or that pass the filters.
fn chosen(call: &Call, connection: &Connection) -> Result<Vec<Value>, Error> {
    let items = gallery::chosen(call, connection)?;
    let item = |item: Value| if item.is_number() { json!({"image_id": item}) } else { item };
    Ok(items.into_iter().map(item).collect())
}

fn remove(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let gone = call.all("IMAGE");
    change(call, stdout, |connection| {
        let mut images = images(call, connection)?;
        let before = images.len();
        images.retain(|item| !gone.contains(&&item["image_id"]));
        if images.len() == before {
            return Err(Error::refused("the playlist has none of these images"));
        }
        Ok(json!({ "images": images }))
    })
}

/// Those that the playlist has now, as the daemon wrote them.
fn images(call: &Call, connection: &Connection) -> Result<Vec<Value>, Error> {
    let mut playlist: Value = connection.get(&place(call))?.read()?;
    if playlist["source"].is_object() {
        let name = playlist["name"].as_str().unwrap_or_default();
        return Err(Error::refused(format!("the playlist {name} has what its filters find"))
            .hint("`murald playlist edit PLAYLIST IMAGE...` gives it a list instead"));
    }
    match playlist["images"].take() {
        Value::Array(images) => Ok(images),
        _ => Ok(Vec::new()),
    }
}
