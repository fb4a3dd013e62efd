//! A position on a monitor, or of the part of a picture that is shown: pure.

use std::fmt;
use std::str::FromStr;

use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// In percent, from the left and from the top.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    x: f64,
    y: f64,
}

/// `x` and `y` are never NaN.
impl Eq for Position {}

const MIDDLE: f64 = 50.0;

impl Position {
    pub const CENTER: Self = Self {
        x: MIDDLE,
        y: MIDDLE,
    };
    pub const WORDS: &'static [&'static str] = &[
        "center",
        "top",
        "bottom",
        "left",
        "right",
        "top-left",
        "top-right",
        "bottom-left",
        "bottom-right",
    ];
    /// The allowed values, for messages.
    pub const FORM: &'static str = "center, top, bottom, left, right, top-left, top-right, bottom-left, \
        bottom-right, or X%,Y%, each from 0% to 100%";

    /// From 0, the left, to 1.
    pub fn x(self) -> f64 {
        self.x / 100.0
    }

    /// From 0, the top, to 1.
    pub fn y(self) -> f64 {
        self.y / 100.0
    }

    fn named(word: &str) -> Self {
        let side = |low, high| match (word.contains(low), word.contains(high)) {
            (true, _) => 0.0,
            (_, true) => 100.0,
            _ => MIDDLE,
        };
        Self {
            x: side("left", "right"),
            y: side("top", "bottom"),
        }
    }
}

impl FromStr for Position {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if Self::WORDS.contains(&text) {
            return Ok(Self::named(text));
        }
        let percent = |part: &str| {
            let percent: f64 = part.trim().strip_suffix('%')?.parse().ok()?;
            // Adding 0 turns -0 into 0.
            (0.0..=100.0).contains(&percent).then_some(percent + 0.0)
        };
        let point = |(x, y): (&str, &str)| {
            Some(Self {
                x: percent(x)?,
                y: percent(y)?,
            })
        };
        text.split_once(',').and_then(point).ok_or(Self::FORM)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::WORDS.iter().find(|word| Self::named(word) == *self) {
            Some(word) => f.write_str(word),
            None => write!(f, "{}%,{}%", self.x, self.y),
        }
    }
}

impl Serialize for Position {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Position {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let wrong = |form| D::Error::invalid_value(Unexpected::Str(&text), &form);
        text.parse().map_err(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_and_written() {
        for (good, x, y, written) in [
            ("center", 0.5, 0.5, "center"),
            ("top-right", 1.0, 0.0, "top-right"),
            ("bottom", 0.5, 1.0, "bottom"),
            ("0%,50%", 0.0, 0.5, "left"),
            ("25%,100%", 0.25, 1.0, "25%,100%"),
            ("-0%, 7.5%", 0.0, 0.075, "0%,7.5%"),
        ] {
            let position: Position = good.parse().unwrap();
            assert_eq!((position.x(), position.y()), (x, y), "{good}");
            assert_eq!(position.to_string(), written);
            assert_eq!(written.parse(), Ok(position));
        }
        for bad in [
            "", "middle", "0.5,0.5", "50%", "-1%,0%", "101%,0%", "a%,b%", "nan%,0%",
        ] {
            assert!(bad.parse::<Position>().is_err(), "{bad}");
        }
        let error = serde_json::from_str::<Position>("\"middle\"")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(&format!("expected {}", Position::FORM)),
            "{error}"
        );
    }
}
