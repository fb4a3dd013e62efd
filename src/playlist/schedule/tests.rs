//! Simulates years, in zones with difficult clock changes.

use super::super::slots::begins;
use super::*;
use crate::wire::{DayTime, MediaType, Tone};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{ToSpan, Zoned};

/// Zone, first and last year. In these years the zone has the difficult changes.
const ZONES: &[(&str, i16, i16)] = &[
    ("UTC", 2024, 2025),
    // Clock changes at night.
    ("Europe/Berlin", 2023, 2026),
    ("America/New_York", 2023, 2026),
    // Southern hemisphere, changes by half an hour.
    ("Australia/Lord_Howe", 2023, 2026),
    // Has no midnight on the day on which summer time begins.
    ("America/Sao_Paulo", 2015, 2019),
    ("Africa/Cairo", 2023, 2026),
    ("Asia/Beirut", 2023, 2026),
    // Is set back from 00:01 to the day before.
    ("America/St_Johns", 1990, 1992),
    // 2011-12-30 does not exist.
    ("Pacific/Apia", 2011, 2012),
    // Summer time, except during Ramadan.
    ("Africa/Casablanca", 2023, 2026),
];

fn zone(name: &str) -> TimeZone {
    TimeZone::get(name).expect("the system's zones (Debian: tzdata)")
}

fn day(times: &[u16]) -> Slots {
    let slot = |(index, &time)| (DayTime::Clock(time), index);
    Slots::Day(times.iter().enumerate().map(slot).collect())
}

fn new_year(zone: &TimeZone, year: i16) -> Zoned {
    zone.to_zoned(jiff::civil::date(year, 1, 1).at(0, 0, 0, 0))
        .unwrap()
}

/// The slot that the hands of a wall clock have passed last. Hands that are set back do not count
/// until they are past the furthest point again.
struct WallClock<'a> {
    slots: &'a Slots,
    furthest: DateTime,
}

impl WallClock<'_> {
    fn index(&mut self, now: &Zoned) -> usize {
        self.furthest = self.furthest.max(now.datetime());
        let date = self.furthest.date();
        match self.slots {
            Slots::Week(images) => {
                let day = date.weekday().to_sunday_zero_offset() as usize;
                day.min(images - 1)
            }
            Slots::Day(slots) => {
                let minute = self.furthest.hour() as u16 * 60 + self.furthest.minute() as u16;
                slots
                    .iter()
                    .rev()
                    .find(|slot| slot.0 <= DayTime::Clock(minute))
                    .unwrap_or(&slots[slots.len() - 1])
                    .1
            }
        }
    }
}

/// Goes from change to change and compares the slot with the wall clock between them. Counts the
/// changes from the first midnight to the last.
fn follow(name: &str, years: (i16, i16), slots: &Slots) -> usize {
    let zone = zone(name);
    let mut now = new_year(&zone, years.0);
    let end = new_year(&zone, years.1 + 1);
    let mut clock = WallClock {
        slots,
        furthest: now.datetime(),
    };
    let mut slot = slots.at(&now, None).unwrap();
    let mut changes = 0;
    while now < end {
        assert_eq!(slot.index, clock.index(&now), "{name} {now}");
        let change = zone.following(now.timestamp() - 48.hours()).next();
        let near = change.is_some_and(|change| change.timestamp() < now.timestamp() + 48.hours());
        now = (&now + if near { 1.minute() } else { 17.minutes() }).min(end.clone());
        while slot.ends.is_some_and(|ends| ends <= now.timestamp()) {
            let ends = slot.ends.unwrap();
            let before = slots
                .at(&(ends - 1.second()).to_zoned(zone.clone()), None)
                .unwrap();
            assert_eq!(before, slot, "{name} {now}");
            let began = slots.at(&ends.to_zoned(zone.clone()), None).unwrap();
            assert_eq!(
                (Some(began.index), began.began),
                (slot.next, ends),
                "{name} {now}"
            );
            assert_eq!(began.previous, Some(slot.index), "{name} {now}");
            slot = began;
            changes += 1;
        }
    }
    changes
}

/// The number of days that existed.
fn days(name: &str, years: (i16, i16)) -> usize {
    let days = jiff::civil::date(years.1 + 1, 1, 1) - jiff::civil::date(years.0, 1, 1);
    days.get_days() as usize - usize::from(name == "Pacific/Apia")
}

#[test]
fn day_slots_follow_wall_clock() {
    for &(name, first, last) in ZONES {
        // The times lie in the gaps and folds of these zones, at their edges, and at midnight.
        let slots = day(&[0, 1, 90, 120, 150, 180, 23 * 60 + 30]);
        let changes = follow(name, (first, last), &slots);
        let most = days(name, (first, last)) * 7;
        // Slots that begin in the same gap are one change; no change may be lost on other days.
        assert!(
            changes <= most && changes >= most - 3 * 16,
            "{name}: {changes} of {most}"
        );
    }
}

#[test]
fn week_days_begin_once_each() {
    for &(name, first, last) in ZONES {
        let changes = follow(name, (first, last), &Slots::Week(7));
        assert_eq!(changes, days(name, (first, last)), "{name}");
    }
}

#[test]
fn last_image_serves_rest_of_week() {
    let berlin = zone("Europe/Berlin");
    let week = Slots::Week(3);
    let at = |text: &str| {
        week.at(&berlin.to_zoned(text.parse().unwrap()).unwrap(), None)
            .unwrap()
    };
    // 2024-02-29, a leap day, is a Thursday.
    let leap_day = at("2024-02-29T12:00");
    assert_eq!(
        (leap_day.index, leap_day.previous, leap_day.next),
        (2, Some(1), Some(0))
    );
    assert_eq!(leap_day.ends.unwrap().to_string(), "2024-03-02T23:00:00Z");
    assert_eq!(at("2024-03-03T00:00").index, 0);
    let one = Slots::Week(1).at(
        &berlin
            .to_zoned("2024-03-03T00:00".parse().unwrap())
            .unwrap(),
        None,
    );
    assert_eq!(
        one.map(|slot| (slot.index, slot.ends, slot.next)),
        Some((0, None, None))
    );
}

#[test]
fn slot_beginnings_in_gaps_and_folds() {
    let check = |name: &str, date: &str, minute, expected: &str| {
        let begun = begins(&zone(name), date.parse().unwrap(), minute).unwrap();
        assert_eq!(begun.to_string(), expected, "{name} {date} {minute}");
    };
    // A skipped minute begins where the gap ends.
    check("Europe/Berlin", "2024-03-31", 150, "2024-03-31T01:00:00Z");
    check("America/Sao_Paulo", "2018-11-04", 0, "2018-11-04T03:00:00Z");
    check("Africa/Cairo", "2024-04-26", 0, "2024-04-25T22:00:00Z");
    check("Asia/Beirut", "2024-03-31", 0, "2024-03-30T22:00:00Z");
    check("Pacific/Apia", "2011-12-30", 600, "2011-12-30T10:00:00Z");
    // A minute that comes twice begins the first time.
    check("Europe/Berlin", "2024-10-27", 150, "2024-10-27T00:30:00Z");
    check("America/New_York", "2024-11-03", 90, "2024-11-03T05:30:00Z");
    // Days without a clock change, in the past and far in the future.
    check("Europe/Berlin", "2024-02-29", 720, "2024-02-29T11:00:00Z");
    check("Europe/Berlin", "2060-07-01", 720, "2060-07-01T10:00:00Z");
}

fn now(zone_name: &str, text: &str, boot: u64) -> ClockReading {
    ClockReading {
        boot: Boottime::default() + Duration::from_secs(boot),
        wall: zone(zone_name).to_zoned(text.parse().unwrap()).unwrap(),
        location: None,
        tone: Tone::Light,
    }
}

#[test]
fn timer_counts_from_last_change() {
    let rule = Rule::Timer(Duration::from_secs(300));
    let since = Boottime::default() + Duration::from_secs(1000);
    let due = since + Duration::from_secs(300);
    let check = |boot, expected| {
        assert_eq!(
            rule.due(since, None, &now("UTC", "2024-01-01T00:00", boot)),
            expected
        );
    };
    check(
        1299,
        Due::Wait(Deadlines {
            boot: Some(due),
            wall: None,
        }),
    );
    check(1300, Due::Step { due, missed: false });
    check(1302, Due::Step { due, missed: false });
    check(1303, Due::Step { due, missed: true });
    check(999_999, Due::Step { due, missed: true });
}

#[test]
fn slots_are_entered_and_missed_slots_once() {
    let rule = Rule::Slots(day(&[360, 480, 1200]));
    let check = |slot, text: &str, expected: Option<(usize, bool)>| {
        let now = now("Europe/Berlin", text, 0);
        let found = match rule.due(Boottime::default(), slot, &now) {
            Due::EnterSlot { slot, missed } => Some((slot, missed)),
            Due::Wait(deadlines) => {
                assert!(deadlines.wall.unwrap() > now.wall.timestamp() && deadlines.boot.is_none());
                None
            }
            step @ Due::Step { .. } => panic!("{step:?}"),
        };
        assert_eq!(found, expected, "{text}");
    };
    check(Some(0), "2024-06-01T07:59:59", None);
    check(Some(0), "2024-06-01T08:00:00.01", Some((1, false)));
    check(Some(0), "2024-06-01T08:00:02", Some((1, false)));
    check(Some(0), "2024-06-01T08:00:02.5", Some((1, true)));
    // Before the first slot of a day, the last slot of the day before is present.
    check(Some(2), "2024-06-01T05:00", None);
    check(None, "2024-06-01T05:00", Some((2, true)));
    // The machine was asleep for several slots, and for days.
    check(Some(0), "2024-06-01T21:00", Some((2, true)));
    check(Some(0), "2024-06-03T06:30", None);
    // The clock is set back: far, and by a moment.
    check(Some(1), "2024-06-01T06:30", Some((0, true)));
    check(Some(1), "2024-06-01T07:59:59.5", None);
    check(None, "2024-06-01T07:59:59.5", Some((0, true)));
}

#[test]
fn rules_are_built_from_configuration() {
    use crate::wire::PlaylistOrder;
    let rule = |kind, times: &[Option<i64>]| {
        let order = PlaylistOrder::Ordered;
        let configuration = PlaylistConfiguration {
            kind,
            interval: 7,
            order,
            always_start_on_first_image: false,
        };
        let item = |time: &Option<i64>| Item {
            image_id: 1,
            media_type: MediaType::Image,
            animated: false,
            time: *time,
            at: None,
            when: None,
        };
        let items: Vec<Item> = times.iter().map(item).collect();
        Rule::from_configuration(&configuration, &items)
    };
    let times = [Some(900), None, Some(5)];
    assert_eq!(rule(PlaylistType::Manual, &times), Rule::Manual);
    assert_eq!(
        rule(PlaylistType::Timer, &times),
        Rule::Timer(Duration::from_secs(7))
    );
    assert_eq!(
        rule(PlaylistType::DayOfWeek, &times),
        Rule::Slots(Slots::Week(3))
    );
    let slots = Slots::Day(vec![(DayTime::Clock(900), 0), (DayTime::Clock(5), 2)]);
    assert_eq!(rule(PlaylistType::TimeOfDay, &times), Rule::Slots(slots));
    assert_eq!(rule(PlaylistType::TimeOfDay, &[None]), Rule::Manual);
}
