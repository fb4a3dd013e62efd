//! Finds the main colours of an image.
//!
//! The result is deterministic and stable: small differences between two encodings of an image
//! change its colours only slightly.

use super::picture::Picture;
use crate::color::{Lab, Rgb, lab, rgb};

/// Maximum number of colours in a palette.
const COLORS_MAX: usize = 8;
/// Colours closer than this (ΔE76) are merged.
const MERGED: f32 = 10.0;
/// Colours with a smaller share are edges and noise.
const SHARE_MIN: f32 = 0.01;
/// The picture is reduced to this side. At a smaller one, more pixels would be edges, with blended
/// colours that are not in the image.
const SIDE: u32 = 512;
/// Pixels with less alpha are ignored.
const OPAQUE: u8 = 128;
const ROUNDS_MAX: usize = 12;
/// Number of bits per channel that distinguish bins.
const BIN_BITS: u32 = 5;

/// All pixels of nearly the same colour.
#[derive(Clone, Copy)]
struct Bin {
    color: Lab,
    /// The number of pixels.
    weight: f32,
}

/// Returns up to eight colours, the one with the largest share first.
pub fn palette(picture: &Picture) -> Vec<Rgb> {
    let bins = bins(&picture.averaged(SIDE));
    let mut clusters = vec![(0..bins.len()).collect::<Vec<_>>()];
    while clusters.len() < COLORS_MAX {
        let Some(worst) = worst(&bins, &clusters) else {
            break;
        };
        let cluster = clusters.swap_remove(worst);
        let (low, high) = split(&bins, &cluster);
        clusters.extend([low, high]);
    }
    let centers = settle(&bins, &clusters);
    merge(representatives(&bins, &centers))
}

fn bins(picture: &Picture) -> Vec<Bin> {
    #[derive(Clone, Copy, Default)]
    struct Sum {
        count: u32,
        total: [u32; 3],
    }
    let mut sums = vec![Sum::default(); 1 << (3 * BIN_BITS)];
    let pixels = || picture.pixels().chunks_exact(picture.channels());
    let visible = |pixel: &&[u8]| pixel.get(3).is_none_or(|&alpha| alpha >= OPAQUE);
    // If all pixels are transparent, their colours are used.
    let any = pixels().any(|pixel| visible(&pixel));
    for pixel in pixels().filter(|pixel| !any || visible(pixel)) {
        let cell = |value: u8| usize::from(value >> (8 - BIN_BITS));
        let at = cell(pixel[0]) << (2 * BIN_BITS) | cell(pixel[1]) << BIN_BITS | cell(pixel[2]);
        sums[at].count += 1;
        sums[at]
            .total
            .iter_mut()
            .zip(pixel)
            .for_each(|(total, &v)| *total += u32::from(v));
    }
    let full = sums.iter().filter(|sum| sum.count > 0);
    full.map(|sum| {
        let mean = sum
            .total
            .map(|total| ((total + sum.count / 2) / sum.count) as u8);
        Bin {
            color: lab(mean),
            weight: sum.count as f32,
        }
    })
    .collect()
}

fn mean(bins: impl Iterator<Item = Bin>) -> (Lab, f32) {
    let mut sum = Lab::default();
    let mut weight = 0.0;
    for bin in bins {
        sum.l += bin.color.l * bin.weight;
        sum.a += bin.color.a * bin.weight;
        sum.b += bin.color.b * bin.weight;
        weight += bin.weight;
    }
    let share = if weight > 0.0 { 1.0 / weight } else { 0.0 };
    (
        Lab {
            l: sum.l * share,
            a: sum.a * share,
            b: sum.b * share,
        },
        weight,
    )
}

/// Returns the cluster with the largest error; `None` if every cluster has a single colour.
fn worst(bins: &[Bin], clusters: &[Vec<usize>]) -> Option<usize> {
    let errors = clusters.iter().map(|cluster| {
        let (center, _) = mean(cluster.iter().map(|&at| bins[at]));
        cluster
            .iter()
            .map(|&at| bins[at].weight * bins[at].color.distance_squared(center))
            .sum::<f32>()
    });
    let worst = errors.enumerate().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (clusters[worst.0].len() > 1 && worst.1 > 0.0).then_some(worst.0)
}

/// Splits a cluster at its mean, across its longest axis.
fn split(bins: &[Bin], cluster: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let (center, _) = mean(cluster.iter().map(|&at| bins[at]));
    let from_center = |at: usize| {
        let color = bins[at].color;
        [color.l - center.l, color.a - center.a, color.b - center.b]
    };
    let mut spread = [[0.0_f32; 3]; 3];
    for &at in cluster {
        let d = from_center(at);
        for (row, &x) in spread.iter_mut().zip(&d) {
            row.iter_mut()
                .zip(&d)
                .for_each(|(cell, &y)| *cell += bins[at].weight * x * y);
        }
    }
    let axis = principal(&spread);
    let side = |at: usize| dot(&from_center(at), &axis) > 0.0;
    let (high, low): (Vec<_>, Vec<_>) = cluster.iter().copied().partition(|&at| side(at));
    if high.is_empty() || low.is_empty() {
        // All bins are on one side due to rounding: split anywhere.
        let (low, high) = cluster.split_at(cluster.len() / 2);
        return (low.to_vec(), high.to_vec());
    }
    (low, high)
}

/// Returns the axis of the largest variance, by power iteration.
fn principal(spread: &[[f32; 3]; 3]) -> [f32; 3] {
    // Start with the channel of the largest variance, which is never orthogonal to the result.
    let widest = (0..3)
        .max_by(|&a, &b| spread[a][a].total_cmp(&spread[b][b]))
        .unwrap_or(0);
    let mut axis = spread[widest];
    for _ in 0..16 {
        let next: [f32; 3] = std::array::from_fn(|row| dot(&spread[row], &axis));
        let length = dot(&next, &next).sqrt();
        if length == 0.0 {
            break;
        }
        axis = next.map(|value| value / length);
    }
    axis
}

fn dot(a: &[f32; 3], b: &[f32; 3]) -> f32 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// Assigns bins to their nearest centres until nothing changes (k-means).
fn settle(bins: &[Bin], clusters: &[Vec<usize>]) -> Vec<Lab> {
    let center = |cluster: &Vec<usize>| mean(cluster.iter().map(|&at| bins[at])).0;
    let mut centers: Vec<_> = clusters.iter().map(center).collect();
    for _ in 0..ROUNDS_MAX {
        let owners: Vec<_> = bins
            .iter()
            .map(|bin| nearest(&centers, bin.color))
            .collect();
        let mut moved = false;
        for (number, center) in centers.iter_mut().enumerate() {
            let own = bins
                .iter()
                .zip(&owners)
                .filter(|&(_, &owner)| owner == number);
            let (next, weight) = mean(own.map(|(bin, _)| *bin));
            if weight > 0.0 && next != *center {
                (*center, moved) = (next, true);
            }
        }
        if !moved {
            break;
        }
    }
    centers
}

fn nearest(centers: &[Lab], color: Lab) -> usize {
    let distances = centers.iter().map(|&center| color.distance_squared(center));
    distances
        .enumerate()
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map_or(0, |(at, _)| at)
}

/// Returns a colour for each cluster from the bins near its centre, so that edges and blends do not
/// tint it.
fn representatives(bins: &[Bin], centers: &[Lab]) -> Vec<Bin> {
    let owners: Vec<_> = bins.iter().map(|bin| nearest(centers, bin.color)).collect();
    let clusters = centers.iter().enumerate().map(|(number, &center)| {
        let own = || {
            bins.iter()
                .zip(&owners)
                .filter(move |pair| *pair.1 == number)
        };
        let weight = own().map(|(bin, _)| bin.weight).sum();
        let near = own().filter(|(bin, _)| bin.color.distance(center) < MERGED);
        let (core, core_weight) = mean(near.map(|(bin, _)| *bin));
        Bin {
            color: if core_weight > 0.0 { core } else { center },
            weight,
        }
    });
    clusters.filter(|cluster| cluster.weight > 0.0).collect()
}

/// Merges similar colours, drops those with a tiny share, and sorts by share.
fn merge(mut colors: Vec<Bin>) -> Vec<Rgb> {
    // Compared as rounded to 8 bits, so that no two results are closer than the limit.
    let written = |bin: &Bin| lab(rgb(bin.color));
    while let Some((a, b)) = closest(&colors, written) {
        let gone = colors.swap_remove(b);
        let (color, weight) = mean([colors[a], gone].into_iter());
        colors[a] = Bin { color, weight };
    }
    let all: f32 = colors.iter().map(|color| color.weight).sum();
    colors.sort_by(|a, b| {
        b.weight
            .total_cmp(&a.weight)
            .then_with(|| rgb(a.color).cmp(&rgb(b.color)))
    });
    // The first colour is always kept: an image has at least one.
    let kept = colors
        .iter()
        .enumerate()
        .filter(|(at, c)| *at == 0 || c.weight >= SHARE_MIN * all);
    kept.map(|(_, color)| rgb(color.color)).collect()
}

/// Returns the closest two colours if they are close enough to merge; the second has the higher
/// index.
fn closest(colors: &[Bin], written: impl Fn(&Bin) -> Lab) -> Option<(usize, usize)> {
    let pairs = (0..colors.len()).flat_map(|a| (a + 1..colors.len()).map(move |b| (a, b)));
    pairs
        .map(|(a, b)| (written(&colors[a]).distance(written(&colors[b])), (a, b)))
        .filter(|(distance, _)| *distance < MERGED)
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, pair)| pair)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::color::hex;
    use crate::media::exif::Orientation;

    fn picture(width: u32, height: u32, color: impl Fn(u32, u32) -> Rgb) -> Picture {
        let pixels = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        let pixels = pixels.flat_map(|(x, y)| color(x, y)).collect();
        Picture::new((width, height), 3, pixels, Orientation::NoTransforms)
    }

    fn hexes(picture: &Picture) -> Vec<String> {
        palette(picture).into_iter().map(hex).collect()
    }

    #[test]
    fn flat_pictures_have_their_colors_by_share() {
        assert_eq!(hexes(&picture(1, 1, |_, _| [1, 2, 3])), ["#010203"]);
        assert_eq!(hexes(&picture(700, 300, |_, _| [200, 30, 60])), ["#c81e3c"]);
        let bands = |x, _| match x {
            0..200 => [255, 0, 0],
            200..500 => [0, 128, 0],
            _ => [16, 16, 80],
        };
        assert_eq!(
            hexes(&picture(1000, 10, bands)),
            ["#101050", "#008000", "#ff0000"]
        );
    }

    #[test]
    fn similar_colors_are_merged() {
        let two = |x, _| {
            if x % 2 == 0 {
                [100, 100, 100]
            } else {
                [104, 104, 104]
            }
        };
        assert_eq!(hexes(&picture(100, 100, two)).len(), 1);
        let gradient = picture(256, 256, |x, y| [x as u8, y as u8, 128]);
        let colors = palette(&gradient);
        assert!((2..=COLORS_MAX).contains(&colors.len()));
        for (at, &a) in colors.iter().enumerate() {
            for &b in &colors[at + 1..] {
                assert!(
                    lab(a).distance(lab(b)) >= MERGED,
                    "{} and {}",
                    hex(a),
                    hex(b)
                );
            }
        }
    }

    #[test]
    fn transparent_pixels_are_ignored() {
        let pixels = [[255, 0, 0, 0], [0, 0, 255, 255]].concat();
        let picture = Picture::new((2, 1), 4, pixels, Orientation::NoTransforms);
        assert_eq!(hexes(&picture), ["#0000ff"]);
    }

    #[test]
    fn noise_changes_colors_little() {
        let clean = |x: u32, y: u32| [(x / 2) as u8, (255 - y) as u8, ((x + y) / 4) as u8];
        let noisy = |x: u32, y: u32| {
            let noise = (x * 7919 + y * 104_729) % 7;
            clean(x, y).map(|value| (u32::from(value) + noise).saturating_sub(3).min(255) as u8)
        };
        let (a, b) = (
            palette(&picture(500, 250, clean)),
            palette(&picture(500, 250, noisy)),
        );
        assert_eq!(a.len(), b.len());
        for a in a {
            let nearest = b
                .iter()
                .map(|&b| lab(a).distance(lab(b)))
                .fold(f32::MAX, f32::min);
            assert!(nearest < 4.0, "{} is in the one alone", hex(a));
        }
    }
}
