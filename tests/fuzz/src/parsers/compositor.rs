//! Parsers with plain types, for the targets of `tests/fuzz`. Part of its module with `cfg(parsers)`.

use super::output::Identity;
use super::output::edid_identity;

/// Maker, model and serial number in an EDID; empty if missing.
pub fn edid(bytes: &[u8]) -> [String; 3] {
    let Identity {
        make,
        model,
        serial,
    } = edid_identity(bytes);
    [make, model, serial]
}

/// The same from an output's description.
pub fn described(make: &str, model: &str, description: &str, name: &str) -> [String; 3] {
    let Identity {
        make,
        model,
        serial,
    } = Identity::described((make, model), description, name);
    [make, model, serial]
}
