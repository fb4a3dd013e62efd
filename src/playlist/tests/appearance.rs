//! Light and dark, and the playlists that change with them.

use super::*;
use crate::playlist::Location;
use crate::wire::{Appearance, AppearanceMode};

impl Fixture {
    fn by_tone(&self, light: usize, dark: usize) -> Result<i64, playlists::Refusal> {
        let item = |number: usize, when| NewPlaylistItem {
            image_id: Some(self.images[number]),
            color: None,
            when: Some(when),
            ..NewPlaylistItem::default()
        };
        let kind = Some(PlaylistType::Appearance);
        let change = PlaylistChange {
            name: Some("tones".to_owned()),
            configuration: NewConfiguration {
                kind,
                ..NewConfiguration::default()
            },
            images: Some(vec![item(light, Tone::Light), item(dark, Tone::Dark)].into()),
            ..PlaylistChange::default()
        };
        self.store.write(|c| playlists::insert(c, &change))
    }

    fn set_mode(&mut self, mode: AppearanceMode) -> Tone {
        self.command(|player, reply| player.set_appearance(mode, reply))
            .unwrap()
            .now
    }

    fn tones(&self) -> Vec<Value> {
        let messages = self.events.receiver().try_iter();
        let told = messages.filter(|message| message.kind == EventKind::AppearanceChanged);
        told.map(|message| serde_json::from_str::<Value>(&message.json).unwrap()["now"].take())
            .collect()
    }
}

#[test]
fn playlist_of_light_and_dark_changes_with_the_appearance() {
    let mut fixture = fixture();
    let id = fixture.by_tone(0, 1).unwrap();
    fixture.set_clock("2024-06-01T12:00", "Europe/Berlin");
    fixture.start(id, &[]).unwrap();
    assert_eq!((fixture.asked(), fixture.tones()), (vec![0], vec![]));
    assert_eq!(fixture.set_mode(AppearanceMode::Dark), Tone::Dark);
    assert_eq!(
        (fixture.asked(), fixture.tones()),
        (vec![1], vec!["dark".into()])
    );
    // Setting it again changes nothing, and only the appearance moves the playlist.
    fixture.set_mode(AppearanceMode::Dark);
    fixture.pass(Duration::from_secs(86_400));
    assert_eq!((fixture.asked(), fixture.tones()), (vec![], vec![]));
    assert!(matches!(
        fixture.act(id, Action::Next),
        Err(Error::NoSteps { .. })
    ));
    // The mode is kept across a restart.
    fixture.restart(SECOND, "other boot");
    let kept = fixture
        .command(|player, reply| reply(Ok(player.appearance())))
        .unwrap();
    assert_eq!(
        kept,
        Appearance {
            mode: AppearanceMode::Dark,
            now: Tone::Dark
        }
    );
    fixture.asked();
    assert_eq!(fixture.set_mode(AppearanceMode::Auto), Tone::Light);
    assert_eq!(
        (fixture.asked(), fixture.tones()),
        (vec![0], vec!["light".into()])
    );
}

#[test]
fn deadline_for_light_and_dark_exists_only_in_mode_auto() {
    let mut fixture = fixture();
    fixture.set_clock("2024-06-01T12:00", "Europe/Berlin");
    fixture.set_mode(AppearanceMode::Auto);
    let evening = at("2024-06-01T18:00", "Europe/Berlin").timestamp();
    assert_eq!(fixture.player.deadlines().wall, Some(evening));
    fixture.set_mode(AppearanceMode::Dark);
    assert_eq!(fixture.player.deadlines().wall, None);
}

#[test]
fn appearance_is_answered_once_its_pictures_are_shown() {
    let mut fixture = fixture();
    let id = fixture.by_tone(0, 1).unwrap();
    fixture.set_clock("2024-06-01T12:00", "Europe/Berlin");
    fixture.start(id, &[]).unwrap();
    let put = |fixture: &mut Fixture, mode| {
        fixture.begin(|player, reply| player.set_appearance(mode, reply))
    };
    fixture.behaviour(Behaviour::Silent);
    let answer = put(&mut fixture, AppearanceMode::Dark);
    // A second client that sets the same mode waits for the same pictures.
    let again = put(&mut fixture, AppearanceMode::Dark);
    assert!(answer.try_recv().is_err() && again.try_recv().is_err());
    fixture.release(Behaviour::Shows);
    for answer in [answer, again] {
        assert_eq!(answer.try_recv().unwrap().unwrap().now, Tone::Dark);
    }
    // A picture that fails ends the wait as well.
    fixture.behaviour(Behaviour::Silent);
    let answer = put(&mut fixture, AppearanceMode::Light);
    assert!(answer.try_recv().is_err());
    fixture.release(Behaviour::Fails);
    assert_eq!(answer.try_recv().unwrap().unwrap().now, Tone::Light);
    // Nobody waits for a playlist that is stopped.
    fixture.behaviour(Behaviour::Silent);
    let answer = put(&mut fixture, AppearanceMode::Dark);
    assert!(answer.try_recv().is_err());
    fixture.act(id, Action::Stop).unwrap();
    assert_eq!(answer.try_recv().unwrap().unwrap().now, Tone::Dark);
}

#[test]
fn auto_appearance_follows_the_sun() {
    let mut fixture = fixture();
    let id = fixture.by_tone(2, 3).unwrap();
    fixture.set_clock("2024-06-01T12:00", "Europe/Berlin");
    fixture.start(id, &[]).unwrap();
    fixture.asked();
    let hours = |number: u64| Duration::from_secs(number * 3600);
    // The location is not known: the tone changes at 18:00 and 06:00.
    fixture.pass(hours(5));
    assert_eq!((fixture.asked(), fixture.tones()), (vec![], vec![]));
    fixture.pass(hours(2));
    assert_eq!(
        (fixture.asked(), fixture.tones()),
        (vec![3], vec!["dark".into()])
    );
    // In Berlin it is still light at that time.
    fixture.time.lock().unwrap().location = Location::new(Some(52.52), Some(13.40));
    fixture.pass(SECOND);
    assert_eq!(
        (fixture.asked(), fixture.tones()),
        (vec![2], vec!["light".into()])
    );
    fixture.pass(hours(3));
    assert_eq!(fixture.asked(), [3]);
    fixture.pass(hours(8));
    assert_eq!(fixture.asked(), [2]);
}

#[test]
fn playlist_of_light_and_dark_needs_exactly_one_image_for_each() {
    let fixture = fixture();
    let make = |kind, tones: &[Option<Tone>]| {
        let item = |when: &Option<Tone>| NewPlaylistItem {
            image_id: Some(fixture.images[0]),
            color: None,
            when: *when,
            ..NewPlaylistItem::default()
        };
        let change = PlaylistChange {
            name: Some(format!("list {}", seed())),
            configuration: NewConfiguration {
                kind: Some(kind),
                ..NewConfiguration::default()
            },
            images: Some(tones.iter().map(item).collect::<Vec<_>>().into()),
            ..PlaylistChange::default()
        };
        fixture
            .store
            .write(|c| playlists::insert(c, &change))
            .map_err(|why| why.to_string())
    };
    let (light, dark) = (Some(Tone::Light), Some(Tone::Dark));
    for bad in [
        &[light][..],
        &[light, light],
        &[light, dark, dark],
        &[light, None],
        &[],
    ] {
        assert!(
            make(PlaylistType::Appearance, bad)
                .unwrap_err()
                .contains("one for dark")
        );
    }
    make(PlaylistType::Appearance, &[dark, light]).unwrap();
    for kind in [PlaylistType::Timer, PlaylistType::TimeOfDay] {
        assert!(
            make(kind, &[light])
                .unwrap_err()
                .contains("not of type appearance")
        );
    }
}
