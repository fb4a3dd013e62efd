//! The thread `database`: backs up the database in the background.
//!
//! After an unclean shutdown it checks the file, and after the first commit of a day it makes a backup.
//! It writes no row.

use std::io;
use std::path::PathBuf;

use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded, select};
use rusqlite::Connection;

use super::connection::{give_up_when, is_given_up, open_reader, problems};
use super::database::Trouble;
use super::{Error, Store, backup};
use crate::error_chain::chain;
use crate::sys::lock;
use crate::thread::{OwnedThread, Spawner};

/// Owns the thread. Its end interrupts a check or a backup in progress.
pub(crate) type Upkeep = OwnedThread<Sender<()>>;

pub(crate) fn start_upkeep(store: &Store, spawner: &Spawner) -> io::Result<Upkeep> {
    let (end, ended) = bounded(0);
    let store = store.clone();
    let thread = spawner.spawn("database", move || store.keep_up(&ended))?;
    Ok(OwnedThread::new(end, thread))
}

impl Store {
    fn keep_up(&self, end: &Receiver<()>) {
        if self.shared.had_unclean_shutdown {
            self.check_file(end);
        }
        loop {
            select! {
                recv(self.shared.upkeep.1) -> _ => self.back_up(end),
                recv(end) -> _ => return,
            }
        }
    }

    fn back_up(&self, end: &Receiver<()>) {
        // A damaged database is not backed up: the old, intact backups are worth more.
        let is_damaged = lock(&self.shared.trouble).damage.is_some();
        if is_damaged || backup::is_of_today(&self.shared.path) {
            return;
        }
        let failed = match self.copy(end) {
            Ok(path) => {
                log::info!("backed up the database to {}", path.display());
                None
            }
            Err(error) if is_given_up(&error) => return,
            Err(error) if error.is_damage() => {
                self.note_damage(&chain(&error));
                return;
            }
            Err(error) => Some(format!("cannot back up the database: {}", chain(&error))),
        };
        if let Some(failed) = &failed {
            log::error!("{failed}");
        }
        lock(&self.shared.trouble).backup = failed;
    }

    fn copy(&self, end: &Receiver<()>) -> Result<PathBuf, Error> {
        backup::make(&self.reader_until(end)?, &self.shared.path)
    }

    fn check_file(&self, end: &Receiver<()>) {
        match self.reader_until(end).and_then(|reader| problems(&reader)) {
            Ok(problems) => match problems.first() {
                Some(problem) => self.note_damage(problem),
                None => {
                    log::info!("murald did not shut down cleanly last time; the database is intact")
                }
            },
            Err(error) if is_given_up(&error) => {}
            Err(error) if error.is_damage() => self.note_damage(&chain(&error)),
            Err(error) => log::error!("cannot check the database: {}", chain(&error)),
        }
    }

    /// Opens a reader whose statements are aborted when the daemon stops.
    fn reader_until(&self, end: &Receiver<()>) -> Result<Connection, Error> {
        let mut reader = open_reader(&self.shared.path)?;
        let end = end.clone();
        give_up_when(&mut reader, move || {
            end.try_recv() == Err(TryRecvError::Disconnected)
        })?;
        Ok(reader)
    }

    pub(super) fn note_damage(&self, what: &str) {
        let way_back = match backup::list(&self.shared.path).first() {
            Some(_) => "stop murald, then run `murald library restore`",
            None => "there is no backup of it yet",
        };
        let warning = format!("the database is damaged ({what}): {way_back}");
        log::error!("{warning}");
        lock(&self.shared.trouble).damage = Some(warning);
    }

    /// Returns warnings about the database, to be shown to the user.
    pub fn warnings(&self) -> Vec<String> {
        let Trouble { damage, backup } = &*lock(&self.shared.trouble);
        damage.iter().chain(backup).cloned().collect()
    }
}

#[cfg(test)]
mod tests;
