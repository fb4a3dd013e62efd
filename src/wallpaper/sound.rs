//! Changes the sound of videos: finds those that a request means, and saves their sound in the rows.
//!
//! The reconciler finds the videos, and their workers change the sound. The thread of the client's
//! connection waits for the workers and writes the rows, as that changes nothing on the screen.

use std::time::Instant;

use super::Error;
use super::slots::Slots;
use super::worker::SoundReply;
use super::worker_key::WorkerKey;
use crate::backends::{Kind, Placement};
use crate::config::BackendName;
use crate::store::{self, Store};
use crate::wire::Sound;

/// The monitor, the image and the sound of each video.
type Sounds<'a> = Vec<(&'a str, i64, Sound)>;

/// Videos whose workers change the sound.
pub(crate) struct AskedSound {
    /// Whether the request named the monitors.
    pub(super) named: bool,
    pub(super) asked: Vec<(String, i64, SoundReply)>,
}

/// The video on a monitor whose sound can be changed, or why there is none.
pub(super) fn video_on<'a>(
    slots: &'a Slots,
    monitor: &str,
) -> Result<(&'a WorkerKey, &'a Placement), String> {
    let mut other = None;
    for (key, shown) in slots.on(monitor) {
        match shown.kind {
            Kind::Video | Kind::Web if key.backend == BackendName::Mpvpaper => {
                return Ok((key, shown));
            }
            Kind::Video | Kind::Web => other = Some(key.backend),
            Kind::StaticImage | Kind::AnimatedImage => {}
        }
    }
    Err(match other {
        Some(backend) => format!("{backend} on {monitor} cannot change the sound"),
        None => format!("{monitor} shows no video"),
    })
}

impl AskedSound {
    /// Waits for the workers; returns the sound of each video, and the reasons why that of others cannot
    /// be changed.
    fn answers(&self, until: Instant) -> Result<(Sounds<'_>, Vec<String>), Error> {
        let (mut sounds, mut cannot) = (Vec::new(), Vec::new());
        for (monitor, image_id, answer) in &self.asked {
            match answer.recv_deadline(until).map_err(|_| Error::Busy)? {
                Ok(sound) => sounds.push((monitor.as_str(), *image_id, sound)),
                Err(error) => cannot.push(error.to_string()),
            }
        }
        Ok((sounds, cannot))
    }

    /// Fails unless all of them have sound.
    pub(crate) fn check(&self, until: Instant) -> Result<(), Error> {
        let (_, cannot) = self.answers(until)?;
        if cannot.is_empty() {
            Ok(())
        } else {
            Err(Error::no_sound(cannot))
        }
    }

    /// Waits until the sound is changed, and saves it; returns the monitors and their sound.
    pub(crate) fn settle(
        &self,
        store: &Store,
        until: Instant,
    ) -> Result<(Vec<String>, Sound), Error> {
        let (changed, cannot) = self.answers(until)?;
        store.write(|transaction| {
            changed.iter().try_for_each(|(monitor, image_id, sound)| {
                store::assignments::set_sound(transaction, (monitor, *image_id), *sound)
            })
        })?;
        match changed.first().map(|(_, _, sound)| *sound) {
            Some(sound) if !self.named || cannot.is_empty() => Ok((
                changed
                    .iter()
                    .map(|(monitor, ..)| (*monitor).to_owned())
                    .collect(),
                sound,
            )),
            _ => Err(Error::no_sound(cannot)),
        }
    }
}
