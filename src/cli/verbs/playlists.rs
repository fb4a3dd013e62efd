//! The verbs that show and run playlists. `playlist.rs` has those that change them.

use serde::Deserialize;
use serde_json::{Value, json};

use super::super::Error;
use super::super::call::Call;
use super::super::connection::{Connection, RequestPath};
use super::super::request::{From, Record, Request};
use super::super::stdout::Stdout;
use super::super::table::{Cell, Table};
use super::super::terminal::count;
use super::super::verb::{Argument, Flag, Group, Kind, Verb};
use super::playlist_sheet::{ONE, changes, images, name, people, place, state};
use super::{moment, playlist};
use crate::wire::{ActivePlaylist, Playlist, PlaylistType};

const RUNNING: &[Argument] =
    &[Argument::optional("PLAYLIST", Kind::Playlist, "The playlist; all that run if left out")];

const STEPPED: Flag =
    Flag::value("--monitor", "NAME", Kind::Monitor, "Only playlists that run on this monitor")
        .many();

pub(super) const GROUP: Group = Group {
    title: "Playlists",
    verbs: &[
        Verb::new(&["next"], "Show the next image of each running playlist", next)
            .flags(&[STEPPED]),
        Verb::new(&["previous"], "Show the previous image of each running playlist", previous)
            .flags(&[STEPPED]),
        Verb::new(&["toggle"], "Pause all running playlists, or let all go on", toggle)
            .help("Where any runs that is not paused, all are paused; else all go on."),
        super::slideshow::SLIDESHOW,
        super::session::APPEARANCE,
        super::session::POWER,
        Verb::asking(&["pause"], "Pause all running playlists", PAUSE),
        Verb::asking(&["resume"], "Let all paused playlists go on", RESUME),
        Verb::asking(&["playlist", "list"], "List the playlists", LIST),
        Verb::new(&["playlist", "show"], "Show a playlist and its images", show).arguments(&[ONE]),
        playlist::CREATE,
        playlist::EDIT,
        playlist::ADD,
        playlist::REMOVE,
        Verb::new(&["playlist", "delete"], "Delete a playlist; its images stay", delete)
            .arguments(&[ONE]),
        Verb::asking(&["playlist", "rename"], "Rename a playlist", RENAME)
            .arguments(&[ONE, Argument::one("NAME", Kind::Text, "The new name")]),
        Verb::asking(&["playlist", "start"], "Start a playlist", START)
            .arguments(&[ONE])
            .flags(&[
                super::MONITORS,
                super::MODE,
                Flag::switch("--extend", "Spread each image over all of its monitors"),
            ])
            .help("With `--mode each`, every monitor has a picture of its own.\n\n\
                 Without --monitor it is for all monitors, those that come later too. Playlists that share a\n\
                 monitor with it are stopped. Where no daemon runs, one is started.")
            .starting(),
        Verb::asking(&["playlist", "stop"], "Stop a playlist", STOP).arguments(RUNNING),
        Verb::asking(&["playlist", "pause"], "Pause a playlist", PAUSE).arguments(RUNNING),
        Verb::asking(&["playlist", "resume"], "Let a paused playlist go on", RESUME)
            .arguments(RUNNING),
        Verb::new(&["playlist", "next"], "Show the next image of a playlist", next)
            .arguments(RUNNING)
            .flags(&[STEPPED]),
        Verb::new(&["playlist", "previous"], "Show the previous image of a playlist", previous)
            .arguments(RUNNING)
            .flags(&[STEPPED]),
        Verb::new(&["playlist", "active"], "List the playlists that run", active).arguments(&[
            Argument::optional("MONITOR", Kind::Monitor, "Only the one on this monitor"),
        ]),
    ],
};

const LIST: Request = Request::get("/playlists").shows::<Vec<Playlist>>();
const RENAME: Request = Request::patch("/playlists/{PLAYLIST}", &[("name", From::Given("NAME"))])
    .says("the playlist is {name} ({id}) now");
const START: Request = Request::post(
    "/playlists/{PLAYLIST}/start",
    &[
        ("mode", From::Given("--mode")),
        ("extend", From::Switch("--extend")),
        ("monitors", From::Any("--monitor")),
    ],
)
.shows::<Done>();
// On one playlist, or without one on all that run.
const STOP: Request = Request::post("/playlists/{PLAYLIST:active}/stop", &[]).shows::<Done>();
const PAUSE: Request = Request::post("/playlists/{PLAYLIST:active}/pause", &[]).shows::<Done>();
const RESUME: Request = Request::post("/playlists/{PLAYLIST:active}/resume", &[]).shows::<Done>();

impl Record for Vec<Playlist> {
    fn show(self, call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
        if self.is_empty() {
            return stdout.note("no playlists; `murald playlist create NAME IMAGE...` makes one");
        }
        let mut table = Table::new(&[">ID", "NAME", "=STATE", "=CHANGES", ">IMAGES", "ORDER"]);
        for playlist in &self {
            table.row([
                playlist.id.into(),
                (&playlist.name).into(),
                state(playlist),
                Cell::from(changes(playlist)).raw(playlist.configuration.kind),
                total(playlist, call)?.into(),
                playlist.configuration.order.into(),
            ]);
        }
        stdout.table(&table)
    }
}

/// How many images it has; of one that lives, how many it finds now.
fn total(playlist: &Playlist, call: &Call) -> Result<u64, Error> {
    match playlist.source {
        Some(_) => Ok(images(playlist, 1, 1, &call.connect()?)?.pagination.total_items),
        None => Ok(playlist.images.len() as u64),
    }
}

/// When the image changes, in words.
fn show(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let connection = call.connect()?;
    let answer = connection.get(&place(call))?;
    stdout.show(&answer, |stdout, playlist| people(stdout, &playlist, &connection))
}

#[derive(Deserialize)]
struct Done {
    /// Of all at once, which says how many.
    message: Option<String>,
    /// Of one.
    status: Option<String>,
}

impl Record for Done {
    fn show(self, call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
        if let (true, Some(status)) = (call.has("PLAYLIST"), self.status) {
            // A moment ago it was there; where it is gone, its number must do.
            let name = call.connect()?.get(&place(call)).and_then(|answer| answer.read());
            let name = name.map_or_else(|_| call.word("PLAYLIST"), |one: Playlist| named(&one));
            return stdout.say(format!("{name} {status}"));
        }
        match self.message.unwrap_or_default() {
            message if message.starts_with("0 ") => stdout.say(NONE),
            message => stdout.say(message),
        }
    }
}

fn named(playlist: &Playlist) -> String {
    format!("{} ({})", playlist.name, playlist.id)
}

const NONE: &str = "no playlist runs; `murald playlist start PLAYLIST` starts one";

fn delete(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let connection = call.connect()?;
    // While it is there to be asked for.
    let record = match stdout.wants_data() {
        true => None,
        false => Some(connection.get(&place(call))?.read::<Playlist>()?),
    };
    let answer = connection.delete(&place(call), None)?;
    let name = record.as_ref().map(named).unwrap_or_default();
    stdout.show(&answer, |stdout, _: Value| stdout.say(format!("{name} deleted")))
}

fn next(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    step(call, stdout, "next")
}

fn previous(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    step(call, stdout, "previous")
}

/// Steps one playlist, or all that run, and shows what is on their monitors then.
fn step(call: &Call, stdout: &mut Stdout, action: &str) -> Result<(), Error> {
    let connection = call.connect()?;
    let which = call.query("PLAYLIST").unwrap_or_else(|| "active".to_owned());
    let place = RequestPath::new(&[&"playlists", &which, &action]);
    let on = call.all("--monitor");
    let body = if on.is_empty() { super::empty() } else { json!({ "monitors": on }) };
    let answer = connection.post(&place, &body)?;
    let told: Value = answer.read()?;
    if told["advanced"] == 0 || told["reversed"] == 0 {
        return Err(stuck(&connection, &on)?);
    }
    if stdout.wants_data() {
        return stdout.data(&told);
    }
    let mut shown: Vec<(i64, Vec<&str>)> = Vec::new();
    for (monitor, id) in told["images"].as_object().into_iter().flatten() {
        let Some(id) = id.as_i64() else { continue };
        match shown.iter_mut().find(|(other, _)| *other == id) {
            Some((_, on)) => on.push(monitor),
            None => shown.push((id, vec![monitor])),
        }
    }
    for (id, on) in shown {
        stdout.say(format!("{} ({id}) is on {}", name(&connection, id), on.join(", ")))?;
    }
    Ok(())
}

fn running_now(connection: &Connection) -> Result<Vec<ActivePlaylist>, Error> {
    connection.get(&RequestPath::new(&[&"playlists", &"active"]))?.read()
}

/// Why a step moved nothing.
fn stuck(connection: &Connection, on: &[&Value]) -> Result<Error, Error> {
    let mut running = running_now(connection)?;
    let is_named = |monitor: &String| on.iter().any(|name| *name == monitor);
    running.retain(|one| on.is_empty() || one.applied_to.iter().any(is_named));
    let Some(one) = running.first() else {
        let on: Vec<_> = on.iter().filter_map(|name| name.as_str()).collect();
        let on = if on.is_empty() { String::new() } else { format!(" on {}", on.join(", ")) };
        return Ok(Error::refused(format!("no playlist runs{on}"))
            .hint("`murald playlist start PLAYLIST` starts one, `murald random` shows any image"));
    };
    let why = match one.playlist_type {
        PlaylistType::Appearance => "follows light and dark: it has no steps",
        PlaylistType::TimeOfDay | PlaylistType::DayOfWeek => "follows the clock: it has no steps",
        _ if one.total_images == 0 => "is empty",
        _ => "did not move",
    };
    Ok(Error::refused(format!("the playlist {} {why}", one.playlist_name)))
}

fn toggle(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let connection = call.connect()?;
    let running = running_now(&connection)?;
    if running.is_empty() {
        return Err(stuck(&connection, &[])?);
    }
    let action = if running.iter().any(|one| !one.paused) { "pause" } else { "resume" };
    let place = RequestPath::new(&[&"playlists", &"active", &action]);
    let answer = connection.post(&place, &super::empty())?;
    stdout.show(&answer, |stdout, done: Done| done.show(call, stdout))
}

fn active(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let connection = call.connect()?;
    if let Some(monitor) = call.text("MONITOR") {
        let answer = connection.get(&RequestPath::new(&[&"playlists", &"active", &monitor]))?;
        return stdout
            .show(&answer, |stdout, one: ActivePlaylist| running(stdout, &[one], &connection));
    }
    let answer = connection.get(&RequestPath::new(&[&"playlists", &"active"]))?;
    stdout.show(&answer, |stdout, all: Vec<ActivePlaylist>| running(stdout, &all, &connection))
}

fn running(
    stdout: &mut Stdout,
    all: &[ActivePlaylist],
    connection: &Connection,
) -> Result<(), Error> {
    if all.is_empty() {
        return stdout.note(NONE);
    }
    let mut table =
        Table::new(&[">ID", "NAME", "=STATE", "MONITORS", "IMAGE", ">PLACE", "=NEXT CHANGE"]);
    for one in all {
        let next = match one.next_change_at {
            Some(at) if !one.paused => Cell::from(moment(at)).raw(at),
            _ => Cell::default(),
        };
        table.row([
            one.playlist_id.into(),
            (&one.playlist_name).into(),
            match one.current_image_id {
                _ if one.paused => "paused",
                _ if one.resting.is_some() => "resting",
                None => "empty",
                Some(_) => "running",
            }
            .into(),
            Cell::list(&one.applied_to),
            one.current_image_id.map_or_else(Cell::default, |id| {
                Cell::from(format!("{} ({id})", name(connection, id))).raw(id)
            }),
            match one.total_images {
                0 => Cell::default(),
                all => format!("{}/{all}", one.current_index + 1).into(),
            },
            next,
        ]);
    }
    stdout.table(&table)?;
    stdout.note(format!("{} running", count(all.len() as u64, "playlist")))
}
