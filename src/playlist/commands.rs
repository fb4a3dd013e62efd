//! What clients tell the player to do. Each is written before it is answered, so that what was
//! acknowledged survives.

use std::sync::Arc;

use super::actions::Action;
use super::bulk::Moved;
use super::edits::edit;
use super::error::{Error, Reply};
use super::items::Items;
use super::pending::PendingCommand;
use super::player::{Player, RunningPlaylist};
use crate::store::playlists::{self, PlaylistChange, Refusal};
use crate::wire::{
    ActivePlaylist, Appearance, AppearanceMode, Event, GalleryDomain, Mode, Playlist, Power,
    PutPower,
};

pub(super) enum Command {
    Change(i64, PlaylistChange, Reply<Playlist>),
    Delete(i64, Reply<()>),
    Start {
        id: i64,
        monitors: Vec<String>,
        mode: Mode,
        reply: Reply<()>,
    },
    /// Of playlists on these monitors; none: on any.
    Act(i64, Action, Vec<String>, Reply<Moved>),
    ActOnAll(Action, Vec<String>, Reply<Moved>),
    Active(Reply<Vec<ActivePlaylist>>),
    Appearance(Reply<Appearance>),
    SetAppearance(AppearanceMode, Reply<Appearance>),
    /// The settings, or the kernel, say something else of rest.
    Rest,
    /// What somebody says of the session.
    Power(PutPower, Reply<Power>),
}

impl Command {
    /// Answers a command that will not be carried out.
    pub(super) fn refuse(self, error: Error) {
        match self {
            Self::Change(_, _, reply) => reply(Err(error)),
            Self::Delete(_, reply) | Self::Start { reply, .. } => reply(Err(error)),
            Self::Act(_, _, _, reply) | Self::ActOnAll(_, _, reply) => reply(Err(error)),
            Self::Active(reply) => reply(Err(error)),
            Self::Appearance(reply) | Self::SetAppearance(_, reply) => reply(Err(error)),
            // It is found after the command at work.
            Self::Rest => {}
            Self::Power(_, reply) => reply(Err(error)),
        }
    }
}

impl Player {
    pub(super) fn on_command(&mut self, command: Command) {
        match command {
            Command::Change(id, change, reply) => reply(self.change(id, &change)),
            Command::Delete(id, reply) => reply(self.delete(id)),
            Command::Start { id, monitors, mode, reply } => {
                let done = Box::new(|result: Result<Moved, _>| reply(result.map(drop)));
                self.enqueue(id, PendingCommand::Start { monitors, mode, done });
            }
            Command::Act(id, action, on, reply) => self.act(id, action, &on, reply),
            Command::ActOnAll(action, on, reply) => self.act_on_all(action, &on, reply),
            Command::Active(reply) => reply(Ok(self.active())),
            Command::Appearance(reply) => reply(Ok(self.appearance())),
            Command::SetAppearance(mode, reply) => self.set_appearance(mode, reply),
            Command::Rest => self.align_rest(),
            Command::Power(told, reply) => {
                self.power.tell(told);
                self.align_rest();
                reply(Ok(self.power.get()));
            }
        }
    }

    fn change(&mut self, id: i64, change: &PlaylistChange) -> Result<Playlist, Error> {
        let one = self.running.get(&id);
        let state = one.map(|one| one.state.clone());
        // Before the transaction: within one the index is not to be asked.
        let found = match (&change.source, one) {
            (Some(source), Some(_)) => {
                Some(Arc::new(Items::default()).renewed(&self.store, &source.query)?)
            }
            (None, Some(one)) => one.spec.look_up(&self.store)?,
            (_, None) => None,
        };
        // The list and the position in it, together: no kill comes between them.
        let (record, changed, edited) = self.store.write(|c| {
            let changed = playlists::update(c, id, change)?;
            let state = state.filter(|_| changed);
            let edited = state.map(|state| edit(c, id, state, found.as_ref())).transpose()?;
            let record = playlists::get(c, id)?.ok_or(Refusal::NoPlaylist { id })?;
            Ok::<_, Refusal>((record, changed, edited))
        })?;
        if !changed {
            return Ok(record);
        }
        self.bus.publish(&Event::GalleryChanged { domain: GalleryDomain::Playlists });
        if let Some(edited) = edited {
            self.go_on(id, edited);
        }
        Ok(record)
    }

    fn delete(&mut self, id: i64) -> Result<(), Error> {
        self.store.write(|c| playlists::delete(c, id))?;
        self.drop_stopped(id);
        self.cancel_pending(id, &|_| Refusal::NoPlaylist { id }.into());
        self.begin_held();
        self.bus.publish(&Event::GalleryChanged { domain: GalleryDomain::Playlists });
        Ok(())
    }

    fn active(&self) -> Vec<ActivePlaylist> {
        let (now, connected) = (self.now(), self.wallpapers.connected());
        let resting = self.power.get().resting;
        let record = |one: &RunningPlaylist| {
            one.state.record(&one.spec, one.state.applied_to(&connected), &now, resting)
        };
        self.running.values().map(record).collect()
    }
}
