//! The verbs about images of the library.

use serde_json::{Map, Value, json};

use super::super::call::Call;
use super::super::columns::{View, more, text};
use super::super::connection::{Answer, Method, RequestPath};
use super::super::request::{From, rewrite};
use super::super::stdout::Stdout;
use super::super::terminal::count;
use super::super::verb::{Argument, Flag, Group, Kind, NULL, Verb};
use super::super::{Error, reference};
use super::contact_sheet::SHEET;
use super::filters::{FILTERS, LISTED};
use super::image_sheet::{IMAGE, IMAGES, ONE, PICTURE, SIZE, list, picture};
use super::{ON_OFF, OUTPUT, delete, files};
use crate::wire::{Resolution, collate};

const MANY: Argument =
    Argument::any("IMAGE", Kind::Image, "The images; - reads from standard input");
const FAVOURITE: &str = "favourite";
const MATCHING: &str = "Filters select all images that match.";

#[rustfmt::skip]
pub(super) const GROUP: Group = Group { title: "Images", verbs: &[
    Verb::own(&["images", "list"], "List the images of the library", list)
        .flags(LISTED).shows(&[&IMAGES])
        .help("Images must match all filters. Commands that modify images reject an empty filter."),
    Verb::own(&["images", "search"], "Search images by words in names and tags", list)
        .takes(&[Argument::some("WORD", Kind::Text, "Words that must all match; case is ignored")])
        .flags(LISTED).shows(&[&IMAGES]),
    Verb::own(&["images", "show"], "Show a picture and its details in the terminal", picture)
        .takes(&[ONE]).flags(&[SIZE, PICTURE]).shows(&[&IMAGE])
        .help("chafa draws the picture if it is installed; otherwise it is drawn with half blocks. \
               With NO_COLOR, only `--picture blocks` draws it."),
    SHEET,
    Verb::send(&["images", "update"], "Change the properties of an image",
        "PATCH /images/{IMAGE}", &[
            ("name", From::Given("--name")), ("tags", From::Given("--tags")),
            ("colors", From::Given("--colors")), ("folder_id", From::IntoFolder("--folder")),
            ("is_selected", From::On("--selected")), ("audio_enabled", From::On("--audio")),
            ("wallpaper_config_overrides", From::Given("--overrides")),
            ("web_capabilities", From::Given("--capabilities")),
        ])
        .takes(&[ONE]).shows(&[&IMAGE]).flags(&[
            Flag::value("--name", "NAME", Kind::Text, "The name, also of its file"),
            Flag::value("--tags", "A,B", Kind::Tags, "The tags, replacing the current ones"),
            Flag::value("--colors", "HEX,HEX", Kind::List(&[]), "The palette, replacing the current \
               one"),
            Flag::value("--folder", "FOLDER", Kind::FolderOrRoot,
                "Move it to this folder; root: no folder"),
            Flag::value("--selected", "WHICH", ON_OFF, "Select or deselect it"),
            Flag::value("--audio", "WHICH", ON_OFF, "Play the audio of a video, or mute it"),
            Flag::value("--overrides", "JSON", Kind::Json,
                "Settings of an HTML wallpaper, as a JSON object"),
            Flag::value("--capabilities", "JSON", Kind::Json,
                "Permissions of an HTML wallpaper, as a JSON object"),
        ]),
    Verb::send(&["images", "rename"], "Rename an image and its file",
        "PATCH /images/{IMAGE}", &[("name", From::Given("NAME"))])
        .takes(&[ONE, Argument::one("NAME", Kind::Text, "The new name")]).shows(&[&RENAMED])
        .help("A file in place keeps its name. If another image has the name, a number is appended \
               and a message says so."),
    Verb::own(&["images", "tag"], "Add or remove tags", tag)
        .takes(&[MANY]).choosing().shows(&[&TAGGED]).help(MATCHING)
        .flags(joined!(FILTERS;
            Flag::value("--add", "A,B", Kind::Tags, "Tags to add"),
            Flag::value("--remove", "A,B", Kind::Tags, "Tags to remove; case is ignored"),
            NULL,
        )),
    Verb::send(&["images", "move"], "Move images into a folder", "POST /folders/move-images", MOVING)
        .takes(&[MANY, Argument::one("FOLDER", Kind::FolderOrRoot, "The folder; root: no folder")])
        .flags(joined!(FILTERS; NULL)).choosing().shows(&[&MOVED]).help(MATCHING),
    Verb::own(&["images", "select"], "Mark images as selected, for graphical clients", select)
        .takes(&[Argument::any("IMAGE", Kind::Image, "The images")]).shows(&[&ALL_SELECTED, &SELECTED])
        .flags(&[
            Flag::switch("--all", "All images of the library"),
            Flag::switch("--off", "Deselect instead"),
        ]),
    Verb::get(&["images", "tags"], "List the tags in use", "GET /images/tags").shows(&[&TAGS]),
    Verb::own(&["images", "thumbnail"], "Print the thumbnail of an image (WebP)", |call, stdout| {
            files::copy(call, stdout, "/images/{IMAGE}/thumbnail?resolution={--resolution}")
        })
        .takes(&[ONE]).flags(&[
            Flag::value("--resolution", "SIZE", Kind::Words(Resolution::WORDS),
                "Maximum size; default is 500 pixels"),
            OUTPUT,
        ]),
    Verb::own(&["images", "raw"], "Print the file of an image", |call, stdout| {
            files::copy(call, stdout, "/images/{IMAGE}/raw")
        })
        .takes(&[ONE]).flags(&[OUTPUT]),
    Verb::send(&["images", "delete"], "Delete images and their files",
        "DELETE /images", &[
            ("ids", From::Of(delete::ids)), ("paths", From::Of(delete::paths)),
            ("trash", From::Not("--forever")), ("files", From::Of(delete::files)),
        ])
        .takes(&[MANY]).choosing().asking(delete::question).shows(&[&delete::DELETED])
        .flags(joined!(FILTERS;
            Flag::switch("--yes", "Do not ask for confirmation (the default when not on a terminal)"),
            Flag::switch("--forever", "Remove the files instead of moving them to the trash"),
            Flag::switch("--files", "Also delete the files of images in place"),
            NULL,
        ))
        .help("Filters select all images that match. Files go to the desktop's trash. Files used \
               in place and the originals of imported \
               images are not touched. If an image was deleted while on the screen, `murald \
               images delete current --files` \
               deletes the kept file."),
    Verb::own(&["favourite"], "Toggle whether an image is a favourite", favourite)
        .takes(&[Argument::optional("IMAGE", Kind::Image, "The image (default: those on the monitors)")])
        .shows(&[&IMAGE])
        .help("A favourite has the tag `favourite`:\n\n    murald favourite\n    \
               murald random --tags favourite"),
]};

/// Without a folder: out of all folders.
pub(super) const MOVING: &[(&str, From)] =
    &[("image_ids", From::All("IMAGE")), ("folder_id", From::Folder("FOLDER"))];
pub(super) const MOVED: View =
    View::own("POST /folders/move-images", &[more("moved")], |call, stdout, answer| {
        let moved = answer["moved"].as_u64().unwrap_or_default();
        let are_all = moved >= call.all("IMAGE").len() as u64;
        let others = if are_all { "" } else { "; there are no others of these" };
        stdout.say(format!("{} moved{others}", count(moved, "image")))
    });
const TAGGED: View = IMAGE.saying("{name} ({id}): {tags}");
const SELECTED: View = IMAGE.saying("{name} ({id}) selected");
const UNSELECTED: View = IMAGE.saying("{name} ({id}) no longer selected");
const ALL_SELECTED: View =
    View::says("POST /images/select-all", &[more("updated selected")], "{updated#image} selected");
const TAGS: View = View::own("GET /images/tags", &[more("tags")], |_, stdout, answer| {
    let tags = answer["tags"].as_array().map_or(&[][..], Vec::as_slice);
    if tags.is_empty() {
        return stdout.note("no tags; `murald images tag IMAGE --add TAG` adds one");
    }
    tags.iter().filter_map(Value::as_str).try_for_each(|tag| stdout.line(tag))
});
const RENAMED: View = IMAGE.showing(|call, stdout, image| {
    IMAGE.people(call, stdout, image)?;
    let (wanted, name) = (call.word("NAME"), text(image, "name"));
    if name != wanted {
        stdout.warn(format!("another image is named {wanted}: this one is {name} now"));
    }
    Ok(())
});

fn at(id: &Value) -> RequestPath {
    RequestPath::new(&[&"images", id])
}

/// Writes the tags that `change` makes of those that an image has.
fn retag(call: &Call, id: &Value, change: impl FnOnce(&mut Vec<String>)) -> Result<Answer, Error> {
    rewrite(call, Method::Patch, &at(id), |image| {
        let tags = image["tags"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let mut tags: Vec<String> = tags.map(str::to_owned).collect();
        change(&mut tags);
        Ok(json!({ "tags": tags }))
    })
}

fn tag(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let list = |flag: &str| -> Vec<String> {
        let items = call.value(flag).and_then(Value::as_array).cloned().unwrap_or_default();
        items.iter().filter_map(|tag| tag.as_str().map(str::to_owned)).collect()
    };
    let (add, remove) = (list("--add"), list("--remove"));
    if add.is_empty() && remove.is_empty() {
        return Err(Error::usage("no tags given; use --add or --remove"));
    }
    for id in call.all("IMAGE") {
        let answer = retag(call, id, |tags| {
            tags.retain(|tag| !remove.iter().any(|gone| is_same_tag(gone, tag)));
            tags.extend(add.iter().filter(|tag| !tags.contains(tag)).cloned().collect::<Vec<_>>());
        })?;
        TAGGED.show(call, stdout, &answer)?;
    }
    Ok(())
}

/// Tags ignore case wherever they are looked for.
fn is_same_tag(one: &str, other: &str) -> bool {
    collate::folded(one) == collate::folded(other)
}

fn favourite(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let id = match call.value("IMAGE") {
        Some(id) => id.clone(),
        None => reference::not_deleted(&reference::current(&call.connect()?, None)?)?.into(),
    };
    let mut was = false;
    let answer = retag(call, &id, |tags| {
        let before = tags.len();
        tags.retain(|tag| !is_same_tag(tag, FAVOURITE));
        was = tags.len() < before;
        if !was {
            tags.push(FAVOURITE.to_owned());
        }
    })?;
    let now =
        if was { "{name} ({id}) is no longer a favourite" } else { "{name} ({id}) is a favourite" };
    IMAGE.saying(now).show(call, stdout, &answer)
}

fn select(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let selected = !call.has("--off");
    let ids = call.all("IMAGE");
    let connection = match (ids.is_empty(), call.has("--all")) {
        (true, false) => return Err(Error::usage("no images given; name images, or use --all")),
        (false, true) => return Err(Error::usage("give either images or --all")),
        _ => call.connect()?,
    };
    if ids.is_empty() {
        let place = RequestPath::new(&[&"images", &"select-all"]);
        let answer = connection.post(&place, &json!({ "selected": selected }))?;
        let said = if selected {
            "{updated#image} selected"
        } else {
            "{updated#image} no longer selected"
        };
        return ALL_SELECTED.saying(said).show(call, stdout, &answer);
    }
    let view = if selected { SELECTED } else { UNSELECTED };
    for id in ids {
        let body = Map::from_iter([("is_selected".to_owned(), selected.into())]);
        view.show(call, stdout, &connection.patch(&at(id), &body.into())?)?;
    }
    Ok(())
}
