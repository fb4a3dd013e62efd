//! Finds out why no wallpaper appears, without a daemon (`murald doctor`). This file examines
//! settings, directories and programs; `daemon` examines the socket, `session` the compositor and
//! the backends.
//!
//! Runs on the command's own thread, changes nothing and sets no wallpaper. Every wait has a time
//! limit.

mod daemon;
mod session;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Access, AtFlags, CWD, accessat, statvfs};
use rustix::process::{geteuid, getuid};

use super::error::Error;
use super::options::{DaemonPaths, Options};
use crate::config::{self, Config};
use crate::error_chain::chain;
use crate::media;
use crate::paths::{Dirs, Env};
use crate::process::{self, Launch};
use crate::sys::Inotify;
use crate::transcode::{self, Program};
use crate::wire::{Finding, FindingState};

/// Examines everything; later parts depend on earlier ones.
pub(crate) fn examine(options: &Options) -> Vec<Finding> {
    let mut report = Report::default();
    match Dirs::from_process() {
        Ok(dirs) => look(&mut report, options, &dirs),
        Err(error) => report.fix("home", chain(&error), "set HOME to your home directory"),
    }
    report.findings()
}

fn look(report: &mut Report, options: &Options, dirs: &Dirs) {
    let settings = Arc::new(settings(report, options, dirs));
    let warnings = report.count();
    runtime(report, dirs.env());
    let file = options.config.clone().unwrap_or_else(|| dirs.config_file());
    match DaemonPaths::new(&settings.daemon, &file, dirs, options) {
        Ok(paths) => {
            look_at_directories(report, &paths, dirs);
            if daemon::look(report, &paths, options) {
                daemon::database_in_use(report, &paths.database)
            } else {
                daemon::look_at_leftovers(report, &paths)
            }
            session::look(report, &settings, &paths, dirs);
        }
        // Reported already.
        Err(Error::Paths(_)) if report.count() > warnings => {}
        Err(error) => report.fix("settings", chain(&error), "fix that setting"),
    }
    if Inotify::new().is_err() {
        let text = "the kernel allows no more watches, so changed files are not noticed";
        let step = "`sudo sysctl fs.inotify.max_user_instances=512`";
        report.fix("watches", text, step);
    }
    look_at_programs(report);
}

/// Reads the settings as the daemon would; returns the defaults if that fails.
fn settings(report: &mut Report, options: &Options, dirs: &Dirs) -> Config {
    let file = options.config.clone().unwrap_or_else(|| dirs.config_file());
    if !file.exists() && options.config.is_none() {
        report.well("no configuration file (the defaults are used)");
        return Config::default();
    }
    match config::check(&file) {
        Err(error) => {
            let step = "fix the file, then run `murald config check`";
            report.fix("settings", chain(&error), step);
            Config::default()
        }
        Ok(settings) => {
            for warning in &settings.warnings {
                report.fix(
                    "settings",
                    warning,
                    "fix the line, then run `murald config check`",
                );
            }
            if settings.warnings.is_empty() {
                report.well("configuration");
            }
            settings
        }
    }
}

#[derive(Debug, Default)]
struct Report {
    findings: Vec<Finding>,
    /// The names of what is in order and needs no line of its own.
    well: Vec<&'static str>,
}

impl Report {
    /// Reports something that works and that a bug report needs.
    fn ok(&mut self, subject: &str, text: impl Into<String>) {
        self.add(subject, FindingState::Ok, text.into(), None);
    }

    fn well(&mut self, name: &'static str) {
        self.well.push(name);
    }

    /// Reports something that works; `step` is what the user may do about it, if anything.
    fn note(&mut self, subject: &str, text: impl Into<String>, step: Option<&str>) {
        self.add(
            subject,
            FindingState::Note,
            text.into(),
            step.map(str::to_owned),
        );
    }

    fn fix(&mut self, subject: &str, text: impl Into<String>, step: impl Into<String>) {
        self.add(subject, FindingState::Fix, text.into(), Some(step.into()));
    }

    /// The number of things to fix.
    fn count(&self) -> usize {
        self.findings
            .iter()
            .filter(|finding| finding.state == FindingState::Fix)
            .count()
    }

    /// All findings; those in order first, in one line.
    fn findings(mut self) -> Vec<Finding> {
        let well = std::mem::take(&mut self.well).join(", ");
        if !well.is_empty() {
            self.ok("checked", well);
            self.findings.rotate_right(1);
        }
        self.findings
    }

    fn add(&mut self, subject: &str, state: FindingState, text: String, step: Option<String>) {
        self.findings.push(Finding {
            subject: subject.to_owned(),
            state,
            text,
            step,
        });
    }
}

/// The minimum free space in bytes: a photograph with its thumbnails takes up to 30 MiB, and the
/// database needs some, too.
const ROOM: u64 = 100 << 20;

/// Examines the runtime directory: after `su` it may belong to another user, or to a session that has
/// ended.
fn runtime(report: &mut Report, env: &Env) {
    let Some(path) = env.var("XDG_RUNTIME_DIR").filter(|path| !path.is_empty()) else {
        return;
    };
    let path = PathBuf::from(path);
    let step = format!(
        "log in again, or `export XDG_RUNTIME_DIR=/run/user/{}` if that directory exists",
        getuid().as_raw()
    );
    let named = format!("XDG_RUNTIME_DIR is {}", path.display());
    match fs::metadata(&path) {
        _ if !path.is_absolute() => {
            report.fix(
                "runtime",
                format!("{named}, which is not an absolute path"),
                step,
            );
        }
        Err(error) => report.fix("runtime", format!("{named}: {}", chain(&error)), step),
        Ok(found) if !found.is_dir() => {
            report.fix(
                "runtime",
                format!("{named}, which is not a directory"),
                step,
            );
        }
        Ok(found) if found.uid() != geteuid().as_raw() => {
            let owner = found.uid();
            report.fix(
                "runtime",
                format!("{named}, which belongs to user {owner}"),
                step,
            );
        }
        Ok(_) => {}
    }
}

/// Examines all directories that the daemon writes to.
fn look_at_directories(report: &mut Report, paths: &DaemonPaths, dirs: &Dirs) {
    let parent = |path: &Path| path.parent().unwrap_or(Path::new("/")).to_owned();
    let (state, cache) = (dirs.state(), dirs.cache());
    let (database, log) = (parent(&paths.database), parent(&paths.log));
    let settings = parent(&dirs.config_file());
    let socket = parent(&paths.socket);
    let all: [(&str, &Path); 8] = [
        ("library", &paths.images),
        ("database", &database),
        ("thumbnails", &paths.thumbnails),
        ("settings", &settings),
        ("log", &log),
        ("cache", &cache),
        ("state", &state),
        ("socket", &socket),
    ];
    let before = report.count();
    for (subject, directory) in all {
        writable(report, subject, directory);
    }
    free_space(report, &all[..3]);
    if report.count() == before {
        report.well("directories");
    }
}

/// Returns the directory, or its nearest existing parent.
fn nearest(directory: &Path) -> &Path {
    directory
        .ancestors()
        .find(|path| fs::symlink_metadata(path).is_ok())
        .unwrap_or(directory)
}

fn writable(report: &mut Report, subject: &str, directory: &Path) {
    let there = nearest(directory);
    let (shown, wanted) = (there.display(), directory.display());
    let for_what = if there == directory {
        String::new()
    } else {
        format!(" (murald needs to create {wanted} in it)")
    };
    if !there.is_dir() {
        let step = format!("`mv {shown} {shown}.old`");
        return report.fix(
            subject,
            format!("{shown} is not a directory{for_what}"),
            step,
        );
    }
    let access = Access::WRITE_OK | Access::EXEC_OK;
    match accessat(CWD, there, access, AtFlags::EACCESS) {
        Ok(()) => {}
        Err(rustix::io::Errno::ROFS) => {
            let text = format!("{shown} is on a read-only file system{for_what}");
            report.fix(
                subject,
                text,
                "remount it writable, or set another directory in the configuration",
            );
        }
        Err(error) => {
            let text = format!("{shown} is not writable{for_what}: {}", chain(&error));
            let step = format!("`chmod u+rwx {shown}`, or `chown` it to you");
            report.fix(subject, text, step);
        }
    }
}

/// Reports the free space of each file system once.
fn free_space(report: &mut Report, places: &[(&str, &Path)]) {
    let mut seen = Vec::new();
    for (subject, directory) in places {
        let there = nearest(directory);
        let (Ok(found), Ok(system)) = (fs::metadata(there), statvfs(there)) else {
            continue;
        };
        if seen.contains(&found.dev()) {
            continue;
        }
        seen.push(found.dev());
        let free = system.f_bavail.saturating_mul(system.f_frsize);
        if free < ROOM {
            let (free, at) = (free >> 20, there.display());
            let text = format!("{free} MiB free at {at}, needed by the {subject}");
            let step = "free some space, or set another directory in the configuration";
            report.fix("disk", text, step);
        }
    }
}

/// Time limit; the service manager answers within milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// Reports all formats that cannot be imported in one line.
fn look_at_programs(report: &mut Report) {
    let is_missing = |program: &&Program| program.installed().is_none();
    let mut missing: Vec<String> = transcode::PROGRAMS
        .iter()
        .filter(|program| program.name() != "ffmpeg")
        .filter(is_missing)
        .map(|program| {
            let opens: Vec<_> = program.opens.iter().map(|&it| media::name(it)).collect();
            let needs = if opens.len() == 1 { "needs" } else { "need" };
            let opens = opens.join(" and ");
            let wanted = program.wanted();
            format!("{opens} {needs} {wanted} (Debian: {})", program.package)
        })
        .collect();
    if !transcode::is_available() {
        missing.push("videos need ffmpeg".to_owned());
    }
    if missing.is_empty() {
        report.well("programs for all formats")
    } else {
        report.note("formats", missing.join("; "), Some("optional"))
    }
    unit(report);
}

/// Reports whether murald is started at login, as far as systemd is asked to.
fn unit(report: &mut Report) {
    let said = process::which("systemctl").and_then(|systemctl| {
        let words = ["--user", "is-enabled", "murald.service", "murald.socket"];
        process::run(&Launch::new(systemctl).args(words), PATIENCE, &[]).ok()
    });
    let said = said.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let said = said.unwrap_or_default();
    if said.lines().any(|line| line.starts_with("enabled")) {
        return report.well("start at login");
    }
    let step = if said.lines().any(|line| line == "disabled") {
        "`systemctl --user enable --now murald`, unless your session starts it"
    } else {
        "see START AT LOGIN in murald-tutorial(7), unless your session starts it"
    };
    report.note(
        "login",
        "no systemd unit starts murald at login",
        Some(step),
    );
}
