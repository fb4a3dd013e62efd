//! Defines the requests to the reconciler, their answers, and the monitors that a request names. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Error;
use crate::config::BackendName;
use crate::store::query::Query;
use crate::store::{self, Connection};
use crate::wire::{Fit, HistorySource, Image, Mode, Position, SetStatus, Source};

/// Called once, on the thread `reconciler` or `desktop`, so it must not block.
pub(crate) type Reply<T> = Box<dyn FnOnce(Result<T, Error>) + Send>;

/// Called with the id of an image whose row or file a request did not find, and whether the user named
/// the image; must not wait.
pub(crate) type OnLost = Box<dyn Fn(i64, bool) + Send>;

/// Writes more in the transaction that writes the rows of a request, once its pictures are shown.
pub(crate) type WithRows =
    Arc<dyn Fn(&Connection, &Applied) -> Result<(), store::Error> + Send + Sync>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    Image(i64),
    /// A random image that can be shown, if possible one that is not shown now. In mode `each`, one for
    /// each monitor, of a suitable orientation.
    Random,
    /// One of these images for each monitor; they repeat if there are fewer images than monitors.
    Each(Vec<i64>),
    /// The picture from this number of changes ago.
    Back(u32),
}

/// A request to show a picture on monitors.
#[derive(Clone)]
pub struct Request {
    pub ask: Ask,
    /// The filter that a random image must match.
    pub filter: Option<Box<Query>>,
    pub targets: Targets,
    pub mode: Mode,
    /// Overrides the fit of the backend's settings; stored with the assignment.
    pub fit: Option<Fit>,
    /// Overrides the image's own position, the part that is visible; stored with the assignment.
    pub position: Option<Position>,
    /// Overrides the transition of the backend's settings, for this change only.
    pub transition: Option<String>,
    pub source: HistorySource,
    /// A hook sent the request, so no hook runs for it.
    pub by_hook: bool,
    /// A playlist adds a monitor: another request that waits for the monitor comes first, and a picture
    /// that was set there by hand stays until the playlist changes.
    pub joins: bool,
    /// A playlist writes its place.
    pub(crate) with_rows: Option<WithRows>,
}

impl Request {
    /// A request without options.
    pub fn new(ask: Ask, targets: Targets, source: Source) -> Self {
        Self {
            ask,
            filter: None,
            targets,
            mode: Mode::Individual,
            fit: None,
            position: None,
            transition: None,
            source: HistorySource::from_kind(source),
            by_hook: false,
            joins: false,
            with_rows: None,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Applied {
    pub outcome: SetStatus,
    /// The image, or that of the first monitor by name if there are several.
    pub(crate) image: Arc<Image>,
    /// The connected monitors of the request.
    pub monitors: Vec<String>,
    /// Named in the request, but not connected.
    pub skipped: Vec<String>,
    /// Monitors of the request on which a newer one has replaced its picture.
    pub(crate) overtaken: Vec<String>,
    /// The mode that is used: what cannot be stretched is cloned.
    pub mode: Mode,
    pub backend: BackendName,
    /// The image of each monitor.
    pub images: BTreeMap<String, i64>,
    /// The monitors that show the wallpaper of a workspace, and that workspace.
    pub(crate) hidden_by: BTreeMap<String, String>,
    /// The backend of each monitor, except of monitors that show the wallpaper of a workspace.
    pub(crate) backends: BTreeMap<String, BackendName>,
    /// Other problems with what is shown, as text for users.
    pub warnings: Vec<String>,
    /// How the picture differs from the request, as text for users.
    pub note: Option<String>,
}

/// Adds those warnings that are not known yet.
pub(super) fn add_new(known: &mut Vec<String>, warnings: &[String]) {
    for warning in warnings {
        if !known.contains(warning) {
            known.push(warning.clone());
        }
    }
}

#[derive(Clone, Debug)]
pub struct Activated {
    pub backend: BackendName,
    /// Programs that may hide the wallpapers.
    pub warnings: Vec<String>,
}

/// The monitors that a request names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Targets {
    /// All that are connected when the request is carried out.
    All,
    /// These, without repeats, in the order given.
    Named(Vec<String>),
}

impl Targets {
    /// From names as clients write them: none or `*` means all.
    pub fn from_names(names: impl IntoIterator<Item = String>) -> Self {
        let mut named: Vec<String> = Vec::new();
        for name in names {
            if name == "*" {
                return Self::All;
            }
            if !named.contains(&name) {
                named.push(name);
            }
        }
        if named.is_empty() {
            Self::All
        } else {
            Self::Named(named)
        }
    }

    /// Returns the targets that are connected, and the named ones that are not. Fails if none is
    /// connected.
    pub(super) fn resolve<'a>(
        &self,
        connected: impl Iterator<Item = &'a str>,
    ) -> Result<(Vec<String>, Vec<String>), Error> {
        let connected: Vec<String> = connected.map(str::to_owned).collect();
        match self {
            Self::All if connected.is_empty() => Err(Error::NoMonitor),
            Self::All => Ok((connected, Vec::new())),
            Self::Named(names) => {
                let (found, missing): (Vec<_>, Vec<_>) = names
                    .iter()
                    .cloned()
                    .partition(|name| connected.contains(name));
                if found.is_empty() {
                    Err(Error::UnknownMonitors {
                        names: missing,
                        connected,
                    })
                } else {
                    Ok((found, missing))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> Targets {
        Targets::from_names(names.iter().map(|&name| name.to_owned()))
    }

    #[test]
    fn names_are_resolved_against_what_is_connected() {
        type Found<'a> = (&'a [&'a str], &'a [&'a str]);
        let check = |names: &[&str], connected: &[&str], expected: Result<Found<'_>, &str>| {
            let owned = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
            let expected = expected.map(|(found, skipped)| (owned(found), owned(skipped)));
            let found = named(names).resolve(connected.iter().copied());
            let expected = expected.map_err(str::to_owned);
            assert_eq!(found.map_err(|error| error.to_string()), expected);
        };
        check(&[], &["A", "B"], Ok((&["A", "B"], &[])));
        check(&["B", "*"], &["A", "B"], Ok((&["A", "B"], &[])));
        check(&["B", "B"], &["A", "B"], Ok((&["B"], &[])));
        check(&["C", "B", "D"], &["A", "B"], Ok((&["B"], &["C", "D"])));
        let none = "no monitor is connected, or the compositor cannot be reached";
        check(&[], &[], Err(none));
        check(&["C"], &["A"], Err("no monitor named C (connected: A)"));
    }
}
