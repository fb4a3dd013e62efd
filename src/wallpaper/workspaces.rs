//! Resolves the wallpapers of workspaces: which image an entry of `[workspaces]` means now, and which
//! pictures are shown instead of the assignments.
//!
//! Runs on the thread `reconciler`. Reads the library and the playlists, and changes nothing.

use std::collections::BTreeMap;
use std::path::Path;
use std::slice;
use std::sync::Arc;

use super::Error;
use super::missing_file;
use super::world_state::WorldState;
use crate::color::{self, Rgb};
use crate::store::query::Query;
use crate::store::workspaces::WorkspacePicture;
use crate::store::{self, Store, filter, images, playlists};
use crate::wire::{Image, Timestamp, Workspace};

/// The workspace that is visible on each monitor, and since when.
pub(super) type VisibleWorkspaces = BTreeMap<String, (String, Timestamp)>;

/// A picture of a workspace that its backend has failed to show. It counts as no match until the
/// workspace is shown again, or the file has another content.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    since: Timestamp,
    image_id: i64,
    content: String,
    why: String,
}

/// The refusal on each monitor.
pub(super) type Refusals = BTreeMap<String, Refusal>;

impl Refusal {
    pub(super) fn new(image: &Image, since: Timestamp, why: String) -> Self {
        Self {
            since,
            image_id: image.id,
            content: image.checksum_text(),
            why,
        }
    }

    fn is_of(&self, image: &Image, since: Timestamp) -> bool {
        (self.image_id, self.since) == (image.id, since) && self.content == image.checksum_text()
    }
}

/// A reference as it is written in the configuration.
#[derive(Debug, PartialEq, Eq)]
enum Reference<'a> {
    Playlist(&'a str),
    Id(i64),
    Color(Rgb),
    Path(&'a Path),
    Name(&'a str),
}

impl<'a> Reference<'a> {
    fn parse(written: &'a str) -> Self {
        if let Some(name) = written.strip_prefix("playlist:") {
            return Self::Playlist(name);
        }
        if let Some(rgb) = color::marked(written) {
            return Self::Color(rgb);
        }
        let id = written.strip_prefix("id:").and_then(|id| id.parse().ok());
        match (id, written.starts_with(['/', '~'])) {
            (Some(id), _) => Self::Id(id),
            (None, true) => Self::Path(Path::new(written)),
            (None, false) => Self::Name(written.strip_prefix("name:").unwrap_or(written)),
        }
    }

    /// The warning if it matches no image.
    fn nothing(&self) -> String {
        match self {
            Self::Playlist(name) => format!("playlist {name:?} has no images"),
            Self::Id(id) => format!("no image with ID {id}"),
            Self::Color(rgb) => format!("cannot show the colour {}", color::hex(*rgb)),
            Self::Path(path) => format!("no image in the library has the path {}", path.display()),
            Self::Name(name) => format!("no image named {name:?}"),
        }
    }
}

/// The meaning of an entry.
struct Meaning {
    playlist_id: Option<i64>,
    /// The image, or the warning why there is none.
    image: Result<Image, String>,
}

/// The image that a playlist shows while it runs, otherwise its first.
fn image_of_playlist(store: &Store, id: i64) -> Result<Option<i64>, store::Error> {
    if let Some(current) = store.read(|c| playlists::current_image(c, id))? {
        return Ok(Some(current));
    }
    let Some(playlist) = store.read(|c| playlists::get(c, id))? else {
        return Ok(None);
    };
    // A source that cannot be read is reported by the playlist.
    match playlist.source.map(|source| filter::from_source(&source)) {
        Some(Ok(query)) => Ok(store
            .find_all(&Query { limit: 1, ..query })?
            .first()
            .copied()),
        Some(Err(_)) => Ok(None),
        None => Ok(playlist.images.first().map(|item| item.image_id)),
    }
}

/// The entries that refer to this image by its name.
pub(crate) fn entries_by_name(
    store: &Store,
    entries: &BTreeMap<String, String>,
    image_id: i64,
) -> Result<BTreeMap<String, String>, store::Error> {
    let mut found = BTreeMap::new();
    for (workspace, written) in entries {
        let Reference::Name(name) = Reference::parse(written) else {
            continue;
        };
        if store.read(|c| images::named(c, name))?.contains(&image_id) {
            found.insert(workspace.clone(), written.clone());
        }
    }
    Ok(found)
}

/// A reference to an image that works whatever its name looks like.
pub(crate) fn reference(image: &Image) -> String {
    match Reference::parse(&image.name) {
        Reference::Name(name) if name == image.name => image.name.clone(),
        _ => format!("id:{}", image.id),
    }
}

/// The warning where no compositor reports its workspaces.
const NOT_FOLLOWED: &str = "murald cannot follow the workspaces of this session: \
    only sway, i3 and Hyprland report them";

impl WorldState {
    /// Shows the pictures of visible workspaces instead of the assignments.
    pub(super) fn cover(
        &mut self,
        store: &Store,
        visible: &VisibleWorkspaces,
        refusals: &Refusals,
    ) -> Result<(), store::Error> {
        let settings = (self.backends.settings)();
        for (monitor, (workspace, since)) in visible {
            let Some(written) = settings.workspaces.get(workspace) else {
                continue;
            };
            let Ok(mut image) = self.meaning(store, written)?.image else {
                continue;
            };
            if refusals
                .get(monitor)
                .is_some_and(|refusal| refusal.is_of(&image, *since))
            {
                continue;
            }
            let Ok(choice) = self.choose(&image) else {
                continue;
            };
            let place = (workspace.clone(), monitor.clone());
            let backend = choice.backend.to_string();
            let mut picture = WorkspacePicture::new(place, image.id, backend, *since);
            picture.row.sound = store.read(|c| store::workspaces::sound(c, workspace, image.id))?;
            self.over_assignments.push(picture);
            self.colors.supply(&mut image).ok();
            self.pictures.insert(image.id, Arc::new(image));
        }
        Ok(())
    }

    /// The entries of the configuration, as records for clients.
    pub(super) fn workspaces(
        &self,
        store: &Store,
        visible: &VisibleWorkspaces,
        refusals: &Refusals,
    ) -> Result<Vec<Workspace>, Error> {
        let settings = (self.backends.settings)();
        let is_blind = visible.is_empty() && !self.outputs.is_empty();
        let record = |(name, written): (&String, &String)| {
            let Meaning { playlist_id, image } = self.meaning(store, written)?;
            let is_it = |(monitor, (workspace, _)): &(&String, &(String, Timestamp))| {
                workspace == name && self.is_connected(monitor)
            };
            let monitor = visible.iter().find(is_it);
            let refusal = monitor.and_then(|(monitor, (_, since))| {
                let is_its = |refusal: &&Refusal| {
                    image
                        .as_ref()
                        .is_ok_and(|image| refusal.is_of(image, *since))
                };
                refusals.get(monitor).filter(is_its)
            });
            let image = refusal.map_or(image, |refusal| Err(refusal.why.clone()));
            let shown = image.as_ref().ok();
            Ok(Workspace {
                name: name.clone(),
                image_id: shown.and_then(Image::library_id),
                image_name: shown.map(|image| image.name.clone()),
                color: shown.and_then(Image::color),
                playlist_id,
                monitor: monitor.map(|(monitor, _)| monitor.clone()),
                warning: image
                    .err()
                    .or_else(|| is_blind.then(|| NOT_FOLLOWED.to_owned())),
            })
        };
        settings.workspaces.iter().map(record).collect()
    }

    /// The meaning of an entry, with a warning instead of an image that cannot be shown.
    fn meaning(&self, store: &Store, written: &str) -> Result<Meaning, store::Error> {
        let reference = Reference::parse(written);
        let mut playlist_id = None;
        let id = match reference {
            Reference::Playlist(name) => {
                playlist_id = store.read(|c| playlists::named(c, name))?;
                let Some(playlist) = playlist_id else {
                    let image = Err(format!("no playlist named {name:?}"));
                    return Ok(Meaning { playlist_id, image });
                };
                image_of_playlist(store, playlist)?
            }
            Reference::Id(id) => Some(id),
            Reference::Color(rgb) => Some(color::image_id(rgb)),
            Reference::Path(path) => {
                let path = self.backends.dirs.tilde(path);
                let image = store.read(|c| images::by_path(c, &path))?;
                image.map(|image| image.id)
            }
            Reference::Name(name) => store.read(|c| images::named(c, name))?.pop(),
        };
        let image = match id {
            Some(id) => store.read(|c| images::assigned(c, id))?,
            None => None,
        };
        let image = image.ok_or_else(|| reference.nothing());
        Ok(Meaning {
            playlist_id,
            image: image.and_then(|image| self.showable_image(image)),
        })
    }

    /// An image, or the warning why it cannot be shown.
    fn showable_image(&self, image: Image) -> Result<Image, String> {
        if !missing_file::without_file(slice::from_ref(&image)).is_empty() {
            let Image { name, id, .. } = image;
            return Err(format!("the file of {name} ({id}) is missing"));
        }
        match self.choose(&image) {
            Ok(_) => Ok(image),
            Err(why) => Err(why.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_told_apart() {
        let check =
            |written, expected| assert_eq!(Reference::parse(written), expected, "{written}");
        check("lake", Reference::Name("lake"));
        check("7", Reference::Name("7"));
        check("name:id:7", Reference::Name("id:7"));
        check("id:7", Reference::Id(7));
        check("id:x", Reference::Name("id:x"));
        check("playlist:sea", Reference::Playlist("sea"));
        check("#1e1e2e", Reference::Color([30, 30, 46]));
        check("#1 lake", Reference::Name("#1 lake"));
        check("/a.png", Reference::Path(Path::new("/a.png")));
        check("~/a.png", Reference::Path(Path::new("~/a.png")));
    }
}
