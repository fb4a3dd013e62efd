//! The words of names and tags, each kept once, with the images that have it.
//!
//! What is looked for is a part of a word, since neither holds white space. A library has far fewer
//! words than it has text, and of those only the ones that share three bytes in a row with what is
//! looked for are compared: a search costs what it finds, not what there is.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

use hashbrown::HashTable;
use memchr::memmem::Finder;

use super::bits::Bits;
use super::{Entry, Slot};

/// After each word: no byte of UTF-8.
const END: u8 = 0xff;

/// The place of a word in every column.
type Number = u32;
/// Three bytes in a row.
type Gram = [u8; 3];

#[derive(Debug, Default)]
pub(super) struct Words {
    /// All words in lower case, one after another.
    text: Vec<u8>,
    /// Where each begins.
    starts: Vec<usize>,
    /// Who has it.
    slots: Vec<Slots>,
    /// The numbers of the words, found by what they say.
    numbers: HashTable<Number>,
    hasher: RandomState,
    /// The words with these bytes, in the order of numbers.
    grams: HashMap<Gram, Vec<Number>>,
    /// Words that no image has any more.
    unused: usize,
}

/// Most words are one image's: a number, a checksum.
#[derive(Debug)]
enum Slots {
    One(Slot),
    /// In order; none when nobody has the word any more.
    Many(Vec<Slot>),
}

impl Words {
    pub(super) fn add(&mut self, slot: Slot, entry: &Entry) {
        words(entry, |word| match self.number(word) {
            Some(number) => {
                let slots = &mut self.slots[number as usize];
                self.unused -= usize::from(slots.is_empty());
                slots.add(slot);
            }
            None => self.append(word, slot),
        });
    }

    /// Takes away what `add` has added.
    pub(super) fn remove(&mut self, slot: Slot, entry: &Entry) {
        words(entry, |word| {
            // A word that is there twice has gone at the first.
            if let Some(number) = self.number(word)
                && self.slots[number as usize].remove(slot)
            {
                self.unused += usize::from(self.slots[number as usize].is_empty());
            }
        });
        if self.unused > 64 && self.unused > self.starts.len() / 2 {
            self.compact();
        }
    }

    /// Leaves the images that have this, in lower case and without white space, in a word.
    pub(super) fn with(&self, part: &str, among: &mut Bits) {
        let finder = Finder::new(part);
        let mut found = Bits::default();
        let mut take = |number: Number| {
            self.slots[number as usize].all().iter().for_each(|&slot| found.set(slot));
        };
        match self.rarest(part.as_bytes()) {
            Some(numbers) => numbers
                .iter()
                .copied()
                .filter(|&number| finder.find(self.word(number)).is_some())
                .for_each(&mut take),
            None => self.everywhere(&finder, &mut take),
        }
        among.and(&found);
    }

    /// The shortest list of words that holds all with this part. None for less than three bytes.
    fn rarest(&self, part: &[u8]) -> Option<&[Number]> {
        let lists = grams(part).map(|gram| self.grams.get(&gram).map_or(&[][..], Vec::as_slice));
        lists.min_by_key(|list| list.len())
    }

    /// Looks through the text of all words.
    fn everywhere(&self, finder: &Finder<'_>, take: &mut impl FnMut(Number)) {
        let (mut from, mut number) = (0, 0);
        while let Some(at) = finder.find(&self.text[from..]) {
            number = self.at(from + at, number);
            take(number as Number);
            // One hit is enough: on with the next word.
            from = self.end(number);
        }
    }

    /// The word at a place in the text, `from` or not far behind it.
    fn at(&self, place: usize, from: usize) -> usize {
        let begins = |number: usize| self.starts.get(number).is_some_and(|&start| start <= place);
        let mut step = 1;
        while begins(from + step) {
            step *= 2;
        }
        let (low, high) = (from + step / 2, (from + step).min(self.starts.len()));
        low + self.starts[low..high].partition_point(|&start| start <= place) - 1
    }

    fn number(&self, word: &str) -> Option<Number> {
        let same = |&number: &Number| self.word(number) == word.as_bytes();
        self.numbers.find(self.hasher.hash_one(word.as_bytes()), same).copied()
    }

    fn append(&mut self, word: &str, slot: Slot) {
        let number = self.starts.len() as Number;
        self.starts.push(self.text.len());
        self.text.extend_from_slice(word.as_bytes());
        self.text.push(END);
        self.slots.push(Slots::One(slot));
        for gram in grams(word.as_bytes()) {
            let list = self.grams.entry(gram).or_default();
            // The same three may be there twice.
            if list.last() != Some(&number) {
                list.push(number);
            }
        }
        let Self { text, starts, numbers, hasher, .. } = self;
        let hash = |&number: &Number| hasher.hash_one(word_at(text, starts, number));
        numbers.insert_unique(hash(&number), number, hash);
    }

    fn word(&self, number: Number) -> &[u8] {
        word_at(&self.text, &self.starts, number)
    }

    /// Where the next word begins.
    fn end(&self, number: usize) -> usize {
        end(&self.text, &self.starts, number)
    }

    /// Drops the words that nobody has.
    fn compact(&mut self) {
        let old = std::mem::take(self);
        for (number, slots) in (0..).zip(&old.slots) {
            let word = std::str::from_utf8(old.word(number));
            if let (Ok(word), [first, rest @ ..]) = (word, slots.all()) {
                let at = self.starts.len();
                self.append(word, *first);
                rest.iter().for_each(|&slot| self.slots[at].add(slot));
            }
        }
    }
}

impl Slots {
    fn all(&self) -> &[Slot] {
        match self {
            Self::One(slot) => std::slice::from_ref(slot),
            Self::Many(slots) => slots,
        }
    }

    fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    fn add(&mut self, slot: Slot) {
        // New slots come last; only an image that changed goes in between.
        if let Err(at) = self.all().binary_search(&slot) {
            if let Self::One(one) = *self {
                *self = Self::Many(vec![one]);
            }
            if let Self::Many(slots) = self {
                slots.insert(at, slot);
            }
        }
    }

    /// Whether it was there.
    fn remove(&mut self, slot: Slot) -> bool {
        let Ok(at) = self.all().binary_search(&slot) else { return false };
        match self {
            Self::One(_) => *self = Self::Many(Vec::new()),
            Self::Many(slots) => drop(slots.remove(at)),
        }
        true
    }
}

/// Hands over each word of an image in lower case; one that is there twice comes twice.
fn words(entry: &Entry, mut hand: impl FnMut(&str)) {
    for text in std::iter::once(&entry.name).chain(&entry.tags) {
        text.to_lowercase().split_whitespace().for_each(&mut hand);
    }
}

fn grams(word: &[u8]) -> impl Iterator<Item = Gram> {
    word.windows(3).map(|three| [three[0], three[1], three[2]])
}

fn word_at<'a>(text: &'a [u8], starts: &[usize], number: Number) -> &'a [u8] {
    let number = number as usize;
    &text[starts[number]..end(text, starts, number) - 1]
}

fn end(text: &[u8], starts: &[usize], number: usize) -> usize {
    starts.get(number + 1).copied().unwrap_or(text.len())
}
