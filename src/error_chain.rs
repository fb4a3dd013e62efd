//! Formats an error with its causes on one line.

use std::error::Error;

/// Returns the error's message and those of its causes, separated by colons. Leaves out a cause with
/// which the text already ends, or that ends with the message before, as errors of some crates contain
/// the messages of their causes, and those of SQLite repeat it behind a number.
pub(crate) fn chain(error: &dyn Error) -> String {
    with_causes(plain(error), error)
}

/// Like `chain`, with another text in place of the error's own message.
pub(crate) fn with_causes(mut text: String, error: &dyn Error) -> String {
    let mut last = plain(error);
    for cause in causes(error) {
        let cause = plain(cause);
        if !text.ends_with(&cause) && !cause.ends_with(&last) {
            text = format!("{text}: {cause}");
        }
        last = cause;
    }
    text
}

/// Returns the message of an error without the number that the standard library appends.
pub(crate) fn plain(error: &dyn Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" (os error ") {
        Some((text, number)) if number.trim_end_matches(')').parse::<i32>().is_ok() => {
            text.to_owned()
        }
        _ => text,
    }
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
    fn number_of_an_error_is_not_printed() {
        let error = std::io::Error::from_raw_os_error(2);
        assert_eq!(chain(&error), "No such file or directory");
    }

    #[test]
    fn cause_in_the_message_is_not_repeated() {
        let bmp = ImageFormatHint::Exact(image::ImageFormat::Bmp);
        let error = ImageError::Decoding(DecodingError::new(bmp, "a bad row"));
        assert_eq!(chain(&error), "Format error decoding Bmp: a bad row");
        let code = rusqlite::ffi::Error::new(13);
        let text = "database or disk is full";
        let full = rusqlite::Error::SqliteFailure(code, Some(text.to_owned()));
        assert_eq!(chain(&full), text);
    }
}
