//! Finds a verb by the words of a command line.

use super::verb::{Group, Verb};

/// Aliases that people know from other programs: the first words of a line, and the table's words for
/// them.
#[rustfmt::skip]
const OTHER: &[(&[&str], &[&str])] = &[
    (&["ls"], &["images", "list"]), (&["list"], &["images", "list"]), (&["prev"], &["previous"]),
    (&["favorite"], &["favourite"]), (&["undo"], &["back"]),
    (&["what"], &["why"]),
    (&["images", "ls"], &["images", "list"]), (&["images", "rm"], &["images", "delete"]),
    (&["images", "mv"], &["images", "move"]), (&["images", "add"], &["import"]),
    (&["playlist", "ls"], &["playlist", "list"]), (&["playlist", "rm"], &["playlist", "delete"]),
    (&["playlist", "prev"], &["playlist", "previous"]), (&["folders", "ls"], &["folders", "list"]),
    (&["folders", "rm"], &["folders", "delete"]), (&["folders", "mv"], &["folders", "move"]),
    (&["monitors", "ls"], &["monitors"]), (&["backends", "ls"], &["backends"]),
];

/// `murald off` is `murald stop --clear`.
pub(super) const OFF: &str = "off";

/// The verbs table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verbs(pub(super) &'static [Group]);

/// The meaning of the first words of a command line.
pub(super) enum VerbMatch {
    /// A verb, with the number of its words.
    Verb(&'static Verb, usize),
    /// The first word of several verbs.
    Prefix(&'static str),
    Nothing,
}

impl Verbs {
    pub(super) fn all(self) -> impl Iterator<Item = &'static Verb> {
        self.0.iter().flat_map(|group| group.verbs)
    }

    /// Replaces synonyms by the table's words: `get` and `show` are the same, a resource may be in
    /// the singular or the plural, and `list` may be omitted. Returns whether it was omitted.
    pub(super) fn spell(self, words: &mut Vec<String>) -> bool {
        let is_first = |word: &str| self.all().any(|verb| verb.words[0] == word);
        let is_verb =
            |first: &str, second: &str| self.all().any(|verb| verb.words == [first, second]);
        let Some(first) = words.first_mut() else {
            return false;
        };
        let is_other = |word: &str| OTHER.iter().any(|(other, _)| *other == [word]);
        if !is_first(first) && !is_other(first) {
            let other = first
                .strip_suffix('s')
                .map_or(format!("{first}s"), str::to_owned);
            if !is_first(&other) {
                return false;
            }
            *first = other;
        }
        if let Some((other, ours)) = OTHER.iter().find(|(other, _)| starts(words, other)) {
            words.splice(..other.len(), ours.iter().map(|&word| word.to_owned()));
        }
        let first = words[0].clone();
        let stands_alone = || self.all().any(|verb| verb.words == [&first]);
        let Some(second) = words.get_mut(1) else {
            let left_out = !stands_alone() && is_verb(&first, "list");
            words.extend(left_out.then(|| "list".to_owned()));
            return left_out;
        };
        let is_other =
            matches!(second.as_str(), "list" | "get" | "show") && !is_verb(&first, second);
        let others = ["show", "get"];
        match others
            .into_iter()
            .find(|other| second != "list" && is_verb(&first, other))
        {
            Some(other) if is_other => other.clone_into(second),
            None if is_other && stands_alone() => drop(words.remove(1)),
            _ => {}
        }
        false
    }

    /// The verb that matches the most of the given words.
    pub(super) fn find(self, words: &[String]) -> VerbMatch {
        let fits = |verb: &&Verb| starts(words, verb.words);
        if let Some(verb) = self.all().filter(fits).max_by_key(|verb| verb.words.len()) {
            return VerbMatch::Verb(verb, verb.words.len());
        }
        let first = self
            .all()
            .map(|verb| verb.words[0])
            .find(|first| words.first().is_some_and(|word| word == first));
        first.map_or(VerbMatch::Nothing, VerbMatch::Prefix)
    }

    /// The verbs that begin with the words of `prefix`.
    pub(super) fn with_prefix<S: AsRef<str>>(
        self,
        prefix: &[S],
    ) -> impl Iterator<Item = &'static Verb> + use<'_, S> {
        self.all().filter(move |verb| {
            verb.words.len() >= prefix.len()
                && prefix
                    .iter()
                    .zip(verb.words)
                    .all(|(one, other)| one.as_ref() == *other)
        })
    }

    /// Single words that mean a verb, and the words of the table.
    pub(super) fn aliases() -> impl Iterator<Item = (&'static str, String)> {
        let alone = OTHER.iter().filter(|(other, _)| other.len() == 1);
        let alone = alone.map(|(other, ours)| (other[0], ours.join(" ")));
        alone.chain([(OFF, "stop --clear".to_owned())])
    }

    /// The verb that `murald` runs without arguments.
    pub(super) fn start(self) -> &'static Verb {
        &self.0[0].verbs[0]
    }
}

fn starts(words: &[String], verb: &[&str]) -> bool {
    words.len() >= verb.len() && words.iter().zip(verb).all(|(one, other)| one == other)
}
