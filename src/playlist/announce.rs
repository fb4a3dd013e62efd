//! What everybody is told of a playlist's pictures, as events.

use super::attempt::ApplyReport;
use super::player::Player;
use crate::wire::Event;

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
        log::warn!("nothing of the playlist {:?} can be shown", one.spec.name);
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
