//! Parsers of the compositors' protocols with plain types, for the targets of `tests/fuzz`. Part of its
//! module with `cfg(parsers)`.

use super::{Visible, WORKSPACES, hyprland, i3};

/// The kinds of sway's messages, and the workspaces in them, read in pieces of `piece` bytes; ends at
/// the first error.
pub fn sway(bytes: &[u8], piece: usize) -> Vec<(u32, Option<i64>)> {
    let (mut held, mut taken) = (Vec::new(), Vec::new());
    for piece in bytes.chunks(piece.max(1)) {
        held.extend_from_slice(piece);
        loop {
            match i3::take(&mut held) {
                Ok(Some((kind, body))) => {
                    let shown = i3::visible(&body).map(|Visible { place, .. }| place);
                    taken.push((kind, shown));
                }
                Ok(None) => break,
                Err(_) => return taken,
            }
        }
    }
    taken
}

/// Whether Hyprland's lines, read in pieces of `piece` bytes, have news of workspaces.
pub fn hyprland(bytes: &[u8], piece: usize) -> bool {
    let mut held = Vec::new();
    bytes.chunks(piece.max(1)).fold(false, |told, piece| {
        held.extend_from_slice(piece);
        hyprland::take(&mut held, WORKSPACES.hyprland).is_ok_and(|told| told) || told
    })
}
