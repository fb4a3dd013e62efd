//! Restricts with Landlock to which directories a process can write, and whether it can use the network.
//!
//! Enforced as far as the kernel supports it; reading is not restricted.

use std::io;
use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr,
    RulesetError, path_beneath_rules,
};

/// The version with truncation and TCP; an older kernel enforces what it supports.
const VERSION: ABI = ABI::V4;

/// Restricts this process to write below these directories only, start no program and use no TCP;
/// it can no longer gain privileges. Missing directories are skipped.
pub(crate) fn confine(writable: impl IntoIterator<Item = PathBuf>) -> io::Result<()> {
    let rules = rules(writable, AccessFs::Execute.into()).map_err(io::Error::other)?;
    rules.restrict_self().map_err(io::Error::other)?;
    Ok(())
}

/// The restrictions of a program that is started: as [`confine`], but it may start other programs.
pub(super) fn for_program(writable: &[PathBuf]) -> io::Result<RulesetCreated> {
    // Programs discard their output there.
    let null = PathBuf::from("/dev/null");
    let writable = writable.iter().cloned().chain([null]);
    rules(writable, Default::default()).map_err(io::Error::other)
}

fn rules(
    writable: impl IntoIterator<Item = PathBuf>,
    more: landlock::BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let write = AccessFs::from_write(VERSION);
    Ruleset::default()
        .handle_access(write | more)?
        .handle_access(AccessNet::from_all(VERSION))?
        .create()?
        .add_rules(path_beneath_rules(writable, write))
}
