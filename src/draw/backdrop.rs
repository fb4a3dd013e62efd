//! Paints the frame of the backdrop: the wallpaper's frame, blurred or darkened.

use std::io;
use std::sync::Arc;

use super::message::Backdrop;
use super::storage::Storage;
use crate::media::blur;

/// The backdrop of a frame; the frame itself if it should look the same.
pub(super) fn paint(frame: &Arc<Storage>, effect: Backdrop) -> io::Result<Arc<Storage>> {
    if effect
        == (Backdrop {
            blur: 0.0,
            dim: 0.0,
        })
    {
        return Ok(Arc::clone(frame));
    }
    let backdrop = Storage::new(frame.size())?;
    let (from, mut into) = (frame.map()?, backdrop.map()?);
    if effect.blur > 0.0 {
        blur(&from, frame.size(), effect.blur, &mut into).map_err(io::Error::other)?
    } else {
        into.copy_from_slice(&from)
    }
    let light = ((1.0 - effect.dim) * 256.0).round() as u16;
    if light < 256 {
        into.iter_mut()
            .for_each(|value| *value = ((u16::from(*value) * light + 128) >> 8) as u8);
    }
    drop(into);
    Ok(Arc::new(backdrop))
}

#[cfg(test)]
mod tests {
    use super::super::storage::PIXEL;
    use super::*;

    /// The last row of a frame that is black at the left and white at the right.
    fn edge(effect: Backdrop) -> Vec<f64> {
        const WIDTH: usize = 1600;
        let frame = Storage::new((WIDTH as u32, 32)).unwrap();
        for (at, value) in frame.map().unwrap().iter_mut().enumerate() {
            *value = if at / PIXEL % WIDTH < WIDTH / 2 {
                0
            } else {
                255
            };
        }
        let painted = paint(&Arc::new(frame), effect).unwrap().map().unwrap();
        painted[31 * WIDTH * PIXEL..]
            .iter()
            .step_by(PIXEL)
            .map(|&it| f64::from(it))
            .collect()
    }

    #[test]
    fn edge_is_blurred_by_the_standard_deviation() {
        for deviation in [1.0, 2.0, 7.5, 24.0, 100.0, 200.0] {
            let row = edge(Backdrop {
                blur: deviation,
                dim: 0.0,
            });
            assert_eq!(row.len(), 1600);
            let slopes = row
                .windows(2)
                .zip(1..)
                .map(|(pair, x)| (f64::from(x), pair[1] - pair[0]));
            let sum: f64 = slopes.clone().map(|(_, slope)| slope).sum();
            let mean = slopes.clone().map(|(x, slope)| x * slope).sum::<f64>() / sum;
            let variance = slopes
                .map(|(x, slope)| (x - mean).powi(2) * slope)
                .sum::<f64>()
                / sum;
            let seen = variance.sqrt();
            assert!(
                (seen / deviation - 1.0).abs() < 0.06,
                "{seen} for {deviation}"
            );
            assert!(
                (mean - 800.0).abs() < 1.0 + deviation / 20.0,
                "{mean} for {deviation}"
            );
        }
    }

    #[test]
    fn backdrop_is_darkened_or_the_unchanged_frame_itself() {
        let lit = |blur, dim| edge(Backdrop { blur, dim })[1599];
        assert_eq!((lit(0.0, 0.3), lit(0.0, 1.0)), (178.0, 0.0));
        assert_eq!((lit(24.0, 0.5), lit(24.0, 0.0)), (128.0, 255.0));
        let frame = Arc::new(Storage::new((4, 4)).unwrap());
        let same = paint(
            &frame,
            Backdrop {
                blur: 0.0,
                dim: 0.0,
            },
        )
        .unwrap();
        assert!(Arc::ptr_eq(&frame, &same));
    }
}
