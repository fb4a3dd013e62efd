//! Every route of the API. Documentation is tested against this table.

use tiny_http::Method::{self, Get, Post};

use super::handlers::{Api, daemon, events};
use super::router::{Handler, Route};

const fn route(
    method: Method,
    pattern: &'static str,
    handler: Handler<Api>,
    summary: &'static str,
) -> Route<Api> {
    Route { method, pattern, summary, handler }
}

pub static ROUTES: &[Route<Api>] = &[
    route(Get, "/healthz", daemon::healthz, "Whether the daemon answers"),
    route(Get, "/info", daemon::info, "Version, process and host"),
    route(Get, "/capabilities", daemon::capabilities, "What this installation can do"),
    route(Post, "/shutdown", daemon::shutdown, "Stop the daemon"),
    route(Get, "/events", events::stream, "Everything that happens, as server-sent events"),
];
