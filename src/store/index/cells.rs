//! Colours by the part of Lab that they lie in, so that a search looks only at those around.

use std::collections::HashMap;

use super::Slot;
use super::bits::Bits;

/// A cell's side, in steps: 10 units of Lab. Larger ones hold too much that is not near, smaller
/// ones are too many.
const SIDE: i32 = 1000;

/// In steps.
pub(super) type Place = [i16; 3];

#[derive(Debug, Default)]
pub(super) struct Cells {
    cells: HashMap<[i8; 3], Vec<(Slot, Place)>>,
}

impl Cells {
    pub(super) fn add(&mut self, slot: Slot, place: Place) {
        self.cells.entry(cell(place)).or_default().push((slot, place));
    }

    pub(super) fn remove(&mut self, slot: Slot, place: Place) {
        if let Some(colors) = self.cells.get_mut(&cell(place))
            && let Some(at) = colors.iter().position(|&color| color == (slot, place))
        {
            colors.swap_remove(at);
        }
    }

    /// Adds the images with a colour as near as `limit`, the square of a distance in steps.
    pub(super) fn near(&self, of: Place, limit: u32, found: &mut Bits) {
        let reach = f64::from(limit).sqrt().ceil() as i32;
        let [l, a, b] = of.map(|part| {
            let part = i32::from(part);
            (part - reach).div_euclid(SIDE)..=(part + reach).div_euclid(SIDE)
        });
        for l in l {
            for a in a.clone() {
                for b in b.clone() {
                    let key = [l, a, b];
                    if from_cell(of, key) <= i64::from(limit) {
                        self.look(key, of, limit, found);
                    }
                }
            }
        }
    }

    fn look(&self, key: [i32; 3], of: Place, limit: u32, found: &mut Bits) {
        let colors = self.cells.get(&key.map(|part| part as i8)).map_or(&[][..], Vec::as_slice);
        for (slot, _) in colors.iter().filter(|(_, place)| distance(*place, of) <= limit) {
            found.set(*slot);
        }
    }
}

/// The square of a distance.
pub(super) fn distance(one: Place, other: Place) -> u32 {
    let parts = one.iter().zip(other);
    parts.map(|(&one, other)| (i32::from(one) - i32::from(other)).unsigned_abs().pow(2)).sum()
}

fn cell(place: Place) -> [i8; 3] {
    place.map(|part| i32::from(part).div_euclid(SIDE) as i8)
}

/// The square of the distance from a place to the nearest corner, edge or side of a cell.
fn from_cell(of: Place, key: [i32; 3]) -> i64 {
    let parts = of.iter().zip(key).map(|(&part, key)| {
        let nearest = i32::from(part).clamp(key * SIDE, (key + 1) * SIDE);
        i64::from(nearest - i32::from(part)).pow(2)
    });
    parts.sum()
}
