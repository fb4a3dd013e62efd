//! The wallpapers of workspaces, and how their entries follow an image that is renamed.

use serde_json::{Map, Value};

use super::{Api, SHOW_PATIENCE};
use crate::config::Section;
use crate::error_chain::chain;
use crate::http::{Error, Request, Response};
use crate::library;
use crate::wallpaper::{entries_by_name, reference};
use crate::wire::Image;

/// `GET /workspaces`
pub(in crate::http) fn list(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    api.wallpaper.wait_for_look();
    let entries = request.wait(SHOW_PATIENCE, |reply| api.wallpaper.workspaces(reply))?;
    Ok(Response::json(200, &entries)?)
}

/// Renames an image by `edit`, and rewrites the entries that name it. In between they have its ID, so
/// that they mean it all the time.
pub(super) fn renamed(
    api: &Api,
    image_id: i64,
    edit: impl FnOnce() -> Result<Image, library::Error>,
) -> Result<Image, Error> {
    let was = api.config.current().workspaces.clone();
    let entries = entries_by_name(&api.store, &was, image_id)?;
    rewrite(api, &entries, |_| format!("id:{image_id}"));
    let image = edit();
    rewrite(api, &entries, |workspace| match &image {
        Ok(image) => reference(image),
        Err(_) => was.get(workspace).cloned().unwrap_or_default(),
    });
    Ok(image?)
}

/// A file that cannot be written leaves the image as it is named.
fn rewrite(api: &Api, entries: &[String], reference: impl Fn(&str) -> String) {
    if entries.is_empty() {
        return;
    }
    let entry = |name: &String| (name.clone(), Value::from(reference(name)));
    let changes: Map<String, Value> = entries.iter().map(entry).collect();
    if let Err(error) = api.config.patch_section(Section::Workspaces, &changes) {
        log::error!("cannot rewrite the section workspaces: {}", chain(&error));
    }
}
