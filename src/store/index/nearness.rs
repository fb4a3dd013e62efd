//! How near colours are to others: the arithmetic of [`super::palettes`]. Pure. Plain loops over many
//! images at once, which the compiler turns into the processor's widest steps, AVX2 where it has that.

use super::bitmap::WORD;

/// L, a and b of a colour, none below zero, in steps of a hundredth.
pub(super) type Place = [i16; 3];
/// A colour of each image of a word, part by part.
pub(super) type Slot = [[i16; WORD]; 3];

/// How the palettes of a word of images compare with a reference.
pub(super) struct Comparison {
    /// The bits of those a colour of which is near one of the reference.
    pub near: u64,
    /// Of those that are like enough in all.
    pub alike: u64,
    /// The distances from each colour of the reference to the nearest, together, in steps.
    pub sums: [f32; WORD],
}

/// The bits of the images a colour of which is no farther from a place than the root of `limit`.
pub(super) fn near(slots: &[Slot], place: Place, limit: i32) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { near_by_avx2(slots, place, limit) };
    }
    near_here(slots, place, limit)
}

/// Compares the palettes with a reference: near is what is no farther than the root of `limit`, and
/// alike what has a sum of `most` or less.
pub(super) fn compare(slots: &[Slot], reference: &[Place], limit: i32, most: f32) -> Comparison {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { compare_by_avx2(slots, reference, limit, most) };
    }
    compare_here(slots, reference, limit, most)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn near_by_avx2(slots: &[Slot], place: Place, limit: i32) -> u64 {
    near_here(slots, place, limit)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn compare_by_avx2(slots: &[Slot], reference: &[Place], limit: i32, most: f32) -> Comparison {
    compare_here(slots, reference, limit, most)
}

/// With the instructions of whoever calls, as all below.
#[inline(always)]
fn near_here(slots: &[Slot], place: Place, limit: i32) -> u64 {
    let nearest = nearest(slots, place);
    bits(|at| nearest[at] <= limit)
}

#[inline(always)]
fn compare_here(slots: &[Slot], reference: &[Place], limit: i32, most: f32) -> Comparison {
    let (mut least, mut sums) = ([i32::MAX; WORD], [0.0; WORD]);
    for &place in reference {
        let nearest = nearest(slots, place);
        for at in 0..WORD {
            least[at] = least[at].min(nearest[at]);
            sums[at] += (nearest[at] as f32).sqrt();
        }
    }
    Comparison { near: bits(|at| least[at] <= limit), alike: bits(|at| sums[at] <= most), sums }
}

/// The bits of those of which something is so.
#[inline(always)]
fn bits(is: impl Fn(usize) -> bool) -> u64 {
    let flags: [u8; WORD] = std::array::from_fn(|at| u8::from(is(at)));
    // Of each eight the lowest bits come together in the highest byte.
    let gather =
        |eight: &[u8; 8]| u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    let eights = flags.as_chunks::<8>().0.iter().rev();
    eights.fold(0, |bits, eight| bits << 8 | gather(eight))
}

/// The squares of the distances of each palette's nearest colour.
#[inline(always)]
fn nearest(slots: &[Slot], place: Place) -> [i32; WORD] {
    let mut nearest = [i32::MAX; WORD];
    for [l, a, b] in slots {
        for at in 0..WORD {
            nearest[at] = nearest[at].min(distance([l[at], a[at], b[at]], place));
        }
    }
    nearest
}

/// The square of a distance, in steps.
#[inline(always)]
fn distance(one: Place, other: Place) -> i32 {
    // Both are positive: the difference has sixteen bits as well, which makes the product cheap.
    let l = i32::from(one[0].wrapping_sub(other[0]));
    let a = i32::from(one[1].wrapping_sub(other[1]));
    let b = i32::from(one[2].wrapping_sub(other[2]));
    l * l + a * a + b * b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_the_processor_has_the_comparison_is_the_same() {
        let part = |of: usize, at: usize| {
            (at * [97, 1_931, 733][of] % [10_000, 19_000, 21_000][of]) as i16
        };
        let slot = |number: usize| -> Slot {
            [0, 1, 2].map(|of| std::array::from_fn(|at| part(of, number * WORD + at)))
        };
        for slots in [0, 1, 5, 8].map(|count| (0..count).map(slot).collect::<Vec<_>>()) {
            for count in [0, 1, 5, 8] {
                let reference: Vec<Place> =
                    (0..count).map(|at| [0, 1, 2].map(|of| part(of, 1_000 + 7 * at))).collect();
                let limit = 9_000_000;
                let one = compare(&slots, &reference, limit, f32::INFINITY);
                let most = one.sums[3];
                let other = compare_here(&slots, &reference, limit, most);
                assert_eq!((one.near, one.alike), (other.near, u64::MAX));
                let is_alike = |at: usize| other.sums[at] <= most;
                assert!((0..WORD).all(|at| (other.alike >> at & 1 == 1) == is_alike(at)));
                for (one, other) in one.sums.into_iter().zip(other.sums) {
                    assert!((one - other).abs() <= other * 1e-5, "{one} {other}");
                }
                for &place in &reference {
                    let bits = near(&slots, place, limit);
                    assert_eq!(bits, near_here(&slots, place, limit));
                    for at in 0..WORD {
                        let is_near = slots
                            .iter()
                            .any(|slot| distance(slot.map(|part| part[at]), place) <= limit);
                        assert_eq!(bits >> at & 1 == 1, is_near, "{at}");
                    }
                }
            }
        }
    }
}
