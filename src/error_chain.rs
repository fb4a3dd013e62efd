//! Formats an error with its causes on one line.

use std::error::Error;

/// Returns the error's message and those of its causes, separated by colons. Leaves out a cause with
/// which the text already ends, as errors of some crates contain the messages of their causes.
pub(crate) fn chain(error: &dyn Error) -> String {
    causes(error)
        .map(ToString::to_string)
        .fold(error.to_string(), |text, cause| {
            match text.ends_with(&cause) {
                true => text,
                false => format!("{text}: {cause}"),
            }
        })
}

/// Returns the causes, the nearest first.
pub(crate) fn causes<'a>(error: &'a dyn Error) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(error.source(), |&cause| cause.source())
}

#[cfg(test)]
mod tests {
    use image::ImageError;
    use image::error::{DecodingError, ImageFormatHint};

    use super::*;

    #[test]
    fn cause_in_the_message_is_not_repeated() {
        let bmp = ImageFormatHint::Exact(image::ImageFormat::Bmp);
        let error = ImageError::Decoding(DecodingError::new(bmp, "a bad row"));
        assert_eq!(chain(&error), "Format error decoding Bmp: a bad row");
    }
}
