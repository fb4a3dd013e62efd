//! Parsers with plain types, for the targets of `tests/fuzz`. Part of its module with `cfg(parsers)`.
//!
//! [`connection`] serves a client on the calling thread, with all bytes there from the start: nothing
//! blocks, and no thread is started.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::LazyLock;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tiny_http::Method;

use super::Service;
use super::connection::{Connection, ServerState};
use super::error::Error;
use super::files;
use super::limits::Limits;
use super::parse;
use super::query::{self, Paging};
use super::request::Request;
use super::response::{Body, Response};
use super::router::{Handler, Route, Router};
use super::routes::ROUTES;
use super::waiting::PendingRequests;
use crate::store::filter;
use crate::sys::Waker;
use crate::wire::{
    BackWallpaper, ChangeWatch, CreateFolder, CreatePlaylist, DeleteImages, ExportLoop,
    ExtractPalette, ImportImages, ImportWeb, MoveImages, NoFields, PatchFolder, PatchImage,
    PatchPlaylist, PutAppearance, PutPower, RandomWallpaper, SelectAll, SetWallpaper,
    StartPlaylist,
};

/// Size, path and query.
pub type Head<'b> = (usize, &'b str, Option<&'b str>);

/// The head at the start of the bytes; an error is the status of the refusal.
pub fn head(bytes: &[u8]) -> Result<Option<Head<'_>>, u16> {
    let head = parse::head(bytes, &Limits::default()).map_err(|refusal| refusal.status)?;
    Ok(head.map(|head| (head.size, head.path, head.query)))
}

/// All answers to a client that sends these bytes: each request is answered with its own body, or with
/// an error.
pub fn connection(sent: &[u8]) -> Vec<u8> {
    static SHARED: LazyLock<ServerState> = LazyLock::new(|| {
        let waker = Waker::new().expect("a descriptor");
        ServerState::new(Echo, waker, Limits::default())
    });
    let (near, mut far) = UnixStream::pair().expect("two descriptors");
    far.write_all(sent).expect("it fits into the socket");
    far.shutdown(Shutdown::Write).expect("it is open");
    let client = SHARED.connections.add(near);
    Connection::new(&SHARED, client).serve();
    let mut answered = Vec::new();
    // Unread bytes of the request make the end of the connection an error.
    far.read_to_end(&mut answered).ok();
    answered
}

struct Echo;

impl Service for Echo {
    fn handle(&self, request: Request<'_>) -> Result<Response, Error> {
        // An answer to HEAD has a body's length but no body, and `answers` could not find its end.
        let body = if *request.method() == Method::Head {
            &[]
        } else {
            request.body()
        };
        Ok(Response::bytes(
            200,
            "application/octet-stream",
            body.to_vec(),
        ))
    }
}

/// Status and body of the answer to a request, by our routes with handlers that only read the request;
/// `None` if the head is refused.
pub fn request(bytes: &[u8]) -> Option<(u16, Vec<u8>)> {
    static ROUTER: LazyLock<Router<()>> = LazyLock::new(|| Router::new((), readers()));
    static WAITING: LazyLock<PendingRequests> = LazyLock::new(|| PendingRequests::new(1));
    let head = parse::head(bytes, &Limits::default()).ok()??;
    let body = &bytes[head.size..];
    let answer = Request::new(head, body, "id", &WAITING)
        .and_then(|request| ROUTER.handle(request))
        .unwrap_or_else(|error| error.into_response("id"));
    match answer.body {
        Body::Bytes(bytes) => Some((answer.status, bytes.into_owned())),
        Body::File { .. } | Body::Events { .. } => None,
    }
}

fn readers() -> &'static [Route<()>] {
    let route = |route: &Route<_>| Route {
        method: route.method.clone(),
        pattern: route.pattern,
        handler: reader(&route.method, route.pattern),
        bare: route.bare,
    };
    ROUTES.iter().map(route).collect::<Vec<_>>().leak()
}

/// The reader of a route's requests, like that of the real handler.
fn reader(method: &Method, pattern: &str) -> Handler<()> {
    match (method, pattern) {
        (Method::Post, "/images") => body::<ImportImages>,
        (Method::Delete, "/images") => body::<DeleteImages>,
        (Method::Patch, "/images/{id}") => body::<PatchImage>,
        (_, "/images/import-web") => body::<ImportWeb>,
        (_, "/images/select-all") => body::<SelectAll>,
        (_, "/images/{id}/extract-video-palette") => body::<ExtractPalette>,
        (_, "/images/{id}/video-loop-export") => body::<ExportLoop>,
        (_, "/wallpaper/set") => body::<SetWallpaper>,
        (_, "/wallpaper/random") => random,
        (_, "/wallpaper/back") => body::<BackWallpaper>,
        (Method::Post, "/playlists") => create,
        (Method::Patch, "/playlists/{id}") => body::<PatchPlaylist>,
        (_, "/playlists/{id}/start") => body::<StartPlaylist>,
        (Method::Post, "/folders") => body::<CreateFolder>,
        (Method::Patch, "/folders/{id}") => body::<PatchFolder>,
        (_, "/folders/move-images") => body::<MoveImages>,
        (Method::Put, "/library/watch") => body::<ChangeWatch>,
        (Method::Put, "/appearance") => body::<PutAppearance>,
        (Method::Put, "/power") => body::<PutPower>,
        (Method::Patch, "/config") => body::<Map<String, Value>>,
        (Method::Get, _) => page,
        _ => body::<NoFields>,
    }
}

fn read() -> Result<Response, Error> {
    Ok(Response::empty(204))
}

fn body<T: DeserializeOwned>((): &(), request: &Request<'_>) -> Result<Response, Error> {
    request.json::<T>()?;
    read()
}

fn page((): &(), request: &Request<'_>) -> Result<Response, Error> {
    if !request.placeholder().is_empty() {
        request.record()?;
    }
    let paging = Paging::read(request.query())?;
    filter::query(request.query())?;
    Ok(Response::json(200, &paging.of(paging.offset()))?)
}

fn random((): &(), request: &Request<'_>) -> Result<Response, Error> {
    let body: RandomWallpaper = request.json_or_default()?;
    filter::from_fields(&body.filter.unwrap_or_default()).map_err(refused)?;
    read()
}

fn create((): &(), request: &Request<'_>) -> Result<Response, Error> {
    let body: CreatePlaylist = request.json()?;
    filter::from_source(&body.source.unwrap_or_default()).map_err(refused)?;
    read()
}

fn refused(bad: filter::BadFilter) -> Error {
    Error::bad_request(bad.to_string())
}

/// Percent-decodes a text; with `plus`, `+` is a space.
pub fn decoded(text: &str, plus: bool) -> Option<String> {
    query::decode(text, plus).map(Into::into)
}

/// Whether the query is valid for a list of images.
pub fn query(raw: &str) -> bool {
    query::parse(Some(raw)).is_ok_and(|parameters| {
        Paging::read(&parameters).is_ok() && filter::query(&parameters).is_ok()
    })
}

/// The first and last byte of a `Range` in a file of this length.
pub fn range(text: &str, length: u64) -> Option<(u64, u64)> {
    match files::part(text, length) {
        files::Range::Part { first, last } => Some((first, last)),
        files::Range::Whole | files::Range::Beyond => None,
    }
}
