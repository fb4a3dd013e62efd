//! Examines the session: its compositor, its backends, and other programs that draw the background.

use std::sync::Arc;
use std::time::Duration;

use super::super::options::{DaemonPaths, wanted_compositor};
use super::Report;
use crate::backends::{Backends, Kind, REGISTRY, Registration, UnavailableReason, registration};
use crate::compositor::{self, Compositor, Session};
use crate::config::{BackendName, Config};
use crate::decode::{self, Decoder};
use crate::error_chain::plain;
use crate::kernel::Kernel;
use crate::paths::{Dirs, Env};
use crate::process::{ProcessRecords, Versions};
use crate::thread::Spawner;

/// Time limit; a compositor lists its outputs within milliseconds unless it hangs.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn look(report: &mut Report, settings: &Arc<Config>, paths: &DaemonPaths, dirs: &Dirs) {
    let env = dirs.env();
    let wanted = wanted_compositor(settings);
    let session = match compositor::reach(wanted, env) {
        Ok(session) => session,
        Err(error) => return unreachable(report, wanted, env, &error),
    };
    let shown = shown(&session);
    let (spawner, _deaths) = Spawner::new();
    let Ok(kernel) = Kernel::start(&spawner) else {
        return;
    };
    let Ok(watch) = compositor::Watch::start(&spawner, &kernel, wanted, env) else {
        return;
    };
    let outputs = watch.outputs();
    let told = outputs.subscribe();
    if outputs.session().is_none() && told.recv_timeout(PATIENCE).is_err() {
        let seconds = PATIENCE.as_secs();
        let text = format!("{shown} accepts connections but does not answer within {seconds} s");
        return report.fix(
            "compositor",
            text,
            "the session has hung: log out and in again",
        );
    }
    let names: Vec<String> = outputs
        .list()
        .iter()
        .map(|output| output.name.clone())
        .collect();
    if names.is_empty() {
        report.note("compositor", format!("{shown} reports no monitor"), None)
    } else {
        report.ok(
            "compositor",
            format!("{shown}, monitors: {}", names.join(", ")),
        )
    }
    let Ok(decoder) = Decoder::start(decode::Settings::default(), &spawner) else {
        return;
    };
    let all = Arc::clone(settings);
    let backends = Backends {
        settings: Arc::new(move || Arc::clone(&all)),
        outputs,
        records: ProcessRecords::read_only(&paths.backends),
        kernel,
        spawner,
        cache: paths.cache.clone(),
        decoder,
        dirs: dirs.clone(),
        versions: Versions::default(),
        own_program: None,
    };
    if let Some(used) = backend(report, &backends, settings) {
        unshown(report, &backends);
        others(report, &backends, used);
    }
}

fn shown(session: &Session) -> String {
    match session {
        Session::Wayland { socket } => format!("the Wayland compositor at {}", socket.display()),
        Session::X11 { display } => format!("the X server {display}"),
    }
}

fn unreachable(report: &mut Report, wanted: Option<Compositor>, env: &Env, error: &std::io::Error) {
    let kind = match wanted {
        Some(Compositor::Wayland) => "Wayland session",
        Some(Compositor::X11) => "X11 session",
        None => "Wayland or X11 session",
    };
    let set: Vec<String> = ["WAYLAND_DISPLAY", "DISPLAY"]
        .iter()
        .filter_map(|name| Some(format!("{name} is {}", env.var(name)?.to_string_lossy())))
        .collect();
    let text = if set.is_empty() {
        format!("no {kind} found (WAYLAND_DISPLAY and DISPLAY are not set)")
    } else {
        format!("no {kind} found ({}): {}", set.join(", "), plain(error))
    };
    let step = "run murald inside your session; if systemd starts it, run `systemctl --user \
                import-environment WAYLAND_DISPLAY DISPLAY` first";
    report.fix("compositor", text, step);
}

/// Reports the backend that shows wallpapers, or would.
fn backend(report: &mut Report, backends: &Backends, settings: &Config) -> Option<BackendName> {
    let wanted = settings.backend.kind;
    let Some(used) = backends.available_or_first(wanted) else {
        let here =
            |entry: &&Registration| backends.fits(entry) && entry.name != BackendName::Builtin;
        let names: Vec<&str> = REGISTRY
            .iter()
            .filter(here)
            .map(|entry| entry.name.as_str())
            .collect();
        let install = format!("install one of {}", names.join(", "));
        let why = backends.unavailable_reason();
        if let Some(instead) = why.instead() {
            report.fix("backend", format!("no usable backend: {why}"), instead);
            return None;
        }
        let step = match why {
            UnavailableReason::Leave => {
                format!("set backend.builtin.enabled to true, or {install}")
            }
            UnavailableReason::Place(_) | UnavailableReason::Session { .. } => install,
        };
        report.fix(
            "backend",
            format!("no backend is installed, and {why}"),
            step,
        );
        return None;
    };
    let name = used.name;
    if name == wanted || wanted == Config::default().backend.kind {
        report.ok("backend", format!("using {name}"));
    } else {
        let text = format!("backend.type is {wanted}, which cannot be used here; using {name}");
        let set = format!("set backend.type to {name}");
        let (text, step) = match wanted {
            // The builtin renderer cannot be installed.
            BackendName::Builtin => (format!("{text}, as {}", backends.unavailable_reason()), set),
            _ if backends.missing(registration(wanted)).is_empty() => (text, set),
            _ => (text, format!("install {wanted}, or {set}")),
        };
        report.note("backend", text, Some(&step));
    }
    Some(name)
}

/// Reports kinds of wallpapers that no installed backend can show.
fn unshown(report: &mut Report, backends: &Backends) {
    for (kind, subject, what) in [
        (Kind::Video, "videos", "videos"),
        (Kind::Web, "html", "HTML wallpapers"),
    ] {
        let shows = |entry: &&Registration| backends.kinds(entry).contains(&kind);
        if backends.available().iter().any(shows) {
            continue;
        }
        let fitting = REGISTRY
            .iter()
            .filter(|entry| backends.fits(entry))
            .filter(shows);
        let names: Vec<&str> = fitting.map(|entry| entry.name.as_str()).collect();
        if !names.is_empty() {
            let step = format!("optional: install {}", names.join(" or "));
            report.note(
                subject,
                format!("no installed program can show {what}"),
                Some(&step),
            );
        }
    }
}

/// Reports other programs that draw the background.
fn others(report: &mut Report, backends: &Backends, used: BackendName) {
    for (text, step) in backends.in_the_way(used) {
        report.fix("other", text, step);
    }
}
