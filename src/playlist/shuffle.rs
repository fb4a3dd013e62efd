//! Random order: pure, and kept across restarts.
//!
//! Each round is a permutation of all images: every one is shown once before any a second time. No
//! image comes twice in a row, across rounds either, as long as there is another. The way that was
//! come is remembered, so that stepping back goes back on it, and on again where one went back.

use serde::{Deserialize, Serialize};

/// Steps remembered; older ones are forgotten.
const REMEMBERED: usize = 1000;

/// The order of one playlist's images, by their ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Shuffle {
    /// The way that was come, the present image last. Never empty.
    trail: Vec<i64>,
    /// Images that were stepped back from, the nearest last.
    back: Vec<i64>,
    /// What this round has yet to show, the next one last. Never empty, but for a single image.
    ahead: Vec<i64>,
    /// All images, sorted, each once.
    all: Vec<i64>,
    /// State of the generator (splitmix64).
    random: u64,
}

impl Shuffle {
    /// Begins with an image, or with none given at random. `ids` is not empty and may name an image
    /// several times.
    pub(super) fn new(ids: &[i64], first: Option<i64>, seed: u64) -> Self {
        let (trail, back, ahead) = (Vec::new(), Vec::new(), Vec::new());
        let mut shuffle = Self { trail, back, ahead, all: sorted(ids), random: seed };
        let first = first.filter(|first| shuffle.all.contains(first));
        let mut round = shuffle.permutation();
        let first = first.or(round.last().copied()).unwrap_or_default();
        round.retain(|&id| id != first);
        shuffle.trail.push(first);
        shuffle.ahead = round;
        shuffle.refill();
        shuffle
    }

    pub(super) fn current(&self) -> i64 {
        self.trail.last().copied().unwrap_or_default()
    }

    /// What [`Self::forward`] would show.
    pub(super) fn next(&self) -> i64 {
        let next = self.back.last().or(self.ahead.last()).copied();
        next.unwrap_or_else(|| self.current())
    }

    /// What [`Self::backward`] would show, where one has come from somewhere.
    pub(super) fn previous(&self) -> Option<i64> {
        self.trail.iter().rev().nth(1).copied()
    }

    pub(super) fn forward(&mut self) -> i64 {
        if let Some(id) = self.back.pop().or_else(|| self.ahead.pop()) {
            self.trail.push(id);
        }
        if self.trail.len() > REMEMBERED {
            self.trail.remove(0);
        }
        self.refill();
        self.current()
    }

    /// Back the way that was come. At its beginning, the image that would be shown last is taken
    /// from what lies ahead: there is always another one, and none is shown twice for it.
    pub(super) fn backward(&mut self) -> i64 {
        if self.all.len() < 2 {
            return self.current();
        }
        if self.trail.len() < 2 {
            let current = self.current();
            let last = self.ahead.iter().position(|&id| id != current);
            let before = match last {
                Some(at) => self.ahead.remove(at),
                // The rest of the round is the present image alone.
                None => {
                    let at = self.all.partition_point(|&id| id < current);
                    let other = (at + 1 + self.below(self.all.len() - 1)) % self.all.len();
                    self.all[other]
                }
            };
            self.trail.insert(0, before);
        }
        self.back.extend(self.trail.pop());
        self.tidy();
        self.current()
    }

    /// Leaves an image that cannot be shown as if it had not come: the way back does not lead over
    /// it.
    pub(super) fn skip(&mut self, backward: bool) -> i64 {
        let skipped = self.current();
        let id = if backward { self.backward() } else { self.forward() };
        let way = if backward { &mut self.back } else { &mut self.trail };
        if let Some(at) = way.iter().rposition(|&id| id == skipped)
            && self.all.len() > 1
        {
            way.remove(at);
        }
        self.tidy();
        id
    }

    /// Takes over an edited list: what is gone is forgotten, what is new comes in this round.
    /// Where the present image is gone, its successor takes its place.
    pub(super) fn edit(&mut self, ids: &[i64]) {
        let old = std::mem::replace(&mut self.all, sorted(ids));
        let lost = self.all.binary_search(&self.current()).is_err();
        let all = &self.all;
        let stays = |id: &i64| all.binary_search(id).is_ok();
        self.trail.retain(stays);
        self.back.retain(stays);
        self.ahead.retain(stays);
        let new = all.iter().copied().filter(|id| old.binary_search(id).is_err());
        let new = new.collect();
        self.mix_in(new);
        if lost && let Some(id) = self.back.pop().or_else(|| self.ahead.pop()) {
            self.trail.push(id);
        }
        if self.trail.is_empty() {
            // Only one image is left, and the round had shown it.
            self.trail.extend(self.all.first());
        }
        self.tidy();
    }

    /// Puts new images anywhere between those that lie ahead. One by one they would be moved about
    /// as often as there are new ones.
    fn mix_in(&mut self, new: Vec<i64>) {
        let mut new = self.shuffled(new);
        let mut old = std::mem::take(&mut self.ahead).into_iter();
        self.ahead.reserve(new.len() + old.len());
        while !new.is_empty() {
            let at = self.below(new.len() + old.len());
            let next = if at < new.len() { new.pop() } else { old.next() };
            self.ahead.extend(next);
        }
        self.ahead.extend(old);
    }

    /// No image twice in a row, on the way or ahead, after one between them was taken out.
    fn tidy(&mut self) {
        self.trail.dedup();
        self.back.dedup();
        let current = self.current();
        if self.back.last() == Some(&current) {
            self.back.pop();
        }
        let next_of_round = self.back.first().copied().unwrap_or(current);
        if self.ahead.last() == Some(&next_of_round) {
            let other = self.ahead.iter().rposition(|&id| id != next_of_round);
            match other {
                Some(at) => {
                    let last = self.ahead.len() - 1;
                    self.ahead.swap(at, last);
                }
                // It is shown already: the round is over.
                None => self.ahead.clear(),
            }
        }
        self.refill();
    }

    /// Draws the next round where this one is over. It does not begin with the image before it.
    fn refill(&mut self) {
        if !self.ahead.is_empty() || self.all.len() < 2 {
            return;
        }
        // The round ends with what was stepped back from, if anything was.
        let last = self.back.first().copied().unwrap_or_else(|| self.current());
        self.ahead = self.permutation();
        let end = self.ahead.len() - 1;
        if self.ahead[end] == last {
            let other = self.below(end);
            self.ahead.swap(end, other);
        }
    }

    /// All images in random order.
    fn permutation(&mut self) -> Vec<i64> {
        let all = self.all.clone();
        self.shuffled(all)
    }

    /// In random order (Fisher and Yates).
    fn shuffled(&mut self, mut ids: Vec<i64>) -> Vec<i64> {
        for end in (1..ids.len()).rev() {
            let other = self.below(end + 1);
            ids.swap(end, other);
        }
        ids
    }

    /// Evenly below `end`, as far as 64 bits go.
    fn below(&mut self, end: usize) -> usize {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        ((u128::from(bits) * end as u128) >> 64) as usize
    }
}

fn sorted(ids: &[i64]) -> Vec<i64> {
    let mut all = ids.to_vec();
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn ids(number: i64) -> Vec<i64> {
        (1..=number).collect()
    }

    /// Every image once in each round, never the same twice in a row.
    #[test]
    fn rounds_are_permutations_without_repeats_across_rounds() {
        for number in [1, 2, 3, 7, 100] {
            for seed in 0..50 {
                let mut shuffle = Shuffle::new(&ids(number), None, seed);
                let mut shown = vec![shuffle.current()];
                shown.extend((1..number * 6).map(|_| shuffle.forward()));
                for round in shown.chunks(number as usize) {
                    let each: BTreeSet<_> = round.iter().collect();
                    assert_eq!(each.len() as i64, number, "{shown:?}");
                }
                let repeats = shown.windows(2).any(|pair| pair[0] == pair[1]);
                assert!(number == 1 || !repeats, "{shown:?}");
            }
        }
    }

    #[test]
    fn orders_are_evenly_distributed() {
        // Each of six orders of three in a sixth of the rounds, within five standard deviations.
        let mut orders = std::collections::BTreeMap::<Vec<i64>, u32>::new();
        for seed in 0..6000 {
            let mut shuffle = Shuffle::new(&ids(3), None, seed);
            let order = vec![shuffle.current(), shuffle.forward(), shuffle.forward()];
            *orders.entry(order).or_default() += 1;
        }
        assert!(orders.len() == 6 && orders.values().all(|n| n.abs_diff(1000) < 145), "{orders:?}");
    }

    #[test]
    fn backward_retraces_the_trail() {
        let mut shuffle = Shuffle::new(&ids(9), Some(4), 1);
        assert_eq!(shuffle.current(), 4);
        let mut way = vec![4];
        way.extend((0..30).map(|_| shuffle.forward()));
        let back: Vec<_> = (0..30).map(|_| shuffle.backward()).collect();
        assert_eq!(back, way.iter().rev().skip(1).copied().collect::<Vec<_>>());
        let again: Vec<_> = (0..30).map(|_| shuffle.forward()).collect();
        assert_eq!(again, way[1..]);
    }

    #[test]
    fn backward_at_beginning_keeps_round_whole() {
        for number in [2, 3, 8] {
            let mut shuffle = Shuffle::new(&ids(number), Some(1), 3);
            let before = shuffle.backward();
            assert_ne!(before, 1);
            assert_eq!(shuffle.forward(), 1);
            let mut round = BTreeSet::from([before, 1]);
            round.extend((2..number).map(|_| shuffle.forward()));
            assert_eq!(round.len() as i64, number);
        }
        assert_eq!(Shuffle::new(&[5, 5], None, 0).backward(), 5);
    }

    #[test]
    fn next_and_previous_predict_steps() {
        let mut shuffle = Shuffle::new(&ids(4), None, 9);
        assert_eq!(shuffle.previous(), None);
        for _ in 0..20 {
            let (now, next) = (shuffle.current(), shuffle.next());
            assert_eq!(shuffle.forward(), next);
            assert_eq!(shuffle.previous(), Some(now));
        }
    }

    #[test]
    fn new_images_are_mixed_evenly_into_the_round() {
        let mut places = [0_u32; 4];
        for seed in 0..4000 {
            let mut shuffle = Shuffle::new(&ids(4), Some(1), seed);
            let before = shuffle.ahead.clone();
            shuffle.edit(&ids(5));
            let at = shuffle.ahead.iter().position(|&id| id == 5).unwrap();
            places[at] += 1;
            shuffle.ahead.remove(at);
            assert_eq!(shuffle.ahead, before, "the others keep their order");
        }
        assert!(places.iter().all(|number| number.abs_diff(1000) < 140), "{places:?}");
    }

    #[test]
    fn editing_three_hundred_thousand_images_is_cheap() {
        // Of this thread: other programs do not count.
        let spent = || {
            let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
            std::time::Duration::try_from(now).unwrap()
        };
        let before = spent();
        let mut shuffle = Shuffle::new(&[1], None, 7);
        shuffle.edit(&ids(300_000));
        assert_eq!(shuffle.ahead.len(), 299_999);
        for _ in 0..1000 {
            shuffle.skip(false);
        }
        let took = spent() - before;
        assert!(took < std::time::Duration::from_secs(5), "{took:?}");
    }

    #[test]
    fn skipped_images_are_not_in_the_trail() {
        let mut shuffle = Shuffle::new(&ids(5), Some(1), 2);
        let skipped = shuffle.forward();
        let shown = shuffle.skip(false);
        assert!(shown != skipped && shown != 1);
        assert_eq!(shuffle.backward(), 1);
        assert_eq!(shuffle.forward(), shown);
    }

    #[derive(Clone, Debug)]
    enum Action {
        Forward,
        Backward,
        Skip(bool),
        Edit(Vec<i64>),
        Restart,
    }

    fn acts() -> impl Strategy<Value = Vec<Action>> {
        let act = prop_oneof![
            6 => Just(Action::Forward),
            3 => Just(Action::Backward),
            1 => any::<bool>().prop_map(Action::Skip),
            2 => proptest::collection::vec(1_i64..8, 1..9).prop_map(Action::Edit),
            1 => Just(Action::Restart),
        ];
        proptest::collection::vec(act, 0..60)
    }

    proptest! {
        /// Whatever happens: an image of the list is shown, steps lead to another one, and it all
        /// survives being written down.
        #[test]
        fn invariants_hold_after_any_steps_and_edits(acts in acts(), seed: u64) {
            let mut shuffle = Shuffle::new(&ids(5), None, seed);
            for act in acts {
                let before = shuffle.current();
                let several = shuffle.all.len() > 1;
                match act {
                    Action::Forward => {
                        let next = shuffle.next();
                        prop_assert_eq!(shuffle.forward(), next);
                        prop_assert!(!several || shuffle.current() != before);
                    }
                    Action::Backward => {
                        shuffle.backward();
                        prop_assert!(!several || shuffle.current() != before);
                    }
                    Action::Skip(backward) => {
                        shuffle.skip(backward);
                        prop_assert!(!several || shuffle.current() != before);
                    }
                    Action::Edit(ids) => {
                        shuffle.edit(&ids);
                        prop_assert!(!ids.contains(&before) || shuffle.current() == before);
                        prop_assert_eq!(&shuffle.all, &sorted(&ids));
                    }
                    Action::Restart => {
                        let json = serde_json::to_string(&shuffle).unwrap();
                        prop_assert_eq!(&serde_json::from_str::<Shuffle>(&json).unwrap(), &shuffle);
                    }
                }
                prop_assert!(shuffle.all.contains(&shuffle.current()));
                prop_assert!(shuffle.all.len() < 2 || !shuffle.ahead.is_empty());
            }
        }
    }
}
