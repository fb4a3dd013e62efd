//! A user on a phone, over ssh: a narrow terminal, zsh, tmux.

use super::{BLUE, RED, Shell, completions, home};
use crate::support::TestDaemon;

#[test]
fn user_on_a_phone_works_over_ssh() {
    let mut daemon = home(
        TestDaemon::new(),
        &[("red lake.png", RED), ("blue hill.png", BLUE)],
    );
    daemon.env("TERM", "xterm-256color");
    let mut zsh = Shell::new(&daemon, &["zsh", "-f", "-i"], 40);
    let directory = completions("");
    let setup =
        format!("fpath=({directory} $fpath); autoload -U compinit; compinit -u -D; echo rea''dy");
    zsh.types(&setup, "ready\r\n");
    zsh.types("murald import Pictures", "2 images imported");
    zsh.types("NO_COLOR=1 murald images ls", "ID  NAME");
    let rows = zsh.0.until("2 images\r\n");
    let rows = rows.lines().skip(1);
    rows.for_each(|row| assert!(row.chars().count() <= 40, "{row:?}"));
    let show = "TERM=xterm-256color murald images show blue --picture blocks";
    zsh.types(show, "\x1b[38;");
    let shown = zsh.0.until("blue hill");
    assert!(shown.contains('▀'), "{shown:?}");
    zsh.types(
        "murald images show red\t --format 'found {name}'",
        "found red lake",
    );
    // Enter deletes nothing.
    zsh.types("murald images rm red\t", "to the trash? [y/N] ");
    zsh.types("", "nothing was deleted");
    // There is no monitor here: the error says so, at once.
    zsh.types("murald set red\t", "no Wayland or X11 session");
    // The same in tmux.
    let tmux = daemon.root().join("tmux");
    let tmux = format!(
        "tmux -S {} -f /dev/null new-session 'zsh -f -i'",
        tmux.display()
    );
    zsh.0.types(format!("{tmux}\r").as_bytes());
    zsh.types("PS1='in''side> '", "inside> ");
    zsh.types("murald images show red --format 'is {name}'", "is red lake");
    zsh.types("murald stop", "stopped");
    zsh.types("exit", "[exited]");
    zsh.leaves();
}
