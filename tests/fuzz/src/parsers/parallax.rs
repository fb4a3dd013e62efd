//! For the targets of `tests/fuzz`: the compositors' protocols, by plain types. A part of its module in debug builds only.

use super::feed::Visible;
use super::{hyprland, sway};

/// The kinds of sway's messages, and the workspaces in them, that come in pieces of so many bytes;
/// what comes after nonsense is not looked at.
pub fn sway(bytes: &[u8], piece: usize) -> Vec<(u32, Option<i64>)> {
    let (mut held, mut taken) = (Vec::new(), Vec::new());
    for piece in bytes.chunks(piece.max(1)) {
        held.extend_from_slice(piece);
        loop {
            match sway::take(&mut held) {
                Ok(Some((kind, body))) => {
                    let shown = sway::visible(&body).map(|Visible { workspace, .. }| workspace);
                    taken.push((kind, shown));
                }
                Ok(None) => break,
                Err(_) => return taken,
            }
        }
    }
    taken
}

/// Whether Hyprland's lines, in pieces of so many bytes, tell of workspaces.
pub fn hyprland(bytes: &[u8], piece: usize) -> bool {
    let mut held = Vec::new();
    bytes.chunks(piece.max(1)).fold(false, |told, piece| {
        held.extend_from_slice(piece);
        hyprland::take(&mut held).is_ok_and(|told| told) || told
    })
}
