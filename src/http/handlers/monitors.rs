//! The connected outputs, as the API calls them: monitors.

use super::Api;
use crate::compositor::Output;
use crate::http::{Error, Request, Response};
use crate::wire::Monitor;

/// Of a request; no machine has as many.
const NAMES_MAX: usize = 256;
/// Bytes.
const NAME_MAX: usize = 255;

/// `GET /monitors`
pub(in crate::http) fn list(api: &Api, _: &Request<'_>) -> Result<Response, Error> {
    let outputs = api.outputs();
    Ok(Response::json(200, &outputs.iter().map(monitor).collect::<Vec<_>>())?)
}

/// `GET /monitors/{name}`
pub(in crate::http) fn one(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let name = request.placeholder(0);
    let outputs = api.outputs();
    let Some(output) = outputs.iter().find(|output| output.name == name) else {
        return Err(Error::not_found(format!("no monitor {name:?} is connected")));
    };
    Ok(Response::json(200, &monitor(output))?)
}

/// Names of monitors in a body, each once, in the order given. They need not be connected: those of
/// a dock that is away are declared, too.
pub(super) fn named(names: Vec<String>) -> Result<Vec<String>, Error> {
    if names.len() > NAMES_MAX {
        return Err(Error::bad_request(format!("more than {NAMES_MAX} monitors are named")));
    }
    let mut named = Vec::with_capacity(names.len());
    for name in names {
        if name.is_empty() {
            return Err(Error::bad_request("the name of a monitor is empty"));
        }
        if name.len() > NAME_MAX {
            let text = format!("the name of a monitor has more than {NAME_MAX} bytes");
            return Err(Error::bad_request(text));
        }
        if !named.contains(&name) {
            named.push(name);
        }
    }
    Ok(named)
}

fn monitor(output: &Output) -> Monitor {
    Monitor {
        name: output.name.clone(),
        width: output.width,
        height: output.height,
        x: output.x,
        y: output.y,
        scale: output.scale,
        refresh_rate: output.refresh_rate,
        transform: output.transform,
        description: output.description.clone(),
        make: output.make.clone(),
        model: output.model.clone(),
        serial: output.serial.clone(),
        primary: output.primary,
    }
}
