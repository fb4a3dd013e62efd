//! The verbs that set and show wallpapers.

use std::collections::BTreeMap;

use super::super::Error;
use super::super::call::Call;
use super::super::request::{From, Record, Request};
use super::super::stdout::Stdout;
use super::super::table::{Cell, Table};
use super::super::verb::{Argument, Flag, Group, Kind, Verb};
use super::{
    FIT, MODE, MODE_OF_ONE, MONITORS, TRANSITION, gallery, history, inspect, moment, pick,
    playlist_sheet,
};
use crate::wire::{CurrentMonitor, CurrentWallpaper, SetAnswer, SetStatus};

const PICTURE: Argument =
    Argument::one("PICTURE", Kind::Picture, "An image of the library, or a file");
const ON: &[Flag] = &[
    MONITORS,
    MODE_OF_ONE,
    FIT,
    TRANSITION,
    Flag::switch("--default", "Only for monitors that murald has not seen before"),
];
const AMONG: &[Flag] =
    &gallery::together::<4, { gallery::FILTERS.len() }, { 4 + gallery::FILTERS.len() }>([
        MONITORS, MODE, FIT, TRANSITION,
    ]);
const SET_HELP: &str = "    murald set ~/Pictures/lake.jpg\n    \
                        murald set lake --monitor DP-1\n\n\
                        A file that is not in the library is imported first. Where no daemon runs, one is\n\
                        started.\n\n\
                        `individual`, the default, and `clone` show the whole picture on each monitor: they\n\
                        look the same. `extend` spreads one picture over all of them; only still images can\n\
                        be spread, the rest is cloned.";
const RANDOM_HELP: &str = "    murald random --tags sea --orientation landscape\n\n\
     One that is not shown there already, if there is another that the backend can show. With\n\
     `each`, each monitor has its own, an upright one where it stands upright.";
const BACK_HELP: &str = "Each monitor goes back by a step of its own. Again goes further back;\n\
                         any other change of a monitor ends its way back.";

const SET_IT: Request = Request::post(
    "/wallpaper/set",
    &[
        ("mode", From::Given("--mode")),
        ("fit", From::Given("--fit")),
        ("transition", From::Given("--transition")),
        ("monitors", From::Any("--monitor")),
        ("default", From::Switch("--default")),
        ("image_id", From::Picture("PICTURE")),
    ],
)
.shows::<SetAnswer>();
const ANY: Request = Request::post(
    "/wallpaper/random",
    &[
        ("mode", From::Given("--mode")),
        ("fit", From::Given("--fit")),
        ("transition", From::Given("--transition")),
        ("monitors", From::Any("--monitor")),
        ("filter", From::Filter(gallery::filter)),
    ],
)
.shows::<SetAnswer>();
const BACK: Request =
    Request::post("/wallpaper/back", &[("monitors", From::Any("--monitor"))]).shows::<SetAnswer>();
const CURRENT: Request = Request::get("/wallpaper/current").shows::<CurrentWallpaper>();

pub(super) const GROUP: Group = Group {
    title: "Wallpapers",
    verbs: &[
        Verb::asking(&["set"], "Show a picture as the wallpaper", SET_IT)
            .arguments(&[PICTURE])
            .flags(ON)
            .help(SET_HELP)
            .starting(),
        Verb::asking(&["random"], "Show an image at random", ANY)
            .flags(AMONG)
            .help(RANDOM_HELP)
            .starting(),
        Verb::asking(&["back"], "Show what was there before", BACK)
            .flags(&[MONITORS])
            .help(BACK_HELP),
        Verb::asking(&["current"], "List what each monitor shows", CURRENT)
            .help("    murald current --format '{image_name} {monitors[0].monitor_name}'"),
        inspect::WHY,
        pick::PICK,
        Verb::asking(&["wallpaper", "set"], "The same as `set`", SET_IT)
            .arguments(&[PICTURE])
            .flags(ON)
            .starting(),
        Verb::asking(&["wallpaper", "random"], "The same as `random`", ANY).flags(AMONG).starting(),
        Verb::asking(&["wallpaper", "back"], "The same as `back`", BACK).flags(&[MONITORS]),
        Verb::asking(&["wallpaper", "current"], "The same as `current`", CURRENT),
        history::LIST,
        history::CLEAR,
    ],
};

impl Record for SetAnswer {
    fn show(self, call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
        let on = self.monitors.join(", ");
        if self.status == SetStatus::Superseded {
            return stdout.say(format!("a newer request for {on} came in between"));
        }
        let name = self.image_name.as_deref().unwrap_or("the image");
        if self.monitors.is_empty() {
            return stdout.say(format!("new monitors will show {name} ({})", self.image_id));
        }
        if self.images.is_empty() {
            stdout.say(format!("{name} ({}) is on {on}", self.image_id))?;
        } else {
            each(&self.images, call, stdout)?;
        }
        if !self.skipped.is_empty() {
            stdout.warn(format!("left out: {}", self.skipped.join(", ")));
        }
        self.note.iter().chain(&self.warnings).for_each(|text| stdout.warn(text));
        Ok(())
    }
}

/// A line for each picture, with the monitors that show it.
fn each(images: &BTreeMap<String, i64>, call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let connection = call.connect()?;
    let mut told: Vec<i64> = Vec::new();
    for image in images.values() {
        if told.contains(image) {
            continue;
        }
        told.push(*image);
        let shows = images.iter().filter(|(_, id)| *id == image);
        let on: Vec<&str> = shows.map(|(monitor, _)| monitor.as_str()).collect();
        let name = playlist_sheet::name(&connection, *image);
        stdout.say(format!("{name} ({image}) is on {}", on.join(", ")))?;
    }
    Ok(())
}

/// A deleted image has no number.
fn named(shown: &CurrentMonitor) -> String {
    let deleted = if shown.deleted { " (deleted)" } else { "" };
    format!("{}{deleted}", shown.image_name)
}

impl Record for CurrentWallpaper {
    fn show(self, _: &Call, stdout: &mut Stdout) -> Result<(), Error> {
        if self.monitors.is_empty() {
            return stdout.note("no wallpaper is set; `murald set PICTURE` sets one");
        }
        let mut table = Table::new(&["=MONITOR", ">ID", "NAME", "=MODE", "=BACKEND", "=SINCE"]);
        for shown in self.monitors {
            let name = named(&shown);
            table.row([
                shown.monitor_name.into(),
                shown.image_id.map_or_else(Cell::default, Cell::from),
                name.into(),
                shown.mode.into(),
                shown.backend.into(),
                Cell::from(moment(shown.set_at)).raw(shown.set_at),
            ]);
        }
        stdout.table(&table)
    }
}
