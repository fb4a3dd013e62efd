//! Tests of the slots against sunrise and sunset times of the U.S. Naval Observatory.

use super::*;
use jiff::civil::date;

const LONDON: (f64, f64) = (51.5074, -0.1278);
const REYKJAVIK: (f64, f64) = (64.1466, -21.9426);
const SYDNEY: (f64, f64) = (-33.8688, 151.2093);
const ATLANTA: (f64, f64) = (33.8, -84.4);
const USHUAIA: (f64, f64) = (-54.8019, -68.3030);
const ARCTIC: (f64, f64) = (70.0, 0.0);

fn location((latitude, longitude): (f64, f64)) -> Option<Location> {
    Location::new(Some(latitude), Some(longitude))
}

fn at(text: &str, day: Date, zone: &str, location: Option<Location>) -> u16 {
    let zone = TimeZone::get(zone).expect("the system's zones (Debian: tzdata)");
    minute_of(text.parse().unwrap(), day, &zone, location)
}

/// In minutes: the crate computes in one pass, and the published times are rounded to minutes.
const TOLERANCE: u16 = 4;

/// Dawn, sunrise, sunset and dusk from "Complete Sun and Moon Data for One Day" of the Astronomical
/// Applications Department (<https://aa.usno.navy.mil/data/RS_OneDay>). Its times are in UTC; here
/// they are local, with summer time.
#[test]
fn sun_times_are_those_of_the_naval_observatory() {
    let check = |place_: (f64, f64), zone: &str, day: Date, expected: [&str; 4]| {
        for (event, expected) in ["dawn", "sunrise", "sunset", "dusk"]
            .into_iter()
            .zip(expected)
        {
            let found = at(event, day, zone, location(place_));
            let DayTime::Clock(expected) = expected.parse().unwrap() else {
                panic!()
            };
            let off = found.abs_diff(expected);
            assert!(
                off <= TOLERANCE,
                "{event} at {place_:?} on {day}: {found}, not {expected}"
            );
        }
    };
    let london = ["03:55", "04:43", "21:22", "22:09"];
    check(LONDON, "Europe/London", date(2025, 6, 21), london);
    let reykjavik = ["10:03", "11:22", "15:30", "16:49"];
    check(
        REYKJAVIK,
        "Atlantic/Reykjavik",
        date(2025, 12, 21),
        reykjavik,
    );
    let atlanta = ["06:50", "07:15", "19:56", "20:21"];
    check(ATLANTA, "America/New_York", date(2009, 9, 6), atlanta);
    // The polar night has twilight; for sunrise and sunset the defaults are used.
    let night = ["09:55", "06:00", "18:00", "14:02"];
    check(ARCTIC, "UTC", date(2025, 12, 21), night);
    // The polar day has neither.
    let day = ["06:00", "06:00", "18:00", "18:00"];
    check(ARCTIC, "UTC", date(2025, 6, 21), day);
}

#[test]
fn sun_times_of_the_south_fall_on_their_local_day() {
    let near = |found: u16, expected: u16| {
        assert!(
            found.abs_diff(expected) <= TOLERANCE,
            "{found}, not {expected}"
        );
    };
    // Sunset at 07:51 UTC, sunrise at 19:44 UTC on the day before; standard time.
    let sydney = |event: &str, day| at(event, day, "Australia/Sydney", location(SYDNEY));
    near(sydney("sunset", date(2025, 9, 22)), 17 * 60 + 51);
    near(sydney("sunrise", date(2025, 9, 23)), 5 * 60 + 44);
    // Sunrise at 07:52 UTC, sunset at 01:11 UTC on the day after.
    let ushuaia = |event: &str| {
        at(
            event,
            date(2025, 12, 21),
            "America/Argentina/Ushuaia",
            location(USHUAIA),
        )
    };
    near(ushuaia("sunrise"), 4 * 60 + 52);
    near(ushuaia("sunset"), 22 * 60 + 11);
}

#[test]
fn summer_time_moves_the_sun_by_an_hour() {
    // The last Sunday of March in 2025.
    let (before, after) = (date(2025, 3, 29), date(2025, 3, 30));
    for event in ["dawn", "sunrise", "sunset", "dusk"] {
        let on = |day| at(event, day, "Europe/London", location(LONDON));
        let moved = on(after) - on(before);
        assert!(
            (55..=65).contains(&moved),
            "{event} moves by {moved} minutes"
        );
    }
}

/// On a machine far from the location, the sun is that of the location and the clock that of the zone.
#[test]
fn zone_of_a_traveller_has_every_event_on_every_day() {
    let offset = |zone: &str| {
        let on = date(2025, 6, 21);
        at("sunset", on, zone, location(LONDON))
    };
    // Sunset at 20:22 UTC is at 08:22 on the next day in Auckland, and at 05:22 in Tokyo.
    assert!(offset("Pacific/Auckland").abs_diff(8 * 60 + 22) <= TOLERANCE);
    assert!(offset("Asia/Tokyo").abs_diff(5 * 60 + 22) <= TOLERANCE);
    assert!(offset("Pacific/Honolulu").abs_diff(10 * 60 + 22) <= TOLERANCE);
}

/// An event that comes later every day skips the day on which it passes midnight.
#[test]
fn events_that_pass_midnight_are_at_the_edge_of_the_day_without_one() {
    let days = |event: &str, hours: i8, first: Date| -> Vec<u16> {
        let zone = TimeZone::fixed(jiff::tz::offset(hours));
        let time = event.parse().unwrap();
        let first = first.series(jiff::Span::new().days(1));
        first
            .take(40)
            .map(|day| minute_of(time, day, &zone, location(LONDON)))
            .collect()
    };
    // Sunset at 19:00 UTC in April on a clock five hours ahead: on the 17th at 23:58, then on the
    // 19th at 00:00.
    let sunsets = days("sunset", 5, date(2025, 4, 15));
    assert_eq!(sunsets[..5], [1436, 1438, 1439, 0, 1]);
    // Sunrise at 06:00 UTC in September on a clock six hours behind.
    let sunrises = days("sunrise", -6, date(2025, 9, 27));
    assert_eq!(sunrises[..5], [1436, 1438, 1439, 0, 1]);
}

#[test]
fn offsets_are_kept_and_clamped_into_the_day() {
    let summer = date(2025, 6, 21);
    let london = |text: &str| at(text, summer, "Europe/London", location(LONDON));
    assert_eq!(london("sunset-1h30m"), london("sunset") - 90);
    assert_eq!(london("sunrise+15m"), london("sunrise") + 15);
    assert_eq!((london("dusk+5h"), london("dawn-6h")), (1439, 0));
    assert_eq!(london("07:30"), 450);
    // The defaults are used in the polar day, and if the location is not known.
    assert_eq!(at("sunset+1h", summer, "UTC", location(ARCTIC)), 19 * 60);
    assert_eq!(at("dawn-30m", summer, "Europe/London", None), 5 * 60 + 30);
    // Only dusk and dawn are missing: far in the north the sun sets in June, but it stays light.
    let helsinki = (62.5, 25.0);
    let at_ = |event: &str| at(event, summer, "Europe/Helsinki", location(helsinki));
    assert_eq!((at_("dawn"), at_("dusk")), (at_("sunrise"), at_("sunset")));
    assert!(at_("sunrise") < 5 * 60 && at_("sunset") > 22 * 60);
}

#[test]
fn places_are_on_the_globe() {
    assert!(Location::new(Some(90.0), Some(-180.0)).is_some());
    assert!(Location::new(Some(91.0), Some(0.0)).is_none());
    assert!(Location::new(Some(1.0), None).is_none());
}
