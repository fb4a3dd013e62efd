//! From a path to its handler: one table, literal parts before placeholders, 404 and 405.

use std::borrow::Cow;

use tiny_http::Method;

use super::error::Error;
use super::request::Request;
use super::response::Response;
use crate::wire::JsonObject;

pub type Handler<C> = fn(&C, &Request<'_>) -> Result<Response, Error>;

/// A row of a route table.
#[derive(Debug)]
pub struct Route<C: 'static> {
    pub method: Method,
    /// `/images/{id}/raw`; a placeholder matches any segment, and `{name}.css` leaves its ending to
    /// the handler.
    pub pattern: &'static str,
    pub handler: Handler<C>,
    /// Takes no body: a body that is sent nevertheless must be a JSON object, and is ignored.
    pub bare: bool,
}

/// Answers requests. Many threads call it at the same time.
pub trait Service: Send + Sync + 'static {
    fn handle(&self, request: Request<'_>) -> Result<Response, Error>;

    /// Releases the memory that is kept for the next request. Called when no client has been
    /// connected for a while.
    fn release_memory(&self) {}
}

/// A route table with its context: the [`Service`] of a server.
#[derive(Debug)]
pub struct Router<C: 'static> {
    context: C,
    resources: Vec<Resource<C>>,
    release_memory: fn(&C),
    before_each: fn(&C, &Request<'_>),
}

/// All routes of one pattern.
#[derive(Debug)]
struct Resource<C: 'static> {
    parts: Vec<Part>,
    routes: Vec<&'static Route<C>>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    // Literals sort first: `/images/tags` is not the image with the id `tags`.
    Literal(&'static str),
    Any,
}

impl<C> Router<C> {
    pub fn new(context: C, table: &'static [Route<C>]) -> Self {
        let mut resources: Vec<Resource<C>> = Vec::new();
        for route in table {
            let parts = parts(route.pattern);
            match resources
                .iter_mut()
                .find(|resource| resource.parts == parts)
            {
                Some(resource) => resource.routes.push(route),
                None => resources.push(Resource {
                    parts,
                    routes: vec![route],
                }),
            }
        }
        resources.sort_by(|one, other| one.parts.cmp(&other.parts));
        Self {
            context,
            resources,
            release_memory: |_| {},
            before_each: |_, _| {},
        }
    }

    /// Sets the function that frees unused descriptors and memory.
    pub(crate) fn sparing(self, release_memory: fn(&C)) -> Self {
        Self {
            release_memory,
            ..self
        }
    }

    /// Sets the function that sees each request before its handler.
    pub(crate) fn seeing(self, before_each: fn(&C, &Request<'_>)) -> Self {
        Self {
            before_each,
            ..self
        }
    }

    fn find(&self, request: &mut Request<'_>) -> Result<Handler<C>, Error> {
        let has_it = |resource: &&Resource<C>| matches(&resource.parts, &request.segments);
        let resource = self.resources.iter().find(has_it);
        let resource = resource.ok_or_else(|| Error::not_found("no such path"))?;
        let wanted = match request.method() {
            Method::Head => &Method::Get,
            method => method,
        };
        let route = resource.routes.iter().find(|route| route.method == *wanted);
        let route = route.ok_or_else(|| {
            let allow = allow(&resource.routes);
            Error::new(
                405,
                format!("this path does not support {}", request.method()),
            )
            .details(format!("allowed: {allow}"))
            .header("Allow", allow)
        })?;
        request.placeholder = resource.parts.iter().position(|part| *part == Part::Any);
        if route.bare {
            request.json_or_default::<JsonObject>()?;
        }
        Ok(route.handler)
    }
}

impl<C: Send + Sync> Service for Router<C> {
    fn handle(&self, mut request: Request<'_>) -> Result<Response, Error> {
        let handler = self.find(&mut request)?;
        (self.before_each)(&self.context, &request);
        handler(&self.context, &request)
    }

    fn release_memory(&self) {
        (self.release_memory)(&self.context);
    }
}

fn parts(pattern: &'static str) -> Vec<Part> {
    let segments = pattern.strip_prefix('/').unwrap_or(pattern).split('/');
    segments
        .map(|text| {
            if text.starts_with('{') {
                Part::Any
            } else {
                Part::Literal(text)
            }
        })
        .collect()
}

fn matches(parts: &[Part], segments: &[Cow<'_, str>]) -> bool {
    parts.len() == segments.len()
        && parts
            .iter()
            .zip(segments)
            .all(|(part, segment)| match part {
                Part::Literal(text) => segment == text,
                Part::Any => !segment.is_empty(),
            })
}

/// The value of `Allow`: `GET` answers `HEAD`, too.
fn allow<C>(routes: &[&Route<C>]) -> String {
    let mut methods: Vec<&str> = Vec::new();
    for route in routes {
        methods.push(route.method.as_str());
        if route.method == Method::Get {
            methods.push("HEAD");
        }
    }
    methods.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::limits::Limits;
    use super::super::waiting::PendingRequests;
    use super::super::{ROUTES, parse};
    use super::*;

    fn says<const STATUS: u16>(_: &(), request: &Request<'_>) -> Result<Response, Error> {
        Err(Error::new(STATUS, request.placeholder().to_owned()))
    }

    const fn route(method: Method, pattern: &'static str, handler: Handler<()>) -> Route<()> {
        Route {
            method,
            pattern,
            handler,
            bare: false,
        }
    }

    static TABLE: [Route<()>; 6] = [
        route(Method::Get, "/images/{id}", says::<201>),
        route(Method::Delete, "/images/{id}", says::<202>),
        route(Method::Get, "/images/tags", says::<203>),
        route(Method::Get, "/images/{id}/raw", says::<204>),
        route(Method::Post, "/shutdown", says::<205>),
        route(Method::Get, "/monitors/{name}", says::<206>),
    ];

    #[test]
    fn paths_find_their_handlers() {
        let site = Router::new((), &TABLE);
        let check = |line: &str, status: u16, said: &str| {
            let bytes = format!("{line} HTTP/1.1\r\n\r\n");
            let head = parse::head(bytes.as_bytes(), &Limits::default())
                .unwrap()
                .unwrap();
            let waiting = PendingRequests::new(1);
            let request = Request::new(head, b"", "x", &waiting).unwrap();
            let failure = site.handle(request).unwrap_err();
            assert_eq!(failure.status(), status, "{line}");
            let full = failure.into_response("x");
            assert!(
                format!("{full:?} {}", full.text()).contains(said),
                "{line}: {full:?}"
            );
        };
        check("GET /images/7", 201, "\"7\"");
        check("HEAD /images/7", 201, "\"7\"");
        check("DELETE /images/a%2Fb", 202, "\"a/b\"");
        check("GET /images/tags", 203, "");
        check("GET /im%61ges/tags", 203, "");
        check("GET /images/7/raw?x=1", 204, "\"7\"");
        check("PUT /images/7", 405, "\"GET, HEAD, DELETE\"");
        check("DELETE /images/tags", 405, "\"GET, HEAD\"");
        check("GET /shutdown", 405, "\"POST\"");
        check("get /monitors/x", 405, "\"GET, HEAD\"");
        for nothing in [
            "/",
            "/images",
            "/images/",
            "/images//raw",
            "//images/7",
            "/images/7/raw/",
        ] {
            check(&format!("GET {nothing}"), 404, "no such path");
        }
        check("OPTIONS *", 404, "no such path");
        check("GET /a/b/c/d/e/f/g/h/i/j", 404, "no such path");
    }

    #[test]
    fn routes_are_unique() {
        for (at, route) in ROUTES.iter().enumerate() {
            assert!(route.pattern.starts_with('/'), "{}", route.pattern);
            let placeholders = route.pattern.matches('{').count();
            assert!(
                placeholders <= 1,
                "{}: a request keeps one placeholder",
                route.pattern
            );
            let same = |other: &&Route<_>| {
                parts(other.pattern) == parts(route.pattern) && other.method == route.method
            };
            assert!(
                !ROUTES[..at].iter().any(|other| same(&other)),
                "{} twice",
                route.pattern
            );
        }
    }
}
