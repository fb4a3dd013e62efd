//! A user of i3, feh and variety: bash, an X server, and keys that run commands.

use std::process::Stdio;

use super::{BLUE, GREEN, RED, Shell, completions, home, sees};
use crate::desktop::{Desktop, wait_until};
use crate::support::TestDaemon;

#[test]
fn user_of_feh_and_variety_switches() {
    let desktop = Desktop::x11(&["640x360"]);
    let pictures = [
        ("red lake.png", RED),
        ("blue hill.png", BLUE),
        ("green.png", GREEN),
    ];
    let daemon = home(TestDaemon::on(&desktop), &pictures);
    let mut bash = Shell::new(&daemon, &["bash", "--norc", "--noprofile", "-i"], 80);
    bash.types(
        &format!("source {}; echo rea''dy", completions("murald.bash")),
        "ready\r\n",
    );
    // Like `feh --bg-fill`, without naming a monitor.
    bash.types(
        "murald set Pictures/red\\ lake.png --fit cover",
        "red lake (1) is on VIRTUAL-1",
    );
    sees(&desktop, &daemon, "VIRTUAL-1", RED);
    // Like variety: a directory, and the next picture now.
    bash.types(
        "murald slideshow ~/Pictures --interval 30m",
        "started slideshow of ",
    );
    let client = daemon.client();
    wait_until("all pictures are imported", || {
        client.get("/images").ok()["pagination"]["total_items"] == pictures.len()
    });
    let sees_current = || {
        let current = client.get("/wallpaper/current").ok()["image_name"].clone();
        let is_it = |(name, _): &&(&str, _)| name.trim_end_matches(".png") == current;
        sees(
            &desktop,
            &daemon,
            "VIRTUAL-1",
            pictures.iter().find(is_it).unwrap().1,
        );
        current
    };
    // A key of i3 runs commands without a terminal, in the session's environment.
    let key = |line: &[&str]| {
        let status = daemon.murald(line).stdout(Stdio::null()).status();
        assert!(status.unwrap().success(), "{line:?}");
    };
    let first = sees_current();
    key(&["next"]);
    assert_ne!(sees_current(), first);
    key(&["prev"]);
    assert_eq!(sees_current(), first);
    // Like variety's favourites and trash.
    bash.types("murald favourite blue\\ hill", "blue hill (");
    bash.types(
        "murald images ls --tags fav\t --format 'found {name}'",
        "found blue hill",
    );
    bash.types(
        "murald images rename blue\t'blue lake'; echo co''de=$?",
        "code=0",
    );
    bash.types("murald images rm blue\\ l\t", "? [y/N] ");
    bash.types("y", "1 image ");
    bash.types("murald pause", "paused");
    bash.types("murald next", " is on VIRTUAL-1");
    bash.types("murald stop --clear", "stopped");
    bash.leaves();
}
