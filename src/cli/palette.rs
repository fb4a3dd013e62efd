//! Colours as terminals take them: 24 bits where they can, else the nearest of xterm's 256.

use super::terminal::Terminal;

/// What follows `38;` or `48;` in an escape sequence.
pub(super) fn code(color: [u8; 3], terminal: Terminal) -> String {
    if terminal.true_color {
        let [red, green, blue] = color;
        return format!("2;{red};{green};{blue}");
    }
    format!("5;{}", xterm(color))
}

/// The nearest colour of the cube of six levels a channel, or of the greys after it.
fn xterm(color: [u8; 3]) -> u8 {
    const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let nearest = |value: u8| {
        let level = (0u8..6).min_by_key(|&level| LEVELS[usize::from(level)].abs_diff(value));
        level.unwrap_or_default()
    };
    let levels = color.map(nearest);
    let cube = levels.map(|level| LEVELS[usize::from(level)]);
    let mean = color.iter().map(|&value| u16::from(value)).sum::<u16>() / 3;
    // From 8 to 238 in steps of ten.
    let step = (mean.saturating_sub(3) / 10).min(23) as u8;
    let grey = [8 + 10 * step; 3];
    if distance(grey, color) < distance(cube, color) {
        return 232 + step;
    }
    16 + 36 * levels[0] + 6 * levels[1] + levels[2]
}

fn distance(one: [u8; 3], other: [u8; 3]) -> u32 {
    one.iter().zip(other).map(|(&one, other)| u32::from(one.abs_diff(other)).pow(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_of_256() {
        #[track_caller]
        fn check(color: [u8; 3], expected: u8) {
            assert_eq!(xterm(color), expected);
        }
        check([0, 0, 0], 16);
        check([255, 255, 255], 231);
        check([255, 0, 0], 196);
        check([95, 135, 175], 67);
        check([50, 100, 140], 60);
        check([128, 128, 128], 244);
        check([12, 12, 12], 232);
        check([244, 244, 244], 255);
    }
}
