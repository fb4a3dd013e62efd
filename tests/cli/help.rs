//! The help of every command, as people read it.

use murald::internals::cli::GROUPS;

use crate::call::ok;
use crate::support::TestDaemon;
use crate::support::snapshot::snapshot;

#[test]
fn help_of_every_command_is_the_accepted_one() {
    let daemon = TestDaemon::new();
    for line in [&["--help"][..], &["help", "all"]] {
        snapshot(&line.join(" "), &ok(&daemon, line));
    }
    for verb in GROUPS.iter().flat_map(|group| group.verbs) {
        let help = ok(&daemon, &[verb.words, &["--help"]].concat());
        snapshot(&verb.words.join(" "), &help);
    }
}
