//! Brings the playlists, and films and pages, in line with `power`: they rest, or go on. Runs on the
//! thread `playlist`.

use super::player::Player;

impl Player {
    /// Has all rest that are to, and the others go on.
    pub(super) fn align_rest(&mut self) {
        let rests = self.power.get().resting.is_some();
        if std::mem::replace(&mut self.rests, rests) != rests {
            self.wallpapers.rest(rests);
        }
        if self.running.values().all(|one| one.state.resting == rests) {
            return;
        }
        let (now, mut changed) = (self.now(), Vec::new());
        for (id, one) in &mut self.running {
            if one.state.resting != rests {
                one.state.set_resting(rests, &now);
                changed.push(*id);
            }
        }
        self.save(&changed);
    }
}
