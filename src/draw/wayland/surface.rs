//! Controls a surface of one output on the background layer: its frame, transition and animation.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wayland_client::protocol::wl_buffer::WlBuffer;
use wayland_client::protocol::wl_output::WlOutput;
use wayland_client::protocol::wl_surface::WlSurface;
use wayland_protocols::wp::fractional_scale::v1::client::wp_fractional_scale_v1::WpFractionalScaleV1;
use wayland_protocols::wp::viewporter::client::wp_viewport::WpViewport;
use wayland_protocols_wlr::layer_shell::v1::client::zwlr_layer_shell_v1::Layer;
use wayland_protocols_wlr::layer_shell::v1::client::zwlr_layer_surface_v1::{
    Anchor, ZwlrLayerSurfaceV1,
};

use super::super::message::{Effect, Transition, Wanted};
use super::super::paint::{FrameSize, Task};
use super::super::painting::{Animation, NextFrame};
use super::super::storage::Storage;
use super::events::Globals;
use super::events::{SurfaceId, Tag};
use super::fade::{Fade, Next};

/// An output that is off or covered asks for no frames. After this time, its frame counts as shown.
const FRAME_WITHIN: Duration = Duration::from_millis(500);

pub(super) struct Surface {
    id: SurfaceId,
    surface: WlSurface,
    layer: ZwlrLayerSurfaceV1,
    viewport: Option<WpViewport>,
    fractional: Option<WpFractionalScaleV1>,
    /// The size that the compositor configured.
    pub(super) logical: Option<(u32, u32)>,
    /// The scale that the compositor prefers, in parts of 120.
    pub(super) preferred: Option<u32>,
    /// The scale of the output, rounded up. Used only without a viewport.
    pub(super) whole: u32,
    /// A configuration that is not acknowledged yet.
    serial: Option<u32>,
    /// The picture that is shown, or the one at the end of the transition.
    content: Option<Content>,
    fade: Option<Fade>,
    animation: Option<Animation>,
    /// When the next frame of the animation is due.
    next_frame_due: Instant,
    /// The compositor has not asked for another frame yet.
    is_waiting: bool,
    /// The last frame, and when it counts as shown without a callback.
    awaited: Option<(u64, Instant)>,
    /// When the next frame of the transition, which was too early, may be drawn.
    pub(super) wake_at: Option<Instant>,
    /// A frame must be drawn as soon as a buffer is released.
    is_due: bool,
    /// A frame of the content has been on the screen.
    pub(super) is_up: bool,
    /// The number of the last frame.
    asked: u64,
    /// Counts frames and buffers.
    last_number: u64,
}

pub(super) struct Content {
    pub(super) wanted: Wanted,
    /// The size for which the frame was painted.
    pub(super) size: FrameSize,
    /// `None` for a plain colour.
    pub(super) frame: Option<Arc<Storage>>,
    /// The picture is animated.
    pub(super) moves: bool,
    /// The file could not be painted: the frame has another size, or there is none.
    pub(super) is_substitute: bool,
}

impl Surface {
    pub(super) fn new(globals: &Globals, output: &WlOutput, id: SurfaceId) -> Self {
        let surface = globals.compositor.create_surface(&globals.handle, ());
        let region = globals.compositor.create_region(&globals.handle, ());
        surface.set_input_region(Some(&region));
        region.destroy();
        let (fractional, viewport) = (&globals.fractional, &globals.viewporter);
        let fractional = fractional
            .as_ref()
            .map(|it| it.get_fractional_scale(&surface, &globals.handle, id));
        let viewport = viewport
            .as_ref()
            .map(|it| it.get_viewport(&surface, &globals.handle, ()));
        let name = if id.is_backdrop {
            "murald-backdrop"
        } else {
            "wallpaper"
        };
        let below = Layer::Background;
        let name = name.to_owned();
        let shell = &globals.layer_shell;
        let layer =
            shell.get_layer_surface(&surface, Some(output), below, name, &globals.handle, id);
        layer.set_size(0, 0);
        layer.set_anchor(Anchor::all());
        layer.set_exclusive_zone(-1);
        surface.commit();
        Self {
            id,
            surface,
            layer,
            viewport,
            fractional,
            logical: None,
            preferred: None,
            whole: 1,
            serial: None,
            content: None,
            fade: None,
            animation: None,
            next_frame_due: Instant::now(),
            is_waiting: false,
            awaited: None,
            wake_at: None,
            is_due: false,
            is_up: false,
            asked: 0,
            last_number: 0,
        }
    }

    pub(super) fn has_viewport(&self) -> bool {
        self.viewport.is_some()
    }

    pub(super) fn content(&self) -> Option<&Content> {
        self.content.as_ref()
    }

    /// Whether the surface shows this picture in this size already.
    pub(super) fn shows(&self, wanted: &Wanted, size: FrameSize) -> bool {
        let shown = self.content.as_ref();
        shown.is_some_and(|shown| shown.size == size && shown.wanted.looks_like(wanted))
    }

    /// Whether the surface shows a substitute, because the picture's file could not be painted.
    pub(super) fn has_substitute(&self) -> bool {
        self.content
            .as_ref()
            .is_some_and(|content| content.is_substitute)
    }

    /// Updates the path of the same picture.
    pub(super) fn rename(&mut self, wanted: &Wanted) {
        if let Some(content) = self
            .content
            .as_mut()
            .filter(|it| it.wanted.looks_like(wanted))
        {
            content.wanted = wanted.clone();
        }
    }

    /// The compositor gives the surface a size. The old frame is stretched until a new one is painted.
    pub(super) fn configure(&mut self, globals: &Globals, (serial, size): (u32, (u32, u32))) {
        self.serial = Some(serial);
        self.logical = Some(size);
        if self.content.is_some() && self.viewport.is_some() {
            self.fit(globals);
            self.surface.commit();
        }
    }

    /// Shows a picture, at once or with a transition.
    pub(super) fn show(&mut self, globals: &Globals, content: Content, transition: &Transition) {
        let now = Instant::now();
        self.fade = self.transition_to(&content, transition, now);
        self.animation = None;
        self.content = Some(content);
        self.is_up = false;
        self.advance(globals, now);
    }

    /// The transition from the frame on the screen; `None` if there is no such frame.
    fn transition_to(
        &self,
        content: &Content,
        transition: &Transition,
        now: Instant,
    ) -> Option<Fade> {
        let before = self.fade.as_ref().and_then(Fade::current);
        let before = before.or(self.content.as_ref()?.frame.as_ref())?;
        let after = content.frame.as_ref()?;
        let moves = transition.effect != Effect::None && before.size() == after.size();
        // Without memory for the frames in between, the picture is shown at once.
        moves.then(|| Fade::new(before, after, transition.clone(), now).ok())?
    }

    /// Shows the next frame of the transition, or the picture itself.
    pub(super) fn advance(&mut self, globals: &Globals, now: Instant) {
        (self.wake_at, self.is_due) = (None, false);
        let tag = self.next_tag();
        let next = match &mut self.fade {
            Some(fade) => fade.next(now, |storage| {
                let buffer = globals.buffer(storage, tag)?;
                Some((tag.number, buffer))
            }),
            None => Next::End,
        };
        match next {
            Next::Frame(buffer, size) => self.commit(globals, (&buffer, size)),
            Next::At(time) => self.wake_at = Some(time),
            Next::Released => self.is_due = true,
            Next::End => self.finish(globals),
        }
    }

    /// Shows the picture itself. Its storage is never written again, so its buffer is destroyed at once.
    fn finish(&mut self, globals: &Globals) {
        let tag = self.next_tag();
        let Some(content) = &self.content else { return };
        let made = match &content.frame {
            Some(frame) => globals.buffer(frame, tag).map(|made| (made, frame.size())),
            None => globals
                .color(content.wanted.style.fill, tag)
                .map(|made| (made, (1, 1))),
        };
        if let Some((buffer, size)) = made {
            self.commit(globals, (&buffer, size));
            buffer.destroy();
        }
        self.fade = None;
    }

    fn commit(&mut self, globals: &Globals, (buffer, (width, height)): (&WlBuffer, (u32, u32))) {
        self.fit(globals);
        self.surface.attach(Some(buffer), 0, 0);
        self.surface
            .damage_buffer(0, 0, width as i32, height as i32);
        let tag = self.next_tag();
        self.asked = tag.number;
        self.surface.frame(&globals.handle, tag);
        self.awaited = Some((tag.number, Instant::now() + FRAME_WITHIN));
        self.is_waiting = true;
        self.surface.commit();
    }

    /// Stretches the frame over the whole surface. Takes effect with the commit.
    fn fit(&mut self, globals: &Globals) {
        if let Some(serial) = self.serial.take() {
            self.layer.ack_configure(serial);
        }
        let Some((width, height)) = self.logical.map(|(w, h)| (w as i32, h as i32)) else {
            return;
        };
        match &self.viewport {
            Some(viewport) => viewport.set_destination(width, height),
            None => self.surface.set_buffer_scale(self.whole as i32),
        }
        let region = globals.compositor.create_region(&globals.handle, ());
        region.add(0, 0, width, height);
        self.surface.set_opaque_region(Some(&region));
        region.destroy();
    }

    /// The compositor asks for the next frame: the last one is on the screen.
    pub(super) fn frame(&mut self, globals: &Globals, number: u64) {
        if number != self.asked {
            return;
        }
        (self.awaited, self.is_up, self.is_waiting) = (None, true, false);
        if self.fade.is_some() {
            self.advance(globals, Instant::now())
        } else {
            self.play(globals, Instant::now())
        }
    }

    /// The compositor has released a buffer.
    pub(super) fn released(&mut self, globals: &Globals, number: u64) {
        if let Some(fade) = &mut self.fade {
            fade.released(number);
            if self.is_due {
                self.advance(globals, Instant::now());
            }
        }
    }

    /// Does what is due at this time.
    pub(super) fn tick(&mut self, globals: &Globals, now: Instant) {
        if self.awaited.is_some_and(|(_, late)| late <= now) {
            (self.awaited, self.is_up, self.wake_at) = (None, true, None);
            if self.fade.is_some() {
                self.finish(globals);
            }
        } else if self.wake_at.is_some_and(|wake_at| wake_at <= now) {
            if self.fade.is_some() {
                self.advance(globals, now)
            } else {
                self.play(globals, now)
            }
        }
    }

    /// Shows the next frame of an animation if it is due. A covered animation pauses, because the
    /// compositor asks for no frames of it.
    pub(super) fn play(&mut self, globals: &Globals, now: Instant) {
        self.wake_at = None;
        let moves = self.content.as_ref().is_some_and(|content| content.moves);
        if !moves || self.fade.is_some() || self.is_waiting {
            return;
        }
        if self.animation.is_none() {
            self.next_frame_due = now;
            self.animation = self.animation_of_content();
        }
        if self.next_frame_due > now {
            self.wake_at = Some(self.next_frame_due);
            return;
        }
        match self
            .animation
            .as_ref()
            .map_or(NextFrame::Never, Animation::next)
        {
            NextFrame::NotYet => {}
            NextFrame::Ready(frame, stays) => {
                self.next_frame_due = (self.next_frame_due + stays).max(now);
                if let Some(content) = &mut self.content {
                    content.frame = Some(frame);
                }
                self.finish(globals);
            }
            NextFrame::Never => {
                self.animation = None;
                if let Some(content) = &mut self.content {
                    content.moves = false;
                }
            }
        }
    }

    fn animation_of_content(&self) -> Option<Animation> {
        let content = self.content.as_ref()?;
        Animation::start(Task {
            wanted: content.wanted.clone(),
            size: content.size,
        })
        .ok()
    }

    pub(super) fn animation(&self) -> Option<&Animation> {
        // The next frame matters only once the last one has had its time.
        self.animation
            .as_ref()
            .filter(|_| self.wake_at.is_none() && !self.is_waiting)
    }

    /// When [`Self::tick`] must be called.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let late = self.awaited.map(|(_, late)| late);
        [late, self.wake_at].into_iter().flatten().min()
    }

    fn next_tag(&mut self) -> Tag {
        self.last_number += 1;
        Tag {
            surface: self.id,
            number: self.last_number,
        }
    }
}

impl Drop for Surface {
    fn drop(&mut self) {
        // Objects of the surface are destroyed before the surface.
        self.fade = None;
        if let Some(fractional) = &self.fractional {
            fractional.destroy();
        }
        if let Some(viewport) = &self.viewport {
            viewport.destroy();
        }
        self.layer.destroy();
        self.surface.destroy();
    }
}
