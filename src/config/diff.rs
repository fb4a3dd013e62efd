//! Which sections differ between two snapshots.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::schema::Section;
use super::snapshot::Config;

/// In the order of the file.
pub(super) fn changed(old: &Config, new: &Config) -> Vec<Section> {
    Section::ALL.into_iter().filter(|section| differs(old, new, *section)).collect()
}

/// Whether a section's keys differ, without the tables in it that are sections themselves.
fn differs(old: &Config, new: &Config, section: Section) -> bool {
    own(old, section).collect::<BTreeMap<_, _>>() != own(new, section).collect()
}

fn own(config: &Config, section: Section) -> impl Iterator<Item = (&String, &Json)> {
    let is_own = move |name: &str| section.children().all(|(child, _)| child != name);
    config.entries(section).filter(move |(name, _)| is_own(name))
}

/// As `config_changed` names them, each once.
pub(super) fn event_names(sections: &[Section]) -> Vec<String> {
    let mut names: Vec<_> = sections.iter().map(|section| section.event_name()).collect();
    names.dedup();
    names
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
        // Of no use, and without a default: as if it were not there.
        check("location.latitude = 95\nbackend.transition_duration_seconds = -1", &[], &[]);
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
