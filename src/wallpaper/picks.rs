//! Which picture a request means for which monitor. Reads the library; decides nothing about backends.
//!
//! Runs on the thread `reconciler`.

use std::collections::{BTreeMap, HashSet};

use super::Error;
use super::back;
use super::deal::{self, Hand};
use super::orphan;
use super::request::{Ask, Request};
use super::world_state::WorldState;
use crate::compositor::Output;
use crate::random;
use crate::store::index::Query;
use crate::store::{self, Store};
use crate::wire::{Fit, Image, Mode, Orientation};

/// A picture for monitors.
pub(super) struct Pick {
    pub(super) image: Image,
    /// At least one.
    pub(super) monitors: Vec<String>,
    pub(super) mode: Mode,
    pub(super) fit: Option<Fit>,
    /// The monitors that it was set for together.
    pub(super) together: Vec<String>,
    /// The entries of the history that monitors go back to.
    pub(super) entries: Vec<(String, i64)>,
}

/// What was picked, and the monitors that are left out.
type Picks = (Vec<Pick>, Vec<String>);

impl WorldState {
    /// What a request comes to: at least one picture.
    pub(super) fn picks(&self, store: &Store, request: &Request) -> Result<Picks, Error> {
        let targets = self.targets(&request.targets);
        // Of one picture, that there is none is told before anything else.
        let image = match &request.ask {
            Ask::Image(id) => image(store, *id)?,
            Ask::Random if request.mode != Mode::Each => {
                let monitors = targets.as_ref().map_or(&[][..], |(found, _)| found);
                let showable = self.showable(store, request.filter.as_deref())?;
                image(store, self.any(&showable, monitors))?
            }
            _ => {
                let (monitors, skipped) = targets?;
                return self.several(store, request, monitors, skipped);
            }
        };
        let (monitors, skipped) = targets?;
        let together = monitors.clone();
        let (mode, fit) = (request.mode, request.fit);
        Ok((vec![Pick { image, monitors, mode, fit, together, entries: Vec::new() }], skipped))
    }

    /// A picture of its own for each monitor.
    fn several(
        &self,
        store: &Store,
        request: &Request,
        monitors: Vec<String>,
        skipped: Vec<String>,
    ) -> Result<Picks, Error> {
        let dealt: Vec<(String, i64)> = match &request.ask {
            Ask::Back(steps) => return self.back(store, *steps, monitors, skipped),
            Ask::Each(ids) => {
                let upright = store.read(|connection| deal::upright(connection, ids))?;
                deal::deal(ids, &upright, &self.hands(&monitors))
            }
            Ask::Picked(picked) => {
                let first = picked.values().next().copied().unwrap_or_default();
                let of = |name: &String| picked.get(name).copied().unwrap_or(first);
                monitors.iter().map(|name| (name.clone(), of(name))).collect()
            }
            Ask::Image(_) | Ask::Random => self.random_each(store, request, &monitors)?,
        };
        let mut by_image: BTreeMap<i64, Vec<String>> = BTreeMap::new();
        for (monitor, id) in dealt {
            by_image.entry(id).or_default().push(monitor);
        }
        let mut picks = Vec::new();
        for (id, monitors) in by_image {
            picks.push(Pick {
                image: image(store, id)?,
                together: monitors.clone(),
                monitors,
                mode: Mode::Each,
                fit: request.fit,
                entries: Vec::new(),
            });
        }
        Ok((picks, skipped))
    }

    /// What was on each monitor before.
    fn back(
        &self,
        store: &Store,
        steps: u32,
        monitors: Vec<String>,
        mut skipped: Vec<String>,
    ) -> Result<Picks, Error> {
        let mut picks: Vec<Pick> = Vec::new();
        for monitor in monitors {
            let row = self.row(&monitor);
            let Some((entry, image)) = back::before(store, &monitor, row, steps)? else {
                skipped.push(monitor);
                continue;
            };
            let place = (monitor.clone(), entry.id);
            let same = |pick: &&mut Pick| {
                let mode = (pick.mode, pick.fit) == (entry.mode, entry.fit);
                pick.image.id == image.id && mode && pick.together == entry.monitors
            };
            if let Some(pick) = picks.iter_mut().find(same) {
                pick.monitors.push(monitor);
                pick.entries.push(place);
                continue;
            }
            picks.push(Pick {
                image,
                monitors: vec![monitor],
                mode: entry.mode,
                fit: entry.fit,
                together: entry.monitors,
                entries: vec![place],
            });
        }
        if picks.is_empty() {
            Err(Error::NothingBefore { monitors: skipped })
        } else {
            Ok((picks, skipped))
        }
    }

    /// For each monitor one of those that suit it; none twice and none that is shown there, as long as
    /// there are others.
    fn random_each(
        &self,
        store: &Store,
        request: &Request,
        monitors: &[String],
    ) -> Result<Vec<(String, i64)>, Error> {
        let showable = self.showable(store, request.filter.as_deref())?;
        let query = Query { orientation: Some(Orientation::Portrait), ..Query::default() };
        let upright: HashSet<i64> = store.find_all(&query)?.into_iter().collect();
        let mut taken: HashSet<i64> = HashSet::new();
        let mut dealt = Vec::new();
        for Hand { monitor, upright: stands } in self.hands(monitors) {
            let suits = |id: &&i64| upright.contains(id) == stands;
            let of = |pool: Vec<i64>| (!pool.is_empty()).then(|| self.any(&pool, monitors));
            let fresh = || showable.iter().filter(|id| !taken.contains(id));
            let id = of(fresh().filter(suits).copied().collect())
                .or_else(|| of(fresh().copied().collect()))
                .or_else(|| of(showable.iter().filter(suits).copied().collect()))
                .unwrap_or_else(|| self.any(&showable, monitors));
            taken.insert(id);
            dealt.push((monitor, id));
        }
        Ok(dealt)
    }

    /// The images that can be shown; where none can, any one, and the choice of its backend tells why
    /// not.
    fn showable(&self, store: &Store, filter: Option<&Query>) -> Result<Vec<i64>, Error> {
        let mut ids = store.read(store::images::ids)?;
        if ids.is_empty() {
            return Err(Error::EmptyLibrary);
        }
        // Those on a disk that is away are passed over, unless all are.
        if ids.iter().any(|(id, ..)| !store.is_missing(*id)) {
            ids.retain(|(id, ..)| !store.is_missing(*id));
        }
        if let Some(filter) = filter {
            let passing: HashSet<i64> = store.find_all(filter)?.into_iter().collect();
            ids.retain(|(id, ..)| passing.contains(id));
        }
        let any = ids.first().map(|&(id, ..)| id).ok_or(Error::NoMatch)?;
        let can_show = |&(_, media_type, animated): &_| self.can_show(media_type, animated);
        let showable: Vec<i64> = ids.into_iter().filter(can_show).map(|(id, ..)| id).collect();
        Ok(if showable.is_empty() { vec![any] } else { showable })
    }

    /// One of these, evenly; not one that is shown on the monitors if there is another.
    fn any(&self, ids: &[i64], monitors: &[String]) -> i64 {
        let shown: Vec<i64> =
            monitors.iter().filter_map(|name| Some(self.row(name)?.image_id)).collect();
        let others: Vec<i64> = ids.iter().copied().filter(|id| !shown.contains(id)).collect();
        let pool = if others.is_empty() { ids } else { &others };
        pool.get(random::below(pool.len())).copied().unwrap_or_default()
    }

    /// The monitors, sorted by name, with how they stand.
    fn hands(&self, monitors: &[String]) -> Vec<Hand> {
        let stands = |name: &String| {
            self.outputs().iter().find(|output| output.name == *name).is_some_and(is_upright)
        };
        let mut hands: Vec<Hand> = monitors
            .iter()
            .map(|name| Hand { monitor: name.clone(), upright: stands(name) })
            .collect();
        hands.sort_by(|one, other| one.monitor.cmp(&other.monitor));
        hands
    }
}

/// By its size after the transform.
fn is_upright(output: &Output) -> bool {
    let (width, height) = output.turned_size();
    height > width
}

/// An image whose file is there.
fn image(store: &Store, id: i64) -> Result<Image, Error> {
    let image = store.read(|c| store::images::get(c, id))?.ok_or(Error::NoImage { id })?;
    match orphan::file_is_missing(&image.path) {
        true => Err(Error::FileGone { id: image.id, away: image.in_place, path: image.path }),
        false => Ok(image),
    }
}
