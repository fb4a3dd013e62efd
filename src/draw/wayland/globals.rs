//! The protocols of the compositor that are used.

use std::os::fd::AsFd;

use wayland_client::globals::{BindError, GlobalList};
use wayland_client::protocol::wl_buffer::WlBuffer;
use wayland_client::protocol::wl_compositor::WlCompositor;
use wayland_client::protocol::wl_shm::{Format, WlShm};
use wayland_client::{Dispatch, Proxy, QueueHandle};
use wayland_protocols::wp::fractional_scale::v1::client::wp_fractional_scale_manager_v1::WpFractionalScaleManagerV1;
use wayland_protocols::wp::single_pixel_buffer::v1::client::wp_single_pixel_buffer_manager_v1::WpSinglePixelBufferManagerV1;
use wayland_protocols::wp::viewporter::client::wp_viewporter::WpViewporter;
use wayland_protocols_wlr::layer_shell::v1::client::zwlr_layer_shell_v1::ZwlrLayerShellV1;

use super::super::paint;
use super::super::storage::{PIXEL, Storage};
use super::events::{BufferTag, Events};

pub(super) struct Globals {
    pub(super) handle: QueueHandle<Events>,
    pub(super) compositor: WlCompositor,
    pub(super) shm: WlShm,
    pub(super) layer_shell: ZwlrLayerShellV1,
    pub(super) viewporter: Option<WpViewporter>,
    /// Only with a viewporter: frames of fractional sizes are laid over the surface by it.
    pub(super) fractional: Option<WpFractionalScaleManagerV1>,
    single_pixel: Option<WpSinglePixelBufferManagerV1>,
}

impl Globals {
    pub(super) fn bind(list: &GlobalList, handle: &QueueHandle<Events>) -> Result<Self, String> {
        let viewporter: Option<WpViewporter> = list.bind(handle, 1..=1, ()).ok();
        let fractional = list.bind(handle, 1..=1, ()).ok().filter(|_| viewporter.is_some());
        Ok(Self {
            handle: handle.clone(),
            // Version 4 damages frames in their own pixels.
            compositor: needed(list, handle, 4..=4)?,
            shm: needed(list, handle, 1..=1)?,
            layer_shell: needed(list, handle, 1..=4)?,
            fractional,
            single_pixel: list.bind(handle, 1..=1, ()).ok().filter(|_| viewporter.is_some()),
            viewporter,
        })
    }

    /// A buffer over storage; none where the compositor would not take so large a one.
    pub(super) fn buffer(&self, storage: &Storage, tag: BufferTag) -> Option<WlBuffer> {
        let (width, height) = storage.size();
        let (width, height) = (i32::try_from(width).ok()?, i32::try_from(height).ok()?);
        let stride = width.checked_mul(PIXEL as i32)?;
        let pool = self.shm.create_pool(storage.as_fd(), storage.length(), &self.handle, ());
        let buffer =
            pool.create_buffer(0, width, height, stride, Format::Xrgb8888, &self.handle, tag);
        pool.destroy();
        Some(buffer)
    }

    /// A buffer of one colour, which the surface's viewport makes as large as it is.
    pub(super) fn color(&self, color: [u8; 3], tag: BufferTag) -> Option<WlBuffer> {
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
    list.bind(handle, versions, ()).map_err(|error| match error {
        BindError::NotPresent => format!("this compositor does not offer {name}"),
        BindError::UnsupportedVersion => format!("this compositor's {name} is too old"),
    })
}
