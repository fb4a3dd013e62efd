//! The reason for what each monitor shows: its source, its next change, and failures.

use super::{Api, PLAYER_PATIENCE, respond};
use crate::backends::registration;
use crate::compositor::Output;
use crate::http::{Error, Request, Response};
use crate::store::assignments::{self, Assignment};
use crate::store::workspaces::{self, WorkspacePicture};
use crate::store::{self, Connection, history, images};
use crate::wire::{
    ActivePlaylist, ApplyFailure, HistorySource, HookFailure, Image, NextChange, PlaylistType,
    Source, Timestamp, Why, labelled,
};

/// `GET /why`
pub(in crate::http) fn list(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let mut outputs: Vec<Output> = api.outputs().to_vec();
    outputs.sort_by(|one, other| one.name.cmp(&other.name));
    if let Some(name) = request.query().get("monitor") {
        outputs.retain(|output| output.name == name);
        if outputs.is_empty() {
            return Err(api.no_monitor(name));
        }
    }
    let running: Vec<ActivePlaylist> =
        request.wait(PLAYER_PATIENCE, |reply| api.playlists.active(reply))?;
    let shown = api.store.read::<_, store::Error>(|connection| {
        let rows = workspaces::shown(connection)?;
        let pictures = workspaces::all(connection)?;
        let own = assignments::all(connection)?;
        let of = |output: &Output| match rows.iter().find(|row| row.monitor == output.name) {
            Some(row) => {
                let is_its = |one: &WorkspacePicture| one.row.monitor == output.name;
                let is_replaced =
                    |own: &&Assignment| own.monitor == output.name && own.image_id != row.image_id;
                let replaced = own.iter().find(is_replaced);
                let picture = pictures.iter().find(|one| is_its(one));
                shown(connection, (row, replaced), picture)
            }
            None => Ok(None),
        };
        outputs.iter().map(of).collect::<Result<Vec<_>, _>>()
    })?;
    let conflicts = api.backends.conflicts();
    let now = Timestamp::now();
    let hook_failure = api.desktop.hook_failure();
    let records: Vec<Why> = outputs
        .iter()
        .zip(shown)
        .map(|(output, shown)| {
            let name = output.name.as_str();
            let shown = shown.map(|mut shown| {
                // False if the backend was given up or is not available.
                shown.is_up = api.wallpaper.shows(&shown.backend, name, shown.image.id);
                if shown.workspace.is_none() && shown.set_at < api.started_at {
                    shown.source = HistorySource::from_kind(Source::Restore);
                }
                shown
            });
            let playlist = running
                .iter()
                .find(|one| one.applied_to.iter().any(|on| on == name));
            let failures = (api.wallpaper.status.failure(name), hook_failure.clone());
            let backend = shown.as_ref().and_then(|shown| shown.backend.parse().ok());
            let mut record = record(name, shown, playlist, failures, now);
            for conflict in backend.map_or_else(Vec::new, |name| conflicts(registration(name))) {
                record.text += &format!(" Warning: {conflict}.");
                record.warnings.push(conflict.to_string());
            }
            record
        })
        .collect();
    respond(200, &records)
}

/// A picture and its source.
struct Shown {
    image: Image,
    backend: String,
    source: HistorySource,
    set_at: Timestamp,
    /// The workspace that shows it.
    workspace: Option<String>,
    /// The image whose file cannot be read, and in whose place it is shown: `lake (3)`
    replaced: Option<String>,
    /// Whether a backend shows it, as far as murald knows.
    is_up: bool,
}

/// A row without its image is about to be purged.
fn shown(
    connection: &Connection,
    (row, replaced): (&Assignment, Option<&Assignment>),
    picture: Option<&WorkspacePicture>,
) -> Result<Option<Shown>, store::Error> {
    let Some(image) = images::assigned(connection, row.image_id)? else {
        return Ok(None);
    };
    let replaced = match replaced.filter(|_| picture.is_none()) {
        Some(row) => images::assigned(connection, row.image_id)?,
        None => None,
    };
    let entry = history::at(connection, &row.monitor, row.set_at)?;
    // Without an entry, no request set it on this monitor: it follows from the wallpapers of others.
    let source = match picture {
        Some(_) => HistorySource::from_kind(Source::Workspace),
        None => entry.map_or_else(
            || HistorySource::from_kind(Source::Restore),
            |entry| entry.source,
        ),
    };
    let workspace = picture.map(|picture| picture.workspace.clone());
    let backend = row.backend.clone();
    let set_at = row.set_at;
    Ok(Some(Shown {
        image,
        backend,
        source,
        set_at,
        workspace,
        replaced: replaced.map(|image| labelled(&image.name, image.id)),
        is_up: true,
    }))
}

fn next(one: &ActivePlaylist) -> Option<NextChange> {
    Some(NextChange {
        playlist_id: one.playlist_id,
        playlist_name: one.playlist_name.clone(),
        at: one.next_change_at?,
    })
}

fn record(
    monitor: &str,
    shown: Option<Shown>,
    playlist: Option<&ActivePlaylist>,
    (last_failure, hook_failure): (Option<ApplyFailure>, Option<HookFailure>),
    now: Timestamp,
) -> Why {
    // A failure from before the shown picture is obsolete.
    let is_news =
        |failure: &ApplyFailure| shown.as_ref().is_none_or(|shown| failure.at > shown.set_at);
    let last_failure = last_failure.filter(is_news);
    let mut text = text(
        monitor,
        shown.as_ref(),
        playlist,
        last_failure.as_ref(),
        now,
    );
    if let Some(HookFailure { error, at }) = &hook_failure {
        text += &format!(" The hook failed {} ago: {error}.", span(*at, now));
    }
    let image = shown.as_ref().map(|shown| &shown.image);
    Why {
        monitor: monitor.to_owned(),
        image_id: image.and_then(Image::library_id),
        image_path: image.and_then(Image::library_path),
        color: image.and_then(Image::color),
        image_name: image.map(|image| image.name.clone()),
        backend: shown.as_ref().map(|shown| shown.backend.clone()),
        source: shown.as_ref().map(|shown| shown.source.clone()),
        set_at: shown.map(|shown| shown.set_at),
        next: playlist.and_then(next),
        last_failure,
        hook_failure,
        warnings: Vec::new(),
        text,
    }
}

fn text(
    monitor: &str,
    shown: Option<&Shown>,
    playlist: Option<&ActivePlaylist>,
    failure: Option<&ApplyFailure>,
    now: Timestamp,
) -> String {
    let what = match shown {
        None => format!("{monitor}: no wallpaper is set."),
        Some(Shown {
            image,
            backend,
            source,
            set_at,
            workspace,
            replaced,
            is_up,
        }) => {
            let by = match source.kind {
                Source::Manual => "set manually".to_owned(),
                Source::Random => "set at random".to_owned(),
                Source::Restore => "restored at startup".to_owned(),
                Source::Workspace => {
                    format!("shown for workspace {}", workspace.as_deref().unwrap_or(""))
                }
                Source::Playlist => {
                    format!(
                        "set by playlist {:?}",
                        source.playlist_name.as_deref().unwrap_or("")
                    )
                }
            };
            let ago = span(*set_at, now);
            let by = match replaced {
                Some(lost) => format!("shown because the file of {lost} cannot be read"),
                None => format!("{by}, {ago} ago"),
            };
            let what = labelled(&image.name, image.id);
            let missing = if *is_up { "" } else { " (not on the screen)" };
            let told = match image.description.trim_end_matches('.') {
                "" => String::new(),
                told => format!(" It shows: {told}."),
            };
            format!("{monitor}: {what}{missing}, {by}, drawn by {backend}.{told}")
        }
    };
    let due = playlist.map_or_else(
        || "No change is scheduled.".to_owned(),
        |playlist| due(playlist, now),
    );
    let failed = failure.map_or_else(String::new, |failure| {
        let ApplyFailure {
            image_id,
            image_name,
            backend,
            error,
            at,
        } = failure;
        let ago = span(*at, now);
        let what = labelled(image_name, *image_id);
        format!(" Last failure: {what} by {backend}, {ago} ago: {error}.")
    });
    format!("{what} {due}{failed}")
}

/// The next change that the playlist of a monitor will make.
fn due(playlist: &ActivePlaylist, now: Timestamp) -> String {
    let name = &playlist.playlist_name;
    if let Some(why) = &playlist.not_shown {
        return format!("No change is scheduled: {why} playlist {name:?}.");
    }
    let resting = playlist.resting.filter(|_| !playlist.resumed);
    match (playlist.next_change_at, resting) {
        (Some(at), _) => format!("Next change: playlist {name:?} in {}.", span(now, at)),
        (None, _) if playlist.paused => format!("Playlist {name:?} is paused."),
        (None, Some(reason)) => format!("Playlist {name:?} is paused: {}.", reason.text()),
        (None, None) if playlist.playlist_type == PlaylistType::Appearance => {
            format!("Playlist {name:?} changes with light and dark mode.")
        }
        (None, None) => format!("Playlist {name:?} changes only on request."),
    }
}

/// The time between two moments, in the largest unit that counts at least two.
fn span(from: Timestamp, to: Timestamp) -> String {
    let seconds = (to.as_micros() - from.as_micros()).max(0) / 1_000_000;
    let (number, unit) = match seconds {
        0..120 => (seconds, "second"),
        120..7200 => (seconds / 60, "minute"),
        7200..172_800 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    if number == 1 {
        format!("{number} {unit}")
    } else {
        format!("{number} {unit}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn span_uses_the_largest_unit_that_counts_at_least_two() {
        let check = |seconds: i64, expected| {
            let from = Timestamp::from_micros(0);
            assert_eq!(
                span(from, Timestamp::from_micros(seconds * 1_000_000)),
                expected
            );
        };
        check(-5, "0 seconds");
        check(1, "1 second");
        check(119, "119 seconds");
        check(120, "2 minutes");
        check(7199, "119 minutes");
        check(7200, "2 hours");
        check(200_000, "2 days");
    }
}
