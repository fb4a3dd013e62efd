//! Tests how command lines are parsed.

use serde_json::json;

use super::super::call::OutputOptions;
use super::*;

fn parsed(line: &[&str]) -> Result<Parsed, Error> {
    parse(
        Verbs(crate::cli::GROUPS),
        line.iter().map(OsString::from).collect(),
    )
}

#[track_caller]
fn call(line: &[&str]) -> (&'static Verb, Call) {
    match parsed(line).unwrap() {
        Parsed::Call(verb, call) => (verb, *call),
        other => panic!("{other:?}"),
    }
}

#[test]
fn verbs_get_their_arguments_and_flags() {
    #[track_caller]
    fn check(line: &[&str], verb: &str, values: Value) {
        let (found, call) = call(line);
        assert_eq!(found.name(), verb);
        let found: Vec<Value> = call
            .values
            .into_iter()
            .map(|(name, value)| json!([name, value]))
            .collect();
        assert_eq!(Value::Array(found), values);
    }
    check(&[], "start", json!([]));
    check(&["--log-level", "debug"], "start", json!([]));
    check(&["set", "7"], "set", json!([["PICTURE", 7]]));
    check(
        &[
            "set",
            "--monitor",
            "DP-1",
            "7",
            "--monitor=DP-2",
            "--mode=clone",
        ],
        "set",
        json!([
            ["--monitor", "DP-1"],
            ["--monitor", "DP-2"],
            ["--mode", "clone"],
            ["PICTURE", 7]
        ]),
    );
    check(
        &["history", "--limit", "3"],
        "history",
        json!([["--limit", 3]]),
    );
    check(&["history", "clear"], "history clear", json!([]));
    check(
        &["images", "delete", "1", "2"],
        "images delete",
        json!([["IMAGE", 1], ["IMAGE", 2]]),
    );
    check(
        &["import", "--no-wait", "a", "--", "--b"],
        "import",
        json!([["--no-wait", true], ["PATH", "a"], ["PATH", "--b"]]),
    );
    check(
        &["config", "set", "daemon", "x", "-5"],
        "config set",
        json!([["SECTION[.KEY]", "daemon"], ["KEY", "x"], ["VALUE", "-5"]]),
    );
    check(
        &["images", "move", "1", "-", "sea", "-0"],
        "images move",
        json!([
            ["-0", true],
            ["IMAGE", 1],
            ["IMAGE", "-"],
            ["FOLDER", "sea"]
        ]),
    );
    check(
        &[
            "images",
            "tag",
            "7",
            "--json",
            "--add",
            "-h",
            "--remove=-V,--json",
        ],
        "images tag",
        json!([
            ["--add", ["-h"]],
            ["--remove", ["-V", "--json"]],
            ["IMAGE", 7]
        ]),
    );
    check(&["where"], "where", json!([]));
    check(&["prev"], "previous", json!([]));
    check(&["ls"], "images list", json!([]));
    check(
        &["folder", "rm", "Sea"],
        "folders delete",
        json!([["FOLDER", "Sea"]]),
    );
    check(
        &["config", "get", "a=b"],
        "config get",
        json!([["SECTION[.KEY]", "a=b"]]),
    );
}

#[test]
fn global_flags_may_be_at_any_place() {
    for line in [
        ["--json", "--socket", "/s", "images", "show", "7"],
        ["images", "--socket", "/s", "--json", "show", "7"],
        ["images", "show", "7", "--json", "--socket", "/s"],
    ] {
        let (_, call) = call(&line);
        let output = OutputOptions {
            json: true,
            ..OutputOptions::default()
        };
        let expected = Globals {
            socket: Some("/s".into()),
            output,
            ..Globals::default()
        };
        assert_eq!(call.globals, expected);
    }
}

#[test]
fn help_and_version_are_recognised() {
    #[track_caller]
    fn check(line: &[&str], start: &str) {
        match parsed(line).unwrap() {
            Parsed::Help(text) => assert!(text.starts_with(start), "{text}"),
            other => panic!("{other:?}"),
        }
    }
    check(&["--help"], "murald - ");
    check(&["help"], "murald - ");
    check(&["-h", "images"], "Usage: murald images COMMAND");
    check(
        &["images", "list", "--help"],
        "List the images of the library",
    );
    check(
        &["help", "images", "list"],
        "List the images of the library",
    );
    assert!(matches!(parsed(&["--version"]), Ok(Parsed::Version)));
    assert!(matches!(parsed(&["images", "-V"]), Ok(Parsed::Version)));
}

#[test]
fn wrong_command_lines_are_explained() {
    #[track_caller]
    fn check(line: &[&str], expected: &str) {
        let error = parsed(line).unwrap_err();
        assert_eq!(error.exit, crate::cli::Exit::Usage);
        let told = error.to_string();
        assert!(told.starts_with(&format!("murald: {expected}")), "{told}");
    }
    check(
        &["frobnicate"],
        "unknown command \"frobnicate\"\nhint: `murald help all` lists all commands",
    );
    check(
        &["improt"],
        "unknown command \"improt\"\nhint: did you mean import?",
    );
    check(&["config"], "murald config needs a command: get, ");
    check(
        &["images", "frobnicate"],
        "unknown command \"images frobnicate\"\nhint: see ",
    );
    check(
        &["playlists", "strat", "1"],
        "unknown command \"playlist strat\"\nhint: did you mean ",
    );
    check(
        &["set"],
        "missing argument PICTURE\nhint: usage: murald set PICTURE [FLAGS]",
    );
    check(
        &["set", "0"],
        "PICTURE must be a name or an ID (1 or more), not \"0\"",
    );
    check(
        &["set", "7", "8"],
        "unexpected argument \"8\"\nhint: quote a name with spaces: '7 8'",
    );
    check(
        &["set", "my", "lake.jpg"],
        "unexpected argument \"lake.jpg\"\nhint: quote a name with spaces: 'my lake.jpg'",
    );
    check(
        &["set", "https://a.org/b.jpg"],
        "cannot load https://a.org/b.jpg: murald does not use the network",
    );
    check(
        &["random", "--monitor", ","],
        "--monitor must be a name, not \",\"",
    );
    check(
        &["rm", "7"],
        "unknown command \"rm\"\nhint: did you mean images delete, ",
    );
    check(
        &["--json", "--format", "{id}", "status"],
        "--json cannot be combined with --format",
    );
    check(
        &["--format", "{", "status"],
        "--format: { has no closing brace\n",
    );
    check(
        &["status", "now"],
        "unexpected argument \"now\"\nhint: usage: murald status",
    );
    check(
        &["set", "7", "--mod", "clone"],
        "unknown flag --mod\nhint: did you mean --mode?",
    );
    check(&["set", "7", "--mod=clone"], "unknown flag --mod\n");
    check(&["set", "7", "--mode"], "--mode needs a value");
    check(
        &["set", "7", "--mode", "--monitor", "x"],
        "--mode needs a value",
    );
    check(
        &["set", "7", "--mode", "wide"],
        "--mode must be one of individual, clone, extend, not",
    );
    check(
        &["set", "7", "--mode", "clone", "--mode", "clone"],
        "--mode can be given only once",
    );
    check(&["stop", "--clear=yes"], "--clear takes no value");
    check(
        &["--log-level", "loud"],
        "--log-level must be one of debug, info, warn, error, not \"loud\"",
    );
    check(&["--socket"], "--socket needs a value");
    check(&["--socket="], "--socket needs a path, not an empty word");
    check(
        &["--frob"],
        "unknown flag --frob\nhint: see `murald --help`",
    );
    for flag in ["--verison", "-v"] {
        let told =
            format!("unknown flag {flag}\nhint: did you mean --version? see `murald --help`");
        check(&[flag], &told);
    }
    check(
        &["version"],
        "unknown command \"version\"\nhint: did you mean --version? ",
    );
    check(
        &["find", "lake"],
        "unknown command \"find\"\nhint: did you mean images search? ",
    );
    check(
        &["images", "--colors", "blu,red"],
        "--colors must be #rrggbb, #rgb or a CSS colour name, not \"blu,red\"",
    );
    for near in ["red", "#zzzzzz~20", "red~-1"] {
        let form = "colours with a distance, such as red~20 or #ff0000~12.5";
        let told = format!("--colors-near must be {form}, not {near:?}");
        check(&["random", "--colors-near", near], &told);
    }
    check(
        &["volume", "150"],
        "VOLUME must be an integer from 0 to 100, not \"150\"",
    );
    check(
        &["images", "--per-page", "201"],
        "--per-page must be an integer from 1 to 200, not \"201\"",
    );
    check(
        &["images", "--page", "0"],
        "--page must be an integer of at least 1, not \"0\"",
    );
    check(&["playlist", "create", ""], "NAME must be a name, not \"\"");
    check(
        &["events", "--types", "a"],
        "--types must be one of wallpaper_changed, ",
    );
}
