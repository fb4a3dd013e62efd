//! Shows playlists as a table, and one playlist as a sheet with its images.

use serde_json::{Value, json};

use super::filters;
use super::image_sheet::TOTAL;
use super::{
    Body, Call, Cell, CellStyle, Error, From, Request, RequestPath, Stdout, View, at, column,
    computed, items, more, number, span, text, written,
};

/// Starts a playlist.
pub(super) const START: Request = Request::new(
    "POST /playlists/{PLAYLIST}/start",
    Body::Fields(&[
        ("mode", From::Of(mode)),
        ("extend", From::Switch("--extend")),
        ("monitors", From::Any("--monitor")),
    ]),
);

/// The mode of `--mode`, or `each`.
pub(super) fn mode(call: &Call) -> Result<Option<Value>, Error> {
    match (call.has("--each"), call.value("--mode")) {
        (true, Some(mode)) => Err(Error::usage(format!(
            "--each cannot be combined with --mode {}",
            written(mode)
        ))),
        (true, None) => Ok(Some("each".into())),
        (false, mode) => Ok(mode.cloned()),
    }
}

/// The maximum number of images of a playlist on a terminal; otherwise all are shown. The daemon's pages
/// are no larger.
const SHOWN: usize = 200;

pub(super) const PLAYLISTS: View = View::table(
    "Playlist",
    &[
        column(">ID", "id"),
        column("NAME", "name"),
        computed("=STATE", "playback", |playlist, _| Some(state(playlist))),
        computed("=CHANGES", "configuration", |playlist, _| {
            Some(Cell::from(changes(playlist)).raw(text(playlist, "configuration.type")))
        }),
        computed(">IMAGES", "images source", |playlist, call| {
            // A dynamic playlist has the images that its filters find now.
            Some(if playlist["source"].is_object() {
                number(&page(playlist, 1, 1, call).ok()?, TOTAL).into()
            } else {
                items(playlist, "images").len().into()
            })
        }),
        column("ORDER", "configuration.order"),
        more("created_at updated_at"),
    ],
    "no playlists; create one with `murald playlist create NAME IMAGE...`",
);
/// All fields of a playlist, and its images.
pub(super) const PLAYLIST: View = PLAYLISTS.showing(people);

const SHEET: View = View::new(
    "",
    &[
        column("id", "id"),
        column("name", "name"),
        computed("changes", "", |playlist, _| Some(changes(playlist).into())),
        column("order", "configuration.order"),
        computed("starts", "", |playlist, _| {
            let first = at(playlist, "configuration.always_start_on_first_image") == true;
            Some(
                if first {
                    "with the first image"
                } else {
                    "at the last position"
                }
                .into(),
            )
        }),
        computed("state", "", |playlist, _| Some(state(playlist))),
        computed("filters", "", |playlist, _| {
            let filters = playlist["source"].as_object()?.iter();
            let filters = filters.map(|(name, value)| format!("{name}={}", written(value)));
            let filters = filters.collect::<Vec<_>>().join(" ");
            Some(if filters.is_empty() {
                "every image".into()
            } else {
                filters.into()
            })
        }),
    ],
);

fn people(call: &Call, stdout: &mut Stdout, playlist: &Value) -> Result<(), Error> {
    let mut sheet = SHEET.as_sheet(playlist, call);
    let (rows, all) = found(playlist, stdout.terminal().is_some(), call)?;
    sheet.field("images", all);
    stdout.table(&sheet)?;
    if rows.is_empty() {
        return Ok(());
    }
    stdout.note("")?;
    let more = all.saturating_sub(rows.len() as u64);
    stdout.table(&ITEMS.as_table(&rows, call))?;
    if more > 0 {
        stdout.note(format!("and {more} more"))
    } else {
        Ok(())
    }
}

const ITEMS: View = View::table(
    "",
    &[
        column(">PLACE", "place"),
        column(">ID", "id"),
        column("NAME", "name"),
        column("=TYPE", "media_type"),
        column("=WHEN", "when"),
    ],
    "",
);

/// The images that a playlist has, or that its filters find now, and their number in all.
fn found(playlist: &Value, is_cut: bool, call: &Call) -> Result<(Vec<Value>, u64), Error> {
    let (mut images, all) = if is_cut {
        let page = page(playlist, 1, SHOWN, call)?;
        (items(&page, "data").to_vec(), number(&page, TOTAL))
    } else {
        let path: &[&dyn std::fmt::Display] = &[&"playlists", &playlist["id"], &"images"];
        let images = filters::every(&call.connect()?, path, |place| place)?;
        let all = images.len() as u64;
        (images, all)
    };
    let mut rows = items(playlist, "images").iter().enumerate();
    for (at, image) in images.iter_mut().enumerate() {
        // Rows whose images cannot be read, or were deleted since, are skipped.
        let row = rows.find(|(_, row)| row["image_id"] == image["id"]);
        let place = row.map_or(at, |(place, _)| place);
        image["place"] = (place + 1).into();
        image["when"] = when(playlist, place).into();
    }
    // Plain colours are in the list only.
    let listed = items(playlist, "images").iter().enumerate();
    let colors = listed.filter_map(|(place, item)| Some((place, item["color"].as_str()?)));
    let colors: Vec<Value> = colors
        .map(|(place, color)| {
            json!({ "place": place + 1, "name": color, "when": when(playlist, place) })
        })
        .collect();
    let all = all + colors.len() as u64;
    images.extend(colors);
    images.sort_by_key(|row| number(row, "place"));
    Ok((images, all))
}

/// A page of the images of a playlist.
fn page(playlist: &Value, page: usize, per_page: usize, call: &Call) -> Result<Value, Error> {
    let place = RequestPath::new(&[&"playlists", &playlist["id"], &"images"]);
    let place = place
        .query("per_page", Some(per_page))
        .query("page", Some(page));
    call.connect()?.get(&place)?.read()
}

/// The time or the day of an image, if it has one.
fn when(playlist: &Value, place: usize) -> String {
    const DAYS: [&str; 7] = [
        "Sunday",
        "Monday",
        "Tuesday",
        "Wednesday",
        "Thursday",
        "Friday",
        "Saturday",
    ];
    let listed = items(playlist, "images");
    // A dynamic playlist has no list, and this one may have changed between the requests.
    let Some(item) = listed.get(place) else {
        return String::new();
    };
    let last = place + 1 == listed.len();
    let day = || DAYS.get(place).copied().unwrap_or_default();
    match (
        text(playlist, "configuration.type").as_str(),
        item["time"].as_i64(),
    ) {
        ("appearance", _) => text(item, "when"),
        ("time_of_day", None) => text(item, "at"),
        ("time_of_day", Some(time)) => format!("{:02}:{:02}", time / 60, time % 60),
        // The last image is shown for the rest of the week.
        ("day_of_week", _) if last && place < 6 => format!("from {}", day()),
        ("day_of_week", _) => day().to_owned(),
        _ => String::new(),
    }
}

/// An image's name; empty if the image no longer exists.
pub(super) fn name_of(call: &Call, image: &Value) -> String {
    let image = call
        .connect()
        .and_then(|it| it.read::<Value>(&[&"images", image]));
    image.map(|image| text(&image, "name")).unwrap_or_default()
}

/// ` on DP-1, DP-2`: the monitors of a running playlist, whose pictures it replaces.
pub(super) fn on_monitors(call: &Call, playlist: Option<&Value>) -> String {
    let running = running_now(call).unwrap_or_default();
    let its = running
        .iter()
        .find(|one| Some(&one["playlist_id"]) == playlist);
    its.map(on).unwrap_or_default()
}

/// The same for a playlist in the list of those that run; empty while no monitor is connected.
fn on(running: &Value) -> String {
    let monitors = text(running, "applied_to");
    if monitors.is_empty() {
        monitors
    } else {
        format!(" on {monitors}")
    }
}

pub(super) fn running_now(call: &Call) -> Result<Vec<Value>, Error> {
    call.connect()?.read(&[&"playlists", &"active"])
}

/// `paused`, with the reason unless a client paused it; none if the playlist changes by itself.
pub(super) fn paused(one: &Value) -> Option<String> {
    if one["paused"] == true {
        return Some("paused".to_owned());
    }
    let reason = one["resting"].as_str().filter(|_| one["resumed"] != true)?;
    Some(format!("paused ({reason})"))
}

/// A running playlist on one line. The name of a slideshow may end with its monitors already.
pub(super) fn running(one: &Value) -> String {
    let paused = paused(one).map_or_else(String::new, |paused| format!(", {paused}"));
    let name = text(one, "playlist_name");
    let on = on(one);
    let name = name.strip_suffix(&on).unwrap_or(&name);
    format!("{name}{on}{paused}")
}

/// When a playlist changes the image.
fn changes(playlist: &Value) -> String {
    let interval = number(playlist, "configuration.interval");
    match text(playlist, "configuration.type").as_str() {
        "timer" => format!("every {}", span(interval)),
        "manual" => "only on request".to_owned(),
        "time_of_day" => "at times of day".to_owned(),
        "day_of_week" => "by day of the week".to_owned(),
        _ => "with light and dark mode".to_owned(),
    }
}

fn state(playlist: &Value) -> Cell {
    let playback = &playlist["playback"];
    if playback["was_running"] != true {
        Cell::from("stopped").look(CellStyle::Dim)
    } else if playback["paused"] == true {
        "paused".into()
    } else {
        Cell::from("running").look(CellStyle::Good)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_of_a_playlist_has_its_monitors_and_pause() {
        let check = |on: &[&str], paused: bool, resting: Option<&str>, expected: &str| {
            let mut one = json!({ "playlist_name": "a", "applied_to": on, "paused": paused,
                "resting": resting });
            assert_eq!(running(&one), expected);
            one["resumed"] = (!paused).into();
            assert_eq!(running(&one).contains("paused"), paused);
        };
        check(&["DP-1", "DP-2"], false, None, "a on DP-1, DP-2");
        check(&[], false, None, "a");
        check(&[], true, Some("locked"), "a, paused");
        check(
            &["DP-1"],
            false,
            Some("locked"),
            "a on DP-1, paused (locked)",
        );
        let own = json!({ "playlist_name": "/p on DP-1", "applied_to": ["DP-1"] });
        assert_eq!(running(&own), "/p on DP-1");
    }
}
