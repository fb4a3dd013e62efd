//! `murald folders`: shows and changes the tree of folders.

use serde_json::Value;

use super::image_sheet::TOTAL;
use super::{
    Argument, Call, Error, Flag, From, Group, Kind, RequestPath, Verb, View, column, count, delete,
    items, more, number, path, text,
};

const ONE: Argument = Argument::one("FOLDER", Kind::Folder, "The folder");
const NAME: (&str, From) = ("name", From::Given("NAME"));

#[rustfmt::skip]
pub(super) const GROUP: Group = Group { title: "Folders", verbs: &[
    Verb::get(&["folders", "list"], "List the folders of the library",
        "GET /folders?parent_id={--parent:all}&search={--search}")
        .shows(&[&FOLDERS]).flags(&[
            Flag::value("--parent", "FOLDER", Kind::FolderOrRoot,
                "Only folders directly in this one; root: top-level folders"),
            Flag::value("--search", "TEXT", Kind::Text, "Only folders with this text in their names"),
        ]),
    Verb::get(&["folders", "show"], "Show a folder", "GET /folders/{FOLDER}")
        .takes(&[ONE]).shows(&[&FOLDER]),
    Verb::get(&["folders", "path"], "Show a folder and its parents, outermost first",
        "GET /folders/{FOLDER}/path").takes(&[ONE]).shows(&[&NESTING]),
    Verb::send(&["folders", "create"], "Create a folder", "POST /folders",
        &[NAME, ("parent_id", From::Folder("--parent"))])
        .takes(&[Argument::one("NAME", Kind::Name, "Name of the folder")]).shows(&[&CREATED])
        .flags(&[Flag::value("--parent", "FOLDER", Kind::FolderOrRoot, "The parent folder")]),
    Verb::send(&["folders", "rename"], "Rename a folder", "PATCH /folders/{FOLDER}", &[NAME])
        .takes(&[ONE, Argument::one("NAME", Kind::Name, "The new name")]).shows(&[&FOLDER]),
    Verb::send(&["folders", "move"], "Move a folder into another one", "PATCH /folders/{FOLDER}",
        &[("parent_id", From::Folder("PARENT"))])
        .takes(&[ONE, Argument::one("PARENT", Kind::FolderOrRoot,
            "The other folder; root: no parent")]).shows(&[&FOLDER]),
    Verb::get(&["folders", "delete"], "Delete a folder",
        "DELETE /folders/{FOLDER}?mode={--contents=delete_all:keep_contents}&trash={--forever=false:true}")
        .takes(&[ONE]).asking(question).shows(&[&DELETED]).flags(&[
            Flag::switch("--contents", "Also delete the images and folders in it"),
            delete::YES,
            delete::FOREVER,
        ])
        .help("Without --contents, images and folders in it move to the parent. Files are treated as \
               by `murald images delete`."),
]};

const FOLDER: View = View::table(
    "Folder",
    &[
        column(">ID", "id"),
        column("PATH", "name"),
        column(">IMAGES", "images_below"),
        column(">FOLDERS", "folder_count"),
        more("image_count parent_id created_at updated_at"),
    ],
    "no folders; create one with `murald folders create NAME`",
);
const CREATED: View = FOLDER.saying("created folder {name} ({id})");
const NESTING: View = FOLDER.showing(|_, stdout, answer| {
    let folders = items(answer, "data").iter();
    stdout.line(
        folders
            .map(|one| text(one, "name"))
            .collect::<Vec<_>>()
            .join("/"),
    )
});
/// Folders with their paths; only with their names if not all folders are listed.
const FOLDERS: View = FOLDER.showing(|call, stdout, answer| {
    let mut named = answer.clone();
    let all = items(answer, "data");
    for (folder, own) in named["data"].as_array_mut().into_iter().flatten().zip(all) {
        folder["name"] = path(own, all).into();
    }
    FOLDER.people(call, stdout, &named)
});
const DELETED: View = View::new(
    "DELETE /folders/{id}",
    &[more(
        "deleted mode images_deleted folders_deleted files_kept warnings",
    )],
)
.showing(|_, stdout, gone| {
    let folders = count(number(gone, "folders_deleted"), "folder");
    match number(gone, "images_deleted") {
        0 => stdout.say(format!("{folders} deleted"))?,
        images => stdout.say(format!("{folders} and {} deleted", count(images, "image")))?,
    }
    stdout.warn_all(gone);
    Ok(())
});

/// Asks whether the images of a folder may be deleted with it, if there are any.
fn question(call: &Call) -> Result<Option<String>, Error> {
    if !call.has("--contents") {
        return Ok(None);
    }
    let place = RequestPath::new(&[&"images"]).query("recursive", Some(true));
    let place = place
        .query("folder_id", call.query("FOLDER"))
        .query("per_page", Some(1));
    let inside: Value = call.connect()?.get(&place)?.read()?;
    let images = number(&inside, TOTAL);
    let forever = call.has("--forever");
    let how = if forever {
        "for good"
    } else {
        "and move their files to the trash"
    };
    let images = (images > 0).then(|| count(images, "image"));
    Ok(images.map(|images| format!("Delete the folder and {images} in it {how}?")))
}
