//! Compares words with a file in `tests/snapshots`, one for each test. `MURALD_BLESS=1` accepts the new
//! words; `git diff tests/snapshots` shows them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

thread_local! {
    /// How often this test has compared something under this name.
    static SEEN: RefCell<HashMap<String, u32>> = RefCell::default();
}

/// Compares the words of something, such as a call, with the accepted ones. Called by the test's own
/// thread, which has the name of the test.
#[track_caller]
pub fn snapshot(what: &str, words: &str) {
    let number = SEEN.with_borrow_mut(|seen| {
        let number = seen.entry(what.to_owned()).or_insert(0);
        *number += 1;
        *number
    });
    let what = match number {
        1 => what.to_owned(),
        _ => format!("{what} (call {number})"),
    };
    let path = file();
    let mut sections = sections(&fs::read_to_string(&path).unwrap_or_default());
    let words = words.trim_end().to_owned();
    let at = sections.iter().position(|(name, _)| *name == what);
    let accepted = at.map(|at| sections[at].1.clone());
    if accepted.as_ref() == Some(&words) {
        return;
    }
    if std::env::var_os("MURALD_BLESS").is_none() {
        let file = path.display();
        let accepted = accepted.unwrap_or_else(|| "nothing".to_owned());
        panic!(
            "{what}: the words have changed; accept them with MURALD_BLESS=1\n{file} has:\n{accepted}\nnow:\n{words}"
        );
    }
    match at {
        Some(at) => sections[at].1 = words,
        None => sections.push((what, words)),
    }
    let text = sections
        .iter()
        .map(|(name, words)| format!("=== {name}\n{words}\n"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text.collect::<String>()).unwrap();
}

fn file() -> PathBuf {
    let thread = std::thread::current();
    let test = thread
        .name()
        .expect("the thread of a test")
        .replace("::", ".");
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/snapshots")
        .join(env!("CARGO_CRATE_NAME"))
        .join(test + ".txt")
}

/// The names of the parts of a file, and their words.
fn sections(text: &str) -> Vec<(String, String)> {
    let mut sections: Vec<(String, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("=== "), sections.last_mut()) {
            (Some(name), _) => sections.push((name.to_owned(), Vec::new())),
            (None, Some((_, words))) => words.push(line),
            (None, None) => {}
        }
    }
    let whole = |(name, words): (String, Vec<&str>)| (name, words.join("\n"));
    sections.into_iter().map(whole).collect()
}
