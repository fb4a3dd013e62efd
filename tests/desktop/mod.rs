//! Provides a headless desktop for one test: a real sway or X server, which is stopped when
//! dropped.
//!
//! Its environment variables are set for child processes of the test, not for the test process
//! itself.

// Each test program uses a part of this file.
#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    clippy::disallowed_methods,
    clippy::unwrap_used
)]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[path = "../support/wait.rs"]
mod wait;

pub use wait::{SetOnDrop, wait_for, wait_until};

pub struct Desktop {
    /// `None` means that the variable is to be unset.
    variables: BTreeMap<String, Option<String>>,
}

impl Desktop {
    /// `args` may be `--pluggable`, and a number of outputs or their sizes.
    pub fn wayland(args: &[&str]) -> Self {
        Self::up("wayland-up", args)
    }

    pub fn x11(args: &[&str]) -> Self {
        Self::up("x11-up", args)
    }

    fn up(name: &str, args: &[&str]) -> Self {
        Self {
            variables: Self::printed(Command::new(script(name)).args(args)),
        }
    }

    /// Kills the compositor and starts another with the same outputs and sockets.
    pub fn again(&mut self) {
        self.variables = Self::printed(self.command(script("wayland-up")).arg("--again"));
    }

    fn printed(command: &mut Command) -> BTreeMap<String, Option<String>> {
        let output = command.stderr(Stdio::inherit()).output();
        let output = output.expect("cannot run the script of the desktop");
        assert!(
            output.status.success(),
            "{command:?} failed: run tests/desktop/install"
        );
        let text = String::from_utf8(output.stdout).unwrap();
        let variable = |line: &str| match line.split_once(' ') {
            Some(("unset", name)) => (name.to_owned(), None),
            Some(("export", rest)) => {
                let (name, value) = rest.split_once('=').unwrap();
                (name.to_owned(), Some(value.trim_matches('\'').to_owned()))
            }
            _ => panic!("{command:?} printed {line:?}"),
        };
        text.lines().map(variable).collect()
    }

    pub fn var(&self, name: &str) -> Option<&str> {
        self.variables.get(name)?.as_deref()
    }

    /// Returns only these variables as an environment, without those of the test process.
    pub fn env(&self) -> murald::internals::paths::Env {
        let variables = self.variables.clone();
        murald::internals::paths::Env::new(move |name| {
            variables.get(name)?.clone().map(OsString::from)
        })
    }

    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        for (name, value) in &self.variables {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }

    /// Runs one of the scripts, which must succeed, and returns its output.
    pub fn run(&self, name: &str, args: &[&str]) -> String {
        self.output(script(name), args)
    }

    /// Runs a program, which must succeed, and returns its output.
    pub fn output(&self, program: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> String {
        let mut command = self.command(program);
        let output = command
            .args(args)
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        assert!(output.status.success(), "{command:?} failed");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Takes a screenshot of an output.
    pub fn shot(&self, to: &Path, output: &str) {
        self.run("shot", &[to.to_str().unwrap(), output]);
    }
}

impl Drop for Desktop {
    fn drop(&mut self) {
        self.command(script("down")).status().ok();
    }
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/desktop")
        .join(name)
}
