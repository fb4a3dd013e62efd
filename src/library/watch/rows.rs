//! The ends of images in place: their files are gone, or have another image's content. Runs in the
//! thread `watch`; looks at no disk, as whoever has looked says what is there.

use std::path::{Path, PathBuf};

use super::super::Error;
use super::super::import_file::ImportContext;
use super::super::removal;
use crate::events::EventBus;
use crate::store::images;
use crate::store::purge::{self, Purged};
use crate::store::watched;
use crate::store::{Connection, edits, folders};
use crate::wire::{Event, GalleryDomain, Image};

/// Rows that one transaction takes away: others that write wait for tenths of a second, not for all.
const AT_ONCE: usize = 500;

/// Images without rows, and what referred to them.
#[derive(Default)]
struct Ended {
    images: Vec<Image>,
    references: Purged,
    moved: usize,
}

impl Ended {
    fn end(&mut self, c: &Connection, image: Image) -> Result<(), Error> {
        self.references += purge::one(c, image.id)?;
        self.images.push(image);
        Ok(())
    }

    /// Clears what murald itself had of them, and tells of it.
    fn tell(self, context: &ImportContext, bus: &EventBus) -> Result<(), Error> {
        self.images.iter().for_each(|image| context.thumbnails.remove(image));
        removal::clear_own(context, self.images.iter().flat_map(purge::on_disk));
        let images = (self.images.len() + self.moved > 0).then_some(GalleryDomain::Images);
        for domain in images.into_iter().chain(self.references.domains()) {
            bus.publish(&Event::GalleryChanged { domain });
        }
        Ok(())
    }
}

/// Takes the images of these files out of the library; where another file has the content, that is
/// the image's from now on.
pub(super) fn leave(
    context: &ImportContext,
    bus: &EventBus,
    paths: &[PathBuf],
    is_there: &dyn Fn(&Path) -> bool,
) -> Result<(), Error> {
    for some in paths.chunks(AT_ONCE) {
        let mut ended = Ended::default();
        context.store.write(|c| -> Result<(), Error> {
            some.iter().try_for_each(|path| leave_one(c, path, is_there, &mut ended))
        })?;
        ended.tell(context, bus)?;
    }
    clear_folders(context, bus)
}

fn leave_one(
    c: &Connection,
    path: &Path,
    is_there: &dyn Fn(&Path) -> bool,
    ended: &mut Ended,
) -> Result<(), Error> {
    let Some(file) = watched::get(c, path)? else { return Ok(()) };
    watched::forget(c, path)?;
    let image = file.image_id.map(|id| images::get(c, id)).transpose()?.flatten();
    let Some(image) = image.filter(|image| image.in_place && image.path == path) else {
        return Ok(());
    };
    let others = watched::of_image(c, image.id)?;
    match others.into_iter().find(|other| is_there(other)) {
        Some(other) => {
            edits::set_path(c, image.id, &other)?;
            ended.moved += 1;
        }
        None => {
            log::info!("{} is gone: image {} leaves the library", path.display(), image.id);
            ended.end(c, image)?;
        }
    }
    Ok(())
}

/// Ends an image whose file has another one's content, and whose own has not turned up: what it had
/// of tags and places is the other's.
pub(super) fn unite(
    context: &ImportContext,
    bus: &EventBus,
    id: i64,
    path: &Path,
) -> Result<(), Error> {
    let mut ended = Ended::default();
    context.store.write(|c| -> Result<(), Error> {
        let still = watched::displaced(c)?.iter().any(|(one, _)| *one == id);
        let Some(image) = images::get(c, id)?.filter(|_| still) else { return Ok(()) };
        let successor = watched::get(c, path)?.and_then(|file| file.image_id);
        let successor = successor.map(|id| images::get(c, id)).transpose()?.flatten();
        if let Some(successor) = successor {
            ended.references.playlists += edits::unite(c, &image, &successor)?;
        }
        ended.end(c, image)
    })?;
    ended.tell(context, bus)?;
    // Where it is shown, the other takes its place.
    context.tell_rewritten(id);
    Ok(())
}

/// Images in place go with their directory's watch; their files stay.
pub(super) fn forget(
    context: &ImportContext,
    bus: &EventBus,
    directory: &Path,
) -> Result<(), Error> {
    let all = context.store.read(|c| watched::images_below(c, directory))?;
    for some in all.chunks(AT_ONCE) {
        let mut ended = Ended::default();
        context.store.write(|c| -> Result<(), Error> {
            for (id, _) in some {
                if let Some(image) = images::get(c, *id)?.filter(|image| image.in_place) {
                    ended.end(c, image)?;
                }
            }
            Ok(())
        })?;
        ended.tell(context, bus)?;
    }
    context.store.write(|c| -> Result<(), Error> {
        // Whoever watches it again starts anew.
        Ok(watched::forget_below(c, directory)?)
    })?;
    clear_folders(context, bus)
}

/// Folders that were made for directories go when nothing is in them any more.
fn clear_folders(context: &ImportContext, bus: &EventBus) -> Result<(), Error> {
    let mut gone = 0;
    loop {
        if context.store.read(watched::empty_folders)?.is_empty() {
            break;
        }
        gone += context.store.write(|c| -> Result<usize, Error> {
            let empty = watched::empty_folders(c)?;
            for &id in &empty {
                folders::remove(c, id)?;
            }
            Ok(empty.len())
        })?;
    }
    if gone > 0 {
        bus.publish(&Event::GalleryChanged { domain: GalleryDomain::Folders });
    }
    Ok(())
}
