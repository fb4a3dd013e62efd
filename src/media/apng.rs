//! The frames of an animated PNG, row by row.

use std::time::Duration;

use png::{BlendOp, ColorType, DisposeOp, InterlaceInfo, Reader, expand_interlaced_row};

use super::canvas::{Blend, Canvas, Disposal, FrameArea};
use super::decoder::Input;
use super::error::Error;
use super::png::{damaged, eight_bits, from_crate, reader};
use crate::wire::Format;

/// Gives all frames as they are seen, with the time that each stays, until `each` wants no more.
pub(super) fn frames(
    input: &mut dyn Input,
    each: &mut dyn FnMut(&Canvas, Duration) -> bool,
) -> Result<(), Error> {
    input.rewind().map_err(Error::Read)?;
    let mut reader = reader(input, false)?;
    let info = reader.info();
    let Some(count) = info.animation_control.map(|control| control.num_frames) else {
        return Ok(());
    };
    // The first picture is not always a frame.
    let mut begun = info.frame_control.is_some();
    let pixels = u64::from(info.width) * u64::from(info.height);
    let frame = pixels * if info.interlaced { 8 } else { 4 };
    let mut canvas = Canvas::new(Format::Png, info.size(), frame)?;
    for _ in 0..count {
        if !begun {
            reader.next_frame_info().map_err(from_crate)?;
        }
        begun = false;
        let control = reader.info().frame_control.ok_or_else(|| damaged("a frame is missing"))?;
        let place = FrameArea {
            left: control.x_offset,
            top: control.y_offset,
            width: control.width,
            height: control.height,
        };
        let disposal = match control.dispose_op {
            DisposeOp::None => Disposal::Keep,
            DisposeOp::Background => Disposal::Clear,
            DisposeOp::Previous => Disposal::Restore,
        };
        let blend = match control.blend_op {
            BlendOp::Source => Blend::Replace,
            BlendOp::Over => Blend::Over,
        };
        canvas.begin(place, disposal);
        lay(&mut reader, &mut canvas, place, blend)?;
        // Hundredths where nothing is said.
        let parts = if control.delay_den == 0 { 100 } else { u32::from(control.delay_den) };
        if !each(&canvas, Duration::from_secs(1) * u32::from(control.delay_num) / parts) {
            break;
        }
    }
    Ok(())
}

/// Reads a frame's rows, and lays them down.
fn lay(
    reader: &mut Reader<&mut dyn Input>,
    canvas: &mut Canvas,
    place: FrameArea,
    blend: Blend,
) -> Result<(), Error> {
    let kind = reader.output_color_type();
    let (mut narrow, mut row, mut y) = (Vec::new(), Vec::new(), 0);
    // Filled only for a frame whose rows come in seven passes.
    let (mut pixels, stride) = (Vec::new(), place.width as usize * 4);
    while let Some(next) = reader.next_interlaced_row().map_err(from_crate)? {
        rgba(kind.0, eight_bits(kind, next.data(), &mut narrow), &mut row);
        match next.interlace() {
            InterlaceInfo::Adam7(pass) => {
                pixels.resize(stride * place.height as usize, 0);
                expand_interlaced_row(&mut pixels, stride, &row, pass, 32);
            }
            InterlaceInfo::Null(_) => canvas.row(y, &row, blend),
        }
        y += 1;
    }
    for (y, row) in (0..).zip(pixels.chunks_exact(stride.max(1))) {
        canvas.row(y, row, blend);
    }
    Ok(())
}

fn rgba(kind: ColorType, row: &[u8], to: &mut Vec<u8>) {
    to.clear();
    match kind {
        ColorType::GrayscaleAlpha | ColorType::Rgba => to.extend_from_slice(row),
        _ => to.extend(row.as_chunks().0.iter().flat_map(|&[r, g, b]| [r, g, b, 255])),
    }
}
