//! One step of a migration, and the line that shows it.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::super::terminal::{count, span};

/// One thing that another program's configuration asks for.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::cli) enum Step {
    Watch(PathBuf),
    Playlist(NewPlaylist),
    /// A tag that these pictures are to have.
    Tag(String, Pictures),
    Setting {
        section: String,
        key: String,
        value: Value,
    },
    /// Something that does not come along, and why.
    NotTaken {
        key: String,
        why: String,
    },
}

/// A playlist that is to be there.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::cli) struct NewPlaylist {
    pub(in crate::cli) name: String,
    pub(in crate::cli) source: Source,
    /// As the API has it.
    pub(in crate::cli) configuration: Map<String, Value>,
    /// Those that it was on.
    pub(in crate::cli) monitors: Vec<String>,
}

/// What a playlist shows.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::cli) enum Source {
    Directory {
        path: PathBuf,
        recursive: bool,
        descending: bool,
    },
    /// Everything that the library has.
    Library,
    Items(Vec<Item>),
}

/// A picture in a list.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::cli) struct Item {
    pub(in crate::cli) file: PathBuf,
    /// Minutes since midnight.
    pub(in crate::cli) time: Option<i64>,
}

/// Which pictures have a tag.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::cli) enum Pictures {
    Below(PathBuf),
    Files(Vec<PathBuf>),
}

impl Step {
    pub(super) fn setting(section: &str, key: &str, value: impl Into<Value>) -> Self {
        Self::Setting { section: section.to_owned(), key: key.to_owned(), value: value.into() }
    }

    pub(super) fn not_taken(key: impl Into<String>, why: impl Into<String>) -> Self {
        Self::NotTaken { key: key.into(), why: why.into() }
    }

    /// For scripts.
    pub(in crate::cli) fn kind(&self) -> &'static str {
        match self {
            Self::Watch(_) => "watch",
            Self::Playlist(_) => "playlist",
            Self::Tag(..) => "tag",
            Self::Setting { .. } => "setting",
            Self::NotTaken { .. } => "not_taken",
        }
    }

    /// What it is about.
    pub(in crate::cli) fn subject(&self) -> String {
        match self {
            Self::Watch(path) => path.display().to_string(),
            Self::Playlist(playlist) => playlist.name.clone(),
            Self::Tag(tag, _) => tag.clone(),
            Self::Setting { section, key, .. } => format!("{section}.{key}"),
            Self::NotTaken { key, .. } => key.clone(),
        }
    }

    /// The rest of what is to be said; empty where the subject is all.
    pub(in crate::cli) fn detail(&self) -> String {
        match self {
            Self::Watch(_) => String::new(),
            Self::Playlist(playlist) => playlist.to_string(),
            Self::Tag(_, Pictures::Below(directory)) => {
                format!("what is in {}", directory.display())
            }
            Self::Tag(_, Pictures::Files(files)) => count(files.len() as u64, "picture"),
            Self::Setting { value: Value::String(text), .. } if !text.is_empty() => text.clone(),
            Self::Setting { value, .. } => value.to_string(),
            Self::NotTaken { why, .. } => why.clone(),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (subject, detail) = (self.subject(), self.detail());
        match self {
            Self::Watch(_) => write!(f, "watch {subject}"),
            Self::Setting { .. } => write!(f, "setting {subject} {detail}"),
            Self::NotTaken { .. } => write!(f, "not taken: {subject} ({detail})"),
            Self::Playlist(_) | Self::Tag(..) => write!(f, "{} {subject} ({detail})", self.kind()),
        }
    }
}

/// A path as a word of the shell.
pub(super) fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}

impl NewPlaylist {
    /// One that changes after so many seconds, or by hand where none are given.
    pub(super) fn of_directory(name: String, path: &Path, seconds: Option<u64>) -> Self {
        let source =
            Source::Directory { path: path.to_owned(), recursive: true, descending: false };
        Self { name, source, configuration: changing(seconds), monitors: Vec::new() }
    }

    pub(super) fn of_library(name: String, seconds: Option<u64>) -> Self {
        let configuration = changing(seconds);
        Self { name, source: Source::Library, configuration, monitors: Vec::new() }
    }

    pub(super) fn ordered(&mut self, descending: bool) {
        self.configuration.insert("order".to_owned(), "ordered".into());
        if let Source::Directory { descending: order, .. } = &mut self.source {
            *order = descending;
        }
    }
}

/// At random: all of these programs do so where nothing else is said.
fn changing(seconds: Option<u64>) -> Map<String, Value> {
    let configuration = match seconds {
        Some(seconds) => json!({ "type": "timer", "interval": seconds, "order": "random" }),
        None => json!({ "type": "manual", "order": "random" }),
    };
    match configuration {
        Value::Object(configuration) => configuration,
        _ => Map::new(),
    }
}

impl fmt::Display for NewPlaylist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Source::Directory { path, .. } => write!(f, "of {}", path.display())?,
            Source::Library => f.write_str("of all images")?,
            Source::Items(items) => f.write_str(&count(items.len() as u64, "picture"))?,
        }
        let text = |key: &str| self.configuration.get(key).and_then(Value::as_str);
        match (text("type"), self.configuration.get("interval").and_then(Value::as_u64)) {
            (Some("timer") | None, Some(seconds)) => write!(f, ", every {}", span(seconds))?,
            (Some("manual"), _) => f.write_str(", changed by hand")?,
            (Some(kind), _) => write!(f, ", {kind}")?,
            (None, None) => {}
        }
        match text("order") {
            Some("random") => f.write_str(", at random")?,
            Some("ordered")
                if matches!(self.source, Source::Directory { descending: true, .. }) =>
            {
                f.write_str(", by name backwards")?;
            }
            Some("ordered") if matches!(self.source, Source::Directory { .. }) => {
                f.write_str(", by name")?;
            }
            _ => {}
        }
        match self.monitors.as_slice() {
            [] => Ok(()),
            monitors => write!(f, ", for {}", monitors.join(", ")),
        }
    }
}
