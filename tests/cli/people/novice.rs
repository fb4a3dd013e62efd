//! A novice with two pictures who has read nothing.

use super::{BLUE, GREEN, Shell, home, sees};
use crate::desktop::Desktop;
use crate::support::TestDaemon;

#[test]
fn novice_sets_a_picture_and_tries_commands() {
    let desktop = Desktop::wayland(&["640x360"]);
    let daemon = home(
        TestDaemon::on(&desktop),
        &[("that.jpg", BLUE), ("this.png", GREEN)],
    );
    let mut bash = Shell::new(&daemon, &["bash", "--norc", "--noprofile", "-i"], 80);
    bash.types(
        "murald set Pictures/that.jpg",
        "that (1) is on HEADLESS-1\r\n",
    );
    sees(&desktop, &daemon, "HEADLESS-1", BLUE);
    // Guesses that a novice may make; each error says what is right.
    let help = bash.types("murald --help; echo en''d", "end\r\n");
    assert!(
        help.lines().count() <= 27 && help.contains("murald help all"),
        "{help}"
    );
    bash.types("murald show", "did you mean ");
    bash.types("murald rm that", "images delete");
    bash.types("murald set thta.jpg", "that (1)");
    bash.types("murald library", "needs a command: ");
    bash.types("murald playlist create mine; echo code=$?", "code=2");
    bash.types("murald next; echo code=$?", "code=1");
    bash.types(
        "murald set ~/Pictures/this.png",
        "this (2) is on HEADLESS-1",
    );
    sees(&desktop, &daemon, "HEADLESS-1", GREEN);
    bash.types("murald back", "that (1) is on HEADLESS-1");
    sees(&desktop, &daemon, "HEADLESS-1", BLUE);
    bash.types("murald why", "set manually");
    bash.types("murald stop --clear", "stopped");
    // The next day the daemon starts again.
    bash.types("murald random", "(2) is on HEADLESS-1");
    bash.types("murald stop --clear", "stopped");
    bash.leaves();
}
