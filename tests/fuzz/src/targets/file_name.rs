//! Names of files in the library: valid on every file system.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use murald::internals::parsers::library::file_name;
use murald::internals::wire::Format;

pub(crate) fn run(data: &[u8]) {
    let source = Path::new(OsStr::from_bytes(data));
    if let Some(name) = file_name(source, Format::Jpg) {
        assert!(
            name.len() <= 255 && !name.starts_with('.') && Path::new(&name).extension().is_some()
        );
        assert!(!name.contains(|c: char| c.is_control() || c == '/' || c == '\\'));
    }
}
