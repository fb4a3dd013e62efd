//! A time of the day: by the clock, or by the sun.

use std::fmt;
use std::str::FromStr;

use super::names::words;

/// Minutes of a day.
const DAY: u16 = 24 * 60;

words! {
    /// What the sun does twice a day. Dawn and dusk are civil.
    SunEvent { Sunrise = "sunrise", Sunset = "sunset", Dawn = "dawn", Dusk = "dusk" }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DayTime {
    /// Minutes since midnight.
    Clock(u16),
    /// And so many minutes later; earlier where they are negative.
    Sun(SunEvent, i16),
}

/// What [`DayTime`] is read from.
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
