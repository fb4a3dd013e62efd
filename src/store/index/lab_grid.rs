//! Lab in cubes, each marked with whether a search reaches into it: most colours are told near or
//! far by one look at their cube, however many colours are searched around.

/// L, a and b of a colour, none below zero, in steps of a hundredth.
pub(super) type Place = [u16; 3];

/// A cube's side is 2 to this many steps: 5 units of Lab.
const SIDE: u32 = 9;
/// Cubes along L, a and b, to the power of 2 for the latter two.
const LIGHT: usize = 20;
const WIDE: usize = 64;

const PART: u8 = 1;
const WHOLE: u8 = 2;

pub(super) struct LabGrid {
    cubes: Vec<u8>,
}

/// How much of a cube a search reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    None,
    Part,
    Whole,
}

/// The squares of the distances from a place to the nearest and the farthest of a cube, along one axis.
type Span = (u32, u32);

impl LabGrid {
    /// Of a search around these places; `limit` is the square of a distance in steps.
    pub(super) fn around(of: &[Place], limit: u32) -> Self {
        let mut cubes = vec![0; LIGHT * WIDE * WIDE];
        for &[l, a, b] in of {
            let (on_l, on_a, on_b) = (spans(l, LIGHT), spans(a, WIDE), spans(b, WIDE));
            for (plane, l) in cubes.chunks_exact_mut(WIDE * WIDE).zip(&on_l) {
                for (row, a) in plane.chunks_exact_mut(WIDE).zip(&on_a) {
                    if l.0 + a.0 <= limit {
                        mark(row, (l.0 + a.0, l.1 + a.1), &on_b, limit);
                    }
                }
            }
        }
        Self { cubes }
    }

    pub(super) fn reach(&self, place: Place) -> Reach {
        let [l, a, b] = place.map(|part| usize::from(part >> SIDE));
        match self.cubes[(l * WIDE + a) * WIDE + b] {
            0 => Reach::None,
            PART => Reach::Part,
            _ => Reach::Whole,
        }
    }
}

fn mark(row: &mut [u8], (near, far): Span, on_b: &[Span], limit: u32) {
    for (cube, b) in row.iter_mut().zip(on_b) {
        let (part, whole) = (u8::from(near + b.0 <= limit), u8::from(far + b.1 <= limit));
        *cube |= (part * PART) | (whole * WHOLE);
    }
}

fn spans(part: u16, cubes: usize) -> Vec<Span> {
    let (part, side) = (i32::from(part), 1 << SIDE);
    let span = |cube: i32| {
        let (first, last) = (cube * side, cube * side + side - 1);
        let nearest = (part - part.clamp(first, last)).unsigned_abs();
        let farthest = (part - first).unsigned_abs().max((part - last).unsigned_abs());
        (nearest.pow(2), farthest.pow(2))
    };
    (0..cubes as i32).map(span).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cubes_say_what_distances_say() {
        let of = [[5_000, 9_000, 11_000], [9_999, 400, 20_400]];
        for limit in [0, 100, 250_000, 4_000_000, 900_000_000] {
            let grid = LabGrid::around(&of, limit);
            for at in 0..20_000_u64 {
                let pick = |step: u64, of: u64| (at.wrapping_mul(step) >> 2) % of;
                let place = [pick(7, 10_001), pick(911, 18_600), pick(3_571, 20_600)];
                let place = place.map(|part| part as u16);
                let square = |other: &Place| -> u32 {
                    let parts = place.iter().zip(other);
                    parts.map(|(one, other)| u32::from(one.abs_diff(*other)).pow(2)).sum()
                };
                let near = of.iter().any(|other| square(other) <= limit);
                match grid.reach(place) {
                    Reach::None => assert!(!near, "{place:?} {limit}"),
                    Reach::Whole => assert!(near, "{place:?} {limit}"),
                    Reach::Part => {}
                }
            }
        }
        let grid = LabGrid::around(&of[..1], 4_000_000);
        let reach = |a| grid.reach([5_000, a, 11_000]);
        assert_eq!(
            [reach(9_000), reach(10_990), reach(12_000)],
            [Reach::Whole, Reach::Part, Reach::None]
        );
    }
}
