//! `murald pick` and `murald migrate`: run scripts of `contrib`, which are part of the executable.
//!
//! A script calls this executable for each step, so it only needs what the command line offers.

use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Output, Stdio};

use serde_json::json;
use signal_hook::consts::SIGPIPE;

use super::filters::{self, FILTERS};
use super::{
    Argument, Call, Error, Exit, Flag, Kind, MONITORS, Stdout, Template, Verb, View, more, start,
    written,
};

const MENU_SCRIPT: &str = include_str!("../../../contrib/pick/murald-pick");
const MENUS: &[&str] = &["rofi", "fuzzel", "wofi", "fzf", "nsxiv"];
/// The template of a line on the script's standard input.
const LINE: &str = r"{id}\t{name}\t{checksum}\t{path}\t{thumbnails.default}";

#[rustfmt::skip]
pub(super) const PICK: Verb = Verb::own(&["pick"], "Choose an image in a menu and show it", pick)
    .takes(&[Argument::optional("MENU", Kind::Words(MENUS), "The menu")])
    .flags(joined!(FILTERS;
        MONITORS,
        Flag::value("--tag", "NAME", Kind::Text, "Add this tag to the chosen images instead"),
        Flag::value("--playlist", "NAME", Kind::Name,
            "Add the chosen images to this playlist instead; created if there is none"),
    ))
    .help("    murald pick --folder travel --tag sea\n\n\
           The default MENU is the first one that is installed and can be shown. With --tag and \
           --playlist, rofi (Shift+Enter), fzf (Tab) and nsxiv (m) mark several images. In nsxiv, m \
           marks an image and q ends.\n\
           Exits with 1 if nothing was chosen.");

/// The flags that say what happens to the chosen images; at most one can be given.
const PURPOSES: [&str; 3] = ["--monitor", "--tag", "--playlist"];

fn pick(call: &Call, _: &mut Stdout) -> Result<(), Error> {
    let given: Vec<&str> = PURPOSES.into_iter().filter(|flag| call.has(flag)).collect();
    if let [one, other, ..] = given[..] {
        return Err(Error::usage(format!(
            "{other} cannot be combined with {one}"
        )));
    }
    let connection = call.connect()?;
    let images = filters::by_name(call, &connection)?;
    if images.is_empty() {
        return Err(if filters::has_any(call) {
            Error::refused("no image matches")
        } else {
            Error::refused("the library is empty").hint("`murald import PATH` imports images")
        });
    }
    let line = Template::parse(LINE)?;
    let mut list = String::new();
    for image in &images {
        list.push_str(&line.line(image)?);
        list.push('\n');
    }
    let failed = |error| Error::new(Exit::Internal, "the menu cannot be shown").because(error);
    let mut command = start::command("sh");
    command
        .args(["-c", MENU_SCRIPT, "murald-pick"])
        .env("MURALD_PICK_STDIN", "1")
        .stdin(Stdio::piped());
    command.env("MURALD", std::env::current_exe().map_err(failed)?);
    command.env("MURALD_SOCKET", connection.socket());
    for flag in given {
        // The script gives a list of monitors to `murald set`.
        command.args([flag, &written(&json!(call.all(flag)))]);
    }
    command.args(call.text("MENU"));
    let mut script = command.spawn().map_err(failed)?;
    if let Some(mut pipe) = script.stdin.take() {
        // The write fails if the script has ended; then its exit status is an error, too.
        pipe.write_all(list.as_bytes()).ok();
    }
    match script.wait().map_err(failed)?.code() {
        Some(0) => Ok(()),
        // The script has printed the reason, or nothing was picked.
        Some(130) => Err(Error::new(Exit::Interrupted, String::new())),
        _ => Err(Error::refused(String::new())),
    }
}

const MIGRATE_SCRIPT: &str = include_str!("../../../contrib/migrate/murald-migrate");
const PAGE: &str = include_str!("../../../man/murald-migrate.7");
/// The first four have a configuration to read. For the others, the manual page lists the commands.
const PROGRAMS: &[&str] = &[
    "wpaperd",
    "waypaper",
    "variety",
    "waypaper-engine",
    "awww",
    "swww",
    "swaybg",
    "feh",
    "hyprpaper",
];

pub(super) const MIGRATE: Verb =
    Verb::own(&["migrate"], "Import settings from another wallpaper program", migrate)
        .shows(&[&View::new("", &[more("kind subject text state")])])
        .takes(&[Argument::one("PROGRAM", Kind::Words(PROGRAMS), "The program")])
        .flags(&[
            Flag::value("--from", "FILE", Kind::File,
                "The program's configuration, if not in the usual place"),
            Flag::switch("--dry-run", "Only show what would be done"),
        ])
        .help(
            "    murald migrate variety --dry-run\n\n\
             Reads the configuration of wpaperd, waypaper, variety or Waypaper Engine and prints a line\n\
             for each step: a watched directory, a playlist, a tag, a setting, or why something is\n\
             skipped. Settings that already match are reported `as before`; it is safe to run this\n\
             again. For the other programs it prints their commands beside murald's, as\n\
             murald-migrate(7) does.\n\n\
             The other program's files are not changed, and neither is the wallpaper: playlists are\n\
             created but not started. Existing playlists and hooks are kept. Waypaper Engine's daemon\n\
             must be running, or its playlists and tags are skipped. Needs Python 3.11 or newer.\n\
             Starts murald if it is not running, except with --dry-run.",
        );

fn migrate(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let is_dry = call.has("--dry-run") || !PROGRAMS[..4].contains(&&*call.word("PROGRAM"));
    if !is_dry {
        // A configuration that cannot be read is no reason to start a daemon.
        script(call, true, Stdio::null())?;
        start::ensure(call)?;
    }
    if !stdout.wants_data() {
        return script(call, is_dry, Stdio::inherit()).map(drop);
    }
    let output = script(call, is_dry, Stdio::piped())?;
    let broken = |error| Error::new(Exit::Internal, "migrate printed no JSON").because(error);
    stdout.data(&serde_json::from_slice(&output.stdout).map_err(broken)?)
}

fn script(call: &Call, is_dry: bool, stdout: Stdio) -> Result<Output, Error> {
    let failed = |error| Error::new(Exit::Internal, "cannot run python3").because(error);
    let mut command = start::command("python3");
    command
        .args(["-I", "-X", "utf8", "-c", MIGRATE_SCRIPT])
        .arg(call.word("PROGRAM"));
    command.args(call.text("--from").map(|file| format!("--from={file}")));
    command.args(is_dry.then_some("--dry-run"));
    let output = &call.globals.output;
    command.args((output.json || output.format.is_some()).then_some("--json"));
    command.args(output.quiet.then_some("--quiet"));
    command.env("MURALD", std::env::current_exe().map_err(failed)?);
    if !is_dry {
        command.env("MURALD_SOCKET", call.connect()?.socket());
    }
    let settings = call
        .settings()
        .into_iter()
        .map(|one| json!({ "section": one.section, "key": one.key, "words": one.words }));
    command.env(
        "MURALD_SETTINGS",
        settings.collect::<serde_json::Value>().to_string(),
    );
    command
        .env("MURALD_PAGE", PAGE)
        .stdout(stdout)
        .stderr(Stdio::piped());
    let spawned = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::refused("migrate needs Python: python3 is not installed")
            .hint("install python3, version 3.11 or newer; or see murald-migrate(7)"),
        _ => failed(error),
    })?;
    let output = spawned.wait_with_output().map_err(failed)?;
    if output.status.success() {
        Ok(output)
    } else {
        Err(script_error(&output))
    }
}

/// The error that the script printed, under its exit code.
fn script_error(output: &Output) -> Error {
    // The reader of our output has closed it.
    if output.status.signal() == Some(SIGPIPE) {
        return Error::new(Exit::Done, String::new());
    }
    let exit = match output.status.code() {
        Some(1) => Exit::Refused,
        Some(69) => Exit::Unavailable,
        _ => Exit::Internal,
    };
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim_end().trim_start_matches("murald: ");
    match said.split_once("\nhint: ") {
        Some((message, hint)) => Error::new(exit, message).hint(hint),
        None => Error::new(exit, said),
    }
}
