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
    Argument::any("IMAGE", Kind::Image, "The images; - reads them from standard input");
const FAVOURITE: &str = "favourite";
const MATCHING: &str = "With filters, all images that pass them.";

#[rustfmt::skip]
pub(super) const GROUP: Group = Group { title: "Images", verbs: &[
    Verb::own(&["images", "list"], "List the images of the library", list)
        .flags(LISTED).shows(&[&IMAGES])
        .help("With several filters, only images that pass all of them. Commands that change what\n\
               filters find refuse one that is empty."),
    Verb::own(&["images", "search"], "Search images by words in their names and tags", list)
        .takes(&[Argument::some("WORD", Kind::Text, "Words that must all be there; capitals do not matter")])
        .flags(LISTED).shows(&[&IMAGES]),
    Verb::own(&["images", "show"], "Show a picture in the terminal, and all about it", picture)
        .takes(&[ONE]).flags(&[SIZE, PICTURE]).shows(&[&IMAGE])
        .help("chafa draws the picture if it is installed, otherwise it consists of coloured half\n\
               blocks. With NO_COLOR only `--picture blocks` draws it."),
    SHEET,
    Verb::send(&["images", "update"], "Change what the library knows about an image",
        "PATCH /images/{IMAGE}", &[
            ("name", From::Given("--name")), ("tags", From::Given("--tags")),
            ("colors", From::Given("--colors")), ("folder_id", From::IntoFolder("--folder")),
            ("is_selected", From::On("--selected")), ("audio_enabled", From::On("--audio")),
            ("wallpaper_config_overrides", From::Given("--overrides")),
            ("web_capabilities", From::Given("--capabilities")),
        ])
        .takes(&[ONE]).shows(&[&IMAGE]).flags(&[
            Flag::value("--name", "NAME", Kind::Text, "Its name, which is its file's name, too"),
            Flag::value("--tags", "A,B", Kind::Tags, "Its tags, in place of those it has"),
            Flag::value("--colors", "HEX,HEX", Kind::List(&[]), "Its palette, in place of the one it has"),
            Flag::value("--folder", "FOLDER", Kind::FolderOrRoot,
                "Move it to this folder; root: out of all folders"),
            Flag::value("--selected", "WHICH", ON_OFF, "Select it, or no longer"),
            Flag::value("--audio", "WHICH", ON_OFF, "Play a video's sound, or not"),
            Flag::value("--overrides", "JSON", Kind::Json,
                "Set an HTML wallpaper's own settings: an object of them"),
            Flag::value("--capabilities", "JSON", Kind::Json,
                "What an HTML wallpaper may do: an object of true and false"),
        ]),
    Verb::send(&["images", "rename"], "Rename an image and its file",
        "PATCH /images/{IMAGE}", &[("name", From::Given("NAME"))])
        .takes(&[ONE, Argument::one("NAME", Kind::Text, "The new name")]).shows(&[&RENAMED])
        .help("A file that is used where it is keeps its name. Where another image has the name, a\n\
               number is put after it, and a message says so."),
    Verb::own(&["images", "tag"], "Add tags to images, or remove some", tag)
        .takes(&[MANY]).choosing().shows(&[&TAGGED]).help(MATCHING)
        .flags(joined!(FILTERS;
            Flag::value("--add", "A,B", Kind::Tags, "Tags to add"),
            Flag::value("--remove", "A,B", Kind::Tags, "Tags to remove; capitals do not matter"),
            NULL,
        )),
    Verb::send(&["images", "move"], "Move images into a folder", "POST /folders/move-images", MOVING)
        .takes(&[MANY, Argument::one("FOLDER", Kind::FolderOrRoot, "The folder; root: out of all folders")])
        .flags(joined!(FILTERS; NULL)).choosing().shows(&[&MOVED]).help(MATCHING),
    Verb::own(&["images", "select"], "Mark images as selected, for graphical clients", select)
        .takes(&[Argument::any("IMAGE", Kind::Image, "The images")]).shows(&[&ALL_SELECTED, &SELECTED])
        .flags(&[
            Flag::switch("--all", "All images of the library"),
            Flag::switch("--off", "Take the mark away instead"),
        ]),
    Verb::get(&["images", "tags"], "List all tags that images have", "GET /images/tags").shows(&[&TAGS]),
    Verb::own(&["images", "thumbnail"], "Print an image's thumbnail, as WebP", |call, stdout| {
            files::copy(call, stdout, "/images/{IMAGE}/thumbnail?resolution={--resolution}")
        })
        .takes(&[ONE]).flags(&[
            Flag::value("--resolution", "SIZE", Kind::Words(Resolution::WORDS),
                "How large at most; default is 500 pixels"),
            OUTPUT,
        ]),
    Verb::own(&["images", "raw"], "Print an image's file as it is", |call, stdout| {
            files::copy(call, stdout, "/images/{IMAGE}/raw")
        })
        .takes(&[ONE]).flags(&[OUTPUT]),
    Verb::send(&["images", "delete"], "Delete images from the library, files and all",
        "DELETE /images", &[
            ("ids", From::Of(delete::ids)), ("paths", From::Of(delete::paths)),
            ("trash", From::Not("--forever")), ("files", From::Of(delete::files)),
        ])
        .takes(&[MANY]).choosing().asking(delete::question).shows(&[&delete::DELETED])
        .flags(joined!(FILTERS;
            Flag::switch("--yes", "Ask nothing; elsewhere than on a terminal nothing is asked"),
            Flag::switch("--forever", "Remove the files, instead of moving them to the trash"),
            Flag::switch("--files", "Also the files of images that are no copies of murald's"),
            NULL,
        ))
        .help("With filters, all images that pass them. murald's copies go to the desktop's trash; files in \
               place, and those that copies were made of, stay. If an image was deleted while it is shown,\n\
               `murald images delete current --files` deletes the file that was kept."),
    Verb::own(&["favourite"], "Make an image a favourite, or no longer", favourite)
        .takes(&[Argument::optional("IMAGE", Kind::Image, "The image; without it, what the monitors show")])
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
        return Err(Error::usage("no tag is given: use --add or --remove"));
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
        (true, false) => return Err(Error::usage("IMAGE is missing, or --all for all images")),
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
