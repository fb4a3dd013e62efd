//! How near colours are to others: the arithmetic of [`super::palettes`], several colours at once
//! where the processor has AVX2. Pure.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// L, a and b of a colour, none below zero, in steps of a hundredth.
pub(super) type Place = [i16; 3];
/// The same of many colours, a plane for each part.
pub(super) type Planes<'a> = [&'a [i16]; 3];

/// Colours that are compared at once, at the cost of one: most palettes have no more.
pub(super) const LANES: usize = 8;

/// How a palette compares with a reference: the square of the least distance, and the sum of the
/// distances from each colour of the reference to the nearest, in steps.
pub(super) type Comparison = (i32, f32);

/// Palettes, one after another.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    pub planes: Planes<'a>,
    /// Where the first begins, and where each ends.
    pub begin: u32,
    pub ends: &'a [u32],
}

/// The colours of an image, to be compared with all others'.
pub(super) struct Reference {
    colors: Vec<Place>,
    #[cfg(target_arch = "x86_64")]
    lanes: Vec<Lanes>,
}

/// As many colours as AVX2 compares at once: L and a, b, and 1 for those that count. Where there are
/// fewer, the first stands in for the rest.
#[cfg(target_arch = "x86_64")]
type Lanes = ([i32; LANES], [i32; LANES], [f32; LANES]);

impl Reference {
    pub(super) fn new(colors: Vec<Place>) -> Self {
        Self {
            #[cfg(target_arch = "x86_64")]
            lanes: colors.chunks(LANES).map(lanes).collect(),
            colors,
        }
    }

    /// Compares those palettes of a row that have a bit.
    pub(super) fn compare(&self, row: Row<'_>, bits: u64, compared: &mut [Comparison]) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2.
            unsafe { self.compare_by_avx2(row, bits, compared) };
            return;
        }
        self.compare_plainly(row, bits, compared);
    }

    fn compare_plainly(&self, row: Row<'_>, mut bits: u64, compared: &mut [Comparison]) {
        while let Some(at) = next(&mut bits) {
            let [l, a, b] = row.palette(at);
            compared[at] = (i32::MAX, 0.0);
            let (least, sum) = &mut compared[at];
            for &color in &self.colors {
                let mut nearest = i32::MAX;
                for ((&l, &a), &b) in l.iter().zip(a).zip(b) {
                    nearest = nearest.min(distance([l, a, b], color));
                }
                *least = nearest.min(*least);
                *sum += (nearest as f32).sqrt();
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn compare_by_avx2(&self, row: Row<'_>, mut bits: u64, compared: &mut [Comparison]) {
        while let Some(at) = next(&mut bits) {
            let [l, a, b] = row.palette(at);
            let (mut least, mut sum) = (_mm256_set1_epi32(i32::MAX), _mm256_setzero_ps());
            for (of_la, of_b, counts) in &self.lanes {
                let (of_la, of_b) = (all_of(of_la), all_of(of_b));
                let mut nearest = _mm256_set1_epi32(i32::MAX);
                // By places: `zip` is not always inlined here, and then costs half of it all.
                for at in 0..l.len() {
                    let la = _mm256_set1_epi32(i32::from(l[at]) | i32::from(a[at]) << 16);
                    let la = _mm256_sub_epi16(of_la, la);
                    let b = _mm256_sub_epi16(of_b, _mm256_set1_epi32(i32::from(b[at])));
                    let squares =
                        _mm256_add_epi32(_mm256_madd_epi16(la, la), _mm256_madd_epi16(b, b));
                    nearest = _mm256_min_epi32(nearest, squares);
                }
                least = _mm256_min_epi32(least, nearest);
                let distances = _mm256_sqrt_ps(_mm256_cvtepi32_ps(nearest));
                let &[c0, c1, c2, c3, c4, c5, c6, c7] = counts;
                let counts = _mm256_setr_ps(c0, c1, c2, c3, c4, c5, c6, c7);
                sum = _mm256_add_ps(sum, _mm256_mul_ps(distances, counts));
            }
            compared[at] = (least_of(least), sum_of(sum));
        }
    }
}

impl<'a> Row<'a> {
    #[inline(always)]
    fn palette(self, at: usize) -> Planes<'a> {
        let begin = if at == 0 { self.begin } else { self.ends[at - 1] } as usize;
        let (end, [l, a, b]) = (self.ends[at] as usize, self.planes);
        let l = &l[begin..end];
        [l, &a[begin..][..l.len()], &b[begin..][..l.len()]]
    }
}

/// The place of the next bit, which is taken.
#[inline(always)]
fn next(bits: &mut u64) -> Option<usize> {
    let at = bits.trailing_zeros() as usize;
    *bits &= bits.wrapping_sub(1);
    (at < u64::BITS as usize).then_some(at)
}

#[cfg(target_arch = "x86_64")]
fn lanes(colors: &[Place]) -> Lanes {
    let of = |lane: usize| colors.get(lane).unwrap_or(&colors[0]).map(i32::from);
    (
        std::array::from_fn(|lane| of(lane)[0] | of(lane)[1] << 16),
        std::array::from_fn(|lane| of(lane)[2]),
        std::array::from_fn(|lane| if lane < colors.len() { 1.0 } else { 0.0 }),
    )
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn all_of(&[v0, v1, v2, v3, v4, v5, v6, v7]: &[i32; LANES]) -> __m256i {
    _mm256_setr_epi32(v0, v1, v2, v3, v4, v5, v6, v7)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn least_of(lanes: __m256i) -> i32 {
    let four = _mm_min_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256::<1>(lanes));
    let two = _mm_min_epi32(four, _mm_shuffle_epi32::<0b_01_00_11_10>(four));
    _mm_cvtsi128_si32(_mm_min_epi32(two, _mm_shuffle_epi32::<0b_10_11_00_01>(two)))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn sum_of(lanes: __m256) -> f32 {
    let four = _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps::<1>(lanes));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
}

/// Flags those that are no farther from a place.
pub(super) fn mark(near: &mut [u8], planes: Planes<'_>, place: Place, limit: i32) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        unsafe { mark_by_avx2(near, planes, place, limit) };
        return;
    }
    mark_here(near, planes, place, limit);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn mark_by_avx2(near: &mut [u8], planes: Planes<'_>, place: Place, limit: i32) {
    mark_here(near, planes, place, limit);
}

/// With the instructions of whoever calls.
#[inline(always)]
fn mark_here(near: &mut [u8], [l, a, b]: Planes<'_>, place: Place, limit: i32) {
    for (((near, &l), &a), &b) in near.iter_mut().zip(l).zip(a).zip(b) {
        *near = u8::from(distance([l, a, b], place) <= limit);
    }
}

/// The square of a distance, in steps. Written out: the loops over it are to be taken several at once
/// whatever the compiler is told to do between the parts of a crate.
#[inline(always)]
pub(super) fn distance(one: Place, other: Place) -> i32 {
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
        let place = |at: i32| [at * 97 % 10_000, at * 1_931 % 19_000, at * 733 % 21_000];
        let places: Vec<Place> = (0..600).map(|at| place(at).map(|part| part as i16)).collect();
        let plane = |part: usize| places.iter().map(|place| place[part]).collect::<Vec<_>>();
        let planes = [0, 1, 2].map(plane);
        let planes = planes.each_ref().map(Vec::as_slice);
        let ends: Vec<u32> = (1..=64).map(|at| 10 + at * (at + 1) / 8).collect();
        let row = Row { planes, begin: 10, ends: &ends };
        for colors in [0, 1, 5, 8, 9, 12, 16] {
            let reference = Reference::new(places[400..400 + colors].to_vec());
            for bits in [u64::MAX, 0, 1 << 63 | 0x0f0f_1001] {
                let (mut one, mut other) = ([Comparison::default(); 64], [(0, 0.0); 64]);
                reference.compare(row, bits, &mut one);
                reference.compare_plainly(row, bits, &mut other);
                for (at, ((least, sum), (plain, in_all))) in one.into_iter().zip(other).enumerate()
                {
                    assert_eq!(least, plain, "{colors} colours, {at}");
                    let difference = (sum - in_all).abs();
                    assert!(difference <= in_all * 1e-5, "{colors} colours, {at}: {difference}");
                }
            }
        }
        let (mut one, mut other) = ([0; 600], [0; 600]);
        mark(&mut one, planes, places[17], 9_000_000);
        mark_here(&mut other, planes, places[17], 9_000_000);
        assert_eq!(one, other);
        assert!(one.contains(&1) && one.contains(&0));
    }
}
