//! Directories that may be watched: absolute, and none that murald itself writes to.
//!
//! Looks at names alone, never at a disk: one that does not answer must not hold up who asks.

use std::path::{Component, Path, PathBuf};

use super::schema::Daemon;
use crate::paths::Dirs;

/// Where a path of `library.watch` leads, or why it cannot be watched.
pub(crate) fn watched_directory(
    written: &str,
    dirs: &Dirs,
    daemon: &Daemon,
) -> Result<PathBuf, String> {
    if written.trim().is_empty() {
        return Err("a path cannot be empty".to_owned());
    }
    let path = plain(&dirs.expand(written).map_err(|error| error.to_string())?);
    for own in own_directories(dirs, daemon) {
        let how = if path == own {
            "is"
        } else if path.starts_with(&own) {
            "lies in"
        } else if own.starts_with(&path) {
            "holds"
        } else {
            continue;
        };
        let (path, own) = (path.display(), own.display());
        return Err(format!("{path} {how} {own}, where murald keeps its own files"));
    }
    Ok(path)
}

/// What murald writes to.
pub(crate) fn own_directories(dirs: &Dirs, daemon: &Daemon) -> Vec<PathBuf> {
    let written = [&daemon.images_dir, &daemon.thumbnails_dir, &daemon.database_dir];
    let mut own: Vec<PathBuf> = written.iter().filter_map(|path| dirs.expand(path).ok()).collect();
    own.extend([dirs.data(), dirs.cache(), dirs.config_home().join("murald")]);
    own.iter().map(|path| plain(path)).collect()
}

/// Without `.`, `..` and slashes at the end, as far as names tell.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::Env;

    #[test]
    fn watched_directories_are_absolute_and_not_our_own() {
        let dirs = Dirs::new(Env::from([("HOME", "/home/u"), ("WALLS", "/walls")])).unwrap();
        let check = |written: &str, expected: Result<&str, &str>| {
            let found = watched_directory(written, &dirs, &Daemon::default());
            match (&found, expected) {
                (Ok(path), Ok(expected)) => assert_eq!(path, Path::new(expected)),
                (Err(why), Err(part)) => assert!(why.contains(part), "{why} lacks {part}"),
                _ => panic!("{written}: {found:?}"),
            }
        };
        check("~/Pictures/", Ok("/home/u/Pictures"));
        check("$WALLS/../walls/./sea", Ok("/walls/sea"));
        check("Pictures", Err("is not absolute"));
        check("", Err("empty"));
        check("$NO_SUCH/x", Err("NO_SUCH"));
        check("~", Err("/home/u holds /home/u/.local/share/murald/images"));
        check("/", Err("/ holds"));
        check("~/.local/share/murald/images", Err("is /home/u/.local/share/murald/images"));
        check("~/.cache/murald/x", Err("lies in /home/u/.cache/murald"));
        check("~/.config/murald", Err("is /home/u/.config/murald"));
    }
}
