//! The wallpapers of workspaces, and how their entries follow an image that is renamed.

use std::sync::Mutex;

use super::{Api, SHOW_PATIENCE};
use crate::error_chain::chain;
use crate::http::{Error, Request, Response};
use crate::library;
use crate::sys::lock;
use crate::wallpaper::{entries_by_name, reference};
use crate::wire::Image;

/// `GET /workspaces`
pub(in crate::http) fn list(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    api.wallpaper.wait_for_look();
    let entries = request.wait(SHOW_PATIENCE, |reply| api.wallpaper.workspaces(reply))?;
    Ok(Response::json(200, &entries)?)
}

/// Renames an image by `edit`, and rewrites the entries that name it. In between they have its ID, so
/// that they mean it all the time. Entries that others change in between stay as others have set them.
pub(super) fn renamed(
    api: &Api,
    image_id: i64,
    edit: impl FnOnce() -> Result<Image, library::Error>,
) -> Result<Image, Error> {
    // A second rename would not find the entries of the first by their names.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one = lock(&ONE_AT_A_TIME);
    let named = entries_by_name(&api.store, &api.config.current().workspaces, image_id)?;
    if named.is_empty() {
        return Ok(edit()?);
    }
    let by_id = format!("id:{image_id}");
    api.config.rewrite_workspaces(|workspace, written| {
        (named.get(workspace)? == written).then(|| by_id.clone())
    })?;
    let image = edit();
    let by_name = |workspace: &str, written: &str| {
        let before = named.get(workspace).filter(|_| written == by_id)?;
        Some(image.as_ref().map_or_else(|_| before.clone(), reference))
    };
    if let Err(error) = api.config.rewrite_workspaces(by_name) {
        log::error!("cannot rewrite the section workspaces: {}", chain(&error));
    }
    Ok(image?)
}
