//! Manifests of web packages: no path leaves the package, and capabilities that are granted are those
//! that it then says.

#![no_main]

use std::path::{Component, Path};

use libfuzzer_sys::fuzz_target;
use murald::internals::library::fuzz::manifest;
use murald::internals::wire::WebCapabilities;

fuzz_target!(|text: &str| {
    let granted = WebCapabilities { keyboard: true, ..WebCapabilities::default() };
    let Some(told) = manifest(text, granted) else { return };
    let inside = |path: &Path| path.components().all(|part| matches!(part, Component::Normal(_)));
    assert!(inside(&told.entry) && told.preview.as_deref().is_none_or(inside));
    assert_ne!(told.overrides, Some(false));
    let again = manifest(&told.granted.expect("it can be read"), granted).expect("it still can");
    assert_eq!(again.capabilities, granted);
    assert_eq!((again.entry, again.title), (told.entry, told.title));
});
