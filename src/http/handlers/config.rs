//! The settings, as the snapshot has them: paths as written, every key present.

use super::Api;
use crate::config::{BackendName, Section};
use crate::http::{Answer, Failure, Request};

/// `GET /config`
pub(in crate::http) fn whole(api: &Api, _: &Request<'_>) -> Result<Answer, Failure> {
    Ok(Answer::json(200, &api.config.current().to_json())?)
}

/// `GET /config/{section}`; `backend` has its own routes and is a 404 here.
pub(in crate::http) fn section(api: &Api, request: &Request<'_>) -> Result<Answer, Failure> {
    let section = match request.placeholder(0) {
        "app" => Section::App,
        "daemon" => Section::Daemon,
        "monitors" => Section::Monitors,
        "remote_gallery" => Section::RemoteGallery,
        name => {
            return Err(Failure::not_found(format!("there is no section {name:?}"))
                .details("sections are app, daemon, monitors, remote_gallery"));
        }
    };
    Ok(Answer::json(200, &api.config.current().section(section))?)
}

/// `GET /config/backends/{backend}`
pub(in crate::http) fn backend(api: &Api, request: &Request<'_>) -> Result<Answer, Failure> {
    let name: BackendName = request.placeholder(0).parse().map_err(unknown_backend)?;
    Ok(Answer::json(200, &api.config.current().section(Section::Setter(name)))?)
}

fn unknown_backend(unknown: crate::wire::Unknown) -> Failure {
    Failure::not_found(format!("there is no backend {:?}", unknown.value))
        .details(format!("backends are {}", unknown.allowed.join(", ")))
}
