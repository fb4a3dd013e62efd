//! `murald gallery`: shows the library in a browser.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{self, Stdio};

use super::import::interrupt;
use super::{Call, Error, Exit, Flag, Stdout, Verb, start, warn};
use crate::cli::gallery::{Gallery, spawn, wait_for_end};
use crate::error_chain::plain;
use crate::paths::Dirs;

#[rustfmt::skip]
pub(super) const GALLERY: Verb = Verb::own(&["gallery"], "Show the library in a browser", gallery)
    .starting()
    .flags(&[Flag::switch("--no-open", "Only print the address")])
    .help("Prints the address of a page and opens the page with xdg-open. Only programs of this \
           machine that know the secret in the address can use it. Ends with Ctrl-C, or 15 seconds \
           after the page was closed. In the page, ? lists the keys.");

fn gallery(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let failed = |error| Error::new(Exit::Internal, "cannot serve the gallery").because(error);
    let socket = call.connect()?.socket().to_owned();
    let (address, streams) = Gallery::open(socket).map_err(failed)?;
    stdout.line(&address)?;
    stdout.flush()?;
    let link = if call.has("--no-open") {
        Ok(None)
    } else {
        open(&address).map(Some)
    };
    match &link {
        Ok(_) => {}
        Err(error) => warn(format!(
            "cannot open a browser: {}\nhint: open the address yourself",
            plain(error)
        )),
    }
    wait_for_end(&streams);
    link.ok().flatten().map(fs::remove_file);
    Ok(())
}

/// Has the desktop open a file that leads to the page. The address is in no command line, as every
/// user of the machine can read the command lines of others.
fn open(address: &str) -> io::Result<PathBuf> {
    let runtime = Dirs::from_process()
        .and_then(|dirs| dirs.runtime())
        .map_err(io::Error::other)?;
    let path = runtime.join(format!("murald-gallery-{}.html", std::process::id()));
    remove_if_interrupted(path.clone())?;
    let mut file = OpenOptions::new();
    let mut file = file.write(true).create_new(true).mode(0o600).open(&path)?;
    write!(
        file,
        "<!doctype html><meta http-equiv=refresh content=\"0; url={address}\">"
    )?;
    let mut command = start::command("xdg-open");
    command
        .arg(&path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn()?;
    Ok(path)
}

fn remove_if_interrupted(path: PathBuf) -> io::Result<()> {
    let mut interrupt = File::from(interrupt()?);
    spawn("gallery-interrupt", move || {
        interrupt.read_exact(&mut [0]).ok();
        fs::remove_file(path).ok();
        process::exit(Exit::Interrupted as i32);
    })
}
