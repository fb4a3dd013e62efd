//! The number of pixels of a frame. Pure.

type Size = (u32, u32);

/// The facts about an output that decide on the size of its frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SizeFacts {
    /// Of the surface, in the layout's units.
    pub(super) logical: Size,
    /// The scale that the compositor prefers, in parts of 120.
    pub(super) fractional: Option<u32>,
    /// The scale of the output: a fractional one rounded up.
    pub(super) whole: u32,
    /// The pixels of the output, turned as it is.
    pub(super) mode: Option<Size>,
    /// Frames of any size can be laid over the surface.
    pub(super) viewport: bool,
}

impl SizeFacts {
    /// The size of a frame that comes out pixel for pixel, as far as that can be had.
    pub(super) fn frame(self) -> Size {
        let Some((mode, true)) = self.mode.map(|mode| (mode, self.viewport)) else {
            return self.times(self.whole * 120);
        };
        match self.fractional {
            Some(scale) => self.near(self.times(scale), mode),
            None if self.covers(mode) => mode,
            None => self.times(self.whole * 120),
        }
    }

    /// Rounded half up, as the protocol says.
    fn times(self, scale: u32) -> Size {
        let times = |side: u32| {
            let exact = u64::from(side) * u64::from(scale);
            u32::try_from((exact + 60) / 120).unwrap_or(u32::MAX).max(1)
        };
        (times(self.logical.0), times(self.logical.1))
    }

    /// The logical size is rounded, too: what comes out beside the mode by one pixel is the mode.
    fn near(self, size: Size, mode: Size) -> Size {
        let beside = size.0.abs_diff(mode.0) <= 1 && size.1.abs_diff(mode.1) <= 1;
        if beside { mode } else { size }
    }

    /// Whether the surface is the whole output, by some scale that rounds up to the whole one.
    fn covers(self, mode: Size) -> bool {
        let product = |one: u32, other: u32| u64::from(one) * u64::from(other);
        let (one, other) = (product(mode.0, self.logical.1), product(mode.1, self.logical.0));
        let shape = one.abs_diff(other) <= u64::from(mode.0) + u64::from(mode.1);
        let scale = f64::from(mode.0) / f64::from(self.logical.0);
        let whole = f64::from(self.whole);
        shape && scale <= whole + 0.01 && scale > whole - 1.01
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let known = |logical, fractional, whole, mode| SizeFacts {
            logical,
            fractional,
            whole,
            mode: Some(mode),
            viewport: true,
        };
        let check = |known: SizeFacts, expected| assert_eq!(known.frame(), expected, "{known:?}");
        check(known((1920, 1080), None, 1, (1920, 1080)), (1920, 1080));
        check(known((1920, 1080), Some(120), 1, (1920, 1080)), (1920, 1080));
        check(known((960, 540), None, 2, (1920, 1080)), (1920, 1080));
        check(known((1280, 720), Some(180), 2, (1920, 1080)), (1920, 1080));
        // 1366 / 1.5 is no whole number: the mode is meant.
        check(known((911, 512), Some(180), 2, (1366, 768)), (1366, 768));
        // Without the protocol for fractions the shape tells.
        check(known((911, 512), None, 2, (1366, 768)), (1366, 768));
        // A surface that is not the whole output.
        check(known((800, 200), Some(180), 2, (1920, 1080)), (1200, 300));
        check(known((800, 200), None, 2, (1920, 1080)), (1600, 400));
        let plain = SizeFacts { viewport: false, ..known((1280, 720), None, 2, (1920, 1080)) };
        check(plain, (2560, 1440));
        check(SizeFacts { mode: None, ..plain }, (2560, 1440));
    }
}
