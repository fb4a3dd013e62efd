//! What the compositor says, brought to whom it concerns.

use wayland_client::globals::GlobalListContents;
use wayland_client::protocol::wl_buffer::{self, WlBuffer};
use wayland_client::protocol::wl_callback::{self, WlCallback};
use wayland_client::protocol::wl_compositor::WlCompositor;
use wayland_client::protocol::wl_output::{self, WlOutput};
use wayland_client::protocol::wl_region::WlRegion;
use wayland_client::protocol::wl_registry::{self, WlRegistry};
use wayland_client::protocol::wl_shm::WlShm;
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

use super::State;

/// Which frame of which output.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameTag {
    pub(super) output: u32,
    pub(super) number: u64,
}

/// Which buffer of which output.
#[derive(Clone, Copy, Debug)]
pub(super) struct BufferTag {
    pub(super) output: u32,
    pub(super) number: u64,
}

/// A question whose answer shows that all before it has been heard.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked(pub(super) u64);

impl Dispatch<WlRegistry, GlobalListContents> for State {
    fn event(
        state: &mut Self,
        registry: &WlRegistry,
        event: wl_registry::Event,
        _: &GlobalListContents,
        _: &Connection,
        handle: &QueueHandle<Self>,
    ) {
        match event {
            wl_registry::Event::Global { name, interface, version }
                if interface == WlOutput::interface().name =>
            {
                state.output_came(registry, name, version, handle);
            }
            wl_registry::Event::GlobalRemove { name } => state.output_gone(name),
            _ => {}
        }
    }
}

impl Dispatch<WlOutput, u32> for State {
    fn event(
        state: &mut Self,
        _: &WlOutput,
        event: wl_output::Event,
        global: &u32,
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        if state.screen(*global).is_some_and(|screen| screen.hear(event)) {
            state.output_told(*global);
        }
    }
}

impl Dispatch<ZwlrLayerSurfaceV1, u32> for State {
    fn event(
        state: &mut Self,
        _: &ZwlrLayerSurfaceV1,
        event: zwlr_layer_surface_v1::Event,
        global: &u32,
        _: &Connection,
        handle: &QueueHandle<Self>,
    ) {
        match event {
            zwlr_layer_surface_v1::Event::Configure { serial, width, height } => {
                let size = (width.max(1), height.max(1));
                state.with_surface(*global, |surface, globals| {
                    surface.configure(globals, (serial, size), handle);
                });
            }
            zwlr_layer_surface_v1::Event::Closed => {
                if let Some(screen) = state.screen(*global) {
                    screen.surface = None;
                    // The output goes, too, or it would be asked for a surface again and again.
                    screen.is_known = false;
                }
            }
            _ => {}
        }
    }
}

impl Dispatch<WpFractionalScaleV1, u32> for State {
    fn event(
        state: &mut Self,
        _: &WpFractionalScaleV1,
        event: wp_fractional_scale_v1::Event,
        global: &u32,
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        if let wp_fractional_scale_v1::Event::PreferredScale { scale } = event {
            state.with_surface(*global, |surface, _| surface.preferred = Some(scale.max(1)));
        }
    }
}

impl Dispatch<WlCallback, FrameTag> for State {
    fn event(
        state: &mut Self,
        _: &WlCallback,
        _: wl_callback::Event,
        tag: &FrameTag,
        _: &Connection,
        handle: &QueueHandle<Self>,
    ) {
        state.with_surface(tag.output, |surface, globals| {
            surface.frame(globals, tag.number, handle);
        });
    }
}

impl Dispatch<WlCallback, Asked> for State {
    fn event(
        state: &mut Self,
        _: &WlCallback,
        _: wl_callback::Event,
        asked: &Asked,
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        state.heard(asked.0);
    }
}

impl Dispatch<WlBuffer, BufferTag> for State {
    fn event(
        state: &mut Self,
        _: &WlBuffer,
        event: wl_buffer::Event,
        tag: &BufferTag,
        _: &Connection,
        handle: &QueueHandle<Self>,
    ) {
        if let wl_buffer::Event::Release = event {
            state.with_surface(tag.output, |surface, globals| {
                surface.released(globals, tag.number, handle);
            });
        }
    }
}

delegate_noop!(State: ignore WlShm);
delegate_noop!(State: ignore WlSurface);
delegate_noop!(State: WlCompositor);
delegate_noop!(State: WlRegion);
delegate_noop!(State: WlShmPool);
delegate_noop!(State: WpFractionalScaleManagerV1);
delegate_noop!(State: WpSinglePixelBufferManagerV1);
delegate_noop!(State: WpViewport);
delegate_noop!(State: WpViewporter);
delegate_noop!(State: ZwlrLayerShellV1);
