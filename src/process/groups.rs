//! The process groups of scripts that run, and of those that have ended: their background programs may
//! still be in them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use super::Identity;
use crate::sys::lock;

/// As many as scripts whose background programs are listened to.
const KEPT: usize = 16;

/// Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups(Arc<Mutex<VecDeque<Identity>>>);

impl Groups {
    /// Adds a group by its leader.
    pub(super) fn add(&self, leader: Identity) {
        let mut leaders = lock(&self.0);
        leaders.truncate(KEPT - 1);
        leaders.push_front(leader);
    }

    /// Whether a process group is one of them.
    pub(crate) fn has(&self, group: i32) -> bool {
        let leaders = lock(&self.0);
        // A number is nobody else's while a group has it, even if its leader has ended.
        let is_it = |leader: &Identity| {
            leader.pid == group && Identity::of(group).is_none_or(|now| now == *leader)
        };
        leaders.iter().any(is_it)
    }
}
