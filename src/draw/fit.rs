//! Computes how a picture is placed on an output. Pure.

use serde::{Deserialize, Serialize};

use crate::wire::{Fit, Position};

/// The area of all outputs that one picture covers together, and that of one of them: left, top, width
/// and height in layout units.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Span {
    pub all: [f64; 4],
    pub own: [f64; 4],
}

type Size = (u32, u32);

/// A part of the picture, in its pixels, and its target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Layout {
    /// Left, top, width, height.
    pub(super) source: [f64; 4],
    /// Left, top, width, height, in pixels of the output.
    pub(super) target: [u32; 4],
}

/// One dimension of a layout.
struct Side {
    source: (f64, f64),
    target: (u32, u32),
}

impl Fit {
    /// The layout of a picture; for tiles, that of the first one.
    pub(super) fn place(self, picture: Size, output: Size, position: Position) -> Layout {
        let scale = |pick: fn(f64, f64) -> f64| {
            let side = |output: u32, picture: u32| f64::from(output) / f64::from(picture);
            pick(side(output.0, picture.0), side(output.1, picture.1))
        };
        let across = |side_of: &dyn Fn(u32, u32, f64) -> Side| {
            let x = side_of(picture.0, output.0, position.x());
            let y = side_of(picture.1, output.1, position.y());
            Layout {
                source: [x.source.0, y.source.0, x.source.1, y.source.1],
                target: [x.target.0, y.target.0, x.target.1, y.target.1],
            }
        };
        match self {
            Self::Cover => {
                let scale = scale(f64::max);
                across(&|picture, output, at| covering(picture, output, at, scale))
            }
            Self::Contain => {
                let scale = scale(f64::min);
                across(&|picture, output, at| contained(picture, output, at, scale))
            }
            Self::Fill => across(&|picture, output, _| Side {
                source: (0.0, picture.into()),
                target: (0, output),
            }),
            Self::Tile => across(&|picture, output, _| plain(picture, output, 0.0)),
            Self::Center => across(&plain),
        }
    }
}

impl Layout {
    /// The size that the whole picture has on the output.
    pub(super) fn scaled(&self, picture: Size) -> Size {
        let Self { source, target } = self;
        let side = |picture: u32, source: f64, target: u32| {
            let scaled = f64::from(picture) * f64::from(target) / source;
            (scaled.round() as u32).max(1)
        };
        (
            side(picture.0, source[2], target[2]),
            side(picture.1, source[3], target[3]),
        )
    }
}

impl Span {
    /// The layout of a picture of this size on this output, which the picture fills.
    pub(super) fn layout(&self, picture: Size, output: Size) -> Layout {
        let picture = [f64::from(picture.0), f64::from(picture.1)];
        let scale = (self.all[2] / picture[0]).max(self.all[3] / picture[1]);
        let side = |at: usize| {
            // The visible part of the picture, centred; the remainder is cut at two sides.
            let first = (picture[at] - self.all[2 + at] / scale) / 2.0;
            let start = (first + (self.own[at] - self.all[at]) / scale).clamp(0.0, picture[at]);
            // Rounding must not lead outside the picture.
            (start, (self.own[2 + at] / scale).min(picture[at] - start))
        };
        let (x, y) = (side(0), side(1));
        Layout {
            source: [x.0, y.0, x.1, y.1],
            target: [0, 0, output.0, output.1],
        }
    }
}

fn covering(picture: u32, output: u32, at: f64, scale: f64) -> Side {
    let picture = f64::from(picture);
    let seen = (f64::from(output) / scale).min(picture);
    Side {
        source: ((picture - seen) * at, seen),
        target: (0, output),
    }
}

fn contained(picture: u32, output: u32, at: f64, scale: f64) -> Side {
    let length = ((f64::from(picture) * scale).round() as u32).clamp(1, output);
    let start = (f64::from(output - length) * at).round() as u32;
    Side {
        source: (0.0, picture.into()),
        target: (start, length),
    }
}

/// Pixel for pixel: a larger picture is cut, a smaller one leaves a margin.
fn plain(picture: u32, output: u32, at: f64) -> Side {
    let length = picture.min(output);
    let room = |free: u32| (f64::from(free) * at).round() as u32;
    let from = f64::from(room(picture - length));
    Side {
        source: (from, length.into()),
        target: (room(output - length), length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIDDLE: Position = Position::CENTER;

    #[test]
    fn each_fit_has_its_layout() {
        let check = |fit: Fit, picture, at, source: [f64; 4], target: [u32; 4]| {
            let placed = fit.place(picture, (800, 400), at);
            assert_eq!(placed, Layout { source, target }, "{fit:?} {picture:?}");
        };
        let square = (200, 200);
        check(
            Fit::Cover,
            square,
            MIDDLE,
            [0.0, 50.0, 200.0, 100.0],
            [0, 0, 800, 400],
        );
        let top = "top-right".parse().unwrap();
        check(
            Fit::Cover,
            square,
            top,
            [0.0, 0.0, 200.0, 100.0],
            [0, 0, 800, 400],
        );
        check(
            Fit::Cover,
            (800, 400),
            MIDDLE,
            [0.0, 0.0, 800.0, 400.0],
            [0, 0, 800, 400],
        );
        check(
            Fit::Contain,
            square,
            MIDDLE,
            [0.0, 0.0, 200.0, 200.0],
            [200, 0, 400, 400],
        );
        check(
            Fit::Contain,
            square,
            top,
            [0.0, 0.0, 200.0, 200.0],
            [400, 0, 400, 400],
        );
        check(
            Fit::Fill,
            square,
            MIDDLE,
            [0.0, 0.0, 200.0, 200.0],
            [0, 0, 800, 400],
        );
        check(
            Fit::Center,
            square,
            MIDDLE,
            [0.0, 0.0, 200.0, 200.0],
            [300, 100, 200, 200],
        );
        check(
            Fit::Center,
            (1000, 300),
            MIDDLE,
            [100.0, 0.0, 800.0, 300.0],
            [0, 50, 800, 300],
        );
        check(
            Fit::Tile,
            square,
            MIDDLE,
            [0.0, 0.0, 200.0, 200.0],
            [0, 0, 200, 200],
        );
    }

    #[test]
    fn thin_picture_keeps_a_pixel() {
        let placed = Fit::Contain.place((65_535, 1), (800, 400), MIDDLE);
        assert_eq!(placed.target, [0, 200, 800, 1]);
        let scaled = |fit: Fit, picture| fit.place(picture, (800, 400), MIDDLE).scaled(picture);
        assert_eq!(scaled(Fit::Cover, (200, 200)), (800, 800));
        assert_eq!(scaled(Fit::Contain, (200, 200)), (400, 400));
        assert_eq!(scaled(Fit::Center, (200, 3000)), (200, 3000));
    }

    #[test]
    fn picture_over_two_outputs_has_no_seam() {
        let all = [-100.0, 0.0, 300.0, 100.0];
        let part = |own| Span { all, own }.layout((600, 400), (10, 20));
        let (left, right) = (
            part([-100.0, 0.0, 100.0, 100.0]),
            part([0.0, 0.0, 200.0, 100.0]),
        );
        assert_eq!(left.source, [0.0, 100.0, 200.0, 200.0]);
        assert_eq!(right.source, [200.0, 100.0, 400.0, 200.0]);
        assert_eq!(left.target, [0, 0, 10, 20]);
    }
}
