//! Images whose files have gone for good, or have another image's content: which, and when their time
//! is up. Runs in the thread `watch`; reads rows, and no disk but the database's.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::super::Error;
use super::super::import_file::ImportContext;
use super::directory::Watched;
use super::rows;
use super::settings::GRACE;
use crate::events::EventBus;
use crate::store::watched;

pub(super) struct Endings {
    /// Images whose files have another one's content, and since when.
    displaced: HashMap<i64, (PathBuf, Instant)>,
    /// They may be other ones than the database has.
    look_for_displaced: bool,
    /// Images that are not there just now may be other ones.
    missing_changed: bool,
}

impl Endings {
    pub(super) fn new() -> Self {
        Self { displaced: HashMap::new(), look_for_displaced: true, missing_changed: false }
    }

    /// Files were taken: some may have another image's content now.
    pub(super) fn on_taken(&mut self) {
        self.look_for_displaced = true;
    }

    /// Other files are missing than before, or other directories watched.
    pub(super) fn on_missing(&mut self) {
        self.missing_changed = true;
    }

    /// When the next displaced image's time is up.
    pub(super) fn due(&self) -> Option<Instant> {
        self.displaced.values().map(|(_, since)| *since + GRACE).min()
    }

    /// Ends the images whose time is up.
    pub(super) fn end_images(
        &mut self,
        (context, bus): (&ImportContext, &EventBus),
        directories: &mut [Watched],
        now: Instant,
    ) -> Result<(), Error> {
        for one in directories.iter_mut().filter(|one| one.all_away) {
            if !one.leaving().is_empty() {
                one.vanish();
            }
        }
        self.end_gone((context, bus), directories)?;
        if self.look_for_displaced && directories.iter().all(Watched::is_at_rest) {
            let found = context.store.read(watched::displaced)?;
            self.look_for_displaced = false;
            let before = std::mem::take(&mut self.displaced);
            let since = |id| before.get(&id).map_or(now, |(_, since)| *since);
            self.displaced = found.into_iter().map(|(id, path)| (id, (path, since(id)))).collect();
        }
        let due = self.displaced.iter().filter(|(_, (_, since))| *since + GRACE <= now);
        let due: Vec<(i64, PathBuf)> = due.map(|(id, (path, _))| (*id, path.clone())).collect();
        for (id, path) in due {
            // One that cannot be ended now is tried again after as long.
            self.displaced.insert(id, (path.clone(), now));
            rows::unite(context, bus, id, &path)?;
            self.displaced.remove(&id);
        }
        Ok(())
    }

    fn end_gone(
        &mut self,
        (context, bus): (&ImportContext, &EventBus),
        directories: &mut [Watched],
    ) -> Result<(), Error> {
        let leaving: Vec<PathBuf> = directories.iter().flat_map(Watched::leaving).collect();
        if leaving.is_empty() {
            return Ok(());
        }
        let gone: HashSet<&PathBuf> = leaving.iter().collect();
        let is_there = |path: &Path| {
            !gone.contains(&path.to_owned()) && !directories.iter().any(|one| one.is_gone(path))
        };
        rows::leave(context, bus, &leaving, &is_there)?;
        for path in &leaving {
            directories.iter_mut().for_each(|one| one.left(path));
        }
        self.missing_changed = true;
        Ok(())
    }

    /// Has everybody pass over the images whose files are not there.
    pub(super) fn tell_missing(
        &mut self,
        context: &ImportContext,
        directories: &[Watched],
    ) -> Result<(), Error> {
        if !std::mem::take(&mut self.missing_changed) {
            return Ok(());
        }
        let store = &context.store;
        let mut missing: HashSet<i64> = self.displaced.keys().copied().collect();
        for one in directories.iter().filter(|one| one.is_away() || one.missing().next().is_some())
        {
            let all = store.read(|c| watched::images_below(c, one.path()))?;
            let is_away = |path: &Path| one.is_away() && one.task.has(path);
            let gone = all.into_iter().filter(|(_, path)| one.is_gone(path) || is_away(path));
            missing.extend(gone.map(|(id, _)| id));
        }
        store.set_missing(missing);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::tests::Scene;

    #[test]
    fn image_whose_end_fails_ends_later() {
        let scene = Scene::new();
        let alive = scene.start();
        alive.reconciled();
        let (context, now) = (&**alive.context(), Instant::now());
        let mut endings = Endings::new();
        endings.look_for_displaced = false;
        endings.displaced.insert(7, ("/x".into(), now));
        let mut end = |at| {
            let ended = endings.end_images((context, &scene.bus), &mut [], at);
            (ended.is_ok(), endings.due())
        };
        scene.damage("ALTER TABLE image RENAME TO away");
        assert_eq!(end(now + GRACE), (false, Some(now + 2 * GRACE)));
        scene.damage("ALTER TABLE away RENAME TO image");
        assert_eq!(end(now + 2 * GRACE), (true, None));
    }
}
