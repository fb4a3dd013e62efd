//! A user of swww who likes colours: fish and a Wayland compositor.

use super::{BLUE, GREEN, RED, Shell, completions, home, sees};
use crate::desktop::{Desktop, wait_until};
use crate::support::TestDaemon;

#[test]
fn user_of_swww_switches() {
    let desktop = Desktop::wayland(&["640x360", "360x640"]);
    let pictures = [
        ("red lake.png", RED),
        ("blue hill.png", BLUE),
        ("green.png", GREEN),
    ];
    let daemon = home(TestDaemon::on(&desktop), &pictures);
    let mut fish = Shell::new(&daemon, &["fish", "--no-config", "--interactive"], 80);
    // Some versions of fish query the terminal, and wait for its answer.
    fish.types(
        &format!("source {}; echo rea''dy", completions("murald.fish")),
        "ready\r\n",
    );
    // The command of swww.
    fish.types("murald img Pictures/green.png", "unknown command ");
    // On both monitors, in the order of the compositor.
    fish.types("murald set Pictures/green.png", "green (1) is on HEADLESS-");
    // Instead of swww murald draws, whatever is installed.
    fish.types("murald backends activate builtin", "switched to builtin");
    fish.types("murald import Pictures", "in the library already");
    fish.types(
        "murald set 'red l' --monitor HEADLESS-1 --transition wipe",
        "red lake (",
    );
    sees(&desktop, &daemon, "HEADLESS-1", RED);
    sees(&desktop, &daemon, "HEADLESS-2", GREEN);
    // Tab completes names.
    fish.types(
        "murald images show red\t --format 'found {name}'",
        "found red lake",
    );
    fish.types(
        "murald images show red\t --format 'has {media_type}'",
        "has image",
    );
    let hook = r#"echo "$MURALD_IMAGE_NAME" >told"#;
    let set = format!("murald config set hooks.wallpaper_changed '{hook}'; and echo do''ne");
    fish.types(&set, "done\r\n");
    fish.types("murald random --hue-group blue", "blue hill (");
    sees(&desktop, &daemon, "HEADLESS-1", BLUE);
    let told = daemon.root().join("told");
    wait_until("the hook", || {
        std::fs::read_to_string(&told).is_ok_and(|name| name == "blue hill\n")
    });
    fish.types("murald random --each", "HEADLESS-2");
    fish.types("murald stop --clear", "stopped");
    fish.leaves();
}
