//! Checks rules for the sources: which module imports which, who may start programs, and the width of
//! comments.

#![allow(clippy::unwrap_used)]

#[path = "layers/rings.rs"]
mod rings;

use std::fs;
use std::path::{Path, PathBuf};

/// From the lowest layer to the highest. A module may import only modules of lower layers, or in layer 0
/// also of its own.
const LAYERS: &[&[&str]] = &[
    &[
        "battery",
        "clock",
        "color",
        "digest",
        "error_chain",
        "kernel",
        "lock",
        "logging",
        "media",
        "memory",
        "paths",
        "process",
        "random",
        "signals",
        "sys",
        "systemd",
        "thread",
        "wire",
    ],
    &["compositor", "decode", "events"],
    &["config", "draw", "store", "transcode"],
    &["backends", "desktop", "library"],
    &["wallpaper"],
    &["parallax", "playlist"],
    &["http"],
    &["daemon"],
];

/// The modules that the client may import: `media` shows pictures in the terminal.
const CLI_SEES: &[&str] = &[
    "cli",
    "color",
    "digest",
    "error_chain",
    "media",
    "paths",
    "sys",
    "wire",
];

fn sources() -> Vec<(PathBuf, String)> {
    fn collect(directory: &Path, files: &mut Vec<(PathBuf, String)>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, files);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                files.push((path, text));
            }
        }
    }
    let mut files = Vec::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    collect(&root, &mut files);
    assert!(files.len() > 50, "some sources are missing");
    let relative =
        |(path, text): (PathBuf, String)| (path.strip_prefix(&root).unwrap().to_owned(), text);
    files.into_iter().map(relative).collect()
}

/// The module that a file belongs to.
fn module(path: &Path) -> String {
    let first = path
        .components()
        .next()
        .unwrap()
        .as_os_str()
        .to_str()
        .unwrap();
    first.strip_suffix(".rs").unwrap_or(first).to_owned()
}

/// The modules that a file names after `crate::`. Skips its tests, which may import any.
fn imports(text: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]\nmod").next().unwrap();
    let mut modules = Vec::new();
    for line in code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
    {
        let names_the_root =
            |at: usize| !line[..at].ends_with(|c: char| c == '_' || c.is_alphanumeric());
        for (at, _) in line
            .match_indices("crate::")
            .filter(|(at, _)| names_the_root(*at))
        {
            let rest = &line[at + "crate::".len()..];
            match rest.strip_prefix('{') {
                Some(list) => modules.extend(
                    list.split(['}', ';'])
                        .next()
                        .unwrap()
                        .split(',')
                        .map(|one| first_word(one.trim())),
                ),
                None => modules.push(first_word(rest)),
            }
        }
    }
    modules.retain(|module| !module.is_empty());
    modules
}

fn first_word(text: &str) -> String {
    text.chars()
        .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
        .collect()
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|modules| modules.contains(&module))
}

#[test]
fn no_module_imports_upwards() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let home = module(&path);
        for import in imports(&text) {
            let allowed = match (home.as_str(), layer(&home), layer(&import)) {
                ("lib" | "main" | "entry" | "internals", ..) => true,
                ("cli", ..) => CLI_SEES.contains(&import.as_str()),
                _ if import == home => true,
                (_, Some(home), Some(other)) => other < home || (home == 0 && other == 0),
                // Macros and functions in the root of the crate.
                (_, Some(_), None) => false,
                (_, None, _) => panic!("{home} is in no layer"),
            };
            if !allowed {
                wrong.push(format!("{} imports {import}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_do_not_import_each_other_in_a_circle() {
    let sources = sources();
    let rings = rings::rings(
        sources
            .iter()
            .map(|(path, text)| (path.as_path(), text.as_str())),
    );
    assert!(rings.is_empty(), "{rings:#?}");
}

#[test]
fn architecture_page_names_every_crate() {
    let read =
        |name: &str| fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap();
    let (manifest, page) = (read("Cargo.toml"), read("ARCHITECTURE.md"));
    let manifest: toml::Table = manifest.parse().unwrap();
    let crates = manifest["dependencies"].as_table().unwrap().keys();
    let untold: Vec<_> = crates
        .filter(|name| !page.contains(&format!("`{name}`")))
        .collect();
    assert!(
        untold.is_empty(),
        "ARCHITECTURE.md does not name {untold:?}"
    );
}

#[test]
fn every_file_has_a_head() {
    let silent: Vec<_> = sources()
        .into_iter()
        .filter(|(_, text)| !text.starts_with("//! "))
        .map(|(p, _)| p)
        .collect();
    assert!(silent.is_empty(), "without a head: {silent:?}");
}

/// rustfmt does not wrap comments: 100 characters of text and their mark are allowed.
#[test]
fn comments_are_at_most_105_columns_wide() {
    const WIDEST: usize = 105;
    let wide = |line: &&str| line.trim_start().starts_with("//") && line.chars().count() > WIDEST;
    for (path, text) in sources() {
        let wide: Vec<_> = text.lines().filter(wide).collect();
        assert!(wide.is_empty(), "{}: {wide:?}", path.display());
    }
}

#[test]
fn crates_and_programs_are_used_only_by_their_modules() {
    let rules: &[(&str, &[&str])] = &[
        // The command may start the daemon.
        ("std::process::Command", &["process", "cli"]),
        ("fast_image_resize", &["media"]),
        ("zune_jpeg", &["media"]),
        ("rusqlite", &["store"]),
        ("wayland_client", &["compositor", "draw"]),
        ("x11rb", &["compositor", "draw"]),
        ("httparse", &["http", "backends", "cli"]),
    ];
    for (path, text) in sources() {
        let code = text.split("#[cfg(test)]").next().unwrap();
        let code: Vec<&str> = code
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .collect();
        for (what, modules) in rules {
            let used = code.iter().any(|line| line.contains(what));
            assert!(
                !used || modules.contains(&module(&path).as_str()),
                "{} uses {what}",
                path.display()
            );
        }
    }
}
