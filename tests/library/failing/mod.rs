//! Calls that fail, power that goes, databases that are damaged: rows and files agree afterwards, and
//! what was acknowledged is there.
//!
//! As ordinary tests they take every so many-th of what there is to try; `MURALD_EVERY=1` tries all
//! of it, which takes minutes.

mod calls;
mod damage;
mod gate;
mod power;
mod scene;

/// Tried is every so many-th of what there is.
fn every(usual: usize) -> usize {
    std::env::var("MURALD_EVERY").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}
