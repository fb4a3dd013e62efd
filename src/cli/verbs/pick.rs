//! `murald pick`: runs the menu script of `contrib`, which is part of the executable.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use serde_json::Value;

use super::super::Error;
use super::super::call::Call;
use super::super::error::Exit;
use super::super::start;
use super::super::stdout::Stdout;
use super::super::template::Template;
use super::super::verb::{Argument, Flag, Kind, Verb};
use super::MONITORS;
use super::filters::{self, FILTERS};

const SCRIPT: &str = include_str!("../../../contrib/pick/murald-pick");
const MENUS: &[&str] = &["rofi", "fuzzel", "wofi", "fzf", "nsxiv"];
/// A line for the script.
const LINE: &str = r"{id}\t{name}\t{thumbnails.default}\t{checksum}\t{path}";

#[rustfmt::skip]
pub(super) const PICK: Verb = Verb::own(&["pick"], "Choose an image in a menu and show it", pick)
    .takes(&[Argument::optional("MENU", Kind::Words(MENUS), "The menu")])
    .flags(joined!(FILTERS; MONITORS))
    .help("The default MENU is the first one that is installed and can be shown.\n\
           In nsxiv, m marks an image and q shows it.\n\
           Exits with 1 if nothing was chosen.");

fn pick(call: &Call, _: &mut Stdout) -> Result<(), Error> {
    let connection = call.connect()?;
    let images = filters::by_name(call, &connection)?;
    if images.is_empty() {
        return Err(match filters::has_any(call) {
            true => Error::refused("no image matches"),
            false => {
                Error::refused("the library is empty").hint("`murald import PATH` imports images")
            }
        });
    }
    let list = List::write(&images)?;
    let failed = |error| Error::new(Exit::Internal, "the menu cannot be shown").because(error);
    let mut command = start::command("sh");
    command.args(["-c", SCRIPT, "murald-pick"]).env("MURALD_PICK_LIST", &list.0);
    command.env("MURALD", std::env::current_exe().map_err(failed)?);
    command.env("MURALD_SOCKET", connection.socket());
    if let Some(monitor) = call.text("--monitor") {
        command.args(["--monitor", monitor]);
    }
    command.args(call.text("MENU"));
    match command.status().map_err(failed)?.code() {
        Some(0) => Ok(()),
        // The script has printed the reason, or nothing was picked.
        Some(130) => Err(Error::new(Exit::Interrupted, String::new())),
        _ => Err(Error::refused(String::new())),
    }
}

/// A file that is removed when the menu is closed.
struct List(PathBuf);

impl List {
    fn write(images: &[Value]) -> Result<Self, Error> {
        let path = std::env::temp_dir().join(format!("murald-pick-{}", std::process::id()));
        let failed =
            |error| Error::refused(format!("cannot write {}", path.display())).because(error);
        let line = Template::parse(LINE)?;
        let mut text = String::new();
        for image in images {
            text.push_str(&line.line(image)?);
            text.push('\n');
        }
        let mut file = OpenOptions::new();
        let mut file = file.write(true).create_new(true).mode(0o600).open(&path).map_err(failed)?;
        let list = Self(path.clone());
        file.write_all(text.as_bytes()).map_err(failed)?;
        Ok(list)
    }
}

impl Drop for List {
    fn drop(&mut self) {
        // It is in the directory for temporary files: at worst it stays until that is emptied.
        fs::remove_file(&self.0).ok();
    }
}
