//! `murald library`: checks and restores the database, removes missing images.

use serde::Deserialize;

use super::super::Error;
use super::super::call::Call;
use super::super::request::{Record, Request};
use super::super::stdout::Stdout;
use super::super::verb::{Argument, Database, Group, Kind, Verb};

pub(super) const GROUP: Group = Group {
    title: "Library",
    verbs: &[
        Verb::database(
            &["library", "check"],
            "Look for damage in the database (no daemon needed)",
            Database::Check,
        )
        .help(
            "Looks at all of it, and changes nothing; the daemon may run meanwhile. Exits with 1 if\n\
             something is wrong.",
        ),
        Verb::database(
            &["library", "restore"],
            "Bring back the database from a backup",
            Database::Restore,
        )
        .arguments(&[Argument::optional("FILE", Kind::File, "The backup, if not the newest sound one")])
        .help(
            "    murald stop; murald library restore && murald start\n\n\
             The daemon copies the database with the first change of a day and keeps three copies,\n\
             which \"library check\" lists. What changed since then is lost; pictures that were imported\n\
             are taken in again by the next start, as their files are still there. The database as it\n\
             was is kept beside it. A file whose tables are not murald's, or that has rows that cannot\n\
             be read, is refused, and nothing is changed. Exits with 75 while a daemon runs.",
        ),
        Verb::asking(
            &["library", "purge-missing"],
            "Forget all images whose files are missing",
            PURGE,
        )
        .help(
            "Where over a fifth of the files and over twenty are missing at a start, their images are\n\
             kept, as their disk may only be away. This forgets them, with their tags and their places\n\
             in playlists. Files that return are simply there again.",
        ),
    ],
};

const PURGE: Request = Request::post("/library/purge-missing", &[]).shows::<Purged>();

#[derive(Deserialize)]
struct Purged {
    purged: u64,
}

impl Record for Purged {
    fn show(self, _: &Call, stdout: &mut Stdout) -> Result<(), Error> {
        let images = if self.purged == 1 { "image" } else { "images" };
        stdout.say(format!("{} {images} forgotten", self.purged))
    }
}
