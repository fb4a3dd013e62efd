//! Points in time as the API writes them: RFC 3339, six fractional digits, the local offset.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

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

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A damaged row may hold any number: it is shown as 1970, not refused.
        let time = jiff::Timestamp::from_microsecond(self.0).unwrap_or_default();
        write!(f, "{}", time.to_zoned(super::zone::local()).strftime("%Y-%m-%dT%H:%M:%S.%6f%:z"))
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
        text.parse::<jiff::Timestamp>().map(Self::from).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_round_trip_as_text() {
        let time = Timestamp::from_micros(1_790_000_000_123_456);
        let text = serde_json::to_string(&time).unwrap();
        assert!(text.contains(".123456"), "{text}");
        assert_eq!(serde_json::from_str::<Timestamp>(&text).unwrap(), time);
    }
}
