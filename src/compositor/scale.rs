//! The scale of an output, from what the compositor says of it: pure.

/// The scale that makes `logical` of `pixels`. `wl_output.scale` is rounded up to a whole number,
/// and the logical size down to whole pixels: of the scales that fit, the roundest is meant.
pub(super) fn scale(pixels: (u32, u32), logical: (u32, u32)) -> f64 {
    let fits = |scale: f64| {
        let close = |pixels: u32, logical: u32| {
            (f64::from(pixels) / scale - f64::from(logical)).abs() < 1.0
        };
        close(pixels.0, logical.0) && close(pixels.1, logical.1)
    };
    let estimate = f64::from(pixels.0) / f64::from(logical.0);
    // Compositors take quarters, tenths, and (fractional-scale-v1) hundred-and-twentieths.
    let steps = [1.0, 2.0, 4.0, 10.0, 20.0, 120.0];
    let rounded = steps.map(|step| (estimate * step).round() / step);
    rounded.into_iter().find(|&scale| scale > 0.0 && fits(scale)).unwrap_or(estimate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_what_was_set() {
        let check = |pixels: (u32, u32), set: f64| {
            let divided = |pixels: u32| f64::from(pixels) / set;
            let down = (divided(pixels.0) as u32, divided(pixels.1) as u32);
            assert_eq!(scale(pixels, down), set, "{pixels:?} rounded down");
            let near = (divided(pixels.0).round() as u32, divided(pixels.1).round() as u32);
            assert_eq!(scale(pixels, near), set, "{pixels:?} rounded");
        };
        for pixels in [(1920, 1080), (3840, 2160), (1366, 768), (2256, 1504), (2880, 1800)] {
            for set in [1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0] {
                check(pixels, set);
            }
        }
    }
}
