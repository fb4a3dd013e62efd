//! The lines that `murald migrate` prints for each key of another program's configuration, without a
//! daemon; and its errors without Python.

use std::fs;

use crate::call::{fails, json_of, ok};
use crate::support::TestDaemon;
use crate::support::pty::Pty;

/// A home with the directories and pictures that the configurations name.
fn home() -> TestDaemon {
    let daemon = TestDaemon::new();
    for name in ["w", "p", "f1", "f2", ".config/variety/Downloaded"] {
        fs::create_dir_all(daemon.root().join(name)).unwrap();
    }
    for name in ["lake.png", "a b.jpg", "c.jpg"] {
        fs::write(daemon.root().join(name), "").unwrap();
    }
    daemon
}

#[track_caller]
fn check(daemon: &TestDaemon, program: &str, text: &str, expected: &[&str]) {
    let (file, root) = (
        daemon.root().join("theirs"),
        daemon.root().to_str().unwrap(),
    );
    fs::write(&file, text).unwrap();
    let told = ok(
        daemon,
        &[
            "migrate",
            program,
            "--dry-run",
            "--from",
            file.to_str().unwrap(),
        ],
    );
    let told = told.replace(root, "~");
    assert_eq!(told.lines().collect::<Vec<_>>(), expected, "{text}");
}

#[test]
fn wpaperd_keys_are_printed() {
    let daemon = home();
    let check = |text: &str, expected: &[&str]| check(&daemon, "wpaperd", text, expected);
    check(
        "loose = 1\n[default]\npath = '~/w'\ntransition_time = 600\nqueue-size = 20\n\
         exec = \"~/it's.sh\"\n[default.transition.circle-open]\nsmoothness = 0.1\n\
         [\"re:DP-\\\\d\"]\nsorting = 'descending'\nrecursive = false\nmode = 'tile'\nfrob = 1\n",
        &[
            "skipped loose: this key is outside of a section",
            "skipped re:DP-\\d.mode: murald has one setting for all monitors",
            "setting backend.builtin.transition_duration 0.6",
            "setting backend.builtin.transition_type grow",
            "setting hooks.wallpaper_changed '~/it'\"'\"'s.sh' \"$MURALD_MONITOR\" \"$MURALD_PATH\"",
            "watch ~/w",
            "playlist wpaperd re:DP-\\d (of ~/w, only on request, by name, descending)",
            "playlist wpaperd default (of ~/w, only on request, at random)",
            "skipped re:DP-\\d.frob: murald does not know this key of wpaperd's",
            "skipped default.queue-size: murald shows all pictures of a directory before it repeats one",
        ],
    );
    check(
        "[default.transition.hexagonalize]\n[DP-1]\npath = '~/none'\nmode = 'fit'\n[DP-2]\n\
         path = '~/w'\nmode = 'stretch'\nduration = 5\n[DP-3]\npath = '~/lake.png'\n\
         [any]\npath = '~/w'\nduration = '1h 30min'\n[DP-4]\n",
        &[
            "skipped DP-1.mode: murald has one setting for all monitors",
            "skipped DP-2.mode: murald has one setting for all monitors",
            "skipped transition: murald has no transition named hexagonalize",
            "skipped DP-1.path: ~/none does not exist",
            "skipped DP-2.duration: 5 is not a duration",
            "watch ~/w",
            "playlist wpaperd DP-2 (of ~/w, only on request, at random, for DP-2)",
            "skipped DP-3.path: the wallpaper stays as it is; `murald set ~/lake.png --monitor DP-3` \
             shows this picture",
            "playlist wpaperd any (of ~/w, every 1 h 30 min, at random)",
            "skipped DP-4: it has no path",
        ],
    );
    check(
        "[any]\npath = 5\nmode = 7\ntransition = 'x'\nexec = []\n",
        &[
            "skipped mode: murald has no mode named 7",
            "skipped transition: murald has no transition named x",
            "skipped exec: murald has no exec named []",
            "skipped any: it has no path",
        ],
    );
    check("", &[]);
}

#[test]
fn waypaper_keys_are_printed() {
    let daemon = home();
    let check = |text: &str, expected: &[&str]| check(&daemon, "waypaper", text, expected);
    check(
        "[Settings]\nfolder = ~/f1\n         ~/f2\nslideshow_enabled = True\nslideshow_interval = 30\n\
         monitors = DP-1\n\tDP-2\nwallpaper = ~/a b.jpg\n\t~/c.jpg\nbackend = wallutils\n\
         fill = sideways\ncolor = #ffeedd\nsubfolders = False\nmpvpaper_sound = False\n\
         post_command = sh -c 'x $monitor' \"a $wallpaper\" $color $other\n[Other]\nx = 1\n",
        &[
            "watch ~/f1",
            "watch ~/f2",
            "skipped wallpaper: the wallpaper stays as it is; `murald set '~/a b.jpg' --monitor DP-1` \
             shows this picture",
            "skipped wallpaper: the wallpaper stays as it is; `murald set ~/c.jpg --monitor DP-2` \
             shows this picture",
            "skipped backend: wallutils is not a backend of murald",
            "skipped fill: murald has no fill named sideways",
            "setting backend.awww.fill_color ffeedd",
            "setting backend.feh.fill_color ffeedd",
            "setting backend.swaybg.fill_color ffeedd",
            "setting backend.wal-qt.fill_color ffeedd",
            "setting backend.builtin.fill_color ffeedd",
            "setting hooks.wallpaper_changed sh -c 'x '\"$MURALD_MONITOR\"'' \"a $MURALD_PATH\" \
             \"#ffeedd\" $other",
            "skipped Other.x: murald does not know this section of waypaper's",
            "playlist waypaper (of all images, every 30 min, at random)",
        ],
    );
    check(
        "[Settings]\nfolder = ~/5%%\nwallpaper = ~/a%%.jpg,~/c.jpg\nmonitors = DP-1,All\ncolor = #fff\n",
        &[
            "skipped folder: there is no directory ~/5%",
            "skipped wallpaper: the wallpaper stays as it is; `murald set ~/a%%.jpg --monitor DP-1` \
             shows this picture",
            "skipped wallpaper: the wallpaper stays as it is; `murald set ~/c.jpg` shows this picture",
            "skipped color: #fff is not a colour like #ffffff",
        ],
    );
}

#[test]
fn variety_and_waypaper_engine_keys_are_printed() {
    let daemon = home();
    check(
        &daemon,
        "variety",
        "change_enabled = no\nchange_interval = soon\nwallpaper_display_mode = \"os\"\n\
         favorites_folder = /none\nfrob = 1\nicon = Light # no\nclock_enabled = True\nclock_font = x\n\
         quotes_enabled = False\nquotes_font = x\nwallhaven_api_key = \"\"\n\
         [sources]\na = True|folder|~/p/\nb = True|folder|/none\nc = on|image|/a 'b.jpg\n\
         d = True|reddit|earthporn\ne = True\nf = True|folder|~/p\ng = False|flickr|x\n\
         [filters]\nh = False|Keep|\n[x]\ny = 1\n",
        &[
            "watch ~/p",
            "skipped sources.b: there is no directory /none",
            "skipped sources.c: it is a single picture; `murald import --in-place '/a '\"'\"'b.jpg'` \
             imports it",
            "skipped sources.d: murald downloads nothing from reddit",
            "watch ~/.config/variety/Downloaded",
            "skipped sources.e: the value must be like True|folder|PATH",
            "playlist variety (of all images, only on request, at random)",
            "skipped wallpaper_display_mode: murald always covers the monitor",
            "skipped frob: murald does not know this key of variety's",
            "skipped icon: murald has no icon",
            "skipped clock_*: murald draws no clock over pictures",
            "skipped x.y: murald does not know this section of variety's",
        ],
    );
    check(
        &daemon,
        "variety",
        "change_interval = 1\nfavorites_folder = /none\n[sources]\na = True|folder|~/p\n",
        &[
            "watch ~/p",
            "playlist variety (of ~/p, every 5 s, at random)",
        ],
    );
    check(
        &daemon,
        "waypaper-engine",
        "[app]\ntheme = 'dark'\nnew = 1\nold = false\n[backend]\ntype = 'wayland-utauri'\n\
         [backend.swww]\ntransition_type = 'melt'\n[backend.auto_priorities]\nimage = ['awww', 'feh']\n\
         [backend.hyprpaper]\nconfig_path = '~/x'\n",
        &[
            "setting app.theme dark",
            "skipped app.new: murald has no such setting",
            "setting backend.type wal-qt",
            "skipped backend.awww.transition_type: must be one of none, simple, fade, left, right, \
             top, bottom, wipe, wave, grow, center, any, outer, random, not melt",
            "setting backend.auto_priorities.image [\"awww\",\"feh\"]",
            "skipped backend.hyprpaper.config_path: murald writes a file of its own for hyprpaper",
            "skipped playlists and tags: start the daemon of Waypaper Engine, then run this again: only \
             the daemon can read them",
        ],
    );
}

#[test]
fn programs_without_a_configuration_get_their_part_of_the_manual() {
    let daemon = TestDaemon::new();
    for (program, line) in [
        ("swww", "\n  swww query                murald current\n"),
        ("awww", "  murald set ~/Pictures/lake.jpg --monitor DP-1\n"),
        ("feh", "  murald random --fit cover\n"),
        (
            "hyprpaper",
            "  murald set ~/Pictures/lake.jpg --monitor DP-1\n",
        ),
        ("swaybg", "  murald set ~/Pictures/lake.jpg --fit tile\n"),
    ] {
        let told = ok(&daemon, &["migrate", program]);
        assert!(told.contains(line), "{told}");
        assert!(!told.contains("\n.") && !told.contains('\\'), "{told}");
    }
    assert_eq!(json_of(&daemon, &["migrate", "swww"])[0]["kind"], "page");
    // A configuration of hyprpaper becomes commands.
    let file = daemon.root().join("hyprpaper.conf");
    let text = "$pictures = /p\npreload = /p/a.png\nwallpaper = DP-1, $pictures/a b.png # mine\n\
                wallpaper = , contain:/p/c.png\nwallpaper {\n  monitor = DP-2\n  path = /p/d.png\n\
                fit_mode = cover\n}\n";
    fs::write(&file, text).unwrap();
    let line = ["migrate", "hyprpaper", "--from", file.to_str().unwrap()];
    let expected = "murald set '/p/a b.png' --monitor DP-1\nmurald set /p/c.png --fit contain\n\
                    murald set /p/d.png --monitor DP-2\n";
    assert_eq!(ok(&daemon, &line), expected);
    let head = format!("'{}' migrate feh | head -n 1", env!("CARGO_BIN_EXE_murald"));
    let output = daemon.command("sh").args(["-c", &head]).output().unwrap();
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn dry_run_on_a_terminal_ends_with_the_next_command() {
    let daemon = home();
    let file = daemon.root().join("theirs");
    fs::write(&file, "[any]\npath = '~/w'\n").unwrap();
    let line = [
        "migrate",
        "wpaperd",
        "--dry-run",
        "--from",
        file.to_str().unwrap(),
    ];
    let (code, shown) = Pty::new(daemon.murald(&line), 200, 24).end();
    assert_eq!(code, Some(0), "{shown}");
    let next = format!("next: murald migrate wpaperd --from {}", file.display());
    assert_eq!(shown.lines().last(), Some(&*next));
}

#[test]
fn missing_or_old_python_is_reported() {
    let mut daemon = home();
    let real = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|directory| directory.join("python3"))
        .find(|path| path.exists());
    daemon.stub(
        "python3",
        &format!(
            "#!/bin/sh\nexec {} -I -c \"import sys; sys.version_info = (3, 9)\n$5\" \"$@\"\n",
            real.unwrap().display()
        ),
    );
    let line = ["migrate", "swww"];
    fails(
        &daemon,
        &line,
        1,
        "murald: migrate needs Python 3.11 or newer, not 3.9\nhint: install a newer ",
    );
    let mut daemon = home();
    daemon.only(&["sh"]);
    fails(
        &daemon,
        &line,
        1,
        "murald: migrate needs Python: python3 is not installed\nhint: install python3",
    );
}
