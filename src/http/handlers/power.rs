//! What is known of the session: whether it is locked or idle. The request waits for the player.

use std::time::Duration;

use super::Api;
use crate::http::{Error, Request, Response};
use crate::wire::{Power, PutPower};

/// The player waits for nothing but the disk.
const PATIENCE: Duration = Duration::from_secs(20);

/// `GET /power`
pub(in crate::http) fn get(api: &Api, _: &Request<'_>) -> Result<Response, Error> {
    Ok(Response::json(200, &api.playlists.power())?)
}

/// `PUT /power`
pub(in crate::http) fn put(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let told: PutPower = request.json()?;
    if told.locked.is_none() && told.idle.is_none() {
        return Err(Error::bad_request("nothing is said: give locked, idle or both"));
    }
    let tell = |reply| api.playlists.tell_power(told, reply);
    let power: Power = request.wait(PATIENCE, tell)?;
    Ok(Response::json(200, &power)?)
}
