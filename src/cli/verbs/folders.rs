//! `murald folders`: shows and changes the tree of folders.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::super::Error;
use super::super::call::Call;
use super::super::connection::{Connection, RequestPath};
use super::super::request::{From, Record, Request, place};
use super::super::stdout::Stdout;
use super::super::table::Table;
use super::super::terminal::count;
use super::super::verb::{Argument, Flag, Group, Kind, Verb};
use super::delete::{agrees, is_asked};
use super::gallery;
use crate::wire::{Data, Folder, Page};

const ONE: Argument = Argument::one("FOLDER", Kind::Folder, "The folder");

pub(super) const GROUP: Group = Group {
    title: "Folders",
    verbs: &[
        Verb::asking(&["folders", "list"], "List the folders of the library", LIST).flags(&[
            Flag::value(
                "--parent",
                "FOLDER",
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
                "FOLDER",
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
            Argument::one("FOLDER", Kind::FolderOrRoot, "The folder; root: out of all folders"),
            Argument::some("IMAGE", Kind::Image, "The images"),
        ]),
        Verb::new(&["folders", "delete"], "Delete a folder", delete)
            .arguments(&[ONE])
            .flags(&[
                Flag::switch("--contents", "Also delete the images and folders in it"),
                Flag::switch("--yes", "Ask nothing; elsewhere than on a terminal nothing is asked"),
                Flag::switch("--forever", "Remove the files, instead of moving them to the trash"),
            ])
            .help(
                "Without --contents, what is in it moves up to the folder around it. The files of images go\n\
                 where `murald images delete` has them go.",
            ),
    ],
};

const ONE_FOLDER: &str = "/folders/{FOLDER}";
const LIST: Request =
    Request::get("/folders?parent_id={--parent:all}&search={--search}").shows::<Data<Folder>>();
const SHOW: Request = Request::get(ONE_FOLDER).shows::<Folder>();
const PATH: Request = Request::get("/folders/{FOLDER}/path").shows::<Nesting>();
const CREATE: Request = Request::post(
    "/folders",
    &[("name", From::Given("NAME")), ("parent_id", From::Folder("--parent"))],
)
.says("{name} ({id}) is made");
const RENAME: Request =
    Request::patch(ONE_FOLDER, &[("name", From::Given("NAME"))]).shows::<Folder>();
const MOVE: Request =
    Request::patch(ONE_FOLDER, &[("parent_id", From::Folder("PARENT"))]).shows::<Folder>();
const ADD: Request = Request::post(
    "/folders/move-images",
    &[("image_ids", From::All("IMAGE")), ("folder_id", From::Folder("FOLDER"))],
)
.shows::<Moved>();

impl Record for Data<Folder> {
    fn show(self, _: &Call, stdout: &mut Stdout) -> Result<(), Error> {
        if self.data.is_empty() {
            return stdout.note("no folders; `murald folders create NAME` makes one");
        }
        // Where the whole tree is there, each has its path; elsewhere its name alone.
        let path = |folder: &Folder| path(folder, &self.data);
        table(stdout, &self.data, path)
    }
}

impl Record for Folder {
    fn show(self, _: &Call, stdout: &mut Stdout) -> Result<(), Error> {
        table(stdout, &[self], |folder| folder.name.clone())
    }
}

/// The names from the outermost of these folders down.
pub(super) fn path(folder: &Folder, all: &[Folder]) -> String {
    let around = all.iter().find(|other| Some(other.id) == folder.parent_id);
    match around {
        Some(around) => format!("{}/{}", path(around, all), folder.name),
        None => folder.name.clone(),
    }
}

fn table(
    stdout: &mut Stdout,
    folders: &[Folder],
    path: impl Fn(&Folder) -> String,
) -> Result<(), Error> {
    let mut table = Table::new(&[">ID", "PATH", ">IMAGES", ">FOLDERS"]);
    for folder in folders {
        table.row([
            folder.id.into(),
            path(folder).into(),
            folder.image_count.into(),
            folder.folder_count.into(),
        ]);
    }
    stdout.table(&table)
}

/// The folders that one is in, from the outermost on.
#[derive(Deserialize)]
#[serde(transparent)]
struct Nesting(Data<Folder>);

impl Record for Nesting {
    fn show(self, _: &Call, stdout: &mut Stdout) -> Result<(), Error> {
        let names: Vec<String> = self.0.data.into_iter().map(|folder| folder.name).collect();
        stdout.line(names.join("/"))
    }
}

#[derive(Deserialize)]
pub(super) struct Moved {
    moved: u64,
}

impl Record for Moved {
    fn show(self, call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
        self.tell(call.all("IMAGE").len(), stdout)
    }
}

impl Moved {
    /// Of so many that were to be.
    pub(super) fn tell(self, wanted: usize, stdout: &mut Stdout) -> Result<(), Error> {
        let rest = match self.moved < wanted as u64 {
            true => "; there are no others of these",
            false => "",
        };
        stdout.say(format!("{} moved{rest}", count(self.moved, "image")))
    }
}

#[derive(Deserialize)]
struct Deleted {
    images_deleted: u64,
    folders_deleted: u64,
}

fn delete(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let connection = call.connect()?;
    let contents = call.has("--contents");
    let trash = contents && !call.has("--forever");
    if trash {
        // An older one would remove the files for good.
        gallery::knows(&connection, "the trash here")?;
    }
    if contents && !call.has("--yes") && is_asked() {
        ask(call, &connection, trash)?;
    }
    let mode = if contents { "delete_all" } else { "keep_contents" };
    let place = place(ONE_FOLDER, call).query("mode", Some(mode));
    let answer = connection.delete(&place.query("trash", trash.then_some(true)), None);
    let answer = answer.map_err(|error| match error.status() {
        Some(500) if trash => error.hint("--forever deletes without the trash"),
        _ => error,
    })?;
    stdout.show(&answer, |stdout, gone: Deleted| {
        let folders = count(gone.folders_deleted, "folder");
        match gone.images_deleted {
            0 => stdout.say(format!("{folders} deleted")),
            images => stdout.say(format!("{folders} and {} deleted", count(images, "image"))),
        }
    })
}

/// Whether the images of a folder may go with it; where it has none there is nothing to ask.
fn ask(call: &Call, connection: &Connection, trash: bool) -> Result<(), Error> {
    let place = RequestPath::new(&[&"images"]).query("recursive", Some(true));
    let place = place.query("folder_id", call.query("FOLDER")).query("per_page", Some(1));
    let inside: Page<IgnoredAny> = connection.get(&place)?.read()?;
    let images = count(inside.pagination.total_items, "image");
    let how = if trash { "and move their files to the trash" } else { "for good" };
    if inside.data.is_empty() || agrees(&format!("Delete the folder and {images} in it {how}?"))? {
        return Ok(());
    }
    Err(Error::refused("nothing was deleted"))
}
