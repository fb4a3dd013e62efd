//! Reads INI files as Python's `configparser` and `ConfigObj` write them.

use super::broken::Broken;

/// Whose rules hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Every key is under a heading, is in lower case, and goes on in lines that are indented.
    ConfigParser,
    /// Keys may stand before the first heading; values may be quoted.
    ConfigObj,
}

/// The keys in their order, each with its heading; empty before the first.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Ini(Vec<Entry>);

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) section: String,
    pub(super) key: String,
    /// Lines of a value that goes on have `\n` between.
    pub(super) value: String,
}

impl Ini {
    pub(super) fn read(text: &str, dialect: Dialect) -> Result<Self, Broken> {
        let mut ini = Self::default();
        let (mut section, mut offset, mut goes_on) = (String::new(), 0, false);
        for whole in text.split_inclusive('\n') {
            let (start, line) = (offset, whole.trim_end());
            offset += whole.len();
            let trimmed = line.trim_start();
            if trimmed.is_empty() || trimmed.starts_with('#') {
                continue;
            }
            let is_parser = dialect == Dialect::ConfigParser;
            if is_parser && trimmed.starts_with(';') {
                continue;
            }
            let broken = |what: &str| Broken::at(text, start + line.len() - trimmed.len(), what);
            if is_parser && goes_on && line.starts_with([' ', '\t']) {
                if let Some(last) = ini.0.last_mut() {
                    last.value.push('\n');
                    last.value.push_str(trimmed);
                }
            } else if let Some(rest) = trimmed.strip_prefix('[') {
                let end = rest.rfind(']').ok_or_else(|| broken("the heading has no ]"))?;
                section = rest[..end].trim_matches(['[', ']', ' ']).to_owned();
                goes_on = false;
            } else {
                let signs: &[char] = if is_parser { &['=', ':'] } else { &['='] };
                let at = trimmed.find(signs).ok_or_else(|| broken("there is no = in this line"))?;
                if at == 0 {
                    return Err(broken("there is no key before the ="));
                }
                if is_parser && section.is_empty() {
                    return Err(broken("this key is under no heading"));
                }
                ini.add(&section, trimmed[..at].trim(), trimmed[at + 1..].trim(), dialect);
                goes_on = true;
            }
        }
        Ok(ini)
    }

    /// A key that comes again has its last value.
    fn add(&mut self, section: &str, key: &str, value: &str, dialect: Dialect) {
        let (key, value) = match dialect {
            Dialect::ConfigParser => (key.to_lowercase(), value.to_owned()),
            Dialect::ConfigObj => (unquoted(key).to_owned(), unquoted(value).to_owned()),
        };
        let same = |one: &&mut Entry| one.section == section && one.key == key;
        match self.0.iter_mut().find(same) {
            Some(entry) => entry.value = value,
            None => self.0.push(Entry { section: section.to_owned(), key, value }),
        }
    }

    /// Takes what another file has under a heading of its own.
    pub(super) fn cover(&mut self, section: &str, other: &Self, theirs: &str) {
        for entry in other.0.iter().filter(|entry| entry.section == theirs) {
            self.add(section, &entry.key, &entry.value, Dialect::ConfigParser);
        }
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter()
    }

    pub(super) fn get(&self, section: &str, key: &str) -> Option<&str> {
        let entry = self.0.iter().find(|one| one.section == section && one.key == key)?;
        Some(&entry.value)
    }
}

/// Without the quotes around it, or without the remark behind it.
fn unquoted(value: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some((inside, _)) = value.strip_prefix(quote).and_then(|rest| rest.split_once(quote))
        {
            return inside;
        }
    }
    value.split(" #").next().unwrap_or(value).trim_end()
}

/// What these programs take for true.
pub(super) fn is_true(value: &str) -> bool {
    ["enabled", "1", "true", "on", "yes"].contains(&value.trim().to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str, dialect: Dialect) -> String {
        match Ini::read(text, dialect) {
            Ok(ini) => {
                let line = |one: &Entry| format!("{}|{}|{}", one.section, one.key, one.value);
                ini.entries().map(line).collect::<Vec<_>>().join("; ")
            }
            Err(broken) => broken.to_string(),
        }
    }

    #[test]
    fn configparsers_rules() {
        let check = |text: &str, expected: &str| {
            assert_eq!(told(text, Dialect::ConfigParser), expected, "{text:?}");
        };
        check("", "");
        check(
            "[S]\nFolder = ~/a\n  ~/b\n\n; no\n# no\nempty =\nx: y",
            "S|folder|~/a\n~/b; S|empty|; S|x|y",
        );
        check("[S]\r\na = 1\r\na = 2\r\n", "S|a|2");
        check("[S]\ncolor = #ffffff\n", "S|color|#ffffff");
        check("a = 1\n", "line 1, column 1: this key is under no heading");
        check("[S]\na = 1\nwhat\n", "line 3, column 1: there is no = in this line");
        check("[S\n", "line 1, column 1: the heading has no ]");
        check("[S]\n= 1\n", "line 2, column 1: there is no key before the =");
    }

    #[test]
    fn config_objs_rules() {
        let check = |text: &str, expected: &str| {
            assert_eq!(told(text, Dialect::ConfigObj), expected, "{text:?}");
        };
        check("a = 5\nb = \"x y\" # no\nc = d # e\n[s]\nf = g|h\n", "|a|5; |b|x y; |c|d; s|f|g|h");
        check("  indented = 1", "|indented|1");
        check("u = a:b", "|u|a:b");
        check("ä = 1\n  what", "line 2, column 3: there is no = in this line");
    }

    #[test]
    fn nothing_that_is_read_makes_it_panic() {
        for text in
            ["[", "]", "[]", "=", "\u{feff}[S]\n", "[S]\n \n\t=\n", "a\0=\0", "'=''", "[ä]\nö=\"ü"]
        {
            for dialect in [Dialect::ConfigParser, Dialect::ConfigObj] {
                told(text, dialect);
            }
        }
    }
}
