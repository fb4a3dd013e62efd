//! Formats the colours of the current wallpapers, which it reads from the database, as `palette.json`
//! and as files for the shell, CSS and rofi.
//!
//! Does not write the files itself.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use super::directory::FILES;
use super::scheme::{Scheme, distinct_from};
use crate::color::{Rgb, hex};
use crate::compositor::Outputs;
use crate::media::PlainColors;
use crate::store::{self, Store, images, workspaces};
use crate::wire::{Image, Timestamp, put_id};

/// The colours of one monitor's wallpaper.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Palette {
    #[serde(skip)]
    pub(super) set_at: Timestamp,
    pub(super) monitor: String,
    #[serde(serialize_with = "put_id")]
    pub(super) image_id: i64,
    pub(super) image_name: String,
    /// Null for a plain colour.
    pub(super) path: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) color: Option<String>,
    /// `None` if the still could not be made.
    pub(super) still: Option<PathBuf>,
    pub(super) appearance: &'static str,
    pub(super) background: String,
    pub(super) foreground: String,
    pub(super) accent: String,
    pub(super) colors: Vec<String>,
}

/// The palettes of all monitors, and that of the wallpaper that was set last.
#[derive(Debug, Default, Serialize)]
pub(super) struct Palettes<'p> {
    pub(super) newest: Option<&'p Palette>,
    pub(super) monitors: BTreeMap<&'p str, &'p Palette>,
}

impl Palette {
    /// The colours are the image's, unless the screen shows it over another colour.
    pub(super) fn new(
        monitor: &str,
        shown: &MonitorImage,
        still: Option<PathBuf>,
        colors: Option<Vec<Rgb>>,
    ) -> Self {
        let MonitorImage { image, set_at, .. } = shown;
        let colors = colors.unwrap_or_else(|| image.colors.clone());
        let colors: Vec<String> = colors.into_iter().map(hex).collect();
        let Scheme {
            appearance,
            background,
            foreground,
            accent,
        } = Scheme::from_colors(&colors);
        Self {
            set_at: *set_at,
            monitor: monitor.to_owned(),
            image_id: image.id,
            image_name: image.name.clone(),
            path: image.library_path(),
            color: image.color(),
            still,
            appearance: appearance.as_str(),
            background,
            foreground,
            accent,
            colors,
        }
    }
}

/// The image on a monitor.
pub(super) struct MonitorImage {
    pub(super) image: Arc<Image>,
    pub(super) backend: String,
    pub(super) set_at: Timestamp,
}

/// The images that connected monitors show.
pub(super) fn read_shown(
    store: &Store,
    outputs: &Outputs,
    colors: &PlainColors,
) -> Result<BTreeMap<String, MonitorImage>, store::Error> {
    let connected = outputs.list();
    store.read(|connection| {
        let mut rows = workspaces::shown(connection)?;
        rows.retain(|row| connected.iter().any(|output| output.name == row.monitor));
        let ids: Vec<i64> = rows.iter().map(|row| row.image_id).collect();
        let mut images = images::all_assigned(connection, &ids)?;
        for image in &mut images {
            colors.locate(image);
        }
        let images = images.into_iter().map(Arc::new);
        let images: BTreeMap<i64, Arc<Image>> = images.map(|image| (image.id, image)).collect();
        let shown = rows.into_iter().filter_map(|row| {
            let image = Arc::clone(images.get(&row.image_id)?);
            Some((
                row.monitor,
                MonitorImage {
                    image,
                    backend: row.backend,
                    set_at: row.set_at,
                },
            ))
        });
        Ok(shown.collect())
    })
}

/// `color0` to `color7`.
const COLORS: usize = 8;

/// The name and content of each file.
pub(super) fn color_files(
    palettes: &Palettes<'_>,
) -> serde_json::Result<[(&'static str, Vec<u8>); 4]> {
    let mut json = serde_json::to_vec_pretty(palettes)?;
    json.push(b'\n');
    let newest = palettes.newest;
    let colors = named(newest);
    let contents = [
        json,
        shell(newest, &colors),
        gtk(&colors).into_bytes(),
        rofi(&colors).into_bytes(),
    ];
    let mut contents = contents.into_iter();
    Ok(FILES.map(|name| (name, contents.next().unwrap_or_default())))
}

/// The colours under the names that all formats give them.
fn named(palette: Option<&Palette>) -> Vec<(String, String)> {
    let none = Scheme::from_colors(&[]);
    let of =
        |mine: fn(&Palette) -> &String, other: String| palette.map_or(other, |p| mine(p).clone());
    let accent = of(|p| &p.accent, none.accent);
    let mut named = vec![
        (
            "background".to_owned(),
            of(|p| &p.background, none.background),
        ),
        (
            "foreground".to_owned(),
            of(|p| &p.foreground, none.foreground),
        ),
        ("accent".to_owned(), accent.clone()),
    ];
    // The colours of an image with few colours are repeated.
    let colors = palette.map_or(&[][..], |palette| &palette.colors);
    let again = colors
        .iter()
        .cycle()
        .cloned()
        .chain(std::iter::repeat(accent));
    let mut again: Vec<String> = again.take(COLORS).collect();
    // Terminals need the colours between the first and the last to be visible on the first.
    for at in 1..COLORS - 1 {
        again[at] = distinct_from(&again[0], &again[at]);
    }
    named.extend(
        again
            .into_iter()
            .enumerate()
            .map(|(n, color)| (format!("color{n}"), color)),
    );
    named
}

/// For `. colors.sh` in any shell.
fn shell(palette: Option<&Palette>, colors: &[(String, String)]) -> Vec<u8> {
    let mut text = b"wallpaper=".to_vec();
    let still = palette.and_then(|palette| palette.still.as_deref());
    quote(
        &mut text,
        still.unwrap_or(Path::new("")).as_os_str().as_bytes(),
    );
    let appearance = palette.map_or(Scheme::from_colors(&[]).appearance.as_str(), |one| {
        one.appearance
    });
    for (name, value) in colors.iter().map(|(name, color)| (&**name, &**color)) {
        // Colours are hexadecimal; quoted, as # begins a comment.
        text.extend_from_slice(format!("\n{name}='{value}'").as_bytes());
    }
    text.extend_from_slice(format!("\nappearance='{appearance}'\n").as_bytes());
    text
}

/// In single quotes, only the quote has a meaning.
fn quote(text: &mut Vec<u8>, word: &[u8]) {
    text.push(b'\'');
    for &byte in word {
        match byte {
            b'\'' => text.extend_from_slice(br"'\''"),
            byte => text.push(byte),
        }
    }
    text.push(b'\'');
}

/// For `@import` in a style sheet of GTK: waybar, wofi.
fn gtk(colors: &[(String, String)]) -> String {
    colors
        .iter()
        .fold(String::new(), |mut text, (name, color)| {
            // A String takes everything.
            writeln!(text, "@define-color {name} {color};").ok();
            text
        })
}

/// For `@import` in a theme of rofi.
fn rofi(colors: &[(String, String)]) -> String {
    let mut text = "* {\n".to_owned();
    for (name, color) in colors {
        writeln!(text, "    {name}: {color};").ok();
    }
    text.push_str("}\n");
    text
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn palette(still: &str, colors: &[&str]) -> Palette {
        let colors: Vec<String> = colors.iter().map(|&color| color.to_owned()).collect();
        let scheme = Scheme::from_colors(&colors);
        Palette {
            set_at: Timestamp::from_micros(1),
            monitor: "A".to_owned(),
            image_id: 7,
            image_name: "sea".to_owned(),
            path: Some("/videos/sea.mp4".into()),
            color: None,
            still: Some(PathBuf::from(still)),
            appearance: scheme.appearance.as_str(),
            background: scheme.background,
            foreground: scheme.foreground,
            accent: scheme.accent,
            colors,
        }
    }

    fn text(palette: Option<&Palette>, name: &str) -> String {
        let monitors = palette.iter().map(|one| (&*one.monitor, *one)).collect();
        let files = color_files(&Palettes {
            newest: palette,
            monitors,
        })
        .unwrap();
        let (_, bytes) = files.into_iter().find(|(file, _)| *file == name).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn each_format_has_the_same_colours() {
        let palette = palette("/s/a.png", &["#101018", "#e0d0c0", "#c04020"]);
        let sheet = text(Some(&palette), "colors.css");
        assert!(
            sheet.starts_with("@define-color background #101018;\n"),
            "{sheet}"
        );
        assert!(
            sheet.ends_with("@define-color color7 #e0d0c0;\n"),
            "{sheet}"
        );
        let theme = text(Some(&palette), "colors.rasi");
        assert!(
            theme.starts_with("* {\n    background: #101018;\n"),
            "{theme}"
        );
        assert!(theme.ends_with("    color7: #e0d0c0;\n}\n"), "{theme}");
        // The colours repeat; one that is too close to the first is lighter.
        let found: Vec<&str> = (0..8)
            .map(|n| {
                sheet
                    .split_once(&format!("color{n} "))
                    .unwrap()
                    .1
                    .split_once(';')
                    .unwrap()
                    .0
            })
            .collect();
        assert_eq!(found[..3], ["#101018", "#e0d0c0", "#c04020"]);
        assert_eq!(
            (found[3], found[4], found[7]),
            (found[6], found[1], found[1])
        );
        assert!(!found[1..7].contains(&found[0]), "{found:?}");
        let json: serde_json::Value =
            serde_json::from_str(&text(Some(&palette), "palette.json")).unwrap();
        assert_eq!(json["newest"], json["monitors"]["A"]);
        assert_eq!(json["newest"]["accent"], "#c04020");
    }

    #[test]
    fn path_is_one_word_for_the_shell() {
        for path in ["/a b/$(x)`y`\\'\"\n.png", "'", ""] {
            let text = text(Some(&palette(path, &[])), "colors.sh");
            let quoted = path.replace('\'', r"'\''");
            let expected = format!("wallpaper='{quoted}'\nbackground='#000000'\n");
            assert!(text.starts_with(&expected), "{text}");
        }
    }

    #[test]
    fn files_have_colours_even_if_nothing_is_shown() {
        assert_eq!(
            text(None, "palette.json"),
            "{\n  \"newest\": null,\n  \"monitors\": {}\n}\n"
        );
        let shell = text(None, "colors.sh");
        assert!(shell.starts_with("wallpaper=''\nbackground='#000000'\nforeground='#ffffff'\n"));
        assert!(
            shell.contains("\ncolor7='#808080'\nappearance='dark'\n"),
            "{shell}"
        );
    }
}
