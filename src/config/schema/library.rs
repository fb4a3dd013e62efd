//! `[library]`: directories whose pictures are in the library as they come and go.

use super::key::Key;
use super::settings::settings;

settings! {
    /// `[library]`
    #[derive(Debug)]
    Library {
        /// Directories whose pictures are in the library, as they come and go
        watch: Vec<String> = Key::list(&[]),
        /// Leave the pictures of watched directories where they are; false: copy them
        in_place: bool = Key::flag(true),
        /// Show watched directories as folders, with those in them
        watch_folders: bool = Key::flag(true),
    }
}
