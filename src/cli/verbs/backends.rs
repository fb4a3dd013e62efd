//! `murald backends` and `murald monitors`: monitors, and the programs that draw on them.

use super::super::Error;
use super::super::call::Call;
use super::super::connection::RequestPath;
use super::super::request::{Record, Request};
use super::super::stdout::Stdout;
use super::super::table::{Cell, CellStyle, Table};
use super::super::verb::{Argument, Group, Kind, Verb};
use crate::wire::{BackendInfo, Monitor};

pub(super) const GROUP: Group = Group {
    title: "Monitors and backends",
    verbs: &[
        Verb::new(&["monitors"], "List the connected monitors", monitors)
            .arguments(&[Argument::optional("NAME", Kind::Monitor, "Only this one")]),
        Verb::asking(&["backends"], "List the programs that can show wallpapers", BACKENDS),
        Verb::asking(&["backends", "activate"], "Use another of these programs", ACTIVATE)
            .arguments(&[Argument::one("NAME", Kind::Backend, "Its name")])
            .help("The wallpapers are shown anew by it; where that fails, the old one stays in use.\nIt is kept in the configuration, as backend.type."),
    ],
};

const BACKENDS: Request = Request::get("/backends").shows::<Vec<BackendInfo>>();
const ACTIVATE: Request =
    Request::post("/backends/{NAME}/activate", &[]).says("{backend} is the active backend");

fn monitors(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let connection = call.connect()?;
    if let Some(name) = call.text("NAME") {
        let answer = connection.get(&RequestPath::new(&[&"monitors", &name]))?;
        return stdout.show(&answer, |stdout, monitor: Monitor| table(stdout, &[monitor]));
    }
    let answer = connection.get(&RequestPath::new(&[&"monitors"]))?;
    stdout.show(&answer, |stdout, monitors: Vec<Monitor>| {
        if monitors.is_empty() {
            return stdout.note("no monitor is connected, or no compositor can be reached");
        }
        table(stdout, &monitors)
    })
}

fn table(stdout: &mut Stdout, monitors: &[Monitor]) -> Result<(), Error> {
    let titles = ["=NAME", "=SIZE", "=SCALE", "=AT", "DESCRIPTION", "=TURNED", "=HZ"];
    let mut table = Table::new(&titles);
    for monitor in monitors {
        let Monitor { width, height, x, y, scale, refresh_rate, .. } = monitor;
        let primary = if monitor.primary { "*" } else { "" };
        table.row([
            Cell::from(format!("{}{primary}", monitor.name)).raw(&monitor.name),
            format!("{width}x{height}").into(),
            scale.into(),
            format!("{x},{y}").into(),
            (&monitor.description).into(),
            turned(monitor.transform).into(),
            Cell::from(format!("{refresh_rate:.0}")).raw(refresh_rate),
        ]);
    }
    stdout.table(&table)
}

fn turned(transform: u8) -> &'static str {
    match transform {
        0 => "no",
        1 => "90°",
        2 => "180°",
        3 => "270°",
        4 => "flipped",
        5 => "flipped 90°",
        6 => "flipped 180°",
        _ => "flipped 270°",
    }
}

impl Record for Vec<BackendInfo> {
    fn show(self, _: &Call, stdout: &mut Stdout) -> Result<(), Error> {
        let mut table = Table::new(&["=NAME", "STATE", "SHOWS", "=ON", "=VERSION"]);
        for backend in self {
            table.row([
                (&backend.name).into(),
                state(&backend),
                shows(&backend).into(),
                backend.capabilities.compositors.join(", ").into(),
                backend.version.unwrap_or_default().into(),
            ]);
        }
        stdout.table(&table)
    }
}

fn shows(backend: &BackendInfo) -> String {
    let kinds = backend.capabilities.content_kinds.iter().map(|kind| match kind.as_str() {
        "static_image" => "images",
        "animated_image" => "animations",
        "video" => "videos",
        "web" => "HTML",
        other => other,
    });
    kinds.collect::<Vec<_>>().join(", ")
}

fn state(backend: &BackendInfo) -> Cell {
    match backend {
        BackendInfo { active: true, .. } => Cell::from("active").look(CellStyle::Good),
        BackendInfo { available: true, .. } => "available".into(),
        BackendInfo { installed: true, name, .. } if name == "hyprpaper" => {
            Cell::from("needs Hyprland").look(CellStyle::Dim)
        }
        BackendInfo { installed: true, settings, .. }
            if settings.get("enabled") == Some(&false.into()) =>
        {
            Cell::from("switched off").look(CellStyle::Dim)
        }
        BackendInfo { installed: true, .. } => {
            Cell::from("for another session").look(CellStyle::Dim)
        }
        _ if backend.missing.is_empty() => Cell::from("not installed").look(CellStyle::Dim),
        _ => Cell::from(format!("needs {}", backend.missing.join(", "))).look(CellStyle::Dim),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn backend_that_is_switched_off_is_not_for_another_session() {
        #[track_caller]
        fn check(enabled: bool, expected: &str) {
            let info = json!({
                "name": "builtin", "installed": true, "available": false, "active": false,
                "version": "1", "settings": {"enabled": enabled}, "missing": [], "conflicts": [],
                "capabilities": {"content_kinds": [], "compositors": [], "transitions": true},
            });
            let info = serde_json::from_value(info).unwrap();
            assert_eq!(state(&info), Cell::from(expected).look(CellStyle::Dim));
        }
        check(false, "switched off");
        check(true, "for another session");
    }
}
