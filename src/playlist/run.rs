//! The thread `playlist`: what wakes it, and what it does then.

use crossbeam_channel::{Receiver, select};

use super::commands::Command;
use super::error::Error;
use super::player::{Player, RunningPlaylist};
use super::spec::PlaylistSpec;
use super::state::PlaybackState;
use crate::clock::Alarm;
use crate::events::Subscription;
use crate::random::seed;
use crate::store::{self, playlists};

/// What the thread listens to.
pub(super) struct Mailbox {
    pub(super) commands: Receiver<Command>,
    pub(super) reports: Receiver<()>,
    /// The alarm clock.
    pub(super) rings: Receiver<()>,
    pub(super) outputs: Receiver<()>,
    pub(super) news: Subscription,
    /// Closes at the end.
    pub(super) end: Receiver<()>,
}

impl Player {
    pub(super) fn run(mut self, mailbox: &Mailbox, alarm: &Alarm) {
        self.restore();
        self.receive(mailbox, alarm);
        self.pending.into_values().for_each(|pending| pending.cancel(&|| Error::Ending));
        self.waiting.into_iter().for_each(|reply| reply(Err(Error::Ending)));
    }

    fn receive(&mut self, mailbox: &Mailbox, alarm: &Alarm) {
        loop {
            if let Err(error) = alarm.set(self.deadlines()) {
                log::error!("the alarm cannot be set, playlists do not change: {error}");
            }
            select! {
                recv(mailbox.commands) -> command => match command {
                    Ok(command) => {
                        // What was told to everybody before is known to whoever asks now.
                        let news = mailbox.news.receiver().try_iter();
                        news.for_each(|message| self.on_event(&message));
                        self.on_command(command);
                    }
                    // The server has ended, and the daemon is about to.
                    Err(_) => return,
                },
                recv(mailbox.news.receiver()) -> message => if let Ok(message) = message {
                    self.on_event(&message);
                },
                recv(mailbox.reports) -> _ => self.on_reports(),
                recv(mailbox.outputs) -> _ => self.fill_all_monitors(),
                recv(mailbox.rings) -> _ => {}
                recv(mailbox.end) -> _ => return,
            }
            self.run_all_due();
        }
    }

    /// Takes the reconciler's answers.
    pub(super) fn on_reports(&mut self) {
        for report in self.take_reports() {
            if let Some(report) = self.conclude(report) {
                self.on_report(report);
            }
        }
    }

    /// Goes on with what ran when the daemon ended.
    pub(super) fn restore(&mut self) {
        if let Err(error) = self.load() {
            log::error!("the running playlists cannot be read: {error}");
        }
        self.run_all_due();
        self.fill_all_monitors();
    }

    fn load(&mut self) -> Result<(), store::Error> {
        self.mode = self.store.read(store::appearance::mode)?;
        for id in self.store.read(playlists::running)? {
            if let Err(error) = self.go_on_with(id) {
                log::error!("the playlist {id} does not run on: {error}");
            }
        }
        Ok(())
    }

    fn go_on_with(&mut self, id: i64) -> Result<(), store::Error> {
        let state = self.store.read(|c| playlists::state::<PlaybackState>(c, id))?;
        let spec = PlaylistSpec::find(&self.store, id)?;
        let Some((spec, mut state)) = spec.zip(state) else { return Ok(()) };
        if !spec.items.is_empty() {
            state.edit(&spec, seed());
        } else if !spec.is_living() {
            return self.store.write(|c| playlists::save(c, id, false, &state));
        }
        state.resume_after_restart(&self.now(), &self.boot_id);
        log::info!("the playlist {:?} runs on", spec.name);
        self.running.insert(id, RunningPlaylist::new(spec, state));
        Ok(())
    }
}
