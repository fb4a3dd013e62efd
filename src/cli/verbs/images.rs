//! The verbs about images of the library, and previews, loops and palettes of videos.

use std::fs::File;
use std::io::{self, IsTerminal, Read};

use serde_json::{Value, json};

use super::contact_sheet::SHEET;
use super::filters::{FILTERS, LISTED};
use super::image_sheet::{IMAGE, IMAGES, ONE, PICTURE, SIZE, list, picture};
use super::{
    Argument, Body, Call, Error, FOLDER, Flag, From, Group, Kind, NULL, ON_OFF, OUTPUT, Request,
    Stdout, Verb, View, count, delete, items, label, more, number, palette, place, text, written,
};
use crate::wire::{Resolution, collate};

const MANY: Argument = Argument::any(
    "IMAGE",
    Kind::Image,
    "The images; - reads from standard input",
);
#[rustfmt::skip]
const OR_CURRENT: &[Argument] =
    &[Argument::optional("IMAGE", Kind::Image, "The image (default: those on the monitors)").or("current")];
const MATCHING: &str = "Filters select all images that match.";

#[rustfmt::skip]
pub(super) const GROUP: Group = Group { title: "Images", verbs: &[
    Verb::own(&["images", "list"], "List the images of the library", list)
        .flags(LISTED).shows(&[&IMAGES])
        .help("Images must match all filters. Commands that modify images reject an empty filter."),
    Verb::own(&["images", "search"], "Search images by words in names and tags", list)
        .takes(&[Argument::some("TEXT", Kind::Text, "Words that must all match; case is ignored")])
        .flags(LISTED).shows(&[&IMAGES]),
    Verb::own(&["images", "show"], "Show a picture and its details in the terminal", picture)
        .takes(&[ONE]).flags(&[SIZE, PICTURE]).shows(&[&IMAGE])
        .help("chafa draws the picture if it is installed; otherwise it is drawn with half blocks. \
               With NO_COLOR, only `--picture blocks` draws it."),
    SHEET,
    Verb::send(&["images", "update"], "Change the properties of an image",
        "PATCH /images/{IMAGE}", &[
            ("name", From::Given("--name")), ("tags", From::Given("--tags")),
            ("description", From::Given("--description")),
            ("colors", From::Given("--colors")), ("folder_id", From::IntoFolder("--folder")),
            ("is_selected", From::On("--selected")), ("audio_enabled", From::On("--audio")),
            ("position", From::Given("--position")),
            ("wallpaper_config_overrides", From::Given("--overrides")),
            ("web_capabilities", From::Given("--capabilities")),
        ])
        .takes(&[ONE]).shows(&[&IMAGE]).flags(&[
            Flag::value("--name", "NAME", Kind::Name, "The new name, also of the file"),
            Flag::value("--tags", "A,B", Kind::List(&[]), "The tags, replacing the current ones"),
            Flag::value("--description", "TEXT", Kind::Text, "Description of the \
                image, for searches and screen \
               readers"),
            Flag::value("--colors", "HEX,HEX", Kind::Colors, "The palette, replacing the current \
               one"),
            Flag::value("--folder", "FOLDER", Kind::FolderOrRoot,
                "Move the image to this folder; root: no folder"),
            Flag::value("--selected", "on|off", ON_OFF, "Select or deselect the image"),
            Flag::value("--audio", "on|off", ON_OFF, "Play the audio of a video, or mute it"),
            Flag::value("--position", "POSITION", Kind::Position,
                "Visible part: a name (top-left), X%,Y% or default"),
            Flag::value("--overrides", "JSON", Kind::Json,
                "Settings of an HTML wallpaper, as a JSON object"),
            Flag::value("--capabilities", "JSON", Kind::Json,
                "Permissions of an HTML wallpaper, as a JSON object"),
        ]),
    Verb::send(&["images", "rename"], "Rename an image and its file",
        "PATCH /images/{IMAGE}", &[("name", From::Given("NAME"))])
        .takes(&[ONE, Argument::one("NAME", Kind::Name, "The new name")]).shows(&[&RENAMED])
        .help("A file in place keeps its name. If another image has the name, a number is appended \
               and a message says so."),
    Verb::send(&["images", "tag"], "Add or remove tags", "PATCH /images", TAGS_OF).needs(has_tags)
        .takes(&[MANY]).choosing().shows(&[&TAGGED]).help(MATCHING)
        .flags(joined!(FILTERS;
            Flag::value("--add", "A,B", Kind::Tags, "Tags to add"),
            Flag::value("--remove", "A,B", Kind::Tags, "Tags to remove; case is ignored"),
            NULL,
        )),
    Verb::send(&["images", "move"], "Move images into a folder", "POST /folders/move-images", MOVING)
        .takes(&[MANY, Argument::one("FOLDER", Kind::FolderOrRoot, "The folder; root: no folder")])
        .flags(joined!(FILTERS; NULL)).choosing().shows(&[&MOVED]).help(MATCHING),
    Verb::own(&["images", "select"], "Mark images as selected, for graphical clients", select).needs(selects_some)
        .takes(&[Argument::any("IMAGE", Kind::Image, "The images")]).shows(&[&ALL_SELECTED, &SELECTED])
        .flags(&[
            Flag::switch("--all", "All images of the library"),
            Flag::switch("--off", "Deselect instead"),
        ]),
    Verb::get(&["images", "tags"], "List the tags in use", "GET /images/tags").shows(&[&TAGS]),
    Verb::own(&["images", "thumbnail"], "Print the thumbnail of an image (WebP)", |call, stdout| {
            copy(call, stdout, "/images/{IMAGE}/thumbnail?resolution={--resolution}")
        })
        .takes(&[ONE]).flags(&[
            Flag::value("--resolution", "SIZE", Kind::Words(Resolution::WORDS),
                "Maximum size; default is 500 pixels"),
            OUTPUT,
        ]),
    Verb::own(&["images", "raw"], "Print the file of an image", |call, stdout| {
            copy(call, stdout, "/images/{IMAGE}/raw")
        })
        .takes(&[ONE]).flags(&[OUTPUT]),
    Verb::send(&["images", "delete"], "Delete images and their files",
        "DELETE /images", &[
            ("ids", From::Any("IMAGE")),
            ("trash", From::Not("--forever")), ("files", From::Of(delete::files)),
        ])
        .takes(&[MANY]).choosing().asking(delete::question).shows(&[&delete::DELETED])
        .flags(joined!(FILTERS;
            delete::YES,
            delete::FOREVER,
            Flag::switch("--files", "Also delete the files of images in place"),
            NULL,
        ))
        .help("Filters select all images that match. Files go to the desktop's trash. Files used \
               in place and the originals of imported \
               images are not touched. A monitor that shows a deleted image changes to the next \
               image of its playlist, or to its previous wallpaper."),
    Verb::send(&["trash"], "Move images to the desktop's trash", "DELETE /images", &[
            ("ids", From::Any("IMAGE")),
            ("trash", From::Fixed(true)),
            ("files", From::Fixed(true)),
        ])
        .takes(&[Argument::any("IMAGE", Kind::Image, "The images (default: those on the monitors)")
            .or("current")])
        .asking(delete::question_of_trash).shows(&[&delete::DELETED])
        .flags(&[delete::YES])
        .help("Moves the files, also those of images in place, and removes the images from the \
               library. The next picture is shown. `murald undo` shows the previous wallpaper, but \
               restores no image: restore the file from the trash and import it."),
    Verb::get(&["where"], "Print the path of an image", "GET /images/{IMAGE}")
        .takes(OR_CURRENT).shows(&[&PATH]),
    Verb::change(&["favourite"], "Toggle whether an image is a favourite",
        "PATCH /images/{IMAGE}", favourite)
        .takes(OR_CURRENT).shows(&[&FAVOURITE])
        .help("A favourite has the tag `favourite`:\n\n    murald favourite\n    \
               murald random --tags favourite"),
]};

/// The fields of a move. The root as `FOLDER` moves the images out of all folders.
const MOVING: &[(&str, From)] = &[
    ("image_ids", From::Any("IMAGE")),
    ("folder_id", From::Folder("FOLDER")),
];
const MOVED: View =
    View::new("POST /folders/move-images", &[more("moved")]).saying("{moved#image} moved");
const TAGGED: View =
    View::new("PATCH /images", &[more("updated")]).showing(|call, stdout, answer| {
        match number(answer, "updated") {
            0 if !call.has("--add") => stdout.say("no image had the tag"),
            updated => stdout.say(format!("tags of {} changed", count(updated, "image"))),
        }
    });
const PATH: View = IMAGE.showing(|_, stdout, image| stdout.line(text(image, "path")));
const SELECTED: View = IMAGE.saying("{name} ({id}) {--off=no longer selected:selected}");
const ALL_SELECTED: View = View::new("POST /images/select-all", &[more("updated selected")])
    .saying("{updated#image} {--off=no longer selected:selected}");
const FAVOURITE: View = IMAGE.showing(|_, stdout, image| {
    let is_one = items(image, "tags").iter().any(is_favourite);
    let now = if is_one {
        "is a favourite"
    } else {
        "is no longer a favourite"
    };
    stdout.say(format!("{} {now}", label(image)))
});
const TAGS: View = View::new("GET /images/tags", &[more("tags")]).showing(|_, stdout, answer| {
    match items(answer, "tags") {
        [] => stdout.note("no tags; `murald images tag IMAGE --add TAG` adds one"),
        tags => tags.iter().try_for_each(|tag| stdout.line(written(tag))),
    }
});
const RENAMED: View = IMAGE.showing(|call, stdout, image| {
    IMAGE.people(call, stdout, image)?;
    let wanted = call.word("NAME");
    let name = text(image, "name");
    if name != wanted {
        stdout.warn(format!(
            "the name {wanted} is in use: the image is now named {name}"
        ));
    }
    Ok(())
});

const TAGS_OF: &[(&str, From)] = &[
    ("ids", From::Any("IMAGE")),
    (
        "tags",
        From::Object(&[
            ("add", From::Given("--add")),
            ("remove", From::Given("--remove")),
        ]),
    ),
];
const SELECT: Request = Request::new(
    "PATCH /images/{IMAGE}",
    Body::Fields(&[("is_selected", From::Not("--off"))]),
);
const SELECT_ALL: Request = Request::new(
    "POST /images/select-all",
    Body::Fields(&[("selected", From::Not("--off"))]),
);

fn has_tags(call: &Call) -> Result<(), Error> {
    if call.has("--add") || call.has("--remove") {
        return Ok(());
    }
    Err(Error::usage("no tags given").hint("use --add or --remove"))
}

fn is_favourite(tag: &Value) -> bool {
    collate::folded(&written(tag)) == "favourite"
}

fn favourite(_: &Call, image: Value) -> Result<Value, Error> {
    let is_one = items(&image, "tags").iter().any(is_favourite);
    let change = if is_one { "remove" } else { "add" };
    Ok(json!({ "tags": { change: ["favourite"] } }))
}

fn selects_some(call: &Call) -> Result<(), Error> {
    match (call.has("IMAGE"), call.has("--all")) {
        (false, false) => Err(Error::usage("no images given").hint("name images, or use --all")),
        (true, true) => Err(Error::usage("give either images or --all")),
        _ => Ok(()),
    }
}

fn select(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    if call.has("--all") {
        return ALL_SELECTED.show(call, stdout, &SELECT_ALL.send(call, "images")?);
    }
    for image in call.all("IMAGE") {
        let mut one = call.clone();
        one.values.retain(|(name, _)| *name != "IMAGE");
        one.values.push(("IMAGE", image.clone()));
        SELECTED.show(call, stdout, &SELECT.send(&one, "images")?)?;
    }
    Ok(())
}

/// Prints a file of the library piece by piece, as a video may be larger than the memory.
fn copy(call: &Call, stdout: &mut Stdout, template: &str) -> Result<(), Error> {
    let output = call.text("--output");
    if output.is_none() && io::stdout().is_terminal() {
        return Err(Error::usage("not printing image data on a terminal")
            .hint("write it to a file with --output FILE, or pipe it"));
    }
    let mut bytes = call.connect()?.stream(&place(template, call))?;
    if let Some(path) = output {
        // Created after the answer, so that a refused request leaves no empty file.
        let copied = File::create(path).and_then(|mut file| io::copy(&mut bytes, &mut file));
        return copied
            .map(drop)
            .map_err(|error| Error::refused(format!("cannot write {path}")).because(error));
    }
    let mut piece = vec![0; 64 << 10];
    loop {
        match bytes.read(&mut piece).map_err(Error::lost_daemon)? {
            0 => return Ok(()),
            read => stdout.raw(&piece[..read])?,
        }
    }
}

const VIDEO: Argument = Argument::one("IMAGE", Kind::Image, "The video");

/// The verbs about videos, for which the daemon needs ffmpeg.
#[rustfmt::skip]
pub(super) const VIDEOS: Group = Group { title: "Videos", verbs: &[
    Verb::send(&["video", "preview"], "Create a preview of a video for browsers",
        "POST /images/{IMAGE}/ensure-browser-preview?force={--force=1}", &[])
        .takes(&[VIDEO]).flags(&[Flag::switch("--force", "Create the preview again if it exists")])
        .shows(&[&PREVIEW]).waiting("creating the preview..."),
    Verb::send(&["video", "export"], "Export a loop from a video",
        "POST /images/{IMAGE}/video-loop-export", &[
            ("in_seconds", From::Or("--in", "0")), ("out_seconds", From::Of(end)),
            ("preset", From::Or("--preset", r#""mp4_h264""#)),
            ("action", From::Or("--action", r#""import_new""#)),
            ("blend_halves", From::Switch("--blend-halves")), ("folder_id", From::Given("--folder")),
        ])
        .takes(&[VIDEO]).shows(&[&EXPORTED]).waiting("creating the loop...").flags(&[
            Flag::value("--in", "SECONDS", Kind::Number, "Start of the loop; 0 by default"),
            Flag::value("--out", "SECONDS", Kind::Number, "End of the loop (required)"),
            Flag::value("--preset", "PRESET", Kind::Words(&["mp4_h264", "webm_vp9"]),
                "Video format; mp4_h264 by default"),
            Flag::value("--action", "ACTION", Kind::Words(&["import_new", "replace"]),
                "Import as a new video, or replace this one; import_new by default"),
            Flag::switch("--blend-halves", "Blend the end into the beginning"),
            FOLDER,
        ]),
    Verb::send(&["video", "palette"], "Extract the palette of a video at a given time",
        "POST /images/{IMAGE}/extract-video-palette", &[("time_seconds", From::Given("SECONDS"))])
        .takes(&[VIDEO, Argument::one("SECONDS", Kind::Number, "Time from the beginning")])
        .shows(&[&COLORS]),
]};

fn end(call: &Call) -> Result<Option<Value>, Error> {
    let missing = || Error::usage("missing flag --out: the end of the loop, in seconds");
    call.value("--out").cloned().map(Some).ok_or_else(missing)
}

const PREVIEW: View = IMAGE.showing(|_, stdout, image| match image["preview_path"].as_str() {
    Some(path) => stdout.line(path),
    None => stdout.say("made"),
});
const EXPORTED: View = View::new(
    "POST /images/{id}/video-loop-export",
    &[more("action image_id path")],
)
.saying("the loop is image {image_id}: {path}");
const COLORS: View = View::new(
    "POST /images/{id}/extract-video-palette",
    &[more("image_id"), palette("colors", "colors"), more("image")],
);
