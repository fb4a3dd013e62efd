//! Chooses the picture for each monitor of a request: by id, at random, by orientation, or from the
//! history.
//!
//! Runs on the thread `reconciler`. Reads the library and never decides about backends.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::picture::{Picture, Wishes, steps_behind_row};
use super::previous::shown_before;
use super::request::{Ask, Request};
use super::world_state::WorldState;
use super::{Error, missing_file};
use crate::backends::Kind;
use crate::compositor::Output;
use crate::random;
use crate::store::assignments::Assignment;
use crate::store::query::Query;
use crate::store::{self, Connection, Store, images};
use crate::wire::{Image, Mode, Orientation, Timestamp};

/// The pictures of a request.
pub(super) struct Candidates {
    /// At least one. The rows have no backend and no time yet.
    pub(super) pictures: Vec<Picture>,
    pub(super) skipped: Vec<String>,
    /// For a step back: each monitor, and the history entry that it goes back to.
    pub(super) walk: Vec<(String, i64)>,
}

/// An image, and the rows of monitors that show it together.
fn picture(image: Image, monitors: &[String], mode: Mode, request: &Request) -> Picture {
    let row = |monitor: &String| Assignment {
        monitor: monitor.clone(),
        image_id: image.id,
        mode,
        together: monitors.to_vec(),
        backend: String::new(),
        set_at: Timestamp::from_micros(0),
        fit: request.fit,
        position: request.position,
        sound: None,
    };
    let rows = monitors.iter().map(row).collect();
    Picture::new(image, rows)
}

impl WorldState {
    /// The pictures for a request: at least one.
    pub(super) fn candidates(
        &self,
        store: &Store,
        request: &Request,
        wishes: &Wishes,
        gone: &BTreeSet<i64>,
    ) -> Result<Candidates, Error> {
        let targets = self.targets(&request.targets);
        // A missing picture is reported before anything else.
        let image = match &request.ask {
            Ask::Image(id) => image(store, *id)?,
            Ask::Random if request.mode != Mode::Each => {
                let monitors = targets.as_ref().map_or(&[][..], |(found, _)| found);
                let showable = self.showable(store, request.filter.as_deref(), gone)?;
                image(store, self.any(&showable, monitors, wishes))?
            }
            _ => {
                let (monitors, skipped) = targets?;
                return self.several(store, request, (wishes, gone), (monitors, skipped));
            }
        };
        let (monitors, skipped) = targets?;
        Ok(Candidates {
            pictures: vec![picture(image, &monitors, request.mode, request)],
            skipped,
            walk: Vec::new(),
        })
    }

    /// Chooses a picture for each monitor separately.
    fn several(
        &self,
        store: &Store,
        request: &Request,
        (wishes, gone): (&Wishes, &BTreeSet<i64>),
        (monitors, skipped): (Vec<String>, Vec<String>),
    ) -> Result<Candidates, Error> {
        let assigned: Vec<(String, i64)> = match &request.ask {
            Ask::Back(steps) => {
                let steps = |monitor: &str| steps_behind_row(wishes.get(monitor), *steps);
                return self.back(store, steps, monitors, skipped);
            }
            Ask::Each(ids) => {
                let upright = store.read(|connection| upright_images(connection, ids))?;
                assign_by_orientation(ids, &upright, &self.targets_of(&monitors))
            }
            Ask::Image(_) | Ask::Random => {
                self.random_each(store, request, &monitors, (wishes, gone))?
            }
        };
        let mut by_image: BTreeMap<i64, Vec<String>> = BTreeMap::new();
        for (monitor, id) in assigned {
            by_image.entry(id).or_default().push(monitor);
        }
        let pictures = by_image.into_iter().map(|(id, monitors)| {
            let image = image(store, id)?;
            Ok(picture(image, &monitors, Mode::Each, request))
        });
        Ok(Candidates {
            pictures: pictures.collect::<Result<_, Error>>()?,
            skipped,
            walk: Vec::new(),
        })
    }

    /// Chooses for each monitor the picture that it showed before.
    fn back(
        &self,
        store: &Store,
        steps: impl Fn(&str) -> u32,
        monitors: Vec<String>,
        mut skipped: Vec<String>,
    ) -> Result<Candidates, Error> {
        let mut pictures: Vec<Picture> = Vec::new();
        let mut walk = Vec::new();
        for monitor in monitors {
            let row = self.row(&monitor);
            let Some(before) = shown_before(store, &monitor, row, steps(&monitor))? else {
                skipped.push(monitor);
                continue;
            };
            walk.push((monitor, before.entry));
            let row = before.row;
            let look = |row: &Assignment| (row.image_id, row.mode, row.fit, row.position);
            let is_same = |one: &&mut Picture| {
                look(&one.rows[0]) == look(&row) && one.rows[0].together == row.together
            };
            match pictures.iter_mut().find(is_same) {
                Some(picture) => picture.rows.push(row),
                None => pictures.push(Picture::new(before.image, vec![row])),
            }
        }
        if pictures.is_empty() {
            return Err(Error::NothingBefore { monitors: skipped });
        }
        Ok(Candidates {
            pictures,
            skipped,
            walk,
        })
    }

    /// Chooses for each monitor a random image that suits its orientation. Avoids repeats and images
    /// that are shown now, as long as there are others.
    fn random_each(
        &self,
        store: &Store,
        request: &Request,
        monitors: &[String],
        (wishes, gone): (&Wishes, &BTreeSet<i64>),
    ) -> Result<Vec<(String, i64)>, Error> {
        let showable = self.showable(store, request.filter.as_deref(), gone)?;
        let query = Query {
            orientation: Some(Orientation::Portrait),
            ..Query::default()
        };
        let upright: HashSet<i64> = store.find_all(&query)?.into_iter().collect();
        let mut taken: HashSet<i64> = HashSet::new();
        let mut assigned = Vec::new();
        for Target {
            monitor,
            upright: stands,
        } in self.targets_of(monitors)
        {
            let suits = |id: &&i64| upright.contains(id) == stands;
            let of = |pool: Vec<i64>| (!pool.is_empty()).then(|| self.any(&pool, monitors, wishes));
            let fresh = || showable.iter().filter(|id| !taken.contains(id));
            let id = of(fresh().filter(suits).copied().collect())
                .or_else(|| of(fresh().copied().collect()))
                .or_else(|| of(showable.iter().filter(suits).copied().collect()))
                .unwrap_or_else(|| self.any(&showable, monitors, wishes));
            taken.insert(id);
            assigned.push((monitor, id));
        }
        Ok(assigned)
    }

    /// Returns the images that can be shown, without those that were found missing (`gone`). If none
    /// can, returns one of them, so that the choice of its backend reports the reason.
    fn showable(
        &self,
        store: &Store,
        filter: Option<&Query>,
        gone: &BTreeSet<i64>,
    ) -> Result<Vec<i64>, Error> {
        let mut ids = store.read(store::images::ids)?;
        if ids.is_empty() {
            return Err(Error::EmptyLibrary);
        }
        // Images on an unmounted disk are skipped, unless all are there.
        let mut missing = store.missing();
        missing.extend(gone);
        if ids.iter().any(|(id, ..)| !missing.contains(id)) {
            ids.retain(|(id, ..)| !missing.contains(id));
        }
        if let Some(filter) = filter {
            let passing: HashSet<i64> = store.find_all(filter)?.into_iter().collect();
            ids.retain(|(id, ..)| passing.contains(id));
        }
        let any = ids.first().map(|&(id, ..)| id).ok_or(Error::NoMatch)?;
        let can_show = |&(_, media_type, animated): &_| {
            let kind = Kind::from_media_type(media_type, animated);
            self.choice(kind).is_some()
        };
        let showable: Vec<i64> = ids
            .into_iter()
            .filter(can_show)
            .map(|(id, ..)| id)
            .collect();
        Ok(if showable.is_empty() {
            vec![any]
        } else {
            showable
        })
    }

    /// Picks one of `ids` at random, if possible one that the monitors do not show now.
    fn any(&self, ids: &[i64], monitors: &[String], wishes: &Wishes) -> i64 {
        let shown: Vec<i64> = monitors
            .iter()
            .filter_map(|name| match wishes.get(name) {
                Some(wish) => Some(wish.image.id),
                None => Some(self.row(name)?.image_id),
            })
            .collect();
        let others: Vec<i64> = ids
            .iter()
            .copied()
            .filter(|id| !shown.contains(id))
            .collect();
        let pool = if others.is_empty() { ids } else { &others };
        pool.get(random::below(pool.len()))
            .copied()
            .unwrap_or_default()
    }

    /// The monitors, sorted by name, with their orientation.
    fn targets_of(&self, monitors: &[String]) -> Vec<Target> {
        let stands = |name: &String| {
            self.outputs
                .iter()
                .find(|output| output.name == *name)
                .is_some_and(is_upright)
        };
        let mut targets_of: Vec<Target> = monitors
            .iter()
            .map(|name| Target {
                monitor: name.clone(),
                upright: stands(name),
            })
            .collect();
        targets_of.sort_by(|one, other| one.monitor.cmp(&other.monitor));
        targets_of
    }
}

/// Whether an output is higher than wide, after the transform.
fn is_upright(output: &Output) -> bool {
    let (width, height) = output.turned_size();
    height > width
}

/// Reads an image; fails if its file is missing.
pub(super) fn image(store: &Store, id: i64) -> Result<Image, Error> {
    let image = store
        .read(|c| images::assigned(c, id))?
        .ok_or(Error::NoImage { id })?;
    if missing_file::lacks_file(&image) {
        Err(Error::FileGone {
            id: image.id,
            away: image.in_place,
            path: image.path,
        })
    } else {
        Ok(image)
    }
}

/// A monitor that needs a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) monitor: String,
    /// Higher than wide.
    pub(super) upright: bool,
}

/// The images that are higher than wide.
pub(super) fn upright_images(
    connection: &Connection,
    ids: &[i64],
) -> Result<HashSet<i64>, store::Error> {
    let images = images::by_ids(connection, ids)?.into_iter();
    let stands = images.filter(|image| {
        Orientation::from_size((image.width, image.height)) == Orientation::Portrait
    });
    Ok(stands.map(|image| image.id).collect())
}

/// Assigns images to monitors in order, upright images to upright monitors first. Images repeat if there
/// are fewer images than monitors.
pub(super) fn assign_by_orientation(
    ids: &[i64],
    upright: &HashSet<i64>,
    targets_of: &[Target],
) -> Vec<(String, i64)> {
    let mut left: Vec<i64> = ids.iter().copied().cycle().take(targets_of.len()).collect();
    let mut assigned: Vec<(String, i64)> = Vec::new();
    let mut give = |target: &Target, fits: &dyn Fn(&i64) -> bool| {
        let at = left.iter().position(fits)?;
        assigned.push((target.monitor.clone(), left.remove(at)));
        Some(())
    };
    let (standing, lying): (Vec<&Target>, Vec<&Target>) =
        targets_of.iter().partition(|target| target.upright);
    let without: Vec<&Target> = standing
        .into_iter()
        .filter(|target| give(target, &|id| upright.contains(id)).is_none())
        .collect();
    // The remaining monitors get their pictures in the order of both.
    for target in targets_of
        .iter()
        .filter(|target| lying.contains(target) || without.contains(target))
    {
        let lies = |id: &i64| target.upright || !upright.contains(id);
        give(target, &lies).or_else(|| give(target, &|_| true));
    }
    assigned.sort();
    assigned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upright_pictures_go_to_upright_monitors() {
        let check = |monitors: &[(&str, bool)], ids: &[i64], upright: &[i64], expected: &[i64]| {
            let target = |&(name, upright): &(&str, bool)| Target {
                monitor: name.to_owned(),
                upright,
            };
            let targets_of: Vec<Target> = monitors.iter().map(target).collect();
            let assigned =
                assign_by_orientation(ids, &upright.iter().copied().collect(), &targets_of);
            let names: Vec<&str> = assigned
                .iter()
                .map(|(monitor, _)| monitor.as_str())
                .collect();
            assert_eq!(
                names,
                monitors.iter().map(|(name, _)| *name).collect::<Vec<_>>()
            );
            assert_eq!(
                assigned.iter().map(|(_, id)| *id).collect::<Vec<_>>(),
                expected
            );
        };
        let three = &[("A", false), ("B", true), ("C", false)];
        check(three, &[1, 2, 3], &[], &[1, 2, 3]);
        check(three, &[1, 2, 3], &[2], &[1, 2, 3]);
        check(three, &[1, 2, 3], &[1], &[2, 1, 3]);
        check(three, &[1, 2, 3], &[3], &[1, 3, 2]);
        check(three, &[1, 2, 3], &[1, 3], &[2, 1, 3]);
        check(three, &[1, 2, 3], &[1, 2, 3], &[2, 1, 3]);
        check(three, &[1, 2], &[2], &[1, 2, 1]);
        // A wide monitor gets a wide picture even if an upright one comes first.
        check(
            &[("A", true), ("B", false), ("C", false)],
            &[1, 2, 3],
            &[1, 2],
            &[1, 3, 2],
        );
        check(three, &[1], &[], &[1, 1, 1]);
        check(&[("A", true)], &[1, 2], &[2], &[1]);
    }
}
