//! Compares the manual with the program in both directions: the schema of the settings, the tables of
//! commands, routes and events, and the records of the API. Also lints the pages and runs their
//! examples.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use murald::internals::cli::{Arity, Exit, Flag, GLOBAL, GROUPS, Kind, Verb};
use murald::internals::config::{Key, Rule, Section, ValueType};
use murald::internals::wire::EventKind;
use serde_json::{Value, json};

use crate::desktop::Desktop;
use crate::openapi;
use crate::support::TestDaemon;

fn pages() -> Vec<PathBuf> {
    let entries = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("man")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn page(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("man").join(name)).unwrap()
}

#[test]
fn pages_pass_the_linters() {
    for page in pages() {
        let lint = Command::new("mandoc")
            .args(["-T", "lint"])
            .arg(&page)
            .output()
            .unwrap();
        let said = String::from_utf8(lint.stdout).unwrap();
        // Which other pages exist depends on the machine; names and order of our sections are free.
        let of_others = |line: &&str| {
            ["not found", "outdated", "section"]
                .iter()
                .any(|word| line.contains(word))
        };
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

/// The parts of a text that begin with this heading, as the rest of the heading's line and the body.
fn parts<'a>(text: &'a str, heading: &str) -> Vec<(&'a str, &'a str)> {
    let mut parts = text.split(heading);
    parts.next();
    parts
        .map(|part| part.split_once('\n').unwrap_or((part, "")))
        .collect()
}

/// Text as it is displayed: without line breaks and roff escapes.
fn plain(text: &str) -> String {
    let text = text
        .replace("\\(dq", "\"")
        .replace("\\-", "-")
        .replace("\\&", "");
    let text = text.replace("\\fB", "`").replace("\\fP", "`");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Sections for clients, whose settings the page does not explain.
const CLIENT_SECTIONS: [&str; 3] = ["app", "monitors", "remote_gallery"];

/// The settings of the page, such as `app.theme (string, default "dark")` with the allowed values.
fn settings_of_the_page() -> BTreeSet<String> {
    let text = page("murald.toml.5");
    let sections = text
        .split(".Sh SECTIONS\n")
        .nth(1)
        .unwrap()
        .split("\n.Sh ")
        .next()
        .unwrap();
    let mut found = BTreeSet::new();
    for (heading, section) in parts(sections, ".Ss ") {
        for (item, body) in parts(section, ".It Cm ") {
            let (key, rest) = item.split_once(" Pq ").unwrap();
            let body = plain(body.split("\n.El").next().unwrap_or_default());
            let start = ["One of: ", "Allowed: "]
                .iter()
                .find_map(|label| body.find(label));
            let allowed = start.map(|start| body[start..].trim_end_matches('.'));
            let of_clients = CLIENT_SECTIONS.contains(&heading);
            assert!(
                of_clients || body.len() > 5,
                "{heading}.{key} is not explained"
            );
            found.insert(described(
                &format!("{heading}.{key}"),
                &plain(rest),
                allowed,
            ));
        }
    }
    found
}

fn described(key: &str, kind: &str, allowed: Option<&str>) -> String {
    format!("{key} ({kind}) {}", allowed.unwrap_or("anything"))
}

fn described_by_the_schema(section: Section, key: &Key) -> String {
    let kind = match key.kind {
        ValueType::Bool => "boolean",
        ValueType::Integer => "integer",
        ValueType::Number => "number",
        ValueType::Text => "string",
        ValueType::Path => "path",
        ValueType::List => "array",
    };
    let default = match key.default.to_json() {
        None => "no default".to_owned(),
        Some(Value::String(text)) if text.is_empty() => "default empty".to_owned(),
        Some(Value::Array(list)) if list.is_empty() => "default an empty array".to_owned(),
        Some(Value::Array(list)) => {
            let items: Vec<String> = list.iter().map(Value::to_string).collect();
            format!("default [{}]", items.join(", "))
        }
        Some(Value::Number(number)) => format!("default {}", number.as_f64().unwrap()),
        // The schema expands this one in the test's session.
        Some(_) if (section, key.name) == (Section::Daemon, "socket_path") => {
            r#"default "$XDG_RUNTIME_DIR/murald.sock""#.to_owned()
        }
        Some(value) => format!("default {value}"),
    };
    let name = format!("{}.{}", section.heading(), key.name);
    // The page lists the names of backends once, not here.
    let allowed = key.allowed().filter(|_| section != Section::AutoPriorities);
    let label = match key.rule {
        Rule::Words(_) => "One of",
        _ => "Allowed",
    };
    let allowed = allowed.map(|values| format!("{label}: {values}"));
    described(&name, &format!("{kind}, {default}"), allowed.as_deref())
}

#[test]
fn every_setting_is_described_correctly() {
    let keys = |section: Section| section.keys().iter().map(move |key| (section, key));
    let schema = Section::ALL.into_iter().flat_map(keys);
    let schema: BTreeSet<String> = schema
        .map(|(section, key)| described_by_the_schema(section, key))
        .collect();
    let page = settings_of_the_page();
    let missing: Vec<_> = schema.difference(&page).collect();
    let wrong: Vec<_> = page.difference(&schema).collect();
    assert!(
        missing.is_empty() && wrong.is_empty(),
        "missing: {missing:#?}\nwrong: {wrong:#?}"
    );
}

/// A verb's heading in the page, such as `images get ID`. The flags of `filters` have a section of their own.
fn heading(verb: &Verb, filters: Option<&BTreeSet<String>>) -> String {
    let mut heading = verb.name();
    for argument in verb.arguments {
        heading += &match argument.arity {
            Arity::One => format!(" Ar {}", argument.name),
            // `Op` would include what follows.
            Arity::Optional => format!(" Oo Ar {} Oc", argument.name),
            Arity::Some => format!(" Ar {} ...", argument.name),
            Arity::Any => format!(" Oo Ar {} ... Oc", argument.name),
        };
    }
    if filters.is_some() {
        heading += " Oo Ar filters Oc";
    }
    let is_filter = |one: &&Flag| filters.is_some_and(|filters| filters.contains(&flag(one)));
    for one in verb.flags.iter().filter(|one| !is_filter(one)) {
        let name = one.name.trim_start_matches('-');
        let value = one.value.map(|(name, _)| format!(" Ar {name}"));
        let hyphen = if one.name == "-0" { "" } else { "-" };
        heading += &format!(" Oo Fl {hyphen}{name}{} Oc", value.unwrap_or_default());
    }
    heading
}

fn flag(flag: &Flag) -> String {
    let value = flag
        .value
        .map(|(name, _)| format!(" Ar {name}"))
        .unwrap_or_default();
    format!("{}{value}", &flag.name[1..])
}

fn flags(text: &str) -> BTreeSet<String> {
    parts(text, ".It Fl ")
        .into_iter()
        .map(|(item, _)| item.to_owned())
        .collect()
}

#[test]
fn every_command_and_flag_is_described() {
    let text = page("murald.1");
    assert_eq!(
        flags(under(&text, "GLOBAL OPTIONS")),
        GLOBAL.iter().map(flag).collect()
    );
    let (_, commands) = under(&text, "COMMANDS").split_once(".Ss ").unwrap();
    let described = parts(commands, ".It Cm ");
    assert!(under(&text, "NAMING IMAGES").contains(".Fl 0\n"));
    let filters = under(&text, "FILTERS");
    let wanted: Vec<&Verb> = GROUPS.iter().flat_map(|group| group.verbs).collect();
    assert_eq!(described.len(), wanted.len());
    let known = flags(filters);
    for (verb, (told, body)) in wanted.iter().zip(&described) {
        let refers = body.contains(".Sx FILTERS");
        let has_one = verb.flags.iter().any(|one| known.contains(&flag(one)));
        let filters = (refers && has_one).then_some(&known);
        assert_eq!(*told, heading(verb, filters));
    }
    for (verb, (_, body)) in wanted.iter().zip(&described) {
        let name = verb.name();
        let others = if body.contains(".Sx FILTERS") {
            filters
        } else {
            ""
        };
        let mut told = flags(body);
        // `-0` is described once, under NAMING IMAGES.
        let told_once = |flag: &&Flag| flag.name != "-0";
        let own: BTreeSet<String> = verb.flags.iter().filter(told_once).map(flag).collect();
        assert!(told.is_subset(&own), "{name}: {told:?}");
        told.extend(flags(others));
        assert!(own.is_subset(&told), "{name}: {own:?}");
        // In the page, sentences begin with a capital letter.
        let shown = plain(&format!("{body}{others}")).to_lowercase();
        assert!(
            shown.contains(&verb.summary.to_lowercase()),
            "{name}: {shown}"
        );
        for meaning in verb.flags.iter().filter(told_once).map(|flag| flag.meaning) {
            assert!(
                shown.contains(&meaning.to_lowercase()),
                "{name}: no {meaning} in {shown}"
            );
        }
        let kinds = verb
            .flags
            .iter()
            .filter_map(|flag| flag.value.map(|(_, kind)| kind));
        for kind in kinds.chain(verb.arguments.iter().map(|argument| argument.kind)) {
            if let Kind::Words(words) = kind {
                let words = format!("one of: {}", words.join(", "));
                assert!(shown.contains(&words), "{name}: no {words}");
            }
        }
        for argument in verb.arguments {
            // A meaning such as "the playlist" for PLAYLIST need not be in the page.
            let said = format!("the {}", argument.name.to_lowercase());
            if [said.clone(), format!("{said}s")].contains(&argument.meaning.to_lowercase()) {
                continue;
            }
            assert!(
                shown.contains(&argument.meaning.to_lowercase()),
                "{name}: {}",
                argument.meaning
            );
        }
    }
    let statuses = text
        .split(".Sh EXIT STATUS\n")
        .nth(1)
        .unwrap()
        .split("\n.Sh ")
        .next()
        .unwrap();
    let statuses: Vec<&str> = parts(statuses, ".It ")
        .iter()
        .map(|(status, _)| *status)
        .collect();
    use Exit::{Config, Done, Internal, Interrupted, Refused, Running, Unavailable, Usage};
    let known = [
        Done,
        Refused,
        Usage,
        Unavailable,
        Internal,
        Running,
        Config,
        Interrupted,
    ];
    assert_eq!(statuses, known.map(|exit| (exit as u8).to_string()));
}

/// The section under a heading of a page.
fn under<'a>(text: &'a str, heading: &str) -> &'a str {
    let rest = text.split(&format!(".Sh {heading}\n")).nth(1).unwrap();
    rest.split("\n.Sh ").next().unwrap()
}

#[test]
fn every_route_and_event_is_described() {
    let text = page("murald-api.7");
    let rows = under(&text, "ROUTES")
        .lines()
        .filter_map(|line| line.strip_prefix(".It Cm "));
    let rows: BTreeSet<&str> = rows.filter(|row| row.contains(" Ta ")).collect();
    let routes = openapi::routes().into_iter();
    let routes: BTreeSet<_> = routes
        .map(|(route, summary)| format!("{route} Ta {summary}"))
        .collect();
    assert_eq!(rows, routes.iter().map(String::as_str).collect());
    let events = parts(under(&text, "EVENTS"), ".It Cm ")
        .into_iter()
        .map(|(name, _)| name);
    assert_eq!(
        events.collect::<BTreeSet<_>>(),
        EventKind::ALL.iter().map(|kind| kind.as_str()).collect()
    );
}

/// The names in `.Cm` macros up to the next paragraph.
fn fields(text: &str) -> BTreeSet<String> {
    let paragraph = text.split("\n.Pp\n").next().unwrap();
    let lines = paragraph
        .lines()
        .filter_map(|line| line.strip_prefix(".Cm "));
    lines
        .flat_map(|line| line.split([' ', ',', '.']).map(str::to_owned))
        .filter(|name| !name.is_empty())
        .collect()
}

/// The fields of each record in the OpenAPI description.
fn records() -> Vec<(String, BTreeSet<String>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib/openapi.yaml");
    let text = fs::read_to_string(path).unwrap();
    let mut records: Vec<(String, BTreeSet<String>)> = Vec::new();
    let mut properties = false;
    for line in text.split("\n  schemas:\n").nth(1).unwrap().lines() {
        let indent = line.len() - line.trim_start().len();
        let name = line.trim().trim_end_matches(':').to_owned();
        match indent {
            4 => records.push((name, BTreeSet::new())),
            6 => properties = name == "properties",
            8 if properties => drop(records.last_mut().unwrap().1.insert(name)),
            _ => {}
        }
    }
    records
}

#[test]
fn records_are_described_as_in_the_openapi_description() {
    let text = page("murald-api.7");
    let described = parts(under(&text, "RECORDS"), ".It ");
    let events = parts(under(&text, "EVENTS"), ".It Cm ");
    // A schema without fields is a value.
    for (name, mut of_record) in records()
        .into_iter()
        .filter(|(_, fields)| !fields.is_empty())
    {
        let (list, wanted) = match name.strip_prefix("event_") {
            Some(event) => (&events, event),
            None => (&described, &*name),
        };
        let (_, body) = list.iter().find(|(heading, _)| *heading == wanted).unwrap();
        let body = body.split("Fields:\n").last().unwrap();
        of_record.remove("timestamp");
        assert_eq!(fields(body), of_record, "{name}");
    }
}

/// Removes overstriking: bold letters are printed twice.
fn struck_once(text: &str) -> String {
    let mut plain = String::new();
    for letter in text.chars() {
        match letter {
            '\u{8}' => drop(plain.pop()),
            letter => plain.push(letter),
        }
    }
    plain
}

/// The examples under a heading as a reader copies them: blocks that are indented below the text.
fn examples(name: &str, heading: &str) -> Vec<String> {
    // Newer versions of groff ignore the width and fill lines, so mandoc renders the page.
    let output = Command::new("mandoc")
        .args(["-T", "utf8", "-O", "width=200"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("man").join(name))
        .output()
        .unwrap();
    let shown = struck_once(&String::from_utf8(output.stdout).unwrap());
    let (_, rest) = shown.split_once(&format!("\n{heading}\n")).unwrap();
    // The section ends at the next heading, which follows an empty line.
    let lines = rest
        .split('\n')
        .take_while(|line| line.is_empty() || line.starts_with(' '));
    let mut found: Vec<String> = Vec::new();
    let mut inside = false;
    for line in lines {
        match line.strip_prefix("           ") {
            Some(line) if inside => {
                let block = found.last_mut().unwrap();
                block.push('\n');
                block.push_str(line);
            }
            Some(line) => found.push(line.to_owned()),
            None => {}
        }
        inside = line.starts_with("           ");
    }
    found
}

/// A warning on stderr would mean that the command had no effect.
pub(crate) fn check_stderr(line: &str, stderr: &[u8]) {
    let stderr = String::from_utf8_lossy(stderr);
    let mut lines = stderr.lines();
    let unexpected = lines.find(|text| !text.starts_with("murald: started murald"));
    assert_eq!(unexpected, None, "{line}");
}

/// Runs the commands of a page in order, for a user with two pictures.
fn commands_work(commands: &[String]) {
    let desktop = Desktop::wayland(&["640x360"]);
    let mut daemon = TestDaemon::on(&desktop);
    daemon.env("MURALD_AUTOSTART", "1");
    daemon.stub_murald();
    // The menus choose the first image.
    daemon.stub("rofi", "#!/bin/sh\necho 0\n");
    daemon.stub("fuzzel", "#!/bin/sh\necho 0\n");
    daemon.stub("nsxiv", "#!/bin/sh\nhead -n 1\n");
    daemon.stub("systemctl", "#!/bin/sh\n[ \"$2\" = enable ]\n");
    // The page's transitions are the built-in renderer's, whatever this machine has installed.
    daemon.configure("[backend]\ntype = \"builtin\"\n");
    let pictures = daemon.root().join("Pictures");
    fs::create_dir(&pictures).unwrap();
    for (name, color) in [("lake.jpg", [32, 64, 160]), ("hill.png", [90, 90, 20])] {
        image::RgbImage::from_pixel(64, 36, image::Rgb(color))
            .save(pictures.join(name))
            .unwrap();
    }
    for line in commands {
        let here = line.replace("DP-1", "HEADLESS-1");
        let output = daemon.command("sh").args(["-c", &here]).output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        check_stderr(line, &output.stderr);
    }
    daemon.murald(&["stop", "--clear"]).output().unwrap();
}

#[test]
fn commands_of_the_tutorial_work() {
    let name = "murald-tutorial.7";
    let text = page(name);
    let headings = text.lines().filter_map(|line| line.strip_prefix(".Sh "));
    let blocks: Vec<String> = headings
        .flat_map(|heading| examples(name, heading))
        .collect();
    let lines = blocks.iter().flat_map(|block| block.lines());
    let lines: Vec<String> = lines.map(|line| line.trim().to_owned()).collect();
    let source = text.lines().map(|line| line.trim_start_matches(".Dl "));
    let source =
        source.filter(|line| line.starts_with("murald ") || line.starts_with("systemctl "));
    assert_eq!(lines.len(), source.count(), "{lines:#?}");
    commands_work(&lines);
}

/// The right column of the tables, such as `.It swww query Ta murald current`.
#[test]
fn commands_of_the_migration_page_work() {
    let text = page("murald-migrate.7");
    let rows = text
        .lines()
        .filter_map(|line| line.strip_prefix(".It ")?.split_once(" Ta "));
    let commands: Vec<String> = rows
        .map(|(_, command)| {
            let plain = command.replace("\\(ti", "~").replace("\\(aq", "'");
            plain.replace("\\(dq", "\"").replace("\\-", "-")
        })
        .filter(|command| command.starts_with("murald ") && !command.contains("DIRECTORY"))
        .collect();
    assert!(commands.len() > 40, "{commands:#?}");
    commands_work(&commands);
}

#[test]
fn example_manifest_of_an_html_wallpaper_is_understood() {
    let daemon = TestDaemon::started();
    let package = daemon.root().join("rain");
    fs::create_dir(&package).unwrap();
    let examples = examples("murald.1", "HTML WALLPAPERS");
    fs::write(package.join("waypaper.json"), &examples[0]).unwrap();
    fs::write(package.join("index.html"), "<p>rain").unwrap();
    let blue = image::RgbImage::from_pixel(64, 36, image::Rgb([32, 64, 160]));
    blue.save(package.join("preview.png")).unwrap();
    let line = ["import-web", package.to_str().unwrap(), "--json"];
    let output = daemon.murald(&line).output().unwrap();
    let image: Value = serde_json::from_slice(&output.stdout).unwrap();
    let web = &image["web_meta"];
    for (field, value) in serde_json::from_str::<Value>(&examples[0])
        .unwrap()
        .as_object()
        .unwrap()
    {
        match field.as_str() {
            "entry" => assert!(web["entry_path"].as_str().unwrap().ends_with("/index.html")),
            "preview" => assert_eq!(
                (&image["width"], &image["height"]),
                (&json!(64), &json!(36))
            ),
            "capabilities" => assert_eq!(web[field]["pointer_interactive"], json!(true)),
            field => assert_eq!(&web[field], value, "{field}"),
        }
    }
}

#[test]
fn examples_of_the_api_page_work() {
    let desktop = Desktop::wayland(&["640x360"]);
    let daemon = TestDaemon::started_on(&desktop);
    for (name, color) in [("lake", [32, 64, 160]), ("hill", [90, 90, 20])] {
        let path = daemon.root().join(format!("{name}.png"));
        image::RgbImage::from_pixel(64, 36, image::Rgb(color))
            .save(&path)
            .unwrap();
        daemon.import(&[&path]);
    }
    let examples = examples("murald-api.7", "EXAMPLES");
    let mut blocks = examples.iter();
    let first = blocks.next().unwrap();
    let mut said = Vec::new();
    for example in blocks {
        let script = format!("set -eu\n{first}\n{example}\n");
        let mut child = daemon
            .command("sh")
            .arg("-c")
            .arg(&script)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // The last example waits for a wallpaper.
        while child.try_wait().unwrap().is_none() {
            if script.contains("/events") {
                daemon
                    .client()
                    .post("/wallpaper/set", &json!({ "image_id": 1 }))
                    .ok();
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{script}");
        said.push(String::from_utf8(output.stdout).unwrap());
    }
    assert_eq!(said[0], r#"{"status":"ok"}"#);
    assert_eq!(said[1], "hill\nlake\n");
    assert_eq!(said[2], "1\n");
    assert!(said[3].starts_with("HTTP/1.1 200") && said[3].contains(r#""status":"set""#));
    assert_eq!(
        said[4].split_whitespace().collect::<String>(),
        r#"["lake","evening"]"#
    );
    assert_eq!(said[5], r#"{"status":"started"}"#);
    assert_eq!(
        said[6].trim_end(),
        daemon.images().join("lake.png").to_str().unwrap()
    );
    assert_eq!(said.len(), 7, "an example without a check");
}
