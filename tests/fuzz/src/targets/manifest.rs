//! Manifests of web packages: no path leaves the package, and granted capabilities are in the changed
//! manifest.

use std::path::{Component, Path};

use crate::input::start;
use murald::internals::parsers::library::manifest;
use murald::internals::wire::WebCapabilities;

pub(crate) fn run(data: &[u8]) {
    let text = start(data);
    let granted = WebCapabilities {
        keyboard: true,
        ..WebCapabilities::default()
    };
    let Some(told) = manifest(text, granted) else {
        return;
    };
    let inside = |path: &Path| {
        path.components()
            .all(|part| matches!(part, Component::Normal(_)))
    };
    assert!(inside(&told.entry) && told.preview.as_deref().is_none_or(inside));
    let again = manifest(&told.granted.expect("it can be read"), granted).expect("it still can");
    assert_eq!(again.capabilities, granted);
    assert_eq!((again.entry, again.title), (told.entry, told.title));
}
