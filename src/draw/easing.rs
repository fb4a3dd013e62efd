//! The pace of a transition: a cubic Bézier curve from (0, 0) to (1, 1), as CSS has it.

/// The share of the way that is gone after this share of the time.
pub(super) fn ease(curve: [f64; 4], time: f64) -> f64 {
    let time = time.clamp(0.0, 1.0);
    let [x1, y1, x2, y2] = curve;
    // Where x only ever grows, halving finds it; CSS allows no other curve.
    let (x1, x2) = (x1.clamp(0.0, 1.0), x2.clamp(0.0, 1.0));
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if at(x1, x2, middle) < time {
            low = middle;
        } else {
            high = middle;
        }
    }
    at(y1, y2, (low + high) / 2.0)
}

/// One coordinate of the curve at a parameter from 0 to 1.
fn at(first: f64, second: f64, t: f64) -> f64 {
    let s = 1.0 - t;
    3.0 * s * s * t * first + 3.0 * s * t * t * second + t * t * t
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves() {
        let check = |curve, time, expected: f64| {
            let seen = ease(curve, time);
            assert!((seen - expected).abs() < 1e-3, "{curve:?} at {time}: {seen}");
        };
        let linear = [0.0, 0.0, 1.0, 1.0];
        for time in [0.0, 0.25, 0.5, 1.0] {
            check(linear, time, time);
        }
        // ease-out, by the values that browsers give.
        check([0.0, 0.0, 0.58, 1.0], 0.5, 0.684_6);
        check([0.42, 0.0, 0.58, 1.0], 0.5, 0.5);
        check(linear, -1.0, 0.0);
        check(linear, 7.0, 1.0);
    }
}
