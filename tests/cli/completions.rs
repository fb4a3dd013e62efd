//! Completion of the command line: the output of `murald complete`, and its use by each shell.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::json;

use crate::support::pty::Pty;
use crate::support::{PATIENCE, TestDaemon};

/// A test daemon with a picture, a folder and tags.
fn daemon() -> TestDaemon {
    let daemon = TestDaemon::started();
    let picture = daemon.root().join("red lake.png");
    image::RgbImage::new(4, 4).save(&picture).unwrap();
    daemon.import(&[&picture]);
    daemon
        .client()
        .post("/folders", &json!({ "name": "Lakes" }));
    daemon
        .client()
        .patch("/images/1", &json!({ "tags": ["big sky", "sea"] }));
    daemon
}

/// The completions of a line.
fn offered(daemon: &TestDaemon, line: &[&str]) -> Vec<String> {
    let output = daemon
        .murald(&[&["complete", "--"], line].concat())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| line.split('\t').next().unwrap().to_owned())
        .collect()
}

/// Asks until `is_there` holds: on a busy machine the daemon may take longer than `complete` waits.
fn in_time<T>(ask: impl Fn() -> T, is_there: impl Fn(&T) -> bool) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = ask();
        if is_there(&found) || Instant::now() >= deadline {
            return found;
        }
    }
}

#[test]
fn lines_are_completed_from_the_command_table_and_the_daemon() {
    let daemon = daemon();
    let check = |line: &[&str], expected: &[&str]| {
        let found = in_time(
            || offered(&daemon, line),
            |found| found.len() == expected.len(),
        );
        assert_eq!(found, expected, "{line:?}");
    };
    let has = |line: &[&str], expected: &str| {
        let found = in_time(|| offered(&daemon, line), |found| !found.is_empty());
        assert!(
            found.iter().any(|word| word == expected),
            "{line:?}: {found:?}"
        );
    };
    has(&[""], "images");
    check(&["imag"], &["images"]);
    has(&["images", ""], "rename");
    check(&["images", "thumb"], &["thumbnail"]);
    check(&["images", "show", ""], &["red lake", "1"]);
    check(&["images", "show", "red"], &["red lake"]);
    check(&["--socket=/nowhere", "images", "show", ""], &[]);
    has(&["set", ""], ":files");
    check(&["folders", "show", ""], &["Lakes", "1"]);
    check(&["images", "delete", "1", "red"], &["red lake"]);
    check(&["images", "list", "--tags", ""], &["big sky", "sea"]);
    check(
        &["images", "tag", "1", "--remove", "sea,b"],
        &["sea,big sky"],
    );
    check(&["random", "--hue-group", "red,b"], &["red,blue"]);
    daemon
        .client()
        .post("/folders", &json!({ "name": "Como", "parent_id": 1 }));
    check(&["folders", "show", "Lakes/"], &["Lakes/Como"]);
    daemon.client().send("DELETE", "/folders/2", "", b"");
    check(&["folders", "move", "1", "r"], &["root"]);
    check(&["images", "list", "--sort-o"], &["--sort-order"]);
    has(&["images", "list", "--sort-by", ""], "hue");
    has(&["images", "--json", "li"], "list");
    has(&["image", ""], "rename");
    check(&["image", "get", ""], &["red lake", "1"]);
    check(&["config", "get", "backend.feh", "mo"], &["mode"]);
    check(
        &["events", "--types", "config_changed,wallpaper_ch"],
        &["config_changed,wallpaper_changed"],
    );
    has(&["backends", "activate", ""], "wal-qt");
    check(&["set", "--position", "top-"], &["top-left", "top-right"]);
    check(&["config", "get", "app", "images_"], &["images_per_page"]);
    check(&["config", "set", "backend.fe"], &["backend.feh"]);
    check(
        &["config", "set", "backend.feh", ""],
        &["mode", "fill_color"],
    );
    check(&["config", "set", "backend.feh.mo"], &["backend.feh.mode"]);
    check(&["config", "set", "backend.feh.mode", "ma"], &["max"]);
    check(&["config", "set", "backend.feh", "mode", "ma"], &["max"]);
    check(&["config", "set", "backend.ty"], &["backend.type"]);
    check(&["config", "set", "backend.type", "sw"], &["swaybg"]);
    check(&["import", "/tm"], &[":files"]);
    check(&["import-web", ""], &[":directories"]);
    check(&["--socket", ""], &[":files"]);
    check(&["--log-level", "d"], &["debug"]);
    check(
        &["folders", "list", "--format", "{id} {na"],
        &["{id} {name}"],
    );
    has(&["images", "list", "--format", ""], "{file_size}");
    has(
        &["config", "set", "app.theme", "dark", "--format", "{"],
        "{theme}",
    );
    check(&["images", "nonsense", ""], &[]);
    check(&[], &[]);
    // No daemon listens at the line's own socket; words of the command table are offered nevertheless.
    check(&["--socket", "/nowhere", "images", "show", ""], &[]);
    check(
        &["--socket", "/nowhere", "config", "get", "remote"],
        &["remote_gallery"],
    );
    check(
        &["--socket", "/nowhere", "backends", "activate", "wal"],
        &["wal-qt"],
    );
}

/// Every section and key of the settings.
#[test]
fn every_setting_is_offered() {
    let daemon = daemon();
    let mut sections: BTreeSet<String> = offered(&daemon, &["config", "set", ""])
        .into_iter()
        .collect();
    let config = daemon.client().get("/config").ok();
    let own = [
        "app",
        "daemon",
        "backend.auto_priorities",
        "library",
        "location",
        "hooks",
        "power",
        "desktop",
        "monitors",
        "remote_gallery",
    ];
    // `backend` itself is no section: its settings are named in full.
    let whole = ["type", "selection_mode", "transition_duration_seconds"];
    let mut wanted: BTreeSet<String> = own.map(str::to_owned).into();
    let backends = config["backend"].as_object().unwrap();
    let programs = [
        "awww",
        "feh",
        "hyprpaper",
        "mpvpaper",
        "swaybg",
        "wal-qt",
        "builtin",
    ];
    wanted.extend(programs.map(|name| format!("backend.{name}")));
    wanted.extend(whole.map(|key| format!("backend.{key}")));
    assert_eq!(sections, wanted);
    sections.retain(|section| {
        !section
            .strip_prefix("backend.")
            .is_some_and(|key| whole.contains(&key))
    });
    assert_eq!(sections.len() + 3, wanted.len());
    for section in sections {
        let keys = match section.strip_prefix("backend.") {
            Some(name) => &backends[name],
            None => &config[&section],
        };
        let keys: BTreeSet<String> = keys.as_object().unwrap().keys().cloned().collect();
        let line = ["config", "set", &section, ""];
        // Some sections have no settings.
        let found = in_time(
            || offered(&daemon, &line),
            |found| found.len() == keys.len(),
        );
        assert_eq!(keys, found.into_iter().collect(), "{section}");
    }
}

const CONTRIB: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/contrib/completions");

/// A shell with our executable on its path.
fn shell_command(daemon: &TestDaemon, program: &str) -> Command {
    let mut command = daemon.command(program);
    let bin = Path::new(env!("CARGO_BIN_EXE_murald")).parent().unwrap();
    command.env(
        "PATH",
        format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()),
    );
    command
}

/// Runs a script in a shell with our completions, and returns its output.
fn shell(daemon: &TestDaemon, program: &str, arguments: &[&str], script: &str) -> String {
    let script = script.replace("@CONTRIB@", CONTRIB);
    let output = shell_command(daemon, program)
        .args(arguments)
        .arg("-c")
        .arg(script)
        .output()
        .unwrap();
    assert!(output.status.success(), "{program}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn bash_offers_the_completions() {
    let daemon = daemon();
    let offers = |words: &str| {
        let script = format!(
            "source @CONTRIB@/murald.bash; COMP_WORDS=(murald {words}); \
             COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 )); \
             _murald murald \"${{COMP_WORDS[-1]}}\" ''; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        in_time(
            || shell(&daemon, "bash", &["--norc"], &script),
            |found| found != "\n",
        )
    };
    assert_eq!(offers("images thumb"), "thumbnail\n");
    assert_eq!(offers("images show ''"), "red lake\n1\n");
    assert_eq!(offers("images show 'red\\ la'"), "red lake\n");
    assert_eq!(offers("config get app images_"), "images_per_page\n");
    assert_eq!(offers("random --tags ''"), "big sky\nsea\n");
    assert_eq!(offers("images list --folder L"), "Lakes\n");
    // Outside of an interactive completion `compopt` fails in bash; files are offered nevertheless.
    assert!(offers("import /et").contains("/etc"));
}

/// The words of a line after bash has completed it with Tab.
fn completed_by_bash(daemon: &TestDaemon, line: &str) -> String {
    let mut command = shell_command(daemon, "bash");
    command
        .args(["--norc", "--noprofile", "-i"])
        .current_dir(daemon.root().join("at"));
    command
        .env("PS1", "READY> ")
        .env("TERM", "dumb")
        .env("LC_ALL", "C.UTF-8");
    let mut terminal = Pty::new(command, 200, 40);
    terminal.until("READY> ");
    let source = format!("source {CONTRIB}/murald.bash; bind 'set enable-bracketed-paste off'\n");
    terminal.types(source.as_bytes());
    terminal.until("READY> ");
    // Keys to the start and the end of the line: bash handles them after Tab.
    terminal.types(format!("{line}\t\x01printf '<%s>' \x05; echo END\"\"ED; exit\n").as_bytes());
    let shown = terminal.until("ENDED");
    terminal.end();
    shown
        .rsplit('\n')
        .next()
        .unwrap()
        .trim_end_matches("ENDED")
        .to_owned()
}

#[test]
fn bash_quotes_completed_names() {
    let daemon = daemon();
    let directory = daemon.root().join("at");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("loose end.png"), b"").unwrap();
    let check = |line: &str, expected: &str| {
        let found = in_time(
            || completed_by_bash(&daemon, line),
            |found| found == expected,
        );
        assert_eq!(found, expected, "{line}");
    };
    check(r"murald set red\ l", "<murald><set><red lake>");
    check("murald set \"red l", "<murald><set><red lake>");
    check(
        "murald images show 'red l",
        "<murald><images><show><red lake>",
    );
    check("murald set loo", "<murald><set><loose end.png>");
    check("murald random --tags=b", "<murald><random><--tags=big sky>");
    check(
        "murald random --media-type=vi",
        "<murald><random><--media-type=video>",
    );
    check("murald images thumb", "<murald><images><thumbnail>");
}

#[test]
fn fish_offers_the_completions() {
    let daemon = daemon();
    let offers = |line: &str| {
        let script = format!("source @CONTRIB@/murald.fish; complete -C '{line}'");
        in_time(
            || shell(&daemon, "fish", &["--no-config"], &script),
            |found| !found.is_empty(),
        )
    };
    assert_eq!(
        offers("murald images thumb"),
        "thumbnail\tPrint the thumbnail of an image (WebP)\n"
    );
    assert_eq!(offers("murald images show "), "1\tred lake\nred lake\t1\n");
    assert!(offers("murald config get app images_").starts_with("images_per_page\t50"));
    assert_eq!(offers("murald random --tags "), "big sky\nsea\n");
    assert_eq!(offers("murald images list --folder L"), "Lakes\t1\n");
    assert!(offers("murald set --fit=cen").starts_with("--fit=center"));
    // Escaped, or with an open quote.
    assert_eq!(offers(r"murald images show red\\ l"), "red lake\t1\n");
    assert_eq!(offers("murald images show \"red l"), "red lake\t1\n");
    assert_eq!(offers("murald images tag \"red lake\" --remove s"), "sea\n");
    assert!(offers("murald import /et").contains("/etc/"));
}

/// zsh completes only on a terminal, so the script replaces the functions that would draw.
#[test]
fn zsh_offers_the_completions() {
    let daemon = daemon();
    let offers = |words: &str| {
        let script = format!(
            "words=(murald {words}); CURRENT=$#words; \
             open='\"' PREFIX=${{words[-1]#$open}}; _describe() {{ print -rl -- ${{(P)2}} }}; _files() {{ print files $* }}; \
             source @CONTRIB@/_murald"
        );
        in_time(
            || shell(&daemon, "zsh", &["-f"], &script),
            |found| !found.is_empty(),
        )
    };
    assert_eq!(
        offers("images thumb"),
        "thumbnail:Print the thumbnail of an image (WebP)\n"
    );
    assert_eq!(offers("images show ''"), "red lake:1\n1:red lake\n");
    assert_eq!(offers("config get app images_"), "images_per_page:50\n");
    assert_eq!(offers("import-web ''"), "files -/\n");
    assert_eq!(offers("random --tags ''"), "big sky\nsea\n");
    assert_eq!(offers("images list --folder L"), "Lakes:1\n");
    assert_eq!(offers("set --fit=cen"), "--fit=center\n");
    // zsh passes each word as typed, the last one without an open quote.
    assert_eq!(offers(r"images show 'red\ l'"), "red lake:1\n");
    assert_eq!(offers(r#"images show '"red l'"#), "red lake:1\n");
    assert_eq!(offers(r#"images tag '"red lake"' --remove s"#), "sea\n");
}
