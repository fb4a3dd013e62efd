//! What is wrong with a file.

use crate::media::error::Error;
use crate::wire::Format;

pub(super) type Damage = &'static str;

pub(super) const NO_CODE: Damage = "its data are no code";

pub(super) fn damaged(what: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::damaged(Format::Jpg, what)
}
