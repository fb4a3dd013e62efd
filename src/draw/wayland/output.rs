//! Keeps an output as the compositor describes it, its size in pixels, and the surfaces on it.

use wayland_client::protocol::wl_output::{self, WlOutput};
use wayland_client::{Proxy, WEnum};

use super::super::message::Wanted;
use super::super::paint::FrameSize;
use super::events::{Globals, SurfaceId};
use super::surface::Surface;

pub(super) struct DrawnOutput {
    /// The compositor's number. An output that is connected again has another one.
    pub(super) global: u32,
    output: WlOutput,
    /// The description is complete.
    pub(super) is_known: bool,
    pub(super) name: Option<String>,
    mode: Option<(u32, u32)>,
    is_turned: bool,
    scale: u32,
    pub(super) surface: Option<Surface>,
    pub(super) backdrop: Option<Surface>,
}

impl DrawnOutput {
    pub(super) fn new(global: u32, output: WlOutput) -> Self {
        Self {
            global,
            output,
            is_known: false,
            name: None,
            mode: None,
            is_turned: false,
            scale: 1,
            surface: None,
            backdrop: None,
        }
    }

    pub(super) fn is(&self, name: &str) -> bool {
        self.is_known && self.name.as_deref() == Some(name)
    }

    /// Applies a part of the description; returns true after the last part.
    pub(super) fn update(&mut self, event: wl_output::Event) -> bool {
        match event {
            wl_output::Event::Geometry { transform, .. } => {
                let number = match transform {
                    WEnum::Value(transform) => u32::from(transform),
                    WEnum::Unknown(number) => number,
                };
                self.is_turned = number % 2 == 1;
            }
            wl_output::Event::Mode {
                flags: WEnum::Value(flags),
                width,
                height,
                ..
            } if flags.contains(wl_output::Mode::Current) => {
                let side = |side: i32| u32::try_from(side).ok().filter(|&side| side > 0);
                self.mode = side(width).zip(side(height));
            }
            wl_output::Event::Scale { factor } => {
                self.scale = u32::try_from(factor).unwrap_or(1).max(1);
            }
            wl_output::Event::Name { name } => self.name = Some(name),
            wl_output::Event::Done => {
                self.is_known = true;
                let scale = self.scale;
                self.surfaces_mut()
                    .for_each(|surface| surface.whole = scale);
                return true;
            }
            _ => {}
        }
        false
    }

    pub(super) fn surfaces(&self) -> impl Iterator<Item = &Surface> {
        self.surface.iter().chain(&self.backdrop)
    }

    pub(super) fn surfaces_mut(&mut self) -> impl Iterator<Item = &mut Surface> {
        self.surface.iter_mut().chain(&mut self.backdrop)
    }

    /// Removes the surfaces.
    pub(super) fn clear(&mut self) {
        (self.surface, self.backdrop) = (None, None);
    }

    /// Whether the wallpaper would be above the backdrop, if one is wanted. The order of surfaces cannot
    /// be changed later.
    pub(super) fn takes(&self, wanted: &Wanted, globals: &Globals) -> bool {
        let is_later = self.backdrop.is_none() && self.surface.is_some();
        wanted.backdrop.is_none() || !is_later || globals.newer_is_below
    }

    /// Creates the surfaces that are missing, in the order that puts the wallpaper above the backdrop.
    pub(super) fn create_surfaces(&mut self, globals: &Globals, wanted: &Wanted) {
        if !self.takes(wanted, globals) {
            // The output was connected a moment ago, and its wallpaper's surface is for an older
            // request.
            self.clear();
        }
        for is_backdrop in [!globals.newer_is_below, globals.newer_is_below] {
            if is_backdrop && wanted.backdrop.is_none() {
                continue;
            }
            let surface = if is_backdrop {
                &mut self.backdrop
            } else {
                &mut self.surface
            };
            if surface.is_none() {
                let id = SurfaceId {
                    output: self.global,
                    is_backdrop,
                };
                let new = surface.insert(Surface::new(globals, &self.output, id));
                new.whole = self.scale;
            }
        }
    }

    /// Whether the surfaces show this picture in this size already; an unwanted backdrop does not count.
    pub(super) fn shows(&self, wanted: &Wanted, size: FrameSize) -> bool {
        let is_shown = |surface: &Surface| surface.shows(wanted, size);
        let backdrop = self
            .backdrop
            .as_ref()
            .filter(|it| is_shown(it))
            .and_then(Surface::content);
        let is_below = |_| backdrop.is_some_and(|it| it.wanted.backdrop == wanted.backdrop);
        self.surface.as_ref().is_some_and(is_shown) && wanted.backdrop.is_none_or(is_below)
    }

    /// The size of a frame; none before the surfaces have a size.
    pub(super) fn frame_size(&self) -> Option<FrameSize> {
        let surface = self.surface.as_ref()?;
        if self.surfaces().any(|surface| surface.logical.is_none()) {
            return None;
        }
        let turned = |(width, height)| {
            if self.is_turned {
                (height, width)
            } else {
                (width, height)
            }
        };
        let facts = SizeFacts {
            logical: surface.logical?,
            fractional: surface.preferred,
            whole: self.scale,
            mode: self.mode.map(turned),
            viewport: surface.has_viewport(),
        };
        Some(facts.frame())
    }
}

impl Drop for DrawnOutput {
    fn drop(&mut self) {
        self.clear();
        if self.output.version() >= wl_output::REQ_RELEASE_SINCE {
            self.output.release();
        }
    }
}

type Size = (u32, u32);

/// The facts about an output that decide on the size of its frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SizeFacts {
    /// The size of the surface, in the layout's units.
    pub(super) logical: Size,
    /// The scale that the compositor prefers, in parts of 120.
    pub(super) fractional: Option<u32>,
    /// The scale of the output: a fractional one rounded up.
    pub(super) whole: u32,
    /// The pixels of the output, after the transform.
    pub(super) mode: Option<Size>,
    /// Frames of any size can be stretched over the surface.
    pub(super) viewport: bool,
}

impl SizeFacts {
    /// The size of a frame that is shown pixel for pixel, as far as possible.
    pub(super) fn frame(self) -> FrameSize {
        let Some((mode, true)) = self.mode.map(|mode| (mode, self.viewport)) else {
            return self.times(self.whole * 120).into();
        };
        match self.fractional {
            Some(scale) => near(self.times(scale), mode, scale),
            None if self.covers(mode) => mode.into(),
            None => self.times(self.whole * 120).into(),
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

    /// Whether the surface covers the whole output, at a scale that rounds up to the integer one.
    fn covers(self, mode: Size) -> bool {
        let product = |one: u32, other: u32| u64::from(one) * u64::from(other);
        let (one, other) = (
            product(mode.0, self.logical.1),
            product(mode.1, self.logical.0),
        );
        let shape = one.abs_diff(other) <= u64::from(mode.0) + u64::from(mode.1);
        let scale = f64::from(mode.0) / f64::from(self.logical.0);
        let whole = f64::from(self.whole);
        shape && scale <= whole + 0.01 && scale > whole - 1.01
    }
}

/// Places the picture for the mode if the frame differs from it by less than a unit of the layout,
/// because the logical size is an integer.
fn near(pixels: Size, mode: Size, scale: u32) -> FrameSize {
    let unit = scale.div_ceil(120);
    let beside = pixels.0.abs_diff(mode.0) <= unit && pixels.1.abs_diff(mode.1) <= unit;
    let placed = if beside { mode } else { pixels };
    FrameSize { pixels, placed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_has_the_pixels_of_its_surface() {
        let known = |logical, fractional, whole, mode| SizeFacts {
            logical,
            fractional,
            whole,
            mode: Some(mode),
            viewport: true,
        };
        let check_both = |known: SizeFacts, pixels, placed| {
            assert_eq!(known.frame(), FrameSize { pixels, placed }, "{known:?}");
        };
        let check = |known: SizeFacts, expected| check_both(known, expected, expected);
        check(known((1920, 1080), None, 1, (1920, 1080)), (1920, 1080));
        check(
            known((1920, 1080), Some(120), 1, (1920, 1080)),
            (1920, 1080),
        );
        check(known((960, 540), None, 2, (1920, 1080)), (1920, 1080));
        check(known((1280, 720), Some(180), 2, (1920, 1080)), (1920, 1080));
        // 1366 / 1.5 and 2560 / 1.5 are not integers: the compositor shows a pixel more or less.
        check_both(
            known((911, 512), Some(180), 2, (1366, 768)),
            (1367, 768),
            (1366, 768),
        );
        check_both(
            known((1706, 960), Some(180), 2, (2560, 1440)),
            (2559, 1440),
            (2560, 1440),
        );
        // Without the protocol for fractions, the shape decides.
        check(known((911, 512), None, 2, (1366, 768)), (1366, 768));
        // A surface that is not the whole output.
        check(known((800, 200), Some(180), 2, (1920, 1080)), (1200, 300));
        check(known((800, 200), None, 2, (1920, 1080)), (1600, 400));
        let plain = SizeFacts {
            viewport: false,
            ..known((1280, 720), None, 2, (1920, 1080))
        };
        check(plain, (2560, 1440));
        check(
            SizeFacts {
                mode: None,
                ..plain
            },
            (2560, 1440),
        );
    }
}
