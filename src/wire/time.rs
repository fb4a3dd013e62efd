//! Points in time as the API writes them (RFC 3339), and times of the day by the clock or the sun.

use std::fmt;
use std::str::FromStr;

use jiff::tz::{Offset, TimeZone};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::names::words;

const FORMAT: &str = "%Y-%m-%dT%H:%M:%S.%6f%:z";

/// A point in time, kept in the database as microseconds since 1970 (UTC).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(i64);

impl Timestamp {
    pub fn now() -> Self {
        Self(jiff::Timestamp::now().as_microsecond())
    }

    pub fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    pub fn as_micros(self) -> i64 {
        self.0
    }
}

impl From<jiff::Timestamp> for Timestamp {
    fn from(time: jiff::Timestamp) -> Self {
        Self(time.as_microsecond())
    }
}

impl Timestamp {
    /// Appends it as it is shown, in this zone.
    pub(crate) fn write(self, out: &mut Vec<u8>, zone: &TimeZone) {
        // A damaged row may hold any number: it is shown as 1970, not refused.
        let time = jiff::Timestamp::from_microsecond(self.0).unwrap_or_default();
        match written(time, zone.to_offset(time)) {
            Some(text) => out.extend(text),
            None => out.extend(time.to_zoned(zone.clone()).strftime(FORMAT).to_string().bytes()),
        }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity(32);
        self.write(&mut text, &super::zone::local());
        f.write_str(str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

/// As [`FORMAT`] has it, digit by digit: a list has a time in each row. None where more letters are
/// needed: years beyond 9999, and old local times with odd seconds.
fn written(time: jiff::Timestamp, offset: Offset) -> Option<[u8; 32]> {
    let (local, away) = (offset.to_datetime(time), offset.seconds());
    let year = u32::try_from(local.year()).ok().filter(|_| away % 60 == 0)?;
    let mut text = *b"0000-00-00T00:00:00.000000+00:00";
    if away < 0 {
        text[26] = b'-';
    }
    let away = away.unsigned_abs() / 60;
    let small = |number: i8| u32::from(number.unsigned_abs());
    for (range, mut number) in [
        (0..4, year),
        (5..7, small(local.month())),
        (8..10, small(local.day())),
        (11..13, small(local.hour())),
        (14..16, small(local.minute())),
        (17..19, small(local.second())),
        (20..26, local.subsec_nanosecond().unsigned_abs() / 1000),
        (27..29, away / 60),
        (30..32, away % 60),
    ] {
        for digit in text[range].iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
    }
    Some(text)
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse::<jiff::Timestamp>().map(Self::from).map_err(serde::de::Error::custom)
    }
}

/// Minutes of a day.
const DAY: u16 = 24 * 60;

words! {
    /// The events of the sun, twice a day each. Dawn and dusk are civil.
    SunEvent { Sunrise = "sunrise", Sunset = "sunset", Dawn = "dawn", Dusk = "dusk" }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DayTime {
    /// Minutes since midnight.
    Clock(u16),
    /// Minutes after the event; negative for before.
    Sun(SunEvent, i16),
}

/// The forms that [`DayTime`] is parsed from, for messages.
pub(crate) const DAY_TIMES: &str =
    "HH:MM, or sunrise, sunset, dawn or dusk with an offset as -30m or +1h15m";

impl FromStr for DayTime {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        if let Some((hours, minutes)) = text.split_once(':') {
            let hours = two_digits(hours).filter(|&hours| hours < 24).ok_or(())?;
            let minutes = two_digits(minutes).filter(|&minutes| minutes < 60).ok_or(())?;
            return Ok(Self::Clock(hours * 60 + minutes));
        }
        let sign = text.find(['+', '-']);
        let (event, offset) = text.split_at(sign.unwrap_or(text.len()));
        let event = event.parse().map_err(drop)?;
        let minutes = match sign {
            None => 0,
            Some(_) => span(&offset[1..]).ok_or(())?,
        };
        let minutes = minutes.cast_signed();
        Ok(Self::Sun(event, if offset.starts_with('-') { -minutes } else { minutes }))
    }
}

fn two_digits(text: &str) -> Option<u16> {
    let digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

/// `1h15m`, `2h` or `90m`, less than a day.
fn span(text: &str) -> Option<u16> {
    let number = |digits: &str| -> Option<u16> {
        let all = (1..=4).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
        digits.parse().ok().filter(|_| all)
    };
    let (hours, rest) = match text.split_once('h') {
        Some((hours, rest)) => (number(hours)?, rest),
        None => (0, text),
    };
    let minutes = match rest.strip_suffix('m') {
        Some(minutes) => number(minutes)?,
        None if rest.is_empty() && !text.is_empty() => 0,
        None => return None,
    };
    hours.checked_mul(60)?.checked_add(minutes).filter(|&all| all < DAY)
}

impl fmt::Display for DayTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Clock(minute) => write!(f, "{:02}:{:02}", minute / 60, minute % 60),
            Self::Sun(event, 0) => event.fmt(f),
            Self::Sun(event, offset) => {
                let sign = if offset < 0 { '-' } else { '+' };
                write!(f, "{event}{sign}")?;
                match (offset.unsigned_abs() / 60, offset.unsigned_abs() % 60) {
                    (0, minutes) => write!(f, "{minutes}m"),
                    (hours, 0) => write!(f, "{hours}h"),
                    (hours, minutes) => write!(f, "{hours}h{minutes}m"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_jiff_writes_them() {
        let seconds = (0..41).map(|step| -62_000_000_000_i64 + step * 7_777_777_777);
        let offsets = [0, 3600, -12_600, 20_700, -35_999, 49_500, 3_599];
        let (mut plain, mut odd) = (0, 0);
        for (second, away) in seconds.flat_map(|one| offsets.map(|other| (one, other))) {
            let time = jiff::Timestamp::new(second, second as i32 % 1_000_000_000).unwrap();
            let offset = Offset::from_seconds(away).unwrap();
            let expected = time.to_zoned(offset.to_time_zone()).strftime(FORMAT).to_string();
            match written(time, offset) {
                Some(text) => assert_eq!((plain += 1, text.as_slice()).1, expected.as_bytes()),
                None => assert_ne!((odd += 1, expected.len()).1, 32, "{expected}"),
            }
        }
        assert!(plain > 100 && odd > 50, "{plain} {odd}");
    }

    #[test]
    fn timestamps_round_trip_as_text() {
        let time = Timestamp::from_micros(1_790_000_000_123_456);
        let text = serde_json::to_string(&time).unwrap();
        assert!(text.contains(".123456"), "{text}");
        assert_eq!(serde_json::from_str::<Timestamp>(&text).unwrap(), time);
    }

    #[test]
    fn times_of_day_are_read_as_they_are_written() {
        use SunEvent::{Dawn, Dusk, Sunrise, Sunset};
        let check = |text: &str, expected: DayTime| {
            assert_eq!(text.parse(), Ok(expected), "{text}");
            assert_eq!(expected.to_string().parse(), Ok(expected), "{text}");
        };
        check("00:00", DayTime::Clock(0));
        check("23:59", DayTime::Clock(1439));
        check("sunrise", DayTime::Sun(Sunrise, 0));
        check("sunset-30m", DayTime::Sun(Sunset, -30));
        check("dawn+1h15m", DayTime::Sun(Dawn, 75));
        check("dusk-2h", DayTime::Sun(Dusk, -120));
        check("dusk+90m", DayTime::Sun(Dusk, 90));
        for bad in [
            "",
            "7:00",
            "24:00",
            "12:60",
            "noon",
            "sunrise+",
            "sunset30m",
            "dawn+1",
            "dawn+h",
            "dusk+24h",
            "dusk+1m1h",
            "Sunset",
            "sunset +1h",
            "sunset-+1h",
            "sunset+99999999h",
        ] {
            assert_eq!(bad.parse::<DayTime>(), Err(()), "{bad}");
        }
    }
}
