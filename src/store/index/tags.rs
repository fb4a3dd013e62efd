//! The tags that images have, each kept once, and the images of each.

use std::collections::HashMap;

use super::DocId;
use super::bitmap::Bitmap;
use crate::wire::collate::{folded, sort_key};

/// The place of a tag in the list of all.
type Number = u32;

#[derive(Debug, Default)]
pub(super) struct Tags {
    all: Vec<Tag>,
    /// By how they are written.
    numbers: HashMap<String, Number>,
}

#[derive(Debug)]
struct Tag {
    text: String,
    lower: String,
    /// The dead stay among them.
    docs: Vec<DocId>,
}

impl Tags {
    /// The tags of the next image.
    pub(super) fn push(&mut self, doc: DocId, tags: &[String]) {
        for text in tags {
            let number = match self.numbers.get(text) {
                Some(&number) => number,
                None => {
                    let (number, lower) = (self.all.len() as Number, folded(text));
                    self.numbers.insert(text.clone(), number);
                    self.all.push(Tag { text: text.clone(), lower, docs: Vec::new() });
                    number
                }
            };
            self.all[number as usize].docs.push(doc);
        }
    }

    /// All that one of these images has, sorted.
    pub(super) fn of(&self, images: &Bitmap) -> Vec<String> {
        let used = self.all.iter().filter(|tag| tag.docs.iter().any(|&doc| images.has(doc)));
        let mut tags: Vec<String> = used.map(|tag| tag.text.clone()).collect();
        tags.sort_by_cached_key(|tag| (sort_key(tag), tag.clone()));
        tags
    }

    /// The images with a tag that fits in lower case.
    pub(super) fn having(&self, fits: impl Fn(&str) -> bool) -> Bitmap {
        let mut found = Bitmap::default();
        let fitting = self.all.iter().filter(|tag| fits(&tag.lower));
        fitting.flat_map(|tag| &tag.docs).for_each(|&doc| found.set(doc));
        found
    }

    pub(super) fn shrink(&mut self) {
        self.all.iter_mut().for_each(|tag| tag.docs.shrink_to_fit());
    }
}
