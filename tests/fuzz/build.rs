//! Has the linker discard what a target does not reach: otherwise the coverage counters keep unused
//! functions, and libFuzzer reads those counters after each execution.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-arg-bins=-Wl,-z,start-stop-gc");
}
