//! Which way a picture moves when its output shows another workspace: pure.

use crate::config::ParallaxDirection;

/// The host's word for the way from workspace `from` to `to` on a ring of `chunk` workspaces; none
/// where they are the same, or where one of them has no place in the order.
pub(super) fn direction(
    from: i64,
    to: i64,
    chunk: u32,
    axis: ParallaxDirection,
) -> Option<&'static str> {
    if from <= 0 || to <= 0 || from == to {
        return None;
    }
    // Over half of the ring the way round is the shorter one.
    let reversed = from.abs_diff(to) > u64::from(chunk) / 2;
    Some(match (axis, (to > from) != reversed) {
        (ParallaxDirection::Horizontal, true) => "right",
        (ParallaxDirection::Horizontal, false) => "left",
        (ParallaxDirection::Vertical, true) => "down",
        (ParallaxDirection::Vertical, false) => "up",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn direction_follows_the_ring_of_workspaces() {
        let check = |from, to, chunk, expected: Option<&'static str>| {
            let along = |axis| direction(from, to, chunk, axis);
            let down = expected.map(|word| if word == "right" { "down" } else { "up" });
            let seen = (along(ParallaxDirection::Horizontal), along(ParallaxDirection::Vertical));
            assert_eq!(seen, (expected, down), "{from} to {to} of {chunk}");
        };
        check(1, 2, 10, Some("right"));
        check(2, 1, 10, Some("left"));
        check(1, 6, 10, Some("right"));
        check(1, 7, 10, Some("left"));
        check(10, 1, 10, Some("right"));
        check(1, 10, 10, Some("left"));
        // Half of five is two and a half.
        check(1, 3, 5, Some("right"));
        check(1, 4, 5, Some("left"));
        check(1, 2, 1, Some("left"));
        check(3, 3, 10, None);
        check(0, 1, 10, None);
        check(1, -98, 10, None);
        check(i64::MAX, 1, u32::MAX, Some("right"));
    }
}
