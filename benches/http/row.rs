//! Rows of images for a library whose size matters only; the caller may make their files.

use std::path::Path;

use murald::internals::store::images::NewImage;
use murald::internals::wire::Format;

pub(crate) fn row(at: usize, pictures: &Path) -> NewImage {
    let name = format!("Mountains in the evening light {at}");
    let bytes = (at as u64)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .to_le_bytes();
    NewImage {
        path: pictures.join(format!("{name}.jpg")),
        source_path: format!("/home/somebody/Pictures/Wallpapers/{name}.jpg").into(),
        name,
        format: Format::Jpg,
        width: 3840,
        height: 2160,
        duration: 0.0,
        animated: false,
        audio_enabled: false,
        file_size: 1_500_000 + at as u64,
        checksum: std::array::from_fn(|place| bytes[place % 8] ^ place as u8),
        colors: bytes
            .map(|byte| [byte, byte ^ 0x55, byte.wrapping_mul(7)])
            .to_vec(),
        hue_group: bytes[0] % 12,
        folder_id: None,
        in_place: false,
        web: None,
    }
}
