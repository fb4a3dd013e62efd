//! The patterns of `[library] exclude`, with the rules of gitignore. Pure.

use std::path::Path;

use glob::{MatchOptions, Pattern, PatternError};

pub(super) const PATTERN: &str = "a pattern as in .gitignore";

pub(super) fn is_pattern(text: &str) -> bool {
    Rule::parse(text).is_ok()
}

/// The files and directories that are not imported. The last pattern that matches decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Exclude(Vec<Rule>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    pattern: Pattern,
    is_exception: bool,
    only_directories: bool,
}

impl Exclude {
    pub(crate) fn new(lines: &[String]) -> Self {
        let rules = lines.iter().filter_map(|line| Rule::parse(line).ok());
        Self(rules.flatten().collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a path is excluded by its own name. Paths are relative to the directory that is imported
    /// or watched.
    pub(crate) fn has(&self, path: &Path, is_directory: bool) -> bool {
        let options = MatchOptions {
            require_literal_separator: true,
            ..MatchOptions::new()
        };
        let mut rules = self.0.iter().rev();
        let rule = rules.find(|rule| {
            (is_directory || !rule.only_directories)
                && rule.pattern.matches_path_with(path, options)
        });
        rule.is_some_and(|rule| !rule.is_exception)
    }

    /// Whether a file or a directory above it is excluded.
    pub(crate) fn covers(&self, file: &Path) -> bool {
        let mut paths = file.ancestors();
        // The directory itself, whose path is empty here, is not one of its entries.
        paths.any(|path| path != Path::new("") && self.has(path, path != file))
    }
}

impl Rule {
    /// `None` for a comment or an empty line.
    fn parse(line: &str) -> Result<Option<Self>, PatternError> {
        let line = line.trim_end();
        if line.is_empty() || line.starts_with('#') {
            return Ok(None);
        }
        let (is_exception, line) = match line.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let (only_directories, line) = match line.strip_suffix('/') {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        // A slash ties the pattern to the directory; without one, it matches names at any depth.
        let line = match line.strip_prefix('/') {
            Some(rest) => rest.to_owned(),
            None if line.contains('/') => line.to_owned(),
            None => format!("**/{line}"),
        };
        let parts: Vec<String> = line.split('/').map(translated).collect();
        Ok(Some(Self {
            pattern: Pattern::new(&parts.join("/"))?,
            is_exception,
            only_directories,
        }))
    }
}

/// A part of a path as `glob` writes it: no backslashes, and two stars only for any directories.
fn translated(part: &str) -> String {
    if part == "**" {
        return part.to_owned();
    }
    let mut to = String::new();
    let mut chars = part.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => to.extend(chars.next().map(|it| Pattern::escape(&it.to_string()))),
            '*' if to.ends_with('*') => {}
            '^' if to.ends_with('[') => to.push('!'),
            other => to.push(other),
        }
    }
    to
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_follow_the_rules_of_gitignore() {
        let check = |lines: &[&str], excluded: &[&str], others: &[&str]| {
            let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
            assert!(lines.iter().all(|line| is_pattern(line)), "{lines:?}");
            let exclude = Exclude::new(&lines);
            for (paths, expected) in [(excluded, true), (others, false)] {
                for path in paths {
                    let found = exclude.covers(Path::new(path));
                    assert_eq!(found, expected, "{lines:?} {path}");
                }
            }
        };
        check(&["*.gif"], &["a.gif", "b/c.gif"], &["a.png", "gif"]);
        check(
            &["raw"],
            &["raw", "raw/a.png", "b/raw/c/d.png"],
            &["raw.png"],
        );
        check(&["raw/"], &["raw/a.png", "b/raw/c.png"], &["raw", "b/raw"]);
        check(&["/raw"], &["raw/a.png"], &["b/raw/a.png"]);
        check(&["a/*.png"], &["a/b.png"], &["a/c/b.png", "x/a/b.png"]);
        check(&["a/**"], &["a/b", "a/b/c"], &["a", "b/a/c"]);
        check(&["a/**/z"], &["a/z", "a/b/c/z"], &["z"]);
        check(&["**/b"], &["b", "a/b"], &["a/c"]);
        check(&["p?c[0-9].jpg"], &["pic1.jpg"], &["pic.jpg", "picx.jpg"]);
        check(&["[^a].png"], &["b.png"], &["a.png"]);
        check(&["a**z"], &["abz"], &["b/ab/z"]);
        check(
            &["*.png", "!keep.png"],
            &["a.png"],
            &["keep.png", "x/keep.png"],
        );
        check(&["raw", "!raw/keep.png"], &["raw/keep.png"], &[]);
        check(&["*", "!*.jpg"], &["a.png", "b/c.jpg"], &["a.jpg"]);
        check(&["/**", "!*.jpg"], &["a.png"], &["a.jpg"]);
        check(&["", "# *.png", "  "], &[], &["a.png", "#"]);
        check(&["\\#a", "\\!b", "c\\*"], &["#a", "!b", "c*"], &["cd"]);
        assert!(Exclude::new(&[]).is_empty() && !is_pattern("["));
    }
}
