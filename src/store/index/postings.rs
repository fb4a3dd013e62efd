//! For each media type, folder, tag and hue group: the slots that have it, in order.

use std::collections::HashMap;
use std::hash::Hash;

use super::{Entry, Slot};
use crate::color;
use crate::wire::MediaType;

#[derive(Debug, Default)]
pub(super) struct Postings {
    media: HashMap<MediaType, Vec<Slot>>,
    folders: HashMap<Option<i64>, Vec<Slot>>,
    tags: HashMap<String, Vec<Slot>>,
    hues: HashMap<u8, Vec<Slot>>,
}

impl Postings {
    pub(super) fn add(&mut self, slot: Slot, entry: &Entry) {
        add(&mut self.media, entry.media_type, slot);
        add(&mut self.folders, entry.folder_id, slot);
        add(&mut self.hues, color::hue_group(&entry.colors), slot);
        for tag in &entry.tags {
            add(&mut self.tags, tag.clone(), slot);
        }
    }

    pub(super) fn remove(&mut self, slot: Slot, entry: &Entry) {
        remove(&mut self.media, &entry.media_type, slot);
        remove(&mut self.folders, &entry.folder_id, slot);
        remove(&mut self.hues, &color::hue_group(&entry.colors), slot);
        for tag in &entry.tags {
            remove(&mut self.tags, tag, slot);
        }
    }

    pub(super) fn media(&self, media_type: MediaType) -> &[Slot] {
        self.media.get(&media_type).map_or(&[], Vec::as_slice)
    }

    /// Of a folder; none is the root.
    pub(super) fn folder(&self, folder: Option<i64>) -> &[Slot] {
        self.folders.get(&folder).map_or(&[], Vec::as_slice)
    }

    pub(super) fn tag(&self, tag: &str) -> &[Slot] {
        self.tags.get(tag).map_or(&[], Vec::as_slice)
    }

    pub(super) fn hue(&self, group: u8) -> &[Slot] {
        self.hues.get(&group).map_or(&[], Vec::as_slice)
    }

    /// All tags in use, sorted.
    pub(super) fn tags(&self) -> Vec<String> {
        let mut tags: Vec<String> = self.tags.keys().cloned().collect();
        tags.sort_unstable();
        tags
    }
}

fn add<K: Eq + Hash>(lists: &mut HashMap<K, Vec<Slot>>, key: K, slot: Slot) {
    let list = lists.entry(key).or_default();
    // New slots come last; only an image that changed goes in between.
    if let Err(at) = list.binary_search(&slot) {
        list.insert(at, slot);
    }
}

fn remove<K: Eq + Hash>(lists: &mut HashMap<K, Vec<Slot>>, key: &K, slot: Slot) {
    if let Some(list) = lists.get_mut(key) {
        if let Ok(at) = list.binary_search(&slot) {
            list.remove(at);
        }
        if list.is_empty() {
            lists.remove(key);
        }
    }
}
