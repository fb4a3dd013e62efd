//! Records the compiler's version for `runtime_version` of `GET /info`, refuses a system SQLite that is too
//! old, which would otherwise be an obscure linker error, and names the builds that contain the parsers.

#![allow(
    clippy::disallowed_methods,
    reason = "a build script has no room `process`"
)]

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    // Cargo runs this again for another compiler, as the version is part of its fingerprint.
    let version = Command::new(rustc)
        .arg("--version")
        .output()
        .ok()
        .and_then(|output| {
            let text = String::from_utf8(output.stdout).ok()?;
            // "rustc 1.95.0 (f2d3ce0bd 2026-03-21)": without the hash and date, builds are the same
            // everywhere.
            Some(
                text.split_whitespace()
                    .take(2)
                    .collect::<Vec<_>>()
                    .join(" "),
            )
        });
    println!(
        "cargo::rustc-env=MURALD_RUSTC={}",
        version.as_deref().unwrap_or("rustc")
    );
    refuse_old_sqlite();
    name_the_parsers();
}

/// `cfg(parsers)`: the parsers with plain types, for the targets in `tests/fuzz`, are part of builds for
/// tests and for fuzzing.
fn name_the_parsers() {
    println!("cargo::rustc-check-cfg=cfg(parsers)");
    let is_debug = std::env::var("PROFILE").is_ok_and(|profile| profile == "debug");
    if is_debug || std::env::var_os("CARGO_CFG_FUZZING").is_some() {
        println!("cargo::rustc-cfg=parsers");
    }
}

/// rusqlite needs `sqlite3_set_clientdata`, which is new in SQLite 3.44. The linker decides if the
/// version is unknown or `SQLITE3_LIB_DIR` is set.
fn refuse_old_sqlite() {
    println!("cargo::rerun-if-env-changed=PKG_CONFIG_PATH");
    let set = |name: &str| std::env::var_os(name).is_some();
    if set("CARGO_FEATURE_BUNDLED_SQLITE") || set("SQLITE3_LIB_DIR") {
        return;
    }
    let Ok(output) = Command::new("pkg-config")
        .args(["--modversion", "sqlite3"])
        .output()
    else {
        return;
    };
    let version = String::from_utf8_lossy(&output.stdout);
    let mut numbers = version
        .trim()
        .split('.')
        .map_while(|number| number.parse::<u32>().ok());
    if let (Some(major), Some(minor)) = (numbers.next(), numbers.next())
        && (major, minor) < (3, 44)
    {
        println!(
            "cargo::error=the system's SQLite is {}, and murald needs 3.44 or newer: \
             build it without --no-default-features, with a SQLite of its own",
            version.trim()
        );
    }
}
