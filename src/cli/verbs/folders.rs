//! Folders: a tree over the library.

use serde::Deserialize;

use super::super::Failure;
use super::super::call::Call;
use super::super::request::{From, Record, Request, place};
use super::super::screen::Screen;
use super::super::table::Table;
use super::super::text::count;
use super::super::verb::{Argument, Flag, Group, Kind, Verb};
use crate::wire::{Data, Folder};

const ONE: Argument = Argument::one("ID", Kind::Folder, "The folder");

pub(super) const GROUP: Group = Group {
    title: "Folders",
    verbs: &[
        Verb::asking(&["folders", "list"], "List the folders of the library", LIST).flags(&[
            Flag::value(
                "--parent",
                "ID",
                Kind::FolderOrRoot,
                "Only those directly in this one; root: in none",
            ),
            Flag::value("--search", "TEXT", Kind::Text, "Only those with this in their name"),
        ]),
        Verb::asking(&["folders", "show"], "Show one folder", SHOW).arguments(&[ONE]),
        Verb::asking(&["folders", "path"], "Show which folders one is in, outermost first", PATH)
            .arguments(&[ONE]),
        Verb::asking(&["folders", "create"], "Create a folder", CREATE)
            .arguments(&[Argument::one("NAME", Kind::Text, "Its name")])
            .flags(&[Flag::value(
                "--parent",
                "ID",
                Kind::FolderOrRoot,
                "The folder that it is to be in",
            )]),
        Verb::asking(&["folders", "rename"], "Rename a folder", RENAME)
            .arguments(&[ONE, Argument::one("NAME", Kind::Text, "The new name")]),
        Verb::asking(&["folders", "move"], "Move a folder into another one", MOVE).arguments(&[
            ONE,
            Argument::one("PARENT", Kind::FolderOrRoot, "The other one; root: out of all folders"),
        ]),
        Verb::asking(&["folders", "add"], "Put images into a folder", ADD).arguments(&[
            Argument::one("ID", Kind::FolderOrRoot, "The folder; root: out of all folders"),
            Argument::some("IMAGE", Kind::Image, "The images"),
        ]),
        Verb::new(&["folders", "delete"], "Delete a folder", delete)
            .arguments(&[ONE])
            .flags(&[Flag::switch(
                "--all",
                "Also delete the images and folders in it, with their files",
            )])
            .help("Without --all, what is in it moves up to the folder around it."),
    ],
};

const ONE_FOLDER: &str = "/folders/{ID}";
const LIST: Request =
    Request::get("/folders?parent_id={--parent:all}&search={--search}").shows::<Data<Folder>>();
const SHOW: Request = Request::get(ONE_FOLDER).shows::<Folder>();
const PATH: Request = Request::get("/folders/{ID}/path").shows::<Nesting>();
const CREATE: Request = Request::post(
    "/folders",
    &[("name", From::Given("NAME")), ("parent_id", From::Folder("--parent"))],
)
.says("folder {id} ({name})");
const RENAME: Request =
    Request::patch(ONE_FOLDER, &[("name", From::Given("NAME"))]).shows::<Folder>();
const MOVE: Request =
    Request::patch(ONE_FOLDER, &[("parent_id", From::Folder("PARENT"))]).shows::<Folder>();
const ADD: Request = Request::post(
    "/folders/move-images",
    &[("image_ids", From::All("IMAGE")), ("folder_id", From::Folder("ID"))],
)
.shows::<Moved>();

impl Record for Data<Folder> {
    fn show(self, _: &Call, screen: &mut Screen) -> Result<(), Failure> {
        if self.data.is_empty() {
            return screen.line("no folders; `murald folders create NAME` makes one");
        }
        table(screen, &self.data)
    }
}

impl Record for Folder {
    fn show(self, _: &Call, screen: &mut Screen) -> Result<(), Failure> {
        table(screen, &[self])
    }
}

fn table(screen: &mut Screen, folders: &[Folder]) -> Result<(), Failure> {
    let mut table = Table::new(&[">ID", "NAME", ">IN", ">IMAGES", ">FOLDERS"]);
    for folder in folders {
        table.row([
            folder.id.into(),
            (&folder.name).into(),
            parent(folder.parent_id).into(),
            folder.image_count.into(),
            folder.folder_count.into(),
        ]);
    }
    screen.table(&table)
}

fn parent(id: Option<i64>) -> String {
    id.map_or_else(|| "root".to_owned(), |id| id.to_string())
}

/// The folders that one is in, from the outermost on.
#[derive(Deserialize)]
#[serde(transparent)]
struct Nesting(Data<Folder>);

impl Record for Nesting {
    fn show(self, _: &Call, screen: &mut Screen) -> Result<(), Failure> {
        let names: Vec<String> = self.0.data.into_iter().map(|folder| folder.name).collect();
        screen.line(names.join(" / "))
    }
}

#[derive(Deserialize)]
struct Moved {
    moved: u64,
}

impl Record for Moved {
    fn show(self, call: &Call, screen: &mut Screen) -> Result<(), Failure> {
        let rest = match self.moved < call.all("IMAGE").len() as u64 {
            true => "; there are no others of these",
            false => "",
        };
        screen.line(format!("{} moved{rest}", count(self.moved, "image")))
    }
}

#[derive(Deserialize)]
struct Deleted {
    images_deleted: u64,
    folders_deleted: u64,
}

fn delete(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let mode = if call.has("--all") { "delete_all" } else { "keep_contents" };
    let place = place(ONE_FOLDER, call).query("mode", Some(mode));
    let answer = call.connect()?.delete(&place, None)?;
    screen.show(&answer, |screen, gone: Deleted| {
        let folders = count(gone.folders_deleted, "folder");
        match gone.images_deleted {
            0 => screen.line(format!("{folders} deleted")),
            images => screen.line(format!("{folders} and {} deleted", count(images, "image"))),
        }
    })
}
