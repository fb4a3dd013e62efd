//! The body of every answer that is not a success.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::num::IntErrorKind;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Unknown;
use super::names::words;

words! {
    /// Failures of wallpaper routes that a client can act upon.
    ErrorCode { IncompatibleBackend = "incompatible_backend", NoBackend = "no_backend" }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ErrorBody {
    pub error: String,
    /// Equals the HTTP status.
    pub code: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<ErrorCode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

#[derive(Debug, Default)]
pub struct Parameters<'a> {
    pairs: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

/// A value that its parameter does not accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadParameter {
    pub(crate) name: String,
    pub(crate) value: String,
    /// A sentence that says what is allowed.
    pub(crate) allowed: String,
}

impl BadParameter {
    pub(crate) fn new(name: &str, value: &str, allowed: impl Display) -> Self {
        Self {
            name: name.to_owned(),
            value: value.to_owned(),
            allowed: allowed.to_string(),
        }
    }

    pub(crate) fn word(name: &str, unknown: &Unknown) -> Self {
        let allowed = format!("{name} must be one of {}", unknown.allowed.join(", "));
        Self::new(name, &unknown.value, allowed)
    }
}

impl Display for BadParameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} cannot be {:?}: {}",
            self.name, self.value, self.allowed
        )
    }
}

impl std::error::Error for BadParameter {}

impl<'a> Parameters<'a> {
    /// Parameters of names and values that are decoded already.
    pub(crate) fn from_pairs(pairs: Vec<(Cow<'a, str>, Cow<'a, str>)>) -> Self {
        Self { pairs }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.pairs
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| &**value)
    }

    /// An enumerated parameter.
    pub(crate) fn word<T: FromStr<Err = Unknown>>(
        &self,
        name: &str,
    ) -> Result<Option<T>, BadParameter> {
        let parsed = self.get(name).map(str::parse).transpose();
        parsed.map_err(|unknown| BadParameter::word(name, &unknown))
    }

    /// Any other parameter with a type; `allowed` says what it may be.
    pub fn value<T: FromStr>(
        &self,
        name: &str,
        allowed: impl Display,
    ) -> Result<Option<T>, BadParameter> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        match text.parse() {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(BadParameter::new(name, text, allowed)),
        }
    }

    /// The id of something; ids begin with 1.
    pub(crate) fn id(
        &self,
        name: &str,
        allowed: impl Display,
    ) -> Result<Option<i64>, BadParameter> {
        let id = self
            .get(name)
            .map(|text| text.parse().ok().filter(|id| *id >= 1).ok_or(text));
        id.transpose()
            .map_err(|text| BadParameter::new(name, text, allowed))
    }

    /// An integer parameter between two bounds, both included.
    pub(crate) fn integer(
        &self,
        name: &str,
        from: u64,
        to: u64,
    ) -> Result<Option<u64>, BadParameter> {
        let allowed = || match to {
            u64::MAX => format!("{name} must be an integer from {from}"),
            _ => format!("{name} must be an integer from {from} to {to}"),
        };
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        let number = match text.parse::<u64>() {
            // A number beyond 64 bits counts as the largest.
            Err(error) if *error.kind() == IntErrorKind::PosOverflow => Some(u64::MAX),
            number => number.ok(),
        };
        let number = number.filter(|number| (from..=to).contains(number));
        number
            .map(Some)
            .ok_or_else(|| BadParameter::new(name, text, allowed()))
    }

    /// The items of a comma-separated list; `None` if the parameter is absent. Empty items are
    /// malformed.
    pub(crate) fn list<T>(
        &self,
        name: &str,
        item: impl Fn(&str) -> Result<T, BadParameter>,
    ) -> Result<Option<Vec<T>>, BadParameter> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        let items = text.split(',').map(|part| match part.trim() {
            "" => Err(BadParameter::new(
                name,
                text,
                format!("{name} must be a list without empty items"),
            )),
            part => item(part),
        });
        items.collect::<Result<_, _>>().map(Some)
    }
}
