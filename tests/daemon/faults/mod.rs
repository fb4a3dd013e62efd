//! Faults around the daemon, each beside a quiet client that is served all the while
//! (`support::bystander` prints how fast).

mod disks;
