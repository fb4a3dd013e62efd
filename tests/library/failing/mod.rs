//! Failing system calls, loss of power, damaged databases: afterwards rows and files must agree, and
//! acknowledged changes must be there.
//!
//! Ordinary runs try only a part of the cases; `MURALD_EVERY=1` tries all, which takes minutes.

mod calls;
mod damage;
mod gate;
mod power;
mod scene;

/// The step between the cases that are tried; `usual` unless `MURALD_EVERY` sets it.
fn every(usual: usize) -> usize {
    std::env::var("MURALD_EVERY")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(usual)
}
