//! The verbs of the wallpapers of workspaces, which are a section of the configuration.

use std::path::Path;

use serde_json::{Value, json};

use super::super::Error;
use super::super::call::Call;
use super::super::columns::{View, column, text};
use super::super::connection::{Connection, RequestPath};
use super::super::stdout::Stdout;
use super::super::verb::{Argument, Kind, Verb};

const NAME: Argument =
    Argument::one("NAME", Kind::Workspace, "The full name of the workspace, such as 2 or 1:web");

pub(super) const LIST: Verb =
    Verb::get(&["workspace", "list"], "List the wallpapers of workspaces", "GET /workspaces")
        .shows(&[&ALL]);
#[rustfmt::skip]
pub(super) const SET: Verb =
    Verb::own(&["workspace", "set"], "Set the wallpaper of a workspace", set)
        .takes(&[NAME, Argument::one("PICTURE", Kind::PictureOrPlaylist,
            "An image, a file, or playlist:NAME")])
        .shows(&[&ONE])
        .help("    murald workspace set 2 lake\n    murald workspace set 1:web playlist:sea\n\n\
               Works in sway, i3 and Hyprland. A running playlist is followed; of others, the first \
               image is shown.");
pub(super) const CLEAR: Verb =
    Verb::own(&["workspace", "clear"], "Remove the wallpaper of a workspace", clear)
        .takes(&[NAME])
        .shows(&[&CLEARED]);

const ALL: View = View::table(
    "Workspace",
    &[
        column("=WORKSPACE", "name"),
        column(">ID", "image_id"),
        column(">PLAYLIST", "playlist_id"),
        column("=MONITOR", "monitor"),
        column("WARNING", "warning"),
    ],
    "no workspace has a wallpaper; `murald workspace set NAME PICTURE` sets one",
);
const ONE: View = ALL.showing(|_, stdout, entry| {
    stdout.say(format!("set the wallpaper of workspace {}", text(entry, "name")))?;
    if let Some(warning) = entry["warning"].as_str() {
        stdout.warn(warning);
    }
    Ok(())
});
const CLEARED: View = ALL.showing(|_, stdout, entry| {
    stdout.say(format!("removed the wallpaper of workspace {}", text(entry, "name")))
});

fn set(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let (connection, name) = (call.connect()?, call.word("NAME"));
    let reference = match call.value("PICTURE") {
        Some(Value::String(path)) if path.starts_with('/') => {
            named(&connection, &imported(&connection, path)?)?
        }
        Some(Value::String(playlist)) => playlist.clone(),
        id => named(&connection, &json!(id))?,
    };
    put(&connection, &json!({ &name: reference }))?;
    let entry = entry(&connection, &name)?;
    ONE.tell(call, stdout, &entry)
}

fn clear(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let (connection, name) = (call.connect()?, call.word("NAME"));
    let entry = entry(&connection, &name)?;
    if entry.is_null() {
        return Err(Error::refused(format!("workspace {name:?} has no wallpaper"))
            .hint("`murald workspace list` lists them"));
    }
    put(&connection, &json!({ &name: null }))?;
    CLEARED.tell(call, stdout, &entry)
}

fn put(connection: &Connection, changes: &Value) -> Result<(), Error> {
    connection.patch(&RequestPath::new(&[&"config", &"workspaces"]), changes).map(drop)
}

/// Null if the workspace has no entry.
fn entry(connection: &Connection, name: &str) -> Result<Value, Error> {
    let all: Vec<Value> = connection.get(&RequestPath::new(&[&"workspaces"]))?.read()?;
    Ok(all.into_iter().find(|one| one["name"] == name).unwrap_or_default())
}

/// The id of the image that a file is, or becomes. Of directories, only a package is one image.
fn imported(connection: &Connection, path: &str) -> Result<Value, Error> {
    let is_package = || {
        ["project.json", "waypaper.json", "index.html"]
            .iter()
            .any(|it| Path::new(path).join(it).exists())
    };
    if Path::new(path).is_dir() && !is_package() {
        return Err(Error::refused(format!("{path} is a directory"))
            .hint("`murald slideshow DIR` makes a playlist of its pictures"));
    }
    let body = json!({ "paths": [path], "wait": true });
    let batch: Value = connection.post(&RequestPath::new(&[&"images"]), &body)?.read()?;
    match batch["images"].get(0) {
        Some(id) => Ok(id.clone()),
        None => {
            let why = text(&batch["errors"][0], "error");
            Err(Error::refused(format!("cannot import {path}: {why}")))
        }
    }
}

/// The name of an image as the configuration has it; its id if the name could mean something else.
fn named(connection: &Connection, id: &Value) -> Result<String, Error> {
    let image: Value = connection.get(&RequestPath::new(&[&"images", &id]))?.read()?;
    let name = text(&image, "name");
    let is_special = ["playlist:", "id:", "name:", "/", "~"].iter().any(|it| name.starts_with(it));
    Ok(if is_special { format!("id:{id}") } else { name })
}
