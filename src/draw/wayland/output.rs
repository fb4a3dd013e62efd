//! An output as the compositor describes it, and the surface on it.

use wayland_client::protocol::wl_output::{self, WlOutput};
use wayland_client::{Proxy, WEnum};

use super::globals::Globals;
use super::size::SizeFacts;
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
        }
    }

    pub(super) fn is(&self, name: &str) -> bool {
        self.is_known && self.name.as_deref() == Some(name)
    }

    /// Takes over a part of the description; `true` after the last part.
    pub(super) fn update(&mut self, event: wl_output::Event) -> bool {
        match event {
            wl_output::Event::Geometry { transform, .. } => {
                let number = match transform {
                    WEnum::Value(transform) => u32::from(transform),
                    WEnum::Unknown(number) => number,
                };
                self.is_turned = number % 2 == 1;
            }
            wl_output::Event::Mode { flags: WEnum::Value(flags), width, height, .. }
                if flags.contains(wl_output::Mode::Current) =>
            {
                let side = |side: i32| u32::try_from(side).ok().filter(|&side| side > 0);
                self.mode = side(width).zip(side(height));
            }
            wl_output::Event::Scale { factor } => {
                self.scale = u32::try_from(factor).unwrap_or(1).max(1);
            }
            wl_output::Event::Name { name } => self.name = Some(name),
            wl_output::Event::Done => {
                self.is_known = true;
                if let Some(surface) = &mut self.surface {
                    surface.whole = self.scale;
                }
                return true;
            }
            _ => {}
        }
        false
    }

    /// Creates the surface unless there is one.
    pub(super) fn create_surface(&mut self, globals: &Globals) {
        if self.surface.is_none() {
            let mut surface = Surface::new(globals, &self.output, self.global);
            surface.whole = self.scale;
            self.surface = Some(surface);
        }
    }

    /// The size of a frame in pixels; none before the surface has a size.
    pub(super) fn frame_size(&self) -> Option<(u32, u32)> {
        let surface = self.surface.as_ref()?;
        let turned =
            |(width, height)| if self.is_turned { (height, width) } else { (width, height) };
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
        self.surface = None;
        if self.output.version() >= wl_output::REQ_RELEASE_SINCE {
            self.output.release();
        }
    }
}
