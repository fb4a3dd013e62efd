//! Checks each verb of the command table: its help, unknown words and flags, no daemon, an empty
//! library, a closed pipe, JSON, and a narrow terminal.

use std::io::Read;
use std::process::Stdio;

use murald::internals::cli::{Arity, GROUPS, Verb};
use serde_json::Value;

use crate::call::{run, stderr};
use crate::lines::{APART, LINES};
use crate::support::TestDaemon;
use crate::support::pty::Pty;

fn verbs() -> impl Iterator<Item = &'static Verb> {
    GROUPS.iter().flat_map(|group| group.verbs)
}

/// Verbs that start or stop the daemon, do not need it, need files, or do not end by themselves.
fn is_apart(verb: &Verb) -> bool {
    let name = verb.name();
    [
        "start", "stop", "doctor", "events", "complete", "pick", "gallery",
    ]
    .contains(&name.as_str())
        || [
            "config path",
            "config check",
            "library check",
            "library restore",
            "config reset",
        ]
        .contains(&name.as_str())
}

/// Whether the verb works without arguments.
fn stands_alone(verb: &Verb) -> bool {
    verb.arguments
        .iter()
        .all(|one| matches!(one.arity, Arity::Optional | Arity::Any))
}

fn line(verb: &Verb, more: &[&'static str]) -> Vec<&'static str> {
    [verb.words, more].concat()
}

#[test]
fn every_verb_has_help_and_refuses_unknown_words_and_flags() {
    let daemon = TestDaemon::new();
    for verb in verbs() {
        let name = verb.name();
        let output = run(&daemon, &line(verb, &["--help"]));
        let help = String::from_utf8(output.stdout).unwrap();
        assert_eq!(
            (output.status.code(), output.stderr.as_slice()),
            (Some(0), &b""[..]),
            "{name}"
        );
        assert!(help.contains(&format!("Usage: murald {name}")), "{help}");
        let output = run(&daemon, &line(verb, &["--frobnicate"]));
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{name}: {told}");
        assert!(told.starts_with("murald: unknown flag --frob"), "{told}");
        if !stands_alone(verb) {
            let told = stderr(&run(&daemon, verb.words));
            assert!(
                told.contains("missing argument ") && told.contains("\nhint: usage: murald "),
                "{name}: {told}"
            );
        }
        let is_open = verb
            .arguments
            .iter()
            .any(|one| matches!(one.arity, Arity::Some | Arity::Any));
        if !is_open {
            let words = vec!["1"; verb.arguments.len() + 1];
            let output = run(&daemon, &line(verb, &words));
            assert_eq!(output.status.code(), Some(2), "{name}: {}", stderr(&output));
        }
        assert!(!daemon.socket().exists(), "{name} started something");
    }
}

#[test]
fn every_verb_reports_a_missing_daemon() {
    let daemon = TestDaemon::new();
    for verb in verbs().filter(|verb| !is_apart(verb) && stands_alone(verb)) {
        let name = verb.name();
        let output = run(&daemon, verb.words);
        let told = stderr(&output);
        match output.status.code() {
            Some(69) => assert!(told.contains("the daemon is not running"), "{name}: {told}"),
            // Errors in the line come first.
            code => assert_eq!(code, Some(2), "{name}: {told}"),
        }
        assert!(output.stdout.is_empty(), "{name}");
    }
}

#[test]
fn every_verb_copes_with_an_empty_library() {
    let daemon = TestDaemon::started();
    for verb in verbs().filter(|verb| !is_apart(verb) && stands_alone(verb)) {
        let name = verb.name();
        let output = run(&daemon, verb.words);
        let told = stderr(&output);
        // The verb succeeds, or explains what is missing.
        assert!(
            matches!(output.status.code(), Some(0..=2)),
            "{name}: {told}"
        );
        assert_eq!(output.status.success(), told.is_empty(), "{name}: {told}");
        let words = ["panicked", "internal error", "unwrap", "null"];
        assert!(
            words.iter().all(|word| !told.contains(word)),
            "{name}: {told}"
        );
        // With `--json`, output and errors are JSON.
        let output = run(&daemon, &line(verb, &["--json"]));
        let printed = if output.status.success() {
            &output.stdout
        } else {
            &output.stderr
        };
        let read = serde_json::from_slice::<Value>(printed);
        assert!(
            read.is_ok() || printed.is_empty(),
            "{name}: {}",
            String::from_utf8_lossy(printed)
        );
        if let (true, Ok(answer)) = (output.status.success(), read) {
            has_its_fields(verb, &answer);
        }
    }
}

/// Checks that `--format` knows each field of the answer.
fn has_its_fields(verb: &Verb, answer: &Value) {
    let fields = verb.fields();
    let list = answer.as_array().or_else(|| answer["data"].as_array());
    for record in list.map_or(std::slice::from_ref(answer), Vec::as_slice) {
        for name in record
            .as_object()
            .into_iter()
            .flat_map(|record| record.keys())
        {
            let is_known = fields.contains(&name.as_str());
            assert!(is_known || fields.is_empty(), "{}: {name}", verb.name());
        }
    }
}

#[test]
fn closed_pipe_ends_every_verb_quietly() {
    let daemon = TestDaemon::started();
    for verb in verbs().filter(|verb| !is_apart(verb) && stands_alone(verb)) {
        let name = verb.name();
        let mut command = daemon.murald(verb.words);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let mut told = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut told)
            .unwrap();
        let code = child.wait().unwrap().code();
        assert!(matches!(code, Some(0..=2)), "{name}: {code:?} {told}");
        assert!(
            !told.contains("panicked") && !told.contains("roken pipe"),
            "{name}: {told}"
        );
        assert_eq!(code == Some(0), told.is_empty(), "{name}: {told}");
    }
}

#[test]
fn tables_fit_a_narrow_terminal() {
    let daemon = TestDaemon::started();
    for verb in verbs().filter(|verb| !is_apart(verb) && stands_alone(verb)) {
        let name = verb.name();
        // Records are not cut to the width, so that their values can be copied.
        let is_sheet = ["status", "debug", "config get"].contains(&name.as_str());
        let mut command = daemon.murald(verb.words);
        command.env("TERM", "xterm").env("NO_COLOR", "1");
        let (code, shown) = Pty::new(command, 40, 24).end();
        assert!(matches!(code, Some(0..=2)), "{name}: {shown}");
        assert!(!shown.contains('\x1b'), "{name}: {shown:?}");
        if code == Some(0) && !is_sheet {
            // Rows of tables must fit; sentences are wrapped.
            let rows = shown.lines().filter(|line| line.contains("  "));
            rows.for_each(|row| assert!(row.chars().count() <= 40, "{name}: {row}"));
        }
    }
}

#[test]
fn every_verb_is_measured_or_exempted() {
    for verb in verbs() {
        let name = verb.name();
        let begins = |line: &&str| **line == name || line.starts_with(&format!("{name} "));
        let is_apart = APART.iter().any(|(_, names)| {
            names
                .iter()
                .any(|one| *one == name || name.starts_with(&format!("{one} ")))
        });
        assert!(
            is_apart || LINES.iter().any(begins),
            "benches/figures/lines.rs lacks {name}"
        );
    }
}
