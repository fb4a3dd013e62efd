//! Provides programs that stand in for backends: strict about what they get, and failing on cue.
//!
//! Each is a script in a directory of `PATH` that notes its arguments and then runs this test program
//! again, in the role of its name. Files `cue-NAME` say what it should do wrong.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::desktop::Desktop;
use crate::wall::Wall;

/// A wall whose only backends are stand-ins, and the directory of their notes.
pub struct Stubs {
    pub wall: Wall,
    pub notes: PathBuf,
}

const PROGRAMS: [&str; 7] = [
    "awww",
    "awww-daemon",
    "feh",
    "hyprctl",
    "hyprpaper",
    "mpvpaper",
    "wal-qt-host",
];

impl Stubs {
    pub fn new(outputs: &[&str]) -> Self {
        Self::on(Desktop::wayland(outputs), outputs.len())
    }

    pub fn on(desktop: Desktop, outputs: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_owned();
        let (bin, notes) = (root.join("bin"), root.join("notes"));
        for path in [&bin, &notes, &root.join("run/hypr/sig"), &root.join("home")] {
            fs::create_dir_all(path).unwrap();
        }
        fs::create_dir_all(notes.join("calls")).unwrap();
        for name in PROGRAMS {
            let path = bin.join(name);
            fs::write(&path, script(name, &notes, &root.join("run"))).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::write(notes.join("outputs"), "HEADLESS-1\nHEADLESS-2\n").unwrap();
        let env = murald::internals::paths::Env::new(move |name| match name {
            "HOME" => Some(root.join("home").into()),
            "PATH" => Some(root.join("bin").into()),
            "XDG_RUNTIME_DIR" => Some(root.join("run").into()),
            "HYPRLAND_INSTANCE_SIGNATURE" => Some("sig".into()),
            _ => None,
        });
        let wall = Wall::with(desktop, outputs, dir, env);
        Self { wall, notes }
    }

    pub fn root(&self) -> &Path {
        self.wall.dir.path()
    }

    /// Sets what a program does wrong from now on; nothing if empty.
    pub fn cue(&self, name: &str, what: &str) {
        fs::write(self.notes.join(format!("cue-{name}")), what).unwrap();
    }

    /// The arguments of all calls of a program, in order.
    pub fn calls(&self, name: &str) -> Vec<Vec<String>> {
        let entries = fs::read_dir(self.notes.join("calls")).unwrap().flatten();
        let of_it = |path: &PathBuf| path.file_stem().is_some_and(|stem| stem == name);
        let mut paths: Vec<PathBuf> = entries.map(|e| e.path()).filter(of_it).collect();
        paths.sort_by_key(|path| fs::metadata(path).unwrap().modified().unwrap());
        paths.iter().map(|path| words(path)).collect()
    }

    pub fn forget_calls(&self) {
        for entry in fs::read_dir(self.notes.join("calls")).unwrap().flatten() {
            fs::remove_file(entry.path()).unwrap();
        }
    }

    /// The lines of a note.
    pub fn note(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.notes.join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

/// The text of a program that stands in for `name`; `notes` has a directory `calls`.
pub fn script(name: &str, notes: &Path, runtime: &Path) -> String {
    format!(
        "#!/bin/sh\nexport STUB_NOTES='{}' STUB_NAME={name} XDG_RUNTIME_DIR='{}'\n\
         STUB_ARGS=$(mktemp '{}/calls/{name}.XXXXXXXX'); export STUB_ARGS\n\
         for arg; do printf '%s\\0' \"$arg\"; done >\"$STUB_ARGS\"\n{}exec '{}' \
         --exact stub::play --nocapture --test-threads=1\n",
        notes.display(),
        runtime.display(),
        notes.display(),
        shell_role(name),
        std::env::current_exe().unwrap().display()
    )
}

fn words(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    text.split_terminator('\0').map(str::to_owned).collect()
}

/// The shell plays the roles that only read their arguments, so that the output is theirs alone.
fn shell_role(name: &str) -> &'static str {
    match name {
        "awww" => AWWW,
        "awww-daemon" => AWWW_DAEMON,
        "feh" => FEH,
        "hyprctl" => HYPRCTL,
        _ => "",
    }
}

const AWWW_DAEMON: &str = r#"
cue=$(cat "$STUB_NOTES/cue-awww-daemon" 2>/dev/null)
for arg; do
  case $arg in
  --no-cache | --format | argb | abgr | rgb | bgr) ;;
  *) echo "error: unexpected argument '$arg' found" >&2; exit 2 ;;
  esac
done
while read -r output; do rm -f "$STUB_NOTES/awww-$output"; done <"$STUB_NOTES/outputs"
case $cue in
die) echo 'failed to connect to wayland' >&2; exit 1 ;;
hang) ;;
late) { sleep 0.4; echo $$ >"$STUB_NOTES/awww-up"; } & ;;
*) echo $$ >"$STUB_NOTES/awww-up" ;;
esac
# It removes what lies where it had its socket, whoever made that.
trap 'rm -f "$STUB_NOTES/awww-up"; exit 0' TERM
trap 'echo "[ERROR] WAYLAND PROTOCOL ERROR: object: 21, code: 0, message: Unsupported format" >&2
  echo "[INFO] Goodbye!" >&2; rm -f "$STUB_NOTES/awww-up"; exit 0' USR1
while [ -d "$STUB_NOTES" ]; do sleep 0.05; done
"#;

const AWWW: &str = r#"
cue=$(cat "$STUB_NOTES/cue-awww" 2>/dev/null)
case $cue in
hang) exec sleep 1000 ;;
garbage) head -c 3000 /dev/urandom; exit 0 ;;
esac
kill -0 "$(cat "$STUB_NOTES/awww-up" 2>/dev/null)" 2>/dev/null || {
  echo 'Error: "Socket file not found. Are you sure awww-daemon is running?"' >&2; exit 1
}
refuse() { printf 'error: %s\n\nFor more information, try %s.\n' "$1" "'--help'" >&2; exit 2; }
case $1 in
query)
  while read -r output; do
    shown=$(cat "$STUB_NOTES/awww-$output" 2>/dev/null || echo 'color: 000000')
    geometry=$(cat "$STUB_NOTES/geometry-$output" 2>/dev/null || echo '640x480, scale: 1')
    echo ": $output: $geometry, currently displaying: $shown"
  done <"$STUB_NOTES/outputs" ;;
img)
  shift
  outputs=
  while [ $# -gt 0 ]; do
    case $1 in
    --invert-y) shift; continue ;;
    --) shift; break ;;
    --*=*) flag=${1%%=*} value=${1#*=}; shift ;;
    --*)
      [ $# -ge 2 ] || refuse "a value is required for '$1'"
      case $2 in -*) refuse "unexpected argument '${2%"${2#??}"}' found" ;; esac
      flag=$1 value=$2; shift 2 ;;
    *) break ;;
    esac
    case "$flag $value" in
    '--outputs '*) outputs=$value ;;
    '--resize no' | '--resize crop' | '--resize fit' | '--resize stretch') ;;
    '--fill-color #'*) refuse "invalid value '$value' for '--fill-color'" ;;
    '--fill-color '*) ;;
    '--filter Nearest' | '--filter Bilinear' | '--filter CatmullRom' | '--filter Mitchell' | '--filter Lanczos3') ;;
    '--transition-bezier 0,0,0,0') refuse 'Invalid bezier curve: 0,0,0,0' ;;
    '--transition-bezier '*' '* | '--transition-wave '*' '*)
      refuse "invalid value '$value' for '$flag': invalid float literal" ;;
    '--transition-step 0') refuse 'number would be zero for non-zero type' ;;
    '--transition-type '* | '--transition-step '* | '--transition-duration '* | '--transition-fps '*) ;;
    '--transition-angle '* | '--transition-pos '* | '--transition-bezier '* | '--transition-wave '*) ;;
    *) refuse "unexpected argument '$flag' found" ;;
    esac
  done
  [ $# -eq 1 ] || refuse 'exactly one image'
  [ -e "$1" ] || refuse "invalid value '$1' for '<IMAGE>': Path '$1' does not exist"
  case $cue in
  fail) echo 'Error: "it went wrong"' >&2; exit 1 ;;
  crash) rm "$STUB_NOTES/cue-awww"; kill -9 "$(cat "$STUB_NOTES/awww-up")"; exit 1 ;;
  usage) refuse "unexpected argument '--new' found" ;;
  undecodable) echo 'Error: "failed to decode image: unexpected end of file"' >&2; exit 1 ;;
  esac
  if [ "$(cat "$STUB_NOTES/cue-awww-daemon" 2>/dev/null)" = unsupported ]; then
    kill -USR1 "$(cat "$STUB_NOTES/awww-up")"
    while [ -e "$STUB_NOTES/awww-up" ]; do sleep 0.01; done
    exit 0
  fi
  known=
  for output in $(echo "$outputs" | tr , ' '); do
    grep -Fqx -- "$output" "$STUB_NOTES/outputs" || continue
    known=1
    # It hears of another size while the picture is on its way, which it then does not draw.
    if [ -e "$STUB_NOTES/next-geometry-$output" ]; then
      mv "$STUB_NOTES/next-geometry-$output" "$STUB_NOTES/geometry-$output"
    fi
    [ "$cue" = deaf ] || printf 'image: %s\n' "$(readlink -f -- "$1")" >"$STUB_NOTES/awww-$output"
  done
  [ -n "$known" ] || { echo 'Error: none of the requested outputs are valid' >&2; exit 1; } ;;
*) refuse "unrecognized subcommand '$1'" ;;
esac
exit 0
"#;

const FEH: &str = r#"
refuse() { echo "feh ERROR: $1" >&2; exit 1; }
[ "$1" = --no-fehbg ] || refuse 'it would write ~/.fehbg'
case $2 in
--bg-fill | --bg-scale | --bg-tile | --bg-center | --bg-max) ;;
*) refuse "unrecognized option '$2'" ;;
esac
case "$3 $4" in
"--image-bg #"[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]) ;;
*) refuse "unrecognized option '$3 $4'" ;;
esac
[ "$5" = -- ] && [ $# -ge 6 ] || refuse 'no files'
shift 5
for file; do
  [ -f "$file" ] || echo "feh WARNING: $file - File does not exist" >&2
done
exit 0
"#;

const HYPRCTL: &str = r#"
cue=$(cat "$STUB_NOTES/cue-hyprctl" 2>/dev/null)
[ "$cue" != hang ] || exec sleep 1000
fail() { echo "$1"; exit 1; }
[ "$HYPRLAND_INSTANCE_SIGNATURE" = sig ] || fail 'HYPRLAND_INSTANCE_SIGNATURE not set!'
[ "$1" = hyprpaper ] || fail 'unknown request'
[ -S "$XDG_RUNTIME_DIR/hypr/sig/.hyprpaper.sock" ] || fail "Couldn't connect to hyprpaper"
[ "$cue" != refuse ] || fail 'it will not'
if [ "$cue" = crash ]; then
  rm "$STUB_NOTES/cue-hyprctl"
  kill -9 "$(tail -n 1 "$STUB_NOTES/hyprpaper-pids")"
  fail "Couldn't read (6)"
fi
shown=$STUB_NOTES/hyprpaper-shown
if [ "$2" = listactive ]; then
  cat "$shown" 2>/dev/null
  exit 0
fi
[ "$2" = wallpaper ] || fail 'unknown request'
[ $# -eq 3 ] || fail 'not enough args'
output=${3%%,*} rest=${3#*,}
path=${rest%,*} fit=${rest##*,}
grep -Fqx -- "$output" "$STUB_NOTES/outputs" || fail 'invalid monitor'
case $path in /*) ;; *) fail 'invalid path' ;; esac
[ -f "$path" ] || fail 'invalid path'
case $fit in cover | contain | tile) ;; *) fail 'invalid fit mode' ;; esac
[ "$cue" != lie ] || exit 0
{ grep -v "^$output: " "$shown"; echo "$output: $path"; } >"$shown.new"
mv "$shown.new" "$shown"
exit 0
"#;

/// Plays the roles that are written in Rust. Without a role it is a test: it plays the first of them,
/// which has to reject wrong arguments.
#[test]
fn play() {
    let Some(name) = std::env::var_os("STUB_NAME") else {
        return roles_are_strict();
    };
    let role = Role::new(name.to_str().unwrap());
    match role.name.as_str() {
        "hyprpaper" => crate::hyprpaper_role::play(&role),
        "mpvpaper" => mpvpaper(&role),
        "wal-qt-host" => crate::wal_qt::play(&role),
        other => panic!("no such role: {other}"),
    }
}

fn roles_are_strict() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("calls")).unwrap();
    for (name, args, said) in [
        ("hyprpaper", &["--config", "x"][..], "wrong arguments"),
        ("hyprpaper", &["-c", "/does/not/exist"], "no such config"),
        ("mpvpaper", &["-f", "DP-1", "x"], "invalid option -f"),
        ("mpvpaper", &["DP-1"], "Not enough args"),
        ("wal-qt-host", &["--help"], "it takes no arguments"),
        ("awww-daemon", &["--no-such"], "unexpected argument"),
    ] {
        let path = dir.path().join(name);
        fs::write(&path, script(name, dir.path(), dir.path())).unwrap();
        let output = std::process::Command::new("sh")
            .arg(&path)
            .args(args)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && errors.contains(said),
            "{name} {args:?}: {errors}"
        );
    }
}

/// A role and its inputs.
pub struct Role {
    pub name: String,
    pub notes: PathBuf,
    pub args: Vec<String>,
}

impl Role {
    fn new(name: &str) -> Self {
        let args = words(Path::new(&std::env::var_os("STUB_ARGS").unwrap()));
        let notes = std::env::var_os("STUB_NOTES").unwrap().into();
        Self {
            name: name.to_owned(),
            notes,
            args,
        }
    }

    pub fn cue(&self) -> String {
        fs::read_to_string(self.notes.join(format!("cue-{}", self.name))).unwrap_or_default()
    }

    /// Removes the cue, so that it counts only once.
    pub fn spend_cue(&self) {
        fs::remove_file(self.notes.join(format!("cue-{}", self.name))).unwrap();
    }

    pub fn runtime(&self) -> PathBuf {
        std::env::var_os("XDG_RUNTIME_DIR").unwrap().into()
    }

    /// Writes a line to a note.
    pub fn note(&self, name: &str, line: &str) {
        let mut options = fs::OpenOptions::new();
        let mut file = options
            .append(true)
            .create(true)
            .open(self.notes.join(name))
            .unwrap();
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    pub fn fail(&self, why: &str) -> ! {
        eprintln!("{}: {why}", self.name);
        std::process::exit(1)
    }

    /// Hangs for ever.
    pub fn hang(&self) -> ! {
        loop {
            std::thread::park();
        }
    }

    /// Fails as the cue says, before anything is ready.
    pub fn mishap(&self) {
        match self.cue().as_str() {
            "die" => self.fail("something is missing"),
            "hang" => self.hang(),
            "late" => std::thread::sleep(Duration::from_millis(400)),
            _ => {}
        }
    }
}

fn mpvpaper(role: &Role) {
    let mut args = role.args.iter().map(String::as_str);
    let mut rest = Vec::new();
    let mut options = "";
    while let Some(arg) = args.next() {
        match arg {
            "-v" | "-vv" | "-p" | "-s" => {}
            "-n" | "-l" => drop(
                args.next()
                    .unwrap_or_else(|| role.fail("a value is missing")),
            ),
            "-o" => {
                options = args
                    .next()
                    .unwrap_or_else(|| role.fail("a value is missing"))
            }
            other if other.starts_with('-') => role.fail(&format!("invalid option {other}")),
            other => rest.push(other),
        }
    }
    let [_, file] = rest[..] else {
        role.fail("Not enough args passed")
    };
    role.mishap();
    if broken(file) {
        // Like the real one, it hangs before it has a surface, and ignores SIGTERM.
        let heard = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(signal_hook::consts::SIGTERM, heard).unwrap();
        role.note("mpvpaper-deaf", file);
        role.hang();
    }
    let socket = options
        .split(' ')
        .find_map(|option| option.strip_prefix("input-ipc-server="));
    let socket = socket.unwrap_or_else(|| role.fail("no socket"));
    fs::remove_file(socket).ok();
    let listener = UnixListener::bind(socket).unwrap();
    let plays = Mutex::new(file.to_owned());
    let paused = Arc::new(AtomicBool::new(false));
    let mut sound = json!({ "aid": 1, "mute": false, "volume": 100.0 });
    for option in options.split(' ') {
        match option.split_once('=') {
            None if option == "no-audio" => sound["aid"] = false.into(),
            Some(("aid", track)) => {
                sound["aid"] = if track == "no" {
                    false.into()
                } else {
                    1.into()
                };
            }
            Some(("volume", percent)) => sound["volume"] = percent.parse::<f64>().unwrap().into(),
            _ => {}
        }
    }
    let sound = Mutex::new(sound);
    std::thread::scope(|scope| {
        if role.args.iter().any(|arg| arg == "-s") {
            scope.spawn(|| stop_when_hidden(role));
        }
        for stream in listener.incoming() {
            scope.spawn(|| mpv_client(role, stream.unwrap(), (&plays, &sound), &paused));
        }
    });
}

/// On the cue `hidden`, becomes another program, which becomes this one again once the cue ends.
fn stop_when_hidden(role: &Role) {
    while role.cue() != "hidden" {
        std::thread::sleep(Duration::from_millis(10));
    }
    let holder = role.notes.join("mpvpaper-holder");
    // A program that runs cannot be overwritten.
    if !holder.exists() {
        fs::copy("/bin/sh", &holder).unwrap();
    }
    let waits =
        "while grep -q hidden \"$STUB_NOTES/cue-mpvpaper\"; do sleep 0.02; done; exec \"$@\"";
    let again = std::env::args_os();
    let error = std::process::Command::new(holder)
        .args(["-c", waits, "holder"])
        .args(again)
        .exec();
    role.fail(&error.to_string());
}

fn broken(file: &str) -> bool {
    fs::read(file).is_ok_and(|bytes| bytes.ends_with(b"broken"))
}

/// Serves a client of mpv's socket. Answers and events are sent as whole lines.
fn mpv_client(
    role: &Role,
    stream: UnixStream,
    (plays, sound): (&Mutex<String>, &Mutex<Value>),
    paused: &Arc<AtomicBool>,
) {
    let lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let say = |what: Value| (&stream).write_all(format!("{what}\n").as_bytes()).is_ok();
    let mut refused = false;
    for line in lines.map_while(Result::ok) {
        let asked: Value = serde_json::from_str(&line).unwrap_or_else(|_| role.fail("no JSON"));
        let command: Vec<&str> = asked["command"]
            .as_array()
            .unwrap()
            .iter()
            .map(|w| w.as_str().unwrap_or(""))
            .collect();
        let answer = |data: Value| json!({ "request_id": asked["request_id"], "error": "success", "data": data });
        match (role.cue().as_str(), &command[..]) {
            ("silent", _) => continue,
            ("garbage", _) => {
                if !say(json!("what?")) {
                    return;
                }
                continue;
            }
            ("break", _) | ("break-pause", ["set_property", ..]) => return,
            _ => {}
        }
        match &command[..] {
            ["loadfile", file, how] => {
                say(answer(Value::Null));
                let replaces = *how == "replace";
                if replaces {
                    say(json!({ "event": "end-file", "reason": "stop" }));
                } else if !refused {
                    continue;
                }
                role.note("mpvpaper-loads", file);
                refused = broken(file) || !Path::new(file).is_file();
                if refused {
                    let error = "unrecognized file format";
                    say(json!({ "event": "end-file", "reason": "error", "file_error": error }));
                    if role.cue() == "end" {
                        std::process::exit(0);
                    }
                } else {
                    say(json!({ "event": "start-file" }));
                    say(json!({ "event": "file-loaded" }));
                    *plays.lock().unwrap() = (*file).to_owned();
                }
            }
            ["get_property", "path"] => drop(say(answer(json!(*plays.lock().unwrap())))),
            ["get_property", "pause"] => drop(say(answer(json!(paused.load(Ordering::SeqCst))))),
            ["set_property", "pause", _] => {
                let pause = asked["command"][2].as_bool().unwrap();
                paused.store(pause, Ordering::SeqCst);
                // The output is the last argument but one.
                let output = &role.args[role.args.len() - 2];
                role.note("mpvpaper-pauses", &format!("{output} {pause}"));
                if role.cue() == "pause-unsaid" {
                    return;
                }
                say(answer(Value::Null));
            }
            ["get_property", "track-list"] => {
                let output = &role.args[role.args.len() - 2];
                let mute = role.cue() == format!("mute {output}");
                let tracks = if mute {
                    &["video"][..]
                } else {
                    &["video", "audio"]
                };
                let tracks = tracks.iter().map(|kind| json!({ "type": kind }));
                say(answer(tracks.collect()));
            }
            ["get_property", name @ ("aid" | "mute" | "volume")] => {
                say(answer(sound.lock().unwrap()[*name].clone()));
            }
            ["set_property", name @ ("aid" | "mute" | "volume"), _] => {
                let value = asked["command"][2].clone();
                sound.lock().unwrap()[*name] = if value == "auto" { json!(1) } else { value };
                say(answer(Value::Null));
            }
            ["playlist-remove", _] => drop(say(answer(Value::Null))),
            ["observe_property", _, name] => {
                say(answer(Value::Null));
                match *name {
                    "time-pos" => play_video(role, stream.try_clone().unwrap(), paused),
                    "frame-drop-count" => {}
                    "pause" => drop(say(property(name, json!(paused.load(Ordering::SeqCst))))),
                    _ => drop(say(property(name, json!(*name == "vo-configured")))),
                }
            }
            _ => role.fail(&format!("unknown command: {line}")),
        }
    }
}

fn property(name: &str, data: Value) -> Value {
    json!({ "event": "property-change", "name": name, "data": data })
}

/// Reports frames while a client listens, except during a pause, and reports pauses. On the cue `dark`
/// all frames are dropped, as if the output were off; only there if the cue names an output.
fn play_video(role: &Role, mut stream: UnixStream, paused: &Arc<AtomicBool>) {
    let (cue, paused) = (role.notes.join("cue-mpvpaper"), Arc::clone(paused));
    let output = role.args[role.args.len() - 2].clone();
    let is_dark = move |cue: &str| {
        let dark = cue.strip_prefix("dark");
        cue == "hidden" || dark.is_some_and(|on| on.is_empty() || on.trim() == output)
    };
    std::thread::spawn(move || {
        let mut dropped = 1;
        let mut stood_still = paused.load(Ordering::SeqCst);
        for frame in 0.. {
            let stands_still = paused.load(Ordering::SeqCst);
            let mut say = |what: Value| stream.write_all(format!("{what}\n").as_bytes());
            if stands_still != stood_still && say(property("pause", json!(stands_still))).is_err() {
                return;
            }
            stood_still = stands_still;
            if stands_still {
                std::thread::sleep(Duration::from_millis(10));
                continue;
            }
            let at = property("time-pos", json!(f64::from(frame) * 0.04));
            let lost = property("frame-drop-count", json!(dropped));
            if say(at).and_then(|()| say(lost)).is_err() {
                return;
            }
            dropped += i32::from(fs::read_to_string(&cue).is_ok_and(|cue| is_dark(&cue)));
            std::thread::sleep(Duration::from_millis(10));
        }
    });
}
