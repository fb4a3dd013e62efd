//! The verbs that list, search and show images.

use super::super::Error;
use super::super::call::Call;
use super::super::connection::RequestPath;
use super::super::picture;
use super::super::request::Record;
use super::super::stdout::Stdout;
use super::super::terminal::Terminal;
use super::super::verb::{Argument, Group, Kind, Verb};
use super::contact_sheet::SHEET;
use super::delete::DELETE;
use super::edit::FAVOURITE;
use super::image_list::list;
use super::image_sheet::{ONE, PICTURE, SIZE, sheet, show};
use super::{edit, files, gallery};
use crate::wire::Image;

pub(super) const GROUP: Group = Group {
    title: "Images",
    verbs: &[
        Verb::new(&["images", "list"], "List the images of the library", list)
            .flags(gallery::FLAGS)
            .help(
                "With several filters, only images that pass all of them. Commands that change what\n\
                 filters find refuse one that is empty.",
            ),
        Verb::new(&["images", "search"], "Search images by words in their names and tags", list)
            .arguments(&[Argument::some(
                "WORD",
                Kind::Text,
                "Words that must all be there; capitals do not matter",
            )])
            .flags(gallery::FLAGS),
        Verb::new(&["images", "show"], "Show a picture in the terminal, and all about it", picture)
            .arguments(&[ONE])
            .flags(&[SIZE, PICTURE])
            .help(
                "chafa draws the picture if it is installed, otherwise it consists of coloured half\n\
                 blocks. With NO_COLOR only `--picture blocks` draws it.",
            ),
        SHEET,
        edit::UPDATE,
        edit::RENAME,
        edit::TAG,
        edit::MOVE,
        edit::SELECT,
        edit::TAGS,
        files::THUMBNAIL,
        files::RAW,
        DELETE,
        FAVOURITE,
    ],
};

impl Record for Image {
    fn show(self, call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
        show(call, stdout, &self)
    }
}

fn picture(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let connection = call.connect()?;
    let wish = picture::Wish::of(call.text("--size"), call.text("--picture"))?;
    let id = call.word("IMAGE");
    let answer = connection.get(&RequestPath::new(&[&"images", &id]))?;
    let thumbnail = RequestPath::new(&[&"images", &id, &"thumbnail"]);
    stdout.show(&answer, |stdout, image: Image| {
        let sheet = sheet(&image, &connection);
        let assumed = || wish.is_forced().then(Terminal::assumed);
        if let Some(terminal) = stdout.terminal().or_else(assumed)
            && wish.is_drawn(terminal)
            // Where there is no thumbnail, the words tell enough.
            && let Ok(file) = connection.get(&thumbnail)
        {
            picture::show(&file.body, stdout, terminal, &wish, sheet.lines())?;
        }
        stdout.table(&sheet)
    })
}
