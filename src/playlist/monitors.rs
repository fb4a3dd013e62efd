//! Which monitors a playlist is declared for, and which show its present item: pure.
//!
//! A declared monitor that moves to another connector is followed there, if its identity is known.

use std::collections::BTreeMap;

use super::state::PlaybackState;
use crate::wallpaper::Applied;
use crate::wire::Mode;

impl PlaybackState {
    /// The declared monitors that are connected.
    pub(super) fn applied_to(&self, connected: &[String]) -> Vec<String> {
        self.monitors
            .iter()
            .filter(|name| connected.contains(name))
            .cloned()
            .collect()
    }

    /// Adds monitors that were connected later, if it plays on all.
    pub(super) fn join(&mut self, connected: &[String]) {
        if self.everywhere {
            let new = connected
                .iter()
                .filter(|name| !self.monitors.contains(name));
            let new: Vec<String> = new.cloned().collect();
            self.monitors.extend(new);
        }
    }

    /// Whether a monitor can be one of both playlists.
    pub(super) fn shares_monitors(&self, other: &Self) -> bool {
        let is_shared = |name: &String| other.monitors.contains(name);
        self.everywhere || other.everywhere || self.monitors.iter().any(is_shared)
    }

    /// How many items a step takes.
    pub(super) fn stride(&self, connected: &[String]) -> usize {
        match self.mode {
            Mode::Each => self.applied_to(connected).len().max(1),
            Mode::Individual | Mode::Clone | Mode::Extend => 1,
        }
    }

    /// Notes the monitors that show an image of the present step, or on which a later request has
    /// replaced it.
    pub(super) fn note_shown(&mut self, applied: &Applied) {
        let is_present = |(_, id): &(&String, &i64)| self.has_taken(&[**id]);
        let shown = applied.images.iter().filter(is_present);
        let shown = shown.map(|(monitor, _)| monitor);
        let shown: Vec<String> = shown.chain(&applied.overtaken).cloned().collect();
        self.shown_on.extend(shown);
        self.shown_on.sort_unstable();
        self.shown_on.dedup();
    }

    /// Moves the declared monitors to the connectors that lead to them in `now`, which maps
    /// connectors to the identities of monitors.
    pub(super) fn follow_identities(&mut self, now: &BTreeMap<String, String>) {
        let place = |name: &String| {
            let own = self.identities.get(name);
            let there = own.and_then(|own| now.iter().find(|(_, identity)| *identity == own));
            there.map_or_else(|| name.clone(), |(to, _)| to.clone())
        };
        let places = |names: &[String]| {
            let mut places: Vec<String> = Vec::new();
            for name in names.iter().map(place) {
                if !places.contains(&name) {
                    places.push(name);
                }
            }
            places
        };
        let (monitors, mut shown_on) = (places(&self.monitors), places(&self.shown_on));
        shown_on.sort_unstable();
        let identity = |name: &String| {
            let known = now.get(name).or_else(|| self.identities.get(name))?;
            Some((name.clone(), known.clone()))
        };
        let identities = monitors.iter().filter_map(identity).collect();
        (self.monitors, self.shown_on, self.identities) = (monitors, shown_on, identities);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::field_reassign_with_default, reason = "the others are private")]
    fn declared_monitors_follow_to_other_connectors() {
        let names = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
        let mut state = PlaybackState::default();
        state.monitors = names(&["A", "B"]);
        state.shown_on = names(&["A"]);
        let mut check = |now: &[(&str, &str)], monitors: &[&str], shown_on: &[&str]| {
            let now = now
                .iter()
                .map(|(n, id)| ((*n).to_owned(), (*id).to_owned()))
                .collect();
            state.follow_identities(&now);
            assert_eq!(
                (&state.monitors, &state.shown_on),
                (&names(monitors), &names(shown_on))
            );
        };
        check(&[("A", "one"), ("B", "two")], &["A", "B"], &["A"]);
        check(&[("A", "one"), ("B", "two")], &["A", "B"], &["A"]);
        check(&[("A", "two"), ("B", "one")], &["B", "A"], &["B"]);
        check(&[("A", "two")], &["B", "A"], &["B"]);
        check(&[("A", "two"), ("C", "one")], &["C", "A"], &["C"]);
        // A monitor without an identity is known by its connector.
        check(&[], &["C", "A"], &["C"]);
    }
}
