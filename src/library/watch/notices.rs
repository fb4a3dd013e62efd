//! The kernel's watches of one directory, through the crate notify: creations, moves, the end of
//! writing and removals, and no opens, so that who reads a file wakes nobody.
//!
//! Each directory below is watched by itself: the look that lists it asks for the watch, and knows
//! where the kernel refused. The crate's thread may hang with the disk that it asks; it is its
//! directory's alone. What may lead elsewhere on the way to the directory is watched beside it (`way`).

use std::path::Path;

use notify::event::{EventKind, EventKindMask};
use notify::{Config, ErrorKind, INotifyWatcher, RecursiveMode, Watcher};

use super::way::Way;
use crate::sys::no_watches_left;

/// What has happened, for whoever was told to call.
pub(super) enum Notice {
    At(std::path::PathBuf),
    /// The kernel's queue was full.
    Lost,
}

/// Why there is no watch, for people.
#[derive(Clone, Debug)]
pub(super) struct Refused(String);

/// Dropping them ends them.
pub(super) struct Notices {
    kernel: Option<(INotifyWatcher, Way)>,
    refused: Option<Refused>,
}

impl Notices {
    /// Of nothing yet. `tell` must not block.
    pub(super) fn new(tell: impl Fn(Notice) + Send + 'static) -> Result<Self, Refused> {
        let mask = EventKindMask::CREATE
            | EventKindMask::REMOVE
            | EventKindMask::MODIFY_NAME
            | EventKindMask::ACCESS_CLOSE;
        let handler = move |event: notify::Result<notify::Event>| match event {
            Ok(event) if event.need_rescan() => tell(Notice::Lost),
            Ok(event) if matters(event.kind) => {
                event.paths.into_iter().for_each(|path| tell(Notice::At(path)));
            }
            Ok(_) => {}
            Err(_) => tell(Notice::Lost),
        };
        let watcher = INotifyWatcher::new(handler, Config::default().with_event_kinds(mask));
        let (Ok(watcher), Ok(way)) = (watcher, Way::new()) else {
            return Err(Refused(too_many("instances")));
        };
        Ok(Self { kernel: Some((watcher, way)), refused: None })
    }

    /// None at all, for this reason.
    pub(super) fn none(refused: Refused) -> Self {
        Self { kernel: None, refused: Some(refused) }
    }

    /// Watches a directory, if the kernel allows one more.
    pub(super) fn watch(&mut self, directory: &Path) {
        let Some((watcher, _)) = &mut self.kernel else { return };
        let watched = watcher.watch(directory, RecursiveMode::NonRecursive);
        if let Err(error) = watched
            && matches!(error.kind, ErrorKind::MaxFilesWatch)
        {
            self.refused.get_or_insert_with(|| Refused(too_many("watches")));
        }
    }

    /// Watches the way to a directory, as far as the kernel allows.
    pub(super) fn follow(&mut self, directory: &Path) {
        let Some((_, way)) = &mut self.kernel else { return };
        if way.add(directory).is_err() {
            self.refused.get_or_insert_with(|| Refused(too_many("watches")));
        }
    }

    pub(super) fn way(&self) -> Option<&Way> {
        self.kernel.as_ref().map(|(_, way)| way)
    }

    /// Why not everything is watched.
    pub(super) fn refused(&self) -> Option<String> {
        self.refused.as_ref().map(|refused| refused.0.clone())
    }
}

fn matters(kind: EventKind) -> bool {
    !matches!(kind, EventKind::Any)
}

fn too_many(what: &str) -> String {
    format!(
        "{}; until then changes are found at a start, by SIGHUP and by `murald library scan`",
        no_watches_left(what)
    )
}
