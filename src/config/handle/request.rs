//! Changes by requests: checks them, applies them to the current text of the file and writes it.
//!
//! Runs in the thread of the connection that has the request.

use std::time::{Duration, Instant};

use serde_json::{Map, Value as Json};

use super::super::file::Written;
use super::super::overlay::{self, Edit};
use super::super::schema::{BackendName, Section};
use super::super::snapshot::{ChangeSource, Changed};
use super::super::{Config, Error, document, file, patch};
use super::{ConfigHandle, FileState, parse};
use crate::sys::{lock, unpoisoned};
use crate::wire::{Difference, ListChange};

/// How long a request waits until an edit of the file is complete and loaded.
const PATIENCE: Duration = Duration::from_secs(1);
/// The most bytes that a request may leave in the file, which is read at each start and each change; a
/// file that a person wrote may be longer. The generated file has about 7000.
pub(super) const TEXT_MAX: usize = 1 << 20;

impl ConfigHandle {
    /// `PATCH /config`: an object of sections, each an object of keys; all of it or nothing.
    pub fn patch(&self, body: &Map<String, Json>) -> Result<Changed, Error> {
        self.patch_with(&patch::whole(body)?)
    }

    /// `PATCH` of one section or backend: an object of keys; all of it or nothing.
    pub fn patch_section(
        &self,
        section: Section,
        body: &Map<String, Json>,
    ) -> Result<Changed, Error> {
        self.patch_with(&patch::section(section, body)?)
    }

    fn patch_with(&self, edits: &[Edit]) -> Result<Changed, Error> {
        patch::check_new_paths(edits, &self.current())?;
        self.change(ChangeSource::Patch, |_| edits.to_vec())
    }

    /// `PATCH /library/watch`: other keys of `[library]`, and a change of its directories.
    pub(crate) fn patch_watched(
        &self,
        body: &Map<String, Json>,
        watch: Option<ListChange<String>>,
    ) -> Result<Changed, Error> {
        let edits = patch::section(Section::Library, body)?;
        let watch_edit = |paths: Vec<String>| Edit {
            section: Section::Library,
            key: "watch".to_owned(),
            value: Some(paths.into()),
        };
        if let Some(ListChange::All(add) | ListChange::Some(Difference { add, .. })) = &watch {
            patch::check_new_paths(&[watch_edit(add.clone())], &self.current())?;
        }
        self.change(ChangeSource::Patch, |config| {
            let watch = watch.as_ref().map(|change| patch::watched(config, change));
            let edits = edits.iter().cloned();
            edits.chain(watch.map(watch_edit)).collect()
        })
    }

    /// Replaces values of `[workspaces]`: `other` gets the entries as they are when the file is
    /// written.
    pub(crate) fn rewrite_workspaces(
        &self,
        other: impl Fn(&str, &str) -> Option<String>,
    ) -> Result<(), Error> {
        let edits = |config: &Config| {
            let edit = |(key, written): (&String, &String)| {
                let value = Some(other(key, written)?.into());
                Some(Edit {
                    section: Section::Workspaces,
                    key: key.clone(),
                    value,
                })
            };
            config.workspaces.iter().filter_map(edit).collect()
        };
        self.change(ChangeSource::Patch, edits).map(drop)
    }

    /// Fails if no change can be written.
    pub fn can_change(&self) -> Result<(), Error> {
        file::answers(&self.0.path)?;
        self.lock().expect_good()?;
        let failed = |source| Error::Write {
            path: self.0.path.clone(),
            source,
        };
        file::writable(&self.0.path).map(drop).map_err(failed)
    }

    /// Sets every key to its default; removes keys that the client added.
    pub fn reset_all(&self) -> Result<Changed, Error> {
        self.change(ChangeSource::ResetAll, patch::reset_all)
    }

    pub fn reset_backend(&self, name: BackendName) -> Result<Changed, Error> {
        self.change(ChangeSource::ResetBackend, |_| patch::reset_backend(name))
    }

    /// Makes the edits and writes the file. Waits until an edit by another program is loaded; a reset
    /// replaces an edit that takes longer.
    fn change(
        &self,
        source: ChangeSource,
        edits: impl Fn(&Config) -> Vec<Edit>,
    ) -> Result<Changed, Error> {
        file::answers(&self.0.path)?;
        let deadline = Instant::now() + PATIENCE;
        let mut state = self.lock();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let mut found = self.read_file()?;
            if found != state.seen && lock(&self.0.unwatched).is_some() {
                self.load(&mut state, false);
                found = self.read_file()?;
            }
            if found == state.seen || (source.is_reset() && left.is_zero()) {
                if !source.is_reset() {
                    state.expect_good()?;
                }
                if let Some(changed) = self.try_to_change(&mut state, found, source, &edits)? {
                    return Ok(changed);
                }
            }
            if left.is_zero() {
                return Err(Error::BeingWritten {
                    path: self.0.path.clone(),
                });
            }
            state = unpoisoned(self.0.loaded.wait_timeout(state, left)).0;
        }
    }

    /// `None` if the file is no longer as it was `found`.
    fn try_to_change(
        &self,
        state: &mut FileState,
        found: Option<String>,
        source: ChangeSource,
        edits: impl Fn(&Config) -> Vec<Edit>,
    ) -> Result<Option<Changed>, Error> {
        let edits = edits(&self.current());
        let (text, parsed) = self.edited(&state.good, &edits)?;
        let warnings = warnings_of(&edits, parsed.warned);
        if found.as_ref() == Some(&text) {
            return Ok(Some(Changed {
                warnings,
                ..Changed::default()
            }));
        }
        let writes_daemon = source == ChangeSource::Patch && alters_daemon(&state.good, &edits);
        let failed = |source| Error::Write {
            path: self.0.path.clone(),
            source,
        };
        let backup = found.as_deref().filter(|_| source.is_reset());
        let backup = backup.map(|found| file::backup(&self.0.path, found));
        let (copy, backup) = backup.transpose().map_err(failed)?.unzip();
        let written = file::write(&self.0.path, &text, found.as_deref(), copy);
        if !matches!(written, Ok(Written::Yes)) {
            return written.map(|_| None).map_err(failed);
        }
        let sections = self.adopt(state, text, parsed.config, source);
        let restart_required = writes_daemon || sections.contains(&Section::Daemon);
        Ok(Some(Changed {
            sections,
            restart_required,
            warnings,
            backup,
        }))
    }

    fn read_file(&self) -> Result<Option<String>, Error> {
        file::read(&self.0.path).map_err(|source| Error::Read {
            path: self.0.path.clone(),
            source,
        })
    }

    /// The text with the edits, if it can be read again, and its settings.
    fn edited(&self, text: &str, edits: &[Edit]) -> Result<(String, document::Parsed), Error> {
        let stored = |edited: String| {
            if edited.len() > TEXT_MAX.max(text.len()) {
                return Err(format!("the file would have more than {TEXT_MAX} bytes"));
            }
            let read = parse(&edited, &self.0.path).map_err(|error| error.to_string())?;
            Ok((edited, read))
        };
        let edited = overlay::apply(text, edits).map_err(|error| error.to_string());
        edited.and_then(stored).map_err(|problem| Error::Refused {
            key: edits
                .first()
                .map(|edit| edit.section.heading())
                .unwrap_or_default(),
            problem: format!("cannot be stored: {problem}"),
        })
    }
}

impl FileState {
    /// Fails if the file is broken: a person is editing it.
    fn expect_good(&self) -> Result<(), Error> {
        match (&self.seen, &self.trouble) {
            (Some(_), Some(trouble)) => Err(Error::Broken {
                message: trouble.clone(),
            }),
            _ => Ok(()),
        }
    }
}

/// The warnings that concern sections with edits.
fn warnings_of(edits: &[Edit], warned: Vec<(Section, String)>) -> Vec<String> {
    let is_edited = |section: Section| edits.iter().any(|edit| edit.section == section);
    let own = warned
        .into_iter()
        .filter(|(section, _)| is_edited(*section));
    own.map(|(_, warning)| warning).collect()
}

/// Whether the edits change the text of `[daemon]`, even if the value is unusable.
fn alters_daemon(text: &str, edits: &[Edit]) -> bool {
    let own = edits.iter().filter(|edit| edit.section == Section::Daemon);
    let own: Vec<Edit> = own.cloned().collect();
    overlay::apply(text, &own).is_ok_and(|edited| edited != text)
}
