//! Colour profiles for grey, RGB or CMYK pictures, by the first byte: alpha is not changed.

use std::array;

use murald::internals::parsers::media::convert;

pub(crate) fn run(data: &[u8]) {
    let Some((&kind, profile)) = data.split_first() else {
        return;
    };
    let inks = [1, 3, 4][usize::from(kind % 3)];
    let before: [u8; 256] = array::from_fn(|at| (at * 37 % 256) as u8);
    let mut pixels = before;
    convert(profile, inks, &mut pixels);
    assert!(
        pixels
            .iter()
            .skip(3)
            .step_by(4)
            .eq(before.iter().skip(3).step_by(4))
    );
}
