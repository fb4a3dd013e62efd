//! The wallpaper: setting one, any at random, and looking.

use serde::Deserialize;

use super::super::Failure;
use super::super::call::Call;
use super::super::request::{From, Record, Request};
use super::super::screen::Screen;
use super::super::table::Table;
use super::super::verb::{Argument, Flag, Group, Kind, Verb};
use super::{MODE, MONITORS, history, moment};
use crate::wire::CurrentWallpaper;

const ID: Argument = Argument::one("ID", Kind::Image, "The image");
const ON: &[Flag] = &[MONITORS, MODE];
const SET_HELP: &str = "`individual`, the default, and `clone` show the whole picture on each monitor;\n\
                        `extend` spreads it over all of them. Only still images can be spread, the rest is\n\
                        cloned.";

const SET_IT: Request = Request::post(
    "/wallpaper/set",
    &[
        ("mode", From::Given("--mode")),
        ("monitors", From::Any("--monitor")),
        ("image_id", From::Given("ID")),
    ],
)
.shows::<SetAnswer>();
const ANY: Request = Request::post(
    "/wallpaper/random",
    &[("mode", From::Given("--mode")), ("monitors", From::Any("--monitor"))],
)
.shows::<SetAnswer>();
const CURRENT: Request = Request::get("/wallpaper/current").shows::<CurrentWallpaper>();

pub(super) const GROUP: Group = Group {
    title: "Wallpapers",
    verbs: &[
        Verb::asking(&["set"], "Show an image as the wallpaper", SET_IT)
            .arguments(&[ID])
            .flags(ON)
            .help(SET_HELP),
        Verb::asking(&["random"], "Show an image at random", ANY).flags(ON).help(
            "One that is not shown there already, if there is another that the backend can show.",
        ),
        Verb::asking(&["wallpaper", "set"], "The same as `set`", SET_IT).arguments(&[ID]).flags(ON),
        Verb::asking(&["wallpaper", "random"], "The same as `random`", ANY).flags(ON),
        Verb::asking(&["wallpaper", "current"], "List what each monitor shows", CURRENT),
        history::LIST,
        history::CLEAR,
    ],
};

#[derive(Deserialize)]
struct SetAnswer {
    status: String,
    image_id: i64,
    monitors: Vec<String>,
    #[serde(default)]
    skipped: Vec<String>,
    mode: String,
    backend: String,
    #[serde(default)]
    warnings: Vec<String>,
    note: Option<String>,
}

impl Record for SetAnswer {
    fn show(self, _: &Call, screen: &mut Screen) -> Result<(), Failure> {
        let on = self.monitors.join(", ");
        if self.status == "superseded" {
            return screen.line(format!("a newer request for {on} came in between"));
        }
        let Self { image_id, mode, backend, .. } = self;
        screen.line(format!("image {image_id} is on {on} now ({mode}, {backend})"))?;
        if !self.skipped.is_empty() {
            screen.line(format!("not connected, left out: {}", self.skipped.join(", ")))?;
        }
        let warnings = self.warnings.iter().map(|warning| format!("warning: {warning}"));
        self.note.into_iter().chain(warnings).try_for_each(|line| screen.line(line))
    }
}

impl Record for CurrentWallpaper {
    fn show(self, _: &Call, screen: &mut Screen) -> Result<(), Failure> {
        if self.monitors.is_empty() {
            return screen.line("no wallpaper is set; `murald set ID` or `murald random` sets one");
        }
        let mut table = Table::new(&["=MONITOR", ">ID", "NAME", "=MODE", "=BACKEND", "=SINCE"]);
        for shown in self.monitors {
            table.row([
                shown.monitor_name.into(),
                shown.image_id.into(),
                shown.image_name.into(),
                shown.mode.into(),
                shown.backend.into(),
                moment(shown.set_at).into(),
            ]);
        }
        screen.table(&table)
    }
}
