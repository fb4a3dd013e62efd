//! Playlists that show a different image on each monitor: how many images a step takes, and which.

use std::collections::BTreeSet;

use super::*;
use crate::store::assignments::{self, Assignment};

impl Fixture {
    pub(super) fn start_each(&mut self, id: i64, monitors: &[&str]) -> Result<(), Error> {
        let monitors = names(monitors);
        self.command(|player: &mut Player, reply| {
            player.begin(
                id,
                Aim::Start {
                    monitors,
                    mode: Mode::Each,
                },
                reply,
            )
        })
        .map(drop)
    }

    /// Takes the requests since the last call, as numbers of images.
    pub(super) fn dealt(&self) -> Vec<Vec<usize>> {
        let number = |id: &i64| self.images.iter().position(|image| image == id).unwrap();
        let dealt = std::mem::take(&mut self.wallpapers.state.lock().unwrap().dealt);
        dealt
            .iter()
            .map(|ids| ids.iter().map(number).collect())
            .collect()
    }

    fn make_random(&self, numbers: &[usize]) -> i64 {
        let order = Some(PlaylistOrder::Random);
        let configuration = NewConfiguration {
            kind: Some(PlaylistType::Manual),
            order,
            ..fast()
        };
        self.make_with(configuration, numbers, &[])
    }
}

#[test]
fn step_takes_as_many_images_as_there_are_monitors() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Timer, &[0, 1, 2, 3], &[]);
    fixture.connect(&["C", "A", "B"]);
    fixture.start_each(id, &[]).unwrap();
    assert_eq!(fixture.dealt(), [[0, 1, 2]]);
    let active = fixture.active().remove(0);
    assert_eq!(
        (active.mode, active.extend, active.current_index),
        (Mode::Each, false, 0)
    );
    assert_eq!(active.next_image_id, Some(fixture.images[3]));
    fixture.events();
    let moved = fixture
        .command(|player, reply| player.act(id, Action::Next, &[], reply))
        .unwrap();
    assert_eq!(fixture.dealt(), [[3, 0, 1]]);
    let events = fixture.events();
    let [(EventKind::PlaylistImageChanged, event)] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(event["monitors"], serde_json::json!(["A", "B", "C"]));
    let [first, second, third] = [3, 0, 1].map(|number| fixture.images[number]);
    assert_eq!(
        event["images"],
        serde_json::json!({ "C": first, "A": second, "B": third })
    );
    assert_eq!(serde_json::to_value(moved.images).unwrap(), event["images"]);
    assert_eq!(
        (&event["image_id"], &event["image_index"]),
        (&first.into(), &3.into())
    );
    fixture.act(id, Action::Previous).unwrap();
    fixture.act(id, Action::Previous).unwrap();
    assert_eq!(fixture.dealt(), [[0, 1, 2], [1, 2, 3]]);
    // An unplugged monitor takes no image, and a new one takes the next; the others keep theirs.
    fixture.connect(&["A", "B"]);
    assert!(fixture.dealt().is_empty());
    fixture.connect(&["A", "B", "C", "D"]);
    assert_eq!(fixture.dealt(), [[0]]);
    fixture.act(id, Action::Next).unwrap();
    assert_eq!(fixture.dealt(), [[1, 2, 3, 0]]);
    // Continues after a restart.
    fixture.restart(SECOND, "boot");
    fixture.dealt();
    fixture.act(id, Action::Previous).unwrap();
    assert_eq!(fixture.dealt(), [[1, 2, 3, 0]]);
}

#[test]
fn step_back_leads_to_the_previous_image() {
    for random in [false, true] {
        let mut fixture = fixture();
        let numbers = [0, 1, 2, 3, 4];
        let id = if random {
            fixture.make_random(&numbers)
        } else {
            fixture.make(PlaylistType::Manual, &numbers, &[])
        };
        fixture.start_each(id, &[]).unwrap();
        let before = |fixture: &mut Fixture| {
            let active = fixture.active().remove(0);
            active.previous_image_id.map(|id| fixture.number(id))
        };
        assert_eq!(before(&mut fixture), if random { None } else { Some(3) });
        for _ in 0..3 {
            fixture.act(id, Action::Next).unwrap();
        }
        for _ in 0..3 {
            let told = before(&mut fixture).unwrap();
            fixture.act(id, Action::Previous).unwrap();
            assert_eq!(fixture.dealt().pop().unwrap()[0], told);
        }
    }
}

#[test]
fn images_repeat_only_if_they_are_fewer_than_the_monitors() {
    let mut fixture = fixture();
    fixture.connect(&["A", "B", "C"]);
    let few = fixture.make(PlaylistType::Manual, &[0, 1], &[]);
    fixture.start_each(few, &[]).unwrap();
    fixture.act(few, Action::Next).unwrap();
    assert_eq!(fixture.dealt(), [[0, 1, 0], [1, 0, 1]]);
    let single = fixture.make_random(&[2]);
    fixture.start_each(single, &[]).unwrap();
    fixture.act(single, Action::Next).unwrap();
    fixture.act(single, Action::Previous).unwrap();
    assert_eq!(fixture.dealt(), [[2, 2, 2], [2, 2, 2], [2, 2, 2]]);
}

#[test]
fn shuffle_shows_each_image_once_per_round_and_different_ones_at_a_time() {
    for numbers in [&[0, 1, 2, 3][..], &[0, 1, 2, 3, 4], &[0, 1, 2, 3, 4, 5]] {
        let mut fixture = fixture();
        fixture.connect(&["A", "B", "C"]);
        let id = fixture.make_random(numbers);
        fixture.start_each(id, &[]).unwrap();
        (0..23).for_each(|_| fixture.act(id, Action::Next).unwrap());
        let forward = fixture.dealt();
        for three in &forward {
            assert_eq!(
                three.iter().collect::<BTreeSet<_>>().len(),
                3,
                "{forward:?}"
            );
        }
        let all: Vec<usize> = forward.concat();
        for round in all
            .chunks(numbers.len())
            .filter(|round| round.len() == numbers.len())
        {
            let each: BTreeSet<_> = round.iter().collect();
            assert_eq!(each.len(), numbers.len(), "{all:?}");
        }
        // Steps back retrace the images, and continue before the first of them.
        (0..25).for_each(|_| fixture.act(id, Action::Previous).unwrap());
        let mut backward = fixture.dealt();
        assert!(backward.iter().all(|three| three.len() == 3));
        backward.truncate(23);
        backward.reverse();
        assert_eq!(backward, forward[..23]);
    }
}

#[test]
fn edit_that_removes_an_image_gives_its_monitor_another() {
    for (random, removed) in [(false, 0), (false, 1), (true, 0), (true, 1)] {
        for _ in 0..5 {
            let mut fixture = fixture();
            let numbers = [0, 1, 2, 3];
            let id = if random {
                fixture.make_random(&numbers)
            } else {
                fixture.make(PlaylistType::Manual, &numbers, &[])
            };
            fixture.start_each(id, &[]).unwrap();
            fixture.act(id, Action::Next).unwrap();
            let before = fixture.dealt().pop().unwrap();
            let gone = before[removed];
            let left: Vec<usize> = (0..4).filter(|number| *number != gone).collect();
            fixture.edit(id, Some(&left), NewConfiguration::default());
            let after = fixture.dealt().pop().expect("another picture");
            assert!(
                !after.contains(&gone) && after[0] != after[1],
                "{before:?}, then {after:?}"
            );
            assert!(
                after.contains(&before[1 - removed]),
                "{before:?}, then {after:?}"
            );
            let current = fixture.active()[0].current_image_id.unwrap();
            assert_eq!(
                fixture.number(current),
                after[0],
                "where it stands is on a screen"
            );
        }
    }
}

#[test]
fn edit_that_removes_no_shown_image_changes_no_monitor() {
    for random in [false, true] {
        let mut fixture = fixture();
        let id = if random {
            fixture.make_random(&[0, 1, 2])
        } else {
            fixture.make(PlaylistType::Manual, &[0, 1, 2], &[])
        };
        fixture.start_each(id, &[]).unwrap();
        fixture.dealt();
        fixture.edit(id, Some(&[3, 0, 1, 2]), NewConfiguration::default());
        assert!(fixture.dealt().is_empty());
    }
}

#[test]
fn image_that_left_a_dynamic_list_delays_no_step() {
    let mut fixture = fixture();
    (0..4).for_each(|number| fixture.tag(number, &["a"]));
    let id = fixture.make_dynamic(fast(), serde_json::json!({ "tags": ["a"] }));
    fixture.start_each(id, &[]).unwrap();
    fixture.tag(1, &[]);
    fixture.pass(10 * SECOND);
    assert_eq!(fixture.dealt(), [[0, 1], [2, 3]]);
}

#[test]
fn change_of_order_shows_the_present_image() {
    for _ in 0..5 {
        let mut fixture = fixture();
        let id = fixture.make(PlaylistType::Manual, &[0, 1, 2, 3], &[]);
        fixture.start_each(id, &[]).unwrap();
        let change = |order| NewConfiguration {
            order: Some(order),
            ..Default::default()
        };
        fixture.edit(id, None, change(PlaylistOrder::Random));
        let shown = fixture.dealt().pop().unwrap();
        let current = fixture.active()[0].current_image_id.unwrap();
        assert_eq!(fixture.number(current), shown[0]);
    }
}

#[test]
fn refused_items_are_skipped_once_each() {
    let mut fixture = fixture();
    fixture.wallpapers.state.lock().unwrap().behaviour = Behaviour::RefusesVideo;
    let id = fixture.make(PlaylistType::Manual, &[4, 0, 5, 1, 2], &[]);
    fixture.start_each(id, &[]).unwrap();
    assert_eq!(fixture.dealt(), [[0, 1]]);
    let events = fixture.events();
    let skipped = events
        .iter()
        .find_map(|(_, event)| event["skipped_items"].as_array());
    let slots: Vec<_> = skipped
        .unwrap()
        .iter()
        .map(|item| &item["slot_index"])
        .collect();
    assert_eq!(slots, [0, 2]);
}

#[test]
fn refused_items_are_replaced() {
    for random in [false, true] {
        let mut fixture = fixture();
        fixture.wallpapers.state.lock().unwrap().behaviour = Behaviour::RefusesVideo;
        let numbers = [4, 0, 5, 1, 2];
        let id = if random {
            fixture.make_random(&numbers)
        } else {
            fixture.make(PlaylistType::Manual, &numbers, &[])
        };
        fixture.start_each(id, &[]).unwrap();
        for _ in 0..6 {
            let last = fixture.dealt().pop().unwrap();
            assert_eq!(last.len(), 2);
            assert!(
                last[0] != last[1] && last.iter().all(|&number| number < 4),
                "{last:?}"
            );
            fixture.act(id, Action::Next).unwrap();
        }
    }
}

#[test]
fn playlist_with_slots_shows_one_picture_on_all_monitors() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::TimeOfDay, &[0, 1], &[0, 720]);
    assert!(matches!(
        fixture.start_each(id, &[]),
        Err(Error::OneForAll { .. })
    ));
    assert!(fixture.active().is_empty());
}

/// Stores what the monitors show, as the reconciler does.
pub(super) fn show(fixture: &Fixture, on: &[(&str, usize)]) {
    for &(monitor, number) in on {
        let row = Assignment {
            monitor: monitor.to_owned(),
            image_id: fixture.images[number],
            mode: Mode::Each,
            together: Vec::new(),
            backend: "swaybg".to_owned(),
            set_at: crate::wire::Timestamp::now(),
            fit: None,
            position: None,
            sound: None,
        };
        fixture.store.write(|c| assignments::put(c, &row)).unwrap();
    }
}

#[test]
fn step_on_a_monitor_leaves_the_others() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Timer, &[0, 1, 2, 3, 4], &[]);
    fixture.start_each(id, &[]).unwrap();
    show(&fixture, &[("A", 0), ("B", 1)]);
    assert_eq!(fixture.dealt(), [[0, 1]]);
    fixture.events();
    let step = |fixture: &mut Fixture, action, on: &[&str]| {
        let on = names(on);
        let moved = fixture
            .command(|player, reply| player.act(id, action, &on, reply))
            .unwrap();
        let numbers = moved.images.iter();
        numbers
            .map(|(monitor, id)| (monitor.clone(), fixture.number(*id)))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        step(&mut fixture, Action::Next, &["B"]),
        [("B".to_owned(), 2)]
    );
    let (kind, event) = fixture.events().remove(0);
    assert_eq!(kind, EventKind::PlaylistImageChanged);
    assert_eq!(
        (&event["monitors"], &event["image_index"]),
        (&serde_json::json!(["B"]), &2.into())
    );
    show(&fixture, &[("B", 2)]);
    assert_eq!(step(&mut fixture, Action::Next, &["A"])[0].1, 3);
    show(&fixture, &[("A", 3)]);
    assert_eq!(step(&mut fixture, Action::Previous, &["B"])[0].1, 1);
    show(&fixture, &[("B", 1)]);
    // No image comes to a monitor that shows one already, and all step on from the last.
    fixture.connect(&["A", "B"]);
    assert_eq!(fixture.dealt(), [[2], [3], [1]]);
    step(&mut fixture, Action::Next, &["A", "B"]);
    assert_eq!(fixture.dealt(), [[2, 3]]);
}

#[test]
fn shuffle_steps_on_a_monitor_and_back() {
    for _ in 0..20 {
        let mut fixture = fixture();
        let id = fixture.make_random(&[0, 1, 2, 3, 4]);
        fixture.start_each(id, &[]).unwrap();
        let mut dealt = fixture.dealt().remove(0);
        show(&fixture, &[("A", dealt[0]), ("B", dealt[1])]);
        for action in [Action::Next, Action::Next, Action::Previous] {
            let on = names(&["B"]);
            fixture
                .command(|player, reply| player.act(id, action, &on, reply))
                .unwrap();
            let new = fixture.dealt().remove(0);
            assert!(
                new.len() == 1 && !dealt[..1].contains(&new[0]),
                "{dealt:?}, {new:?}"
            );
            dealt.extend(&new);
            show(&fixture, &[("B", new[0])]);
        }
        let [_, _, second, third, last] = dealt[..] else {
            panic!("{dealt:?}")
        };
        assert!(second != third && last == second, "{dealt:?}");
        // An edit of the list that takes none of them away changes nothing.
        fixture.edit(id, Some(&[0, 1, 2, 3, 4, 5]), fast());
        assert!(fixture.dealt().is_empty());
    }
}

#[test]
fn quick_steps_have_their_own_images() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Manual, &[0, 1, 2, 3, 4, 5], &[]);
    fixture.start_each(id, &[]).unwrap();
    fixture.behaviour(Behaviour::Silent);
    let answers: Vec<_> = (0..3)
        .map(|_| fixture.begin(|player, reply| player.act(id, Action::Next, &[], reply)))
        .collect();
    fixture.events();
    fixture.release(Behaviour::Shows);
    let expected = [[2, 3], [4, 5], [0, 1]].map(|numbers| {
        let [a, b] = numbers.map(|number: usize| fixture.images[number]);
        BTreeMap::from([("A".to_owned(), a), ("B".to_owned(), b)])
    });
    let told = answers.iter().map(|one| one.try_recv().unwrap().unwrap());
    assert!(told.map(|moved| moved.images).eq(expected.clone()));
    let events = fixture.events();
    let images = events.iter().map(|(_, event)| &event["images"]);
    let expected = expected.map(|images| serde_json::to_value(images).unwrap());
    assert!(images.eq(&expected), "{events:?}");
}
