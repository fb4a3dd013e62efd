//! `murald why` and `murald debug`: why a monitor shows its image, and the daemon's state for reports.

use super::super::Error;
use super::super::call::Call;
use super::super::request::{Record, Request};
use super::super::stdout::Stdout;
use super::super::table::{Cell, Table};
use super::super::terminal::span;
use super::super::verb::{Argument, Kind, Verb};
use crate::wire::{Debug, Why};

pub(super) const WHY: Verb = Verb::asking(
    &["why"],
    "Tell why each monitor shows what it shows",
    Request::get("/why?monitor={MONITOR}").shows::<Vec<Why>>(),
)
.arguments(&[Argument::optional("MONITOR", Kind::Monitor, "Only this monitor")])
.help("Who has put it there, what is due next, and what has failed since.");

impl Record for Vec<Why> {
    fn show(self, _: &Call, stdout: &mut Stdout) -> Result<(), Error> {
        if self.is_empty() {
            return stdout.note("no monitor is connected");
        }
        self.into_iter().try_for_each(|why| stdout.say(why.text))
    }
}

pub(super) const DEBUG: Verb = Verb::asking(
    &["debug"],
    "Show what goes on inside the daemon",
    Request::get("/debug").shows::<Debug>(),
)
.help(
    "For reports of faults: its threads, what waits for them, its backends' processes and the last \
     failures. No setting is in it.",
);

impl Record for Debug {
    fn show(self, _: &Call, stdout: &mut Stdout) -> Result<(), Error> {
        let mut sheet = Table::sheet();
        sheet.field("version", &self.version);
        sheet.field("uptime", Cell::from(span(self.uptime)).raw(self.uptime));
        sheet.field("clients", self.clients);
        let threads: Vec<String> = self.threads.into_iter().map(|thread| thread.name).collect();
        sheet.field("threads", Cell::list(&threads));
        for queue in &self.queues {
            let capacity = queue.capacity.map_or_else(String::new, |most| format!(" of {most}"));
            sheet.field("queue", format!("{}: {}{capacity}", queue.name, queue.length));
        }
        for one in &self.assignments {
            let text = format!("{}: image {}, by {}", one.monitor, one.image_id, one.backend);
            sheet.field("assignment", text);
        }
        match &self.playlists {
            Some(playlists) => playlists.iter().for_each(|one| {
                let paused = if one.paused { ", paused" } else { "" };
                let on = one.applied_to.join(", ");
                sheet.field("playlist", format!("{} on {on}{paused}", one.playlist_name));
            }),
            None => sheet.field("playlist", "the player does not answer"),
        }
        for child in &self.children {
            let memory = child.memory_kb.map_or_else(String::new, |kb| format!(", {kb} KiB"));
            let on = child.monitors.join(", ");
            sheet.field(
                "child",
                format!("{} (process {}) on {on}{memory}", child.backend, child.pid),
            );
        }
        for one in &self.failures {
            let (on, failure) = (one.monitors.join(", "), &one.failure);
            let text = format!("{} on {on}: {}", failure.image_name, failure.error);
            sheet.field("failure", format!("{}, {text}", failure.at));
        }
        if let Some(failure) = &self.hook_failure {
            sheet.field("hook", format!("{}, failed: {}", failure.at, failure.error));
        }
        stdout.table(&sheet)
    }
}
