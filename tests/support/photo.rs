//! Draws pictures that look like photographs to an encoder: soft shapes at every scale, edges and
//! noise. The same number gives the same picture on every machine.

/// Returns RGB pixels, row by row.
pub(crate) fn photo(width: u32, height: u32, number: u32) -> Vec<u8> {
    let seed = number.wrapping_mul(7919);
    let pixel = |x: u32, y: u32| {
        let (u, v) = (x as f32 / width as f32, y as f32 / width as f32);
        let light = fractal(u, v, seed);
        let hue = smooth(u * 3.0, v * 3.0, seed + 50);
        // A ridge: one hard edge across the picture, like hills against the sky.
        let sky = v < 0.2 + 0.1 * smooth(u * 6.0, 0.5, seed + 60);
        let grain = (hash(x, y, seed + 99) - 0.5) * if sky { 0.02 } else { 0.07 };
        let light = if sky { 0.6 + 0.3 * light } else { light };
        let tint = if sky {
            [0.55, 0.75, 1.1]
        } else {
            [0.9, 0.75 + 0.3 * hue, 0.5 + 0.4 * hue]
        };
        tint.map(|tint| ((light * tint + grain).clamp(0.0, 1.0) * 255.0) as u8)
    };
    (0..height)
        .flat_map(|y| (0..width).flat_map(move |x| pixel(x, y)))
        .collect()
}

fn fractal(u: f32, v: f32, seed: u32) -> f32 {
    let (mut sum, mut weight, mut scale) = (0.0, 0.5, 4.0);
    for octave in 0..9 {
        sum += weight * smooth(u * scale, v * scale, seed + octave);
        weight *= 0.58;
        scale *= 2.0;
    }
    sum.min(1.0)
}

/// Value noise: random corners, interpolated smoothly.
fn smooth(x: f32, y: f32, seed: u32) -> f32 {
    let (left, top) = (x.floor(), y.floor());
    let ease = |t: f32| t * t * (3.0 - 2.0 * t);
    let (u, v) = (ease(x - left), ease(y - top));
    let corner = |dx: u32, dy: u32| hash(left as u32 + dx, top as u32 + dy, seed);
    let (upper, lower) = (
        corner(0, 0) + (corner(1, 0) - corner(0, 0)) * u,
        corner(0, 1) + (corner(1, 1) - corner(0, 1)) * u,
    );
    upper + (lower - upper) * v
}

/// Returns a pseudorandom number from 0 to 1.
fn hash(x: u32, y: u32, seed: u32) -> f32 {
    let mixed = x.wrapping_mul(374_761_393)
        ^ y.wrapping_mul(668_265_263)
        ^ seed.wrapping_mul(2_246_822_519);
    let mixed = (mixed ^ (mixed >> 13)).wrapping_mul(1_274_126_177);
    ((mixed ^ (mixed >> 16)) & 0xffff) as f32 / 65535.0
}
