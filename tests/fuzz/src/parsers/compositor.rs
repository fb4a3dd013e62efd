//! For the targets of `tests/fuzz`: parsers, by plain types. A part of its module in debug builds only.

use super::output::Identity;
use super::output::edid_identity;

/// Maker, model and serial number that a monitor tells; empty is what it does not.
pub fn edid(bytes: &[u8]) -> [String; 3] {
    let Identity { make, model, serial } = edid_identity(bytes);
    [make, model, serial]
}

/// The same, of an output's description.
pub fn described(make: &str, model: &str, description: &str, name: &str) -> [String; 3] {
    let Identity { make, model, serial } = Identity::described((make, model), description, name);
    [make, model, serial]
}
