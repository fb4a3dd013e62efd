//! The verbs that show, change and run playlists.

use serde_json::{Value, json};

use super::filters::{DIRECTIONS, FILTERS, SEARCH, SORTS};
use super::playlist_sheet::{
    PLAYLIST, PLAYLISTS, START, name_of, on_monitors, paused, running_now,
};
use super::wallpaper::on_each;
use super::{
    Argument, Body, BodyFields, Call, Cell, EACH, Error, Flag, From, Group, INTERVAL, Kind, MODE,
    MONITORS, NULL, ON_OFF, Request, Run, Stdout, Verb, View, column, computed, count, filters,
    items, label, library, listed, moment_of, more, place, session, text,
};
use crate::wire::{PlaylistOrder, PlaylistType};

const ONE: Argument = Argument::one("PLAYLIST", Kind::Playlist, "The playlist");
const RUNNING: &[Argument] = &[Argument::optional(
    "PLAYLIST",
    Kind::Playlist,
    "The playlist (default: all that are running)",
)];
const STEPPED: &[Flag] =
    &[Flag::value("--monitor", "NAME", Kind::Monitor, "Only on this monitor").many()];
const STEPPED_HELP: &str = "With --monitor, a playlist of mode each changes only these monitors, any other playlist on them \
     changes all of its monitors.";
const ITEMS: &str = "The images or colours; - reads from standard input; IMAGE@HH:MM or IMAGE@sunset-30m for \
               time_of_day, IMAGE@light for appearance";
const TYPE: Flag = Flag::value(
    "--type",
    "TYPE",
    Kind::Words(PlaylistType::WORDS),
    "When the image changes",
);
#[rustfmt::skip]
const ORDER: Flag = Flag::value("--order", "ORDER", Kind::Words(PlaylistOrder::WORDS),
    "In order, or shuffled");
#[rustfmt::skip]
const FIRST: Flag = Flag::value("--from-first", "on|off", ON_OFF,
    "Start with the first image each time, or at the last position");
/// The requests about one playlist; without PLAYLIST about all that are running.
const STOP: &str = "POST /playlists/{PLAYLIST:active}/stop";
const PAUSE: &str = "POST /playlists/{PLAYLIST:active}/pause";
const RESUME: &str = "POST /playlists/{PLAYLIST:active}/resume";
const STEP_ON: &str = "POST /playlists/{PLAYLIST:active}/next";
const STEP_BACK: &str = "POST /playlists/{PLAYLIST:active}/previous";
const THEIRS: BodyFields = &[("monitors", From::Any("--monitor"))];
/// The fields that were given. The daemon keeps the others, or has defaults for them.
const CONFIGURATION: (&str, From) = (
    "configuration",
    From::Object(&[
        ("type", From::Of(kind)),
        ("interval", From::Given("--interval")),
        ("order", From::Given("--order")),
        ("always_start_on_first_image", From::On("--from-first")),
    ]),
);

#[rustfmt::skip]
pub(super) const GROUP: Group = Group { title: "Playlists", verbs: &[
    Verb::send(&["next"], "Show the next image of all running playlists", STEP_ON, THEIRS)
        .flags(STEPPED).shows(&[&NEXT]).checked(moved).help(STEPPED_HELP),
    Verb::send(&["previous"], "Show the previous image of all running playlists", STEP_BACK, THEIRS)
        .flags(STEPPED).shows(&[&PREVIOUS]).checked(moved).help(STEPPED_HELP),
    Verb::own(&["toggle"], "Pause or resume all playlists", toggle)
        .shows(&[&PAUSED, &RESUMED])
        .help("Pauses all playlists if one is not paused; otherwise resumes all."),
    library::SLIDESHOW,
    session::APPEARANCE,
    session::POWER,
    Verb::send(&["pause"], "Pause all running playlists", PAUSE, &[]).shows(&[&PAUSED]).checked(moved)
        .help("Exits with 1 if no playlist is running."),
    Verb::send(&["resume"], "Resume all paused playlists", RESUME, &[]).shows(&[&RESUMED])
        .help("Also resumes playlists that the power settings have paused, until that pause ends; \
               videos and HTML wallpapers stay paused."),
    Verb::get(&["playlist", "list"], "List the playlists", "GET /playlists").shows(&[&PLAYLISTS]),
    Verb::get(&["playlist", "show"], "Show a playlist and its images", "GET /playlists/{PLAYLIST}")
        .takes(&[ONE]).shows(&[&PLAYLIST]),
    Verb::send(&["playlist", "create"], "Create a playlist", "POST /playlists", &[
            CONFIGURATION, ("images", From::Of(images)), ("name", From::Given("NAME")),
            ("source", From::Of(source)),
        ])
        .takes(&[Argument::one("NAME", Kind::Name, "Name of \
               the playlist"), Argument::any("IMAGE", Kind::Item, ITEMS)])
        .needs(is_timed).shows(&[&PLAYLIST]).flags(joined!(FILTERS;
            TYPE, INTERVAL, ORDER, FIRST,
            Flag::switch("--fixed", "Only the images that match the filters now"),
            NULL, SEARCH,
            Flag::value("--sort-by", "FIELD", SORTS, "Sort order of filter results; name by default"),
            Flag::value("--sort-order", "ORDER", DIRECTIONS, "Ascending (the default) or descending"),
        ))
        .help("    murald playlist create evening lake 4 5 --interval 10m --order random\n    \
               murald playlist create day lake@07:00 dusk@19:30\n    \
               murald playlist create trips --folder travel --order random\n    \
               murald playlist create sky lake@dawn night@dusk+30m\n\n\
               A playlist of the type timer (the default) changes the image after each interval, 5 \
               minutes by default; manual changes only on request, time_of_day at the times of the \
               images, and appearance with light and dark mode. day_of_week changes every day: the \
               first image is Sunday's, the second Monday's, and so on. @HH:MM, @light and @dark \
               imply the type.\n\n\
               sunrise, sunset, dawn and dusk need your location: set location.latitude and \
               location.longitude, for example `murald config set location.latitude 52.5`.\n\n\
               A playlist with filters instead of images is dynamic: murald updates it before each \
               change to contain the images that match. With --fixed, it contains the images that \
               match now and is not updated.\n\n\
               Playlists of the types timer and manual skip images whose files are missing."),
    Verb::send(&["playlist", "edit"], "Change a playlist", "PATCH /playlists/{PLAYLIST}",
        &[CONFIGURATION, ("images", From::Any("IMAGE")), ("name", From::Given("--name"))])
        .takes(&[ONE, Argument::any("IMAGE", Kind::Item, "The images, replacing the current ones")])
        .flags(&[Flag::value("--name", "NAME", Kind::Name, "The new name"), TYPE, INTERVAL, ORDER, FIRST])
        .needs(is_timed).shows(&[&PLAYLIST]).help("A running playlist uses the change at once."),
    Verb::send(&["playlist", "add"], "Add images to the end of a playlist",
        "PATCH /playlists/{PLAYLIST}", &[("images", From::Object(&[("add", From::Any("IMAGE"))]))])
        .takes(&[ONE, Argument::any("IMAGE", Kind::Item, ITEMS)]).choosing()
        .flags(joined!(FILTERS; NULL, SEARCH)).shows(&[&PLAYLIST])
        .help("Filters select all images that match now."),
    Verb::change(&["playlist", "remove"], "Remove images from a playlist",
        "PATCH /playlists/{PLAYLIST}", remove)
        .takes(&[ONE, Argument::some("IMAGE", Kind::Image, "The images")]).shows(&[&PLAYLIST])
        .help("Removes every occurrence of an image."),
    Verb::own(&["playlist", "delete"], "Delete a playlist; its images stay", delete)
        .takes(&[ONE]).shows(&[&DELETED]),
    Verb::new(&["playlist", "start"], "Start a playlist", Run::Request(START))
        .takes(&[ONE]).shows(&[&DONE]).starting()
        .flags(&[MONITORS, MODE, EACH, Flag::switch("--extend", "Spread each image across all monitors")])
        .help("Without --monitor, it runs on all monitors, including those connected later. Other \
               playlists on the same monitors are stopped. Starts the daemon if it is not running."),
    Verb::send(&["playlist", "stop"], "Stop a playlist", STOP, &[])
        .takes(RUNNING).shows(&[&DONE, &STOPPED]),
    Verb::send(&["playlist", "pause"], "Pause a playlist", PAUSE, &[])
        .takes(RUNNING).shows(&[&DONE, &PAUSED]).checked(moved),
    Verb::send(&["playlist", "resume"], "Resume a playlist", RESUME, &[])
        .takes(RUNNING).shows(&[&DONE, &RESUMED]),
    Verb::send(&["playlist", "next"], "Show the next image of a playlist", STEP_ON, THEIRS)
        .takes(RUNNING).flags(STEPPED).shows(&[&STEPPED_ONE, &NEXT]).checked(moved),
    Verb::send(&["playlist", "previous"], "Show the previous image of a playlist", STEP_BACK, THEIRS)
        .takes(RUNNING).flags(STEPPED).shows(&[&STEPPED_ONE, &PREVIOUS]).checked(moved),
    Verb::get(&["playlist", "active"], "List the running playlists", "GET /playlists/active/{MONITOR}")
        .takes(&[Argument::optional("MONITOR", Kind::Monitor, "Only the playlist on this monitor")])
        .shows(&[&ACTIVE]),
]};

const DELETED: View = View::new("DELETE /playlists/{id}", &[more("status")]).saying("deleted");
/// The answers of actions on one playlist, and on all that are running.
const DONE: View =
    View::new("POST /playlists/{id}/start", &[more("status warnings")]).showing(done);
const STOPPED: View =
    View::new("POST /playlists/active/stop", &[more("message stopped")]).showing(done);
const PAUSED: View =
    View::new("POST /playlists/active/pause", &[more("message paused")]).showing(done);
const RESUMED: View = View::new(
    "POST /playlists/active/resume",
    &[more("message resumed warnings")],
)
.showing(done);
const STEPPED_ONE: View = View::new(
    "POST /playlists/{id}/next",
    &[more(
        "status image_id image_name image_path color images warnings",
    )],
)
.showing(stepped);
const NEXT: View = View::new(
    "POST /playlists/active/next",
    &[more(
        "message advanced image_id image_name image_path color images warnings",
    )],
)
.showing(stepped);
const PREVIOUS: View = View::new(
    "POST /playlists/active/previous",
    &[more(
        "message reversed image_id image_name image_path color images warnings",
    )],
)
.showing(stepped);
const ACTIVE: View = RUNS.showing(|call, stdout, all| {
    RUNS.people(call, stdout, all)?;
    match all.as_array().map_or(1, Vec::len) as u64 {
        0 => Ok(()),
        number => stdout.note(format!("{} running", count(number, "playlist"))),
    }
});
const RUNS: View = View::table(
    "ActivePlaylist",
    &[
        column(">ID", "playlist_id"),
        column("NAME", "playlist_name"),
        computed("=STATE", "paused resting resumed total_images", |one, _| {
            Some(match paused(one) {
                Some(paused) => paused.into(),
                None if one["total_images"] == 0 => "empty".into(),
                None => "running".into(),
            })
        }),
        column("MONITORS", "applied_to"),
        computed("IMAGE", "current_image_id current_color", |one, call| {
            if let Some(color) = one["current_color"].as_str() {
                return Some(color.into());
            }
            let id = Some(&one["current_image_id"]).filter(|id| id.is_number())?;
            Some(Cell::from(format!("{} ({id})", name_of(call, id))).raw(id))
        }),
        computed(">PLACE", "current_index", |one, _| {
            let all = one["total_images"].as_u64().filter(|all| *all > 0)?;
            let place = one["current_index"].as_u64().unwrap_or_default() + 1;
            Some(format!("{place}/{all}").into())
        }),
        computed("=NEXT CHANGE", "next_change_at", |one, _| {
            // A paused playlist has no next change.
            (one["paused"] != true).then(|| moment_of(&one["next_change_at"]))
        }),
        more(
            "playlist_type previous_image_id next_image_id started_at slot_started_at monitors \
             extend mode",
        ),
    ],
    NONE,
);
const NONE: &str = "no playlist is running; `murald playlist start PLAYLIST` starts one";

/// The type of a playlist, also if only the images' times or modes imply it.
fn kind(call: &Call) -> Result<Option<Value>, Error> {
    let says = |field: &str| {
        call.all("IMAGE")
            .into_iter()
            .any(|item| item.get(field).is_some())
    };
    Ok(match call.value("--type") {
        Some(kind) => Some(kind.clone()),
        None if says("when") => Some(json!(PlaylistType::Appearance)),
        None if says("time") || says("at") => Some(json!(PlaylistType::TimeOfDay)),
        None => None,
    })
}

/// Refuses an interval for a playlist that has none.
fn is_timed(call: &Call) -> Result<(), Error> {
    match kind(call)?.as_ref().and_then(Value::as_str) {
        Some(kind) if kind != "timer" && call.has("--interval") => Err(Error::usage(format!(
            "--interval cannot be combined with the type {kind}"
        ))),
        _ => Ok(()),
    }
}

/// The images of a new playlist: the named ones, or all that its filters find now.
fn images(call: &Call) -> Result<Option<Value>, Error> {
    let filters = filters::narrows(call)?;
    match (filters, call.has("--fixed"), call.has("IMAGE")) {
        (false, true, _) => Err(Error::usage("--fixed needs a filter")),
        (false, false, false) => Err(Error::usage("no images given").hint(
            "`murald playlist create NAME lake hill` creates one with these two images, \
                 `murald playlist create NAME --folder travel` one with all images in that folder",
        )),
        (true, false, false) => Ok(None),
        _ => Ok(Some(json!(filters::chosen(call, Some(Kind::Item))?))),
    }
}

/// The filters of a new dynamic playlist.
fn source(call: &Call) -> Result<Option<Value>, Error> {
    let finds = filters::narrows(call)? && !call.has("--fixed") && !call.has("IMAGE");
    Ok(finds.then(|| filters::source(call).into()))
}

fn remove(call: &Call, playlist: Value) -> Result<Value, Error> {
    let gone = call.all("IMAGE");
    let mut images = items(&playlist, "images").iter();
    if images.any(|item| gone.contains(&&item["image_id"])) {
        Ok(json!({ "images": { "remove": gone } }))
    } else {
        Err(Error::refused("the playlist contains none of these images"))
    }
}

/// `Night (3)`, or only the id if the playlist no longer exists.
fn named(call: &Call) -> String {
    let id = call.word("PLAYLIST");
    let read = call.connect().and_then(|it| it.read(&[&"playlists", &id]));
    read.map_or(id, |one: Value| label(&one))
}

fn delete(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    // The name has to be read before the playlist is deleted.
    let name = if stdout.wants_data() {
        String::new()
    } else {
        named(call)
    };
    let answer = call
        .connect()?
        .ask("DELETE", &place("/playlists/{PLAYLIST}", call), None)?;
    stdout.show(&answer, |stdout, _: Value| {
        stdout.say(format!("{name} deleted"))
    })
}

fn done(call: &Call, stdout: &mut Stdout, answer: &Value) -> Result<(), Error> {
    stdout.warn_all(answer);
    if let (true, Some(status)) = (call.has("PLAYLIST"), answer["status"].as_str()) {
        let on = if status == "started" {
            on_monitors(call, call.value("PLAYLIST"))
        } else {
            String::new()
        };
        return stdout.say(format!("{} {status}{on}", named(call)));
    }
    match text(answer, "message") {
        // Without any running playlist, `moved` has refused the answer.
        _ if answer["paused"] == 0 => stdout.say("all playlists are already paused"),
        message if message.starts_with("0 ") => match running_now(call)?.as_slice() {
            [] => stdout.say("no playlist is running"),
            _ => stdout.say("no playlist is paused"),
        },
        message => stdout.say(message),
    }
}

/// Shows the monitors' images after a step.
fn stepped(call: &Call, stdout: &mut Stdout, answer: &Value) -> Result<(), Error> {
    stdout.warn_all(answer);
    answer["images"]
        .as_object()
        .map_or(Ok(()), |images| on_each(images, call, stdout))
}

/// Refuses an answer that says that no playlist is running. The daemon refuses steps of playlists that
/// have none.
fn moved(call: &Call, answer: &Value) -> Result<(), Error> {
    let is_step = answer["advanced"] == 0 || answer["reversed"] == 0;
    // Otherwise, all that are running may be paused already.
    if !is_step && (answer["paused"] != 0 || !running_now(call)?.is_empty()) {
        return Ok(());
    }
    let on = match call.all("--monitor").as_slice() {
        [] => String::new(),
        on => format!(" on {}", listed(&json!(on))),
    };
    Err(Error::refused(format!("no playlist is running{on}"))
        .hint("`murald playlist start PLAYLIST` starts one, `murald random` shows any image"))
}

fn toggle(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let running = running_now(call)?;
    let is_pause = running.iter().any(|one| paused(one).is_none()) || running.is_empty();
    let (place, view) = if is_pause {
        (PAUSE, PAUSED)
    } else {
        (RESUME, RESUMED)
    };
    let answer = Request::new(place, Body::Fields(&[])).send(call, "toggle")?;
    moved(call, &answer.read()?)?;
    view.show(call, stdout, &answer)
}
