//! Shows pictures, videos and HTML wallpapers through wal-qt: a web engine with an HTTP interface on a
//! socket.
//!
//! A host that already answers is used, and its exit is noticed; otherwise one is started. Changes of a
//! shown HTML wallpaper (its settings, its permissions) are applied without loading it again.
//!
//! The host has a window over every output, which is black until it gets a picture. Pictures that arrive
//! before the window is ready are lost: a host that murald started reports when its windows are ready,
//! and other hosts get their pictures again.

mod client;
#[cfg(parsers)]
#[path = "../../../tests/fuzz/src/parsers/wal_qt.rs"]
pub(super) mod fuzz;
mod host;
mod load;

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::context::Context;
use super::copies::{Names, Takes, seen_part};
use super::fit_and_transition::fit_or;
use super::socket::pause;
use super::{Backend, Error, Kind, Placement};
use crate::config::{BackendName, ImageFit, WalQt as Options};
use crate::sys::Cancel;
use crate::wire::Format;

pub(crate) use client::Client;

use client::PausedSources;
use host::{BETWEEN_QUESTIONS, Host};
use load::{Piece, Progress};

/// The path of the image settings, which each new window needs.
const PRESENTATION: &str = "/settings/image-presentation";
/// The times at which a window gets its picture again if it does not report that it is ready.
const AGAIN_AFTER: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3)];
/// The time limit for a host to report what it shows, if it does.
const SAID_WITHIN: Duration = Duration::from_secs(1);
/// The formats of the web engine, which rotates photographs itself. JSON allows only UTF-8 names.
const TAKES: Takes = Takes {
    formats: Some(&[
        Format::Jpg,
        Format::Png,
        Format::Gif,
        Format::Webp,
        Format::Bmp,
        Format::Avif,
        Format::Mp4,
        Format::Webm,
        Format::Mkv,
        Format::Mov,
        Format::Avi,
    ]),
    turns: true,
    profiles: true,
    animates: true,
    name: Some(Names::Linked(|path| path.to_str().is_some())),
};

pub(super) struct WalQt {
    context: Context,
    host: Host,
    /// The pictures that this daemon has set, by output.
    shown: HashMap<String, Piece>,
    /// The outputs whose windows are known, with the instance of the output for each.
    served: HashMap<String, u64>,
    /// The last settings that the host got, by path.
    sent: HashMap<&'static str, Value>,
    paused: PausedSources,
}

impl WalQt {
    pub(super) fn new(context: Context) -> Self {
        Self {
            host: Host::new(&context),
            shown: HashMap::new(),
            served: HashMap::new(),
            sent: HashMap::new(),
            paused: PausedSources::open(context.shared.records.directory()),
            context,
        }
    }

    /// Clears what was sent to this host, as another host does not know it.
    fn forget(&mut self) {
        self.shown.clear();
        self.served.clear();
        self.sent.clear();
    }

    /// The outputs whose windows are new. A window does not count if another program has set its
    /// picture.
    fn arrivals(&mut self, status: &Value) -> Vec<String> {
        let mut new = Vec::new();
        let outputs = self.context.shared.outputs.list();
        for output in outputs.iter() {
            let before = self.served.insert(output.name.clone(), output.instance);
            let is_new = match before {
                Some(instance) => instance != output.instance,
                None => load::target(status, &output.name).is_none(),
            };
            if is_new {
                self.shown.remove(&output.name);
                new.push(output.name.clone());
            }
        }
        new
    }

    /// Waits for new windows; returns those that need their pictures again, as it is unknown when they
    /// are ready.
    fn meet(&mut self, new: Vec<String>, cancel: &Cancel) -> Result<Vec<String>, Error> {
        if new.is_empty() {
            return Ok(new);
        }
        self.sent.remove(PRESENTATION);
        self.host.expect(new.len());
        let are_ready = self.host.are_windows_ready(cancel).inspect_err(|_| {
            // They count as new at the next call, too.
            self.host.expect_less(new.len());
            self.served.retain(|name, _| !new.contains(name));
        });
        Ok(if are_ready? { Vec::new() } else { new })
    }

    fn pieces(&mut self, placements: &[Placement], cancel: &Cancel) -> Result<Vec<Piece>, Error> {
        let setting = self.context.settings().wal_qt.image_fit_mode;
        let mut pieces = Vec::new();
        for placement in placements {
            let target = match placement.kind {
                // A copy would lack the files beside the original.
                Kind::Web => placement.path.clone(),
                Kind::StaticImage | Kind::AnimatedImage | Kind::Video => {
                    let fit = fit_or(BackendName::WalQt, placement.fit, setting);
                    let cut = seen_part(placement, fit == ImageFit::Cover);
                    self.context.copies.ready(placement, &cut, &TAKES, cancel)?
                }
            };
            pieces.push(Piece::new(placement, target));
        }
        Ok(pieces)
    }

    /// Sends settings to the host, unless it has them already.
    fn tell_once(&mut self, client: &Client, path: &'static str, body: Value) -> Result<(), Error> {
        if self.sent.get(path) != Some(&body) {
            client.tell(path, &body)?;
            self.sent.insert(path, body);
        }
        Ok(())
    }

    /// Sends the settings that belong to the host, not to a wallpaper.
    fn tell_settings(
        &mut self,
        client: &Client,
        options: &Options,
        pieces: &[Piece],
    ) -> Result<(), Error> {
        let network = json!({ "allow_network_wallpapers": options.allow_network_wallpapers });
        let known = self.sent.contains_key("/settings/network");
        if known || pieces.iter().any(|piece| piece.kind == "web") {
            self.tell_once(client, "/settings/network", network)?;
        }
        if pieces.iter().any(|piece| piece.kind == "image") {
            let presentation = load::presentation(options);
            self.tell_once(client, PRESENTATION, presentation)?;
        }
        let path = "/wallpaper/parallax";
        let parallax = load::parallax(options);
        if self.sent.contains_key(path) {
            return self.tell_once(client, path, parallax);
        }
        // The first load includes it.
        self.sent.insert(path, parallax);
        Ok(())
    }

    /// The pieces that must be loaded. HTML wallpapers that differ only in their settings just get the
    /// settings.
    fn changed(
        &mut self,
        client: &Client,
        pieces: &[Piece],
        status: &Value,
    ) -> Result<Vec<Piece>, Error> {
        let mut changed = Vec::new();
        let mut is_sent = false;
        for piece in pieces {
            match self.shown.get(&piece.output) {
                Some(shown) if shown == piece => {}
                Some(shown) if shown.is_same_page(piece) => {
                    tell_page(client, shown, piece)?;
                    is_sent = true;
                    self.shown.insert(piece.output.clone(), piece.clone());
                }
                _ => changed.push(piece.clone()),
            }
        }
        let is_left = |output: &String| pieces.iter().all(|piece| piece.output != *output);
        if is_sent || !changed.is_empty() || self.shown.keys().any(is_left) {
            return Ok(changed);
        }
        // Nothing differs, but another program may have changed the pictures, or the settings may have
        // changed. A video or HTML wallpaper would restart, so it is not loaded again if it is known to
        // be shown.
        let is_there = |piece: &&Piece| {
            let target = load::target(status, &piece.output);
            target.is_some() && target == piece.target.to_str()
        };
        let again = pieces
            .iter()
            .filter(|piece| piece.kind == "image" || !is_there(piece));
        Ok(again.cloned().collect())
    }

    /// Notes the pictures that a host which ran before already shows.
    fn look(&mut self, pieces: &[Piece], status: &Value) {
        for piece in pieces {
            if load::target(status, &piece.output) == piece.target.to_str() {
                self.shown.insert(piece.output.clone(), piece.clone());
            }
        }
    }

    /// Loads the changed pieces, and again those that the windows `unsure` may have lost.
    fn load(
        &mut self,
        client: &Client,
        changed: Vec<Piece>,
        unsure: &[String],
        cancel: &Cancel,
    ) -> Result<(), Error> {
        let options = &self.context.settings().wal_qt;
        // Until the load is done, it is unknown what these outputs show, so they are removed from
        // `shown` below.
        let was_page = |piece: &Piece| piece.kind == "web";
        let left = |piece: &&Piece| {
            let before = self.shown.get(&piece.output).is_some_and(was_page);
            before && !was_page(piece)
        };
        let left = changed.iter().filter(left).count();
        self.shown
            .retain(|output, _| changed.iter().all(|piece| piece.output != *output));
        let begun = Instant::now();
        load(client, &changed, options, cancel)?;
        let again: Vec<Piece> = changed
            .iter()
            .filter(|piece| unsure.contains(&piece.output))
            .cloned()
            .collect();
        for after in AGAIN_AFTER.into_iter().filter(|_| !again.is_empty()) {
            pause(after.saturating_sub(begun.elapsed()), cancel)?;
            load(client, &again, options, cancel)?;
        }
        // A window that leaves an HTML wallpaper is created again, and loses what it got before.
        if left > 0 {
            self.host.expect(left);
            self.host.are_windows_ready(cancel)?;
        }
        for piece in changed {
            self.paused.loaded(&piece.target.to_string_lossy());
            self.shown.insert(piece.output.clone(), piece);
        }
        Ok(())
    }
}

impl Backend for WalQt {
    fn use_transition(&mut self, word: Option<&str>) {
        self.context.transition = word.map(str::to_owned);
    }

    fn show(&mut self, placements: &[Placement], cancel: &Cancel) -> Result<(), Error> {
        let settings = self.context.settings();
        let options = &settings.wal_qt;
        let client = Client::open(&self.context.shared.dirs, options, cancel)?;
        let pieces = self.pieces(placements, cancel)?;
        if self
            .host
            .bring_up(&self.context, options, &client, cancel)?
        {
            self.forget();
        }
        let limit = Duration::from_millis(options.request_timeout_ms.into());
        let status = client
            .once("/wallpaper/status", None, limit)
            .unwrap_or_default();
        let fresh = self.shown.is_empty();
        let new = self.arrivals(&status);
        let unsure = self.meet(new, cancel)?;
        self.tell_settings(&client, options, &pieces)?;
        if fresh {
            self.look(&pieces, &status);
        }
        let all_there = fresh && pieces.iter().all(|p| self.shown.get(&p.output) == Some(p));
        let changed = if all_there {
            Vec::new()
        } else {
            self.changed(&client, &pieces, &status)?
        };
        if !changed.is_empty() {
            self.load(&client, changed, &unsure, cancel)?;
        }
        self.shown
            .retain(|output, _| pieces.iter().any(|piece| piece.output == *output));
        let files: Vec<PathBuf> = pieces.into_iter().map(|piece| piece.target).collect();
        self.context.copies.tidy(&files);
        Ok(())
    }

    /// Warns of outputs without a picture, which the host's windows cover with black.
    fn warnings(&mut self) -> Vec<String> {
        let outputs = self.context.shared.outputs.list();
        let names = outputs.iter().map(|output| output.name.as_str());
        let black: Vec<&str> = names
            .filter(|name| !self.shown.contains_key(*name))
            .collect();
        let warning = || {
            format!(
                "wal-qt shows black on {}: no wallpaper is set there",
                black.join(", ")
            )
        };
        (!black.is_empty()).then(warning).into_iter().collect()
    }

    /// The host pauses files, not outputs: a file that should play on another output is not paused.
    fn pause(&mut self, outputs: &BTreeSet<String>, cancel: &Cancel) -> Result<(), Error> {
        let moving = self.shown.values().filter(|piece| piece.kind != "image");
        let (paused, play): (Vec<&Piece>, Vec<&Piece>) =
            moving.partition(|piece| outputs.contains(&piece.output));
        let source = |piece: &&Piece| piece.target.to_string_lossy().into_owned();
        let play: BTreeSet<String> = play.iter().map(source).collect();
        let mut wanted: BTreeSet<String> = paused.iter().map(source).collect();
        wanted.retain(|source| !play.contains(source));
        if self.paused.is(&wanted) {
            return Ok(());
        }
        let settings = self.context.settings();
        let client = Client::open(&self.context.shared.dirs, &settings.wal_qt, cancel)?;
        self.paused.pause(&client, &wanted)
    }

    fn clear(&mut self) -> Result<(), Error> {
        if self.host.ours.newest().is_none() {
            log::info!("not stopping the wal-qt host: murald did not start it");
        }
        self.host.ours.end_all();
        self.host.foreign = None;
        self.paused.forget();
        self.forget();
        self.context.copies.tidy(&[]);
        Ok(())
    }

    fn is_whole(&mut self) -> bool {
        let had_one = !self.host.is_none();
        self.host.is_running() || !had_one
    }
}

/// Loads pieces, and waits until all of them are shown.
fn load(
    client: &Client,
    pieces: &[Piece],
    options: &Options,
    cancel: &Cancel,
) -> Result<(), Error> {
    const PATH: &str = "/wallpaper/load";
    let limit = Duration::from_millis(options.load_timeout_ms.into());
    let until = Instant::now() + limit;
    let mut left = Vec::new();
    for group in load::groups(pieces) {
        let answer = client.insist(PATH, &load::body(&group, options), limit, Some(until));
        match load::loaded(
            &answer.map_err(|failed| client.error(PATH, failed))?,
            &group,
        ) {
            Progress::Done => {}
            Progress::Failed { output, why } => return Err(load::not_loaded(&output, &why)),
            Progress::Unsaid | Progress::Waiting => left.extend(group),
        }
    }
    let accepted = Instant::now();
    while !left.is_empty() {
        pause(BETWEEN_QUESTIONS, cancel)?;
        let patience = until
            .saturating_duration_since(Instant::now())
            .max(BETWEEN_QUESTIONS);
        let status = client.once("/wallpaper/status", None, patience);
        match load::displayed(
            &status.map_err(|it| client.error("/wallpaper/status", it))?,
            &left,
        ) {
            Progress::Done => break,
            Progress::Unsaid if accepted.elapsed() >= SAID_WITHIN => break,
            Progress::Failed { output, why } => return Err(load::not_loaded(&output, &why)),
            Progress::Unsaid | Progress::Waiting => {}
        }
        if Instant::now() > until {
            let why = format!("not displayed within {} ms", limit.as_millis());
            return Err(load::not_loaded(&left[0].output, &why));
        }
    }
    Ok(())
}

/// Sends the changed settings and permissions of a shown HTML wallpaper.
fn tell_page(client: &Client, shown: &Piece, wanted: &Piece) -> Result<(), Error> {
    let (Some(before), Some(now)) = (&shown.web, &wanted.web) else {
        return Ok(());
    };
    let source = wanted.target.to_string_lossy();
    if before.values != now.values {
        let body = json!({ "source_target": source, "values": now.values });
        client.tell("/wallpaper/config", &body)?;
    }
    let (had, has) = (load::capabilities(before), load::capabilities(now));
    if had != has {
        let body = json!({ "source_target": source, "capabilities": has });
        client.tell("/wallpaper/capabilities", &body)?;
    }
    Ok(())
}
