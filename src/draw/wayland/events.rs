//! Collects the events of the compositor, in order. [`super::renderer`] handles them, so that files that
//! create objects do not depend on the handlers.

use std::os::fd::AsFd;

use wayland_client::globals::{BindError, GlobalList, GlobalListContents};
use wayland_client::protocol::wl_buffer::{self, WlBuffer};
use wayland_client::protocol::wl_callback::{self, WlCallback};
use wayland_client::protocol::wl_compositor::WlCompositor;
use wayland_client::protocol::wl_output::{self, WlOutput};
use wayland_client::protocol::wl_region::WlRegion;
use wayland_client::protocol::wl_registry::{self, WlRegistry};
use wayland_client::protocol::wl_shm::{Format, WlShm};
use wayland_client::protocol::wl_shm_pool::WlShmPool;
use wayland_client::protocol::wl_surface::WlSurface;
use wayland_client::{Connection, Dispatch, Proxy, QueueHandle, delegate_noop};
use wayland_protocols::wp::fractional_scale::v1::client::wp_fractional_scale_manager_v1::WpFractionalScaleManagerV1;
use wayland_protocols::wp::fractional_scale::v1::client::wp_fractional_scale_v1::{
    self, WpFractionalScaleV1,
};
use wayland_protocols::wp::single_pixel_buffer::v1::client::wp_single_pixel_buffer_manager_v1::WpSinglePixelBufferManagerV1;
use wayland_protocols::wp::viewporter::client::wp_viewport::WpViewport;
use wayland_protocols::wp::viewporter::client::wp_viewporter::WpViewporter;
use wayland_protocols_wlr::layer_shell::v1::client::zwlr_layer_shell_v1::ZwlrLayerShellV1;
use wayland_protocols_wlr::layer_shell::v1::client::zwlr_layer_surface_v1::{
    self, ZwlrLayerSurfaceV1,
};

use super::super::paint;
use super::super::storage::{PIXEL, Storage};

/// One of the surfaces of an output.
#[derive(Clone, Copy, Debug)]
pub(super) struct SurfaceId {
    /// The number of the output (its global).
    pub(super) output: u32,
    pub(super) is_backdrop: bool,
}

/// Identifies a frame or buffer of a surface.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tag {
    pub(super) surface: SurfaceId,
    pub(super) number: u64,
}

/// A `wl_display.sync` request: its answer comes after all events that were sent before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sync(pub(super) u64);

/// One event, with the output (its global) or surface that it concerns.
pub(super) enum Event {
    OutputAdded {
        output: u32,
        version: u32,
    },
    OutputRemoved {
        output: u32,
    },
    /// A part of the description of an output.
    OutputInfo {
        output: u32,
        part: wl_output::Event,
    },
    /// The compositor gives a surface a size.
    Configured {
        surface: SurfaceId,
        serial: u32,
        size: (u32, u32),
    },
    /// The compositor closes a surface.
    Closed {
        output: u32,
    },
    /// The scale that the compositor prefers, in parts of 120.
    PreferredScale {
        surface: SurfaceId,
        scale: u32,
    },
    /// The compositor asks for the next frame.
    FrameDone(Tag),
    /// The compositor no longer reads a buffer.
    BufferReleased(Tag),
    /// The answer to a [`Sync`] request.
    Synced(Sync),
}

/// The events that have not been handled yet.
#[derive(Default)]
pub(super) struct Events(Vec<Event>);

impl Events {
    pub(super) fn take(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.0)
    }
}

/// An object of the compositor whose events matter here; `Of` says which one it is.
trait Source<Of>: Proxy {
    fn read(event: Self::Event, of: &Of) -> Option<Event>;
}

impl<I: Source<Of>, Of> Dispatch<I, Of> for Events {
    fn event(
        events: &mut Self,
        _: &I,
        event: I::Event,
        of: &Of,
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        events.0.extend(I::read(event, of));
    }
}

impl Source<GlobalListContents> for WlRegistry {
    fn read(event: wl_registry::Event, _: &GlobalListContents) -> Option<Event> {
        match event {
            wl_registry::Event::Global {
                name: output,
                interface,
                version,
            } => {
                let is_output = interface == WlOutput::interface().name;
                is_output.then_some(Event::OutputAdded { output, version })
            }
            wl_registry::Event::GlobalRemove { name: output } => {
                Some(Event::OutputRemoved { output })
            }
            _ => None,
        }
    }
}

impl Source<u32> for WlOutput {
    fn read(part: wl_output::Event, output: &u32) -> Option<Event> {
        Some(Event::OutputInfo {
            output: *output,
            part,
        })
    }
}

impl Source<SurfaceId> for ZwlrLayerSurfaceV1 {
    fn read(event: zwlr_layer_surface_v1::Event, &surface: &SurfaceId) -> Option<Event> {
        match event {
            zwlr_layer_surface_v1::Event::Configure {
                serial,
                width,
                height,
            } => {
                let size = (width.max(1), height.max(1));
                Some(Event::Configured {
                    surface,
                    serial,
                    size,
                })
            }
            zwlr_layer_surface_v1::Event::Closed => Some(Event::Closed {
                output: surface.output,
            }),
            _ => None,
        }
    }
}

impl Source<SurfaceId> for WpFractionalScaleV1 {
    fn read(event: wp_fractional_scale_v1::Event, &surface: &SurfaceId) -> Option<Event> {
        match event {
            wp_fractional_scale_v1::Event::PreferredScale { scale } => {
                Some(Event::PreferredScale {
                    surface,
                    scale: scale.max(1),
                })
            }
            _ => None,
        }
    }
}

impl Source<Tag> for WlCallback {
    fn read(_: wl_callback::Event, tag: &Tag) -> Option<Event> {
        Some(Event::FrameDone(*tag))
    }
}

impl Source<Sync> for WlCallback {
    fn read(_: wl_callback::Event, sync: &Sync) -> Option<Event> {
        Some(Event::Synced(*sync))
    }
}

impl Source<Tag> for WlBuffer {
    fn read(event: wl_buffer::Event, tag: &Tag) -> Option<Event> {
        matches!(event, wl_buffer::Event::Release).then_some(Event::BufferReleased(*tag))
    }
}

delegate_noop!(Events: ignore WlShm);
delegate_noop!(Events: ignore WlSurface);
delegate_noop!(Events: WlCompositor);
delegate_noop!(Events: WlRegion);
delegate_noop!(Events: WlShmPool);
delegate_noop!(Events: WpFractionalScaleManagerV1);
delegate_noop!(Events: WpSinglePixelBufferManagerV1);
delegate_noop!(Events: WpViewport);
delegate_noop!(Events: WpViewporter);
delegate_noop!(Events: ZwlrLayerShellV1);

pub(super) struct Globals {
    pub(super) handle: QueueHandle<Events>,
    pub(super) compositor: WlCompositor,
    pub(super) shm: WlShm,
    pub(super) layer_shell: ZwlrLayerShellV1,
    pub(super) viewporter: Option<WpViewporter>,
    /// Used only with a viewporter, which stretches frames of fractional sizes over the surface.
    pub(super) fractional: Option<WpFractionalScaleManagerV1>,
    single_pixel: Option<WpSinglePixelBufferManagerV1>,
    /// The compositor puts newer surfaces of a layer below older ones.
    pub(super) newer_is_below: bool,
}

/// A protocol that wlroots offers until 0.17. Sway until 1.9 offers it and puts newer surfaces below,
/// which no protocol reports; other compositors with such a wlroots put them above.
const OFFERED_BY_OLD_WLROOTS: &str = "zwlr_input_inhibit_manager_v1";

impl Globals {
    pub(super) fn bind(list: &GlobalList, handle: &QueueHandle<Events>) -> Result<Self, String> {
        let viewporter: Option<WpViewporter> = list.bind(handle, 1..=1, ()).ok();
        let fractional = list
            .bind(handle, 1..=1, ())
            .ok()
            .filter(|_| viewporter.is_some());
        Ok(Self {
            handle: handle.clone(),
            // Version 4 damages frames in their own pixels.
            compositor: needed(list, handle, 4..=4)?,
            shm: needed(list, handle, 1..=1)?,
            layer_shell: needed(list, handle, 1..=4)?,
            fractional,
            single_pixel: list
                .bind(handle, 1..=1, ())
                .ok()
                .filter(|_| viewporter.is_some()),
            viewporter,
            newer_is_below: list.contents().with_list(|globals| {
                globals
                    .iter()
                    .any(|global| global.interface == OFFERED_BY_OLD_WLROOTS)
            }),
        })
    }

    /// A buffer over storage; `None` if it is too large for the protocol.
    pub(super) fn buffer(&self, storage: &Storage, tag: Tag) -> Option<WlBuffer> {
        let (width, height) = storage.size();
        let (width, height) = (i32::try_from(width).ok()?, i32::try_from(height).ok()?);
        let stride = width.checked_mul(PIXEL as i32)?;
        let pool = self
            .shm
            .create_pool(storage.as_fd(), storage.length(), &self.handle, ());
        let buffer = pool.create_buffer(
            0,
            width,
            height,
            stride,
            Format::Xrgb8888,
            &self.handle,
            tag,
        );
        pool.destroy();
        Some(buffer)
    }

    /// A buffer of one colour, which the viewport stretches over the surface.
    pub(super) fn color(&self, color: [u8; 3], tag: Tag) -> Option<WlBuffer> {
        match &self.single_pixel {
            Some(manager) => {
                let [red, green, blue] = color.map(|value| u32::from(value) * 0x0101_0101);
                Some(manager.create_u32_rgba_buffer(red, green, blue, u32::MAX, &self.handle, tag))
            }
            None => self.buffer(&paint::plain((1, 1), color).ok()?, tag),
        }
    }
}

fn needed<I>(
    list: &GlobalList,
    handle: &QueueHandle<Events>,
    versions: std::ops::RangeInclusive<u32>,
) -> Result<I, String>
where
    I: Proxy + 'static,
    Events: Dispatch<I, ()>,
{
    let name = I::interface().name;
    list.bind(handle, versions, ())
        .map_err(|error| match error {
            BindError::NotPresent => format!("this compositor does not offer {name}"),
            BindError::UnsupportedVersion => format!("this compositor's {name} is too old"),
        })
}
