//! The thread `watch`: receives changes in watched directories, starts looks at them, gives new files
//! to the imports and removes the images of deleted files.
//!
//! It owns the state of the directories that is not in the database. It reads none of their disks:
//! looks run on threads that may be abandoned, and the imports read the files. It sleeps until a
//! message or an event arrives; it waits with a deadline only while a change settles, a look is in
//! progress or a file is missing.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags};

use super::super::Error;
use super::super::context::ImportContext;
use super::super::import::Request;
use super::super::owner::Owner;
use super::super::task::{self, Task, Which};
use super::directory::Watched;
use super::expirations::{self, Expirations, all_are_missing};
use super::findings::{Findings, Root, Scope};
use super::inbox::{Inbox, Message, Status, StatusList};
use super::look::DirectoryLook;
use super::notices::{Mounts, Notices};
use super::settings::{ANYWHERE, Wanted, WatchSettings};
use crate::store::watched::{self, Stamp};
use crate::sys::{lock, poll_until};
use crate::thread;
use crate::wire::own_path;

/// The maximum number of looks that hang at the same time; then no more are started.
const HUNG_MAX: usize = 8;
/// A look's stack can be small, as its findings are on the heap.
const STACK: usize = 256 << 10;
/// The name for people of the files that were imported by their paths.
const NAMED: &str = "files in place";

pub(super) struct Watcher {
    pub(super) inbox: Inbox,
    pub(super) context: Arc<ImportContext>,
    pub(super) owner: Owner,
    pub(super) status: StatusList,
    state: WatcherState,
}

struct WatcherState {
    directories: Vec<Watched>,
    settings: WatchSettings,
    last_number: u64,
    hung: usize,
    expirations: Expirations,
}

impl Watcher {
    pub(super) fn new(
        (inbox, status): (Inbox, StatusList),
        context: Arc<ImportContext>,
        owner: Owner,
    ) -> Self {
        let state = WatcherState {
            directories: Vec::new(),
            settings: WatchSettings::default(),
            last_number: 0,
            hung: 0,
            expirations: Expirations::default(),
        };
        Self {
            inbox,
            context,
            owner,
            status,
            state,
        }
    }

    /// The body of the thread.
    pub(super) fn run(mut self) {
        let mut mounts: Option<Option<Mounts>> = None;
        loop {
            // The table of mounts is open only while a directory is watched.
            if self.state.directories.is_empty() {
                mounts = None;
            } else if mounts.is_none() {
                let failed = |error: &_| log::warn!("cannot notice mounted disks: {error}");
                mounts = Some(Mounts::open().inspect_err(failed).ok());
            }
            let mounts = mounts.as_ref().and_then(Option::as_ref);
            let moved = match self.wait(mounts) {
                Ok(moved) => moved,
                Err(error) => {
                    log::error!("stopped watching directories: {error}");
                    return;
                }
            };
            for message in self.inbox.take(Instant::now()) {
                if matches!(message, Message::End) {
                    return;
                }
                self.hear(message);
            }
            if moved {
                self.on_mounts();
            }
            let now = Instant::now();
            let elsewhere = self
                .state
                .directories
                .iter()
                .filter(|one| one.has_new_way());
            elsewhere.for_each(|one| self.inbox.changed(one.id, ANYWHERE.into(), now));
            report(self.go_on());
            self.tell_status();
        }
    }

    /// Waits until there is something to do; returns whether the mounts have changed.
    fn wait(&self, mounts: Option<&Mounts>) -> std::io::Result<bool> {
        let all = self.state.directories.iter();
        let due = all.flat_map(|one| one.due().into_iter().chain(self.inbox.settled(one.id)));
        let waits = self.state.directories.iter().any(Watched::may_find);
        let due = due
            .chain(self.state.expirations.due().filter(|_| !waits))
            .min();
        let mut fds = vec![PollFd::new(self.inbox.waker(), PollFlags::IN)];
        let notices = self
            .state
            .directories
            .iter()
            .filter_map(|one| one.notices.as_ref());
        fds.extend(
            notices
                .filter_map(Notices::way)
                .map(|way| PollFd::new(way, PollFlags::IN)),
        );
        fds.extend(mounts.map(|mounts| PollFd::new(mounts, PollFlags::PRI)));
        poll_until(&mut fds, due)?;
        let is_changed = |fd: &PollFd<'_>| fd.revents().intersects(PollFlags::PRI | PollFlags::ERR);
        Ok(mounts.is_some() && fds.last().is_some_and(is_changed))
    }

    fn hear(&mut self, message: Message) {
        let now = Instant::now();
        match message {
            Message::Settings(settings) => self.on_settings(settings, now),
            Message::Named => self.on_settings(self.state.settings.clone(), now),
            Message::Scan => self.all().for_each(|one| one.look_at_all(now)),
            Message::Changed { directory, paths } => {
                if let Some(one) = self.find(directory) {
                    one.on_changes(paths, now);
                }
            }
            Message::Looked {
                look,
                findings,
                notices,
            } => {
                report(self.on_findings(look, &findings, notices, now));
            }
            Message::Taken {
                directory,
                is_unsaved,
            } => {
                if let Some(one) = self.find(directory) {
                    one.taking = None;
                    if is_unsaved {
                        one.look_at_all_later(now);
                    }
                }
                self.look_at_unknown(now);
                // Images whose files were renamed have their files again.
                if self.all().any(|one| one.all_away) {
                    report(self.look_for_away());
                }
                self.state.expirations.on_taken();
                expirations::tell_folders(&self.context);
            }
            Message::Forget { directory, reply } => {
                // The client may have gone.
                let watched = &self.state.directories;
                reply
                    .send(expirations::forget(&self.context, &directory, watched))
                    .ok();
                self.state.expirations.on_missing();
            }
            Message::End => {}
        }
    }

    /// Looks again at files whose notes the imports have found to be out of date.
    fn look_at_unknown(&self, now: Instant) {
        let unknown = &self.context.unknown_again;
        for file in std::mem::take(&mut *lock(unknown)) {
            let with = self
                .state
                .directories
                .iter()
                .filter(|one| file.starts_with(one.path()));
            with.for_each(|one| self.inbox.changed(one.id, file.clone(), now));
        }
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Watched> {
        self.state.directories.iter_mut()
    }

    fn find(&mut self, id: u64) -> Option<&mut Watched> {
        self.all().find(|one| one.id == id)
    }

    fn number(&mut self) -> u64 {
        self.state.last_number += 1;
        self.state.last_number
    }

    /// Sets the watched directories. Those with unchanged settings keep their state.
    fn on_settings(&mut self, settings: WatchSettings, now: Instant) {
        let folders = settings.folders;
        let mut wanted = Vec::new();
        for Wanted { written, directory } in &settings.directories {
            if let Ok(path) = directory.clone() {
                let task = task::Directory {
                    path,
                    folders,
                    ..task::Directory::default()
                };
                wanted.push((written.clone(), task));
            }
        }
        match self.named(&wanted) {
            Ok(task) => wanted.extend(task.map(|task| (NAMED.to_owned(), task))),
            Err(error) => log::error!("cannot watch {NAMED}: {}", error.reason()),
        }
        self.state.settings = settings;
        let mut before = std::mem::take(&mut self.state.directories);
        for (written, task) in wanted {
            let at = before.iter().position(|one| one.task.is_as(&task));
            let one = match at {
                Some(at) => {
                    let mut one = before.swap_remove(at);
                    one.written = written;
                    one
                }
                None => Watched::new(self.number(), written, task, now),
            };
            self.state.directories.push(one);
        }
        before
            .iter()
            .for_each(|one| one.task.ended.store(true, Ordering::Release));
        self.state.hung += before.iter().filter(|one| one.looking.is_some()).count();
        self.state.expirations.on_missing();
    }

    /// The files in place outside of these directories, as one directory, which watches the directories
    /// of all of them.
    fn named(
        &self,
        wanted: &[(String, task::Directory)],
    ) -> Result<Option<task::Directory>, Error> {
        let mut files = BTreeSet::from_iter(self.context.store.read(watched::files_in_place)?);
        files.retain(|file| {
            let is_displaced = own_path(file) != file;
            !is_displaced && !wanted.iter().any(|(_, directory)| directory.has(file))
        });
        let any = !files.is_empty();
        Ok(any.then(|| task::Directory::of(Path::new("/"), Which::Only(files))))
    }

    /// Handles a change of the table of mounts.
    fn on_mounts(&mut self) {
        let now = Instant::now();
        self.all().for_each(|one| one.look_at_mounts(now));
    }

    fn on_findings(
        &mut self,
        look: u64,
        findings: &Findings,
        notices: Notices,
        now: Instant,
    ) -> Result<(), Error> {
        let is_it = |one: &&mut Watched| one.looking.as_ref().is_some_and(|l| l.number == look);
        let Some(one) = self.state.directories.iter_mut().find(is_it) else {
            // The look was abandoned, or its directory is no longer watched.
            self.state.hung = self.state.hung.saturating_sub(1);
            return Ok(());
        };
        let Some(looking) = one.looking.take() else {
            return Ok(());
        };
        let scope = looking.scope;
        one.refused = notices.refused();
        one.notices = Some(notices);
        one.root = findings.root.clone();
        let led = findings
            .leads
            .as_ref()
            .filter(|leads| one.leads.as_ref() != Some(*leads));
        let elsewhere = led.is_some_and(|leads| one.follow(leads));
        if led.is_some() {
            one.look_at_mounts(now);
        }
        self.state.expirations.on_missing();
        if findings.root != Root::There {
            one.forget_parents();
            return Ok(());
        }
        if findings.has_directory || elsewhere && scope != Scope::All {
            one.look_at_all(now);
            return Ok(());
        }
        one.learn(findings, &scope);
        match self.state.expirations.difference(
            (&self.context, &self.owner),
            &one.task,
            findings,
            &scope,
        ) {
            Ok(difference) => one.absorb(difference, &scope, now),
            Err(error) => {
                // The findings are lost.
                one.look_at_all_later(now);
                return Err(error);
            }
        }
        self.look_for_away()
    }

    /// Does all that is due: looks, imports, and the end of images whose time is up.
    fn go_on(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        for at in 0..self.state.directories.len() {
            let one = &mut self.state.directories[at];
            if one.leaves_look(now) {
                log::error!(
                    "timed out waiting for {}; continuing without it",
                    one.path().display()
                );
                self.state.hung += 1;
            }
            self.state.directories[at].look_for_gone(now);
            self.start_look(at, now);
            self.give_files(at);
        }
        if self.state.directories.iter().any(Watched::may_find) {
            return Ok(());
        }
        self.look_for_away()?;
        let WatcherState {
            directories,
            expirations,
            ..
        } = &mut self.state;
        expirations.end_images(&self.context, directories, now)?;
        expirations.tell_missing(&self.context, directories)?;
        self.look_at_unknown(now);
        Ok(())
    }

    /// Finds the directories that have lost all their files at once.
    fn look_for_away(&mut self) -> Result<(), Error> {
        for one in &mut self.state.directories {
            let away = all_are_missing(&self.context.store, one)?;
            if away != one.all_away {
                self.state.expirations.on_missing();
            }
            one.all_away = away;
        }
        Ok(())
    }

    fn start_look(&mut self, at: usize, now: Instant) {
        let (number, own) = (self.number(), self.state.settings.own.clone());
        let may = self.state.hung < HUNG_MAX;
        let one = &mut self.state.directories[at];
        if !may && one.looking.is_none() {
            return one.postpone(now);
        }
        let Some((scope, life)) = one.next_look(number, now) else {
            return;
        };
        let (id, notices, directory) = (one.id, one.notices.take(), one.path().to_owned());
        let only = match &one.task.which {
            Which::Only(files) => Some(files.clone()),
            _ => None,
        };
        let look = DirectoryLook {
            directory,
            scope,
            only,
            own,
            notices,
            life,
        };
        let (inbox, told) = (self.inbox.clone(), self.inbox.clone());
        let body = move || {
            let tell = move |path| told.changed(id, path, Instant::now());
            let (findings, notices) = look.run(move || Notices::new(tell));
            inbox.send(Message::Looked {
                look: number,
                findings: Box::new(findings),
                notices,
            });
        };
        match thread::expendable("look", STACK, body) {
            // The thread sends its findings; a look that hangs is abandoned.
            Ok(thread) => thread.leave(),
            Err(error) => {
                log::error!(
                    "cannot start a thread to scan {}: {error}",
                    one.path().display()
                );
                one.postpone(now);
            }
        }
    }

    fn give_files(&mut self, at: usize) {
        let one = &mut self.state.directories[at];
        let is_noted = |path: &Path, stamp: &Stamp| {
            let note = self.context.store.read(|c| watched::get(c, path));
            note.is_ok_and(|note| note.is_some_and(|note| note.stamp.same(stamp)))
        };
        let Some((files, pass)) = one.next_files(is_noted) else {
            return;
        };
        let (directory, inbox) = (one.id, self.inbox.clone());
        let done = Box::new(move |is_unsaved| {
            inbox.send(Message::Taken {
                directory,
                is_unsaved,
            })
        });
        let task = Task::Watched(Arc::clone(&one.task), pass);
        let request = Request::Watched { files, task, done };
        self.owner.give(request);
    }

    fn tell_status(&self) {
        let status = self.state.directories.iter().map(|one| {
            let (state, message) = one.state(self.inbox.settled(one.id).is_some());
            Status {
                written: one.written.clone(),
                state,
                message,
            }
        });
        self.status.set(status.collect());
    }
}

fn report(done: Result<(), Error>) {
    if let Err(error) = done {
        log::error!("watched directories: {}", error.reason());
    }
}

#[cfg(test)]
mod tests;
