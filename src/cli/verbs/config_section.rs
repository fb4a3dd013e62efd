//! Sections of the configuration, as the API returns them.

use std::fmt::Display;

use serde_json::{Map, Value, json};

use super::super::Error;
use super::super::call::Call;
use super::super::connection::{Connection, RequestPath};

/// A section of the file, as the API has it.
pub(super) struct Section {
    pub(super) place: RequestPath,
    /// What is around its settings in the bodies of that place.
    inside: &'static [&'static str],
}

impl Section {
    pub(super) fn of(name: &str, has_key: bool) -> Self {
        let at = |place: &[&dyn Display]| Self { place: RequestPath::new(place), inside: &[] };
        match name.strip_prefix("backend.") {
            // They have no place of their own.
            Some("auto_priorities") => {
                Self { inside: &["backend", "auto_priorities"], ..at(&[&"config"]) }
            }
            Some(backend) => at(&[&"config", &"backends", &backend]),
            None if name == "backend" && has_key => {
                Self { inside: &["backend"], ..at(&[&"config"]) }
            }
            // `backend` itself is no section of the API: the daemon says so.
            None => at(&[&"config", &name]),
        }
    }

    /// Its settings out of a body.
    pub(super) fn unwrap(&self, body: Map<String, Value>) -> Map<String, Value> {
        let restart = body.get("restart_required").cloned();
        let mut settings = self.inside.iter().fold(body, |mut body, table| {
            match body.get_mut(*table).map(Value::take) {
                Some(Value::Object(inner)) => inner,
                _ => Map::new(),
            }
        });
        if !self.inside.is_empty() {
            settings.extend(restart.map(|restart| ("restart_required".to_owned(), restart)));
        }
        settings
    }

    pub(super) fn wrap(&self, changes: Value) -> Value {
        self.inside.iter().rev().fold(changes, |inner, table| json!({ *table: inner }))
    }
}

/// The settings of a section as they are now; with a key also those of `[backend]` itself.
pub(super) fn settings(
    connection: &Connection,
    section: &str,
    has_key: bool,
) -> Result<Map<String, Value>, Error> {
    let at = Section::of(section, has_key);
    let answer = connection.get(&at.place).map_err(|error| elsewhere(section, error))?;
    Ok(at.unwrap(answer.read()?))
}

/// Where the settings are that have no section of this name.
fn elsewhere(section: &str, error: Error) -> Error {
    match section {
        "backend" if error.status() == Some(404) => error.hint(
            "its settings are named backend.type, backend.selection_mode, \
             backend.transition_duration_seconds; `murald config get` shows all",
        ),
        _ if error.status() == Some(404) => {
            error.hint("a backend's are named backend.NAME; `murald config get` shows all")
        }
        _ => error,
    }
}

/// What a word names: a section, or a section and a key of it. The longest section wins.
pub(super) fn split(call: &Call, word: &str) -> (String, Option<String>) {
    let settings = (call.settings)();
    let sections = settings.iter().map(|setting| setting.section.as_str());
    // In the headings of backends hyphens and underscores are the same, as in the file.
    let spelled = |text: &str, section: &str| match section.starts_with("backend.") {
        true => text.replace('_', "-") == section.replace('_', "-"),
        false => text == section,
    };
    let inside = |section: &&str| {
        word.split_at_checked(section.len()).is_some_and(|(start, rest)| {
            spelled(start, section) && (rest.is_empty() || rest.starts_with('.'))
        })
    };
    match sections.filter(inside).max_by_key(|section| section.len()) {
        Some(section) => {
            let key = word[section.len()..].strip_prefix('.').map(str::to_owned);
            (section.to_owned(), key)
        }
        None => (word.to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_has_its_way_through_the_api() {
        #[track_caller]
        fn check(section: &str, place: &[&dyn std::fmt::Display], body: Value) {
            let section = Section::of(section, false);
            assert_eq!(section.place, RequestPath::new(place));
            assert_eq!(section.wrap(json!({"k": 1})), body);
            let Value::Object(body) = body else { panic!("an object") };
            assert_eq!(Value::from(section.unwrap(body)), json!({"k": 1}));
        }
        check("app", &[&"config", &"app"], json!({"k": 1}));
        check("backend.awww", &[&"config", &"backends", &"awww"], json!({"k": 1}));
        check("backend", &[&"config", &"backend"], json!({"k": 1}));
        assert_eq!(Section::of("backend", true).wrap(json!(1)), json!({"backend": 1}));
        let priorities = json!({"backend": {"auto_priorities": {"k": 1}}});
        check("backend.auto_priorities", &[&"config"], priorities);
    }
}
