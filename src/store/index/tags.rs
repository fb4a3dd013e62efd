//! The tags in use, each kept once, and which of them each image has.

use std::collections::HashMap;

use super::DocId;
use super::bitmap::Bitmap;

/// The place of a tag in the list of all.
type Number = u32;

#[derive(Debug, Default)]
pub(super) struct Tags {
    all: Vec<Tag>,
    /// By how they are written.
    numbers: HashMap<String, Number>,
    /// Of all images, one after another.
    lists: Vec<Number>,
    /// Where each image's begin.
    starts: Vec<u32>,
}

#[derive(Debug)]
struct Tag {
    text: String,
    lower: String,
    /// Images that have it.
    uses: usize,
}

impl Tags {
    /// The tags of the next image.
    pub(super) fn push(&mut self, tags: &[String]) {
        self.starts.push(self.lists.len() as u32);
        for text in tags {
            let number = match self.numbers.get(text) {
                Some(&number) => number,
                None => {
                    let (number, lower) = (self.all.len() as Number, text.to_lowercase());
                    self.numbers.insert(text.clone(), number);
                    self.all.push(Tag { text: text.clone(), lower, uses: 0 });
                    number
                }
            };
            self.all[number as usize].uses += 1;
            self.lists.push(number);
        }
    }

    /// An image is gone, or has others now.
    pub(super) fn release(&mut self, doc: DocId) {
        for at in self.range(doc) {
            self.all[self.lists[at] as usize].uses -= 1;
        }
    }

    /// All that some image has, sorted.
    pub(super) fn in_use(&self) -> Vec<String> {
        let used = self.all.iter().filter(|tag| tag.uses > 0);
        let mut tags: Vec<String> = used.map(|tag| tag.text.clone()).collect();
        tags.sort_unstable();
        tags
    }

    /// The numbers of the tags that fit in lower case.
    pub(super) fn fitting(&self, fits: impl Fn(&str) -> bool) -> Bitmap {
        let mut fitting = Bitmap::default();
        for (number, tag) in (0..).zip(&self.all) {
            if tag.uses > 0 && fits(&tag.lower) {
                fitting.set(number);
            }
        }
        fitting
    }

    /// Whether an image has one of these tags.
    pub(super) fn has(&self, doc: DocId, tags: &Bitmap) -> bool {
        !tags.is_empty() && self.lists[self.range(doc)].iter().any(|&number| tags.has(number))
    }

    /// Adds the images with a tag that fits in lower case.
    pub(super) fn having(&self, fits: impl Fn(&str) -> bool, found: &mut Bitmap) {
        let fitting = self.fitting(fits);
        if fitting.is_empty() {
            return;
        }
        let (mut doc, starts) = (0, &self.starts);
        for (at, &number) in (0..).zip(&self.lists) {
            if fitting.has(number) {
                while starts.get(doc + 1).is_some_and(|&start| start <= at) {
                    doc += 1;
                }
                found.set(doc as DocId);
            }
        }
    }

    fn range(&self, doc: DocId) -> std::ops::Range<usize> {
        let doc = doc as usize;
        let end = self.starts.get(doc + 1).map_or(self.lists.len(), |&start| start as usize);
        self.starts[doc] as usize..end
    }

    pub(super) fn shrink(&mut self) {
        self.lists.shrink_to_fit();
        self.starts.shrink_to_fit();
    }
}
