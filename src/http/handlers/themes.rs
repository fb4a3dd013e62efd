//! Palettes of the user: CSS files in the configuration's directory `themes`.

use std::path::{Path, PathBuf};

use super::Api;
use crate::http::{Error, Request, Response, file};
use crate::wire::Theme;

/// `GET /api/themes`
pub(in crate::http) fn list(api: &Api, _: &Request<'_>) -> Result<Response, Error> {
    let mut names = names(&api.dirs.themes());
    names.sort_unstable();
    let themes: Vec<Theme> = names.iter().map(|name| theme(name)).collect();
    Ok(Response::json(200, &themes)?)
}

/// `GET /api/themes/{name}.css`
pub(in crate::http) fn css(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let asked = request.placeholder(0);
    let name = asked.strip_suffix(".css");
    let path = name.and_then(|name| find(&api.dirs.themes(), name));
    let path = path.ok_or_else(|| {
        Error::not_found(format!("there is no theme {:?}", name.unwrap_or(asked)))
    })?;
    file(request, &path, "text/css; charset=utf-8")
}

/// All that `find` finds.
fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let stem = |name: &str| name.strip_suffix(".css").map(str::to_owned);
    let names = entries.filter_map(|entry| entry.file_name().to_str().and_then(stem));
    names.filter(|name| find(directory, name).is_some()).collect()
}

/// The file of a theme, if it is one and lies in the directory, also behind links.
fn find(directory: &Path, name: &str) -> Option<PathBuf> {
    if name.is_empty() || name.starts_with('.') || name.contains(['/', '\\', '\0']) {
        return None;
    }
    let path = directory.join(format!("{name}.css")).canonicalize().ok()?;
    let home = directory.canonicalize().ok()?;
    (path.starts_with(home) && path.is_file()).then_some(path)
}

fn theme(name: &str) -> Theme {
    let words = name.split(['-', '_', ' ']).filter(|word| !word.is_empty());
    let capital = |word: &str| {
        let mut letters = word.chars();
        let first = letters.next().into_iter().flat_map(char::to_uppercase);
        first.chain(letters).collect::<String>()
    };
    let display_name = words.map(capital).collect::<Vec<_>>().join(" ");
    Theme {
        name: name.to_owned(),
        display_name: display_name.clone(),
        display_name_camel: display_name,
        source: "user".to_owned(),
        url: format!("/api/themes/{}.css", percent(name)),
    }
}

/// A name as a segment of a path.
fn percent(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let one = |byte: u8| {
        if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    name.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_files_of_the_directory_are_themes() {
        let outside = tempfile::tempdir().unwrap();
        let themes = outside.path().join("themes");
        fs::create_dir_all(themes.join("folder.css")).unwrap();
        for name in ["night-sky.css", "a b.css", ".hidden.css", "readme.txt", "../secret.css"] {
            fs::write(themes.join(name), ":root {}").unwrap();
        }
        symlink("../secret.css", themes.join("leak.css")).unwrap();
        symlink("a b.css", themes.join("alias.css")).unwrap();
        let mut names = names(&themes);
        names.sort_unstable();
        assert_eq!(names, ["a b", "alias", "night-sky"]);
        for bad in ["", "..", "../secret", "leak", ".hidden", "folder", "a\\b", "none"] {
            assert_eq!(find(&themes, bad), None, "{bad}");
        }
    }

    #[test]
    fn names_are_shown_in_words() {
        let theme = theme("night-sky ö");
        assert_eq!(theme.display_name, "Night Sky Ö");
        assert_eq!(theme.url, "/api/themes/night-sky%20%C3%B6.css");
    }
}
