//! Compares what murald.toml(5) says of settings in general with the program.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use murald::internals::config::{BackendName, ConfigHandle, Key, Rule, Section, ValueType};
use murald::internals::events::EventBus;
use serde_json::{Value, json};

/// The subsection under a heading of the page.
fn under(heading: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("man/murald.toml.5");
    let text = fs::read_to_string(page).unwrap();
    let rest = text.split(&format!(".Ss {heading}\n")).nth(1).unwrap();
    rest.split("\n.S").next().unwrap().to_owned()
}

/// The section names in a text.
fn tables(text: &str) -> BTreeSet<String> {
    let named = text.lines().filter_map(|line| line.strip_prefix(".Bq "));
    named
        .map(|name| name.trim_end_matches([' ', ',', '.']).to_owned())
        .collect()
}

/// A value of the right type that the key does not allow; `None` if it allows any.
fn not_allowed(key: &Key) -> Option<Value> {
    match (key.kind, key.rule) {
        (ValueType::List, _) => Some(json!(["not allowed"])),
        (_, Rule::Words(_) | Rule::Form { .. }) => Some(json!("not allowed")),
        (_, Rule::Range(least, _)) => Some(json!(least as i64 - 1)),
        (_, Rule::Positive) => Some(json!(-1)),
        (_, Rule::Any) => None,
    }
}

#[test]
fn page_names_the_sections_that_refuse_no_value() {
    let directory = tempfile::tempdir().unwrap();
    let config = ConfigHandle::open(directory.path().join("c.toml"), EventBus::new()).unwrap();
    let is_refused = |section: Section, key: &Key| {
        let body = not_allowed(key).map(|value| json!({ key.name: value }));
        body.is_some_and(|body| {
            config
                .patch_section(section, body.as_object().unwrap())
                .is_err()
        })
    };
    let refuses = |section: &Section| section.keys().iter().any(|key| is_refused(*section, key));
    let outermost = |section: Section| section.path().next().unwrap().to_owned();
    let (strict, lax): (Vec<_>, Vec<_>) = Section::ALL.into_iter().partition(refuses);
    let strict: BTreeSet<String> = strict.into_iter().map(outermost).collect();
    // Some backends have only settings that allow any value; `[backend]` as a whole is not named for
    // them.
    let lax = lax
        .into_iter()
        .map(outermost)
        .filter(|name| !strict.contains(name));
    assert_eq!(tables(&under("Wrong values")), lax.collect());
}

#[test]
fn hyphens_and_underscores_are_equal_only_where_the_page_says() {
    let text = under("Paths and names");
    assert_eq!(
        tables(&text).into_iter().collect::<Vec<_>>(),
        [
            "backend",
            "backend.auto_priorities",
            "backend.wal-qt",
            "backend.wal_qt"
        ]
    );
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.toml");
    let file = "[backend]\ntype = 'wal_qt'\n[backend.wal_qt]\nduration-ms = 7\n\
                [backend.auto_priorities]\nweb = ['wal_qt']\n";
    fs::write(&path, file).unwrap();
    let config = ConfigHandle::read(path, EventBus::new()).unwrap();
    assert_eq!(config.current().wal_qt.duration_ms, 7);
    let warnings = config.warnings();
    assert_eq!(warnings.len(), 2, "of type and web alone: {warnings:?}");
    assert!(
        warnings
            .iter()
            .all(|warning| warning.contains("not \"wal_qt\""))
    );
    let body = json!({ "backend": { "wal_qt": { "duration_ms": 8 } } });
    assert!(config.patch(body.as_object().unwrap()).is_err());
    assert!("wal_qt".parse::<BackendName>().is_err());
}
