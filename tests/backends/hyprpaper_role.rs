//! Stands in for hyprpaper of either dialect: strict about its file and its requests.

use std::collections::HashMap;
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
    let [flag, file] = &role.args[..] else {
        role.fail("wrong arguments")
    };
    if flag != "-c" {
        role.fail("wrong arguments");
    }
    if is_old {
        be_alone(role);
    }
    let text = fs::read_to_string(file).unwrap_or_else(|_| role.fail("no such config"));
    let mut shown = Shown::new(role.notes.join("hyprpaper-shown"));
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
    role.note("hyprpaper-pids", &std::process::id().to_string());
    role.note("hyprpaper-files", &text.replace('\n', "|"));
    for stream in listener.incoming().flatten() {
        let mut request = String::new();
        (&stream).read_to_string(&mut request).unwrap();
        if is_old && !request.is_empty() {
            role.note("hyprpaper-requests", &request);
            (&stream)
                .write_all(shown.answer_old(role, &request).as_bytes())
                .ok();
        }
    }
}

/// Versions before 0.8 look for other instances, and leave their PIDs behind.
fn be_alone(role: &Role) {
    let lock = role.runtime().join("hyprpaper.lock");
    let other = fs::read_to_string(&lock).unwrap_or_default();
    if !other.is_empty() && Path::new("/proc").join(other).exists() {
        role.fail("[CRITICAL] Cannot launch multiple instances of Hyprpaper at once!");
    }
    fs::write(lock, std::process::id().to_string()).unwrap();
}

/// The state of hyprpaper.
struct Shown {
    /// A file with lines of an output and a path, which the stand-in for hyprctl reads too.
    list: PathBuf,
    /// The files that a version before 0.8 has loaded.
    loaded: Vec<String>,
    /// The drawn files by link target, each with its fit: a drawn file is not drawn again. All outputs
    /// have one size here.
    drawn: HashMap<String, String>,
}

impl Shown {
    fn new(list: PathBuf) -> Self {
        fs::remove_file(&list).ok();
        Self {
            list,
            loaded: Vec::new(),
            drawn: HashMap::new(),
        }
    }

    fn show(&self, role: &Role, output: &str, path: &str) {
        if role.cue() == "lie" {
            return;
        }
        let known = fs::read_to_string(&self.list).unwrap_or_default();
        let mark = format!("{output}: ");
        let mut lines: Vec<&str> = known
            .lines()
            .filter(|line| !line.starts_with(&mark))
            .collect();
        let line = format!("{mark}{path}");
        lines.push(&line);
        fs::write(&self.list, lines.join("\n") + "\n").unwrap();
    }

    fn read_new(&self, role: &Role, text: &str) {
        let mut output = "";
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            match line
                .split_once('=')
                .map(|(key, value)| (key.trim(), value.trim()))
            {
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

    /// Versions before 0.8 go on after lines that they cannot read.
    fn read_old(&mut self, role: &Role, text: &str) {
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            match line
                .split_once('=')
                .map(|(key, value)| (key.trim(), value.trim()))
            {
                _ if line.starts_with('#') => {}
                Some(("preload", path)) => self.loaded.push(path.to_owned()),
                Some(("wallpaper", value)) => drop(self.draw_old(role, value)),
                Some(("splash" | "ipc", _)) => {}
                _ => eprintln!("Config error in file x: config option <{line}> does not exist."),
            }
        }
        let known = fs::read_to_string(&self.list).unwrap_or_default();
        if !known.contains("HEADLESS-1: ") {
            eprintln!(
                "[WARN] Monitor HEADLESS-1 does not have a target! A wallpaper will not be created."
            );
        }
    }

    fn draw_old(&mut self, role: &Role, value: &str) -> Result<(), &'static str> {
        let (output, rest) = value.split_once(',').unwrap();
        let (fit, path) = rest.split_once(':').unwrap_or(("cover", rest));
        if !Path::new(path).is_file() {
            return Err("wallpaper failed (no such file)");
        }
        if !self.loaded.iter().any(|loaded| loaded == path) {
            return Err("wallpaper failed (not preloaded)");
        }
        self.show(role, output, path);
        if role.cue() != "lie" {
            let file = leads_to(path);
            let fit = self.drawn.entry(file.clone()).or_insert(fit.to_owned());
            role.note("hyprpaper-seen", &format!("{output} {fit}"));
            eprintln!("[LOG] Image data for {output}: {file} at [-0.00, 0.00], scale: 10.00");
        }
        Ok(())
    }

    fn answer_old(&mut self, role: &Role, request: &str) -> String {
        let done = match request.split_once(' ') {
            Some(("preload", path)) if !Path::new(path).is_file() => Err("no such file"),
            Some(("preload", path)) => {
                self.loaded.push(path.to_owned());
                Ok(())
            }
            Some(("unload", path)) => {
                self.loaded.retain(|loaded| loaded != path);
                // The entry is removed by its own name, not by that of the link's target.
                self.drawn.remove(path);
                Ok(())
            }
            Some(("wallpaper", value)) => self.draw_old(role, value),
            None if request == "listactive" => {
                let known = fs::read_to_string(&self.list);
                return known.map_or("no wallpapers active".to_owned(), |k| {
                    k.replace(": ", " = ")
                });
            }
            _ => Err("invalid command"),
        };
        done.map_or_else(str::to_owned, |()| "ok".to_owned())
    }
}

/// The name of a loaded link: versions before 0.8 resolve one link, and leave further ones to the
/// kernel.
fn leads_to(path: &str) -> String {
    let target = fs::read_link(path).map(|target| Path::new(path).parent().unwrap().join(target));
    target.map_or_else(
        |_| path.to_owned(),
        |target| target.to_str().unwrap().to_owned(),
    )
}
