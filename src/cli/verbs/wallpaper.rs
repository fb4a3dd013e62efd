//! The wallpaper: setting one, any at random, and looking.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::Failure;
use super::super::call::Call;
use super::super::connection::{Answer, Place};
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

pub(super) const GROUP: Group = Group {
    title: "Wallpapers",
    verbs: &[
        Verb::new(&["set"], "Show an image as the wallpaper", set)
            .arguments(&[ID])
            .flags(ON)
            .help(SET_HELP),
        Verb::new(&["random"], "Show an image at random", random).flags(ON).help(
            "One that is not shown there already, if there is another that the backend can show.",
        ),
        Verb::new(&["wallpaper", "set"], "The same as `set`", set).arguments(&[ID]).flags(ON),
        Verb::new(&["wallpaper", "random"], "The same as `random`", random).flags(ON),
        Verb::new(&["wallpaper", "current"], "List what each monitor shows", current),
        history::LIST,
        history::CLEAR,
    ],
};

fn set(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let mut body = wishes(call);
    body.insert("image_id".into(), call.value("ID").expect("the table requires it").clone());
    let answer =
        call.connect()?.post(&Place::new(&[&"wallpaper", &"set"]), &Value::Object(body))?;
    hung(screen, &answer)
}

fn random(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let body = Value::Object(wishes(call));
    let answer = call.connect()?.post(&Place::new(&[&"wallpaper", &"random"]), &body)?;
    hung(screen, &answer)
}

/// Where and how.
fn wishes(call: &Call) -> Map<String, Value> {
    let mode = call.value("--mode").map(|mode| ("mode".to_owned(), mode.clone()));
    let monitors = Some(call.all("--monitor")).filter(|monitors| !monitors.is_empty());
    let monitors = monitors.map(|monitors| ("monitors".to_owned(), json!(monitors)));
    mode.into_iter().chain(monitors).collect()
}

#[derive(Deserialize)]
struct Hung {
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

fn hung(screen: &mut Screen, answer: &Answer) -> Result<(), Failure> {
    screen.show(answer, |screen, hung: Hung| {
        let on = hung.monitors.join(", ");
        if hung.status == "superseded" {
            return screen.line(format!("a newer request for {on} came in between"));
        }
        let Hung { image_id, mode, backend, .. } = hung;
        screen.line(format!("image {image_id} is on {on} now ({mode}, {backend})"))?;
        if !hung.skipped.is_empty() {
            screen.line(format!("not connected, left out: {}", hung.skipped.join(", ")))?;
        }
        let warnings = hung.warnings.iter().map(|warning| format!("warning: {warning}"));
        hung.note.into_iter().chain(warnings).try_for_each(|line| screen.line(line))
    })
}

fn current(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let answer = call.connect()?.get(&Place::new(&[&"wallpaper", &"current"]))?;
    screen.show(&answer, |screen, current: CurrentWallpaper| {
        if current.monitors.is_empty() {
            return screen.line("no wallpaper is set; `murald set ID` or `murald random` sets one");
        }
        let mut table = Table::new(&["=MONITOR", ">ID", "NAME", "=MODE", "=BACKEND", "=SINCE"]);
        for hung in current.monitors {
            table.row([
                hung.monitor_name.into(),
                hung.image_id.into(),
                hung.image_name.into(),
                hung.mode.into(),
                hung.backend.into(),
                moment(hung.set_at).into(),
            ]);
        }
        screen.table(&table)
    })
}
