//! The executable: the library's `main`, and nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    murald::main()
}
