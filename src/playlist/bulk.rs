//! One answer for a command to all playlists that run.

use std::sync::{Arc, Mutex, PoisonError};

use super::error::{Error, Reply};

/// Counts how many of several playlists have moved, and answers when all are through.
pub(super) struct BulkReply {
    left: usize,
    moved: usize,
    /// The first.
    error: Option<Error>,
    finish: Option<Reply<usize>>,
}

impl BulkReply {
    pub(super) fn new(left: usize, finish: Reply<usize>) -> Arc<Mutex<Self>> {
        let finish = Some(finish);
        Arc::new(Mutex::new(Self { left, moved: 0, error: None, finish }))
    }

    /// One is through; whether it has moved.
    pub(super) fn count(bulk: &Mutex<Self>, result: Result<bool, Error>) {
        let mut bulk = bulk.lock().unwrap_or_else(PoisonError::into_inner);
        bulk.left -= 1;
        match result {
            Ok(moved) => bulk.moved += usize::from(moved),
            Err(error) => drop(bulk.error.get_or_insert(error)),
        }
        if bulk.left > 0 {
            return;
        }
        let answer = match bulk.error.take() {
            Some(error) if bulk.moved == 0 => Err(error),
            _ => Ok(bulk.moved),
        };
        if let Some(finish) = bulk.finish.take() {
            finish(answer);
        }
    }
}
