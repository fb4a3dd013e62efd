//! Folders: a tree over the library.

use serde::Deserialize;
use serde_json::{Value, json};

use super::super::Failure;
use super::super::call::Call;
use super::super::connection::Place;
use super::super::screen::Screen;
use super::super::table::Table;
use super::super::text::count;
use super::super::verb::{Argument, Flag, Group, Kind, Verb};
use crate::wire::{Data, Folder};

const ONE: Argument = Argument::one("ID", Kind::Folder, "The folder");

pub(super) const GROUP: Group = Group {
    title: "Folders",
    verbs: &[
        Verb::new(&["folders", "list"], "List the folders of the library", list).flags(&[
            Flag::value(
                "--parent",
                "ID",
                Kind::FolderOrRoot,
                "Only those directly in this one; root: in none",
            ),
            Flag::value("--search", "TEXT", Kind::Text, "Only those with this in their name"),
        ]),
        Verb::new(&["folders", "show"], "Show one folder", show).arguments(&[ONE]),
        Verb::new(&["folders", "path"], "Show which folders one is in, outermost first", path)
            .arguments(&[ONE]),
        Verb::new(&["folders", "create"], "Create a folder", create)
            .arguments(&[Argument::one("NAME", Kind::Text, "Its name")])
            .flags(&[Flag::value(
                "--parent",
                "ID",
                Kind::FolderOrRoot,
                "The folder that it is to be in",
            )]),
        Verb::new(&["folders", "rename"], "Rename a folder", rename)
            .arguments(&[ONE, Argument::one("NAME", Kind::Text, "The new name")]),
        Verb::new(&["folders", "move"], "Move a folder into another one", relocate).arguments(&[
            ONE,
            Argument::one("PARENT", Kind::FolderOrRoot, "The other one; root: out of all folders"),
        ]),
        Verb::new(&["folders", "add"], "Put images into a folder", add).arguments(&[
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

fn list(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let parent = call.query("--parent").unwrap_or_else(|| "all".into());
    let place = Place::new(&[&"folders"])
        .query("parent_id", Some(parent))
        .query("search", call.query("--search"));
    let answer = call.connect()?.get(&place)?;
    screen.show(&answer, |screen, folders: Data<Folder>| {
        if folders.data.is_empty() {
            return screen.line("no folders; `murald folders create NAME` makes one");
        }
        table(screen, &folders.data)
    })
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

fn one(id: &str) -> Place {
    Place::new(&[&"folders", &id])
}

fn show(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let answer = call.connect()?.get(&one(&call.word("ID")))?;
    screen.show(&answer, |screen, folder: Folder| table(screen, &[folder]))
}

fn path(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let answer = call.connect()?.get(&Place::new(&[&"folders", &call.word("ID"), &"path"]))?;
    screen.show(&answer, |screen, folders: Data<Folder>| {
        let names: Vec<String> = folders.data.into_iter().map(|folder| folder.name).collect();
        screen.line(names.join(" / "))
    })
}

/// `root` is null in a body.
fn folder_id(call: &Call, name: &str) -> Value {
    call.value(name).filter(|value| value.is_number()).cloned().unwrap_or(Value::Null)
}

fn create(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let body = json!({"name": call.word("NAME"), "parent_id": folder_id(call, "--parent")});
    let answer = call.connect()?.post(&Place::new(&[&"folders"]), &body)?;
    screen.show(&answer, |screen, folder: Folder| {
        screen.line(format!("folder {} ({})", folder.id, folder.name))
    })
}

fn rename(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    change(call, screen, &json!({"name": call.word("NAME")}))
}

fn relocate(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    change(call, screen, &json!({"parent_id": folder_id(call, "PARENT")}))
}

fn change(call: &Call, screen: &mut Screen, changes: &Value) -> Result<(), Failure> {
    let answer = call.connect()?.patch(&one(&call.word("ID")), changes)?;
    screen.show(&answer, |screen, folder: Folder| table(screen, &[folder]))
}

#[derive(Deserialize)]
struct Moved {
    moved: u64,
}

fn add(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let body = json!({"image_ids": call.all("IMAGE"), "folder_id": folder_id(call, "ID")});
    let answer = call.connect()?.post(&Place::new(&[&"folders", &"move-images"]), &body)?;
    let wanted = call.all("IMAGE").len() as u64;
    screen.show(&answer, |screen, Moved { moved }| {
        let rest = if moved < wanted { "; there are no others of these" } else { "" };
        screen.line(format!("{} moved{rest}", count(moved, "image")))
    })
}

#[derive(Deserialize)]
struct Deleted {
    images_deleted: u64,
    folders_deleted: u64,
}

fn delete(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let mode = if call.has("--all") { "delete_all" } else { "keep_contents" };
    let place = one(&call.word("ID")).query("mode", Some(mode));
    let answer = call.connect()?.delete(&place, None)?;
    screen.show(&answer, |screen, gone: Deleted| {
        let folders = count(gone.folders_deleted, "folder");
        match gone.images_deleted {
            0 => screen.line(format!("{folders} deleted")),
            images => screen.line(format!("{folders} and {} deleted", count(images, "image"))),
        }
    })
}
