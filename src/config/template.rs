//! The file of the first start: every key at its default, with a line about it.

use super::schema::{Key, Section};
use super::toml;

const HEADER: &str = "\
# Settings of murald. Changes take effect when this file is saved, those of [daemon] when the
# daemon is started the next time. `murald config check` tells what is wrong with it, and
# `man murald.toml` more about everything. Paths may use ~, $VAR and ${VAR}.
";

const CLIENTS: &str = "\
# From here on, for graphical clients alone: the daemon keeps these and does not read them.
";

pub(super) fn text() -> String {
    let mut text = HEADER.to_owned();
    let mut clients = false;
    for section in Section::ALL {
        text.push('\n');
        if section.is_client_s() && !clients {
            clients = true;
            text += CLIENTS;
        }
        text += &format!("[{}]\n", section.heading());
        for key in section.keys() {
            text += &lines(key);
        }
    }
    text
}

fn lines(key: &Key) -> String {
    let about = about(key);
    match key.default.to_json().as_ref().and_then(toml::from_json) {
        Some(value) => format!("{about}\n{} = {value}\n", key.name),
        None => format!("{about}\n{}\n", placeholder(key)),
    }
}

/// The comment above a key.
pub(super) fn about(key: &Key) -> String {
    let words = matches!(key.rule, super::Rule::Words(_)).then(|| key.allowed()).flatten();
    let words = words.map(|words| format!(": {words}")).unwrap_or_default();
    format!("# {}{words}", key.meaning.trim())
}

/// What stands for a key without default.
pub(super) fn placeholder(key: &Key) -> String {
    format!("# {} =", key.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, document};
    use std::path::Path;

    #[test]
    fn template_says_the_defaults() {
        let parsed = document::read(&text(), Path::new("/c.toml")).unwrap();
        assert_eq!(parsed.missing, []);
        assert_eq!(parsed.config.to_json(), Config::default().to_json());
    }

    #[test]
    fn template_says_once_where_the_clients_sections_begin() {
        let text = text();
        let (daemons, clients) = text.split_once(CLIENTS).unwrap();
        assert!(!clients.contains(CLIENTS));
        for section in Section::ALL {
            let heading = format!("\n[{}]\n", section.heading());
            let part = if section.is_client_s() { clients } else { daemons };
            assert!(part.contains(&heading) || part.starts_with(heading.trim_start()), "{heading}");
        }
    }
}
