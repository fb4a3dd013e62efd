//! Tells the program which compiler built it: `runtime_version` of `GET /info`.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    // Cargo reruns this for another compiler by itself: the version is part of its fingerprint.
    #[allow(clippy::disallowed_methods, reason = "a build script has no room `process`")]
    let version = Command::new(rustc).arg("--version").output().ok().and_then(|output| {
        let text = String::from_utf8(output.stdout).ok()?;
        // "rustc 1.95.0 (f2d3ce0bd 2026-03-21)": the hash would only make builds differ.
        Some(text.split_whitespace().take(2).collect::<Vec<_>>().join(" "))
    });
    println!("cargo::rustc-env=MURALD_RUSTC={}", version.as_deref().unwrap_or("rustc"));
}
