//! What was shown where.

use serde::Deserialize;

use super::super::Failure;
use super::super::call::Call;
use super::super::request::{Record, Request};
use super::super::screen::Screen;
use super::super::table::Table;
use super::super::verb::{Flag, Kind, Verb};
use super::moment;
use crate::wire::{HistoryEntry, HistorySource};

pub(super) const LIST: Verb = Verb::asking(
    &["history"],
    "List the wallpapers that were shown, newest first",
    ENTRIES,
)
.flags(&[
    Flag::value("--monitor", "NAME", Kind::Monitor, "Only what this monitor showed"),
    Flag::value("--limit", "N", Kind::Count, "At most this many, up to 1000; 50 by default"),
    Flag::value("--since-id", "N", Kind::Count, "Only entries after this one"),
    Flag::value("--before-id", "N", Kind::Count, "Only entries before this one"),
]);
pub(super) const CLEAR: Verb = Verb::asking(
    &["history", "clear"],
    "Forget the history",
    Request::delete("/images/history").shows::<Cleared>(),
);

const ENTRIES: Request = Request::get(
    "/images/history?monitor={--monitor}&limit={--limit}&since_id={--since-id}&before_id={--before-id}",
)
.shows::<Vec<HistoryEntry>>();

impl Record for Vec<HistoryEntry> {
    fn show(self, _: &Call, screen: &mut Screen) -> Result<(), Failure> {
        if self.is_empty() {
            return screen.line("no entries");
        }
        let titles = [">ENTRY", "=WHEN", ">ID", "NAME", "MONITORS", "=MODE", "BY", "=BACKEND"];
        let mut table = Table::new(&titles);
        for entry in self {
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
    }
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

impl Record for Cleared {
    fn show(self, _: &Call, screen: &mut Screen) -> Result<(), Failure> {
        let entries = if self.deleted == 1 { "entry" } else { "entries" };
        screen.line(format!("{} {entries} forgotten", self.deleted))
    }
}
