//! Finds out why no wallpaper appears, without a daemon (`murald doctor`): settings, directories,
//! socket,
//! session, backends and programs.
//!
//! Runs in the command's own thread. It changes nothing and sets no wallpaper. Every wait has a limit.

mod daemon;
mod machine;
mod report;
mod session;

use std::sync::Arc;

use super::error::Error;
use super::options::DaemonPaths;
use super::options::Options;
use crate::config::{self, Config};
use crate::error_chain::chain;
use crate::paths::{Dirs, Env};
use crate::wire::Finding;

use report::Report;

/// Examines everything, in the order of dependence.
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
    machine::runtime(report, env);
    let file = options.config.clone().unwrap_or_else(|| dirs.config_file());
    match DaemonPaths::new(&settings.daemon, &file, dirs, options) {
        Ok(paths) => {
            machine::look(report, &paths, dirs);
            if !daemon::look(report, &paths, options) {
                daemon::look_at_leftovers(report, &paths);
            }
            session::look(report, &settings, &paths, env, dirs);
        }
        // Reported already.
        Err(Error::Paths(_)) if report.count() > warnings => {}
        Err(error) => report.fix("settings", chain(&error), "mend it there"),
    }
    machine::look_at_programs(report);
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
