//! The blocks of an MCU. All of them are read before samples are made of the first: a processor that has
//! just written single numbers waits before it reads several of them at once.

use super::frame::ComponentHeader;
use super::progressive::Scan;

/// A block, and what was read of it last.
#[derive(Clone)]
#[repr(align(64))]
pub(super) struct Block {
    pub(super) coefficients: [i16; 64],
    /// The place of the last coefficient that is not zero and wanted.
    pub(super) last: usize,
    pub(super) component: usize,
    /// The numbers of its tables.
    pub(super) dc: usize,
    pub(super) ac: usize,
    /// Within the MCU, across and down.
    pub(super) offset: (usize, usize),
    /// Blocks of its component in an MCU, across and down.
    of: (usize, usize),
}

impl Block {
    /// Where it is in its component, counted in blocks, in the MCU that has this place.
    #[inline(always)]
    pub(super) fn place(&self, (x, y): (usize, usize)) -> (usize, usize) {
        (x * self.of.0 + self.offset.0, y * self.of.1 + self.offset.1)
    }
}

/// The blocks of each MCU of a scan, in the order of the file; a scan of one component has one.
pub(super) fn blocks(scan: &Scan, headers: &[ComponentHeader]) -> Vec<Block> {
    let mut blocks = Vec::new();
    for &(component, dc, ac) in &scan.parts {
        let of = if scan.parts.len() == 1 { (1, 1) } else { headers[component].blocks };
        for offset in (0..of.1).flat_map(|down| (0..of.0).map(move |across| (across, down))) {
            blocks.push(Block { coefficients: [0; 64], last: 0, component, dc, ac, offset, of });
        }
    }
    blocks
}
