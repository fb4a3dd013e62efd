//! Arguments in, exit code out: the daemon or a client command.

use std::process::ExitCode;

fn main() -> ExitCode {
    murald::cli::main()
}
