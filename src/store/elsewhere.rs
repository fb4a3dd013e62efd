//! Marks imported images whose files are outside the library's directory as having no file: the
//! directory was changed, or the database came from another machine.
//!
//! The path of such an image gets the suffix [`DISPLACED`], which no file has, so that nobody
//! serves or removes the file that is there. The functions run in the caller's transaction and
//! touch no file.

use std::path::{Component, Path, PathBuf};

use rusqlite::{Connection, params};

use super::Error;
use crate::wire::{DISPLACED, WebMeta, own_path};

/// An imported image whose file may be outside the library's directory.
struct Copied {
    id: i64,
    path: PathBuf,
    package: Option<WebMeta>,
}

impl Copied {
    /// The path of its file or package.
    fn home(&self) -> &Path {
        self.package
            .as_ref()
            .map_or(&self.path, |package| &package.package_root)
    }

    /// Whether `is_ours` accepts its file or package, and all paths in its metadata are inside the
    /// package.
    fn is_inside(&self, is_ours: &dyn Fn(&Path) -> bool) -> bool {
        let is_in = |path: &Path, root: &Path| {
            let inside = path.strip_prefix(root).ok();
            inside.is_some_and(|path| {
                path.components()
                    .all(|it| matches!(it, Component::Normal(_)))
            })
        };
        is_ours(own_path(self.home()))
            && self.package.as_ref().is_none_or(|package| {
                let paths = [&self.path, &package.entry_path, &package.manifest_path];
                paths.iter().all(|path| is_in(path, &package.package_root))
            })
    }

    /// The same image with its file or package at another path.
    fn at(&self, home: PathBuf) -> Self {
        let package = self.package.as_ref().map(|package| package.moved(&home));
        let path = package
            .as_ref()
            .map_or(home, |package| package.entry_path.clone());
        Self {
            id: self.id,
            path,
            package,
        }
    }
}

/// Marks images whose files are outside the library's directory, and unmarks those whose files are
/// inside. `is_ours` tells whether a path is a file or package in the directory. Returns how many
/// images are outside.
pub(crate) fn confine(
    connection: &Connection,
    directory: &Path,
    is_ours: &dyn Fn(&Path) -> bool,
) -> Result<usize, Error> {
    let mut away = 0;
    for row in suspects(connection, directory)? {
        let own = own_path(row.home()).to_owned();
        let inside = row.is_inside(is_ours);
        away += usize::from(!inside);
        let home = match inside {
            true => own,
            false => PathBuf::from(format!("{}{DISPLACED}{}", own.display(), row.id)),
        };
        if home != row.home() {
            write(connection, &row.at(home))?;
        }
    }
    Ok(away)
}

/// Returns all imported images except plain files in the directory: nearly none in most libraries.
fn suspects(connection: &Connection, directory: &Path) -> Result<Vec<Copied>, Error> {
    let prefix = format!("{}/", directory.to_string_lossy().trim_end_matches('/'));
    // The inner query reads only the index of the paths.
    let mut statement = connection.prepare(
        "SELECT id, path, web_meta FROM image WHERE NOT in_place AND id IN (SELECT id FROM image \
         WHERE substr(path, 1, length(?1)) <> ?1 OR instr(substr(path, length(?1) + 1), '/') > 0 \
         OR instr(path, ?2) > 0)",
    )?;
    let rows = statement.query_map(params![prefix, DISPLACED], |row| {
        let (id, path) = (row.get(0)?, row.get::<_, String>(1)?.into());
        let package: Option<String> = row.get(2)?;
        let package = package.map(|text| serde_json::from_str(&text)).transpose();
        // A package with unreadable metadata is neither served nor removed.
        Ok(package.ok().map(|package| Copied { id, path, package }))
    })?;
    Ok(rows
        .filter_map(Result::transpose)
        .collect::<Result<_, _>>()?)
}

fn write(connection: &Connection, row: &Copied) -> Result<(), Error> {
    let meta = row
        .package
        .as_ref()
        .map(|package| serde_json::json!(package).to_string());
    // If another row has the path by now, that row keeps it.
    connection.execute(
        "UPDATE OR IGNORE image SET path = ?2, web_meta = ifnull(?3, web_meta) WHERE id = ?1",
        params![row.id, row.path.to_string_lossy(), meta],
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::images::tests::picture;
    use crate::store::images::{self, NewImage};
    use crate::store::tests::scratch;

    #[test]
    fn images_outside_the_library_have_no_file_until_the_directory_is_set_back() {
        let (_directory, store) = scratch();
        let add = |number: u8, path: &str, in_place| {
            let name = number.to_string();
            let new = NewImage {
                path: path.into(),
                in_place,
                ..picture(&name, number.into())
            };
            store.write(|c| images::insert(c, &new)).unwrap()
        };
        let paths = [
            "/l/a.png",
            "/l/../etc/b",
            "/other/c.png",
            "/l/sub/d.png",
            "/l2/e.png",
        ];
        let ids: Vec<i64> = (1..)
            .zip(paths)
            .map(|(number, path)| add(number, path, false))
            .collect();
        add(9, "/home/f.png", true);
        let confined = |directory: &str| {
            let is_ours = |path: &Path| path.parent() == Some(Path::new(directory));
            let away = store
                .write(|c| confine(c, Path::new(directory), &is_ours))
                .unwrap();
            let path = |&id: &i64| store.read(|c| images::get(c, id)).unwrap().unwrap().path;
            let there: Vec<bool> = ids
                .iter()
                .zip(paths)
                .map(|(id, own)| path(id) == Path::new(own))
                .collect();
            (away, there)
        };
        assert_eq!(confined("/l"), (4, vec![true, false, false, false, false]));
        assert_eq!(
            confined("/l"),
            (4, vec![true, false, false, false, false]),
            "once"
        );
        assert_eq!(
            confined("/other"),
            (4, vec![false, false, true, false, false])
        );
        assert_eq!(confined("/l/"), (4, vec![true, false, false, false, false]));
    }
}
