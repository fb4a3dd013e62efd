//! The reconciler's answers to changes that a playlist made by itself, and the events that follow.
//!
//! Runs on the thread `playlist`.

use super::attempt::ApplyReport;
use super::player::{Player, RunningPlaylist};
use crate::backends::Kind;
use crate::wallpaper::Error;
use crate::wire::{Event, SetStatus};

impl Player {
    pub(super) fn on_report(&mut self, mut report: ApplyReport) {
        let (id, image_id) = (report.id, report.image_id);
        let Some(one) = self.running.get_mut(&id) else { return };
        let current = one.change == report.change;
        if current {
            // Also those that had gone by then.
            one.asked.retain(|name| !report.asked.contains(name));
            // An edit may have moved it while it was on its way.
            if one.state.image_id == image_id {
                report.index = one.state.index;
            }
        }
        match &report.result {
            Ok(applied) => self.on_shown(&report, applied.outcome, current),
            // Another change has followed this one.
            Err(_) if !current => {}
            Err(Error::Incompatible { backend, kind, .. }) => {
                let (backend, kind) = (backend.to_string(), *kind);
                self.pass_over(report, &backend, kind);
            }
            Err(Error::NoBackend { .. }) => self.no_compatible_item(id, None),
            Err(Error::NoImage { id: gone } | Error::FileGone { id: gone, .. }) => {
                self.reload_if_changed(id);
                let stands_at_it = |one: &RunningPlaylist| one.state.taken().contains(gone);
                if self.running.get(&id).is_some_and(stands_at_it) {
                    self.announce_error(&report);
                } else {
                    // Another is in its place, and is shown already where it was.
                    self.fill_monitors(id);
                }
            }
            Err(Error::UnknownMonitors { connected, .. })
                if report.monitors.iter().any(|name| !connected.contains(name)) =>
            {
                // Some monitors were unplugged: the others get theirs.
                self.fill_monitors(id);
            }
            // The reconciler has reported it.
            Err(Error::Backend { .. } | Error::Ending) => {}
            Err(_) => self.announce_error(&report),
        }
    }

    /// It is shown, or a later request has taken its monitors: then that is what is to be seen
    /// there.
    fn on_shown(&mut self, report: &ApplyReport, outcome: SetStatus, current: bool) {
        let Some(one) = self.running.get_mut(&report.id) else { return };
        if current {
            let shown_on = &mut one.state.shown_on;
            shown_on.extend(report.monitors.iter().cloned());
            shown_on.sort_unstable();
            shown_on.dedup();
        }
        if outcome == SetStatus::Set {
            one.nothing_compatible = false;
            self.announce(report);
        }
        if current {
            self.save(&[report.id]);
        }
    }

    /// Goes on to the next item of a kind that the backend has not refused.
    fn pass_over(&mut self, report: ApplyReport, backend: &str, kind: Kind) {
        let id = report.id;
        let mut attempt = report.attempt;
        let Some(one) = self.running.get_mut(&id) else { return };
        if !attempt.pass_over(&one.spec, &mut one.state, kind) {
            return self.no_compatible_item(id, Some(backend));
        }
        if self.is_being_displaced(id) {
            // It is asked for where that fails.
            self.running.entry(id).and_modify(|one| one.lost = true);
        } else {
            self.apply(id, attempt);
        }
        self.save(&[id]);
    }
}

impl Player {
    /// A picture is up.
    pub(super) fn announce(&self, report: &ApplyReport) {
        let (Some(one), true) = (self.running.get(&report.id), report.attempt.announced) else {
            return;
        };
        let attempt = &report.attempt;
        let backend = report.result.as_ref().map(|applied| applied.backend.to_string());
        if !attempt.skipped.is_empty() {
            self.bus.publish(&Event::PlaylistSkippedIncompatible {
                playlist_id: report.id,
                playlist_name: one.spec.name.clone(),
                backend: backend.unwrap_or_default(),
                skipped: attempt.skipped.len(),
                applied_index: report.index,
                skipped_items: attempt.skipped.clone(),
            });
        }
        self.bus.publish(&Event::PlaylistImageChanged {
            playlist_id: report.id,
            image_index: report.index,
            image_id: report.image_id,
            monitors: report.monitors.clone(),
            source: attempt.missed.then_some("missed_event_recovery"),
            images: report.images(),
        });
    }

    /// Nothing can be shown. Told once, until something can.
    pub(super) fn no_compatible_item(&mut self, id: i64, refused_by: Option<&str>) {
        let fixed = self.wallpapers.fixed_backend();
        let Some(one) = self.running.get_mut(&id) else { return };
        if one.spec.items.is_empty() || std::mem::replace(&mut one.nothing_compatible, true) {
            return;
        }
        let backend = fixed.map(|configured| refused_by.map_or(configured, str::to_owned));
        let media_type = one.spec.items[one.state.index].media_type;
        log::warn!("no image of playlist {:?} can be shown", one.spec.name);
        self.bus.publish(&Event::PlaylistNoCompatibleItem {
            playlist_id: id,
            playlist_name: one.spec.name.clone(),
            total_images: one.spec.items.len(),
            media_type: backend.is_none().then_some(media_type),
            backend,
        });
    }

    /// Tells of an error that the reconciler has told only us.
    pub(super) fn announce_error(&self, report: &ApplyReport) {
        let Err(error) = &report.result else { return };
        log::warn!("image {} of playlist {}: {error}", report.image_id, report.id);
        self.bus.publish(&Event::WallpaperApplyFailed {
            image_id: report.image_id,
            error: error.to_string(),
            backend: self.wallpapers.fixed_backend().unwrap_or_default(),
        });
    }
}
