//! The pictures that requests want on monitors, until the requests end.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::store::assignments::Assignment;
use crate::wire::Image;

/// The picture that a request wants on a monitor.
pub(super) struct Wish {
    pub(super) ticket: u64,
    pub(super) row: Assignment,
    pub(super) image: Arc<Image>,
    /// For a step back: how far the picture lies behind that of the monitor's row.
    pub(super) back: Option<u32>,
}

/// The wishes by monitor.
pub(super) type Wishes = BTreeMap<String, Wish>;

/// How far a step back of `steps` pictures leads behind the monitor's row. Over a wish that waits, the
/// first step leads to the row.
pub(super) fn steps_behind_row(wish: Option<&Wish>, steps: u32) -> u32 {
    match wish.map(|wish| wish.back) {
        None => steps,
        Some(Some(back)) => steps.saturating_add(back),
        Some(None) => steps.saturating_sub(1),
    }
}
