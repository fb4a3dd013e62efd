//! The declared monitors of a playlist, which follow to other connectors where it is known which
//! monitor a connector leads to. Pure.

use std::collections::BTreeMap;

use super::state::PlaybackState;

impl PlaybackState {
    /// `now` says which monitor each of the connected ones leads to, where that is known. Whether
    /// anything of that is new.
    pub(super) fn follow(&mut self, now: &BTreeMap<String, String>) -> bool {
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
        let before = (&self.monitors, &self.shown_on, &self.identities);
        let is_new = before != (&monitors, &shown_on, &identities);
        (self.monitors, self.shown_on, self.identities) = (monitors, shown_on, identities);
        is_new
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
        let mut check = |now: &[(&str, &str)], monitors: &[&str], shown_on: &[&str], is_new| {
            let now = now.iter().map(|(n, id)| ((*n).to_owned(), (*id).to_owned())).collect();
            assert_eq!(state.follow(&now), is_new, "{now:?}");
            assert_eq!((&state.monitors, &state.shown_on), (&names(monitors), &names(shown_on)));
        };
        check(&[("A", "one"), ("B", "two")], &["A", "B"], &["A"], true);
        check(&[("A", "one"), ("B", "two")], &["A", "B"], &["A"], false);
        check(&[("A", "two"), ("B", "one")], &["B", "A"], &["B"], true);
        check(&[("A", "two")], &["B", "A"], &["B"], false);
        check(&[("A", "two"), ("C", "one")], &["C", "A"], &["C"], true);
        // Of what is not known the connector counts.
        check(&[], &["C", "A"], &["C"], false);
    }
}
