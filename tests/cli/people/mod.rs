//! Whole sessions of different users: each line is typed in the user's shell, on a machine where murald
//! has never run.

mod i3;
mod novice;
mod packager;
mod phone;
mod ricer;
mod script;

use std::path::{Path, PathBuf};

use crate::desktop::{Desktop, wait_until};
use crate::support::TestDaemon;
use crate::support::pty::Pty;

const RED: [u8; 3] = [200, 30, 30];
const GREEN: [u8; 3] = [30, 180, 60];
const BLUE: [u8; 3] = [40, 60, 200];

/// A home with pictures in `~/Pictures`, and a `murald` on the path that may start its daemon.
fn home(mut daemon: TestDaemon, pictures: &[(&str, [u8; 3])]) -> TestDaemon {
    let directory = daemon.root().join("Pictures");
    std::fs::create_dir(&directory).unwrap();
    for (name, color) in pictures {
        let picture = image::RgbImage::from_pixel(640, 360, image::Rgb(*color));
        picture.save(directory.join(name)).unwrap();
    }
    daemon.stub_murald();
    daemon.env("MURALD_AUTOSTART", "1");
    daemon
}

/// An interactive shell.
struct Shell(Pty);

impl Shell {
    /// Starts `program` on a terminal of its own. The caller loads the completions.
    fn new(daemon: &TestDaemon, program: &[&str], columns: u16) -> Self {
        // Shells have job control only on their own controlling terminal.
        let mut command = daemon.command("setsid");
        command.args(["--ctty", "--wait"]).args(program);
        command
            .env("TERM", "xterm")
            .env("PS1", "> ")
            .current_dir(daemon.root());
        Self(Pty::new(command, columns, 24))
    }

    /// Types a line, waits for `comes` in the output, and returns the output up to there. The line must
    /// not contain `comes`, as the terminal echoes it.
    #[track_caller]
    fn types(&mut self, line: &str, comes: &str) -> String {
        assert!(!line.contains(comes), "the line contains what it waits for");
        self.0.types(format!("{line}\r").as_bytes());
        self.0.until(comes)
    }

    #[track_caller]
    fn leaves(mut self) {
        self.0.types(b"exit\r");
        assert_eq!(self.0.end().0, Some(0));
    }
}

fn completions(file: &str) -> String {
    format!("{}/contrib/completions/{file}", env!("CARGO_MANIFEST_DIR"))
}

/// Waits until the middle of a monitor has a colour.
#[track_caller]
fn sees(desktop: &Desktop, daemon: &TestDaemon, output: &str, color: [u8; 3]) {
    let shot: PathBuf = daemon.root().join("shot.png");
    wait_until(&format!("{color:?} on {output}"), || {
        desktop.shot(Path::new(&shot), output);
        let shown = image::open(&shot).unwrap().into_rgb8();
        let middle = shown.get_pixel(shown.width() / 2, shown.height() / 2);
        middle
            .0
            .iter()
            .zip(color)
            .all(|(one, other)| one.abs_diff(other) <= 6)
    });
}
