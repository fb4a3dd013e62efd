//! Runs chafa, which knows the graphics protocols of terminals.

use std::io::Write;
use std::process::Stdio;

use super::super::stdout::Stdout;
use super::super::{Error, start};
use super::Raster;

const NAME: &str = "chafa";

pub(super) fn is_installed() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(NAME).is_file())
}

/// Lets chafa draw the picture in this file on at most so many columns and rows; false if it fails.
pub(super) fn draw(
    stdout: &mut Stdout,
    file: &[u8],
    (columns, rows): (u32, u32),
    more: &[&str],
) -> Result<bool, Error> {
    // chafa writes behind our text.
    stdout.flush()?;
    let mut command = start::command(NAME);
    command.args(["--animate", "off", "--size", &format!("{columns}x{rows}")]).args(more).arg("-");
    let Ok(mut child) = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn() else {
        return Ok(false);
    };
    if let Some(mut pipe) = child.stdin.take() {
        // If chafa does not read to the end, its status tells.
        pipe.write_all(file).ok();
    }
    Ok(child.wait().is_ok_and(|status| status.success()))
}

/// A file that every version of chafa reads.
pub(super) fn file(raster: &Raster) -> Vec<u8> {
    let pixels = raster.pixels.as_flattened();
    webp::Encoder::from_rgb(pixels, raster.width, raster.height).encode(90.0).to_vec()
}
