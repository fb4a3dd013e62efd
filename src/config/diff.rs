//! Which sections differ between two snapshots.

use serde_json::{Map, Value as Json};

use super::schema::Section;
use super::snapshot::Config;

/// In the order of the file.
pub(super) fn changed(old: &Config, new: &Config) -> Vec<Section> {
    let differs = |section: &Section| own(old, *section) != own(new, *section);
    Section::ALL.into_iter().filter(differs).collect()
}

/// As `config_changed` names them, each once.
pub(super) fn event_names(sections: &[Section]) -> Vec<String> {
    let mut names: Vec<_> = sections.iter().map(|section| section.event_name()).collect();
    names.dedup();
    names
}

/// A section's keys without the tables in it that are sections themselves.
fn own(config: &Config, section: Section) -> Map<String, Json> {
    let mut table = config.section(section);
    table.retain(|name, _| section.children().all(|(child, _)| child != name));
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{BackendName, document};
    use std::path::Path;

    #[test]
    fn changed_sections_are_found() {
        #[track_caller]
        fn check(text: &str, expected: &[Section], names: &[&str]) {
            let new = document::read(text, Path::new("/c.toml")).unwrap().config;
            let sections = changed(&Config::default(), &new);
            assert_eq!(sections, expected);
            assert_eq!(event_names(&sections), names);
        }
        check("# nothing\napp.theme = 'dark'", &[], &[]);
        check("app.new = 1", &[Section::App], &["app"]);
        check(
            "backend.type = 'feh'\nbackend.auto_priorities.web = []\nbackend.feh.mode = 'max'",
            &[Section::Backend, Section::AutoPriorities, Section::BackendOptions(BackendName::Feh)],
            &["backend", "backend.feh"],
        );
        check(
            "backend.wal-qt.env = ['A=1']",
            &[Section::BackendOptions(BackendName::WalQt)],
            &["backend.wal-qt"],
        );
    }
}
