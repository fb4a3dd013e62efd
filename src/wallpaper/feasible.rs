//! Plans a request: chooses its pictures and backends, and prepares the rows to write.
//!
//! Runs on the thread `reconciler`, and changes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::backends::{self, Kind};
use crate::compositor::Compositor;
use crate::config::BackendName;
use crate::library::Content;
use crate::store::Store;
use crate::store::assignments::Assignment;
use crate::wire::{Fit, SetStatus, Timestamp};

use super::Error;
use super::assignments;
use super::backend_choice::Choice;
use super::candidates::Pick;
use super::jobs::{Feasible, Picture};
use super::request::Targets;
use super::request::{Applied, Ask, Request};
use super::world_state::WorldState;

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
        let kind = Kind::of(*media_type, *animated);
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
    pub(super) fn feasible(&self, store: &Store, request: &Request) -> Result<Feasible, Error> {
        let (picks, skipped) = self.candidates(store, request)?;
        let set_at = Timestamp::now();
        let (mut pictures, mut walk, mut note) = (Vec::new(), Vec::new(), None);
        let over = self.covering(picks.iter().map(|pick| (&pick.image, &*pick.monitors)));
        for Pick {
            mut image,
            monitors,
            mode,
            fit,
            position,
            together,
            entries,
        } in picks
        {
            self.colors.supply(&mut image);
            let kind = Kind::of(image.media_type, image.animated);
            let mut choice = self.choose(&image, kind)?;
            if let Some(backend) = over {
                choice = Choice { backend, kind };
            }
            let backend = choice.backend;
            has_words(backend, self.backends.compositor(), request)?;
            if choice.kind != kind {
                note = Some(format!(
                    "{backend} shows only still images: this is the first frame"
                ));
            }
            let row = |monitor: &String| Assignment {
                monitor: monitor.clone(),
                image_id: image.id,
                mode: assignments::effective_mode(mode, kind),
                together: together.clone(),
                backend: backend.to_string(),
                set_at,
                fit,
                position,
                sound: None,
            };
            walk.extend(entries);
            let rows = monitors.iter().map(row).collect();
            let image = Arc::new(image);
            let (was_shown, of_workspace) = (false, false);
            pictures.push(Picture {
                image,
                backend,
                rows,
                was_shown,
                of_workspace,
            });
        }
        let mut applied = applied(&pictures, skipped, note).ok_or(Error::NoMonitor)?;
        self.note_hidden(&mut applied);
        let back = matches!(request.ask, Ask::Back(_));
        let for_all = request.targets == Targets::All && (!back || pictures.len() == 1);
        let connected = self
            .outputs()
            .iter()
            .map(|output| output.name.clone())
            .collect();
        Ok(Feasible {
            pictures,
            for_all,
            walk,
            applied,
            connected,
        })
    }

    /// Notes the monitors on which a workspace hides what was asked for.
    fn note_hidden(&self, applied: &mut Applied) {
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
}

/// The answer to a request that shows these pictures; `None` without pictures.
fn applied(pictures: &[Picture], skipped: Vec<String>, note: Option<String>) -> Option<Applied> {
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
        skipped,
        mode: row.mode,
        backend: first.backend,
        images: rows()
            .map(|(one, row)| (row.monitor.clone(), one.image.id))
            .collect(),
        backends: rows()
            .map(|(one, row)| (row.monitor.clone(), one.backend))
            .collect(),
        warnings: Vec::new(),
        note,
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
