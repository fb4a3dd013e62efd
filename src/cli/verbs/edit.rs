//! The verbs that change images: names, tags, folders, favourites.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::call::Call;
use super::super::connection::RequestPath;
use super::super::request::{From, Record, Request};
use super::super::stdout::Stdout;
use super::super::terminal::count;
use super::super::verb::{Argument, Flag, Kind, NULL, Verb};
use super::super::{Error, edit_lock, reference};
use super::folders::Moved;
use super::image_sheet::{MANY, ONE, show};
use super::{ON_OFF, gallery};
use crate::wire::{Image, collate};

pub(super) const UPDATE: Verb =
    Verb::new(&["images", "update"], "Change what the library knows about an image", update)
        .arguments(&[ONE])
        .flags(&[
            Flag::value("--name", "NAME", Kind::Text, "Its name, which is its file's name, too"),
            Flag::value("--tags", "A,B", Kind::Tags, "Its tags, in place of those it has"),
            Flag::value(
                "--colors",
                "HEX,HEX",
                Kind::List(&[]),
                "Its palette, in place of the one it has",
            ),
            Flag::value(
                "--folder",
                "FOLDER",
                Kind::FolderOrRoot,
                "Move it to this folder; root: out of all folders",
            ),
            Flag::value("--selected", "WHICH", ON_OFF, "Select it, or no longer"),
            Flag::value("--audio", "WHICH", ON_OFF, "Play a video's sound, or not"),
            Flag::value(
                "--overrides",
                "JSON",
                Kind::Json,
                "Set an HTML wallpaper's own settings: an object of them",
            ),
            Flag::value(
                "--capabilities",
                "JSON",
                Kind::Json,
                "What an HTML wallpaper may do: an object of true and false",
            ),
        ]);
pub(super) const RENAME: Verb =
    Verb::asking(&["images", "rename"], "Rename an image and its file", NAME)
        .arguments(&[ONE, Argument::one("NAME", Kind::Text, "The new name")])
        .help(
            "A file that is used where it is keeps its name. Where another image has the name, a\n\
             number is put after it.",
        );
pub(super) const TAG: Verb =
    Verb::new(&["images", "tag"], "Add tags to images, or remove some", tag)
        .arguments(&[MANY])
        .flags(&gallery::together::<3, { gallery::FILTERS.len() }, { 3 + gallery::FILTERS.len() }>(
            [
                Flag::value("--add", "A,B", Kind::Tags, "Tags to add"),
                Flag::value(
                    "--remove",
                    "A,B",
                    Kind::Tags,
                    "Tags to remove; capitals do not matter",
                ),
                NULL,
            ],
        ))
        .help("With filters, all images that pass them.");
pub(super) const MOVE: Verb = Verb::new(&["images", "move"], "Move images into a folder", into)
    .arguments(&[
        MANY,
        Argument::one("FOLDER", Kind::FolderOrRoot, "The folder; root: out of all folders"),
    ])
    .flags(gallery::MANY)
    .help("With filters, all images that pass them.");
pub(super) const SELECT: Verb =
    Verb::new(&["images", "select"], "Mark images as selected, for graphical clients", select)
        .arguments(&[Argument::any("IMAGE", Kind::Image, "The images")])
        .flags(&[
            Flag::switch("--all", "All images of the library"),
            Flag::switch("--off", "Take the mark away instead"),
        ]);
pub(super) const TAGS: Verb =
    Verb::asking(&["images", "tags"], "List all tags that images have", ALL_TAGS);

const NAME: Request =
    Request::patch("/images/{IMAGE}", &[("name", From::Given("NAME"))]).shows::<Image>();
const ALL_TAGS: Request = Request::get("/images/tags").shows::<Tags>();

fn update(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let changes = changes(call);
    if changes.is_empty() {
        return Err(Error::usage("no change is given")
            .hint("see `murald images update --help` for what can be changed"));
    }
    let place = RequestPath::new(&[&"images", &call.word("IMAGE")]);
    let connection = call.connect()?;
    // Not while another command has read tags that it is about to write.
    let answer =
        edit_lock::hold(&connection, || connection.patch(&place, &Value::Object(changes)))?;
    stdout.show(&answer, |stdout, image: Image| show(call, stdout, &image))
}

fn changes(call: &Call) -> Map<String, Value> {
    const FIELDS: [(&str, &str); 8] = [
        ("name", "--name"),
        ("tags", "--tags"),
        ("colors", "--colors"),
        ("folder_id", "--folder"),
        ("is_selected", "--selected"),
        ("audio_enabled", "--audio"),
        ("wallpaper_config_overrides", "--overrides"),
        ("web_capabilities", "--capabilities"),
    ];
    let mut changes = Map::new();
    for (field, flag) in FIELDS {
        let Some(value) = call.value(flag) else { continue };
        let value = match (field, value.as_str()) {
            ("folder_id", Some(_)) => Value::Null,
            ("is_selected" | "audio_enabled", word) => (word == Some("on")).into(),
            _ => value.clone(),
        };
        changes.insert(field.to_owned(), value);
    }
    changes
}

fn tag(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let list = |flag: &str| -> Vec<String> {
        let items = call.value(flag).and_then(Value::as_array).cloned().unwrap_or_default();
        items.iter().filter_map(|tag| tag.as_str().map(str::to_owned)).collect()
    };
    let (add, remove) = (list("--add"), list("--remove"));
    if add.is_empty() && remove.is_empty() {
        return Err(Error::usage("no tag is given: use --add or --remove"));
    }
    let connection = call.connect()?;
    for id in &gallery::chosen(call, &connection)? {
        let place = RequestPath::new(&[&"images", id]);
        let answer = edit_lock::hold(&connection, || {
            let Image { mut tags, .. } = connection.get(&place)?.read()?;
            tags.retain(|tag| !remove.iter().any(|gone| same_tag(gone, tag)));
            tags.extend(add.iter().filter(|tag| !tags.contains(tag)).cloned().collect::<Vec<_>>());
            connection.patch(&place, &json!({"tags": tags}))
        })?;
        stdout.show(&answer, |stdout, image: Image| {
            stdout.say(format!("{} ({id}): {}", image.name, image.tags.join(", ")))
        })?;
    }
    Ok(())
}

/// Tags ignore case wherever they are looked for.
pub(super) fn same_tag(one: &str, other: &str) -> bool {
    collate::folded(one) == collate::folded(other)
}

fn into(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let connection = call.connect()?;
    let ids = gallery::chosen(call, &connection)?;
    if ids.is_empty() {
        return stdout.say("no image matches");
    }
    let folder = call.value("FOLDER").filter(|id| id.is_number());
    let place = RequestPath::new(&[&"folders", &"move-images"]);
    let answer = connection.post(&place, &json!({ "image_ids": ids, "folder_id": folder }))?;
    stdout.show(&answer, |stdout, moved: Moved| moved.tell(ids.len(), stdout))
}

#[derive(Deserialize)]
struct Updated {
    updated: u64,
}

fn select(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let selected = !call.has("--off");
    let done = if selected { "selected" } else { "no longer selected" };
    let ids = call.all("IMAGE");
    let connection = match (ids.is_empty(), call.has("--all")) {
        (true, false) => return Err(Error::usage("IMAGE is missing, or --all for all images")),
        (false, true) => return Err(Error::usage("give either images or --all")),
        _ => call.connect()?,
    };
    if ids.is_empty() {
        let place = RequestPath::new(&[&"images", &"select-all"]);
        let answer = connection.post(&place, &json!({"selected": selected}))?;
        return stdout.show(&answer, |stdout, Updated { updated }| {
            stdout.say(format!("{} {done}", count(updated, "image")))
        });
    }
    for id in ids {
        let place = RequestPath::new(&[&"images", id]);
        let answer = connection.patch(&place, &json!({"is_selected": selected}))?;
        stdout.show(&answer, |stdout, image: Image| {
            stdout.say(format!("{} ({id}) {done}", image.name))
        })?;
    }
    Ok(())
}

#[derive(Deserialize)]
struct Tags {
    tags: Vec<String>,
}

impl Record for Tags {
    fn show(self, _: &Call, stdout: &mut Stdout) -> Result<(), Error> {
        if self.tags.is_empty() {
            return stdout.note("no tags; `murald images tag IMAGE --add TAG` adds one");
        }
        self.tags.iter().try_for_each(|tag| stdout.line(tag))
    }
}

const FAVOURITE_TAG: &str = "favourite";

pub(super) const FAVOURITE: Verb =
    Verb::new(&["favourite"], "Make an image a favourite, or no longer", toggle_favourite)
        .arguments(&[Argument::optional(
            "IMAGE",
            Kind::Image,
            "The image; without it, what the monitors show",
        )])
        .help(
            "A favourite has the tag `favourite`:\n\n    murald favourite\n    \
             murald random --tags favourite",
        );

fn toggle_favourite(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let connection = call.connect()?;
    let id = match call.value("IMAGE") {
        Some(id) => id.clone(),
        None => reference::not_deleted(&reference::current(&connection, None)?)?.into(),
    };
    let place = RequestPath::new(&[&"images", &id]);
    let (answer, was) = edit_lock::hold(&connection, || {
        let Image { mut tags, .. } = connection.get(&place)?.read()?;
        let before = tags.len();
        tags.retain(|tag| !same_tag(tag, FAVOURITE_TAG));
        let was = tags.len() < before;
        if !was {
            tags.push(FAVOURITE_TAG.to_owned());
        }
        Ok((connection.patch(&place, &json!({ "tags": tags }))?, was))
    })?;
    stdout.show(&answer, |stdout, image: Image| {
        let now = if was { "no longer a favourite" } else { "a favourite" };
        stdout.say(format!("{} ({}) is {now}", image.name, image.id))
    })
}
