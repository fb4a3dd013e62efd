//! Computes transitions: the frames between two pictures, and the pace along a Bézier curve. Pure.
//!
//! Rows are independent of each other, so several threads paint a large frame.

use std::num::NonZero;

use super::message::Effect;
use super::storage::PIXEL;

/// The weight of the new picture when it alone is visible.
const WHOLE: u16 = 256;
/// Frames with fewer pixels are painted faster than threads start.
const SHARED_FROM: usize = 1 << 20;
const THREADS_MAX: usize = 4;
/// The width of the seam between the two pictures, as a share of the distance that it moves.
const SEAM: f32 = 1.0 / 24.0;

/// Paints one frame of the effect, at the progress `gone` from 0 to 1.
pub(super) fn blend(
    effect: Effect,
    gone: f64,
    width: usize,
    (from, to): (&[u8], &[u8]),
    into: &mut [u8],
) {
    let line = width * PIXEL;
    let height = into.len() / line.max(1);
    let threads = match width * height {
        ..SHARED_FROM => 1,
        _ => std::thread::available_parallelism()
            .map_or(1, NonZero::get)
            .min(THREADS_MAX),
    };
    let share = height.div_ceil(threads).max(1);
    let mask = Mask::new(effect, gone as f32, (width as f32, height as f32));
    let draw = |(part, into): (usize, &mut [u8])| {
        for (row, into) in into.chunks_exact_mut(line).enumerate() {
            let y = part * share + row;
            let rows = y * line..(y + 1) * line;
            mask.row(y as f32, &from[rows.clone()], &to[rows], into);
        }
    };
    let draw = &draw;
    std::thread::scope(|scope| {
        let mut parts: Vec<_> = into.chunks_mut(share * line).enumerate().collect();
        let last = parts.pop();
        for part in parts {
            scope.spawn(move || draw(part));
        }
        last.into_iter().for_each(draw);
    });
}

/// How much of the new picture is visible at each point.
enum Mask {
    /// The same everywhere.
    Even(u16),
    /// Behind a straight edge that moves along a direction.
    Edge { x: f32, y: f32, at: f32, seam: f32 },
    /// Inside a circle.
    Circle {
        x: f32,
        y: f32,
        radius: f32,
        seam: f32,
    },
}

impl Mask {
    fn new(effect: Effect, gone: f32, (width, height): (f32, f32)) -> Self {
        match effect {
            Effect::None | Effect::Fade => {
                // The first frame already shows some of the new picture.
                Self::Even(
                    (gone * f32::from(WHOLE))
                        .round()
                        .clamp(1.0, f32::from(WHOLE)) as u16,
                )
            }
            Effect::Wipe { angle } => {
                let angle = angle.to_radians() as f32;
                let (x, y) = (-angle.cos(), angle.sin());
                let ends = [0.0, x * width, y * height, x * width + y * height];
                let (first, last) = (
                    ends.into_iter().fold(0.0, f32::min),
                    ends.into_iter().fold(0.0, f32::max),
                );
                let seam = (last - first) * SEAM;
                Self::Edge {
                    x,
                    y,
                    at: first + gone * (last - first + seam),
                    seam,
                }
            }
            Effect::Grow { origin } => {
                let (x, y) = (origin.x() as f32 * width, origin.y() as f32 * height);
                let farthest = x.max(width - x).hypot(y.max(height - y));
                let seam = farthest * SEAM;
                Self::Circle {
                    x,
                    y,
                    radius: gone * (farthest + seam),
                    seam,
                }
            }
        }
    }

    fn row(&self, y: f32, from: &[u8], to: &[u8], into: &mut [u8]) {
        match *self {
            Self::Even(weight) => even(from, to, weight, into),
            Self::Edge {
                x: across,
                y: down,
                at,
                seam,
            } => {
                let start = at - (y + 0.5) * down;
                each(from, to, into, |x| (start - (x + 0.5) * across) / seam);
            }
            Self::Circle {
                x: middle,
                y: level,
                radius,
                seam,
            } => {
                let rise = y + 0.5 - level;
                each(from, to, into, |x| {
                    (radius - (x + 0.5 - middle).hypot(rise)) / seam
                });
            }
        }
    }
}

fn even(from: &[u8], to: &[u8], weight: u16, into: &mut [u8]) {
    let rest = WHOLE - weight;
    // The compiler vectorizes a single loop over bytes.
    for ((into, &from), &to) in into.iter_mut().zip(from).zip(to) {
        *into = mixed(from, to, rest, weight);
    }
}

fn each(from: &[u8], to: &[u8], into: &mut [u8], weight: impl Fn(f32) -> f32) {
    let pixels = from.chunks_exact(PIXEL).zip(to.chunks_exact(PIXEL));
    for ((into, (from, to)), x) in into.chunks_exact_mut(PIXEL).zip(pixels).zip(0_u16..) {
        let weight = (weight(f32::from(x)) * f32::from(WHOLE)).clamp(0.0, f32::from(WHOLE)) as u16;
        let rest = WHOLE - weight;
        for ((into, &from), &to) in into.iter_mut().zip(from).zip(to) {
            *into = mixed(from, to, rest, weight);
        }
    }
}

fn mixed(from: u8, to: u8, rest: u16, weight: u16) -> u8 {
    ((u16::from(from) * rest + u16::from(to) * weight + 128) >> 8) as u8
}

/// The progress of a transition after this share of its time.
pub(super) fn ease(curve: [f64; 4], time: f64) -> f64 {
    let time = time.clamp(0.0, 1.0);
    let [x1, y1, x2, y2] = curve;
    // Bisection finds the time because x only grows; CSS allows no other curve.
    let (x1, x2) = (x1.clamp(0.0, 1.0), x2.clamp(0.0, 1.0));
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if at(x1, x2, middle) < time {
            low = middle;
        } else {
            high = middle;
        }
    }
    at(y1, y2, (low + high) / 2.0)
}

/// One coordinate of the curve at a parameter from 0 to 1.
fn at(first: f64, second: f64, t: f64) -> f64 {
    let s = 1.0 - t;
    3.0 * s * s * t * first + 3.0 * s * t * t * second + t * t * t
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fade_ends_exactly_and_mixes_both_pictures() {
        let (from, to) = ([0, 255, 17, 200], [255, 0, 17, 100]);
        let at = |gone| {
            let mut frame = [0; 4];
            blend(Effect::Fade, gone, 1, (&from, &to), &mut frame);
            frame
        };
        assert_eq!(at(1.0), to);
        assert_eq!(at(0.5), [128, 128, 17, 150]);
        assert_ne!(
            at(0.0),
            from,
            "its first frame has something of the new picture"
        );
    }

    /// Whether the new picture is visible at the left, right, top and bottom.
    fn shape(effect: Effect, gone: f64) -> [bool; 4] {
        let (from, to) = (vec![0; 100 * 100 * PIXEL], vec![255; 100 * 100 * PIXEL]);
        let mut frame = from.clone();
        blend(effect, gone, 100, (&from, &to), &mut frame);
        [(5, 50), (95, 50), (50, 5), (50, 95)].map(|(x, y)| frame[(y * 100 + x) * PIXEL] == 255)
    }

    #[test]
    fn edges_move_from_the_right_side() {
        let wipe = |angle| shape(Effect::Wipe { angle }, 0.3);
        assert_eq!(wipe(0.0), [false, true, false, false], "from the right");
        assert_eq!(wipe(90.0), [false, false, true, false], "from the top");
        assert_eq!(wipe(180.0), [true, false, false, false], "from the left");
        let grow = |origin: &str| Effect::Grow {
            origin: origin.parse().unwrap(),
        };
        assert_eq!(shape(grow("bottom"), 0.3), [false, false, false, true]);
        for effect in [Effect::Wipe { angle: 33.0 }, grow("bottom-left")] {
            assert_eq!(shape(effect, 1.0), [true; 4]);
            assert_eq!(shape(effect, 0.0), [false; 4]);
        }
    }

    #[test]
    fn large_frames_are_painted_in_parts() {
        let length = 2048 * 1031 * PIXEL;
        let (from, to) = (vec![10; length], vec![110; length]);
        let mut frame = vec![0; length];
        blend(Effect::Fade, 0.5, 2048, (&from, &to), &mut frame);
        assert!(frame.iter().all(|&value| value == 60));
    }

    #[test]
    fn easing_follows_the_curve() {
        let check = |curve, time, expected: f64| {
            let seen = ease(curve, time);
            assert!(
                (seen - expected).abs() < 1e-3,
                "{curve:?} at {time}: {seen}"
            );
        };
        let linear = [0.0, 0.0, 1.0, 1.0];
        for time in [0.0, 0.25, 0.5, 1.0] {
            check(linear, time, time);
        }
        // ease-out, by the values that browsers give.
        check([0.0, 0.0, 0.58, 1.0], 0.5, 0.684_6);
        check([0.42, 0.0, 0.58, 1.0], 0.5, 0.5);
        check(linear, -1.0, 0.0);
        check(linear, 7.0, 1.0);
    }
}
