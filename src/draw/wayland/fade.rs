//! Runs a transition on one surface: the frames between the old and the new picture.
//!
//! The new picture itself is the last frame. A frame is drawn when the compositor asks for one, into
//! storage that the compositor has released.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wayland_client::protocol::wl_buffer::WlBuffer;

use super::super::message::Transition;
use super::super::storage::{Mapping, Storage};
use super::super::transition::blend;
use super::super::transition::ease;

/// At most three buffers for an output: these, and that of the old or the new picture.
const CANVASES_MAX: usize = 2;

pub(super) struct Fade {
    from: Mapping,
    to: Mapping,
    transition: Transition,
    size: (u32, u32),
    begun: Instant,
    /// When the last frame was drawn.
    drawn: Option<Instant>,
    canvases: Vec<Canvas>,
    /// The number of the canvas that was drawn last.
    current: Option<u64>,
}

/// A frame between the old and the new picture.
struct Canvas {
    number: u64,
    storage: Arc<Storage>,
    pixels: Mapping,
    buffer: WlBuffer,
    /// The compositor may read it.
    is_held: bool,
}

/// The next step of a transition.
pub(super) enum Next {
    /// Show this buffer of this size.
    Frame(WlBuffer, (u32, u32)),
    /// Wait until this time.
    At(Instant),
    /// Wait until a buffer is released.
    Released,
    /// Show the new picture.
    End,
}

impl Fade {
    pub(super) fn new(
        from: &Storage,
        to: &Storage,
        transition: Transition,
        now: Instant,
    ) -> io::Result<Self> {
        // The first frame already shows some of the new picture.
        let begun = now.checked_sub(interval(&transition)).unwrap_or(now);
        Ok(Self {
            from: from.map()?,
            to: to.map()?,
            transition,
            size: to.size(),
            begun,
            drawn: None,
            canvases: Vec::new(),
            current: None,
        })
    }

    /// Draws the next frame if it is time; `make` gives a buffer over new storage.
    pub(super) fn next(
        &mut self,
        now: Instant,
        make: impl FnOnce(&Storage) -> Option<(u64, WlBuffer)>,
    ) -> Next {
        let gone = now.duration_since(self.begun).as_secs_f64() / self.transition.duration;
        // Not a number if the duration is 0.
        if gone.is_nan() || gone >= 1.0 {
            return Next::End;
        }
        // The compositor's pace varies a little: a frame may be an eighth of an interval early.
        let earliest = self
            .drawn
            .map(|drawn| drawn + interval(&self.transition) * 7 / 8);
        if let Some(earliest) = earliest.filter(|&earliest| earliest > now) {
            return Next::At(earliest);
        }
        let at = match self.canvases.iter().position(|canvas| !canvas.is_held) {
            Some(free) => free,
            None if self.canvases.len() == CANVASES_MAX => return Next::Released,
            None => match Canvas::new(self.size, make) {
                Some(canvas) => {
                    self.canvases.push(canvas);
                    self.canvases.len() - 1
                }
                // Without memory for a frame in between, the picture is shown at once.
                None => return Next::End,
            },
        };
        self.draw(at, gone);
        self.drawn = Some(now);
        Next::Frame(self.canvases[at].buffer.clone(), self.size)
    }

    fn draw(&mut self, at: usize, gone: f64) {
        let gone = ease(self.transition.easing, gone).clamp(0.0, 1.0);
        let canvas = &mut self.canvases[at];
        let width = self.size.0 as usize;
        blend(
            self.transition.effect,
            gone,
            width,
            (&self.from, &self.to),
            &mut canvas.pixels,
        );
        canvas.is_held = true;
        self.current = Some(canvas.number);
    }

    /// The frame on the screen; none before the first frame.
    pub(super) fn current(&self) -> Option<&Arc<Storage>> {
        let current = self
            .canvases
            .iter()
            .find(|canvas| Some(canvas.number) == self.current);
        current.map(|canvas| &canvas.storage)
    }

    /// The compositor has released a buffer.
    pub(super) fn released(&mut self, number: u64) {
        let meant = self
            .canvases
            .iter_mut()
            .find(|canvas| canvas.number == number);
        if let Some(canvas) = meant {
            canvas.is_held = false;
        }
    }
}

fn interval(transition: &Transition) -> Duration {
    Duration::from_secs(1) / transition.fps_max.max(1)
}

impl Canvas {
    fn new(
        size: (u32, u32),
        make: impl FnOnce(&Storage) -> Option<(u64, WlBuffer)>,
    ) -> Option<Self> {
        let storage = Arc::new(Storage::new(size).ok()?);
        let pixels = storage.map().ok()?;
        let (number, buffer) = make(&storage)?;
        Some(Self {
            number,
            storage,
            pixels,
            buffer,
            is_held: false,
        })
    }
}

impl Drop for Canvas {
    /// The frame on the screen stays there: its storage is not written again.
    fn drop(&mut self) {
        self.buffer.destroy();
    }
}
