//! Prints a file of the library: an original or a thumbnail.

use std::fs::File;
use std::io::{self, IsTerminal, Read};

use super::super::Error;
use super::super::call::Call;
use super::super::request::place;
use super::super::stdout::Stdout;

/// Copies piece by piece, as a video may be larger than our memory.
pub(super) fn copy(call: &Call, stdout: &mut Stdout, template: &str) -> Result<(), Error> {
    let output = call.text("--output");
    if output.is_none() && io::stdout().is_terminal() {
        return Err(Error::usage("not printing image data on a terminal")
            .hint("write it to a file with --output FILE, or pipe it"));
    }
    let mut bytes = call.connect()?.stream(&place(template, call))?;
    if let Some(path) = output {
        // After the answer, so that a refused request leaves no empty file.
        let copied = File::create(path).and_then(|mut file| io::copy(&mut bytes, &mut file));
        return copied
            .map(drop)
            .map_err(|error| Error::refused(format!("cannot write {path}")).because(error));
    }
    let mut piece = vec![0; 64 << 10];
    loop {
        match bytes.read(&mut piece).map_err(Error::of_lost_daemon)? {
            0 => return Ok(()),
            read => stdout.raw(&piece[..read])?,
        }
    }
}
