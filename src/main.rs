//! The executable; it only calls the library's `main`.

use std::process::ExitCode;

fn main() -> ExitCode {
    murald::main()
}
