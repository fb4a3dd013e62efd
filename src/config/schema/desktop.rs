//! `[desktop]`: what other programs get of the wallpapers.

use super::key::Key;
use super::settings::settings;
use crate::wire::words;

words! { StillFiles { Auto = "auto", Png = "png" } }

settings! {
    /// `[desktop]`
    #[derive(Copy, Debug)]
    Desktop {
        /// Pictures that need a PNG copy for other programs: those that few show as they are, or all
        stills: StillFiles = Key::word("auto", StillFiles::WORDS),
    }
}
