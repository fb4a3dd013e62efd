//! Reads the file's text against the schema: settings, warnings and missing keys.
//! Pure: it opens no file.

use std::ops::Range;
use std::path::Path;

use serde_json::{Map, Value as Json};
use toml_edit::{Document, Item, TableLike};

use super::overlay::Edit;
use super::schema::{Key, OnInvalid, Section, is_alike};
use super::snapshot::{Config, table_mut};
use super::{Error, Position, toml};
use crate::wire::collate::nearest;

/// A file that could be read.
pub(super) struct Parsed {
    pub(super) config: Config,
    /// Defaults of the keys that the file lacks.
    pub(super) missing: Vec<Edit>,
    /// The warnings that concern a section's settings.
    pub(super) warned: Vec<(Section, String)>,
}

/// Reads a file's text. Wrong types and bad TOML are errors, everything else is a warning.
pub(super) fn read(text: &str, path: &Path) -> Result<Parsed, Error> {
    let invalid = |problems| Error::Invalid {
        path: path.to_owned(),
        problems,
    };
    let document = Document::parse(text).map_err(|first| invalid(syntax_errors(text, &first)))?;
    let mut reader = Reader {
        text,
        problems: Vec::new(),
        warnings: Vec::new(),
        missing: Vec::new(),
    };
    let mut tables = Map::new();
    for section in Section::ALL {
        let table = reader.table(document.as_table(), section);
        let read = reader.section(table, section);
        table_mut(&mut tables, section).extend(read);
    }
    let unknown = |(name, _): &(&str, &Item)| Section::named(name).is_none();
    for (name, _) in document.as_table().iter().filter(unknown) {
        let known = Section::ALL.map(|section| section.path().next().unwrap_or_default());
        let problem = format!(
            "unknown section {name}{}",
            meant("", name, known.into_iter())
        );
        reader.warn(None, key_span(document.as_table(), name), &problem);
    }
    let Reader {
        mut problems,
        mut warnings,
        missing,
        ..
    } = reader;
    if !problems.is_empty() {
        problems.sort();
        // Several sections may be in a table of the wrong type.
        problems.dedup();
        return Err(invalid(problems));
    }
    warnings.sort_by_key(|(line, ..)| *line);
    let warned = warnings
        .iter()
        .filter_map(|(_, section, text)| Some(((*section)?, text.clone())))
        .collect();
    let warnings = warnings.into_iter().map(|(.., text)| text).collect();
    Ok(Parsed {
        config: Config::new(tables, warnings),
        missing,
        warned,
    })
}

/// Returns all errors of a text that is not TOML, in their order.
fn syntax_errors(text: &str, first: &toml_edit::TomlError) -> Vec<(Position, String)> {
    // Only the first line: the rest may quote a secret.
    let problem = |span: Option<Range<usize>>, message: &str| {
        let message = message.lines().next().unwrap_or_default().to_owned();
        (
            Position::from_offset(text, span.map_or(0, |span| span.start)),
            message,
        )
    };
    let all = ::toml::de::DeTable::parse_recoverable(text).1;
    let mut problems: Vec<_> = all
        .iter()
        .map(|error| problem(error.span(), error.message()))
        .collect();
    if problems.is_empty() {
        problems.push(problem(first.span(), first.message()));
    }
    problems.sort();
    problems
}

struct Reader<'a> {
    text: &'a str,
    /// Values of wrong types.
    problems: Vec<(Position, String)>,
    /// With their lines, by which they are sorted at the end, and their sections.
    warnings: Vec<(usize, Option<Section>, String)>,
    missing: Vec<Edit>,
}

impl<'a> Reader<'a> {
    /// The table of a section, if the file has it.
    fn table<'t>(
        &mut self,
        root: &'t dyn TableLike,
        section: Section,
    ) -> Option<&'t dyn TableLike> {
        let mut table = root;
        for (depth, name) in section.path().enumerate() {
            // `-` and `_` are the same in names of backends, as in their keys.
            let found = toml::find(table, name, depth > 0)?;
            let item = table.get(found)?;
            let Some(inner) = item.as_table_like() else {
                let heading = section.path().take(depth + 1).collect::<Vec<_>>().join(".");
                let span = item.span().or_else(|| key_span(table, found));
                self.add_type_error(span, &heading, "a table", item);
                return None;
            };
            table = inner;
        }
        Some(table)
    }

    /// A section's table as the API shows it.
    fn section(&mut self, table: Option<&dyn TableLike>, section: Section) -> Map<String, Json> {
        let mut out = Map::new();
        for key in section.keys() {
            let found = table.and_then(|table| {
                table.get(toml::find(table, key.name, section.is_backend_options())?)
            });
            let value = match found {
                Some(item) => self.value(section, key, item),
                None => key.default.to_json().inspect(|default| {
                    let (key, value) = (key.name.to_owned(), Some(default.clone()));
                    self.missing.push(Edit {
                        section,
                        key,
                        value,
                    });
                }),
            };
            out.extend(value.map(|value| (key.name.to_owned(), value)));
        }
        if let Some(table) = table {
            self.others(table, section, &mut out);
        }
        out
    }

    /// The value that the API shows; nothing if the value is unusable and the key has no default.
    fn value(&mut self, section: Section, key: &Key, item: &Item) -> Option<Json> {
        let name = || format!("{}.{}", section.heading(), key.name);
        let value = toml::to_json(item);
        let infinite = value.is_null() && item.is_float();
        // A TOML float is not an integer, although JSON may write integers like that.
        let float = item.is_float() && key.kind == super::ValueType::Integer;
        if float || !(infinite || key.has_type_of(&value)) {
            self.add_type_error(item.span(), &name(), key.type_name(), item);
            return None;
        }
        let valid = if infinite {
            Err(format!(
                "must be a finite number, not {}",
                item.to_string().trim_start()
            ))
        } else {
            key.validate(&value)
        };
        let Err(problem) = valid else {
            return Some(key.normal(value));
        };
        let (shown, acting) = match key.on_invalid {
            OnInvalid::ActsAs(acting) if !infinite => (Some(value), acting.to_json()),
            OnInvalid::ActsAs(_) | OnInvalid::Reject => {
                (key.default.to_json(), key.default.to_json())
            }
        };
        let kept = section.is_client_s() && !infinite;
        let instead = match acting {
            // The client decides what the value acts as.
            _ if kept => "kept as it is".to_owned(),
            Some(acting) => format!("using {acting}"),
            None => "ignored".to_owned(),
        };
        self.warn(
            Some(section),
            item.span(),
            &format!("{} {problem}; {instead}", name()),
        );
        shown
    }

    /// Unknown keys: kept in open sections, reported as warnings elsewhere.
    fn others(&mut self, table: &dyn TableLike, section: Section, out: &mut Map<String, Json>) {
        let ours = |name: &str| {
            let key = section.key(name).map(|key| key.name);
            let child = section
                .children()
                .map(|(child, _)| child)
                .find(|child| is_alike(child, name));
            // If two names are alike, only the one that was read counts as known.
            key.or(child).is_some_and(|key| {
                toml::find(table, key, section.is_backend_options() || child.is_some())
                    == Some(name)
            })
        };
        for (name, item) in table.iter().filter(|(name, _)| !ours(name)) {
            if section == Section::Workspaces && !item.is_str() {
                let key = format!("{}.{name}", section.heading());
                self.add_type_error(item.span(), &key, "a string", item);
            } else if section.is_open() {
                out.insert(name.to_owned(), toml::to_json(item));
            } else {
                let problem = unknown_setting(section, name);
                self.warn(Some(section), key_span(table, name), &problem);
            }
        }
    }

    fn warn(&mut self, section: Option<Section>, span: Option<Range<usize>>, problem: &str) {
        let line = self.position(span).line;
        self.warnings
            .push((line, section, format!("line {line}: {problem}")));
    }

    fn position(&self, span: Option<Range<usize>>) -> Position {
        Position::from_offset(self.text, span.map_or(0, |span| span.start))
    }

    /// Adds the problem that a value has the wrong type.
    fn add_type_error(
        &mut self,
        span: Option<Range<usize>>,
        key: &str,
        expected: &str,
        item: &Item,
    ) {
        let found = toml::type_name(item);
        let problem = format!("{key} must be {expected}, not {found}");
        self.problems.push((self.position(span), problem));
    }
}

/// The warning or error of a setting that the section lacks, with the known name that may be meant.
pub(super) fn unknown_setting(section: Section, name: &str) -> String {
    let heading = section.heading();
    let known = section.keys().iter().map(|key| key.name);
    let meant = meant(&format!("{heading}."), name, known);
    format!("unknown setting {heading}.{name}{meant}")
}

/// The known name that an unknown one may be, as the end of a message.
fn meant<'a>(prefix: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let meant = nearest(&name.replace('-', "_"), known);
    meant.map_or_else(String::new, |meant| {
        format!("; did you mean {prefix}{meant}?")
    })
}

fn key_span(table: &dyn TableLike, name: &str) -> Option<Range<usize>> {
    table.key(name).and_then(toml_edit::Key::span)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{BackendName, FehMode};
    use serde_json::json;

    fn parsed(text: &str) -> Result<Parsed, String> {
        read(text, Path::new("/c.toml")).map_err(|error| error.to_string())
    }

    #[test]
    fn config_mistakes_say_line_and_column() {
        #[track_caller]
        fn check(text: &str, expected: &str) {
            assert_eq!(parsed(text).err().unwrap_or_default(), expected);
        }
        check(
            "[daemon]\n  log_max_size_mb = \"ten\"\n",
            "/c.toml, line 2, column 21: daemon.log_max_size_mb must be an integer, not a string",
        );
        check(
            "[app]\nimages_per_page = 5.0",
            "/c.toml, line 2, column 19: app.images_per_page must be an integer, \
             not a number with a fraction",
        );
        check(
            "[backend.auto_priorities]\nimage = [\"feh\", 1]",
            "/c.toml, line 2, column 9: backend.auto_priorities.image must be a list of strings, \
             not a list of something else",
        );
        check(
            "backend = 3",
            "/c.toml, line 1, column 11: backend must be a table, not an integer",
        );
        check(
            "[backend]\nawww = true",
            "/c.toml, line 2, column 8: backend.awww must be a table, not true or false",
        );
        check(
            "[[app]]\nx = 1\n",
            "/c.toml, line 1, column 1: app must be a table, not a list of tables",
        );
        let syntax = parsed("[app]\n\ntheme = dark\n").err().unwrap();
        assert!(
            syntax.starts_with("/c.toml, line 3, column 9: "),
            "{syntax}"
        );
        check(
            "[app]\nimages_per_page = true\n[daemon]\nlog_max_size_mb = 1\n[backend]\ntype = 1\nawww = 2",
            "/c.toml, line 2, column 19: app.images_per_page must be an integer, not true or false; \
             line 6, column 8: backend.type must be a string, not an integer; \
             line 7, column 8: backend.awww must be a table, not an integer",
        );
        let syntax = parsed("[app]\ntheme = dark\n[daemon]\nlog_max_files = 1\nx = dark\n")
            .err()
            .unwrap();
        let quoted = "string values must be quoted, expected literal string";
        assert_eq!(
            syntax,
            format!("/c.toml, line 2, column 9: {quoted}; line 5, column 5: {quoted}")
        );
        let syntax = parsed("[app]\n[app]\n").err().unwrap();
        assert!(syntax.starts_with("/c.toml, line 2, column "), "{syntax}");
    }

    #[test]
    fn invalid_values_are_warned_about() {
        #[track_caller]
        fn check(text: &str, section: Section, key: &str, value: Json, warning: &str) {
            let config = parsed(text).unwrap().config;
            assert_eq!(
                config
                    .section(section)
                    .get(key)
                    .cloned()
                    .unwrap_or_default(),
                value
            );
            assert_eq!(config.warnings, [warning].map(str::to_owned));
        }
        let awww = Section::BackendOptions(BackendName::Awww);
        let resize = "line 2: backend.awww.resize must be one of crop, fit, no, stretch, \
                      not \"zoom\"; using \"crop\"";
        check(
            "[backend.awww]\nresize = 'zoom'",
            awww,
            "resize",
            json!("crop"),
            resize,
        );
        let duration = "line 1: backend.awww.transition_duration must be between 0 and 120, \
                        not 121; using 3";
        let text = "backend.awww.transition-duration = 121";
        check(text, awww, "transition_duration", json!(3), duration);
        let unset = "line 1: backend.transition_duration_seconds must be a finite number, \
                     not inf; ignored";
        let text = "backend.transition_duration_seconds = inf";
        check(
            text,
            Section::Backend,
            "transition_duration_seconds",
            json!(null),
            unset,
        );
        let nowhere = "line 1: location.latitude must be between -90 and 90, not 95; ignored";
        check(
            "location.latitude = 95",
            Section::Location,
            "latitude",
            json!(null),
            nowhere,
        );
        let no_word = "line 1: backend.feh.mode must be a finite number, not inf; using \"fill\"";
        let feh = Section::BackendOptions(BackendName::Feh);
        check(
            "backend.feh.mode = inf",
            feh,
            "mode",
            json!("fill"),
            no_word,
        );
        // Stored for the client, and shown to it as stored.
        let preset = "line 1: app.font_preset must be one of bundled, google_sans, system, \
                      custom, not \"x\"; kept as it is";
        check(
            "app.font_preset = 'x'",
            Section::App,
            "font_preset",
            json!("x"),
            preset,
        );
        // Shown as stored, but another value is used.
        let word = "line 1: backend.feh.mode must be one of fill, scale, tile, center, max, \
                    not \"x\"; using \"fill\"";
        check("backend.feh.mode = 'x'", feh, "mode", json!("x"), word);
        let acting = parsed("backend.feh.mode = 'x'").unwrap().config.feh.mode;
        assert_eq!(acting, FehMode::Fill);
        let unknown = "line 2: unknown setting daemon.loglevel; did you mean daemon.log_level?";
        check(
            "[daemon]\nloglevel = 1",
            Section::Daemon,
            "loglevel",
            json!(null),
            unknown,
        );
        check(
            "x = 1",
            Section::App,
            "x",
            json!(null),
            "line 1: unknown section x",
        );
        let twice = "line 3: unknown setting backend.feh.mo-de; did you mean backend.feh.mode?";
        check(
            "[backend.feh]\nmode = 'max'\nmo-de = 1",
            Section::BackendOptions(BackendName::Feh),
            "mode",
            json!("max"),
            twice,
        );
    }

    #[test]
    fn hyphens_are_underscores_in_backend_settings() {
        let text = "[backend.wal_qt]\nduration-ms = 7\n[backend.auto-priorities]\nweb = []\n";
        let config = parsed(text).unwrap().config;
        assert_eq!(config.warnings, Vec::<String>::new());
        assert_eq!(config.wal_qt.duration_ms, 7);
        assert!(config.auto_priorities.web.is_empty());
        // Elsewhere they differ; and a key with the exact name has precedence.
        let other = parsed("[remote-gallery]\napi_key = 'x'\n").unwrap().config;
        assert_eq!(
            other.warnings,
            ["line 1: unknown section remote-gallery; did you mean remote_gallery?"]
        );
        assert_eq!(other.section(Section::RemoteGallery)["api_key"], "");
        let both = "[backend.wal-qt]\nduration-ms = 7\nduration_ms = 8\n";
        assert_eq!(parsed(both).unwrap().config.wal_qt.duration_ms, 8);
    }

    #[test]
    fn keys_of_the_client_are_shown() {
        let text = "[app]\nnew-key = { a = [1, 2.5, 1979-05-27] }\n[app.inner]\nb = true\n";
        let app = parsed(text).unwrap().config.section(Section::App);
        assert_eq!(app["new-key"], json!({"a": [1, 2.5, "1979-05-27"]}));
        assert_eq!(app["inner"], json!({"b": true}));
    }
}
