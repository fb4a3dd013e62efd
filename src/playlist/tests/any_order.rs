//! Steps, starts, edits and results in any order, with wallpapers that fail at random. In the end, each
//! playlist is at the picture that is shown, and the events of its steps came in their order.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;
use crate::playlist::state::PlaybackState;

const LISTS: usize = 3;

#[derive(Clone, Debug)]
enum Op {
    /// A playlist, and its monitors as bits: none means all.
    Start(usize, u8, Mode),
    /// Of a playlist, or of all; monitors as bits.
    Step(Option<usize>, Action, u8),
    Act(Option<usize>, Action),
    Edit(usize, Vec<usize>),
    /// The reconciler answers one of the requests in flight.
    End(usize, Behaviour),
    Connect(u8),
    Pass(u64),
}

fn op() -> impl Strategy<Value = Op> {
    use proptest::sample::select;
    let list = || 0..LISTS;
    let some = || proptest::option::weighted(0.8, 0..LISTS);
    let mode = select(vec![Mode::Individual, Mode::Individual, Mode::Each]);
    let step = select(vec![Action::Next, Action::Next, Action::Previous]);
    let other = select(vec![Action::Stop, Action::Pause, Action::Resume]);
    use Behaviour::{Fails, LacksVideo, Shows};
    let result = select(vec![Shows, Shows, Shows, LacksVideo, Fails]);
    prop_oneof![
        5 => (list(), 0_u8..4, mode).prop_map(|(list, on, mode)| Op::Start(list, on, mode)),
        12 => (some(), step, 0_u8..4).prop_map(|(list, step, on)| Op::Step(list, step, on)),
        2 => (some(), other).prop_map(|(list, act)| Op::Act(list, act)),
        3 => (list(), proptest::collection::vec(0_usize..6, 1..5))
            .prop_map(|(list, numbers)| Op::Edit(list, numbers)),
        20 => (0_usize..4, result).prop_map(|(at, result)| Op::End(at, result)),
        1 => (1_u8..4).prop_map(Op::Connect),
        1 => (1_u64..15).prop_map(Op::Pass),
    ]
}

fn monitors(bits: u8) -> Vec<String> {
    let names = [(1, "A"), (2, "B")].into_iter();
    let set = names.filter(|(bit, _)| bits & bit != 0);
    set.map(|(_, name)| name.to_owned()).collect()
}

type Answer = Receiver<Result<Moved, Error>>;

struct Scene {
    fixture: Fixture,
    lists: Vec<i64>,
    /// The steps of single playlists.
    steps: Vec<(i64, Answer)>,
    others: Vec<Answer>,
    /// The first images of the published changes.
    changes: Vec<(i64, i64)>,
}

impl Scene {
    fn new() -> Self {
        let fixture = fixture();
        let lists = vec![
            fixture.make(PlaylistType::Manual, &[0, 1, 4, 2], &[]),
            fixture.make(PlaylistType::Manual, &[3, 2, 1, 0], &[]),
            fixture.make(PlaylistType::Timer, &[5, 0, 3], &[]),
        ];
        fixture.behaviour(Behaviour::Silent);
        Self {
            fixture,
            lists,
            steps: Vec::new(),
            others: Vec::new(),
            changes: Vec::new(),
        }
    }

    fn apply(&mut self, op: Op) {
        let fixture = &mut self.fixture;
        match op {
            Op::Start(list, on, mode) => {
                let id = self.lists[list];
                let monitors = monitors(on);
                let aim = Aim::Start { monitors, mode };
                let start = |player: &mut Player, reply| player.begin(id, aim, reply);
                self.others.push(fixture.begin(start));
            }
            Op::Step(Some(list), action, on) => {
                let id = self.lists[list];
                let on = monitors(on);
                let step = |player: &mut Player, reply| player.act(id, action, &on, reply);
                self.steps.push((id, fixture.begin(step)));
            }
            Op::Act(Some(list), action) => {
                let id = self.lists[list];
                let act = |player: &mut Player, reply| player.act(id, action, &[], reply);
                self.others.push(fixture.begin(act));
            }
            Op::Step(None, action, on) => {
                let on = monitors(on);
                let step = |player: &mut Player, reply| player.act_on_all(action, &on, reply);
                self.others.push(fixture.begin(step));
            }
            Op::Act(None, action) => {
                let act = |player: &mut Player, reply| player.act_on_all(action, &[], reply);
                self.others.push(fixture.begin(act));
            }
            Op::Edit(list, numbers) => {
                fixture.edit(
                    self.lists[list],
                    Some(&numbers),
                    NewConfiguration::default(),
                );
            }
            Op::End(at, result) => fixture.release_any(at, result),
            Op::Connect(on) => {
                let names = monitors(on);
                fixture.connect(&names.iter().map(String::as_str).collect::<Vec<_>>());
            }
            Op::Pass(seconds) => fixture.pass(Duration::from_secs(seconds)),
        }
        self.listen();
    }

    /// Notes the published changes, and stores what is shown as the reconciler does.
    fn listen(&mut self) {
        let screen = self.fixture.wallpapers.state.lock().unwrap().screen.clone();
        let shown = screen
            .iter()
            .map(|(monitor, id)| (monitor.as_str(), self.fixture.number(*id)));
        each::show(&self.fixture, &shown.collect::<Vec<_>>());
        let events = self.fixture.events().into_iter();
        let changes = events.filter(|(kind, _)| *kind == EventKind::PlaylistImageChanged);
        let ids = changes.map(|(_, event)| {
            let id = |key: &str| event[key].as_i64().unwrap();
            (id("playlist_id"), id("image_id"))
        });
        self.changes.extend(ids);
    }

    /// From now on, everything can be shown.
    fn calm(&mut self) {
        for _ in 0..100 {
            if self
                .fixture
                .wallpapers
                .state
                .lock()
                .unwrap()
                .held
                .is_empty()
            {
                break;
            }
            self.fixture.release_any(0, Behaviour::Shows);
        }
        self.fixture.behaviour(Behaviour::Shows);
        self.fixture.connect(&["A", "B"]);
        self.listen();
    }

    fn check(&mut self) {
        let player = &self.fixture.player;
        assert!(player.starts.is_empty());
        let state = self.fixture.wallpapers.state.lock().unwrap();
        assert!(state.held.is_empty(), "requests without end");
        let mut used = Vec::new();
        for (id, one) in &player.running {
            assert!(one.steps.is_empty() && !one.lost, "{id}");
            for monitor in one.state.applied_to(&state.connected) {
                let shown = state.screen.get(&monitor).copied().unwrap_or_default();
                assert!(
                    one.state.has_taken(&[shown]),
                    "playlist {id} is at {:?}, and {monitor} shows {shown}",
                    one.state.taken()
                );
                used.push(monitor);
            }
            let saved: Option<PlaybackState> = self
                .fixture
                .store
                .read(|c| playlists::state(c, *id))
                .unwrap();
            assert_eq!(saved.unwrap().taken(), one.state.taken());
        }
        used.sort_unstable();
        let all = used.len();
        used.dedup();
        assert_eq!(used.len(), all, "two playlists on a monitor");
        let running = self.fixture.store.read(playlists::running).unwrap();
        assert_eq!(running, player.running_ids());
    }

    /// Each client has its answer. The images of a playlist's steps, in their order, are among those
    /// of its events, in the same order.
    fn check_answers(&self) {
        for answer in &self.others {
            drop(answer.try_recv().expect("an answer"));
        }
        for list in &self.lists {
            let mut told = self.changes.iter().filter(|(id, _)| id == list);
            for (_, answer) in self.steps.iter().filter(|(id, _)| id == list) {
                let Ok(moved) = answer.try_recv().expect("an answer") else {
                    continue;
                };
                let images: Vec<i64> = moved.images.into_values().collect();
                assert!(
                    told.any(|(_, image)| images.contains(image)),
                    "no event for {images:?} in {:?}",
                    self.changes
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 100,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn playlists_are_at_the_pictures_that_are_shown(
        ops in proptest::collection::vec(op(), 1..60)
    ) {
        let mut scene = Scene::new();
        for op in ops {
            scene.apply(op);
        }
        scene.calm();
        scene.check();
        scene.check_answers();
    }
}
