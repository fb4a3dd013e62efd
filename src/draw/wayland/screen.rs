//! An output as the compositor describes it, and the surface on it.

use wayland_client::protocol::wl_output::{self, WlOutput};
use wayland_client::{Proxy, QueueHandle, WEnum};

use super::State;
use super::globals::Globals;
use super::size::Known;
use super::surface::Surface;

pub(super) struct Screen {
    /// The compositor's number for it: one that goes and comes back has another.
    pub(super) global: u32,
    output: WlOutput,
    /// Told, and complete.
    pub(super) is_known: bool,
    pub(super) name: Option<String>,
    mode: Option<(u32, u32)>,
    is_turned: bool,
    scale: u32,
    pub(super) surface: Option<Surface>,
}

impl Screen {
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

    /// Takes note; `true` at the end of what belongs together.
    pub(super) fn hear(&mut self, event: wl_output::Event) -> bool {
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

    /// Puts a surface on it where there is none.
    pub(super) fn furnish(&mut self, globals: &Globals, handle: &QueueHandle<State>) {
        if self.surface.is_none() {
            let mut surface = Surface::new(globals, &self.output, self.global, handle);
            surface.whole = self.scale;
            self.surface = Some(surface);
        }
    }

    /// The pixels that a frame of it has; none before its surface has a size.
    pub(super) fn frame_size(&self) -> Option<(u32, u32)> {
        let surface = self.surface.as_ref()?;
        let turned =
            |(width, height)| if self.is_turned { (height, width) } else { (width, height) };
        let known = Known {
            logical: surface.logical?,
            fractional: surface.preferred,
            whole: self.scale,
            mode: self.mode.map(turned),
            viewport: surface.has_viewport(),
        };
        Some(known.frame())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.surface = None;
        if self.output.version() >= wl_output::REQ_RELEASE_SINCE {
            self.output.release();
        }
    }
}
