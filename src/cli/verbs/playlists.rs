//! Playlists: looking and running. (`playlist.rs` makes and changes them.)

use serde::Deserialize;
use serde_json::{Value, json};

use super::super::Failure;
use super::super::arguments::Call;
use super::super::connection::Place;
use super::super::screen::Screen;
use super::super::table::{Cell, Look, Table};
use super::super::text::{count, span};
use super::super::verb::{Argument, Flag, Group, Kind, Verb};
use super::{empty, moment, playlist};
use crate::wire::{ActivePlaylist, Playlist, PlaylistType};

pub(super) const ONE: Argument = Argument::one("ID", Kind::Playlist, "The playlist");
const RUNNING: &[Argument] =
    &[Argument::optional("ID", Kind::Playlist, "The playlist; all that run without")];

pub(super) const GROUP: Group = Group {
    title: "Playlists",
    verbs: &[
        Verb::new(&["next"], "The next image of every running playlist", next),
        Verb::new(&["previous"], "The image before, of every running playlist", previous),
        Verb::new(&["pause"], "Hold every running playlist", pause),
        Verb::new(&["resume"], "Let every held playlist go on", resume),
        Verb::new(&["playlist", "list"], "Playlists", list),
        Verb::new(&["playlist", "show"], "One playlist with its images", show).arguments(&[ONE]),
        playlist::CREATE,
        playlist::EDIT,
        playlist::ADD,
        playlist::REMOVE,
        Verb::new(&["playlist", "delete"], "Delete a playlist; its images stay", delete)
            .arguments(&[ONE]),
        Verb::new(&["playlist", "start"], "Run a playlist", start)
            .arguments(&[ONE])
            .flags(&[super::MONITORS, Flag::switch("--extend", "One image over all of them")])
            .help("Playlists that share a monitor with it are stopped."),
        Verb::new(&["playlist", "stop"], "Stop a playlist", stop).arguments(RUNNING),
        Verb::new(&["playlist", "pause"], "Hold a playlist", pause).arguments(RUNNING),
        Verb::new(&["playlist", "resume"], "Let a playlist go on", resume).arguments(RUNNING),
        Verb::new(&["playlist", "next"], "Its next image", next).arguments(RUNNING),
        Verb::new(&["playlist", "previous"], "The image before", previous).arguments(RUNNING),
        Verb::new(&["playlist", "active"], "The playlists that run", active)
            .arguments(&[Argument::optional("MONITOR", Kind::Monitor, "Only on this one")]),
    ],
};

pub(super) fn place(call: &Call) -> Place {
    Place::new(&[&"playlists", &call.word("ID")])
}

fn list(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let answer = call.connect()?.get(&Place::new(&[&"playlists"]))?;
    screen.show(&answer, |screen, playlists: Vec<Playlist>| {
        if playlists.is_empty() {
            return screen.line("no playlists; `murald playlist create NAME IMAGE...` makes one");
        }
        let mut table = Table::new(&[">ID", "NAME", "CHANGES", "ORDER", ">IMAGES", "STATE"]);
        for playlist in &playlists {
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
    })
}

/// When the image changes, in words.
fn changes(playlist: &Playlist) -> String {
    match playlist.configuration.kind {
        PlaylistType::Timer => format!("every {}", span(playlist.configuration.interval.into())),
        PlaylistType::Manual => "by hand".to_owned(),
        PlaylistType::TimeOfDay => "by the clock".to_owned(),
        PlaylistType::DayOfWeek => "each day of the week".to_owned(),
    }
}

fn state(playlist: &Playlist) -> Cell {
    match &playlist.playback {
        Some(playback) if playback.was_running && playback.paused => "paused".into(),
        Some(playback) if playback.was_running => Cell::from("running").look(Look::Good),
        _ => Cell::default(),
    }
}

fn show(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let answer = call.connect()?.get(&place(call))?;
    screen.show(&answer, |screen, playlist| people(screen, &playlist))
}

/// Everything about a playlist, for people.
pub(super) fn people(screen: &mut Screen, playlist: &Playlist) -> Result<(), Failure> {
    let mut sheet = Table::sheet();
    sheet.field("id", playlist.id);
    sheet.field("name", &playlist.name);
    sheet.field("changes", changes(playlist));
    sheet.field("order", playlist.configuration.order);
    let first = playlist.configuration.always_start_on_first_image;
    sheet.field("starts", if first { "on the first image" } else { "where it last was" });
    sheet.field("state", state(playlist));
    sheet.field("images", playlist.images.len());
    screen.table(&sheet)?;
    let mut table = Table::new(&[">SLOT", ">ID", "TYPE", "AT"]);
    for (slot, item) in playlist.images.iter().enumerate() {
        let at = item.time.map(|time| format!("{:02}:{:02}", time / 60, time % 60));
        table.row([
            slot.into(),
            item.image_id.into(),
            item.media_type.into(),
            at.unwrap_or_default().into(),
        ]);
    }
    screen.table(&table)
}

fn delete(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let answer = call.connect()?.delete(&place(call), None)?;
    screen.show(&answer, |screen, _: Value| screen.line("deleted"))
}

fn start(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let mut body = json!({"extend": call.has("--extend")});
    let monitors = call.all("--monitor");
    if !monitors.is_empty() {
        body["monitors"] = json!(monitors);
    }
    let place = Place::new(&[&"playlists", &call.word("ID"), &"start"]);
    let answer = call.connect()?.post(&place, &body)?;
    screen.show(&answer, done)
}

#[derive(Deserialize)]
struct Done {
    /// Of all at once.
    message: Option<String>,
    /// Of one.
    status: Option<String>,
}

fn done(screen: &mut Screen, done: Done) -> Result<(), Failure> {
    screen.line(done.message.or(done.status).unwrap_or_default())
}

fn stop(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    act(call, screen, "stop")
}

fn pause(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    act(call, screen, "pause")
}

fn resume(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    act(call, screen, "resume")
}

fn next(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    act(call, screen, "next")
}

fn previous(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    act(call, screen, "previous")
}

/// On one playlist, or without an id on all that run.
fn act(call: &Call, screen: &mut Screen, action: &str) -> Result<(), Failure> {
    let which = call.query("ID").unwrap_or_else(|| "active".to_owned());
    let place = Place::new(&[&"playlists", &which, &action]);
    let answer = call.connect()?.post(&place, &empty())?;
    screen.show(&answer, done)
}

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
        return screen.line("no playlist runs");
    }
    let mut table = Table::new(&[">ID", "NAME", "MONITORS", ">IMAGE", "PLACE", "NEXT CHANGE"]);
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
            format!("{} of {}", one.current_index + 1, one.total_images).into(),
            next.into(),
        ]);
    }
    screen.table(&table)?;
    screen.line(format!("{} running", count(all.len() as u64, "playlist")))
}
