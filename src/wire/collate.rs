//! How names are compared: in NFC, in lower case, and numbers by their value. Pure.
//!
//! The daemon sorts lists and imported directories by it and searches words with it; the command finds
//! names with it.

use std::iter::{once, repeat_n};
use std::path::Path;

use unicode_normalization::UnicodeNormalization;

/// A name or word for comparisons: composed, as keyboards write it, and in lower case.
pub(crate) fn folded(text: &str) -> String {
    if text.is_ascii() {
        text.to_ascii_lowercase()
    } else {
        text.nfc().collect::<String>().to_lowercase()
    }
}

/// The known word that differs in at most two letters or in fewer if `word` is short. Two letters in the
/// wrong order count as one.
pub(crate) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = folded(word.get(..LONGEST).unwrap_or(word));
    let most = (word.trim_start_matches('-').chars().count() / 3).min(2);
    known
        .map(|one| (strsim::osa_distance(&word, &folded(one)), one))
        .filter(|(letters, _)| *letters <= most)
        .min_by_key(|(letters, _)| *letters)
        .map(|(_, one)| one)
}

/// Bytes of a word that are compared, as a client may send any; no known word has more.
const LONGEST: usize = 64;

/// Whether two names differ at most in how their letters are composed.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    one == other || one.nfc().eq(other.nfc())
}

/// The sort key of a name, with numbers by their value: 1, 2, 10.
pub(crate) fn sort_key(name: &str) -> Vec<u8> {
    sort_bytes(folded(name).as_bytes()).collect()
}

/// The same for each part of a path, so that a directory's files stay together.
pub(crate) fn path_key(path: &Path) -> Vec<Vec<u8>> {
    path.iter()
        .map(|part| sort_key(&part.to_string_lossy()))
        .collect()
}

/// The sort key of a folded name. Each number, without its leading zeros, follows the count of its
/// digits. The count is written in digits too, so that numbers sort among digits.
pub(crate) fn sort_bytes(folded: &[u8]) -> impl Iterator<Item = u8> {
    folded
        .chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit())
        .flat_map(|run| {
            let zeros = run.iter().take_while(|&&byte| byte == b'0').count();
            let digits = &run[zeros.min(run.len() - 1)..];
            let (nines, rest) = ((digits.len() - 1) / 8, (digits.len() - 1) % 8);
            let length = repeat_n(b'9', nines).chain(once(b'1' + rest as u8));
            let is_number = run[0].is_ascii_digit();
            length
                .take(if is_number { usize::MAX } else { 0 })
                .chain(digits.iter().copied())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_word_differs_in_at_most_two_letters() {
        let check = |word: &str, meant: Option<&str>| {
            let known = ["image_id", "monitor", "monitors", "mode", "import"];
            assert_eq!(nearest(word, known.into_iter()), meant, "{word}");
        };
        check("monitr", Some("monitor"));
        check("monitorss", Some("monitors"));
        check("imageid", Some("image_id"));
        check("MODE", Some("mode"));
        check("improt", Some("import"));
        check("id", None);
        check("", None);
        check(&"x".repeat(1 << 20), None);
    }

    #[test]
    fn names_are_sorted_as_people_do() {
        let sorted = [
            "",
            " a",
            "0",
            "1",
            "2",
            "9",
            "10",
            "99999999",
            "100000000",
            "1234567890123456",
            "12345678901234567",
            "a",
            "A 1",
            "a 2",
            "a 10",
            "a1",
            "a1b",
            "a2",
            "a2.5",
            "a2.10",
            "a10",
            "b",
            "É1",
            "e\u{301}2",
            "é10",
        ];
        for (at, one) in sorted.iter().enumerate() {
            for other in &sorted[at + 1..] {
                assert!(sort_key(one) < sort_key(other), "{one:?} {other:?}");
            }
        }
        let same = [
            ("a01", "A1"),
            ("0", "000"),
            ("e\u{301}", "É"),
            ("x007y", "x7y"),
        ];
        same.iter()
            .for_each(|(one, other)| assert_eq!(sort_key(one), sort_key(other)));
    }

    #[test]
    fn files_of_a_directory_stay_together() {
        let mut paths = ["a b/1", "a/10", "a/2", "a10/1", "a2/1"].map(Path::new);
        paths.sort_by_cached_key(|path| path_key(path));
        assert_eq!(
            paths,
            ["a/2", "a/10", "a b/1", "a2/1", "a10/1"].map(Path::new)
        );
    }
}
