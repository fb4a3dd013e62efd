//! What one output shows: a surface on the background layer, its frame, and how it came there.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wayland_client::QueueHandle;
use wayland_client::protocol::wl_buffer::WlBuffer;
use wayland_client::protocol::wl_output::WlOutput;
use wayland_client::protocol::wl_surface::WlSurface;
use wayland_protocols::wp::fractional_scale::v1::client::wp_fractional_scale_v1::WpFractionalScaleV1;
use wayland_protocols::wp::viewporter::client::wp_viewport::WpViewport;
use wayland_protocols_wlr::layer_shell::v1::client::zwlr_layer_shell_v1::Layer;
use wayland_protocols_wlr::layer_shell::v1::client::zwlr_layer_surface_v1::{
    Anchor, ZwlrLayerSurfaceV1,
};

use super::super::film::{Film, NextFrame};
use super::super::message::{Effect, Transition, Wanted};
use super::super::paint::Task;
use super::super::storage::Storage;
use super::State;
use super::events::{BufferTag, FrameTag};
use super::fade::{Fade, Next};
use super::globals::Globals;

/// An output that is off or covered asks for no frames: by then what was committed counts as shown.
const FRAME_WITHIN: Duration = Duration::from_millis(500);

pub(super) struct Surface {
    /// The output's.
    global: u32,
    surface: WlSurface,
    layer: ZwlrLayerSurfaceV1,
    viewport: Option<WpViewport>,
    fractional: Option<WpFractionalScaleV1>,
    /// As configured.
    pub(super) logical: Option<(u32, u32)>,
    /// The scale that the compositor prefers, in parts of 120.
    pub(super) preferred: Option<u32>,
    /// The output's, rounded up: only where frames cannot be laid over the surface otherwise.
    pub(super) whole: u32,
    /// A configuration that waits for its answer.
    serial: Option<u32>,
    /// What is on it, or what the transition leads to.
    content: Option<Content>,
    fade: Option<Fade>,
    film: Option<Film>,
    /// When the frame of the film that is shown has had its time.
    film_due: Instant,
    /// The compositor has not asked for a frame since the last one.
    is_waiting: bool,
    /// The frame that was asked for last, and when it counts as shown without.
    awaited: Option<(u64, Instant)>,
    /// When a frame of the transition may be drawn that was too early.
    pub(super) wake_at: Option<Instant>,
    /// A frame is wanted as soon as a buffer is given back.
    is_due: bool,
    /// Something of the content has been on the screen.
    pub(super) is_up: bool,
    /// The number of the frame that was asked for last.
    asked: u64,
    /// Counts frames and buffers.
    last_number: u64,
}

pub(super) struct Content {
    pub(super) wanted: Wanted,
    /// The size that it was painted for.
    pub(super) size: (u32, u32),
    /// None where it is the colour alone.
    pub(super) frame: Option<Arc<Storage>>,
    /// More frames follow.
    pub(super) moves: bool,
}

impl Surface {
    pub(super) fn new(
        globals: &Globals,
        output: &WlOutput,
        global: u32,
        handle: &QueueHandle<State>,
    ) -> Self {
        let surface = globals.compositor.create_surface(handle, ());
        let region = globals.compositor.create_region(handle, ());
        surface.set_input_region(Some(&region));
        region.destroy();
        let (fractional, viewport) = (&globals.fractional, &globals.viewporter);
        let fractional =
            fractional.as_ref().map(|it| it.get_fractional_scale(&surface, handle, global));
        let viewport = viewport.as_ref().map(|it| it.get_viewport(&surface, handle, ()));
        let (below, name) = (Layer::Background, "wallpaper".to_owned());
        let shell = &globals.layer_shell;
        let layer = shell.get_layer_surface(&surface, Some(output), below, name, handle, global);
        layer.set_size(0, 0);
        layer.set_anchor(Anchor::all());
        layer.set_exclusive_zone(-1);
        surface.commit();
        Self {
            global,
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
            film: None,
            film_due: Instant::now(),
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

    /// Whether nothing would change by showing this, in this size.
    pub(super) fn shows(&self, wanted: &Wanted, size: (u32, u32)) -> bool {
        let shown = self.content.as_ref();
        shown.is_some_and(|shown| shown.size == size && shown.wanted.looks_like(wanted))
    }

    /// The same picture may have come to lie elsewhere.
    pub(super) fn rename(&mut self, wanted: &Wanted) {
        if let Some(content) = self.content.as_mut().filter(|it| it.wanted.looks_like(wanted)) {
            content.wanted = wanted.clone();
        }
    }

    /// The compositor gives it a size. What is on it is stretched until it is painted anew.
    pub(super) fn configure(
        &mut self,
        globals: &Globals,
        (serial, size): (u32, (u32, u32)),
        handle: &QueueHandle<State>,
    ) {
        self.serial = Some(serial);
        self.logical = Some(size);
        if self.content.is_some() && self.viewport.is_some() {
            self.fit(globals, handle);
            self.surface.commit();
        }
    }

    /// Shows a picture, at once or by and by.
    pub(super) fn show(
        &mut self,
        globals: &Globals,
        content: Content,
        transition: &Transition,
        handle: &QueueHandle<State>,
    ) {
        let now = Instant::now();
        self.fade = self.transition_to(&content, transition, now);
        self.film = None;
        self.content = Some(content);
        self.is_up = false;
        self.advance(globals, now, handle);
    }

    /// From what is on the screen now; none where there is nothing to go on from.
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
        // Without memory to map them there is only the end.
        moves.then(|| Fade::new(before, after, transition.clone(), now).ok())?
    }

    /// The next frame of the transition, or the picture itself.
    pub(super) fn advance(&mut self, globals: &Globals, now: Instant, handle: &QueueHandle<State>) {
        (self.wake_at, self.is_due) = (None, false);
        let number = self.next_number();
        let tag = BufferTag { output: self.global, number };
        let next = match &mut self.fade {
            Some(fade) => fade.next(now, |storage| {
                globals.buffer(storage, tag, handle).map(|buffer| (number, buffer))
            }),
            None => Next::End,
        };
        match next {
            Next::Frame(buffer, size) => self.commit(globals, (&buffer, size), handle),
            Next::At(time) => self.wake_at = Some(time),
            Next::Released => self.is_due = true,
            Next::End => self.finish(globals, handle),
        }
    }

    /// The picture itself. Its storage is never written again, so its buffer goes at once.
    fn finish(&mut self, globals: &Globals, handle: &QueueHandle<State>) {
        let tag = BufferTag { output: self.global, number: self.next_number() };
        let Some(content) = &self.content else { return };
        let made = match &content.frame {
            Some(frame) => globals.buffer(frame, tag, handle).map(|made| (made, frame.size())),
            None => {
                globals.color(content.wanted.style.fill, tag, handle).map(|made| (made, (1, 1)))
            }
        };
        if let Some((buffer, size)) = made {
            self.commit(globals, (&buffer, size), handle);
            buffer.destroy();
        }
        self.fade = None;
    }

    fn commit(
        &mut self,
        globals: &Globals,
        (buffer, (width, height)): (&WlBuffer, (u32, u32)),
        handle: &QueueHandle<State>,
    ) {
        self.fit(globals, handle);
        self.surface.attach(Some(buffer), 0, 0);
        self.surface.damage_buffer(0, 0, width as i32, height as i32);
        let number = self.next_number();
        self.asked = number;
        self.surface.frame(handle, FrameTag { output: self.global, number });
        self.awaited = Some((number, Instant::now() + FRAME_WITHIN));
        self.is_waiting = true;
        self.surface.commit();
    }

    /// Lays the frame over the whole surface. Takes effect with the commit.
    fn fit(&mut self, globals: &Globals, handle: &QueueHandle<State>) {
        if let Some(serial) = self.serial.take() {
            self.layer.ack_configure(serial);
        }
        let Some((width, height)) = self.logical.map(|(w, h)| (w as i32, h as i32)) else { return };
        match &self.viewport {
            Some(viewport) => viewport.set_destination(width, height),
            None => self.surface.set_buffer_scale(self.whole as i32),
        }
        let region = globals.compositor.create_region(handle, ());
        region.add(0, 0, width, height);
        self.surface.set_opaque_region(Some(&region));
        region.destroy();
    }

    /// The compositor asks for the next frame: what was committed is on the screen.
    pub(super) fn frame(&mut self, globals: &Globals, number: u64, handle: &QueueHandle<State>) {
        if number != self.asked {
            return;
        }
        (self.awaited, self.is_up, self.is_waiting) = (None, true, false);
        match self.fade.is_some() {
            true => self.advance(globals, Instant::now(), handle),
            false => self.play(globals, Instant::now(), handle),
        }
    }

    /// A buffer was given back.
    pub(super) fn released(&mut self, globals: &Globals, number: u64, handle: &QueueHandle<State>) {
        if let Some(fade) = &mut self.fade {
            fade.released(number);
            if self.is_due {
                self.advance(globals, Instant::now(), handle);
            }
        }
    }

    /// What is to be done without the compositor's asking.
    pub(super) fn tick(&mut self, globals: &Globals, now: Instant, handle: &QueueHandle<State>) {
        if self.awaited.is_some_and(|(_, late)| late <= now) {
            (self.awaited, self.is_up, self.wake_at) = (None, true, None);
            if self.fade.is_some() {
                self.finish(globals, handle);
            }
        } else if self.wake_at.is_some_and(|wake_at| wake_at <= now) {
            match self.fade.is_some() {
                true => self.advance(globals, now, handle),
                false => self.play(globals, now, handle),
            }
        }
    }

    /// The next frame of a picture that moves, if it is time. Nothing moves where nobody looks: then
    /// the compositor asks for no frames.
    pub(super) fn play(&mut self, globals: &Globals, now: Instant, handle: &QueueHandle<State>) {
        self.wake_at = None;
        let moves = self.content.as_ref().is_some_and(|content| content.moves);
        if !moves || self.fade.is_some() || self.is_waiting {
            return;
        }
        if self.film.is_none() {
            self.film_due = now;
            self.film = self.film_of_content();
        }
        if self.film_due > now {
            self.wake_at = Some(self.film_due);
            return;
        }
        match self.film.as_ref().map_or(NextFrame::Never, Film::next) {
            NextFrame::NotYet => {}
            NextFrame::Ready(frame, stays) => {
                self.film_due = (self.film_due + stays).max(now);
                if let Some(content) = &mut self.content {
                    content.frame = Some(frame);
                }
                self.finish(globals, handle);
            }
            NextFrame::Never => {
                self.film = None;
                if let Some(content) = &mut self.content {
                    content.moves = false;
                }
            }
        }
    }

    fn film_of_content(&self) -> Option<Film> {
        let content = self.content.as_ref()?;
        Film::start(Task { wanted: content.wanted.clone(), size: content.size }).ok()
    }

    pub(super) fn film(&self) -> Option<&Film> {
        // While a frame stays nobody needs to know of the next.
        self.film.as_ref().filter(|_| self.wake_at.is_none() && !self.is_waiting)
    }

    /// When it wants to be ticked.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let late = self.awaited.map(|(_, late)| late);
        [late, self.wake_at].into_iter().flatten().min()
    }

    fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }
}

impl Drop for Surface {
    fn drop(&mut self) {
        // In this order: what belongs to the surface goes before it.
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
