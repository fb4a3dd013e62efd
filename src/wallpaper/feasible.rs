//! Plans a request: chooses its pictures and backends, and prepares the rows; writes them once the
//! pictures are shown.
//!
//! Runs on the thread `reconciler`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::backends::{self, Kind};
use crate::compositor::Compositor;
use crate::config::BackendName;
use crate::library::Content;
use crate::store::assignments::Assignment;
use crate::store::{self, Connection, Store};
use crate::wire::{Event, Fit, GalleryDomain, Mode, SetStatus, Timestamp};

use super::Error;
use super::backend_choice::Choice;
use super::candidates::Candidates;
use super::picture::{Changed, Picture, Wishes};
use super::request::Targets;
use super::request::{Applied, Ask, Request};
use super::world_state::WorldState;

/// The plan of a request that can be carried out.
pub(super) struct Feasible {
    /// At least one; several if the monitors show different pictures.
    pub(super) pictures: Vec<Picture>,
    /// For all monitors, including later ones.
    pub(super) for_all: bool,
    /// For a step back: each monitor, and the history entry that it goes back to.
    pub(super) walk: Vec<(String, i64)>,
    pub(super) applied: Applied,
    /// The monitors that a playlist leaves to other requests.
    pub(super) left: Vec<String>,
    /// The connected monitors, which count as seen once the request is written.
    pub(super) connected: Vec<String>,
}

impl Feasible {
    /// Keeps only these monitors.
    pub(super) fn keep(&mut self, mut is_kept: impl FnMut(&mut Assignment) -> bool) {
        for picture in &mut self.pictures {
            picture.rows.retain_mut(&mut is_kept);
        }
        self.pictures.retain(|picture| !picture.rows.is_empty());
        if let Some(kept) = applied(&self.pictures) {
            let before = self.applied.clone();
            self.applied = Applied {
                skipped: before.skipped,
                note: before.note,
                warnings: before.warnings,
                ..kept
            };
        }
        let kept = &self.applied.monitors;
        self.walk.retain(|(monitor, _)| kept.contains(monitor));
    }

    /// Writes rows and history in one transaction; returns the changes to publish. Fails if an image was
    /// deleted in the meantime. Rows that a newer request has written stay. A picture that a workspace
    /// or a newer request hides is written but not published.
    pub(super) fn commit(
        &mut self,
        store: &Store,
        request: &Request,
        is_replaced: impl Fn(&str) -> bool,
    ) -> Result<Vec<Changed>, Error> {
        store.write(|transaction| -> Result<(), Error> {
            self.read_again(transaction)?;
            let rows = self.pictures.iter().flat_map(|picture| &picture.rows);
            let mut rows = rows.filter(|row| !is_replaced(&row.monitor)).peekable();
            if let Some(any) = rows.peek().filter(|_| self.for_all) {
                store::assignments::put_for_every_monitor(transaction, any)?;
            }
            for row in rows {
                store::assignments::put(transaction, row)?;
                // Every change other than a step back resets the monitor's position in the history.
                store::history::end_cursor(transaction, &row.monitor)?;
            }
            for (monitor, entry) in self.walk.iter().filter(|(name, _)| !is_replaced(name)) {
                store::history::put_cursor(transaction, monitor, *entry)?;
            }
            store::monitors::note_seen(transaction, &self.connected)?;
            self.pictures
                .iter()
                .try_for_each(|one| one.enter(transaction, &request.source, &self.applied))?;
            if let Some(write) = &request.with_rows {
                write(transaction, &self.applied)?;
            }
            Ok(())
        })?;
        let is_seen =
            |monitor: &str| !self.applied.hidden_by.contains_key(monitor) && !is_replaced(monitor);
        let mut changed = self.changed(request, is_seen);
        if let Some(last) = changed.last_mut() {
            last.events.push(Event::GalleryChanged {
                domain: GalleryDomain::History,
            });
        }
        Ok(changed)
    }

    /// Reads the images again, which may have been changed or deleted.
    fn read_again(&mut self, connection: &Connection) -> Result<(), Error> {
        let images = self.pictures.iter_mut().map(|one| &mut one.image);
        for image in images.filter(|image| image.library_id().is_some()) {
            let row = store::images::get(connection, image.id)?;
            *image = row.map(Arc::new).ok_or(Error::NoImage { id: image.id })?;
            if self.applied.image.id == image.id {
                self.applied.image = Arc::clone(image);
            }
        }
        Ok(())
    }

    fn changed(&self, request: &Request, is_seen: impl Fn(&str) -> bool) -> Vec<Changed> {
        let of = |picture: &Picture| {
            let rows = picture.rows.iter().filter(|row| is_seen(&row.monitor));
            let seen = Picture {
                rows: rows.cloned().collect(),
                ..picture.clone()
            };
            let images = picture.images(&self.applied);
            (!seen.rows.is_empty()).then(|| seen.changed(request.source.kind, images))
        };
        self.pictures.iter().filter_map(of).collect()
    }
}

impl WorldState {
    /// Rejects a file before its import if it cannot be shown as the request asks. A missing backend or
    /// monitor is no reason to reject it, as one may appear later.
    pub(super) fn check(&self, request: &Request, content: &Content) -> Result<(), Error> {
        let Content {
            media_type,
            animated,
            name,
        } = content;
        let may_come = |error: &Error| matches!(error, Error::NoBackend { .. } | Error::NoMonitor);
        let kind = Kind::from_media_type(*media_type, *animated);
        let chosen = self
            .targets(&request.targets)
            .and_then(|_| self.choose_for(kind, (*media_type, None, name)));
        match chosen {
            Ok(choice) => has_words(choice.backend, self.backends.compositor(), request),
            Err(error) if may_come(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Checks whether a request can be carried out now, and plans it.
    pub(super) fn feasible(
        &self,
        store: &Store,
        request: &Request,
        wishes: &Wishes,
        gone: &BTreeSet<i64>,
    ) -> Result<Feasible, Error> {
        let Candidates {
            mut pictures,
            skipped,
            walk,
        } = self.candidates(store, request, wishes, gone)?;
        let set_at = Timestamp::now();
        let mut note = None;
        let new = pictures.iter().flat_map(|picture| {
            let monitors = picture.monitors();
            monitors.map(|monitor| (monitor, &*picture.image))
        });
        let over = self.covering(wishes, new);
        for Picture { image, rows, .. } in &mut pictures {
            let written = self.colors.supply(Arc::make_mut(image));
            let kind = Kind::from_image(image);
            let mut choice = self.choose(image)?;
            if let Some(backend) = over {
                choice = Choice { backend, kind };
            }
            let backend = choice.backend;
            written.map_err(|why| Error::Backend {
                backend,
                source: backends::Error::Unavailable(why),
            })?;
            has_words(backend, self.backends.compositor(), request)?;
            if choice.kind != kind {
                note = Some(format!(
                    "{backend} shows only still images: this is the first frame"
                ));
            }
            for row in rows {
                row.mode = effective_mode(row.mode, kind);
                row.backend = backend.to_string();
                row.set_at = set_at;
            }
        }
        let applied = Applied {
            skipped,
            note,
            ..applied(&pictures).ok_or(Error::NoMonitor)?
        };
        let back = matches!(request.ask, Ask::Back(_));
        let for_all = request.targets == Targets::All && (!back || pictures.len() == 1);
        let connected = self.connected().map(str::to_owned).collect();
        let mut left = Vec::new();
        for name in applied.monitors.iter().filter(|_| request.joins) {
            let place = (name.as_str(), request.source.playlist_id);
            if wishes.contains_key(name) || self.is_by_hand(store, place)? {
                left.push(name.clone());
            }
        }
        Ok(Feasible {
            left,
            pictures,
            for_all,
            walk,
            applied,
            connected,
        })
    }

    /// Whether a picture was set by hand on a monitor after the last change of a playlist.
    fn is_by_hand(
        &self,
        store: &Store,
        (monitor, playlist): (&str, Option<i64>),
    ) -> Result<bool, store::Error> {
        let set_at = self.row(monitor).map(|row| row.set_at);
        store.read(|c| match set_at {
            Some(time) => store::history::is_by_hand(c, (monitor, time), playlist),
            None => Ok(false),
        })
    }

    /// Notes the monitors on which a workspace hides what was asked for.
    pub(super) fn note_hidden(&self, applied: &mut Applied) {
        for monitor in &applied.monitors {
            let Some(picture) = self.hidden_by(monitor) else {
                continue;
            };
            let workspace = picture.workspace.clone();
            applied.warnings.push(format!(
                "{monitor} shows the wallpaper of workspace {workspace} until another workspace is visible"
            ));
            applied.backends.remove(monitor);
            applied.hidden_by.insert(monitor.clone(), workspace);
        }
    }

    /// Why the picture of a request for a monitor cannot be shown any more.
    pub(super) fn refusal(&self, feasible: &Feasible, monitor: &str) -> Error {
        let mut pictures = feasible.pictures.iter();
        let shows = |picture: &&Picture| picture.monitors().any(|name| name == monitor);
        let why = pictures
            .find(shows)
            .map(|picture| self.choose(&picture.image));
        why.and_then(Result::err)
            .unwrap_or_else(|| Error::no_backend(&self.backends))
    }
}

/// The mode that is really used: only still pictures can be stretched over several monitors.
fn effective_mode(mode: Mode, kind: Kind) -> Mode {
    match mode {
        Mode::Extend if kind != Kind::StaticImage => Mode::Clone,
        Mode::Individual | Mode::Clone | Mode::Extend | Mode::Each => mode,
    }
}

/// The answer to a request that shows these pictures; `None` without pictures.
fn applied(pictures: &[Picture]) -> Option<Applied> {
    let rows = || {
        pictures
            .iter()
            .flat_map(|one| one.rows.iter().map(move |row| (one, row)))
    };
    // The answer names one picture: the first monitor's.
    let (first, row) = rows().min_by(|(_, a), (_, b)| a.monitor.cmp(&b.monitor))?;
    Some(Applied {
        outcome: SetStatus::Set,
        image: Arc::clone(&first.image),
        monitors: rows().map(|(_, row)| row.monitor.clone()).collect(),
        skipped: Vec::new(),
        overtaken: Vec::new(),
        mode: row.mode,
        backend: row.backend.parse().ok()?,
        images: rows()
            .map(|(one, row)| (row.monitor.clone(), one.image.id))
            .collect(),
        backends: rows()
            .filter_map(|(_, row)| Some((row.monitor.clone(), row.backend.parse().ok()?)))
            .collect(),
        warnings: Vec::new(),
        note: None,
        hidden_by: BTreeMap::new(),
    })
}

/// Checks that a backend has the fit and the transition that a request names.
fn has_words(
    backend: BackendName,
    compositor: Option<Compositor>,
    request: &Request,
) -> Result<(), Error> {
    let check = |what, word: Option<&str>, allowed: Vec<&'static str>| match word {
        Some(word) if !allowed.contains(&word) => Err(Error::NoWord {
            what,
            word: word.to_owned(),
            backend,
            allowed,
        }),
        _ => Ok(()),
    };
    let has = |fit: &&Fit| backends::fit_word(backend, **fit).is_some();
    let fits = Fit::ALL.iter().filter(has).map(|fit| fit.as_str());
    check("fit", request.fit.map(Fit::as_str), fits.collect())?;
    let transitions = backends::transition_words(backend, compositor);
    check(
        "transition",
        request.transition.as_deref(),
        transitions.to_vec(),
    )
}
