//! The daemon itself: health, who it is, what it can do, its end.

use serde::{Deserialize, Serialize};

use super::{Api, Stop};
use crate::http::{Error, Request, Response};
use crate::transcode;
use crate::wire::{DatabaseHealth, InfoPaths, LibraryHealth, Session};

/// `GET /healthz`
pub(in crate::http) fn healthz(_: &Api, _: &Request<'_>) -> Result<Response, Error> {
    Ok(Response::bytes(200, "application/json", br#"{"status":"ok"}"#.as_slice()))
}

#[derive(Serialize)]
struct Info<'a> {
    version: &'static str,
    pid: u32,
    hostname: String,
    /// Seconds.
    uptime: u64,
    runtime_version: &'static str,
    os: &'static str,
    arch: &'static str,
    paths: &'a InfoPaths,
    /// None while no compositor is found.
    session: Option<Session>,
    library: LibraryHealth,
    database: DatabaseHealth,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// `GET /info`
pub(in crate::http) fn info(api: &Api, _: &Request<'_>) -> Result<Response, Error> {
    let names = rustix::system::uname();
    let info = Info {
        version: env!("CARGO_PKG_VERSION"),
        pid: std::process::id(),
        hostname: names.nodename().to_string_lossy().into_owned(),
        uptime: api.started.elapsed().as_secs(),
        runtime_version: env!("MURALD_RUSTC"),
        os: std::env::consts::OS,
        arch: std::env::consts::ARCH,
        paths: &api.paths,
        session: api.session().map(|session| session.record()),
        library: api.library.health(),
        database: api.store.health(),
        warnings: api.warnings(),
    };
    Ok(Response::json(200, &info)?)
}

#[derive(Serialize)]
struct Able {
    transcoder_available: bool,
}

/// `GET /capabilities`
pub(in crate::http) fn capabilities(_: &Api, _: &Request<'_>) -> Result<Response, Error> {
    let transcoder_available = transcode::is_available();
    Ok(Response::json(200, &Able { transcoder_available })?)
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Shutdown {
    clear: bool,
}

/// `POST /shutdown`; the optional body `{"clear": true}` takes the wallpapers down, too.
pub(in crate::http) fn shutdown(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let Shutdown { clear } = request.json_or_default()?;
    log::info!(target: "http", request_id = request.id(); "a client asks the daemon to stop");
    // Full or closed: the daemon is stopping already.
    api.stop.try_send(Stop { clear }).ok();
    Ok(Response::bytes(200, "application/json", br#"{"status":"shutting_down"}"#.as_slice()))
}
