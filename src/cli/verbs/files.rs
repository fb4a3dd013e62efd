//! The verbs that print a file of the library: originals and thumbnails.

use std::fs::File;
use std::io::{self, IsTerminal, Read};

use super::super::Error;
use super::super::call::Call;
use super::super::connection::RequestPath;
use super::super::stdout::Stdout;
use super::super::verb::{Flag, Kind, Verb};
use super::image_sheet::ONE;
use crate::wire::Resolution;

const OUTPUT: Flag =
    Flag::value("--output", "FILE", Kind::File, "Write to this file instead of standard output");

pub(super) const THUMBNAIL: Verb =
    Verb::new(&["images", "thumbnail"], "Print an image's thumbnail, as WebP", thumbnail)
        .arguments(&[ONE])
        .flags(&[
            Flag::value(
                "--resolution",
                "SIZE",
                Kind::Words(Resolution::WORDS),
                "How large at most; default is 500 pixels",
            ),
            OUTPUT,
        ]);
pub(super) const RAW: Verb = Verb::new(&["images", "raw"], "Print an image's file as it is", raw)
    .arguments(&[ONE])
    .flags(&[OUTPUT]);

fn thumbnail(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let place = RequestPath::new(&[&"images", &call.word("IMAGE"), &"thumbnail"]);
    copy(call, stdout, &place.query("resolution", call.query("--resolution")))
}

fn raw(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    copy(call, stdout, &RequestPath::new(&[&"images", &call.word("IMAGE"), &"raw"]))
}

/// Piece by piece: a video may be larger than our memory.
fn copy(call: &Call, stdout: &mut Stdout, place: &RequestPath) -> Result<(), Error> {
    let output = call.text("--output");
    if output.is_none() && io::stdout().is_terminal() {
        return Err(Error::usage("a picture's bytes are not for a terminal")
            .hint("name a file with --output FILE, or pass them on with |"));
    }
    let mut bytes = call.connect()?.stream(place)?;
    if let Some(path) = output {
        // Only now: a refused request leaves no empty file.
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
