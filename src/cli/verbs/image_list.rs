//! A table of images, one line each.

use serde::de::IgnoredAny;

use super::super::Error;
use super::super::call::Call;
use super::super::stdout::Stdout;
use super::super::table::{Cell, Table};
use super::super::terminal::{bytes, count};
use super::gallery;
use crate::wire::{Image, Page, Pagination};

pub(super) fn list(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let answer = gallery::answer(call, None)?;
    if stdout.is_json() {
        return stdout.body(&answer.body);
    }
    let page: Page<IgnoredAny> = answer.read()?;
    tell_of_the_rest(call, stdout, page.data.len(), &page.pagination);
    stdout.show(&answer, |stdout, page: Page<Image>| table(stdout, &page, call))
}

/// Whoever asked for no page is told that this is not all.
pub(super) fn tell_of_the_rest(call: &Call, stdout: &Stdout, shown: usize, all: &Pagination) {
    let total = all.total_items;
    if (shown as u64) < total && !call.has("--page") {
        stdout.warn(format!("{shown} of {}; --all shows every one", count(total, "image")));
    }
}

pub(super) fn table(stdout: &mut Stdout, page: &Page<Image>, call: &Call) -> Result<(), Error> {
    let all = &page.pagination;
    let images = count(all.total_items, "image");
    if all.total_items == 0 {
        return stdout.note(match gallery::filters(call) {
            true => "no image matches",
            false => "the library is empty; `murald import PATH` brings images in",
        });
    }
    if page.data.is_empty() {
        let pages = count(all.total_pages, "page");
        return stdout.note(format!("no page {}; {images} on {pages}", all.page));
    }
    let mut table = Table::new(&[">ID", "NAME", "=TYPE", ">PIXELS", ">SIZE", "TAGS", "COLORS"]);
    let swatches = stdout.terminal().is_none_or(|terminal| terminal.color);
    for image in &page.data {
        // As words they would take the room of the name.
        let shown = if swatches { image.colors.as_slice() } else { &[] };
        table.row([
            image.id.into(),
            (&image.name).into(),
            image.media_type.into(),
            format!("{}x{}", image.width, image.height).into(),
            Cell::from(bytes(image.file_size)).raw(image.file_size),
            Cell::list(&image.tags),
            Cell::palette(shown),
        ]);
    }
    stdout.table(&table)?;
    match call.has("--page") {
        true => stdout.note(format!("page {} of {}, {images}", all.page, all.total_pages)),
        false if (page.data.len() as u64) < all.total_items => Ok(()),
        false => stdout.note(images),
    }
}
