//! Rounds, steps back, and lists that change.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn ids(number: i64) -> Vec<i64> {
    (1..=number).collect()
}

impl Shuffle {
    /// The image that [`Shuffle::backward`] would show, if one is remembered.
    fn previous(&self) -> Option<i64> {
        self.trail.iter().rev().nth(1).copied()
    }
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
    // Each of the six orders of three appears in a sixth of the rounds, within five standard
    // deviations.
    let mut orders = std::collections::BTreeMap::<Vec<i64>, u32>::new();
    for seed in 0..6000 {
        let mut shuffle = Shuffle::new(&ids(3), None, seed);
        let order = vec![shuffle.current(), shuffle.forward(), shuffle.forward()];
        *orders.entry(order).or_default() += 1;
    }
    assert!(
        orders.len() == 6 && orders.values().all(|n| n.abs_diff(1000) < 145),
        "{orders:?}"
    );
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
    let mut shuffle = Shuffle::new(&ids(9), Some(4), 1);
    shuffle.forward();
    assert_eq!((shuffle.backward(), shuffle.previous()), (4, None));
}

#[test]
fn backward_at_beginning_keeps_round_whole() {
    for (number, seed) in [2, 3, 8]
        .into_iter()
        .flat_map(|n| (0..20).map(move |seed| (n, seed)))
    {
        let mut shuffle = Shuffle::new(&ids(number), Some(1), seed);
        let before = shuffle.backward();
        assert_ne!(before, 1);
        assert_eq!((shuffle.forward(), shuffle.previous()), (1, Some(before)));
        let mut round = BTreeSet::from([before, 1]);
        round.extend((2..number).map(|_| shuffle.forward()));
        assert_eq!(round.len() as i64, number);
        let next: BTreeSet<i64> = (0..number).map(|_| shuffle.forward()).collect();
        assert_eq!(
            next.len() as i64,
            number,
            "it has had its turn in the round before"
        );
    }
    assert_eq!(Shuffle::new(&[5, 5], None, 0).backward(), 5);
}

#[test]
fn steps_back_beyond_a_finished_round_lead_through_all_of_it() {
    for seed in 0..20 {
        let mut shuffle = Shuffle::new(&ids(6), None, seed);
        let mut round = vec![shuffle.current()];
        round.extend((1..6).map(|_| shuffle.forward()));
        let back: Vec<i64> = (0..11).map(|_| shuffle.backward()).collect();
        assert!(
            back[..5].iter().eq(round[..5].iter().rev()),
            "{back:?} after {round:?}"
        );
        assert!(
            back[5..].iter().eq(round.iter().rev()),
            "{back:?} after {round:?}"
        );
    }
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
fn new_images_are_mixed_evenly_into_the_remaining_round() {
    // After one and after two of four images, the new one is at each place in a fourth or a third
    // of the rounds.
    for (shown, places) in [(1, 4), (2, 3)] {
        let mut found = vec![0_u32; places];
        for seed in 0..4000 {
            let mut shuffle = Shuffle::new(&ids(4), Some(1), seed);
            (1..shown).for_each(|_| _ = shuffle.forward());
            let mut old = shuffle.clone();
            let before: Vec<i64> = (1..places).map(|_| old.forward()).collect();
            shuffle.edit(&ids(5));
            let mut order: Vec<i64> = (0..places).map(|_| shuffle.forward()).collect();
            let at = order
                .iter()
                .position(|&id| id == 5)
                .expect("it comes in this round");
            found[at] += 1;
            order.remove(at);
            assert_eq!(order, before, "the others keep their order");
        }
        let each = 4000 / places as u32;
        assert!(
            found.iter().all(|number| number.abs_diff(each) < 160),
            "{found:?}"
        );
    }
}

#[test]
fn shuffle_of_many_images_is_small_and_steps_are_cheap() {
    // CPU time of this thread, so that other programs do not count.
    let spent = || {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        std::time::Duration::try_from(now).unwrap()
    };
    let before = spent();
    let mut shuffle = Shuffle::new(&ids(300_000), None, 7);
    for _ in 0..20 {
        shuffle.forward();
    }
    let fits = |id: i64| id == 1000;
    assert!(shuffle.skip(false, &fits).len() > 1 && shuffle.current() == 1000);
    let json = serde_json::to_string(&shuffle).unwrap();
    assert!(json.len() < 2000, "{json}");
    // Half of the new images have a key that this round has passed.
    shuffle.edit(&ids(600_000));
    let json = serde_json::to_string(&shuffle).unwrap();
    assert!(json.len() < 50_000, "{} bytes", json.len());
    let took = spent() - before;
    assert!(took < std::time::Duration::from_secs(5), "{took:?}");
}

#[test]
fn skipped_images_are_not_in_the_trail() {
    let mut shuffle = Shuffle::new(&ids(5), Some(1), 2);
    let skipped = shuffle.forward();
    assert_eq!(shuffle.skip(false, &|id| id != skipped), [skipped]);
    let shown = shuffle.current();
    assert!(shown != skipped && shown != 1);
    assert_eq!(shuffle.backward(), 1);
    assert_eq!(shuffle.forward(), shown);
}

#[test]
fn all_images_that_do_not_fit_are_skipped_in_order() {
    for seed in 0..50 {
        let mut shuffle = Shuffle::new(&ids(9), Some(1), seed);
        let mut way = shuffle.clone();
        shuffle.forward();
        let expected: Vec<i64> = std::iter::repeat_with(|| way.forward())
            .take(8)
            .take_while(|&id| id != 7)
            .collect();
        if shuffle.current() == 7 {
            continue;
        }
        assert_eq!(shuffle.skip(false, &|id| id == 7), expected, "seed {seed}");
        assert_eq!((shuffle.current(), shuffle.previous()), (7, Some(1)));
    }
}

#[test]
fn images_that_no_longer_match_are_skipped_forward() {
    let mut shuffle = Shuffle::new(&ids(6), Some(1), 2);
    let way = [shuffle.forward(), shuffle.forward(), shuffle.forward()];
    (0..3).for_each(|_| _ = shuffle.backward());
    let (id, left) = shuffle.forward_past(&[1], &|id| id != way[0]);
    assert_eq!((id, left), (way[1], vec![way[0]]));
    assert_eq!((shuffle.previous(), shuffle.forward()), (Some(1), way[2]));
}

#[test]
fn latest_repeats_images_if_more_are_asked_for_than_there_are() {
    let mut shuffle = Shuffle::new(&ids(2), Some(1), 0);
    shuffle.forward();
    assert_eq!(shuffle.latest(1), [2]);
    assert_eq!(shuffle.latest(2), [1, 2]);
    assert_eq!(shuffle.trail, [1, 2], "nothing was missing");
    assert_eq!(shuffle.latest(5), [2, 1, 2, 1, 2]);
    assert_eq!(Shuffle::new(&ids(1), None, 0).latest(3), [1, 1, 1]);
    let of_three: BTreeSet<i64> = Shuffle::new(&ids(3), None, 0)
        .latest(3)
        .into_iter()
        .collect();
    assert_eq!(of_three, BTreeSet::from([1, 2, 3]));
}

#[test]
fn undone_step_is_not_in_the_trail() {
    let mut shuffle = Shuffle::new(&ids(5), Some(1), 2);
    let (second, third) = (shuffle.forward(), shuffle.forward());
    shuffle.leave(second);
    assert_eq!((shuffle.current(), shuffle.previous()), (third, Some(1)));
    shuffle.leave(third);
    shuffle.leave(1);
    assert_eq!(
        (shuffle.current(), shuffle.previous()),
        (1, None),
        "one is always there"
    );
}

#[test]
fn a_thousand_steps_are_remembered() {
    let mut shuffle = Shuffle::new(&ids(3), None, 0);
    let mut past = shuffle.clone();
    for _ in 0..REMEMBERED + 5 {
        shuffle.forward();
        past.forward_past(&[], &|_| true);
    }
    assert_eq!([shuffle.trail.len(), past.trail.len()], [REMEMBERED; 2]);
}

#[test]
fn replacement_keeps_the_turn_and_the_remembered_place_of_the_image() {
    for (seed, at) in (0..20).flat_map(|seed| (0..6).map(move |at| (seed, at))) {
        let mut shuffle = Shuffle::new(&ids(6), None, seed);
        let mut round = vec![shuffle.current()];
        let mut old = shuffle.clone();
        round.extend((1..6).map(|_| old.forward()));
        (1..3).for_each(|_| _ = shuffle.forward());
        shuffle.replace(round[at], 100);
        round[at] = 100;
        let rest: Vec<i64> = (3..6).map(|_| shuffle.forward()).collect();
        assert_eq!(rest, round[3..], "seed {seed}, {at}");
        let back: Vec<i64> = (0..5).map(|_| shuffle.backward()).collect();
        assert!(
            back.iter().eq(round[..5].iter().rev()),
            "{back:?}, not back along {round:?}"
        );
    }
}

#[test]
fn at_most_a_thousand_keys_are_changed() {
    let mut shuffle = Shuffle::new(&ids(10), None, 0);
    (1..10).for_each(|_| _ = shuffle.forward());
    // Most new images have a key that this round has passed.
    shuffle.edit(&ids(5000));
    let lies_ahead = |id: &i64| shuffle.key(*id) > shuffle.position;
    let is_moved = |id: &i64| shuffle.moved.contains_key(id);
    let own = ids(5000)
        .into_iter()
        .find(|id| lies_ahead(id) && !is_moved(id))
        .unwrap();
    let check = |change: &dyn Fn(&mut Shuffle)| {
        let mut shuffle = shuffle.clone();
        change(&mut shuffle);
        assert_eq!(shuffle.moved.len(), MOVED_MAX);
    };
    check(&|_| ());
    check(&|shuffle| shuffle.replace(own, 5001));
    check(&|shuffle| drop(shuffle.skip(true, &|id| id == own)));
    check(&|shuffle| drop(shuffle.forward_past(&ids(4999), &|_| true)));
}

/// The first two results for 1234567 in the test vectors of splitmix64.
#[test]
fn keys_are_mixed_by_splitmix64() {
    let first = mixed(1_234_567);
    let second = mixed(1_234_567 + 0x9e37_79b9_7f4a_7c15);
    assert_eq!(
        (first, second),
        (6_457_827_717_110_365_317, 3_203_168_211_198_807_973)
    );
}

#[derive(Clone, Debug)]
enum Action {
    Forward,
    Backward,
    /// Whether backward, and the image that fits besides the lowest one.
    Skip(bool, i64),
    Edit(Vec<i64>),
    Restart,
}

fn acts() -> impl Strategy<Value = Vec<Action>> {
    let act = prop_oneof![
        6 => Just(Action::Forward),
        3 => Just(Action::Backward),
        1 => (any::<bool>(), 1_i64..8).prop_map(|(back, only)| Action::Skip(back, only)),
        2 => proptest::collection::vec(1_i64..8, 1..9).prop_map(Action::Edit),
        1 => Just(Action::Restart),
    ];
    proptest::collection::vec(act, 0..60)
}

proptest! {
    /// After any actions, an image of the list is shown, steps lead to another one, and the state
    /// survives being stored.
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
                Action::Skip(backward, only) => {
                    let least = shuffle.all[0];
                    let fits = |id: i64| id == least || id == only;
                    if !fits(before) {
                        let left = shuffle.skip(backward, &fits);
                        prop_assert_eq!(left.first(), Some(&before));
                        prop_assert!(left.into_iter().all(|id| !fits(id)));
                        prop_assert!(fits(shuffle.current()));
                    }
                }
                Action::Edit(ids) => {
                    shuffle.edit(&ids);
                    prop_assert!(!ids.contains(&before) || shuffle.current() == before);
                    prop_assert_eq!(&shuffle.all, &sorted(&ids));
                }
                Action::Restart => {
                    let json = serde_json::to_string(&shuffle).unwrap();
                    let mut read: Shuffle = serde_json::from_str(&json).unwrap();
                    read.edit(&shuffle.all);
                    prop_assert_eq!(&read, &shuffle);
                }
            }
            prop_assert!(shuffle.all.contains(&shuffle.current()));
        }
    }

    /// Each image that stays is shown once before any is shown twice, even if others come and go
    /// between; and none twice in a row, as long as there is another.
    #[test]
    fn images_that_stay_are_each_shown_once_before_any_twice(
        stay in 1_i64..12,
        visits in proptest::collection::vec((any::<bool>(), proptest::collection::btree_set(100_i64..110, 0..8)), 1..80),
        seed: u64,
    ) {
        let mut shuffle = Shuffle::new(&ids(stay), None, seed);
        let mut shown = vec![shuffle.current()];
        for (edits, guests) in visits {
            if edits {
                let before = shuffle.current();
                let mut all = ids(stay);
                all.extend(guests);
                shuffle.edit(&all);
                // The shown guest is gone, and another image has replaced it.
                if shuffle.current() != before {
                    shown.push(shuffle.current());
                }
            }
            let before = shuffle.current();
            let several = shuffle.all.len() > 1;
            if several {
                shown.push(shuffle.forward());
                prop_assert!(shuffle.current() != before);
            }
        }
        shown.retain(|id| *id <= stay);
        for round in shown.chunks(stay as usize) {
            let each: BTreeSet<_> = round.iter().collect();
            prop_assert_eq!(each.len(), round.len(), "{:?}", shown);
        }
    }

    /// An image that is added during a round is shown before any other is shown twice.
    #[test]
    fn newcomers_are_shown_in_the_same_round(shown in 1_usize..6, new in 10_i64..40, seed: u64) {
        let mut shuffle = Shuffle::new(&ids(6), None, seed);
        (1..shown).for_each(|_| _ = shuffle.forward());
        let mut all = ids(6);
        all.push(new);
        shuffle.edit(&all);
        let rest: Vec<i64> = (shown..7).map(|_| shuffle.forward()).collect();
        prop_assert!(rest.contains(&new), "{:?}", rest);
    }
}

#[test]
fn no_seed_keeps_a_list_in_order() {
    // Seeds with all, one or none of their bits set.
    for seed in [0, 1, 1 << 63, u64::MAX] {
        let mut shuffle = Shuffle::new(&ids(20), None, seed);
        let mut order = vec![shuffle.current()];
        order.extend((1..20).map(|_| shuffle.forward()));
        assert_ne!(order, ids(20), "{seed}");
        assert!(
            order.windows(2).filter(|pair| pair[0] > pair[1]).count() > 3,
            "{order:?}"
        );
    }
}
