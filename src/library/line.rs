//! The order in which the files of an import land: the order in which they were named, so that ids and
//! times follow it. Pure; the thread `import` has one.

use std::collections::BTreeMap;

/// Files between the first that has not ended and the last that was begun.
const LENGTH_MAX: u64 = 64;

/// Files by number, those that are ready and those that have ended in another way.
pub(super) struct Line<T> {
    /// All before it have ended.
    first: u64,
    next: u64,
    /// None: ended, with nothing to land.
    ready: BTreeMap<u64, Option<T>>,
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Self { first: 0, next: 0, ready: BTreeMap::new() }
    }
}

impl<T> Line<T> {
    /// The number of the next file.
    pub(super) fn next(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Whether a file that takes long holds up so many that no other is to be begun.
    pub(super) fn is_full(&self) -> bool {
        self.next - self.first >= LENGTH_MAX
    }

    /// Whether all files have landed or ended.
    pub(super) fn is_empty(&self) -> bool {
        self.first == self.next
    }

    /// Files that are being prepared.
    pub(super) fn in_hand(&self) -> usize {
        (self.next - self.first) as usize - self.ready.len()
    }

    pub(super) fn put(&mut self, number: u64, file: Option<T>) {
        self.ready.insert(number, file);
    }

    /// Takes the files that are ready up to the first gap.
    pub(super) fn take_run(&mut self) -> Vec<T> {
        let mut run = Vec::new();
        while let Some(file) = self.ready.remove(&self.first) {
            self.first += 1;
            run.extend(file);
        }
        run
    }

    /// Takes all that is ready: it does not land.
    pub(super) fn give_up(&mut self) -> Vec<T> {
        self.ready.values_mut().filter_map(Option::take).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_without_a_gap_are_taken_in_order() {
        let mut line = Line::default();
        let numbers: Vec<_> = (0..6).map(|_| line.next()).collect();
        let put = |line: &mut Line<u64>, number: u64, lands: bool| {
            line.put(numbers[number as usize], lands.then_some(number));
            line.take_run()
        };
        assert!(put(&mut line, 2, true).is_empty() && put(&mut line, 1, false).is_empty());
        assert_eq!((line.in_hand(), put(&mut line, 0, true)), (4, vec![0, 2]));
        assert!(put(&mut line, 4, true).is_empty());
        assert_eq!(put(&mut line, 3, true), [3, 4]);
        assert!(put(&mut line, 5, false).is_empty() && line.is_empty());
    }

    #[test]
    fn line_has_a_maximum_length() {
        let mut line = Line::default();
        while !line.is_full() {
            line.next();
        }
        line.put(1, Some(()));
        assert_eq!(line.give_up(), [()]);
        assert!(line.is_full());
        line.put(0, Some(()));
        assert_eq!(line.take_run(), [()]);
        assert!(!line.is_full() && !line.is_empty());
    }
}
