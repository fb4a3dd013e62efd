//! What is in the way of wallpapers, found without a daemon: the settings, where files go, the socket,
//! the session and its backends, and what else is wanted.
//!
//! Runs in the command's own thread. It changes nothing and starts no wallpaper: whoever has a fault
//! may look as often as they like. Every wait has an end.

pub(super) mod daemon;
mod places;
mod programs;
mod report;
mod session;
mod stopped;

use std::sync::Arc;

use super::error::Error;
use super::options::Options;
use super::paths::DaemonPaths;
use crate::config::{self, Config};
use crate::error_chain::chain;
use crate::paths::{Dirs, Env};
use crate::wire::Finding;

use report::Report;

/// Looks at everything, in the order in which things depend on each other.
pub(crate) fn examine(options: &Options) -> Vec<Finding> {
    let mut report = Report::default();
    let env = Env::process();
    match Dirs::new(env.clone()) {
        Ok(dirs) => look(&mut report, options, &env, &dirs),
        Err(error) => report.fix("home", chain(&error), "set HOME to your home directory"),
    }
    report.findings()
}

fn look(report: &mut Report, options: &Options, env: &Env, dirs: &Dirs) {
    let (settings, warnings) = (Arc::new(settings(report, options, dirs)), report.count());
    places::runtime(report, env);
    let file = options.config.clone().unwrap_or_else(|| dirs.config_file());
    match DaemonPaths::new(&settings.daemon, &file, dirs, options) {
        Ok(paths) => {
            places::look(report, &paths, dirs);
            if !daemon::look(report, &paths, options) {
                stopped::look(report, &paths);
            }
            session::look(report, &settings, &paths, env, dirs);
        }
        // Told of already.
        Err(Error::Paths(_)) if report.count() > warnings => {}
        Err(error) => report.fix("settings", chain(&error), "mend it there"),
    }
    programs::look(report);
}

/// The settings as the daemon would read them, else the defaults.
fn settings(report: &mut Report, options: &Options, dirs: &Dirs) -> Config {
    let file = options.config.clone().unwrap_or_else(|| dirs.config_file());
    if !file.exists() && options.config.is_none() {
        report.ok("settings", format!("there is no {}: the defaults count", file.display()));
        return Config::default();
    }
    match config::check(&file) {
        Err(error) => {
            let step = "mend the line; `murald config check` looks again";
            report.fix("settings", chain(&error), step);
            Config::default()
        }
        Ok(settings) => {
            for warning in &settings.warnings {
                report.fix("settings", warning, "mend the line");
            }
            if settings.warnings.is_empty() {
                report.ok("settings", format!("{} is in order", file.display()));
            }
            settings
        }
    }
}
