//! Links no more than a target reaches: counters of functions that nobody calls keep them, and are looked
//! at after each execution, unless the linker is told that they may go.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-arg-bins=-Wl,-z,start-stop-gc");
}
