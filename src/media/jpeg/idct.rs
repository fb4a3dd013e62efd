//! The inverse cosine transform of a block at less than its full size: from the lowest N × M
//! frequencies straight to N × M samples, which are the averages that the eye expects.

/// One block side to 1, 2, 4 or 8 samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) width: usize,
    pub(super) height: usize,
}

/// Turns coefficients (dequantised, row after row, `size` of them) into samples at `out`.
pub(super) fn transform(coefficients: &[f32; 64], size: Size, out: &mut [u8], stride: usize) {
    macro_rules! by_size {
        ($($width:literal, $height:literal);+) => {
            match (size.width, size.height) {
                $(($width, $height) => block::<$width, $height>(coefficients, out, stride),)+
                _ => unreachable!("sizes are 1, 2, 4 or 8"),
            }
        };
    }
    by_size!(
        1, 1; 1, 2; 1, 4; 1, 8; 2, 1; 2, 2; 2, 4; 2, 8;
        4, 1; 4, 2; 4, 4; 4, 8; 8, 1; 8, 2; 8, 4; 8, 8
    );
}

fn block<const W: usize, const H: usize>(coefficients: &[f32; 64], out: &mut [u8], stride: usize) {
    let (across, down) = (&Waves::<W>::AMPLITUDES, &Waves::<H>::AMPLITUDES);
    let mut rows = [[0.0_f32; W]; H];
    for (row, from) in rows.iter_mut().zip(coefficients.chunks_exact(W)) {
        for (wave, &amount) in across.iter().zip(from) {
            for (sample, &amplitude) in row.iter_mut().zip(wave) {
                *sample += amount * amplitude;
            }
        }
    }
    for y in 0..H {
        let mut line = [128.5_f32; W];
        for (row, wave) in rows.iter().zip(down) {
            for (sample, &amount) in line.iter_mut().zip(row) {
                *sample += amount * wave[y];
            }
        }
        for (byte, sample) in out[y * stride..y * stride + W].iter_mut().zip(line) {
            // Casting from float clamps, and cuts off the half that was added for rounding.
            *byte = sample as u8;
        }
    }
}

/// The waves of an N-point transform, by frequency and place, scaled so that a mean stays a mean.
struct Waves<const N: usize>;

impl<const N: usize> Waves<N> {
    const AMPLITUDES: [[f32; N]; N] = {
        let mut waves = [[0.0; N]; N];
        let mut frequency = 0;
        while frequency < N {
            let mut place = 0;
            while place < N {
                waves[frequency][place] = if frequency == 0 {
                    // The square root of an eighth.
                    0.353_553_4
                } else {
                    0.5 * cosine((2 * place + 1) * frequency * (16 / N))
                };
                place += 1;
            }
            frequency += 1;
        }
        waves
    };
}

/// The cosine of a number of 32nds of a half turn.
const fn cosine(steps: usize) -> f32 {
    const QUARTER: [f32; 17] = [
        1.0,
        0.995_184_7,
        0.980_785_3,
        0.956_940_35,
        0.923_879_5,
        0.881_921_3,
        0.831_469_6,
        0.773_010_43,
        std::f32::consts::FRAC_1_SQRT_2,
        0.634_393_3,
        0.555_570_24,
        0.471_396_74,
        0.382_683_43,
        0.290_284_67,
        0.195_090_32,
        0.098_017_14,
        0.0,
    ];
    match steps % 64 {
        step @ 0..=16 => QUARTER[step],
        step @ 17..=32 => -QUARTER[32 - step],
        step @ 33..=48 => -QUARTER[step - 32],
        step => QUARTER[64 - step],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_stays_a_mean_at_every_size() {
        let mut coefficients = [0.0; 64];
        coefficients[0] = 8.0 * 40.0;
        for width in [1, 2, 4, 8] {
            for height in [1, 2, 4, 8] {
                let mut out = [0; 64];
                transform(&coefficients, Size { width, height }, &mut out, 8);
                for y in 0..height {
                    assert!(
                        out[y * 8..y * 8 + width].iter().all(|&v| v == 168),
                        "{width}x{height}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_full_size_is_the_plain_transform() {
        let coefficients: [f32; 64] = std::array::from_fn(|at| (at as f32 * 37.0) % 50.0 - 25.0);
        let mut out = [0; 64];
        transform(&coefficients, Size { width: 8, height: 8 }, &mut out, 8);
        let scale = |frequency| if frequency == 0 { 0.125_f64.sqrt() } else { 0.5 };
        let wave = |place: usize, frequency: usize| {
            let angle = ((2 * place + 1) * frequency) as f64 * std::f64::consts::PI / 16.0;
            scale(frequency) * angle.cos()
        };
        for (at, &sample) in out.iter().enumerate() {
            let (x, y) = (at % 8, at / 8);
            let sum: f64 =
                (0..64).map(|c| f64::from(coefficients[c]) * wave(x, c % 8) * wave(y, c / 8)).sum();
            let exact = (sum + 128.0).clamp(0.0, 255.0);
            assert!((exact - f64::from(sample)).abs() <= 0.51, "{at}: {sample}, not {exact}");
        }
    }
}
