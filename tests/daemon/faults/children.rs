//! Tests backends that misbehave: they flood their logs, leave children behind, or exit without
//! drawing. The client gets an error, others are served, and none of their processes and files
//! stay.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::plain;
use crate::desktop::{Desktop, wait_until};
use crate::support::TestDaemon;
use crate::support::bystander::Bystander;

/// Ways in which the stub of swaybg misbehaves. The processes that it starts write down their PIDs.
const MOODS: &[(&str, &str)] = &[
    ("flood", "exec yes 'and so on, and so on, and so on'"),
    (
        "fork",
        "sleep 600 & echo $! >>\"$PIDS\"; sleep 600 & echo $! >>\"$PIDS\"; exit 0",
    ),
    ("lie", "exit 0"),
];

/// Returns the size of all files below a directory in bytes.
fn size(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let of = |entry: fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => size(&entry.path()),
        meta => meta.map_or(0, |meta| meta.len()),
    };
    entries.map(of).sum()
}

#[test]
fn misbehaving_backends_affect_only_their_own_wallpaper() {
    let desktop = Desktop::wayland(&["320x240"]);
    let mut daemon = TestDaemon::on(&desktop);
    let (cue, pids) = (daemon.root().join("cue"), daemon.root().join("pids"));
    let real = desktop.output("which", &["swaybg"]);
    let moods: String = MOODS
        .iter()
        .map(|(mood, does)| format!("{mood}) {does} ;;\n"))
        .collect();
    let script = format!(
        "#!/bin/sh\nPIDS='{}'\ncase \"$1\" in -v|--version) exec '{real}' \"$@\" ;; esac\n\
         case $(cat '{}' 2>/dev/null) in\n{moods}esac\nexec '{real}' \"$@\"\n",
        pids.display(),
        cue.display()
    );
    daemon.stub("swaybg", &script);
    daemon.configure("[backend]\ntype = \"swaybg\"\n[backend.builtin]\nenabled = false\n");
    daemon.start();
    let [red, green] = [("red.png", [200, 30, 30]), ("green.png", [30, 180, 60])]
        .map(|(name, color)| daemon.import(&[&plain(&daemon, name, color)])[0]);
    let (client, runtime) = (daemon.client(), desktop.var("XDG_RUNTIME_DIR").unwrap());
    let set = |id: i64| client.post("/wallpaper/set", &json!({ "image_id": id }));
    for (mood, _) in MOODS {
        set(red).ok();
        fs::write(&cue, mood).unwrap();
        let bystander = Bystander::beside(&daemon, Some(green));
        let refused = set(green).fails(500);
        bystander.end(&format!("a setter that would {mood}"));
        assert!(
            refused["details"].as_str().unwrap().contains("swaybg"),
            "{mood}: {refused}"
        );
        fs::remove_file(&cue).unwrap();
        let left = || {
            let pids = fs::read_to_string(&pids).unwrap_or_default();
            pids.lines()
                .filter(|pid| Path::new("/proc").join(pid).exists())
                .count()
        };
        wait_until(&format!("the end of those that {mood}"), || left() == 0);
        // The directory is in memory, so a flood must not leave much there.
        wait_until("short logs", || size(Path::new(runtime)) < 4 << 20);
        set(green).ok();
    }
    daemon.ends_well();
}
