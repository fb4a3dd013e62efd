//! Shows images as a table, and one image as a sheet of its fields.

use serde_json::Value;

use super::filters;
use super::{
    Argument, Call, Cell, Error, Flag, Kind, RequestPath, Stdout, View, column, computed, count,
    in_bytes, items, label, moment, more, number, palette, picture, text,
};

pub(super) const ONE: Argument = Argument::one("IMAGE", Kind::Image, "The image");

pub(super) const SIZE: Flag = Flag::value(
    "--size",
    "COLUMNS[xROWS]",
    Kind::Text,
    "Size of the picture",
);
#[rustfmt::skip]
pub(super) const PICTURE: Flag = Flag::value("--picture", "MODE", Kind::Words(picture::WORDS),
    "How to draw the picture; blocks also draws into a pipe; auto by default");

const FIELDS: &str = "id name path media_type format width height duration animated audio_enabled \
    file_size checksum tags description colors hue_group folder_id is_selected imported_at source_path \
    in_place position thumbnails files preview_path web_meta wallpaper_config_overrides";

pub(super) const IMAGES: View = View::table(
    "Image",
    &[
        column(">ID", "id"),
        column("NAME", "name"),
        column("=TYPE", "media_type"),
        column(">PIXELS", "{width}x{height}"),
        in_bytes(">SIZE", "file_size"),
        column("TAGS", "tags"),
        palette("COLORS", "colors"),
        column("DESCRIPTION", "description"),
        more(FIELDS),
    ],
    "",
);

pub(super) const IMAGE: View = View::new(
    "Image",
    &[
        column("id", "id"),
        column("name", "name"),
        computed("type", "media_type format animated", |image, _| {
            let moving = if image["animated"] == true {
                ", animated"
            } else {
                ""
            };
            let (media, format) = (text(image, "media_type"), text(image, "format"));
            Some(format!("{media} ({format}{moving})").into())
        }),
        column("pixels", "{width}x{height}"),
        computed("duration", "duration", |image, _| {
            let duration = image["duration"].as_f64().unwrap_or_default();
            is_video(image).then(|| format!("{duration:.2} s").into())
        }),
        computed("audio", "audio_enabled", |image, _| {
            is_video(image).then(|| {
                if image["audio_enabled"] == true {
                    "on"
                } else {
                    "off"
                }
                .into()
            })
        }),
        in_bytes("size", "file_size"),
        column("tags", "tags"),
        computed("description", "description", |image, _| {
            Some(text(image, "description"))
                .filter(|text| !text.is_empty())
                .map(Cell::from)
        }),
        palette("colors", "colors"),
        computed("folder", "folder_id", |image, call| {
            Some(folder(&image["folder_id"], call))
        }),
        computed("playlists", "", |image, call| playlists(&image["id"], call)),
        computed("selected", "is_selected", |image, _| {
            Some(
                if image["is_selected"] == true {
                    "yes"
                } else {
                    "no"
                }
                .into(),
            )
        }),
        moment("imported", "imported_at"),
        column("position", "position"),
        column("file", "path"),
        column("from", "source_path"),
        column("checksum", "checksum"),
        column("preview", "preview_path"),
        column("title", "web_meta.title"),
        column("author", "web_meta.author"),
        column("entry", "web_meta.entry_path"),
        more(FIELDS),
    ],
);

fn is_video(image: &Value) -> bool {
    image["media_type"] == "video"
}

/// `sea/bay (2)`, or only the id if the names cannot be read.
fn folder(id: &Value, call: &Call) -> Cell {
    if id.is_null() {
        return "root".into();
    }
    let path = call
        .connect()
        .and_then(|it| it.read::<Value>(&[&"folders", id, &"path"]));
    let Ok(path) = path else {
        return Cell::value(id);
    };
    let names: Vec<String> = items(&path, "data")
        .iter()
        .map(|one| text(one, "name"))
        .collect();
    Cell::from(format!("{} ({id})", names.join("/"))).raw(id)
}

/// The playlists that contain an image.
fn playlists(image: &Value, call: &Call) -> Option<Cell> {
    let all: Value = call.connect().ok()?.read(&[&"playlists"]).ok()?;
    let has = |playlist: &&Value| {
        items(playlist, "images")
            .iter()
            .any(|item| item["image_id"] == *image)
    };
    let names: Vec<String> = all.as_array()?.iter().filter(has).map(label).collect();
    (!names.is_empty()).then(|| Cell::list(&names))
}

pub(super) fn picture(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let connection = call.connect()?;
    let wish = picture::Wish::from_flags(call.text("--size"), call.text("--picture"))?;
    let id = call.word("IMAGE");
    let answer = connection.get(&RequestPath::new(&[&"images", &id]))?;
    let thumbnail = RequestPath::new(&[&"images", &id, &"thumbnail"]);
    stdout.show(&answer, |stdout, image| {
        let sheet = IMAGE.as_sheet(&image, call);
        if let Some(terminal) = wish.terminal(stdout.terminal())
            // Without a thumbnail, the text alone is shown.
            && let Ok(file) = connection.get(&thumbnail)
        {
            picture::show(&file.body, stdout, terminal, &wish, sheet.lines())?;
        }
        stdout.table(&sheet)
    })
}

pub(super) fn list(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let page = filters::page(call, None)?;
    if !stdout.is_json() {
        warn_of_more(call, stdout, &page);
    }
    LIST.tell(call, stdout, &page)
}

/// Warns that there are more images, unless a page was given.
pub(super) fn warn_of_more(call: &Call, stdout: &Stdout, page: &Value) {
    let shown = items(page, "data").len();
    let total = number(page, TOTAL);
    if (shown as u64) < total && !call.has("--page") {
        stdout.warn(format!(
            "showing {shown} of {}; --all shows all",
            count(total, "image")
        ));
    }
}

pub(super) const TOTAL: &str = "pagination.total_items";
pub(super) const LIST: View = IMAGES.showing(|call, stdout, page| {
    let rows = items(page, "data");
    let total = number(page, TOTAL);
    let all = &page["pagination"];
    let images = count(total, "image");
    if total == 0 {
        stdout.note(if filters::has_any(call) {
            "no image matches"
        } else {
            "the library is empty; `murald import PATH` imports images"
        })?;
        let advice = filters::advice(call);
        return advice.map_or(Ok(()), |advice| stdout.note(format!("hint: {advice}")));
    }
    if rows.is_empty() {
        let pages = count(number(all, "total_pages"), "page");
        return stdout.note(format!("no page {}; {images} on {pages}", all["page"]));
    }
    stdout.table(&IMAGES.as_table(rows, call))?;
    if call.has("--page") {
        let pages = &all["total_pages"];
        stdout.note(format!("page {} of {pages}, {images}", all["page"]))
    } else if (rows.len() as u64) < total {
        Ok(())
    } else {
        stdout.note(images)
    }
});
