//! For each media type, folder, tag and hue group: the slots that have it, in order.

use std::collections::HashMap;
use std::hash::Hash;

use super::bits::Bits;
use super::{Entry, Slot};
use crate::wire::MediaType;

/// What many images share is kept as bits, what few share as lists.
#[derive(Debug, Default)]
pub(super) struct Postings {
    media: HashMap<MediaType, Bits>,
    animated: Bits,
    hues: HashMap<u8, Bits>,
    root: Bits,
    folders: HashMap<i64, Vec<Slot>>,
    tags: HashMap<String, Vec<Slot>>,
    /// The tags that are the same in lower case.
    spellings: HashMap<String, Vec<String>>,
}

impl Postings {
    pub(super) fn add(&mut self, slot: Slot, entry: &Entry, hue_group: u8) {
        self.media.entry(entry.media_type).or_default().set(slot);
        self.hues.entry(hue_group).or_default().set(slot);
        match entry.folder_id {
            None => self.root.set(slot),
            Some(folder) => add(&mut self.folders, folder, slot),
        }
        if entry.animated {
            self.animated.set(slot);
        }
        for tag in &entry.tags {
            if !self.tags.contains_key(tag) {
                self.spellings.entry(tag.to_lowercase()).or_default().push(tag.clone());
            }
            add(&mut self.tags, tag.clone(), slot);
        }
    }

    pub(super) fn remove(&mut self, slot: Slot, entry: &Entry, hue_group: u8) {
        let sets = [self.media.get_mut(&entry.media_type), self.hues.get_mut(&hue_group)];
        sets.into_iter().flatten().for_each(|set| set.unset(slot));
        match entry.folder_id {
            None => self.root.unset(slot),
            Some(folder) => remove(&mut self.folders, &folder, slot),
        }
        self.animated.unset(slot);
        for tag in &entry.tags {
            remove(&mut self.tags, tag, slot);
            if !self.tags.contains_key(tag) {
                self.forget_spelling(tag);
            }
        }
    }

    /// Leaves the images of a kind.
    pub(super) fn media(&self, media_type: MediaType, among: &mut Bits) {
        only(self.media.get(&media_type), among);
    }

    pub(super) fn hue(&self, group: u8, among: &mut Bits) {
        only(self.hues.get(&group), among);
    }

    /// Leaves the images of a folder; none is the root.
    pub(super) fn folder(&self, folder: Option<i64>, among: &mut Bits) {
        match folder {
            None => among.and(&self.root),
            Some(folder) => among.and(&bits(self.folders.get(&folder).into_iter().flatten())),
        }
    }

    /// Leaves those that move, or those that do not.
    pub(super) fn animated(&self, animated: bool, among: &mut Bits) {
        if animated {
            among.and(&self.animated);
        } else {
            among.and_not(&self.animated);
        }
    }

    /// Leaves those with this tag, in whatever case it is written.
    pub(super) fn tag(&self, tag: &str, among: &mut Bits) {
        let spellings = self.spellings.get(&tag.to_lowercase()).into_iter().flatten();
        among.and(&bits(spellings.filter_map(|tag| self.tags.get(tag)).flatten()));
    }

    fn forget_spelling(&mut self, tag: &str) {
        let lower = tag.to_lowercase();
        if let Some(spellings) = self.spellings.get_mut(&lower) {
            spellings.retain(|spelling| spelling != tag);
            if spellings.is_empty() {
                self.spellings.remove(&lower);
            }
        }
    }

    /// All tags in use, sorted.
    pub(super) fn tags(&self) -> Vec<String> {
        let mut tags: Vec<String> = self.tags.keys().cloned().collect();
        tags.sort_unstable();
        tags
    }
}

fn only(set: Option<&Bits>, among: &mut Bits) {
    match set {
        Some(set) => among.and(set),
        None => *among = Bits::default(),
    }
}

fn bits<'a>(slots: impl Iterator<Item = &'a Slot>) -> Bits {
    slots.copied().collect()
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
