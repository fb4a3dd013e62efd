//! One answer for a command to several playlists that run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::error::{Error, Reply};
use crate::sys::lock;

/// What a command has moved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Playlists; of a command to one, 0 if there was nothing to do.
    pub count: usize,
    /// Which monitor shows which image after a step.
    pub images: BTreeMap<String, i64>,
}

impl Moved {
    pub(super) fn one() -> Self {
        Self { count: 1, images: BTreeMap::new() }
    }
}

/// Gathers what becomes of several playlists, and answers when all are through.
pub(super) struct BulkReply {
    left: usize,
    moved: Moved,
    /// The first.
    error: Option<Error>,
    finish: Option<Reply<Moved>>,
}

impl BulkReply {
    pub(super) fn new(left: usize, finish: Reply<Moved>) -> Arc<Mutex<Self>> {
        let (moved, finish) = (Moved::default(), Some(finish));
        Arc::new(Mutex::new(Self { left, moved, error: None, finish }))
    }

    /// One is through.
    pub(super) fn add(bulk: &Mutex<Self>, result: Result<Moved, Error>) {
        let mut bulk = lock(&bulk);
        bulk.left -= 1;
        match result {
            Ok(one) => {
                bulk.moved.count += one.count;
                bulk.moved.images.extend(one.images);
            }
            Err(error) => drop(bulk.error.get_or_insert(error)),
        }
        if bulk.left > 0 {
            return;
        }
        let answer = match bulk.error.take() {
            Some(error) if bulk.moved.count == 0 => Err(error),
            _ => Ok(std::mem::take(&mut bulk.moved)),
        };
        if let Some(finish) = bulk.finish.take() {
            finish(answer);
        }
    }
}
