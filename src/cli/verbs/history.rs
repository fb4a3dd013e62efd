//! What hung where.

use serde::Deserialize;

use super::super::Failure;
use super::super::call::Call;
use super::super::connection::Place;
use super::super::screen::Screen;
use super::super::table::Table;
use super::super::verb::{Flag, Kind, Verb};
use super::moment;
use crate::wire::{HistoryEntry, HistorySource};

pub(super) const LIST: Verb =
    Verb::new(&["history"], "List the wallpapers that were shown, newest first", list).flags(&[
        Flag::value("--monitor", "NAME", Kind::Monitor, "Only what this monitor showed"),
        Flag::value("--limit", "N", Kind::Count, "At most this many, up to 1000; 50 by default"),
        Flag::value("--since-id", "N", Kind::Count, "Only entries after this one"),
        Flag::value("--before-id", "N", Kind::Count, "Only entries before this one"),
    ]);
pub(super) const CLEAR: Verb = Verb::new(&["history", "clear"], "Forget the history", clear);

fn list(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let place = Place::new(&[&"images", &"history"])
        .query("monitor", call.query("--monitor"))
        .query("limit", call.query("--limit"))
        .query("since_id", call.query("--since-id"))
        .query("before_id", call.query("--before-id"));
    let answer = call.connect()?.get(&place)?;
    screen.show(&answer, |screen, entries: Vec<HistoryEntry>| {
        if entries.is_empty() {
            return screen.line("no entries");
        }
        let titles = [">ENTRY", "=WHEN", ">ID", "NAME", "MONITORS", "=MODE", "BY", "=BACKEND"];
        let mut table = Table::new(&titles);
        for entry in entries {
            table.row([
                entry.id.into(),
                moment(entry.set_at).into(),
                entry.image_id.into(),
                entry.image_name.into(),
                entry.monitors.join(", ").into(),
                entry.mode.into(),
                by(&entry.source).into(),
                entry.backend.into(),
            ]);
        }
        screen.table(&table)
    })
}

fn by(source: &HistorySource) -> String {
    match &source.playlist_name {
        Some(name) => format!("playlist {name}"),
        None => source.kind.to_string(),
    }
}

#[derive(Deserialize)]
struct Cleared {
    deleted: u64,
}

fn clear(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let answer = call.connect()?.delete(&Place::new(&[&"images", &"history"]), None)?;
    screen.show(&answer, |screen, cleared: Cleared| {
        let entries = if cleared.deleted == 1 { "entry" } else { "entries" };
        screen.line(format!("{} {entries} forgotten", cleared.deleted))
    })
}
