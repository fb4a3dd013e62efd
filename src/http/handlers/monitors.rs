//! The connected outputs, as the API calls them: monitors.

use super::Api;
use crate::compositor::Output;
use crate::http::{Answer, Failure, Request};
use crate::wire::Monitor;

/// `GET /monitors`
pub(in crate::http) fn list(api: &Api, _: &Request<'_>) -> Result<Answer, Failure> {
    let outputs = api.setters.outputs.list();
    Ok(Answer::json(200, &outputs.iter().map(monitor).collect::<Vec<_>>())?)
}

/// `GET /monitors/{name}`
pub(in crate::http) fn one(api: &Api, request: &Request<'_>) -> Result<Answer, Failure> {
    let name = request.placeholder(0);
    let outputs = api.setters.outputs.list();
    let Some(output) = outputs.iter().find(|output| output.name == name) else {
        return Err(Failure::not_found(format!("no monitor {name:?} is connected")));
    };
    Ok(Answer::json(200, &monitor(output))?)
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
        primary: output.primary,
    }
}
