//! The manual against what it describes: the schema of the settings and the table of verbs, both
//! ways, so that nothing is forgotten and nothing stays that is gone; and against the tools that
//! show it.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use murald::cli::{Arity, Exit, Flag, GLOBAL, GROUPS, Verb};
use murald::config::{Key, Kind, Section};
use serde_json::Value;

fn pages() -> Vec<PathBuf> {
    let entries = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("man")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn page(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("man").join(name)).unwrap()
}

#[test]
fn the_pages_are_in_order() {
    for page in pages() {
        let lint = Command::new("mandoc").args(["-T", "lint"]).arg(&page).output().unwrap();
        let said = String::from_utf8(lint.stdout).unwrap();
        // Which other pages there are depends on the machine.
        let of_others = |line: &&str| line.contains("not found") || line.contains("outdated");
        let faults: Vec<&str> = said.lines().filter(|line| !of_others(line)).collect();
        assert!(faults.is_empty(), "{faults:#?}");
        let man = Command::new("man")
            .args(["--warnings", "--local-file"])
            .arg(&page)
            .env("MANWIDTH", "90")
            .env("LC_ALL", "C.UTF-8")
            .output()
            .unwrap();
        assert!(man.status.success() && man.stderr.is_empty(), "{man:?}");
    }
}

/// A part of a page: what stands between a heading and the next one like it.
fn parts<'a>(text: &'a str, heading: &str) -> Vec<(&'a str, &'a str)> {
    let mut parts = text.split(heading);
    parts.next();
    parts.map(|part| part.split_once('\n').unwrap_or((part, ""))).collect()
}

/// Text as it is shown: without line breaks and roff's escapes.
fn plain(text: &str) -> String {
    let text = text.replace("\\(dq", "\"").replace("\\-", "-").replace("\\&", "");
    let text = text.replace("\\fB", "`").replace("\\fP", "`");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `app.theme (text, default "dark")`, and what is allowed.
fn settings_of_the_page() -> BTreeSet<String> {
    let text = page("murald.toml.5");
    let sections = text.split(".Sh SECTIONS\n").nth(1).unwrap().split("\n.Sh ").next().unwrap();
    let mut found = BTreeSet::new();
    for (heading, section) in parts(sections, ".Ss ") {
        for (item, body) in parts(section, ".It Cm ") {
            let (key, rest) = item.split_once(" Pq ").unwrap();
            let body = plain(body.split("\n.El").next().unwrap_or_default());
            let allowed = body.split("Allowed: ").nth(1).map(|rest| rest.trim_end_matches('.'));
            assert!(body.len() > "Unused.".len() - 1, "{heading}.{key} is not explained");
            found.insert(described(&format!("{heading}.{key}"), &plain(rest), allowed));
        }
    }
    found
}

fn described(key: &str, kind: &str, allowed: Option<&str>) -> String {
    format!("{key} ({kind}) {}", allowed.unwrap_or("anything"))
}

fn described_by_the_schema(section: Section, key: &Key) -> String {
    let kind = match key.kind {
        Kind::Bool => "true or false",
        Kind::Integer => "whole number",
        Kind::Number => "number",
        Kind::Text => "text",
        Kind::Path => "path",
        Kind::List => "list",
    };
    let default = match key.default.to_json() {
        None => "no default".to_owned(),
        Some(Value::String(text)) if text.is_empty() => "default empty".to_owned(),
        Some(Value::Array(list)) if list.is_empty() => "default an empty list".to_owned(),
        Some(Value::Array(list)) => {
            let items: Vec<String> = list.iter().map(Value::to_string).collect();
            format!("default [{}]", items.join(", "))
        }
        Some(Value::Number(number)) => format!("default {}", number.as_f64().unwrap()),
        Some(value) => format!("default {value}"),
    };
    let name = format!("{}.{}", section.heading(), key.name);
    described(&name, &format!("{kind}, {default}"), key.allowed().as_deref())
}

#[test]
fn every_setting_is_described_as_it_is() {
    let keys = |section: Section| section.keys().iter().map(move |key| (section, key));
    let schema = Section::ALL.into_iter().flat_map(keys);
    let schema: BTreeSet<String> =
        schema.map(|(section, key)| described_by_the_schema(section, key)).collect();
    let page = settings_of_the_page();
    let missing: Vec<_> = schema.difference(&page).collect();
    let wrong: Vec<_> = page.difference(&schema).collect();
    assert!(missing.is_empty() && wrong.is_empty(), "missing: {missing:#?}\nwrong: {wrong:#?}");
}

/// `images get ID`, as the page heads it.
fn heading(verb: &Verb) -> String {
    let mut heading = verb.name();
    for argument in verb.arguments {
        heading += &match argument.arity {
            Arity::One => format!(" Ar {}", argument.name),
            Arity::Optional => format!(" Op Ar {}", argument.name),
            Arity::Some => format!(" Ar {} ...", argument.name),
            Arity::Any => format!(" Op Ar {} ...", argument.name),
        };
    }
    if !verb.flags.is_empty() {
        heading += " Op Ar flags";
    }
    heading
}

fn flag(flag: &Flag) -> String {
    let value = flag.value.map(|(name, _)| format!(" Ar {name}")).unwrap_or_default();
    format!("{}{value}", &flag.name[1..])
}

fn flags(text: &str) -> BTreeSet<String> {
    parts(text, ".It Fl ").into_iter().map(|(item, _)| item.to_owned()).collect()
}

#[test]
fn every_command_and_flag_is_described() {
    let text = page("murald.1");
    let globals = text.split(".Sh FLAGS\n").nth(1).unwrap().split("\n.Sh ").next().unwrap();
    assert_eq!(flags(globals), GLOBAL.iter().map(flag).collect());
    let commands = text.split(".Sh COMMANDS\n").nth(1).unwrap().split("\n.Sh ").next().unwrap();
    let described = parts(commands, ".It Cm ");
    let wanted: Vec<&Verb> = GROUPS.iter().flat_map(|group| group.verbs).collect();
    let headings: Vec<&str> = described.iter().map(|(heading, _)| *heading).collect();
    assert_eq!(headings, wanted.iter().map(|verb| heading(verb)).collect::<Vec<_>>());
    for (verb, (_, body)) in wanted.iter().zip(&described) {
        let name = verb.name();
        assert_eq!(flags(body), verb.flags.iter().map(flag).collect(), "{name}");
        // A sentence begins with a capital letter there.
        let shown = plain(body).to_lowercase();
        assert!(shown.contains(&verb.summary.to_lowercase()), "{name}: {shown}");
        for meaning in verb.flags.iter().map(|flag| flag.meaning) {
            assert!(shown.contains(&meaning.to_lowercase()), "{name}: no {meaning} in {shown}");
        }
        for argument in verb.arguments {
            assert!(
                shown.contains(&argument.meaning.to_lowercase()),
                "{name}: {}",
                argument.meaning
            );
        }
    }
    let statuses = text.split(".Sh EXIT STATUS\n").nth(1).unwrap().split("\n.Sh ").next().unwrap();
    let statuses: Vec<&str> = parts(statuses, ".It ").iter().map(|(status, _)| *status).collect();
    use Exit::{Config, Done, Internal, Refused, Running, Unavailable, Usage};
    let known = [Done, Refused, Usage, Unavailable, Internal, Running, Config];
    assert_eq!(statuses, known.map(|exit| (exit as u8).to_string()));
}
