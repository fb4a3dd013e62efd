//! `murald history`: which images were shown on which monitor.

use serde::Deserialize;
use serde_json::Value;

use super::super::Error;
use super::super::call::{Call, shown};
use super::super::connection::{Answer, RequestPath};
use super::super::request::{Record, Request};
use super::super::stdout::Stdout;
use super::super::table::{Cell, Table};
use super::super::verb::{Flag, Kind, Verb};
use super::moment;
use crate::wire::{HistoryEntry, HistorySource};

pub(super) const LIST: Verb =
    Verb::new(&["history"], "List the wallpapers that were shown, newest first", list).flags(&[
        Flag::switch("--all", "Every entry"),
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

/// As many as the daemon gives at once, and as it gives where nobody says.
const MOST: usize = 1000;
const USUAL: usize = 50;

fn list(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    if !call.has("--all") {
        return ENTRIES.run(call, stdout);
    }
    if call.has("--limit") {
        return Err(Error::usage("--all is every entry: leave out --limit"));
    }
    let connection = call.connect()?;
    let mut all: Vec<Value> = Vec::new();
    let mut before = call.value("--before-id").cloned();
    loop {
        let page = RequestPath::new(&[&"images", &"history"])
            .query("limit", Some(MOST))
            .query("monitor", call.query("--monitor"))
            .query("since_id", call.query("--since-id"))
            .query("before_id", before.as_ref().map(shown));
        let page: Vec<Value> = connection.get(&page)?.read()?;
        let is_last = page.len() < MOST;
        before = page.last().map(|entry| entry["id"].clone());
        all.extend(page);
        if is_last {
            let show = |stdout: &mut Stdout, all: Vec<HistoryEntry>| all.show(call, stdout);
            return stdout.show(&Answer::of(&all)?, show);
        }
    }
}

impl Record for Vec<HistoryEntry> {
    fn show(self, call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
        if self.len() == USUAL && !call.has("--limit") && !call.has("--all") {
            stdout.warn(format!("the newest {USUAL} entries; --all shows every one"));
        }
        if self.is_empty() {
            return stdout.note("no entries");
        }
        let titles = ["=WHEN", "MONITORS", ">ID", "NAME", "BY", "=MODE", "=BACKEND", ">ENTRY"];
        let mut table = Table::new(&titles);
        for entry in self {
            table.row([
                Cell::from(moment(entry.set_at)).raw(entry.set_at),
                Cell::list(&entry.monitors),
                entry.image_id.into(),
                entry.image_name.into(),
                by(&entry.source).into(),
                entry.mode.into(),
                entry.backend.into(),
                entry.id.into(),
            ]);
        }
        stdout.table(&table)
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
    fn show(self, _: &Call, stdout: &mut Stdout) -> Result<(), Error> {
        let entries = if self.deleted == 1 { "entry" } else { "entries" };
        stdout.say(format!("{} {entries} forgotten", self.deleted))
    }
}
