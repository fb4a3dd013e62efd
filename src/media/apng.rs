//! The frames of an animated PNG.

use std::time::Duration;

use png::{BlendOp, DisposeOp, Reader};

use super::canvas::{Blend, Canvas, Disposal, FrameArea};
use super::decoder::{Each, Input};
use super::error::Error;
use super::png::{damaged, from_crate, layout, reader};
use crate::wire::Format;

/// Gives all frames as they are seen, with the time that each stays, until `each` wants no more.
pub(super) fn frames(input: &mut dyn Input, each: Each<'_>) -> Result<(), Error> {
    input.rewind().map_err(Error::Read)?;
    let mut reader = reader(input, false)?;
    let info = reader.info();
    let Some(count) = info.animation_control.map(|control| control.num_frames) else {
        return Ok(());
    };
    // The first picture is not always a frame.
    let mut begun = info.frame_control.is_some();
    let pixels = u64::from(info.width) * u64::from(info.height);
    let mut canvas = Canvas::new(Format::Png, info.size(), pixels * 8)?;
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
        if !each(
            canvas.size(),
            canvas.pixels(),
            Duration::from_secs(1) * u32::from(control.delay_num) / parts,
        ) {
            break;
        }
    }
    Ok(())
}

/// Reads a frame, and lays it down.
fn lay(
    reader: &mut Reader<&mut dyn Input>,
    canvas: &mut Canvas,
    place: FrameArea,
    blend: Blend,
) -> Result<(), Error> {
    let layout = layout(reader);
    // As large as the picture, whatever the frame has of it.
    let size = reader.output_buffer_size().ok_or_else(|| damaged("it is too large"))?;
    let mut samples = vec![0; size];
    let frame = reader.next_frame(&mut samples).map_err(from_crate)?;
    // The crate puts the passes of a small frame into rows of the picture's width.
    let info = reader.info();
    let across = if info.interlaced { info.width } else { frame.width };
    let (mut pixels, mut row) = (Vec::new(), Vec::new());
    let (stride, width) = (across as usize * layout.bytes(), place.width as usize * layout.bytes());
    for (y, samples) in (0..place.height).zip(samples.chunks_exact(stride.max(1))) {
        pixels.clear();
        layout.append(&samples[..width.min(stride)], &mut pixels);
        if layout.channels() == 4 {
            canvas.row(y, &pixels, blend);
            continue;
        }
        row.clear();
        row.extend(pixels.as_chunks().0.iter().flat_map(|&[r, g, b]| [r, g, b, 255]));
        canvas.row(y, &row, blend);
    }
    Ok(())
}
