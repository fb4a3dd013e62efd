//! Light and dark. The request waits for the player, and a change for its pictures.

use std::time::Duration;

use super::Api;
use crate::http::{Error, Request, Response};
use crate::wire::{Appearance, PutAppearance};

/// The player waits for nothing but the disk.
const PATIENCE: Duration = Duration::from_secs(20);
/// A change is answered when its pictures are up; they may wait for those before.
const SHOWN: Duration = super::wallpaper::PATIENCE.saturating_mul(2);

/// `GET /appearance`
pub(in crate::http) fn get(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let now: Appearance = request.wait(PATIENCE, |reply| api.playlists.appearance(reply))?;
    Ok(Response::json(200, &now)?)
}

/// `PUT /appearance`
pub(in crate::http) fn put(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let PutAppearance { mode } = request.json()?;
    let set = |reply| api.playlists.set_appearance(mode, reply);
    let now: Appearance = request.wait(SHOWN, set)?;
    Ok(Response::json(200, &now)?)
}
