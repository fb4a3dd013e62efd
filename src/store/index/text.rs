//! Names and tags in one long text, so that a word is looked for once and not in every image.

use memchr::memmem::Finder;

use super::bits::Bits;
use super::{Entry, Slot};

/// Between two images: in no name and no tag.
const END: u8 = 0;
/// Between name and tags: a word never runs over it.
const BREAK: u8 = b'\n';
/// A span whose image has changed or gone.
const DEAD: Slot = Slot::MAX;

#[derive(Debug, Default)]
pub(super) struct Texts {
    /// In lower case.
    text: Vec<u8>,
    /// Where each image begins, in the order of the text.
    spans: Vec<(usize, Slot)>,
    /// The span of each slot.
    of_slot: Vec<usize>,
    dead: usize,
}

impl Texts {
    pub(super) fn add(&mut self, slot: Slot, entry: &Entry) {
        let start = self.text.len();
        self.text.extend(entry.name.to_lowercase().bytes());
        for tag in &entry.tags {
            self.text.push(BREAK);
            self.text.extend(tag.to_lowercase().bytes());
        }
        self.text.push(END);
        if self.of_slot.len() <= slot as usize {
            self.of_slot.resize(slot as usize + 1, 0);
        }
        self.of_slot[slot as usize] = self.spans.len();
        self.spans.push((start, slot));
    }

    pub(super) fn remove(&mut self, slot: Slot) {
        self.spans[self.of_slot[slot as usize]].1 = DEAD;
        self.dead += 1;
        if self.dead > 64 && self.dead > self.spans.len() / 2 {
            self.compact();
        }
    }

    /// Leaves the images that have this word, in lower case, in their name or a tag.
    pub(super) fn with(&self, word: &str, among: &mut Bits) {
        let finder = Finder::new(word);
        // Many are found faster by running through all texts than one by one.
        if among.count() > self.spans.len() / 4 {
            among.and(&self.everywhere(&finder));
        } else {
            among.retain(|slot| {
                let span = self.of_slot[slot as usize];
                finder.find(&self.text[self.spans[span].0..self.end(span)]).is_some()
            });
        }
    }

    fn everywhere(&self, finder: &Finder<'_>) -> Bits {
        let mut found = Bits::default();
        let (mut from, mut span) = (0, 0);
        while let Some(at) = finder.find(&self.text[from..]) {
            span = self.span_of(from + at, span);
            if self.spans[span].1 != DEAD {
                found.set(self.spans[span].1);
            }
            // One hit is enough: on with the next image.
            from = self.end(span);
        }
        found
    }

    /// The span of a place in the text, at `from` or not far behind it.
    fn span_of(&self, place: usize, from: usize) -> usize {
        let begins = |span: usize| self.spans.get(span).is_some_and(|&(start, _)| start <= place);
        let mut step = 1;
        while begins(from + step) {
            step *= 2;
        }
        let (low, high) = (from + step / 2, (from + step).min(self.spans.len()));
        low + self.spans[low..high].partition_point(|&(start, _)| start <= place) - 1
    }

    fn end(&self, span: usize) -> usize {
        self.spans.get(span + 1).map_or(self.text.len(), |&(start, _)| start)
    }

    /// Drops the texts of images that changed or went.
    fn compact(&mut self) {
        let mut text = Vec::with_capacity(self.text.len() / 2);
        let mut spans = Vec::with_capacity(self.spans.len() - self.dead);
        for (at, &(start, slot)) in self.spans.iter().enumerate().filter(|(_, s)| s.1 != DEAD) {
            self.of_slot[slot as usize] = spans.len();
            spans.push((text.len(), slot));
            text.extend_from_slice(&self.text[start..self.end(at)]);
        }
        (self.text, self.spans, self.dead) = (text, spans, 0);
    }
}
