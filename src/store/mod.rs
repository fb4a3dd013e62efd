//! Stores the library and the daemon's state in SQLite, with one writer and several readers.
//!
//! In WAL mode, readers never wait for the writer. Committed transactions survive a kill and a
//! power loss (`synchronous=FULL`), except those of [`Store::note`]. Most functions work on a
//! connection, so that callers can combine several in one transaction. No function waits for a
//! child process or a client.

pub(crate) mod appearance;
pub(crate) mod assignments;
pub(crate) mod backup;
mod check;
mod connection;
mod database;
mod derived;
pub(crate) mod edits;
mod error;
pub(crate) mod filter;
pub(crate) mod folders;
pub(crate) mod history;
pub(crate) mod images;
pub(crate) mod migrations;
pub(crate) mod monitors;
mod page;
mod palettes;
pub(crate) mod pending_files;
pub(crate) mod playlists;
pub(crate) mod purge;
pub(crate) mod query;
mod row;
mod select;
mod upkeep;
pub(crate) mod watched;
pub(crate) mod workspaces;

pub(crate) use check::{check, problem};
pub use database::Store;
#[cfg(test)]
pub(crate) use database::tests;
pub use error::Error;
/// For functions of other modules that take part in a transaction.
pub use rusqlite::Connection;
pub(crate) use rusqlite::Transaction;
pub(crate) use upkeep::{Upkeep, start_upkeep};
