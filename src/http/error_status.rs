//! The status and code of every module's errors: one table, one test.

use std::sync::Arc;

use serde_json::json;

use super::error::Error;
use crate::config::Section;
use crate::error_chain::chain;
use crate::store::folders;
use crate::wire::{BadParameter, ErrorCode};
use crate::{config, library, playlist, store, transcode, wallpaper};

const RECOVERY: &str =
    "`murald library check` says what is damaged; stop murald and run `murald library restore`";

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        Self::from(Arc::new(error))
    }
}

impl From<Arc<store::Error>> for Error {
    fn from(error: Arc<store::Error>) -> Self {
        if error.is_storage() {
            // Something the user can fix: the message says what.
            Self::new(500, error.to_string())
                .details("`murald doctor` checks the disk and the directories")
                .cause(error)
        } else if error.is_damage() {
            Self::new(500, "the database is damaged")
                .details(RECOVERY)
                .cause(error)
        } else {
            Self::internal(error)
        }
    }
}

/// An answer that cannot be written as JSON is our mistake.
impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::internal(error)
    }
}

impl From<BadParameter> for Error {
    fn from(
        BadParameter {
            name,
            value,
            allowed,
        }: BadParameter,
    ) -> Self {
        Self::parameter(&name, &value, allowed)
    }
}

impl From<config::Error> for Error {
    fn from(error: config::Error) -> Self {
        use config::Error as Why;
        let text = error.to_string();
        match error {
            Why::Type { .. }
            | Why::Refused { .. }
            | Why::UnknownKey { .. }
            | Why::Unwatchable { .. } => Self::new(400, text),
            // From a body: paths with unknown sections are answered earlier.
            Why::UnknownSection { .. } => {
                let all: Vec<String> = Section::top().into_iter().map(Section::heading).collect();
                Self::new(400, text).details(format!("sections are {}", all.join(", ")))
            }
            Why::NoAnswer { .. } => Self::new(503, text),
            // Somebody is editing the file: the edit has precedence over a request.
            Why::Broken { .. } | Why::BeingWritten { .. } | Why::Invalid { .. } => {
                Self::new(409, text)
            }
            Why::Read { ref source, .. } | Why::Write { ref source, .. } => {
                fixable(text, chain(source), error)
            }
            Why::Watch { .. } => Self::internal(error),
        }
    }
}

impl From<wallpaper::Error> for Error {
    fn from(error: wallpaper::Error) -> Self {
        use wallpaper::Error as Why;
        let text = error.to_string();
        match error {
            Why::NoBackend { checked, .. } => {
                Self::new(503, text).code(ErrorCode::NoBackend, json!({ "checked": checked }))
            }
            Why::NotUsable { checked, .. } => Self::new(503, text)
                .details("`murald backends` lists the backends and the programs that they need")
                .code(ErrorCode::NoBackend, json!({ "checked": checked })),
            Why::Incompatible {
                backend,
                media_type,
                image_id,
                image_name,
                remedy,
                ..
            } => {
                let meta = json!({
                    "backend": backend.as_str(),
                    "media_type": media_type,
                    "image_id": image_id,
                    "image_name": image_name,
                });
                Self::new(400, text)
                    .details(remedy.to_string())
                    .code(ErrorCode::IncompatibleBackend, meta)
            }
            Why::UnknownMonitors { .. } | Why::NoMonitor | Why::NoWord { .. } => {
                Self::new(400, text)
            }
            Why::NothingBefore { .. } | Why::NoSound(_) => Self::new(409, text),
            Why::UnknownBackend { .. }
            | Why::NoImage { .. }
            | Why::FileGone { .. }
            | Why::EmptyLibrary
            | Why::NoMatch => Self::new(404, text),
            // The message of the backend is for the person who configured it.
            Why::Backend { ref source, .. } => fixable(text, chain(source), error),
            Why::Store(source) => source.into(),
            Why::Busy | Why::Ending => Self::busy(text),
        }
    }
}

impl From<folders::Refusal> for Error {
    fn from(refusal: folders::Refusal) -> Self {
        use folders::Refusal as Why;
        let text = refusal.to_string();
        match refusal {
            Why::NoFolder { .. } => Self::new(404, text),
            Why::Taken { .. } | Why::Cycle { .. } => Self::new(409, text),
            Why::TooDeep => Self::new(400, text),
            Why::Store(source) => source.into(),
        }
    }
}

impl From<playlist::Error> for Error {
    fn from(failure: playlist::Error) -> Self {
        use playlist::Error as Why;
        use store::playlists::Refusal;
        let text = failure.to_string();
        match failure {
            Why::Refused(Refusal::Store(source)) => source.into(),
            Why::Refused(Refusal::NoPlaylist { .. }) => Self::new(404, text),
            Why::Refused(Refusal::Taken { .. })
            | Why::NotRunning { .. }
            | Why::NotRunningOn { .. } => Self::new(409, text),
            Why::Refused(Refusal::NoLocation { .. }) => Self::new(400, text).details(
                "`murald config set location.latitude 38.7` sets the latitude; set location.longitude, too",
            ),
            Why::Refused(Refusal::Dynamic { .. }) => Self::new(400, text).details(
                "`murald playlist edit PLAYLIST IMAGE...` replaces the filters with a list of images",
            ),
            Why::Refused(_)
            | Why::Empty { .. }
            | Why::NothingFound { .. }
            | Why::NoSteps { .. }
            | Why::OneForAll { .. } => Self::new(400, text),
            Why::Picture(failure) => failure.into(),
            Why::Overtaken { .. } => Self::new(500, text),
            Why::Busy | Why::Ending => Self::busy(text),
        }
    }
}

impl From<library::Error> for Error {
    fn from(error: library::Error) -> Self {
        use library::Error as Why;
        let text = error.to_string();
        match error {
            Why::Busy
            | Why::Ended
            | Why::Stopped
            | Why::NoAnswer { .. }
            | Why::Unmounted { .. } => Self::busy(text),
            Why::NoImage { .. }
            | Why::FileGone { .. }
            | Why::NotFile { .. }
            | Why::NoBatch(_)
            | Why::NotKept { .. } => Self::new(404, text),
            Why::BadName { .. }
            | Why::Undeclared { .. }
            | Why::NotWeb { .. }
            | Why::InPlace { .. }
            | Why::NotVideo { .. }
            | Why::BadLoop { .. } => Self::new(400, text),
            Why::Package { .. } => Self::new(400, text).details(
                "`murald slideshow DIR` shows the pictures of a directory one after another, `murald import` \
                 imports them",
            ),
            Why::DirectoryInPlace { .. } => Self::new(400, text)
                .details("`murald watch add DIR` uses the files of a directory where they are"),
            Why::Same { .. } => Self::new(409, text),
            Why::NotKnown { .. } => Self::new(409, text).details("nothing was deleted"),
            Why::Transcode { source, .. } => source.into(),
            Why::Store(source) => source.into(),
            Why::Folder(refusal) => refusal.into(),
            // Usually the disk is full or read-only, which the user can fix.
            Why::File {
                source: ref why, ..
            } => fixable(text, chain(why), error),
            // Errors of single files: imports report them as events.
            Why::TooLong { .. }
            | Why::EmptyDirectory { .. }
            | Why::Name { .. }
            | Why::NothingToDo
            | Why::Mistake { .. }
            | Why::Media { .. } => Self::new(500, text).cause(error),
        }
    }
}

/// An error that the user can fix: the details say what is wrong.
fn fixable(
    text: String,
    details: String,
    cause: impl std::error::Error + Send + Sync + 'static,
) -> Error {
    Error::new(500, text).details(details).cause(cause)
}

impl From<transcode::Error> for Error {
    fn from(error: transcode::Error) -> Self {
        use transcode::Error as Why;
        match error {
            Why::Busy | Why::Ended => Self::busy(error.to_string()),
            // Something the user can fix: the message says what.
            Why::Missing { .. } | Why::NotShown(_) => Self::new(503, error.to_string()),
            // Usually the fault of the file or the disk: only ffmpeg's message is known.
            Why::Run { .. }
            | Why::Failed { .. }
            | Why::Write { .. }
            | Why::Answer { .. }
            | Why::NoPicture
            | Why::Truncated
            | Why::TooLarge { .. } => fixable("ffmpeg failed".to_owned(), chain(&error), error),
        }
    }
}

/// Shared with the crates of tests.
#[cfg(test)]
#[path = "../../tests/support/snapshot.rs"]
#[allow(unreachable_pub)]
mod snapshot;

#[cfg(test)]
mod tests {
    use super::snapshot::snapshot;
    use super::*;
    use crate::backends::{Kind, UnavailableReason};
    use crate::config::BackendName;
    use crate::wallpaper::Error as Why;
    use crate::wire::MediaType;

    /// Checks the status, and that the body is the accepted one.
    #[track_caller]
    fn check(failure: impl Into<Error> + std::fmt::Debug, status: u16) {
        let what = format!("{failure:?}");
        let full = failure.into().into_response("id-1");
        assert_eq!(full.status, status, "{}", full.text());
        snapshot(&what, &full.text());
    }

    #[test]
    fn every_error_has_its_status() {
        check(store::Error::Damaged { what: "x".into() }, 500);
        let corrupt = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
        let corrupt = rusqlite::Error::SqliteFailure(corrupt, None);
        check(store::Error::Query(corrupt), 500);
        let full = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL);
        let full = rusqlite::Error::SqliteFailure(full, None);
        check(store::Error::Query(full), 500);
        let held = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
        let held = rusqlite::Error::SqliteFailure(held, None);
        check(store::Error::Query(held), 500);
        check(
            Why::NoBackend {
                lack: UnavailableReason::Leave,
                checked: vec!["feh".into()],
                unusable: Vec::new(),
            },
            503,
        );
        check(
            Why::NotUsable {
                backend: BackendName::Feh,
                checked: vec!["feh".into()],
                missing: vec!["feh"],
                lack: UnavailableReason::Leave,
            },
            503,
        );
        check(
            Why::Incompatible {
                backend: BackendName::Feh,
                kind: Kind::Video,
                media_type: MediaType::Video,
                image_id: Some(7),
                image_name: "x".into(),
                remedy: wallpaper::Remedy::None,
            },
            400,
        );
        let names = || vec!["DP-1".to_owned()];
        check(
            Why::UnknownMonitors {
                names: names(),
                connected: names(),
            },
            400,
        );
        let denied = || std::io::ErrorKind::PermissionDenied.into();
        let write = config::Error::Write {
            path: "/c.toml".into(),
            source: denied(),
        };
        check(write, 500);
        let broken = config::Error::Broken {
            message: "line 7".into(),
        };
        check(broken, 409);
        let written = config::Error::BeingWritten {
            path: "/c.toml".into(),
        };
        check(written, 409);
        check(
            config::Error::UnknownKey {
                problem: "unknown setting app.x".into(),
            },
            400,
        );
        check(
            config::Error::UnknownSection {
                section: "x".into(),
            },
            400,
        );
        check(Why::NoMonitor, 400);
        check(Why::UnknownBackend { name: "x".into() }, 404);
        check(Why::NoImage { id: 7 }, 404);
        check(
            Why::FileGone {
                id: 7,
                path: "/x".into(),
                away: false,
            },
            404,
        );
        check(
            Why::FileGone {
                id: 7,
                path: "/x".into(),
                away: true,
            },
            404,
        );
        check(Why::EmptyLibrary, 404);
        check(Why::NoMatch, 404);
        check(Why::Busy, 503);
        check(Why::Ending, 503);
        use playlist::Error as Not;
        use store::playlists::Refusal;
        let name = || "x".to_owned();
        check(Not::Refused(Refusal::NoPlaylist { id: 7 }), 404);
        check(Not::Refused(Refusal::Taken { name: name() }), 409);
        check(
            Not::Refused(Refusal::UnknownImages { ids: vec![7, 8] }),
            400,
        );
        check(Not::NotRunning { name: name() }, 409);
        check(Not::Empty { name: name() }, 400);
        let gone = Not::Picture(Why::FileGone {
            id: 7,
            path: "/x".into(),
            away: false,
        });
        check(gone, 404);
        check(Not::Overtaken { name: name() }, 500);
        check(Not::Busy, 503);
        check(folders::Refusal::NoFolder { id: 7 }, 404);
        check(folders::Refusal::Taken { name: "x".into() }, 409);
        check(folders::Refusal::Cycle { id: 7 }, 409);
        check(folders::Refusal::TooDeep, 400);
        check(library::Error::Busy, 503);
        check(library::Error::Ended, 503);
        check(library::Error::NoBatch("b".into()), 404);
        check(
            library::Error::NotVideo {
                id: 7,
                name: "a".into(),
            },
            400,
        );
        check(library::Error::Same { id: 7 }, 409);
        check(library::Error::NotKept { path: "/x".into() }, 404);
        check(library::Error::NotKnown { path: "/x".into() }, 409);
        let ffmpeg = |source| library::Error::Transcode {
            path: "/x".into(),
            source,
        };
        check(ffmpeg(transcode::Error::Missing { program: "ffmpeg" }), 503);
        check(ffmpeg(transcode::Error::Busy), 503);
        check(ffmpeg(transcode::Error::Truncated), 500);
        check(library::Error::NotFile { path: "/x".into() }, 404);
        check(library::Error::FileGone { id: 7 }, 404);
        let full = std::io::ErrorKind::StorageFull.into();
        let full = library::Error::File {
            action: "write",
            path: "/x".into(),
            source: full,
        };
        check(full, 500);
    }
}
