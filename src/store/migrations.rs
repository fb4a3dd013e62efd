//! The tables, and the steps from each version of them to the next.

use rusqlite::{Connection, TransactionBehavior};

use super::Error;

/// Step `n` leads from version `n` to `n + 1`. Steps that were released never change.
const STEPS: &[&str] = &[include_str!("schema.sql")];

/// Brings the tables up to date, each step in a transaction of its own.
pub(super) fn run(connection: &mut Connection) -> Result<(), Error> {
    let known = STEPS.len() as i64;
    loop {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let found: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if found == known {
            return Ok(());
        }
        let step = usize::try_from(found).ok().and_then(|found| STEPS.get(found));
        let Some(step) = step else { return Err(Error::Newer { found, known }) };
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", found + 1)?;
        transaction.commit()?;
    }
}
