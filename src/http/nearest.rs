//! Which of the known words somebody meant: pure.

/// The one that takes the fewest letters added, left out or changed, in upper or lower case.
pub(super) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word.to_lowercase().chars().take(LETTERS).collect();
    known.min_by_key(|one| distance(&word, &one.to_lowercase().chars().collect::<Vec<_>>()))
}

/// Letters of a word that are looked at: no field of ours has as many.
const LETTERS: usize = 64;

/// Levenshtein's, row by row.
fn distance(one: &[char], other: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.iter().enumerate() {
        let mut before = std::mem::replace(&mut row[0], at + 1);
        for (place, known) in other.iter().enumerate() {
            let changed = before + usize::from(letter != known);
            before = row[place + 1];
            row[place + 1] = changed.min(before + 1).min(row[place] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_word_finds_typing_mistakes() {
        let known = ["image_id", "monitor", "monitors", "mode"];
        let check = |word: &str, meant: &str| {
            assert_eq!(nearest(word, known.into_iter()), Some(meant), "{word}");
        };
        check("monitr", "monitor");
        check("monitorss", "monitors");
        check("imageId", "image_id");
        check("MODE", "mode");
        check("id", "mode");
        check("", "mode");
        check(&"x".repeat(1 << 20), "image_id");
        assert_eq!(nearest("x", [].into_iter()), None);
    }

    #[test]
    fn distances_are_levenshteins() {
        let check = |one: &str, other: &str, expected: usize| {
            let letters = |word: &str| word.chars().collect::<Vec<_>>();
            assert_eq!(distance(&letters(one), &letters(other)), expected, "{one} {other}");
            assert_eq!(distance(&letters(other), &letters(one)), expected, "{other} {one}");
        };
        check("kitten", "sitting", 3);
        check("", "abc", 3);
        check("abc", "abc", 0);
        check("flaw", "lawn", 2);
    }
}
