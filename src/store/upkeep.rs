//! The thread `database`: checks and backs up the database in the background.
//!
//! At start it looks for unreadable rows and, after an unclean shutdown, checks the file. After the
//! first commit of a day it makes a backup, and after a commit to a replaced file it saves a copy.
//! It writes no row.

use std::io;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded, select};
use rusqlite::Connection;

use super::connection::{give_up_when, is_given_up, open_reader, problems};
use super::database::Trouble;
use super::{Error, Store, backup, images};
use crate::error_chain::chain;
use crate::sys::lock;
use crate::thread::{OwnedThread, Spawner};

/// Time limit of the check after an unclean shutdown.
const CHECK_WITHIN: Duration = Duration::from_secs(5);

/// Owns the thread. Its end interrupts a backup in progress.
pub(crate) type Upkeep = OwnedThread<Sender<()>>;

pub(crate) fn start_upkeep(store: &Store, spawner: &Spawner) -> io::Result<Upkeep> {
    let (end, ended) = bounded(0);
    let store = store.clone();
    let thread = spawner.spawn("database", move || store.keep_up(&ended))?;
    Ok(OwnedThread::new(end, thread))
}

impl Store {
    fn keep_up(&self, end: &Receiver<()>) {
        self.look_for_unreadable();
        if self.shared.had_unclean_shutdown
            && let Err(error) = self.check_after_unclean_shutdown(end)
        {
            log::error!("cannot check the database: {error}");
        }
        loop {
            select! {
                recv(self.shared.upkeep.1) -> _ => {
                    self.save_replaced();
                    self.back_up(end);
                }
                recv(end) -> _ => return,
            }
        }
    }

    /// Finds the unreadable rows before a client lists them.
    fn look_for_unreadable(&self) {
        match self.read(images::unreadable) {
            Ok(found) => found
                .iter()
                .for_each(|(id, error)| self.note_unreadable(*id, error)),
            Err(error) if error.is_damage() => self.note_damage(&chain(&error)),
            Err(error) => log::error!("cannot read the library: {}", chain(&error)),
        }
    }

    fn back_up(&self, end: &Receiver<()>) {
        // A damaged database is not backed up: the old, intact backups are worth more.
        let is_damaged = lock(&self.shared.trouble).damage.is_some();
        if is_damaged || !self.is_in_place() || backup::is_of_today(&self.shared.path) {
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

    fn copy(&self, end: &Receiver<()>) -> Result<std::path::PathBuf, Error> {
        let reader = self.reader_until(end, None)?;
        backup::make(&reader, &self.shared.path)
    }

    fn check_after_unclean_shutdown(&self, end: &Receiver<()>) -> Result<(), Error> {
        let reader = self.reader_until(end, Some(Instant::now() + CHECK_WITHIN))?;
        match problems(&reader, "quick_check") {
            Ok(problems) => match problems.first() {
                Some(problem) => self.note_damage(problem),
                None => {
                    log::info!("murald did not shut down cleanly last time; the database is intact")
                }
            },
            Err(error) if is_given_up(&error) => log::info!(
                "murald did not shut down cleanly last time, and the database is too large for a quick check: \
                 run `murald library check`"
            ),
            Err(error) if error.is_damage() => self.note_damage(&chain(&error)),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Opens a reader whose statements are aborted when the daemon stops or at `until`.
    fn reader_until(
        &self,
        end: &Receiver<()>,
        until: Option<Instant>,
    ) -> Result<Connection, Error> {
        let mut reader = open_reader(&self.shared.path)?;
        let end = end.clone();
        let is_over = move || {
            end.try_recv() == Err(TryRecvError::Disconnected)
                || until.is_some_and(|until| Instant::now() > until)
        };
        give_up_when(&mut reader, is_over)?;
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
        let rows = match lock(&self.shared.unreadable).len() {
            0 => None,
            unreadable => Some(format!(
                "{unreadable} of the library's images cannot be read and are skipped: \
                 `murald library check` names them; stop murald, then run \
                 `murald library restore`"
            )),
        };
        let replaced = self.health().message;
        damage
            .iter()
            .chain(backup)
            .chain(&rows)
            .chain(&replaced)
            .cloned()
            .collect()
    }
}

#[cfg(test)]
mod tests;
