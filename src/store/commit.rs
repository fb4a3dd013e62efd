//! Transactions of the writer: committed, or as if they had never been. Runs under the writer's lock, on
//! whichever thread writes; knows no tables.

use std::sync::atomic::Ordering;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::{Error, Shared, Store, index_sync};

impl Store {
    pub(super) fn transact<T, E: From<Error>>(
        &self,
        writer: &mut Connection,
        body: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let Shared { touched, .. } = &*self.shared;
        // What one that was rolled back has touched is as it was.
        touched.clear();
        let transaction = writer
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(Error::from)?;
        let value = body(&transaction)?;
        if let Err(error) = transaction.commit() {
            self.void(writer);
            return Err(Error::from(error).into());
        }
        self.tell_of_commit();
        self.look_after_commit();
        index_sync::keep_in_step(&self.shared, writer);
        Ok(value)
    }

    /// Whether commits wait for the disk from here on.
    pub(super) fn flush_commits(&self, writer: &Connection, flush: bool) -> Result<(), Error> {
        self.shared.is_lax.store(true, Ordering::Relaxed);
        writer.pragma_update(None, "synchronous", if flush { "FULL" } else { "NORMAL" })?;
        self.shared.is_lax.store(!flush, Ordering::Relaxed);
        Ok(())
    }

    /// After a commit that failed. What it wrote is in the log, whole perhaps, and only the disk said
    /// no: after a kill it would be taken for committed, though somebody was told that it is not. The
    /// next transaction goes where it lies; so there is one at once, which changes nothing.
    fn void(&self, writer: &Connection) {
        let version = writer.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0));
        let voided = version.and_then(|now| writer.pragma_update(None, "user_version", now));
        if let Err(error) = voided {
            log::error!("what could not be committed may be there after the next start: {error}");
        }
    }
}
