//! Parses the manifest of a package (`waypaper.json`, Wallpaper Engine's `project.json`, or only an
//! `index.html`). Never writes.
//!
//! The fields are those that wal-qt's packages have: `entry` (or `file`), `title`, `description`,
//! `author`, `preview`, `capabilities`, `parallax_direction`, `wallpaper_config`,
//! `wallpaper_config_overrides`; and of `project.json` also `type` and `general.properties`. All
//! others are ignored.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::decode::Decoder;
use crate::library::Error;
use crate::wire::{JsonObject, WebCapabilities, WebMeta};

/// The manifest's name in a package that murald writes the manifest for.
pub(super) const OWN: &str = "waypaper.json";
const NAMES: [&str; 2] = [OWN, "project.json"];
/// The page if the manifest names none.
const ENTRY: &str = "index.html";
/// The maximum size of a package's declarations and of the values set for them, each in bytes of JSON. A
/// page of the gallery may contain two hundred of them.
const CONFIG_MAX: usize = 64 << 10;
/// The maximum length of each text that is shown, in characters.
const TEXT_MAX: usize = 4096;

/// The kind of wallpaper that a package has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An HTML page with the files that it uses.
    Web,
    /// One file: a video, or an animated picture.
    Video,
}

/// A manifest. Its paths are relative to the package and do not lead out of it.
#[derive(Debug, PartialEq)]
pub(super) struct Manifest {
    pub(super) kind: Kind,
    /// The manifest's file name; `None` for a package without a manifest.
    pub(super) file: Option<&'static str>,
    pub(super) entry: PathBuf,
    pub(super) preview: Option<PathBuf>,
    pub(super) title: String,
    pub(super) description: String,
    pub(super) author: String,
    pub(super) capabilities: WebCapabilities,
    pub(super) parallax_direction: Option<String>,
    pub(super) wallpaper_config: Map<String, Value>,
    /// The values of declared properties.
    pub(super) overrides: Map<String, Value>,
}

/// The fields of the file; a null is a missing field.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Fields {
    entry: Option<String>,
    file: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    title: Option<String>,
    description: Option<String>,
    author: Option<String>,
    preview: Option<String>,
    capabilities: Option<WebCapabilities>,
    parallax_direction: Option<String>,
    wallpaper_config: Option<Map<String, Value>>,
    wallpaper_config_overrides: Option<Value>,
    general: Option<General>,
    /// The package to which a preset belongs.
    dependency: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct General {
    properties: Option<Map<String, Value>>,
}

/// Whether a directory is a package.
pub(crate) fn has_manifest(directory: &Path) -> bool {
    NAMES.iter().any(|name| directory.join(name).exists())
}

/// Whether a directory that contains a file of this name is a package.
pub(crate) fn is_manifest(name: &OsStr) -> bool {
    NAMES.iter().any(|one| name == *one)
}

/// The directory of the package that a path means. The path is that directory, or the manifest or page
/// in it.
pub(super) fn package_of(path: &Path) -> &Path {
    let names = [NAMES[0], NAMES[1], ENTRY];
    let is_one = path
        .file_name()
        .is_some_and(|name| names.iter().any(|one| name == *one));
    path.parent()
        .filter(|_| is_one && path.is_file())
        .unwrap_or(path)
}

impl Manifest {
    /// Reads the manifest of the package at `root`, and finds its files.
    pub(super) fn read(root: &Path, decoder: &Decoder) -> Result<Self, Error> {
        let text = decoder
            .manifest(root, &NAMES)
            .map_err(Error::decoding(root))?;
        let parsed = match text {
            Some((name, text)) => Self::parse(&name, &text, root),
            None => Self::from_fields((None, Kind::Web), Fields::default(), root),
        };
        let mut manifest = parsed.map_err(|refusal| refusal.into_error(root))?;
        let preview = manifest.preview.as_deref();
        let wanted: Vec<&Path> = std::iter::once(&*manifest.entry).chain(preview).collect();
        let mut found = decoder
            .find(root, &wanted)
            .map_err(Error::decoding(root))?
            .into_iter();
        let lower = |path: &Path| path.to_string_lossy().to_lowercase();
        let mut next = |wanted: &Path| {
            let found = found.next().flatten().map(PathBuf::from);
            found.filter(|found| lower(found) == lower(wanted))
        };
        manifest.entry = match next(&manifest.entry) {
            Some(entry) => entry,
            None => return Err(manifest.without_entry().into_error(root)),
        };
        // A preview that is missing is reported when it is to be shown.
        if let Some(preview) = manifest.preview.as_deref().and_then(next) {
            manifest.preview = Some(preview);
        }
        Ok(manifest)
    }

    fn without_entry(&self) -> Refusal {
        let entry = self.entry.display();
        Refusal::new(match (self.file, self.kind) {
            (None, _) => {
                "the directory has no waypaper.json, project.json or index.html".to_owned()
            }
            (_, Kind::Web) => format!("its HTML file {entry} is missing"),
            (_, Kind::Video) => format!("its video {entry} is missing"),
        })
    }

    pub(super) fn parse(name: &str, text: &str, root: &Path) -> Result<Self, Refusal> {
        let name = NAMES
            .into_iter()
            .find(|known| *known == name)
            .unwrap_or(OWN);
        let text = clean(text);
        if !text.trim_start().starts_with('{') {
            return Err(Refusal::new(format!("{name} is not a JSON object")));
        }
        let fields = serde_json::from_str(text);
        let fields: Fields =
            fields.map_err(|error| Refusal::new(format!("{name} cannot be read: {error}")))?;
        if let (Some(of), None, None) = (&fields.dependency, &fields.file, &fields.entry) {
            let of = of.as_str().map_or_else(|| of.to_string(), str::to_owned);
            return Err(Refusal::unsupported(format!("it is a preset of {of}")));
        }
        let kind = match fields
            .kind
            .as_deref()
            .map(str::to_ascii_lowercase)
            .as_deref()
        {
            None | Some("web") => Kind::Web,
            Some("video") => Kind::Video,
            Some(other) => {
                let what = format!("type in {name} is {other:?}, which murald cannot show");
                return Err(Refusal::unsupported(what));
            }
        };
        Self::from_fields((Some(name), kind), fields, root)
    }

    fn from_fields(
        (file, kind): (Option<&'static str>, Kind),
        fields: Fields,
        root: &Path,
    ) -> Result<Self, Refusal> {
        let name = file.unwrap_or(OWN);
        let entry = match (fields.entry.or(fields.file), kind) {
            (None, Kind::Video) => {
                return Err(Refusal::new(format!("{name} does not name the video file")));
            }
            (entry, _) => inside(name, "entry", entry.as_deref().unwrap_or(ENTRY))?,
        };
        let preview = fields
            .preview
            .as_deref()
            .filter(|preview| !preview.is_empty());
        let preview = preview
            .map(|preview| inside(name, "preview", preview))
            .transpose()?;
        let direction = fields.parallax_direction;
        let fallback = || {
            root.file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned()
        };
        let properties = fields.general.and_then(|general| general.properties);
        let declared = fields.wallpaper_config.or(properties).unwrap_or_default();
        let size = size_of(&declared);
        if size > CONFIG_MAX {
            let problem =
                format!("wallpaper_config in {name} has {size} bytes, more than {CONFIG_MAX}");
            return Err(Refusal::new(problem));
        }
        let mut overrides = match fields.wallpaper_config_overrides {
            Some(Value::Object(given)) if size_of(&given) <= CONFIG_MAX => given,
            _ => Map::new(),
        };
        overrides.retain(|key, _| declared.contains_key(key));
        Ok(Self {
            kind,
            file,
            entry,
            preview,
            title: fields
                .title
                .map(short)
                .filter(|title| !title.is_empty())
                .unwrap_or_else(fallback),
            description: fields.description.map(short).unwrap_or_default(),
            author: fields.author.map(short).unwrap_or_default(),
            capabilities: fields.capabilities.unwrap_or_default(),
            parallax_direction: direction
                .filter(|direction| ["horizontal", "vertical"].contains(&direction.as_str())),
            wallpaper_config: declared,
            overrides,
        })
    }

    /// The manifest as the API shows it, for a package at `root`.
    pub(super) fn meta(&self, root: &Path) -> WebMeta {
        WebMeta {
            package_root: root.to_owned(),
            manifest_path: root.join(self.file.unwrap_or(OWN)),
            entry_path: root.join(&self.entry),
            title: self.title.clone(),
            description: self.description.clone(),
            author: self.author.clone(),
            capabilities: self.capabilities,
            parallax_direction: self.parallax_direction.clone(),
            wallpaper_config: JsonObject::from(&self.wallpaper_config),
        }
    }

    /// The text of the manifest for a package that has none.
    pub(super) fn text(&self) -> String {
        let fields = serde_json::json!({"waypaper": "1", "title": self.title, "entry": self.entry});
        format!("{fields:#}\n")
    }
}

/// A manifest's text with new capabilities; all other fields are kept.
pub(super) fn with_capabilities(
    name: &str,
    text: &str,
    capabilities: WebCapabilities,
) -> Result<String, Refusal> {
    let refusal = |error| Refusal::new(format!("{name} cannot be read: {error}"));
    let mut fields: Map<String, Value> = serde_json::from_str(clean(text)).map_err(refusal)?;
    let granted = serde_json::to_value(capabilities).map_err(refusal)?;
    match (fields.get_mut("capabilities"), granted) {
        // Keeps capabilities that murald does not know.
        (Some(Value::Object(old)), Value::Object(new)) => old.extend(new),
        (_, new) => drop(fields.insert("capabilities".to_owned(), new)),
    }
    Ok(format!("{:#}\n", Value::Object(fields)))
}

/// The text without the byte order mark that editors on Windows write.
fn clean(text: &str) -> &str {
    text.trim_start_matches('\u{feff}')
}

/// Why a directory is not accepted as a package: a clause such as "it is a preset of 7".
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) what: String,
    unsupported: bool,
}

impl Refusal {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            unsupported: false,
        }
    }

    /// Refuses a scene, an application or a preset, which murald cannot show.
    fn unsupported(what: String) -> Self {
        Self {
            what,
            unsupported: true,
        }
    }

    pub(super) fn into_error(self, path: &Path) -> Error {
        Error::Package {
            path: path.to_owned(),
            what: self.what,
            unsupported: self.unsupported,
        }
    }
}

/// Parses a path of the manifest, which must not leave the package. It may have been written on Windows.
fn inside(name: &str, field: &str, path: &str) -> Result<PathBuf, Refusal> {
    let path = &path.replace('\\', "/");
    let parts = Path::new(path).components();
    let harmless = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    if path.is_empty() || path.contains('\0') || !parts.clone().all(harmless) {
        let problem =
            format!("{field} in {name} is {path:?}, which is not a path inside the package");
        return Err(Refusal::new(problem));
    }
    Ok(parts.filter(|part| *part != Component::CurDir).collect())
}

fn size_of(object: &Map<String, Value>) -> usize {
    Value::Object(object.clone()).to_string().len()
}

fn short(text: String) -> String {
    text.trim().chars().take(TEXT_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(file: &str, text: &str) -> Result<Manifest, String> {
        Manifest::parse(file, text, Path::new("/walls/Rain")).map_err(|refusal| refusal.what)
    }

    #[test]
    fn each_kind_of_manifest_is_read() {
        let manifest = read(
            "waypaper.json",
            r##"{"waypaper": "1", "title": " Sea ", "entry": "./a/b.html", "preview": "p.png",
                "author": null, "capabilities": {"keyboard": true, "autoplay": true},
                "parallax_direction": "vertical", "wallpaper_config": {"gain": {"default": 1}}}"##,
        )
        .unwrap();
        assert_eq!(
            (manifest.title.as_str(), manifest.author.as_str()),
            ("Sea", "")
        );
        assert_eq!(manifest.entry, Path::new("a/b.html"));
        assert_eq!(manifest.preview.as_deref(), Some(Path::new("p.png")));
        assert!(manifest.capabilities.keyboard && !manifest.capabilities.network);
        assert_eq!(manifest.parallax_direction.as_deref(), Some("vertical"));
        assert_eq!(manifest.wallpaper_config["gain"]["default"], 1);

        let project = r#"{"type": "Web", "file": "a\\x.html", "parallax_direction": "diagonal",
            "general": {"properties": {"speed": {"value": 2}}}}"#;
        let manifest = read("project.json", &format!("\u{feff}{project}")).unwrap();
        assert_eq!(
            (manifest.title.as_str(), manifest.parallax_direction),
            ("Rain", None)
        );
        assert_eq!(manifest.wallpaper_config["speed"]["value"], 2);
        assert_eq!(manifest.file, Some("project.json"));
        assert_eq!(manifest.entry, Path::new("a/x.html"));
    }

    #[test]
    fn refusal_says_why() {
        let check = |file: &str, text: &str, expected: &str| {
            let why = read(file, text).unwrap_err();
            assert!(why.contains(expected), "{text}: {why}");
        };
        check("waypaper.json", "{", "line 1 column 1");
        check("waypaper.json", "[]", "not a JSON object");
        check(
            "waypaper.json",
            r#"{"title": 5}"#,
            "invalid type: integer `5`",
        );
        check(
            "waypaper.json",
            r#"{"capabilities": {"network": "yes"}}"#,
            "boolean",
        );
        check(
            "project.json",
            r#"{"type": "Scene"}"#,
            "is \"scene\", which murald cannot show",
        );
        check(
            "project.json",
            r#"{"type": "video", "title": "Sea"}"#,
            "does not name the video file",
        );
        check(
            "project.json",
            r#"{"dependency": "111", "preset": {}, "title": "Sea"}"#,
            "it is a preset of 111",
        );
        for path in [
            "/etc/passwd",
            "..\\\\x.html",
            "../x.html",
            "a/../../x.html",
            "",
            "a\\u0000",
        ] {
            check(
                "waypaper.json",
                &format!(r#"{{"entry": "{path}"}}"#),
                "not a path inside",
            );
        }
        check(
            "waypaper.json",
            r#"{"preview": "../p.png"}"#,
            "preview in waypaper.json",
        );
    }
}
