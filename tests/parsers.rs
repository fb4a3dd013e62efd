//! Runs every parser on the inputs that fuzzing has found: each file of `tests/fuzz/corpus` goes to its
//! target once, without libFuzzer. `tests/fuzz/run` searches for more.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

#[path = "fuzz/src/input.rs"]
mod input;
#[path = "fuzz/src/targets/mod.rs"]
mod targets;

use std::fs;
use std::panic::catch_unwind;
use std::path::Path;
use std::process::Command;

/// All in one test, one after another, as their memory is measured.
#[test]
fn parsers_survive_the_fuzzing_corpus() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus");
    // The tarball of a release has no corpora.
    if !corpus.exists() {
        return;
    }
    let mut failed = Vec::new();
    for (name, run) in targets::ALL {
        let directory = tempfile::tempdir().unwrap();
        let mut tar = Command::new("tar");
        tar.args(["--no-same-permissions", "-xzf"])
            .arg(corpus.join(name).with_extension("tar.gz"))
            .current_dir(&directory);
        assert!(
            tar.status().unwrap().success(),
            "{name}: its corpus cannot be unpacked"
        );
        let mut count = 0;
        for file in fs::read_dir(&directory).unwrap() {
            let path = file.unwrap().path();
            let data = fs::read(&path).unwrap();
            count += 1;
            if catch_unwind(|| run(&data)).is_err() {
                failed.push(format!("{name}: {}", path.file_name().unwrap().display()));
            }
        }
        assert!(count > 0, "{name}: its corpus is empty");
    }
    assert!(failed.is_empty(), "these files of the corpora: {failed:#?}");
}
