//! `murald migrate` with the example configurations of other programs' documentation: a dry run, a real
//! one, and a repetition.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::call::{fails, json_of, ok, rejected, run, stderr};
use crate::desktop::wait_until;
use crate::support::TestDaemon;

/// Writes a file of the other program, below the test's directory.
fn theirs(daemon: &TestDaemon, path: &str, text: &str) -> PathBuf {
    let file = daemon.root().join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, text).unwrap();
    file
}

/// A picture with this amount of red, at a path below the test's directory.
fn picture(daemon: &TestDaemon, path: &str, red: u8) -> PathBuf {
    let file = daemon.root().join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let color = image::Rgb([red, 255 - red, 90]);
    image::RgbImage::from_pixel(64, 36, color)
        .save(&file)
        .unwrap();
    file
}

/// The answer to `GET path`.
fn at(daemon: &TestDaemon, path: &str) -> Value {
    daemon.client().get(path).ok()
}

/// All data that a migration may change, without fields that change by themselves.
fn everything(daemon: &TestDaemon) -> [Value; 4] {
    let only = |mut list: Value, fields: &[&str]| {
        for one in list.as_array_mut().unwrap() {
            one.as_object_mut()
                .unwrap()
                .retain(|field, _| fields.contains(&field.as_str()));
        }
        list
    };
    let images = "/images?sort_by=imported_at&sort_order=asc&per_page=200";
    let images = at(daemon, images)["data"].take();
    [
        at(daemon, "/config"),
        only(at(daemon, "/library/watch")["watch"].take(), &["path"]),
        only(
            at(daemon, "/playlists"),
            &["id", "name", "configuration", "images", "source"],
        ),
        only(images, &["id", "name", "path", "tags", "folder_id"]),
    ]
}

/// The output of a command, with `~` for the test's directory.
fn lines(daemon: &TestDaemon, line: &[&str]) -> Vec<String> {
    let root = daemon.root().to_str().unwrap();
    ok(daemon, line)
        .lines()
        .filter(|line| !line.starts_with("next: "))
        .map(|line| line.replace(root, "~"))
        .collect()
}

/// Migrates: dry, for real, and again once `images` images are imported. Returns the lines, which must
/// be the same each time; the other program's file must not change.
#[track_caller]
fn migrated(daemon: &TestDaemon, program: &str, file: &Path, images: u64) -> Vec<String> {
    let text = fs::read(file).unwrap();
    let stamp = fs::metadata(file).unwrap().modified().unwrap();
    let before = everything(daemon);
    let dry = lines(daemon, &["migrate", program, "--dry-run"]);
    assert_eq!(everything(daemon), before, "a dry run changed something");
    let first = lines(daemon, &["migrate", program]);
    let count = || at(daemon, "/images")["pagination"]["total_items"].as_u64();
    wait_until("all pictures", || count() == Some(images));
    let after = everything(daemon);
    let again = lines(daemon, &["migrate", program]);
    assert_eq!(everything(daemon), after, "a repetition changed something");
    let as_before = |line: &String| {
        if line.starts_with("skipped ") {
            line.clone()
        } else {
            format!("{line}, as before")
        }
    };
    let plain = |line: &String| line.trim_end_matches(", as before").to_owned();
    assert_eq!(first.iter().map(plain).collect::<Vec<_>>(), dry);
    assert_eq!(again, dry.iter().map(as_before).collect::<Vec<_>>());
    assert_eq!(
        (
            fs::read(file).unwrap(),
            fs::metadata(file).unwrap().modified().unwrap()
        ),
        (text, stamp)
    );
    dry
}

fn names(daemon: &TestDaemon, playlist: &str) -> Vec<String> {
    let id = by_name(daemon, playlist)["id"].clone();
    let page = at(daemon, &format!("/playlists/{id}/images"));
    let names = page["data"].as_array().unwrap().iter();
    names
        .map(|image| image["name"].as_str().unwrap().to_owned())
        .collect()
}

fn by_name(daemon: &TestDaemon, playlist: &str) -> Value {
    let all = at(daemon, "/playlists");
    let found = all
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == playlist);
    found
        .unwrap_or_else(|| panic!("no playlist {playlist} in {all}"))
        .clone()
}

#[test]
fn wpaperd_is_migrated() {
    let daemon = TestDaemon::started();
    picture(&daemon, "Wallpapers/1080p/hill.png", 60);
    picture(&daemon, "Wallpapers/lake.png", 10);
    picture(&daemon, "alone.png", 110);
    // The example of its README (https://github.com/danyspin97/wpaperd), with paths of this test.
    let file = theirs(
        &daemon,
        "config/wpaperd/config.toml",
        "[default]\nduration = \"30m\"\nmode = \"center\"\nsorting = \"ascending\"\n\n\
         [any]\npath = \"~/alone.png\"\n\n[DP-3]\npath = \"~/Wallpapers\"\n\n\
         [\"Dell Inc. DELL U2419H GY1VSS2\"]\npath = \"~/Wallpapers/1080p\"\n",
    );
    let told = migrated(&daemon, "wpaperd", &file, 2);
    let expected = [
        "setting backend.builtin.fit_mode center",
        "setting backend.awww.resize no",
        "setting backend.swaybg.fit_mode center",
        "setting backend.feh.mode center",
        "skipped any.path: the wallpaper stays as it is; `murald set ~/alone.png --default` shows this picture",
        "watch ~/Wallpapers",
        "playlist wpaperd DP-3 (of ~/Wallpapers, every 30 min, by name, for DP-3)",
        "watch ~/Wallpapers/1080p",
        "playlist wpaperd Dell Inc. DELL U2419H GY1VSS2 (of ~/Wallpapers/1080p, every 30 min, by \
         name, for Dell Inc. DELL U2419H GY1VSS2)",
    ];
    assert_eq!(told, expected);
    // The second directory is inside the first.
    let watched = at(&daemon, "/library/watch")["watch"].clone();
    assert_eq!(watched.as_array().unwrap().len(), 1, "{watched}");
    assert_eq!(
        json_of(&daemon, &["config", "get", "backend.builtin.fit_mode"]),
        "center"
    );
    let configuration = &by_name(&daemon, "wpaperd DP-3")["configuration"];
    assert_eq!(
        (&configuration["interval"], &configuration["order"]),
        (&json!(1800), &json!("ordered"))
    );
    assert_eq!(
        names(&daemon, "wpaperd Dell Inc. DELL U2419H GY1VSS2"),
        ["hill"]
    );
    assert_eq!(names(&daemon, "wpaperd DP-3"), ["hill", "lake"]);
    // The suggested command works.
    ok(
        &daemon,
        &[
            "set",
            daemon.root().join("alone.png").to_str().unwrap(),
            "--default",
        ],
    );
}

#[test]
fn waypaper_is_migrated() {
    let daemon = TestDaemon::started();
    picture(&daemon, "Pictures/lake.png", 10);
    // The example of its documentation (https://anufrievroman.gitbook.io/waypaper/configuration), with a
    // command.
    let file = theirs(
        &daemon,
        "config/waypaper/config.ini",
        "[Settings]\nlanguage = en\nfolder = ~/Pictures\nwallpaper = ~/Pictures/lake.png\n\
         backend = swaybg\nmonitors = All\nfill = Fit\nsort = name\ncolor = #102030\n\
         subfolders = False\nall_subfolders = False\nshow_hidden = False\nshow_gifs_only = False\n\
         show_path_in_tooltip = True\nnumber_of_columns = 3\nuse_xdg_state = False\n\
         slideshow_enabled = True\nslideshow_interval = 5\n\
         swww_transition_type = any\nswww_transition_step = 91\nswww_transition_angle = 0\n\
         swww_transition_duration = 2\nswww_transition_fps = 61\nmpvpaper_sound = False\n\
         mpvpaper_options = profile=fast\npost_command = my_script.sh $wallpaper\n",
    );
    let told = migrated(&daemon, "waypaper", &file, 1);
    let taken: Vec<&str> = told
        .iter()
        .map(String::as_str)
        .filter(|line| !line.starts_with("skipped "))
        .collect();
    let expected = [
        "watch ~/Pictures",
        "setting backend.type swaybg",
        "setting backend.builtin.fit_mode contain",
        "setting backend.awww.resize fit",
        "setting backend.swaybg.fit_mode fit",
        "setting backend.feh.mode max",
        "setting backend.hyprpaper.fit_mode contain",
        "setting backend.awww.fill_color 102030",
        "setting backend.feh.fill_color 102030",
        "setting backend.swaybg.fill_color 102030",
        "setting backend.wal-qt.fill_color 102030",
        "setting backend.builtin.fill_color 102030",
        "setting backend.awww.transition_type any",
        "setting backend.awww.transition_step 91",
        "setting backend.awww.transition_angle 0",
        "setting backend.awww.transition_duration 2",
        "setting backend.awww.transition_fps 61",
        "setting backend.mpvpaper.mpv_options loop profile=fast",
        "setting hooks.wallpaper_changed my_script.sh \"$MURALD_PATH\"",
        "playlist waypaper (of ~/Pictures, every 5 min, at random)",
    ];
    assert_eq!(taken, expected);
    assert!(
        told.contains(&"skipped language: murald is in English only".to_owned()),
        "{told:#?}"
    );
    assert_eq!(names(&daemon, "waypaper"), ["lake"]);
    let hook = json_of(&daemon, &["config", "get", "hooks.wallpaper_changed"]);
    assert_eq!(hook, "my_script.sh \"$MURALD_PATH\"");
    // A hook that is set already and a playlist that was changed are left alone.
    ok(
        &daemon,
        &["config", "set", "hooks.wallpaper_changed", "mine"],
    );
    ok(
        &daemon,
        &["playlist", "edit", "waypaper", "--interval", "9"],
    );
    let told = lines(&daemon, &["migrate", "waypaper"]);
    for line in [
        "skipped hooks.wallpaper_changed: another hook is set: mine",
        "skipped playlist waypaper: another playlist has this name",
    ] {
        assert!(told.contains(&line.to_owned()), "{told:#?}");
    }
    assert_eq!(
        json_of(&daemon, &["config", "get", "hooks.wallpaper_changed"]),
        "mine"
    );
    // The state may be in a separate file.
    picture(&daemon, "Elsewhere/hill.png", 60);
    theirs(
        &daemon,
        ".local/state/waypaper/state.ini",
        "[State]\nfolder = ~/Elsewhere\n",
    );
    theirs(
        &daemon,
        "config/waypaper/config.ini",
        "[Settings]\nuse_xdg_state = True\n",
    );
    assert_eq!(
        lines(&daemon, &["migrate", "waypaper"])[1],
        "watch ~/Elsewhere"
    );
}

#[test]
fn variety_is_migrated() {
    let daemon = TestDaemon::started();
    let own = ".config/variety";
    picture(&daemon, &format!("{own}/Favorites/rose.png"), 30);
    picture(&daemon, &format!("{own}/Favorites/deep/tulip.png"), 40);
    theirs(
        &daemon,
        &format!("{own}/Favorites/rose.png.metadata.json"),
        "{}",
    );
    picture(&daemon, "backgrounds/lake.png", 10);
    // A part of its initial configuration (https://github.com/varietywalls/variety).
    let file = theirs(
        &daemon,
        &format!("{own}/variety.conf"),
        "# change_enabled = <True or False>\nchange_enabled = True\n\n\
         # change_interval = <interval in seconds - not less than 5>\nchange_interval = 300\n\n\
         download_folder = ~/.config/variety/Downloaded\nquota_enabled = True\nquota_size = 1000\n\
         favorites_folder = ~/.config/variety/Favorites\nwallpaper_display_mode = \"zoom\"\n\
         use_landscape_enabled = True\nquotes_enabled = False\nquotes_font = \"Serif 30\"\n\n\
         [sources]\nsrc1 = True|favorites|The Favorites folder\n\
         src2 = True|fetched|The Fetched folder\nsrc5 = True|folder|~/backgrounds\n\
         src11 = False|flickr|user:www.flickr.com/photos/peter-levi/;user_id:93647178@N00;\n\n\
         [filters]\nfilter2 = False|Grayscale|-type Grayscale\n",
    );
    let told = migrated(&daemon, "variety", &file, 3);
    let expected = [
        "watch ~/.config/variety/Favorites",
        "skipped sources.src2: there is no directory ~/.config/variety/Fetched",
        "watch ~/backgrounds",
        "playlist variety (of all images, every 5 min, at random, orientation landscape)",
        "tag favourite (what is in ~/.config/variety/Favorites)",
        "setting backend.builtin.fit_mode cover",
        "setting backend.awww.resize crop",
        "setting backend.swaybg.fit_mode fill",
        "setting backend.feh.mode fill",
        "setting backend.hyprpaper.fit_mode cover",
        "skipped quota_*: murald downloads nothing",
    ];
    assert_eq!(told, expected);
    let found = at(&daemon, "/images?tags=favourite");
    let names: BTreeSet<&str> = found["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|image| image["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, BTreeSet::from(["rose", "tulip"]));
    let all = self::names(&daemon, "variety");
    assert!(all.contains(&"rose".to_owned()), "{all:?}");
}

/// A stand-in for Waypaper Engine's daemon that answers the two requests of the migration.
fn their_daemon(socket: &Path, images: Value, playlists: Value) {
    let listener = UnixListener::bind(socket).unwrap();
    let page = json!({"data": images,
        "pagination": {"page": 1, "per_page": 100, "total_items": 2, "total_pages": 1}});
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let mut first = String::new();
            while reader.read_line(&mut first).is_ok_and(|read| read > 0) {
                let mut header = String::new();
                while reader.read_line(&mut header).is_ok_and(|read| read > 2) {
                    header.clear();
                }
                let answer = match first.split(' ').nth(1).unwrap() {
                    "/playlists" => format!("{playlists}\n"),
                    "/folders?parent_id=root" => {
                        json!({"data": [{"id": 3, "name": "trips", "parent_id": null}]}).to_string()
                    }
                    path if path.starts_with("/folders") => r#"{"data": []}"#.to_owned(),
                    // Its daemon ends bodies with a newline.
                    _ => format!("{page}\n"),
                };
                let length = answer.len();
                let stream = reader.get_mut();
                write!(
                    stream,
                    "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{answer}"
                )
                .unwrap();
                first.clear();
            }
        }
    });
}

#[test]
fn waypaper_engine_is_migrated() {
    let daemon = TestDaemon::started();
    let own = "data/waypaper-engine/images";
    let lake = picture(&daemon, &format!("{own}/lake.png"), 10);
    let hill = picture(&daemon, &format!("{own}/hill.png"), 60);
    let twin = daemon.root().join("twin.png");
    fs::copy(&hill, &twin).unwrap();
    // The example of its documentation (https://github.com/0bCdian/Waypaper-Engine,
    // docs/guide/config.md).
    let file = theirs(
        &daemon,
        "config/waypaper-engine/config.toml",
        &format!(
            "[app]\nimages_per_page = 20\ntheme = \"dracula\"\nstartup_intro = true\n\
             [daemon]\nimages_dir = \"~/{own}\"\nlog_level = \"info\"\n\
             database_dir = \"~/.local/share/waypaper-engine/db\"\n\
             [backend]\ntype = \"awww\"\nselection_mode = \"fixed\"\n\
             transition_duration_seconds = 1.5\n\
             [backend.awww]\ntransition_type = \"grow\"\ntransition_duration = 5\n\
             [monitors]\nselected_monitors = [\"DP-1\", \"HDMI-A-1\"]\nimage_set_type = \"clone\"\n\
             [wallhaven]\nenabled = false\n"
        ),
    );
    let without = lines(&daemon, &["migrate", "waypaper-engine", "--dry-run"]);
    assert!(
        without
            .last()
            .unwrap()
            .starts_with("skipped playlists and tags: "),
        "{without:#?}"
    );
    let image = |id: i64, path: &Path, tags: &[&str]| {
        json!({"id": id, "name": path.file_stem().unwrap().to_str(), "path": path,
            "media_type": "image", "tags": tags, "folder_id": null})
    };
    let package = daemon.root().join("rain");
    fs::create_dir(&package).unwrap();
    fs::write(package.join("index.html"), "<p>rain").unwrap();
    let mut inside = image(4, &lake, &["sea", "blue"]);
    inside["folder_id"] = 3.into();
    let images = json!([
        inside,
        {"id": 9, "name": "rain", "path": package.join("index.html"), "media_type": "web",
            "web_meta": {"package_root": package}},
        image(7, &hill, &["sea"]),
        image(8, &twin, &[])
    ]);
    let playlists = json!([
        {"id": 1, "name": "Evening rotation", "images": [
            {"image_id": 7, "media_type": "image", "time": null}, {"image_id": 4, "time": null}],
         "configuration": {"type": "timer", "interval": 600, "order": "random",
            "always_start_on_first_image": true},
         "playback": {"was_running": true, "monitors": ["DP-1"]}},
        {"id": 2, "name": "Day", "images": [
            {"image_id": 4, "time": 420}, {"image_id": 8, "time": 1170}],
         "configuration": {"type": "time_of_day", "interval": 0, "order": "",
            "always_start_on_first_image": false}}
    ]);
    their_daemon(
        &daemon.socket().with_file_name("waypaper-engine.sock"),
        images,
        playlists,
    );
    let told = migrated(&daemon, "waypaper-engine", &file, 3);
    let expected = [
        "setting app.images_per_page 20",
        "setting app.theme dracula",
        "setting app.startup_intro true",
        "watch ~/data/waypaper-engine/images",
        "setting daemon.log_level info",
        "skipped daemon.database_dir: murald has a database of its own",
        "setting backend.type awww",
        "setting backend.selection_mode fixed",
        "setting backend.transition_duration_seconds 1.5",
        "setting backend.awww.transition_type grow",
        "setting backend.awww.transition_duration 5",
        "setting monitors.selected_monitors [\"DP-1\",\"HDMI-A-1\"]",
        "setting monitors.image_set_type clone",
        "setting remote_gallery.enabled false",
        "html rain (~/rain)",
        "tag sea (2 pictures)",
        "tag blue (1 picture)",
        "playlist Evening rotation (2 pictures, every 10 min, at random, for DP-1)",
        "playlist Day (2 pictures, time_of_day)",
        "folder trips (1 picture)",
    ];
    assert_eq!(told, expected);
    let trips = ok(
        &daemon,
        &["images", "list", "--folder", "trips", "--format", "{name}"],
    );
    assert_eq!(trips, "lake\n");
    // All commands that remain are printed, in a pipe as well.
    let told = ok(&daemon, &["migrate", "waypaper-engine"]);
    let next: Vec<&str> = told
        .lines()
        .filter(|line| line.starts_with("next: "))
        .collect();
    let expected = [
        "next: murald playlist start 'Evening rotation' --monitor DP-1",
        "next: murald playlist start Day",
    ];
    assert_eq!(next, expected);
    assert_eq!(names(&daemon, "Evening rotation"), ["hill", "lake"]);
    // Two files with the same content are one image.
    assert_eq!(names(&daemon, "Day"), ["lake", "hill"]);
    assert_eq!(by_name(&daemon, "Day")["images"][1]["time"], 1170);
    let first = &by_name(&daemon, "Evening rotation")["configuration"];
    assert_eq!(first["always_start_on_first_image"], true);
    let sea = at(&daemon, "/images?tags=sea");
    assert_eq!(sea["pagination"]["total_items"], 2);
}

#[test]
fn missing_and_broken_configurations_are_reported() {
    let daemon = TestDaemon::new();
    for program in ["wpaperd", "waypaper", "variety", "waypaper-engine"] {
        rejected(&daemon, &["migrate", program], 1);
        rejected(&daemon, &["migrate", program, "--dry-run"], 1);
    }
    rejected(&daemon, &["migrate", "frob"], 2);
    rejected(&daemon, &["migrate"], 2);
    for (program, text, told) in [
        ("wpaperd", "[DP-3]\npath = \n", ", line 2, column "),
        (
            "waypaper",
            "[Settings]\nfolder = ~/a\n\nwhat\n",
            ", line 4, column 1: there is no = ",
        ),
        (
            "variety",
            "change_enabled = True\n[sources\n",
            ", line 2, column 1: the heading has no ]",
        ),
        (
            "waypaper-engine",
            "[app]\ntheme = 'x\n",
            ", line 2, column ",
        ),
    ] {
        let file = theirs(&daemon, "broken", text);
        let file = file.to_str().unwrap();
        fails(
            &daemon,
            &["migrate", program, "--from", file],
            1,
            &format!("murald: {file}{told}"),
        );
    }
    let directory = daemon.root().to_str().unwrap();
    rejected(&daemon, &["migrate", "wpaperd", "--from", directory], 1);
    let pipe = daemon.root().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).unwrap();
    let pipe = pipe.to_str().unwrap();
    rejected(&daemon, &["migrate", "variety", "--from", pipe], 1);
    let file = daemon.root().join("latin");
    fs::write(&file, b"a = \xff").unwrap();
    let file = file.to_str().unwrap();
    rejected(&daemon, &["migrate", "variety", "--from", file], 1);
    // A valid configuration needs a daemon, unless the run is dry.
    let file = theirs(&daemon, "one.toml", "[DP-3]\npath = '/'\n");
    let file = file.to_str().unwrap();
    rejected(&daemon, &["migrate", "wpaperd", "--from", file], 69);
    let dry = json_of(
        &daemon,
        &["migrate", "wpaperd", "--from", file, "--dry-run"],
    );
    let record = |kind: &str, subject: &str, text: &str| json!({"kind": kind, "subject": subject, "text": text, "state": "planned"});
    let text = "of /, only on request, at random, for DP-3";
    assert_eq!(
        dry,
        json!([
            record("watch", "/", ""),
            record("playlist", "wpaperd DP-3", text)
        ])
    );
    let form = [
        "migrate",
        "wpaperd",
        "--from",
        file,
        "--dry-run",
        "--format",
        "{kind} {subject}",
    ];
    assert_eq!(ok(&daemon, &form), "watch /\nplaylist wpaperd DP-3\n");
}

#[test]
fn refused_items_are_reported_and_the_others_migrated() {
    let daemon = TestDaemon::started();
    let lake = picture(&daemon, "Pictures/lake.png", 10);
    // Otherwise the daemon would create the directory with its first picture.
    fs::create_dir_all(daemon.images()).unwrap();
    fs::create_dir(daemon.root().join("Empty")).unwrap();
    fs::write(daemon.root().join("Pictures/torn.png"), "torn").unwrap();
    let file = theirs(
        &daemon,
        "own.toml",
        "[app]\ntheme = 7\nimages_per_page = 33\n[daemon]\nimages_dir = '~/data/murald/images'\n\
         [backend.awww]\ntransition_step = 900\n",
    );
    let line = [
        "migrate",
        "waypaper-engine",
        "--from",
        file.to_str().unwrap(),
    ];
    let output = run(&daemon, &line);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let told = String::from_utf8(output.stdout).unwrap();
    for begins in [
        "skipped app.theme: ",
        "setting app.images_per_page 33",
        "skipped /",
        "skipped backend.awww.transition_step: ",
    ] {
        assert!(
            told.lines().any(|line| line.starts_with(begins)),
            "{begins}: {told}"
        );
    }
    assert_eq!(
        json_of(&daemon, &["config", "get", "app.images_per_page"]),
        33
    );
    // A file that is not a picture is skipped, and a directory without pictures gets no playlist.
    let file = theirs(
        &daemon,
        "variety.conf",
        &format!(
            "favorites_folder = {}\n[sources]\na = True|folder|{}\n",
            lake.parent().unwrap().display(),
            daemon.root().join("Empty").display()
        ),
    );
    let told = lines(
        &daemon,
        &["migrate", "variety", "--from", file.to_str().unwrap()],
    );
    assert_eq!(told[0], "watch ~/Empty");
    assert_eq!(
        told[1],
        "skipped playlist variety: there are no pictures in ~/Empty"
    );
    assert_eq!(told[2], "watch ~/Pictures");
    assert!(
        told[3].starts_with("skipped tag favourite: ~/Pictures/torn.png: "),
        "{told:#?}"
    );
    assert_eq!(told[4], "tag favourite (what is in ~/Pictures)");
}
