//! Points in time as the API writes them (RFC 3339), and times of the day by the clock or the sun.

use std::fmt;
use std::str::FromStr;

use jiff::fmt::temporal::DateTimePrinter;
use jiff::tz::TimeZone;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::names::words;

/// `2026-07-01T12:00:00.000000+02:00`
const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(6));

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

    /// Appends the time as the API shows it, in this zone.
    fn write(self, out: &mut Vec<u8>, zone: &TimeZone) {
        // A damaged row may hold any number: it is shown as 1970, not refused.
        let time = jiff::Timestamp::from_microsecond(self.0).unwrap_or_default();
        let printed = PRINTER.print_timestamp_with_offset(&time, zone.to_offset(time), out);
        printed.expect("a Vec takes all");
    }
}

impl From<jiff::Timestamp> for Timestamp {
    fn from(time: jiff::Timestamp) -> Self {
        Self(time.as_microsecond())
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity(32);
        self.write(&mut text, &super::zone::local());
        f.write_str(str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse::<jiff::Timestamp>()
            .map(Self::from)
            .map_err(serde::de::Error::custom)
    }
}

/// Minutes of a day.
const DAY: u16 = 24 * 60;

words! {
    /// The events of the sun, each once a day. Dawn and dusk are civil.
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
            let minutes = two_digits(minutes)
                .filter(|&minutes| minutes < 60)
                .ok_or(())?;
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
        Ok(Self::Sun(
            event,
            if offset.starts_with('-') {
                -minutes
            } else {
                minutes
            },
        ))
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
    hours
        .checked_mul(60)?
        .checked_add(minutes)
        .filter(|&all| all < DAY)
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
    fn times_have_all_their_digits() {
        let check = |micros: i64, seconds: i32, expected: &str| {
            let zone = TimeZone::fixed(jiff::tz::Offset::from_seconds(seconds).unwrap());
            let mut out = Vec::new();
            Timestamp::from_micros(micros).write(&mut out, &zone);
            assert_eq!(out, expected.as_bytes());
        };
        check(1_790_000_000_000_000, 0, "2026-09-21T14:13:20.000000+00:00");
        check(
            1_790_000_000_000_070,
            -12_600,
            "2026-09-21T10:43:20.000070-03:30",
        );
        check(i64::MAX, 7200, "1970-01-01T02:00:00.000000+02:00");
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
