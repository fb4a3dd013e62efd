//! Output that does not go to a terminal: rows, templates, JSON, and notes on stderr.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::call::{fails, json_of, ok, pictures, rejected, run, stderr};
use crate::support::TestDaemon;
use crate::support::pty::Pty;
use crate::support::snapshot::snapshot;

#[test]
fn empty_lists_print_nothing() {
    let daemon = TestDaemon::started();
    assert_eq!(ok(&daemon, &["images", "list"]), "");
    assert_eq!(ok(&daemon, &["playlists"]), "");
    assert_eq!(ok(&daemon, &["monitors"]), "");
    assert_eq!(ok(&daemon, &["history"]), "");
}

#[test]
fn images_are_printed_as_rows_records_templates_and_json() {
    let daemon = TestDaemon::started();
    let directory = pictures(&daemon, 3);
    daemon.import(&[&directory]);
    ok(&daemon, &["images", "tag", "p0", "--add", "sea,big sky"]);
    let page = json_of(
        &daemon,
        &["images", "list", "--sort-by", "name", "--sort-order", "asc"],
    );
    let first = &page["data"][0];
    let rows = ok(
        &daemon,
        &["images", "list", "--sort-by", "name", "--sort-order", "asc"],
    );
    let size = first["file_size"].to_string();
    let colors = first["colors"][0].as_str().unwrap();
    let expected = format!("1\tp0\timage\t120x80\t{size}\tsea,big sky\t{colors}\t");
    assert_eq!(rows.lines().next().unwrap(), expected);
    let record = ok(&daemon, &["images", "show", "p0"]);
    assert!(
        record.contains("name\tp0\n") && record.contains("tags\tsea,big sky\n"),
        "{record}"
    );
    let line = [
        "images",
        "ls",
        "--sort-by",
        "name",
        "--sort-order",
        "asc",
        "--format",
    ];
    let line = |template: &'static str| [&line[..], &[template]].concat();
    let formatted = ok(
        &daemon,
        &line(r"{id}:{name}\t{tags[1]}{{{thumbnails.default}"),
    );
    let thumbnail = first["thumbnails"]["default"].as_str().unwrap();
    assert_eq!(
        formatted.lines().next().unwrap(),
        format!("1:p0\tbig sky{{{thumbnail}")
    );
    rejected(&daemon, &line("{frob}"), 2);
    let both = [&line("{id}")[..], &["--json"]].concat();
    let output = run(&daemon, &both);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert_eq!(
        ok(&daemon, &["images", "delete", "3", "--format", "{deleted}"]),
        "1\n"
    );
}

/// More entries than the daemon returns at once.
#[test]
fn history_all_prints_every_entry_once() {
    const ENTRIES: usize = 2345;
    let mut daemon = TestDaemon::started();
    daemon.ends_well();
    let database = rusqlite::Connection::open(daemon.database()).unwrap();
    let entries = format!(
        "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {ENTRIES})
         INSERT INTO history (image_id, image_name, monitors, mode, set_at, source, backend)
         SELECT 1, 'p' || n, '[\"DP-' || (n % 2) || '\"]', 'individual', n, 'manual', 'swaybg' FROM n"
    );
    assert_eq!(database.execute(&entries, []).unwrap(), ENTRIES);
    drop(database);
    daemon.start();
    let output = run(&daemon, &["history"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 50);
    assert_eq!(
        stderr(&output),
        "murald: showing the newest 50 entries; --all shows all\n"
    );
    let names = |more: &[&str]| {
        ok(
            &daemon,
            &[&["history", "--all", "--format", "{image_name}"], more].concat(),
        )
    };
    let expected: String = (1..=ENTRIES).rev().map(|n| format!("p{n}\n")).collect();
    assert_eq!(names(&[]), expected);
    assert_eq!(
        names(&["--monitor", "DP-1"]).lines().count(),
        ENTRIES.div_ceil(2)
    );
    assert_eq!(names(&["--before-id", "3"]), "p2\np1\n");
    assert_eq!(names(&["--since-id", "2344"]), "p2345\n");
    rejected(&daemon, &["history", "--all", "--limit", "5"], 2);
}

#[test]
fn shortened_list_says_so_and_all_prints_every_page() {
    let daemon = TestDaemon::started();
    let directory = pictures(&daemon, 250);
    daemon.import(&[&directory]);
    let output = run(&daemon, &["images", "list"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 50);
    assert_eq!(
        stderr(&output),
        "murald: showing 50 of 250 images; --all shows all\n"
    );
    let output = run(&daemon, &["images", "list", "-q"]);
    assert_eq!(
        (output.stdout.is_empty(), stderr(&output).as_str()),
        (false, "")
    );
    let output = run(&daemon, &["images", "list", "--page", "2"]);
    assert_eq!(stderr(&output), "");
    let all = run(&daemon, &["images", "list", "--all"]);
    assert_eq!(String::from_utf8_lossy(&all.stdout).lines().count(), 250);
    assert_eq!(stderr(&all), "");
    let all = json_of(&daemon, &["images", "list", "--all"]);
    assert_eq!(all["data"].as_array().unwrap().len(), 250);
    assert_eq!(all["pagination"]["total_pages"], 1);
    rejected(&daemon, &["images", "list", "--all", "--page", "2"], 2);
}

#[test]
fn playlist_is_shortened_only_on_a_terminal() {
    let daemon = TestDaemon::started();
    let directory = pictures(&daemon, 250);
    daemon.import(&[&directory]);
    ok(&daemon, &["folders", "create", "f"]);
    ok(&daemon, &["images", "move", "f", "--name-prefix", "p"]);
    let living = ok(&daemon, &["playlist", "create", "living", "--folder", "f"]);
    let fixed = ok(
        &daemon,
        &["playlist", "create", "fixed", "--folder", "f", "--fixed"],
    );
    assert_eq!(living, ok(&daemon, &["playlist", "show", "living"]));
    let names = |shown: &str| -> BTreeSet<String> {
        let rows = shown
            .lines()
            .map(|line| line.split('\t').collect::<Vec<_>>());
        rows.filter(|row| row.len() == 5)
            .map(|row| row[2].to_owned())
            .collect()
    };
    let all = (0..250)
        .map(|number| format!("p{number}"))
        .collect::<BTreeSet<_>>();
    assert_eq!((names(&living), names(&fixed)), (all.clone(), all));
    for playlist in ["living", "fixed"] {
        let (code, shown) = Pty::new(daemon.murald(&["playlist", "show", playlist]), 80, 24).end();
        assert_eq!(code, Some(0), "{shown}");
        assert!(shown.ends_with("and 50 more\n"), "{shown}");
        assert!(
            shown.contains("\n  200  ") && !shown.contains("\n  201  "),
            "{shown}"
        );
    }
}

#[test]
fn imports_print_ids_in_the_order_of_the_paths() {
    let daemon = TestDaemon::started();
    let directory = pictures(&daemon, 4);
    let at = |number: u8| {
        directory
            .join(format!("p{number}.png"))
            .to_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(ok(&daemon, &["import", &at(2)]), "1\n");
    fs::write(directory.join("notes.txt"), "no picture").unwrap();
    // Files of the directory come in the order of their names; a duplicate has its existing id.
    let output = run(&daemon, &["import", &at(3), directory.to_str().unwrap()]);
    let said = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("skipped 1 file: not"),
        "{}",
        stderr(&output)
    );
    let ids: Vec<&str> = said.lines().collect();
    let named = |id: &str| json_of(&daemon, &["images", "show", id])["name"].clone();
    let names: Vec<Value> = ids.iter().map(|id| named(id)).collect();
    assert_eq!(names, ["p3", "p0", "p1", "p2", "p3"].map(Value::from));
    assert_eq!(ids[3], "1");
    let quiet = run(&daemon, &["import", "-q", directory.to_str().unwrap()]);
    assert_eq!(stderr(&quiet), "");
    assert_eq!(String::from_utf8(quiet.stdout).unwrap().lines().count(), 4);
    // A named file that is no picture fails; the other ids are printed nevertheless.
    let text = directory.join("notes.txt");
    let output = run(&daemon, &["import", &at(0), text.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 1);
    assert!(stderr(&output).starts_with("murald: 1 file could not be imported\n"));
    let batch = ok(&daemon, &["import", "--no-wait", &at(0)]);
    assert_eq!(batch.lines().count(), 1);
    assert!(
        batch.trim().bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{batch}"
    );
}

#[test]
fn playlist_steps_fail_if_none_is_running() {
    let daemon = TestDaemon::started();
    for line in [
        &["next"][..],
        &["prev"],
        &["toggle"],
        &["pause"],
        &["playlist", "pause"],
    ] {
        rejected(&daemon, line, 1);
    }
}

#[test]
fn settings_are_read_and_set_by_name() {
    let daemon = TestDaemon::started();
    assert_eq!(ok(&daemon, &["config", "get", "backend.type"]), "awww\n");
    let said = ok(
        &daemon,
        &["config", "set", "backend.swaybg.fit_mode", "fit"],
    );
    assert_eq!(said, "backend.swaybg.fit_mode is now fit\n");
    assert_eq!(
        ok(&daemon, &["config", "get", "backend.swaybg", "fit-mode"]),
        "fit\n"
    );
    assert_eq!(
        ok(&daemon, &["config", "get", "backend.wal-qt.duration_ms"]),
        "300\n"
    );
    ok(
        &daemon,
        &[
            "config",
            "set",
            "backend",
            "transition_duration_seconds",
            "2",
        ],
    );
    assert_eq!(
        json_of(
            &daemon,
            &["config", "get", "backend.transition_duration_seconds"]
        ),
        2.0
    );
    ok(
        &daemon,
        &[
            "config",
            "set",
            "backend.transition_duration_seconds",
            "null",
        ],
    );
    assert_eq!(
        ok(
            &daemon,
            &["config", "get", "backend.transition_duration_seconds"]
        ),
        "\n"
    );
    let images = [
        "config",
        "set",
        "backend.auto_priorities.image",
        "[\"feh\"]",
    ];
    ok(&daemon, &images);
    assert_eq!(
        json_of(&daemon, &["config", "get", "backend.auto_priorities.image"]),
        json!(["feh"])
    );
    rejected(&daemon, &["config", "get", "backend.swaybg.frob"], 1);
    rejected(&daemon, &["config", "set", "backend.type"], 2);
    let said = ok(&daemon, &["config", "reset"]);
    let backup = daemon.config_file().with_file_name("config.toml.bak");
    assert!(
        said.ends_with(&format!("kept as {}\n", backup.display())),
        "{said}"
    );
    assert!(
        fs::read_to_string(backup)
            .unwrap()
            .contains("fit_mode = \"fit\"")
    );
    assert_eq!(
        ok(&daemon, &["config", "get", "backend.swaybg.fit_mode"]),
        "fill\n"
    );
}

#[test]
fn filters_select_the_images_of_a_command() {
    let daemon = TestDaemon::started();
    for (name, (width, height), color) in [
        ("lake", (300, 100), [20, 40, 200]),
        ("tree", (100, 300), [20, 200, 20]),
        ("hill", (200, 100), [200, 20, 20]),
    ] {
        let path = daemon.root().join(format!("{name}.png"));
        image::RgbImage::from_pixel(width, height, image::Rgb(color))
            .save(&path)
            .unwrap();
        daemon.import(&[&path]);
    }
    let tag = [
        "images",
        "tag",
        "--orientation",
        "landscape",
        "--add",
        "wide",
    ];
    assert_eq!(ok(&daemon, &tag), "tags of 2 images changed\n");
    assert_eq!(
        ok(
            &daemon,
            &["images", "ls", "--hue-group", "blue", "--format", "{name}"]
        ),
        "lake\n"
    );
    ok(&daemon, &["folders", "create", "sea"]);
    assert_eq!(
        ok(&daemon, &["images", "mv", "sea", "--tags", "wide"]),
        "2 images moved\n"
    );
    let made = json_of(
        &daemon,
        &["playlist", "create", "p", "--folder", "sea", "--fixed"],
    );
    assert_eq!(made["images"].as_array().unwrap().len(), 2);
    let made = json_of(&daemon, &["playlist", "add", "p", "--name-prefix", "TR"]);
    assert_eq!(made["images"][2]["image_id"], 2);
    rejected(&daemon, &["images", "delete"], 2);
    let both = ["images", "delete", "lake", "--tags", "wide"];
    rejected(&daemon, &both, 2);
    let none = ["images", "delete", "--tags", "none"];
    rejected(&daemon, &none, 1);
    assert_eq!(
        ok(
            &daemon,
            &["images", "rm", "--tags", "wide", "--min-width", "250"]
        ),
        "1 image moved to the trash\n"
    );
    assert_eq!(
        ok(&daemon, &["images", "ls", "--format", "{name}"]),
        "hill\ntree\n"
    );
    rejected(&daemon, &["random", "--tags", "none"], 1);
    rejected(&daemon, &["images", "ls", "--hue-group", "bluish"], 2);
}

#[test]
fn contact_sheet_has_a_picture_and_a_name_for_each_image() {
    let daemon = TestDaemon::started();
    daemon.import(&[&pictures(&daemon, 5)]);
    let sheet = |line: &[&str]| ok(&daemon, &[&["images", "sheet"], line].concat());
    let order = ["--sort-by", "name", "--sort-order", "asc"];
    // If pictures cannot be drawn, the sheet is the list.
    assert_eq!(
        sheet(&order),
        ok(&daemon, &[&["images", "list"], &order[..]].concat())
    );
    let drawn = sheet(&[&["--picture", "blocks", "--size", "20x2"], &order[..]].concat());
    let lines: Vec<&str> = drawn.lines().collect();
    // Rows of three and two pictures, each two lines high, with a line of names and an empty line.
    assert_eq!(lines.len(), 8, "{drawn}");
    assert_eq!(lines[0].matches('▀').count(), 64);
    assert_eq!(lines[4].matches('▀').count(), 42);
    assert_eq!(
        lines[2].split_whitespace().collect::<Vec<_>>(),
        ["1", "p0", "2", "p1", "3", "p2"]
    );
    assert_eq!(
        lines[6].split_whitespace().collect::<Vec<_>>(),
        ["4", "p3", "5", "p4"]
    );
    let cut = run(
        &daemon,
        &["images", "sheet", "--picture", "blocks", "--per-page", "2"],
    );
    snapshot("murald images sheet --per-page 2", &stderr(&cut));
    assert_eq!(sheet(&["--picture", "blocks", "--name", "none"]), "");
    let one = json_of(&daemon, &["images", "show", "p3"]);
    let checksum = one["checksum"].as_str().unwrap();
    let found = ok(
        &daemon,
        &[
            "images",
            "list",
            "--checksum",
            checksum,
            "--format",
            "{name}",
        ],
    );
    assert_eq!(found, "p3\n");
}

#[test]
fn image_is_shown_with_the_names_of_its_folder_and_playlists() {
    let daemon = TestDaemon::started();
    daemon.import(&[&pictures(&daemon, 1)]);
    for line in [
        &["folders", "create", "sea"][..],
        &["folders", "create", "bay", "--parent", "sea"],
        &["images", "move", "p0", "sea/bay"],
        &["playlist", "create", "Night", "p0"],
    ] {
        ok(&daemon, line);
    }
    // Output to a pipe has bare ids; a terminal also gets the names.
    let record = ok(&daemon, &["images", "show", "p0"]);
    assert!(record.contains("\nfolder\t2\n"), "{record}");
    let mut show = daemon.murald(&["images", "show", "p0"]);
    show.env("TERM", "dumb");
    let (_, shown) = Pty::new(show, 200, 50).end();
    assert!(
        shown.contains("sea/bay (2)\n") && shown.contains("Night (1)\n"),
        "{shown}"
    );
}

#[test]
fn unknown_fields_are_refused_before_anything_is_changed() {
    let daemon = TestDaemon::started();
    daemon.import(&[&pictures(&daemon, 2)]);
    ok(&daemon, &["playlist", "create", "p", "p0"]);
    let settings = ok(&daemon, &["config", "get", "app"]);
    for line in [
        &["set", "p0"][..],
        &["random"],
        &["images", "rename", "p0", "other"],
        &["images", "delete", "p0"],
        &["playlist", "create", "n", "p0"],
        &["playlist", "delete", "p"],
        &["config", "set", "app.images_per_page", "7"],
        &["config", "reset"],
        &["history", "clear"],
        &["stop"],
    ] {
        let told = "murald: --format: unknown field \"nope\"\nhint: fields are ";
        fails(&daemon, &[line, &["--format", "{nope}"]].concat(), 2, told);
    }
    let names = json_of(&daemon, &["images", "list"])["data"].clone();
    assert_eq!(
        names
            .as_array()
            .unwrap()
            .iter()
            .filter(|image| image["name"] == "p0")
            .count(),
        1
    );
    assert_eq!(
        json_of(&daemon, &["playlist", "list"])
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(ok(&daemon, &["config", "get", "app"]), settings);
    // A field that is missing in some records is empty; a field that no record has is an error.
    assert_eq!(
        ok(
            &daemon,
            &["playlist", "list", "--format", "{name}:{source.tags}"]
        ),
        "p:\n"
    );
    let of_images = ["images", "list", "--format", "{skipped}"];
    rejected(&daemon, &of_images, 2);
    let set = ["config", "set", "app.images_per_page", "7", "--format"];
    let line = [&set[..], &["{images_per_page}{restart_required}"]].concat();
    assert_eq!(ok(&daemon, &line), "7\n");
    let own = ["config", "get", "app", "--format", "{nope}"];
    rejected(&daemon, &own, 2);
}

#[test]
fn renaming_to_a_name_in_use_prints_a_note() {
    let daemon = TestDaemon::started();
    daemon.import(&[&pictures(&daemon, 2)]);
    let output = run(&daemon, &["images", "rename", "p1", "p0"]);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{told}");
    snapshot("murald images rename p1 p0", &told);
}

#[test]
fn tags_are_removed_regardless_of_case() {
    let daemon = TestDaemon::started();
    daemon.import(&[&pictures(&daemon, 1)]);
    ok(
        &daemon,
        &["images", "tag", "p0", "--add", "Sea,Größe,Favourite"],
    );
    assert_eq!(
        ok(&daemon, &["favourite", "p0"]),
        "p0 (1) is no longer a favourite\n"
    );
    let left = |line: &[&str]| {
        ok(&daemon, &[&["images", "tag", "p0"], line].concat());
        json_of(&daemon, &["images", "show", "p0"])["tags"].clone()
    };
    assert_eq!(
        left(&["--remove", "sEa,GRÖSSE"]),
        json!(["Größe"]),
        "ß is no SS here, as in the filter"
    );
    assert_eq!(left(&["--remove", "GRÖßE"]), json!([]));
    let none = ["images", "tag", "p0", "--remove", "none"];
    assert_eq!(ok(&daemon, &none), "no image had the tag\n");
    let turned = ["--remove", "sea", "--add", "SEA"];
    left(&turned);
    assert_eq!(left(&turned), json!(["SEA"]));
}

#[test]
fn dynamic_playlist_has_the_images_that_the_list_finds() {
    let daemon = TestDaemon::started();
    daemon.import(&[&pictures(&daemon, 3)]);
    ok(&daemon, &["folders", "create", "sea"]);
    ok(&daemon, &["folders", "create", "bay", "--parent", "sea"]);
    ok(&daemon, &["images", "move", "p1", "sea"]);
    ok(&daemon, &["images", "move", "p2", "bay"]);
    let check = |name: &str, filters: &[&str], found: &[&str]| {
        let sorted = [
            "--sort-by",
            "name",
            "--sort-order",
            "asc",
            "--format",
            "{name}",
        ];
        let listed = ok(&daemon, &[&["images", "list"], filters, &sorted].concat());
        assert_eq!(listed.lines().collect::<Vec<_>>(), found, "{filters:?}");
        ok(&daemon, &[&["playlist", "create", name], filters].concat());
        let id = json_of(&daemon, &["playlist", "show", name])["id"].clone();
        let page = daemon.client().get(&format!("/playlists/{id}/images")).ok();
        let names: Vec<&str> = page["data"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|it| it["name"].as_str())
            .collect();
        assert_eq!(names, found, "{filters:?}");
    };
    check("outside", &["--folder", "root"], &["p0"]);
    check("one", &["--folder", "sea"], &["p1"]);
    check("both", &["--folder", "sea", "--recursive"], &["p1", "p2"]);
    check(
        "every",
        &["--folder", "root", "--recursive"],
        &["p0", "p1", "p2"],
    );
}
