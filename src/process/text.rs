//! Words of command lines in records: JSON has no place for other bytes than UTF-8.

use std::ffi::{OsStr, OsString};

use serde::{Deserialize, Serialize};

/// A word of a command line in JSON: a string, or a list of bytes where it is not UTF-8.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Text(#[serde(with = "text")] pub(super) OsString);

impl<T: AsRef<OsStr>> From<&T> for Text {
    fn from(word: &T) -> Self {
        Self(word.as_ref().to_owned())
    }
}

pub(super) mod text {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Words {
        Text(String),
        Bytes(Vec<u8>),
    }

    pub(in crate::process) fn serialize<S: Serializer>(
        word: &OsString,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match word.to_str() {
            Some(text) => to.serialize_str(text),
            None => word.as_bytes().serialize(to),
        }
    }

    pub(in crate::process) fn deserialize<'a, D: Deserializer<'a>>(
        from: D,
    ) -> Result<OsString, D::Error> {
        Ok(match Words::deserialize(from)? {
            Words::Text(text) => text.into(),
            Words::Bytes(bytes) => OsString::from_vec(bytes),
        })
    }
}
