//! Playlists: looking and running. (`playlist.rs` makes and changes them.)

use serde::Deserialize;

use super::super::Failure;
use super::super::call::Call;
use super::super::connection::{Connection, Place};
use super::super::request::{From, Record, Request};
use super::super::screen::Screen;
use super::super::table::{Cell, Look, Table};
use super::super::text::{count, span};
use super::super::verb::{Argument, Flag, Group, Kind, Verb};
use super::{moment, playlist};
use crate::wire::{ActivePlaylist, Image, Playlist, PlaylistType};

pub(super) const ONE: Argument = Argument::one("ID", Kind::Playlist, "The playlist");
const RUNNING: &[Argument] =
    &[Argument::optional("ID", Kind::Playlist, "The playlist; all that run if left out")];

pub(super) const GROUP: Group = Group {
    title: "Playlists",
    verbs: &[
        Verb::asking(&["next"], "Show the next image of each running playlist", NEXT),
        Verb::asking(&["previous"], "Go back to the image before in each running playlist", PREVIOUS),
        Verb::asking(&["pause"], "Pause all running playlists", PAUSE),
        Verb::asking(&["resume"], "Let all paused playlists go on", RESUME),
        Verb::asking(&["playlist", "list"], "List the playlists", LIST),
        Verb::new(&["playlist", "show"], "Show a playlist and its images", show).arguments(&[ONE]),
        playlist::CREATE,
        playlist::EDIT,
        playlist::ADD,
        playlist::REMOVE,
        Verb::asking(&["playlist", "delete"], "Delete a playlist; its images stay", DELETE)
            .arguments(&[ONE]),
        Verb::asking(&["playlist", "start"], "Start a playlist", START)
            .arguments(&[ONE])
            .flags(&[
                super::MONITORS,
                Flag::switch("--extend", "Spread each image over all of its monitors"),
            ])
            .help("Without --monitor it is for the monitors that are connected now. Playlists that share a\n\
                 monitor with it are stopped."),
        Verb::asking(&["playlist", "stop"], "Stop a playlist", STOP).arguments(RUNNING),
        Verb::asking(&["playlist", "pause"], "Pause a playlist", PAUSE).arguments(RUNNING),
        Verb::asking(&["playlist", "resume"], "Let a paused playlist go on", RESUME)
            .arguments(RUNNING),
        Verb::asking(&["playlist", "next"], "Show the next image of a playlist", NEXT)
            .arguments(RUNNING),
        Verb::asking(&["playlist", "previous"], "Go back to the image before in a playlist", PREVIOUS)
            .arguments(RUNNING),
        Verb::new(&["playlist", "active"], "List the playlists that run", active).arguments(&[
            Argument::optional("MONITOR", Kind::Monitor, "Only the one on this monitor"),
        ]),
    ],
};

const LIST: Request = Request::get("/playlists").shows::<Vec<Playlist>>();
const DELETE: Request = Request::delete("/playlists/{ID}").says("playlist {ID} deleted");
const START: Request = Request::post(
    "/playlists/{ID}/start",
    &[("extend", From::Switch("--extend")), ("monitors", From::Any("--monitor"))],
)
.shows::<Done>();
// On one playlist, or without an id on all that run.
const STOP: Request = Request::post("/playlists/{ID:active}/stop", &[]).shows::<Done>();
const PAUSE: Request = Request::post("/playlists/{ID:active}/pause", &[]).shows::<Done>();
const RESUME: Request = Request::post("/playlists/{ID:active}/resume", &[]).shows::<Done>();
const NEXT: Request = Request::post("/playlists/{ID:active}/next", &[]).shows::<Done>();
const PREVIOUS: Request = Request::post("/playlists/{ID:active}/previous", &[]).shows::<Done>();

pub(super) fn place(call: &Call) -> Place {
    Place::new(&[&"playlists", &call.word("ID")])
}

impl Record for Vec<Playlist> {
    fn show(self, _: &Call, screen: &mut Screen) -> Result<(), Failure> {
        if self.is_empty() {
            return screen.line("no playlists; `murald playlist create NAME IMAGE...` makes one");
        }
        let mut table = Table::new(&[">ID", "NAME", "CHANGES", "ORDER", ">IMAGES", "STATE"]);
        for playlist in &self {
            table.row([
                playlist.id.into(),
                (&playlist.name).into(),
                changes(playlist).into(),
                playlist.configuration.order.into(),
                playlist.images.len().into(),
                state(playlist),
            ]);
        }
        screen.table(&table)
    }
}

/// When the image changes, in words.
fn changes(playlist: &Playlist) -> String {
    match playlist.configuration.kind {
        PlaylistType::Timer => format!("every {}", span(playlist.configuration.interval.into())),
        PlaylistType::Manual => "by hand".to_owned(),
        PlaylistType::TimeOfDay => "at times of day".to_owned(),
        PlaylistType::DayOfWeek => "by day of the week".to_owned(),
    }
}

fn state(playlist: &Playlist) -> Cell {
    match &playlist.playback {
        Some(playback) if playback.was_running && playback.paused => "paused".into(),
        Some(playback) if playback.was_running => Cell::from("running").look(Look::Good),
        _ => Cell::from("stopped").look(Look::Dim),
    }
}

fn show(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let connection = call.connect()?;
    let answer = connection.get(&place(call))?;
    screen.show(&answer, |screen, playlist| people(screen, &playlist, &connection))
}

/// Names are looked up for so many images; the others are told by their ids.
const NAMES: usize = 200;

/// Everything about a playlist, for people.
pub(super) fn people(
    screen: &mut Screen,
    playlist: &Playlist,
    connection: &Connection,
) -> Result<(), Failure> {
    let mut sheet = Table::sheet();
    sheet.field("id", playlist.id);
    sheet.field("name", &playlist.name);
    sheet.field("changes", changes(playlist));
    sheet.field("order", playlist.configuration.order);
    let first = playlist.configuration.always_start_on_first_image;
    sheet.field("starts", if first { "with the first image" } else { "where it last was" });
    sheet.field("state", state(playlist));
    sheet.field("images", playlist.images.len());
    screen.table(&sheet)?;
    if playlist.images.is_empty() {
        return Ok(());
    }
    screen.line("")?;
    let mut table = Table::new(&[">PLACE", "=WHEN", ">ID", "NAME", "TYPE"]);
    for (place, item) in playlist.images.iter().enumerate() {
        table.row([
            (place + 1).into(),
            when(playlist, place).into(),
            item.image_id.into(),
            if place < NAMES { name(connection, item.image_id) } else { String::new() }.into(),
            item.media_type.into(),
        ]);
    }
    screen.table(&table)
}

/// The time or the day of an image, where it has one.
fn when(playlist: &Playlist, place: usize) -> String {
    const DAYS: [&str; 7] =
        ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
    let last = place + 1 == playlist.images.len();
    match (playlist.configuration.kind, playlist.images[place].time) {
        (PlaylistType::TimeOfDay, Some(time)) => format!("{:02}:{:02}", time / 60, time % 60),
        // The last one serves the rest of the week.
        (PlaylistType::DayOfWeek, _) if last && place < 6 => format!("from {}", DAYS[place]),
        (PlaylistType::DayOfWeek, _) => DAYS.get(place).copied().unwrap_or_default().to_owned(),
        _ => String::new(),
    }
}

fn name(connection: &Connection, image: i64) -> String {
    let image = connection.get(&Place::new(&[&"images", &image])).and_then(|it| it.read());
    image.map(|image: Image| image.name).unwrap_or_default()
}

#[derive(Deserialize)]
struct Done {
    /// Of all at once.
    message: Option<String>,
    /// Of one.
    status: Option<String>,
}

impl Record for Done {
    fn show(self, call: &Call, screen: &mut Screen) -> Result<(), Failure> {
        match (call.query("ID"), self.status, self.message) {
            (Some(id), Some(status), _) => screen.line(format!("playlist {id} {status}")),
            (_, _, Some(message)) if message.starts_with("0 ") => screen.line(NONE),
            (_, status, message) => screen.line(message.or(status).unwrap_or_default()),
        }
    }
}

const NONE: &str = "no playlist is running; `murald playlist start ID` starts one";

fn active(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let connection = call.connect()?;
    if let Some(monitor) = call.text("MONITOR") {
        let answer = connection.get(&Place::new(&[&"playlists", &"active", &monitor]))?;
        return screen.show(&answer, |screen, one: ActivePlaylist| running(screen, &[one]));
    }
    let answer = connection.get(&Place::new(&[&"playlists", &"active"]))?;
    screen.show(&answer, |screen, all: Vec<ActivePlaylist>| running(screen, &all))
}

fn running(screen: &mut Screen, all: &[ActivePlaylist]) -> Result<(), Failure> {
    if all.is_empty() {
        return screen.line(NONE);
    }
    let mut table = Table::new(&[">ID", "NAME", "MONITORS", ">IMAGE", ">PLACE", "=NEXT CHANGE"]);
    for one in all {
        let next = match one.next_change_at {
            _ if one.paused => "paused".to_owned(),
            Some(at) => moment(at),
            None => "by hand".to_owned(),
        };
        table.row([
            one.playlist_id.into(),
            (&one.playlist_name).into(),
            one.applied_to.join(", ").into(),
            one.current_image_id.into(),
            format!("{}/{}", one.current_index + 1, one.total_images).into(),
            next.into(),
        ]);
    }
    screen.table(&table)?;
    screen.line(format!("{} running", count(all.len() as u64, "playlist")))
}
