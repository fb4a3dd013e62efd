//! Tests playlists in a real database.

use super::*;
use crate::store::Store;
use crate::store::images::tests::picture;
use crate::store::tests::scratch;
use crate::store::{self, images, purge};
use crate::wire::{PlaylistOrder, PlaylistType};
use serde_json::json;

fn pictures(store: &Store, number: usize) -> Vec<i64> {
    let insert = |at: usize| {
        let name = format!("p{at}");
        let mut picture = picture(&name, at as u64);
        picture.checksum[..8].copy_from_slice(&(at as u64).to_le_bytes());
        store.write(|c| images::insert(c, &picture)).unwrap()
    };
    (0..number).map(insert).collect()
}

fn change(name: &str, ids: &[i64]) -> PlaylistChange {
    let item = |&image_id: &i64| NewPlaylistItem {
        image_id: Some(image_id),
        color: None,
        media_type: None,
        time: None,
        at: None,
        when: None,
    };
    PlaylistChange {
        name: Some(name.to_owned()),
        images: Some(ids.iter().map(item).collect::<Vec<_>>().into()),
        ..PlaylistChange::default()
    }
}

fn record(store: &Store, id: i64) -> Playlist {
    store.read(|c| get(c, id)).unwrap().unwrap()
}

#[test]
fn new_playlist_has_default_values() {
    let (_directory, store) = scratch();
    let ids = pictures(&store, 3);
    let id = store
        .write(|c| insert(c, &change("one", &[ids[2], ids[0], ids[2]])))
        .unwrap();
    let playlist = record(&store, id);
    assert_eq!(playlist.name, "one");
    assert_eq!(playlist.configuration, rules::DEFAULT);
    let images: Vec<_> = playlist.images.iter().map(|item| item.image_id).collect();
    assert_eq!(images, [ids[2], ids[0], ids[2]]);
    assert_eq!(playlist.playback, None);
    assert_eq!(store.read(list).unwrap(), [playlist]);
    store.write(|c| delete(c, id)).unwrap();
    assert!(matches!(
        store.write(|c| delete(c, id)),
        Err(Refusal::NoPlaylist { .. })
    ));
    let next = store.write(|c| insert(c, &change("one", &[]))).unwrap();
    assert!(next > id, "ids are never used again");
}

#[test]
fn change_is_merged_or_refused_as_a_whole() {
    let (_directory, store) = scratch();
    let ids = pictures(&store, 2);
    let id = store.write(|c| insert(c, &change("one", &ids))).unwrap();
    store.write(|c| insert(c, &change("two", &[]))).unwrap();
    let check =
        |configuration: NewConfiguration, images: Option<&[(i64, Option<i64>)]>, expected: &str| {
            let before = record(&store, id);
            let item = |&(image_id, time): &_| NewPlaylistItem {
                image_id: Some(image_id),
                color: None,
                media_type: None,
                time,
                at: None,
                when: None,
            };
            let images = images.map(|images| images.iter().map(item).collect::<Vec<_>>().into());
            let change = PlaylistChange {
                name: None,
                configuration,
                images,
                ..PlaylistChange::default()
            };
            let found = store
                .write(|c| update(c, id, &change))
                .map_err(|refusal| refusal.to_string());
            assert_eq!(found, Err(String::from(expected)));
            assert_eq!(record(&store, id), before, "{expected}");
        };
    let kind = NewConfiguration {
        kind: Some(PlaylistType::TimeOfDay),
        ..Default::default()
    };
    let interval = |seconds| NewConfiguration {
        interval: Some(seconds),
        ..Default::default()
    };
    let none = NewConfiguration::default;
    let range = "the interval must be 1 to 31536000 seconds, not 0";
    check(interval(0), None, range);
    check(
        none(),
        Some(&[(77, None), (ids[0], None), (99, None)]),
        "no image with ID 77, 99",
    );
    let range = "the time of an image must be 0 to 1439 minutes since midnight, not 1440";
    check(kind.clone(), Some(&[(ids[0], Some(1440))]), range);
    check(
        kind.clone(),
        Some(&[(ids[0], Some(-1))]),
        &range.replace("1440", "-1"),
    );
    check(
        kind.clone(),
        None,
        &format!(
            "p0 ({}) needs a time, because the type of the playlist is time_of_day",
            ids[0]
        ),
    );
    let same = [(ids[0], Some(61)), (ids[1], Some(61))];
    check(kind.clone(), Some(&same), "two images have the time 01:01");
    let taken = store.write(|c| update(c, id, &change("two", &[])));
    assert!(matches!(taken, Err(Refusal::Taken { .. })));

    let order = NewConfiguration {
        order: Some(PlaylistOrder::Random),
        ..interval(31_536_000)
    };
    let good = PlaylistChange {
        name: None,
        configuration: order,
        ..PlaylistChange::default()
    };
    store.write(|c| update(c, id, &good)).unwrap();
    let after = record(&store, id);
    assert_eq!((after.name.as_str(), after.images.len()), ("one", 2));
    assert_eq!(after.configuration.kind, PlaylistType::Timer);
    assert_eq!(after.configuration.order, PlaylistOrder::Random);
}

#[test]
fn position_follows_its_image() {
    let (_directory, store) = scratch();
    let ids = pictures(&store, 3);
    let id = store.write(|c| insert(c, &change("one", &ids))).unwrap();
    let state = json!({
        "index": 2, "image_id": ids[2], "paused": true, "monitors": ["DP-1"], "mode": "individual",
        "kept by the conductor": [1],
    });
    store.write(|c| save(c, id, true, &state)).unwrap();
    let place = |store: &Store| record(store, id).playback.unwrap();
    assert_eq!(
        (place(&store).current_index, place(&store).was_running),
        (2, true)
    );
    assert_eq!(store.read(running).unwrap(), [id]);
    store.write(|c| purge::delete(c, &ids[..1], false)).unwrap();
    assert_eq!(place(&store).current_index, 1);
    assert_eq!(store.read(|c| image_ids(c, id)).unwrap(), ids[1..]);
    store.write(|c| purge::delete(c, &ids[2..], false)).unwrap();
    assert_eq!(place(&store).current_index, 0);
    assert_eq!(
        store
            .read(|c| super::state::<serde_json::Value>(c, id))
            .unwrap(),
        Some(state)
    );
    // Saving does nothing for a deleted playlist.
    store.write(|c| save(c, 77, true, &0)).unwrap();
    // A damaged state loses only the position.
    store
        .write(|c| Ok::<_, store::Error>(c.execute("UPDATE playback SET state = '{'", [])?))
        .unwrap();
    assert_eq!(record(&store, id).playback, None);
}

#[test]
fn nearest_index_prefers_the_nearest_of_equal_images() {
    let check = |index, image_id, ids: &[i64], expected| {
        assert_eq!(
            nearest_index(ids.iter().copied(), image_id, index),
            expected
        );
    };
    check(2, 5, &[5, 1, 5], 2);
    check(1, 5, &[5, 1, 1, 5], 0);
    check(3, 9, &[5, 1, 1, 5], 3);
    check(7, 9, &[5, 1], 1);
}

#[test]
fn location_is_required_only_if_images_or_type_change() {
    let (_directory, store) = scratch();
    let ids = pictures(&store, 1);
    let dawn = |located| PlaylistChange {
        images: Some(
            vec![NewPlaylistItem {
                image_id: Some(ids[0]),
                color: None,
                media_type: None,
                time: None,
                at: Some("sunrise".to_owned()),
                when: None,
            }]
            .into(),
        ),
        configuration: NewConfiguration {
            kind: Some(PlaylistType::TimeOfDay),
            ..NewConfiguration::default()
        },
        located,
        ..change("by the sun", &[])
    };
    let refused = store.write(|c| insert(c, &dawn(false)));
    assert!(
        matches!(refused, Err(Refusal::NoLocation { .. })),
        "{refused:?}"
    );
    let id = store.write(|c| insert(c, &dawn(true))).unwrap();
    let put = |what: PlaylistChange| store.write(|c| update(c, id, &what));
    let plain = |kind| PlaylistChange {
        configuration: NewConfiguration {
            kind,
            ..NewConfiguration::default()
        },
        ..PlaylistChange::default()
    };
    // A new name does not require a location.
    let renamed = PlaylistChange {
        name: Some("dawn".to_owned()),
        ..plain(None)
    };
    assert!(put(renamed.clone()).unwrap());
    let before = record(&store, id);
    assert!(!put(renamed).unwrap(), "it is called so");
    assert!(!put(plain(Some(PlaylistType::TimeOfDay))).unwrap());
    assert_eq!(record(&store, id), before);
    assert!(put(plain(Some(PlaylistType::Timer))).unwrap());
    let back = put(plain(Some(PlaylistType::TimeOfDay)));
    assert!(matches!(back, Err(Refusal::NoLocation { .. })), "{back:?}");
    assert!(!put(plain(Some(PlaylistType::Timer))).unwrap());
}

#[test]
fn shows_everywhere_tells_whether_a_playlist_shows_an_image() {
    let (_directory, store) = scratch();
    let id = store.write(|c| insert(c, &change("one", &[]))).unwrap();
    let everywhere = |runs, state: serde_json::Value| {
        store.write(|c| save(c, id, runs, &state)).unwrap();
        store.read(shows_everywhere).unwrap()
    };
    assert_eq!(store.read(shows_everywhere).unwrap(), None);
    assert_eq!(
        everywhere(true, json!({ "everywhere": true, "shown_on": ["A"] })),
        Some(true)
    );
    assert_eq!(
        everywhere(true, json!({ "everywhere": true, "shown_on": [] })),
        Some(false)
    );
    assert_eq!(everywhere(true, json!({ "everywhere": true })), Some(false));
    assert_eq!(
        everywhere(false, json!({ "everywhere": true, "shown_on": ["A"] })),
        None
    );
    assert_eq!(
        everywhere(true, json!({ "everywhere": false, "shown_on": ["A"] })),
        None
    );
    assert_eq!(everywhere(true, json!({})), None);
    let spoil = "UPDATE playback SET state = '{'";
    store
        .write(|c| Ok::<_, Error>(c.execute(spoil, [])?))
        .unwrap();
    assert_eq!(store.read(shows_everywhere).unwrap(), None);
}

#[test]
fn refusal_lists_ids_and_has_a_source() {
    use std::error::Error as _;
    let (_directory, store) = scratch();
    let of = |last: i64| {
        let ids: Vec<i64> = (1..=last).collect();
        store
            .write(|c| insert(c, &change("one", &ids)))
            .unwrap_err()
            .to_string()
    };
    assert!(of(20).ends_with(", 20") && of(21).ends_with(", 20 and more"));
    assert!(of(22).ends_with(", 20 and more"));
    assert!(of(10_001).ends_with("at most 10000 images, not 10001"));
    let unwritten = store.read(|c| insert(c, &change("one", &[]))).unwrap_err();
    assert!(
        matches!(&unwritten, Refusal::Store(error) if error.is_storage()),
        "{unwritten:?}"
    );
    assert!(unwritten.source().is_some() && Refusal::Tones.source().is_none());
}

#[test]
fn deletion_counts_the_playlists_of_each_image() {
    let (_directory, store) = scratch();
    let ids = pictures(&store, 3);
    for (name, members) in [("one", &ids[..2]), ("two", &ids[1..])] {
        store.write(|c| insert(c, &change(name, members))).unwrap();
    }
    let gone = store.write(|c| purge::delete(c, &ids, false)).unwrap();
    assert_eq!(gone.references.playlists, 4, "each picture's own");
}
