//! What stands in for hyprpaper, of either dialect: strict about its file and its requests.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use crate::stub::Role;

pub fn play(role: &Role) {
    let is_old = role.notes.join("hyprpaper-old").exists();
    match &role.args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--version"] if role.cue() == "late-version" => role.hang(),
        ["--version"] if !is_old => {
            eprintln!("hyprpaper v0.8.4");
            std::process::exit(0);
        }
        ["--version" | "--help"] => {
            eprintln!("[LOG] Welcome to hyprpaper!\nbuilt from commit  ()\nHyprpaper usage:");
            eprintln!("--no-fractional -n | Disable fractional scaling support");
            std::process::exit(i32::from(role.args == ["--version"]));
        }
        _ => {}
    }
    let [flag, file] = &role.args[..] else { role.fail("wrong arguments") };
    if flag != "-c" {
        role.fail("wrong arguments");
    }
    let text = fs::read_to_string(file).unwrap_or_else(|_| role.fail("no such config"));
    let shown = Shown(role.notes.join("hyprpaper-shown"));
    fs::remove_file(&shown.0).ok();
    if is_old {
        shown.read_old(role, &text)
    } else {
        shown.read_new(role, &text)
    }
    role.mishap();
    let directory = role.runtime().join("hypr/sig");
    if role.cue() == "late-directory" {
        fs::create_dir_all(&directory).unwrap();
    }
    let socket = directory.join(".hyprpaper.sock");
    fs::remove_file(&socket).ok();
    let listener = UnixListener::bind(socket).unwrap();
    role.note("hyprpaper-files", &text.replace('\n', "|"));
    for stream in listener.incoming().flatten() {
        let mut request = String::new();
        (&stream).read_to_string(&mut request).unwrap();
        if is_old && !request.is_empty() {
            role.note("hyprpaper-requests", &request);
            (&stream).write_all(shown.answer_old(role, &request).as_bytes()).ok();
        }
    }
}

/// What hyprpaper shows: lines of an output and a path, where hyprctl finds it too.
struct Shown(PathBuf);

impl Shown {
    fn show(&self, role: &Role, output: &str, path: &str) {
        if role.cue() == "lie" {
            return;
        }
        let known = fs::read_to_string(&self.0).unwrap_or_default();
        let mark = format!("{output}: ");
        let mut lines: Vec<&str> = known.lines().filter(|line| !line.starts_with(&mark)).collect();
        let line = format!("{mark}{path}");
        lines.push(&line);
        fs::write(&self.0, lines.join("\n") + "\n").unwrap();
    }

    fn read_new(&self, role: &Role, text: &str) {
        let mut output = "";
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            match line.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
                _ if line.starts_with('#') => {}
                Some(("monitor", name)) => output = name,
                Some(("path", path)) if !Path::new(path).is_file() => {
                    eprintln!("ERR ]: Failed to resolve path {path}: no such file");
                }
                Some(("path", path)) => self.show(role, output, path),
                Some(("splash" | "ipc" | "fit_mode", _)) => {}
                None if line == "wallpaper {" || line == "}" => {}
                _ => role.fail(&format!("config error: {line}")),
            }
        }
    }

    /// It goes on whatever it cannot read.
    fn read_old(&self, role: &Role, text: &str) {
        let mut loaded = Vec::new();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            match line.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
                _ if line.starts_with('#') => {}
                Some(("preload", path)) => loaded.push(path),
                Some(("wallpaper", value)) => {
                    let (output, path) = old_value(value);
                    if loaded.contains(&path) {
                        self.draw_old(role, output, path);
                    }
                }
                Some(("splash" | "ipc", _)) => {}
                _ => eprintln!("Config error in file x: config option <{line}> does not exist."),
            }
        }
        let known = fs::read_to_string(&self.0).unwrap_or_default();
        if !known.contains("HEADLESS-1: ") {
            eprintln!(
                "[WARN] Monitor HEADLESS-1 does not have a target! A wallpaper will not be created."
            );
        }
    }

    fn draw_old(&self, role: &Role, output: &str, path: &str) {
        self.show(role, output, path);
        if role.cue() != "lie" {
            let file = leads_to(path);
            eprintln!("[LOG] Image data for {output}: {file} at [-0.00, 0.00], scale: 10.00");
        }
    }

    fn answer_old(&self, role: &Role, request: &str) -> String {
        let failed = |what: &str| format!("{what} failed (no such file)");
        match request.split_once(' ') {
            Some((what @ ("preload" | "unload"), path)) if !Path::new(path).is_file() => {
                failed(what)
            }
            Some(("preload" | "unload", _)) => "ok".to_owned(),
            Some(("wallpaper", value)) => {
                let (output, path) = old_value(value);
                if !Path::new(path).is_file() {
                    return failed("wallpaper");
                }
                self.draw_old(role, output, path);
                "ok".to_owned()
            }
            None if request == "listactive" => match fs::read_to_string(&self.0) {
                Ok(known) => known.replace(": ", " = "),
                Err(_) => "no wallpapers active".to_owned(),
            },
            _ => "invalid command".to_owned(),
        }
    }
}

/// What a link is called once it is loaded: those before 0.8 read one, and leave the rest to the kernel.
fn leads_to(path: &str) -> String {
    let target = fs::read_link(path).map(|target| Path::new(path).parent().unwrap().join(target));
    target.map_or_else(|_| path.to_owned(), |target| target.to_str().unwrap().to_owned())
}

fn old_value(value: &str) -> (&str, &str) {
    let (output, path) = value.split_once(',').unwrap();
    (output, path.trim_start_matches("contain:").trim_start_matches("tile:"))
}
