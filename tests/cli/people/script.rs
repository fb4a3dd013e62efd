//! A shell script: `sh -eu`, cron's environment, pipes, exit codes, JSON.

use std::process::Command;

use super::{BLUE, GREEN, RED, home, sees};
use crate::desktop::Desktop;
use crate::support::TestDaemon;

/// The script's text.
const SCRIPT: &str = r#"
# Every picture of the directory, by its id, in the order of the names.
ids=$(murald import Pictures/*.png)
test "$(echo "$ids" | wc -l)" -eq 3
# The same again: the same ids, and no failure.
test "$(murald import -q Pictures/*.png)" = "$ids"
# Rows have tabs, whatever the names are.
murald images ls --sort-by name --sort-order asc | cut -f 2 | tr '\n' ',' | grep -qx 'blue hill,green,red lake,'
test "$(murald images ls --all --format '{id}' | sort -n)" = "$(echo "$ids" | sort -n)"
# A reader that closes the pipe after a line does no harm.
test -n "$(murald images ls | head -n 1)"
# References from a pipe, with any character in them.
printf 'red lake\0blue hill\0' | murald images tag - -0 --add warm
test "$(murald images ls --tags warm --json | jq '.data | length')" = 2
# One that is wrong: nothing is done, and the code says so.
code=0; printf 'green\nno such\n' | murald images delete - 2>errors || code=$?
test $code -eq 1 && grep -q 'no such' errors
test "$(murald images ls -q | wc -l)" -eq 3
code=0; murald set 2>/dev/null || code=$?; test $code -eq 2
code=0; murald --json images show 99 2>errors || code=$?
test $code -eq 1 && test "$(jq .code errors)" -eq 404
# The shown image, by name, by path, and for other programs.
murald set 'blue hill' --json | jq -e '.image_name == "blue hill" and .monitors == ["HEADLESS-1"]' >set
test "$(murald current --format '{monitor_name} {image_name}')" = 'HEADLESS-1 blue hill'
test -f "$(murald current --json | jq -r .monitors[0].image_path)"
# Nothing runs: that is a failure with a reason, not silence.
code=0; murald next 2>errors || code=$?; test $code -eq 1 && grep -q 'no playlist is running' errors
murald playlist create turns 'red lake' green >/dev/null
murald playlist start turns
murald next >/dev/null
test "$(murald current --format '{monitors[0].image_name}')" = green
"#;

#[test]
fn script_works_with_pipes_exit_codes_and_json() {
    let desktop = Desktop::wayland(&["640x360"]);
    let pictures = [
        ("red lake.png", RED),
        ("blue hill.png", BLUE),
        ("green.png", GREEN),
    ];
    let daemon = home(TestDaemon::on(&desktop), &pictures);
    let mut sh = daemon.command("sh");
    sh.args(["-eux", "-c", SCRIPT]).current_dir(daemon.root());
    let output = sh.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    sees(&desktop, &daemon, "HEADLESS-1", GREEN);
    // A cron job, with `HOME`, a short `PATH`, and the daemon's socket.
    let cron = |line: &str| {
        let mut sh = Command::new("env");
        let own = format!("MURALD_SOCKET={}", daemon.socket().display());
        sh.args(["-i", "PATH=/usr/bin:/bin", &own, "sh", "-c", line])
            .current_dir("/");
        sh.env("HOME", daemon.root()).output().unwrap()
    };
    let murald = env!("CARGO_BIN_EXE_murald");
    let output = cron(&format!("{murald} previous && {murald} stop --clear"));
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "red lake (3) is on HEADLESS-1\nstopped\n"
    );
    // Without a daemon the exit code is 69.
    assert_eq!(cron(&format!("{murald} current")).status.code(), Some(69));
}
