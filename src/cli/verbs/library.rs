//! The library as a whole: pictures that are missing.

use serde::Deserialize;

use super::super::Failure;
use super::super::call::Call;
use super::super::request::{Record, Request};
use super::super::screen::Screen;
use super::super::verb::{Group, Verb};

pub(super) const GROUP: Group = Group {
    title: "Library",
    verbs: &[Verb::asking(
        &["library", "purge-missing"],
        "Forget all images whose files are missing",
        PURGE,
    )
    .help(
        "Where over a fifth of the files and over twenty are missing at a start, their images are\n\
         kept, as their disk may only be away. This forgets them, with their tags and their places\n\
         in playlists. Files that return are simply there again.",
    )],
};

const PURGE: Request = Request::post("/library/purge-missing", &[]).shows::<Purged>();

#[derive(Deserialize)]
struct Purged {
    purged: u64,
}

impl Record for Purged {
    fn show(self, _: &Call, screen: &mut Screen) -> Result<(), Failure> {
        let images = if self.purged == 1 { "image" } else { "images" };
        screen.line(format!("{} {images} forgotten", self.purged))
    }
}
