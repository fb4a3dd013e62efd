//! The verbs that set and show wallpapers, and their history.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::filters::{self, FILTERS};
use super::playlist_sheet::{mode, name_of, running};
use super::{
    Argument, BodyFields, Call, Cell, EACH, Error, Flag, From, Group, Kind, MODE, MONITORS, Stdout,
    Verb, View, column, computed, each, items, listed, minute, moment, more, place, scripts,
    seconds, session, text, written,
};
use crate::wire::{Fit, labelled};

const PICTURE: &[Argument] = &[Argument::one(
    "PICTURE",
    Kind::Picture,
    "An image, a file, or a colour ('#1e1e2e', navy)",
)];
#[rustfmt::skip]
const FIT: Flag = Flag::value("--fit", "FIT", Kind::Words(Fit::WORDS),
    "How to scale the image (overrides the backend's setting)");
#[rustfmt::skip]
const POSITION: Flag = Flag::value("--position", "POSITION", Kind::Position,
    "Visible part: a name (such as top-left) or X%,Y%");
#[rustfmt::skip]
const TRANSITION: Flag = Flag::value("--transition", "NAME", Kind::Text,
    "Transition for this change; names depend on the backend");
const ON: &[Flag] = &[
    MONITORS,
    MODE,
    FIT,
    POSITION,
    TRANSITION,
    Flag::switch(
        "--default",
        "Only for monitors that murald has not seen before",
    ),
];
const AMONG: &[Flag] = joined!(FILTERS; MONITORS, MODE, EACH, FIT, POSITION, TRANSITION);
const ON_THESE: (&str, From) = ("monitors", From::Any("--monitor"));
const SET: BodyFields = &[
    ("mode", From::Given("--mode")),
    ("fit", From::Given("--fit")),
    ("position", From::Given("--position")),
    ("transition", From::Given("--transition")),
    ON_THESE,
    ("default", From::Switch("--default")),
    ("image_id", From::Picture("PICTURE")),
];
const RANDOM: BodyFields = &[
    ("mode", From::Of(mode)),
    ("fit", From::Given("--fit")),
    ("position", From::Given("--position")),
    ("transition", From::Given("--transition")),
    ON_THESE,
    ("filter", From::Of(filter)),
];

#[rustfmt::skip]
pub(super) const GROUP: Group = Group { title: "Wallpapers", verbs: &[
    Verb::send(&["set"], "Set the wallpaper", "POST /wallpaper/set", SET)
        .takes(PICTURE).flags(ON).shows(&[&SHOWN]).starting()
        .help("    murald set ~/Pictures/lake.jpg\n    murald set lake --monitor DP-1\n\n\
               A file that is not in the library is imported first. Starts the daemon if it is not \
               running.\n\n\
               `individual` (the default) and `clone` show the image on each monitor. `extend` \
               spreads a still image across all of them, and clones other images."),
    Verb::send(&["random"], "Set a random image", "POST /wallpaper/random", RANDOM)
        .flags(AMONG).shows(&[&SHOWN]).starting()
        .help("    murald random --tags sea --orientation landscape\n\n\
               Selects an image that is not shown already, if the backend can show another. With --each, \
               the images match the orientations of the monitors."),
    Verb::send(&["back"], "Go back to the previous wallpaper", "POST /wallpaper/back", &[ON_THESE])
        .flags(&[MONITORS]).shows(&[&WENT_BACK])
        .help("Repeat to go further back. Setting another wallpaper starts over."),
    Verb::send(&["mute"], "Mute videos (mpvpaper only)", "POST /wallpaper/sound",
        &[("muted", From::Fixed(true)), ON_THESE])
        .flags(&[MONITORS]).shows(&[&SOUND]),
    Verb::send(&["unmute"], "Unmute videos", "POST /wallpaper/sound",
        &[("muted", From::Fixed(false)), ON_THESE])
        .flags(&[MONITORS]).shows(&[&SOUND]),
    Verb::send(&["volume"], "Set the volume of videos", "POST /wallpaper/sound",
        &[("volume", From::Given("VOLUME")), ON_THESE])
        .takes(&[Argument::one("VOLUME", Kind::Count(0, 100), "0 to 100")]).flags(&[MONITORS])
        .shows(&[&SOUND]),
    Verb::get(&["current"], "Show what each monitor displays",
        "GET /wallpaper/current").shows(&[&CURRENT])
        .help("    murald current --format '{monitor_name}\\t{image_name}'"),
    Verb::get(&["why"], "Explain what each monitor displays", "GET /why?monitor={MONITOR}")
        .takes(&[Argument::optional("MONITOR", Kind::Monitor, "Only this monitor")]).shows(&[&WHY])
        .help("Shows what set the wallpaper, the next change, and the last failure."),
    session::WORKSPACE_LIST,
    session::WORKSPACE_SET,
    session::WORKSPACE_CLEAR,
    scripts::PICK,
    super::gallery::GALLERY,
    Verb::own(&["history"], "List past wallpapers, newest first", history)
        .shows(&[&HISTORY]).flags(&[
            Flag::switch("--all", "All entries"),
            Flag::value("--monitor", "NAME", Kind::Monitor, "Only wallpapers of this monitor"),
            Flag::value("--limit", "N", Kind::Count(1, MOST as u64), "Maximum number, up to 1000; 50 by default"),
            Flag::value("--since-id", "N", Kind::Count(0, u64::MAX), "Only entries after this one"),
            Flag::value("--before-id", "N", Kind::Count(0, u64::MAX), "Only entries before this one"),
        ]),
    Verb::get(&["history", "clear"], "Clear the history", "DELETE /images/history").shows(&[&CLEARED]),
]};

/// Each monitor with its image.
const ON_MONITORS: View = View::table(
    "CurrentWallpaper",
    &[
        column(
            "=MONITOR",
            "monitor_name image_path color description fit position muted volume paused_by workspace",
        ),
        column(">ID", "image_id"),
        column("NAME", "image_name"),
        column("=MODE", "mode"),
        column("=BACKEND", "backend"),
        moment("=SINCE", "set_at"),
        more(
            "backend image_id image_name image_path color mode set_at default_image_id \
             default_color monitors",
        ),
    ],
    "no wallpaper is set; `murald set PICTURE` sets one",
)
.within("monitors");
const CURRENT: View = ON_MONITORS.showing(|call, stdout, answer| {
    ON_MONITORS.people(call, stdout, answer)?;
    let all = answer["monitors"].as_array().into_iter().flatten();
    let told = all.filter(|shown| shown["description"].is_string());
    let lines: BTreeSet<_> = told
        .map(|it| (text(it, "image_name"), text(it, "description")))
        .collect();
    lines
        .into_iter()
        .try_for_each(|(name, told)| stdout.note(format!("{name}: {told}")))
});
const WHY: View = View::new(
    "Why",
    &[more(
        "monitor image_id image_name image_path color backend source set_at next last_failure \
         hook_failure warnings text",
    )],
)
.showing(|_, stdout, all| match all.as_array().map(Vec::as_slice) {
    Some([]) | None => stdout.note("no monitor is connected"),
    Some(all) => all.iter().try_for_each(|why| stdout.say(text(why, "text"))),
});
const HISTORY: View = View::table(
    "HistoryEntry",
    &[
        moment("=WHEN", "set_at"),
        column("MONITORS", "monitors"),
        column(">ID", "image_id"),
        column("NAME", "image_name"),
        computed("BY", "source", |entry, _| {
            let source = &entry["source"];
            Some(match source["playlist_name"].as_str() {
                Some(name) => format!("playlist {name}").into(),
                None => text(source, "type").into(),
            })
        }),
        column("=MODE", "mode"),
        column("=BACKEND", "backend"),
        column(">ENTRY", "id"),
        more("color fit position images"),
    ],
    "no entries",
);
const CLEARED: View = View::new("DELETE /images/history", &[more("status deleted")])
    .saying("{deleted#entry} deleted");
const SOUND: View = View::new(
    "POST /wallpaper/sound",
    &[more("status monitors muted volume")],
)
.saying("{monitors}: volume {volume}{muted=, muted:}");
const SHOWN: View = View::new(
    "Shown",
    &[more(
        "status image_id image_name image_path color monitor monitors skipped mode backend images \
         warnings note hidden_by",
    )],
)
.showing(|call, stdout, answer| shown(call, stdout, answer, "not connected"));
const WENT_BACK: View =
    SHOWN.showing(|call, stdout, answer| shown(call, stdout, answer, "nothing to go back to"));

fn filter(call: &Call) -> Result<Option<Value>, Error> {
    Ok(Some(filters::filter(call))
        .filter(|filter| !filter.is_empty())
        .map(Value::from))
}

/// Tells what is shown; `why_skipped` is why a monitor is skipped.
fn shown(call: &Call, stdout: &mut Stdout, answer: &Value, why_skipped: &str) -> Result<(), Error> {
    let on = text(answer, "monitors");
    if answer["status"] == "superseded" {
        return stdout.say(format!("a newer request for {on} replaced this one"));
    }
    let name = answer["image_name"].as_str().unwrap_or("the image");
    let what = answer["image_id"]
        .as_i64()
        .map_or_else(|| name.to_owned(), |id| labelled(name, id));
    if on.is_empty() {
        stdout.say(format!("new monitors will show {what}"))?;
        stdout.warn_all(answer);
        return Ok(());
    }
    match answer["images"].as_object() {
        Some(images) if !images.is_empty() => on_each(images, call, stdout)?,
        // A warning names those whose workspaces hide it.
        _ if answer["hidden_by"]
            .as_object()
            .is_some_and(|hidden| !hidden.is_empty()) =>
        {
            stdout.say(format!("{what} is set on {on}"))?;
        }
        _ => stdout.say(format!("{what} is on {on}"))?,
    }
    let skipped = text(answer, "skipped");
    if !skipped.is_empty() {
        stdout.warn(format!("skipped {skipped}: {why_skipped}"));
    }
    answer["note"]
        .as_str()
        .into_iter()
        .for_each(|note| stdout.warn(note));
    stdout.warn_all(answer);
    Ok(())
}

/// A line for each picture, with the monitors that show it.
pub(super) fn on_each(
    images: &Map<String, Value>,
    call: &Call,
    stdout: &mut Stdout,
) -> Result<(), Error> {
    let mut shown: Vec<(&Value, Vec<&str>)> = Vec::new();
    for (monitor, id) in images {
        match shown.iter_mut().find(|(other, _)| *other == id) {
            Some((_, on)) => on.push(monitor),
            None => shown.push((id, vec![monitor])),
        }
    }
    for (id, on) in shown {
        let what = match (id.as_i64(), id.as_str()) {
            (Some(number), _) => labelled(&name_of(call, id), number),
            // A plain colour is named by its value.
            (None, Some(color)) => color.to_owned(),
            (None, None) => continue,
        };
        stdout.say(format!("{what} is on {}", on.join(", ")))?;
    }
    Ok(())
}

/// The daemon's largest page of the history, and its default.
const MOST: usize = 1000;
const USUAL: usize = 50;
const ENTRIES: &str = "/images/history?monitor={--monitor}&limit={--limit}&since_id={--since-id}";

fn history(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let is_all = call.has("--all");
    if is_all && call.has("--limit") {
        return Err(Error::usage("--all cannot be combined with --limit"));
    }
    let mut all = entries(call, call.query("--before-id"))?;
    if let Some(list) = all.as_array_mut().filter(|_| is_all) {
        // After a full page there may be older entries.
        while let Some(last) = list.last().filter(|_| list.len() % MOST == 0) {
            match entries(call, Some(written(&last["id"])))?.as_array_mut() {
                Some(older) if !older.is_empty() => list.append(older),
                _ => break,
            }
        }
    } else if all.as_array().is_some_and(|all| all.len() == USUAL)
        && !call.has("--limit")
        && !stdout.wants_data()
    {
        stdout.warn(format!(
            "showing the newest {USUAL} entries; --all shows all"
        ));
    }
    HISTORY.tell(call, stdout, &all)
}

/// A page of the history, with `--all` the largest one.
fn entries(call: &Call, before: Option<String>) -> Result<Value, Error> {
    let place = place(ENTRIES, call).query("limit", call.has("--all").then_some(MOST));
    call.connect()?
        .get(&place.query("before_id", before))?
        .read()
}

pub(super) const DEBUG: Verb = Verb::get(
    &["debug"],
    "Show the internal state of the daemon, for bug reports",
    "GET /debug",
)
.shows(&[&STATE])
.help(
    "Shows threads, queues, processes of backends and the last failures. \
               The output contains no settings.",
);
const STATE: View = View::new(
    "Debug",
    &[
        column("version", "version"),
        seconds("uptime", "uptime"),
        column("clients", "clients"),
        computed("threads", "threads", |debug, _| {
            let threads = items(debug, "threads").iter();
            Some(Cell::list(
                &threads.map(|one| text(one, "name")).collect::<Vec<_>>(),
            ))
        }),
        each("queue", "queues", |queue| {
            let capacity = queue["capacity"].as_u64();
            let capacity = capacity.map_or_else(String::new, |most| format!(" of {most}"));
            format!("{}: {}{capacity}", text(queue, "name"), queue["length"])
        }),
        each("assignment", "assignments", |one| {
            let (monitor, backend) = (text(one, "monitor"), text(one, "backend"));
            let what = one["color"]
                .as_str()
                .map_or_else(|| format!("image {}", one["image_id"]), str::to_owned);
            format!("{monitor}: {what}, by {backend}")
        }),
        each("playlist", "playlists", running),
        computed("playlist", "playlists", |debug, _| {
            debug["playlists"]
                .is_null()
                .then(|| "the player does not answer".into())
        }),
        each("child", "children", |child| {
            let memory = child["memory_kb"].as_u64();
            let memory = memory.map_or_else(String::new, |kb| format!(", {kb} KiB"));
            let (backend, on) = (text(child, "backend"), text(child, "monitors"));
            format!("{backend} (process {}) on {on}{memory}", child["pid"])
        }),
        each("failure", "failures", |one| {
            let name = text(one, "image_name");
            let on = listed(&one["monitors"]);
            format!(
                "{}, {name} on {on}: {}",
                minute(&one["at"]),
                text(one, "error")
            )
        }),
        computed("hook", "hook_failure", |debug, _| {
            let hook = debug["hook_failure"].as_object()?;
            Some(
                format!(
                    "{}, failed: {}",
                    minute(&hook["at"]),
                    written(&hook["error"])
                )
                .into(),
            )
        }),
        more("power workspaces"),
    ],
);
