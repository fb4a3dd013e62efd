//! Serialises words of command lines and paths as JSON: as a string, or as a list of bytes if they
//! are not UTF-8. For serde's `with`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Text(#[serde(with = "super::text")] pub(super) OsString);

impl<T: AsRef<OsStr>> From<&T> for Text {
    fn from(word: &T) -> Self {
        Self(word.as_ref().to_owned())
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Words {
    Text(String),
    Bytes(Vec<u8>),
}

pub(crate) fn serialize<S: Serializer>(word: &OsString, to: S) -> Result<S::Ok, S::Error> {
    match word.to_str() {
        Some(text) => to.serialize_str(text),
        None => word.as_bytes().serialize(to),
    }
}

pub(crate) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<OsString, D::Error> {
    Ok(match Words::deserialize(from)? {
        Words::Text(text) => text.into(),
        Words::Bytes(bytes) => OsString::from_vec(bytes),
    })
}
