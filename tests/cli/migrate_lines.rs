//! The lines that `murald migrate` prints for each key of another program's configuration, without a
//! daemon; and its errors without Python.

use std::fs;

use crate::call::{json_of, ok, rejected};
use crate::support::TestDaemon;
use crate::support::pty::Pty;
use crate::support::snapshot::snapshot;

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
fn check(daemon: &TestDaemon, program: &str, text: &str) {
    let file = daemon.root().join("theirs");
    let root = daemon.root().to_str().unwrap();
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
    snapshot(
        &format!("migrate {program}"),
        &format!("{text}--- is printed as\n{told}"),
    );
}

#[test]
fn wpaperd_keys_are_printed() {
    let daemon = home();
    let check = |text: &str| check(&daemon, "wpaperd", text);
    check(
        "loose = 1\n[default]\npath = '~/w'\ntransition_time = 600\nqueue-size = 20\n\
         exec = \"~/it's.sh\"\n[default.transition.circle-open]\nsmoothness = 0.1\n\
         [\"re:DP-\\\\d\"]\nsorting = 'descending'\nrecursive = false\nmode = 'tile'\nfrob = 1\n",
    );
    check(
        "[default.transition.hexagonalize]\n[DP-1]\npath = '~/none'\nmode = 'fit'\n[DP-2]\n\
         path = '~/w'\nmode = 'stretch'\nduration = 5\n[DP-3]\npath = '~/lake.png'\n\
         [any]\npath = '~/w'\nduration = '1h 30min'\n[DP-4]\n",
    );
    check("[any]\npath = 5\nmode = 7\ntransition = 'x'\nexec = []\n");
    check("");
}

#[test]
fn waypaper_keys_are_printed() {
    let daemon = home();
    let check = |text: &str| check(&daemon, "waypaper", text);
    check(
        "[Settings]\nfolder = ~/f1\n         ~/f2\nslideshow_enabled = True\nslideshow_interval = 30\n\
         monitors = DP-1\n\tDP-2\nwallpaper = ~/a b.jpg\n\t~/c.jpg\nbackend = wallutils\n\
         fill = sideways\ncolor = #ffeedd\nsubfolders = False\nmpvpaper_sound = False\n\
         post_command = sh -c 'x $monitor' \"a $wallpaper\" $color $other\n[Other]\nx = 1\n",
    );
    check(
        "[Settings]\nfolder = ~/5%%\nwallpaper = ~/a%%.jpg,~/c.jpg\nmonitors = DP-1,All\ncolor = #fff\n",
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
    );
    check(
        &daemon,
        "variety",
        "change_interval = 1\nfavorites_folder = /none\n[sources]\na = True|folder|~/p\n",
    );
    check(
        &daemon,
        "waypaper-engine",
        "[app]\ntheme = 'dark'\nnew = 1\nold = false\n[backend]\ntype = 'wayland-utauri'\n\
         [backend.swww]\ntransition_type = 'melt'\n[backend.auto_priorities]\nimage = ['awww', 'feh']\n\
         [backend.hyprpaper]\nconfig_path = '~/x'\n",
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
    rejected(&daemon, &line, 1);
    let mut daemon = home();
    daemon.only(&["sh"]);
    rejected(&daemon, &line, 1);
}
