//! Sixel graphics for foot, xterm and mlterm: columns of six pixels, one colour at a time, from a cube
//! of six levels a channel with ordered dithering.

use std::fmt::Write as _;

use super::Raster;

const LEVELS: u16 = 6;
/// Thresholds of ordered dithering (Bayer), of sixteen.
const BAYER: [[u16; 4]; 4] = [[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]];
/// Pixels in a band.
const BAND: usize = 6;

pub(super) fn encode(raster: &Raster) -> String {
    let width = raster.width as usize;
    let (columns, rows) = (raster.width, raster.height);
    let mut out = format!("\x1bPq\"1;1;{columns};{rows}");
    let pixels: Vec<u8> = raster
        .pixels
        .iter()
        .enumerate()
        .map(|(at, &pixel)| index(pixel, at % width, at / width))
        .collect();
    for color in 0..LEVELS.pow(3) {
        if pixels.contains(&(color as u8)) {
            let part = |by: u16| color / by % LEVELS * 100 / (LEVELS - 1);
            write!(out, "#{color};2;{};{};{}", part(36), part(6), part(1))
                .expect("a String takes all");
        }
    }
    for band in pixels.chunks(width * BAND) {
        encode_band(&mut out, band, width);
        // Down to the next band.
        out.push('-');
    }
    out.push_str("\x1b\\\n");
    out
}

fn index(pixel: [u8; 3], x: usize, y: usize) -> u8 {
    let threshold = BAYER[y % 4][x % 4];
    let level = |value: u8| {
        let scaled = u16::from(value) * (LEVELS - 1);
        // The part above the level, in sixteenths, against the threshold.
        let rest = scaled % 255 * 16 / 255;
        (scaled / 255 + u16::from(rest > threshold)).min(LEVELS - 1)
    };
    let [red, green, blue] = pixel.map(level);
    (red * 36 + green * 6 + blue) as u8
}

fn encode_band(out: &mut String, band: &[u8], width: usize) {
    let mut colors: Vec<u8> = band.to_vec();
    colors.sort_unstable();
    colors.dedup();
    for color in colors {
        write!(out, "#{color}").expect("a String takes all");
        let mut run = (0u32, ' ');
        for x in 0..width {
            let bits = (0..band.len() / width)
                .filter(|y| band[y * width + x] == color)
                .fold(0u8, |bits, y| bits | 1 << y);
            let sign = char::from(b'?' + bits);
            if sign == run.1 {
                run.0 += 1;
            } else {
                flush(out, run);
                run = (1, sign);
            }
        }
        flush(out, run);
        // Back to the band's beginning.
        out.push('$');
    }
}

fn flush(out: &mut String, (count, sign): (u32, char)) {
    match count {
        0 => {}
        1..4 => out.extend(std::iter::repeat_n(sign, count as usize)),
        _ => write!(out, "!{count}{sign}").expect("a String takes all"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::two;
    use super::*;

    #[test]
    fn two_pixels_of_two_colours() {
        assert_eq!(encode(&two()), "\x1bPq\"1;1;2;1#0;2;0;0;0#180;2;100;0;0#0?@$#180@?$-\x1b\\\n");
    }

    #[test]
    fn long_runs_are_counted() {
        let mut out = String::new();
        encode_band(&mut out, &[7; 12], 6);
        assert_eq!(out, "#7!6B$");
    }
}
