//! Arguments in, exit code out: the daemon or a client command.

fn main() {}
