//! The colours in the formats of other programs. Pure.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::directory::FILES;
use super::palette::{Palette, Palettes};
use super::scheme::{Scheme, told_from};

/// `color0` to `color7`.
const COLORS: usize = 8;

/// Each file's name, and what is in it.
pub(super) fn files(palettes: &Palettes<'_>) -> serde_json::Result<[(&'static str, Vec<u8>); 4]> {
    let mut json = serde_json::to_vec_pretty(palettes)?;
    json.push(b'\n');
    let newest = palettes.newest;
    let colors = named(newest);
    let contents =
        [json, shell(newest, &colors), gtk(&colors).into_bytes(), rofi(&colors).into_bytes()];
    let mut contents = contents.into_iter();
    Ok(FILES.map(|name| (name, contents.next().unwrap_or_default())))
}

/// The colours under the names that all formats give them.
fn named(palette: Option<&Palette>) -> Vec<(String, String)> {
    let none = Scheme::of(&[]);
    let of =
        |mine: fn(&Palette) -> &String, other: String| palette.map_or(other, |p| mine(p).clone());
    let accent = of(|p| &p.accent, none.accent);
    let mut named = vec![
        ("background".to_owned(), of(|p| &p.background, none.background)),
        ("foreground".to_owned(), of(|p| &p.foreground, none.foreground)),
        ("accent".to_owned(), accent.clone()),
    ];
    // A picture of fewer colours has them again.
    let colors = palette.map_or(&[][..], |palette| &palette.colors);
    let again = colors.iter().cycle().cloned().chain(std::iter::repeat(accent));
    let mut again: Vec<String> = again.take(COLORS).collect();
    // Between the first and the last, as terminals have them: to be seen on the first.
    for at in 1..COLORS - 1 {
        again[at] = told_from(&again[0], &again[at]);
    }
    named.extend(again.into_iter().enumerate().map(|(n, color)| (format!("color{n}"), color)));
    named
}

/// For `. colors.sh` in any shell.
fn shell(palette: Option<&Palette>, colors: &[(String, String)]) -> Vec<u8> {
    let mut text = b"wallpaper=".to_vec();
    let still = palette.and_then(|palette| palette.still.as_deref());
    quote(&mut text, still.unwrap_or(Path::new("")).as_os_str().as_bytes());
    let appearance = palette.map_or(Scheme::of(&[]).appearance.as_str(), |one| one.appearance);
    for (name, value) in colors.iter().map(|(name, color)| (&**name, &**color)) {
        // Colours are hexadecimal; quoted, as # begins a comment.
        text.extend_from_slice(format!("\n{name}='{value}'").as_bytes());
    }
    text.extend_from_slice(format!("\nappearance='{appearance}'\n").as_bytes());
    text
}

/// Between single quotes nothing has a meaning but the quote.
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
    colors.iter().fold(String::new(), |mut text, (name, color)| {
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
    use super::*;
    use std::path::PathBuf;

    fn palette(still: &str, colors: &[&str]) -> Palette {
        let colors: Vec<String> = colors.iter().map(|&color| color.to_owned()).collect();
        let scheme = Scheme::of(&colors);
        Palette {
            monitor: "A".to_owned(),
            image_id: 7,
            image_name: "sea".to_owned(),
            path: "/films/sea.mp4".into(),
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
        let files = files(&Palettes { newest: palette, monitors }).unwrap();
        let (_, bytes) = files.into_iter().find(|(file, _)| *file == name).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn each_format_has_the_same_colours() {
        let palette = palette("/s/a.png", &["#101018", "#e0d0c0", "#c04020"]);
        let sheet = text(Some(&palette), "colors.css");
        assert!(sheet.starts_with("@define-color background #101018;\n"), "{sheet}");
        assert!(sheet.ends_with("@define-color color7 #e0d0c0;\n"), "{sheet}");
        let theme = text(Some(&palette), "colors.rasi");
        assert!(theme.starts_with("* {\n    background: #101018;\n"), "{theme}");
        assert!(theme.ends_with("    color7: #e0d0c0;\n}\n"), "{theme}");
        // Each in turn, and where it is too near to the first, lighter.
        let found: Vec<&str> = (0..8)
            .map(|n| sheet.split_once(&format!("color{n} ")).unwrap().1.split_once(';').unwrap().0)
            .collect();
        assert_eq!(found[..3], ["#101018", "#e0d0c0", "#c04020"]);
        assert_eq!((found[3], found[4], found[7]), (found[6], found[1], found[1]));
        assert!(!found[1..7].contains(&found[0]), "{found:?}");
        let json: serde_json::Value =
            serde_json::from_str(&text(Some(&palette), "palette.json")).unwrap();
        assert_eq!(json["newest"], json["monitors"]["A"]);
        assert_eq!(json["newest"]["accent"], "#c04020");
    }

    #[test]
    fn a_path_is_one_word_for_the_shell() {
        for path in ["/a b/$(x)`y`\\'\"\n.png", "'", ""] {
            let text = text(Some(&palette(path, &[])), "colors.sh");
            let quoted = path.replace('\'', r"'\''");
            let expected = format!("wallpaper='{quoted}'\nbackground='#000000'\n");
            assert!(text.starts_with(&expected), "{text}");
        }
    }

    #[test]
    fn nothing_shown_has_colours_too() {
        assert_eq!(text(None, "palette.json"), "{\n  \"newest\": null,\n  \"monitors\": {}\n}\n");
        let shell = text(None, "colors.sh");
        assert!(shell.starts_with("wallpaper=''\nbackground='#000000'\nforeground='#ffffff'\n"));
        assert!(shell.contains("\ncolor7='#808080'\nappearance='dark'\n"), "{shell}");
    }
}
