//! Draws over X11: a pixmap on the root window, which stays after the process has ended.
//!
//! Each change is one process, which exits. Other programs find the pixmap by two properties of the root
//! window. The old pixmap is freed only if both properties name it.

use std::io::Write;

use x11rb::connection::{Connection, RequestConnection};
use x11rb::protocol::xproto::{
    AtomEnum, ChangeWindowAttributesAux, CloseDown, ConnectionExt as _, CreateGCAux, Gcontext,
    ImageFormat, ImageOrder, Pixmap, PropMode, Rectangle, Screen, VisualClass, Visualtype,
};
use x11rb::rust_connection::RustConnection;
use x11rb::wrapper::ConnectionExt as _;

use super::message::{Outcome, Request, Response, Wanted, line};
use super::paint::{Task, paint};
use super::storage::PIXEL;
use crate::compositor::monitors;
use crate::process::confine;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// The properties that name the pixmap: the first is for all programs, the second for the program that
/// frees it.
const PROPERTIES: [&[u8]; 2] = [b"_XROOTPMAP_ID", b"ESETROOT_PMAP_ID"];

/// Carries out the request, and prints the response. Without outputs the root window is black.
pub(super) fn run(request: &[u8]) -> Result<(), Error> {
    let outcome = match Request::read(request) {
        Some(request) => show(&request)?,
        None => Outcome::NotUnderstood,
    };
    std::io::stdout().write_all(&line(&Response::new(outcome)))?;
    Ok(())
}

fn show(request: &Request) -> Result<Outcome, Error> {
    let (server, number) = RustConnection::connect(None)?;
    // From here on, the process only writes to its standard output.
    confine([])?;
    let screen = &server.setup().roots[number];
    let Some(pixels) = Pixels::from_screen(&server, screen) else {
        return Ok(Outcome::Refused(
            "the X server has no true-colour visual".to_owned(),
        ));
    };
    let root = Root {
        server: &server,
        screen,
        pixels,
    };
    let monitors = monitors(&server, screen.root)?;
    let (mut tasks, mut places) = (Vec::new(), Vec::new());
    for wanted in &request.outputs {
        if let Some((_, monitor)) = monitors.iter().find(|(name, _)| *name == wanted.output) {
            tasks.push(Task {
                wanted: wanted.clone(),
                size: (monitor.width.into(), monitor.height.into()).into(),
            });
            places.push((monitor.x, monitor.y));
        }
    }
    if tasks.is_empty() && !request.outputs.is_empty() {
        let why = "none of the outputs is connected";
        return Ok(Outcome::Refused(why.to_owned()));
    }
    let frames = match paint(&tasks) {
        Ok(frames) => frames,
        Err(outcome) => return Ok(outcome),
    };
    let before = if tasks.is_empty() {
        None
    } else {
        root.current()?
    };
    let pixmap = root.canvas(before)?;
    let context = server.generate_id()?;
    server.create_gc(context, pixmap, &CreateGCAux::new())?;
    for (painted, place) in frames.iter().zip(places) {
        let frame = &painted.frame;
        root.put(pixmap, context, &frame.map()?, (frame.size(), place))?;
    }
    server.free_gc(context)?;
    root.set_background(pixmap)?;
    let shown = tasks.into_iter().map(
        |Task {
             wanted: Wanted { output, .. },
             ..
         }| output,
    );
    Ok(Outcome::Shown(shown.collect()))
}

struct Root<'a> {
    server: &'a RustConnection,
    screen: &'a Screen,
    pixels: Pixels,
}

impl Root<'_> {
    /// The pixmap that each of the properties names.
    fn named(&self) -> Result<[Option<Pixmap>; 2], Error> {
        let mut named = [None; 2];
        for (named, name) in named.iter_mut().zip(PROPERTIES) {
            let atom = self.server.intern_atom(false, name)?.reply()?.atom;
            let kind = AtomEnum::PIXMAP;
            let property = self
                .server
                .get_property(false, self.screen.root, atom, kind, 0, 1)?
                .reply()?;
            *named = property
                .value32()
                .and_then(|mut ids| ids.next())
                .filter(|&id| id != 0);
        }
        Ok(named)
    }

    /// The current picture of the root window, if it can be copied: monitors that the request does not
    /// name keep it.
    fn current(&self) -> Result<Option<Pixmap>, Error> {
        let Some(pixmap) = self.named()?[0] else {
            return Ok(None);
        };
        let geometry = self.server.get_geometry(pixmap)?.reply().ok();
        Ok(geometry
            .filter(|it| it.depth == self.screen.root_depth)
            .map(|_| pixmap))
    }

    /// A pixmap as large as the root window, with the picture from before or black.
    fn canvas(&self, before: Option<Pixmap>) -> Result<Pixmap, Error> {
        let (server, screen) = (self.server, self.screen);
        // The screen may have grown since we connected.
        let geometry = server.get_geometry(screen.root)?.reply()?;
        let (width, height) = (geometry.width, geometry.height);
        let (pixmap, context) = (server.generate_id()?, server.generate_id()?);
        server
            .create_pixmap(screen.root_depth, pixmap, screen.root, width, height)?
            .check()?;
        let black = CreateGCAux::new()
            .foreground(screen.black_pixel)
            .graphics_exposures(0);
        server.create_gc(context, pixmap, &black)?;
        server.poly_fill_rectangle(
            pixmap,
            context,
            &[Rectangle {
                x: 0,
                y: 0,
                width,
                height,
            }],
        )?;
        if let Some(before) = before {
            // The old pixmap may vanish at any time, which leaves black.
            server
                .copy_area(before, pixmap, context, 0, 0, 0, 0, width, height)?
                .check()
                .ok();
        }
        server.free_gc(context)?;
        Ok(pixmap)
    }

    /// Sends a frame in strips, as large as a request may be.
    fn put(
        &self,
        pixmap: Pixmap,
        context: Gcontext,
        frame: &[u8],
        ((width, height), (x, y)): ((u32, u32), (i16, i16)),
    ) -> Result<(), Error> {
        const HEADER: usize = 64;
        let line = self.pixels.line(width as usize);
        let most = (self.server.maximum_request_bytes() - HEADER) / line;
        let rows = most.clamp(1, height.max(1) as usize);
        let strips = frame.chunks(rows * width as usize * PIXEL);
        for (strip, at) in strips.zip((0..).step_by(rows)) {
            let count = strip.len() / (width as usize * PIXEL);
            let data = self.pixels.packed(strip, width as usize);
            let top = y.saturating_add(at as i16);
            let depth = self.screen.root_depth;
            let format = ImageFormat::Z_PIXMAP;
            let (width, height) = (width as u16, count as u16);
            self.server.put_image(
                format, pixmap, context, width, height, x, top, 0, depth, &data,
            )?;
        }
        Ok(())
    }

    /// Makes the pixmap the permanent background of the root window, and frees the old one.
    fn set_background(&self, pixmap: Pixmap) -> Result<(), Error> {
        let server = self.server;
        let root = self.screen.root;
        server.grab_server()?;
        let before = self.named()?;
        for name in PROPERTIES {
            let atom = server.intern_atom(false, name)?.reply()?.atom;
            server.change_property32(PropMode::REPLACE, root, atom, AtomEnum::PIXMAP, &[pixmap])?;
        }
        let background = ChangeWindowAttributesAux::new().background_pixmap(pixmap);
        server.change_window_attributes(root, &background)?;
        server.clear_area(false, root, 0, 0, 0, 0)?;
        if let [Some(one), Some(other)] = before
            && one == other
        {
            // Frees the old pixmap, and disconnects the client that made it if that still runs.
            server.kill_client(one)?.check().ok();
        }
        server.set_close_down_mode(CloseDown::RETAIN_PERMANENT)?;
        server.ungrab_server()?;
        // The server has done all of it when it answers this.
        server.sync()?;
        Ok(())
    }
}

/// The memory format of the root window's pixels.
struct Pixels {
    masks: [u32; 3],
    /// Bytes of one pixel: 2 or 4.
    bytes: usize,
    /// Lines begin at multiples of this.
    pad: usize,
    is_little: bool,
}

impl Pixels {
    /// `None` if the visual is not true colour, or has no pixels of 2 or 4 bytes.
    fn from_screen(server: &RustConnection, screen: &Screen) -> Option<Self> {
        let mut visuals = screen
            .allowed_depths
            .iter()
            .flat_map(|depth| &depth.visuals);
        let visual: &Visualtype = visuals.find(|it| it.visual_id == screen.root_visual)?;
        let formats = &server.setup().pixmap_formats;
        let format = formats
            .iter()
            .find(|format| format.depth == screen.root_depth)?;
        let bytes = usize::from(format.bits_per_pixel) / 8;
        let fits = visual.class == VisualClass::TRUE_COLOR && matches!(bytes, 2 | 4);
        fits.then_some(Self {
            masks: [visual.red_mask, visual.green_mask, visual.blue_mask],
            bytes,
            pad: usize::from(format.scanline_pad) / 8,
            is_little: server.setup().image_byte_order == ImageOrder::LSB_FIRST,
        })
    }

    fn line(&self, width: usize) -> usize {
        (width * self.bytes).next_multiple_of(self.pad.max(1))
    }

    /// Converts rows of a frame to the server's format.
    fn packed(&self, rows: &[u8], width: usize) -> Vec<u8> {
        if self.masks == [0xff_0000, 0xff00, 0xff] && self.bytes == PIXEL && self.is_little {
            return rows.to_vec();
        }
        let mut packed = Vec::new();
        for row in rows.chunks_exact(width * PIXEL) {
            let start = packed.len();
            for pixel in row.chunks_exact(PIXEL) {
                let value = self.value([pixel[2], pixel[1], pixel[0]]);
                if self.is_little {
                    packed.extend_from_slice(&value.to_le_bytes()[..self.bytes])
                } else {
                    packed.extend_from_slice(&value.to_be_bytes()[4 - self.bytes..])
                }
            }
            packed.resize(start + self.line(width), 0);
        }
        packed
    }

    fn value(&self, color: [u8; 3]) -> u32 {
        let channel = |(value, &mask): (u8, &u32)| {
            let most = u64::from(mask >> mask.trailing_zeros().min(31));
            (((u64::from(value) * most + 127) / 255) << mask.trailing_zeros().min(31)) as u32
        };
        color
            .into_iter()
            .zip(&self.masks)
            .map(channel)
            .fold(0, |all, one| all | one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_have_the_format_of_the_server() {
        let deep = Pixels {
            masks: [0x3ff << 20, 0x3ff << 10, 0x3ff],
            bytes: 4,
            pad: 4,
            is_little: true,
        };
        assert_eq!(deep.value([255, 0, 128]), 0x3ff << 20 | 514);
        let small = Pixels {
            masks: [0xf800, 0x7e0, 0x1f],
            bytes: 2,
            pad: 4,
            is_little: false,
        };
        assert_eq!(small.packed(&[255, 0, 0, 9], 1), [0x00, 0x1f, 0, 0]);
        assert_eq!(small.packed(&[0, 0, 255, 9], 1), [0xf8, 0x00, 0, 0]);
        let usual = Pixels {
            masks: [0xff_0000, 0xff00, 0xff],
            is_little: true,
            ..deep
        };
        assert_eq!(usual.packed(&[1, 2, 3, 4], 1), [1, 2, 3, 4]);
    }
}
