//! The `settings!` macro: from a section's list of keys to its struct.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};

use super::{Key, key::OnInvalid};

/// Reads a section's struct from its table. A missing value becomes the default; an invalid one
/// becomes the default, or the value that the key says it acts as.
pub(super) fn typed<T: DeserializeOwned>(keys: &[Key], table: &Map<String, Json>) -> T {
    let values = keys
        .iter()
        .filter_map(|key| Some((key.name.to_owned(), effective(key, table)?)));
    serde_json::from_value(Json::Object(values.collect()))
        .expect("a section's struct takes what its keys allow")
}

fn effective(key: &Key, table: &Map<String, Json>) -> Option<Json> {
    match table.get(key.name).filter(|value| key.has_type_of(value)) {
        None => key.default.to_json(),
        Some(value) if key.validate(value).is_ok() => Some(key.normal(value.clone())),
        Some(_) => match key.on_invalid {
            OnInvalid::Reject => key.default.to_json(),
            OnInvalid::ActsAs(value) => value.to_json(),
        },
    }
}

/// A section: one list gives the struct and its keys. The comment on a field is its meaning.
macro_rules! settings {
    ($(#[$attr:meta])* $section:ident {
        $($(#[doc = $meaning:literal])+ $field:ident $(as $name:literal)?: $type:ty = $key:expr),+
        $(,)?
    }) => {
        $(#[$attr])*
        #[derive(Clone, PartialEq, ::serde::Deserialize)]
        pub struct $section {
            $($(#[doc = $meaning])+ $(#[serde(rename = $name)])? pub $field: $type),+
        }

        impl $section {
            pub(crate) const KEYS: &'static [$crate::config::Key] = &[
                $($crate::config::Key {
                    name: $crate::config::schema::settings_macro::name!($field $(as $name)?),
                    meaning: concat!($($meaning),+),
                    ..$key
                }),+
            ];

            pub(crate) fn read(table: &::serde_json::Map<String, ::serde_json::Value>) -> Self {
                $crate::config::schema::settings_macro::typed(Self::KEYS, table)
            }
        }

        impl Default for $section {
            fn default() -> Self {
                Self::read(&::serde_json::Map::new())
            }
        }
    };
}
pub(super) use settings;

macro_rules! name {
    ($field:ident as $name:literal) => {
        $name
    };
    ($field:ident) => {
        stringify!($field)
    };
}
pub(super) use name;
