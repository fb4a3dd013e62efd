//! The library as a whole: pictures that are missing.

use serde::Deserialize;

use super::super::Failure;
use super::super::call::Call;
use super::super::connection::Place;
use super::super::screen::Screen;
use super::super::verb::{Group, Verb};
use super::empty;

pub(super) const GROUP: Group = Group {
    title: "Library",
    verbs: &[Verb::new(
        &["library", "purge-missing"],
        "Forget all images whose files are missing",
        purge_missing,
    )
    .help(
        "Where over a fifth of the files and over twenty are missing at a start, their images are\n\
         kept, as their disk may only be away. This forgets them, with their tags and their places\n\
         in playlists. Files that return are simply there again.",
    )],
};

#[derive(Deserialize)]
struct Purged {
    purged: u64,
}

fn purge_missing(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let place = Place::new(&[&"library", &"purge-missing"]);
    let answer = call.connect()?.post(&place, &empty())?;
    screen.show(&answer, |screen, Purged { purged }: Purged| {
        let images = if purged == 1 { "image" } else { "images" };
        screen.line(format!("{purged} {images} forgotten"))
    })
}
