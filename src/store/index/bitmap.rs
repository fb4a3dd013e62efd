//! A set of images, a bit each.

use super::DocId;

/// Images of a word.
pub(super) const WORD: usize = 64;
/// So few of them are looked at one by one.
const FEW: u32 = 8;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Bitmap {
    words: Vec<u64>,
}

impl Bitmap {
    pub(super) fn set(&mut self, doc: DocId) {
        let word = doc as usize / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (doc % 64);
    }

    pub(super) fn unset(&mut self, doc: DocId) {
        if let Some(word) = self.words.get_mut(doc as usize / 64) {
            *word &= !(1 << (doc % 64));
        }
    }

    pub(super) fn has(&self, doc: DocId) -> bool {
        self.words.get(doc as usize / 64).is_some_and(|word| word & (1 << (doc % 64)) != 0)
    }

    pub(super) fn and(&mut self, other: &Self) {
        self.words.truncate(other.words.len());
        self.words.iter_mut().zip(&other.words).for_each(|(mine, theirs)| *mine &= theirs);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    pub(super) fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// In the order of numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = DocId> {
        self.words.iter().enumerate().flat_map(|(at, &word)| docs((at * WORD) as DocId, word))
    }

    /// Leaves of each word that is not empty what is said of it; the number of its first image comes
    /// with it. Bits that are not in it do not come in.
    pub(super) fn retain_words(&mut self, mut left: impl FnMut(DocId, u64) -> u64) {
        for (at, word) in self.words.iter_mut().enumerate().filter(|(_, word)| **word != 0) {
            *word &= left((at * WORD) as DocId, *word);
        }
    }

    /// The bits of those of a word that fit.
    pub(super) fn fitting(first: DocId, word: u64, mut fits: impl FnMut(DocId) -> bool) -> u64 {
        let fitting = docs(first, word).filter(|&doc| fits(doc));
        fitting.fold(0, |bits, doc| bits | 1 << (doc % 64))
    }

    /// Leaves those whose value in a column fits.
    pub(super) fn retain_by<T: Copy>(&mut self, column: &[T], fits: impl Fn(T) -> bool) {
        self.retain_words(|first, word| {
            let values = &column[first as usize..];
            if word.count_ones() <= FEW {
                return Self::fitting(first, word, |doc| fits(values[(doc - first) as usize]));
            }
            let values = values[..values.len().min(WORD)].iter().rev();
            values.fold(0, |bits, &value| bits << 1 | u64::from(fits(value)))
        });
    }

    /// Leaves those that fit.
    pub(super) fn retain(&mut self, mut fits: impl FnMut(DocId) -> bool) {
        for (at, word) in self.words.iter_mut().enumerate() {
            for doc in docs((at * WORD) as DocId, *word) {
                if !fits(doc) {
                    *word &= !(1 << (doc % 64));
                }
            }
        }
    }
}

/// The images of one word, by its first.
pub(super) fn docs(first: DocId, mut left: u64) -> impl Iterator<Item = DocId> {
    std::iter::from_fn(move || {
        let bit = left.trailing_zeros();
        (left != 0).then(|| {
            left &= left - 1;
            first + bit
        })
    })
}
