//! The host process: found running, or started, and asked whether it is the expected one.
//!
//! Each of its windows reports in its log when it is ready for a picture. The host loses pictures
//! from before that.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::client::{Client, Failed};
use super::load;
use crate::backends::Error;
use crate::backends::context::{Context, Foreign, Processes, ask_until_up};
use crate::backends::follow::follow;
use crate::backends::socket::{NotUp, listener, pause};
use crate::config::WalQt as Options;
use crate::sys::Cancel;

pub(super) const NAME: &str = "wal-qt";
const PROGRAM: &str = "wal-qt-host";
/// A web engine takes its time on a slow disk. The pauses between questions: the first and the longest.
const UP_WITHIN: (Duration, Duration, Duration) =
    (Duration::from_secs(50), Duration::from_millis(150), Duration::from_secs(2));
const MONITORS_WITHIN: Duration = Duration::from_secs(10);
pub(super) const BETWEEN_QUESTIONS: Duration = Duration::from_millis(50);
/// The line of a window that is ready for a picture: after its start, and after it has shown a
/// page.
const READY: &str = "renderer ready";
/// A host may be told to write no such lines.
const READY_WITHIN: Duration = Duration::from_secs(10);
/// Between SIGTERM and SIGKILL: a web engine writes its profile to disk as it ends.
const GRACE: Duration = Duration::from_secs(3);
/// Between its end and the next start.
const AFTER_DEATH: Duration = Duration::from_millis(400);

/// The host: ours, or one that answered before we had to start one.
pub(super) struct Host {
    pub(super) ours: Processes,
    /// That answers in its place.
    pub(super) foreign: Option<Foreign>,
    /// How many times windows will have said that they are ready; none of a host that this daemon has
    /// not started.
    expected: Option<usize>,
    died: Option<Instant>,
}

impl Host {
    pub(super) fn new(context: &Context) -> Self {
        let mut ours = Processes::taken_over(context);
        ours.grace = GRACE;
        Self { ours, foreign: None, expected: None, died: None }
    }

    /// Sees to it that a host answers and has its monitors; `true` when it is another than before.
    pub(super) fn bring_up(
        &mut self,
        context: &Context,
        options: &Options,
        client: &Client,
        cancel: &Cancel,
    ) -> Result<bool, Error> {
        let limit = Duration::from_millis(options.connect_timeout_ms.into());
        let mut fresh = !self.is_running() && self.pause_after_death(cancel)?;
        match health(client, options, limit) {
            Ok(()) => {}
            Err(Health::Other(error)) => return Err(error),
            Err(Health::Silent(_)) => {
                if self.ours.newest().is_none() {
                    self.start(context, options)?;
                }
                self.wait_for_health(client, options, cancel)?;
                fresh = true;
            }
        }
        if self.is_none() {
            self.foreign = listener(client.socket()).and_then(|child| context.watch_foreign(child));
        }
        wait_for_monitors(client, cancel)?;
        Ok(fresh)
    }

    /// Pauses if a host has just died; `true` if so. Somebody else may start one during the pause.
    fn pause_after_death(&mut self, cancel: &Cancel) -> Result<bool, Error> {
        let Some(died) = self.died.take() else { return Ok(false) };
        pause(AFTER_DEATH.saturating_sub(died.elapsed()), cancel)?;
        Ok(true)
    }

    fn start(&mut self, context: &Context, options: &Options) -> Result<(), Error> {
        let mut launch = context.launch(context.program(PROGRAM)?);
        for entry in &options.env {
            if let Some((name, value)) = entry.split_once('=') {
                launch = launch.env(name, value);
            }
        }
        self.foreign = None;
        self.expected = Some(0);
        self.ours.replace(context.start(&launch)?);
        Ok(())
    }

    fn wait_for_health(
        &mut self,
        client: &Client,
        options: &Options,
        cancel: &Cancel,
    ) -> Result<(), Error> {
        let limit = Duration::from_millis(options.request_timeout_ms.into());
        let gone = || Error::Unavailable("wal-qt does not start: it is gone".to_owned());
        let up = self.ours.newest().ok_or_else(gone).and_then(|host| {
            let mut silent = None;
            let up =
                ask_until_up(host, UP_WITHIN, cancel, || match health(client, options, limit) {
                    Ok(()) => Ok(Some(())),
                    Err(Health::Other(error)) => Err(error),
                    Err(Health::Silent(why)) => {
                        silent = Some(why);
                        Ok(None)
                    }
                });
            up?.ok_or_else(|| {
                let why = silent.filter(|_| host.child().is_running());
                let (shown, why) =
                    (host.record().shown(), why.unwrap_or_else(|| host.last_words()));
                Error::Unavailable(format!("{shown} does not start: {why}"))
            })
        });
        up.inspect_err(|_| self.ours.end_all())
    }

    /// So many windows are about to be ready.
    pub(super) fn expect(&mut self, more: usize) {
        self.expected = self.expected.map(|expected| expected + more);
    }

    /// They are not waited for any more.
    pub(super) fn expect_less(&mut self, less: usize) {
        self.expected = self.expected.map(|expected| expected.saturating_sub(less));
    }

    /// Waits until all windows that are expected are ready; `false` if the host does not tell.
    pub(super) fn are_windows_ready(&mut self, cancel: &Cancel) -> Result<bool, Error> {
        let (Some(expected), Some(host)) = (self.expected, self.ours.newest()) else {
            return Ok(false);
        };
        let (until, mut ready) = (Instant::now() + READY_WITHIN, 0);
        let followed = follow(host, 0, &[READY], until, cancel, |line| {
            ready += usize::from(line.contains(READY));
            if ready >= expected { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        match followed {
            Ok(()) => Ok(true),
            Err(NotUp::Cancelled) => Err(Error::Cancelled),
            Err(_) => {
                log::info!("{ready} of {expected} windows of {NAME} are ready");
                // Its log may have been emptied.
                self.expected = Some(ready);
                Ok(false)
            }
        }
    }

    /// Whether we know of none.
    pub(super) fn is_none(&self) -> bool {
        self.ours.newest().is_none() && self.foreign.is_none()
    }

    /// Whether one that we know of runs. Forgets one that has ended.
    pub(super) fn is_running(&mut self) -> bool {
        let had_one = !self.is_none();
        self.ours.reap();
        if self.foreign.as_ref().is_some_and(|foreign| !foreign.is_running()) {
            log::info!("the {NAME} host, which murald did not start, exited");
            self.foreign = None;
        }
        let runs = !self.is_none();
        if had_one && !runs {
            self.died = Some(Instant::now());
        }
        runs
    }
}

enum Health {
    /// Nobody answers, and why that seems so: worth another try.
    Silent(String),
    /// For good.
    Other(Error),
}

/// Asks who is there.
fn health(client: &Client, options: &Options, limit: Duration) -> Result<(), Health> {
    let answer = match client.once("/health", None, limit) {
        Ok(answer) => answer,
        Err(Failed::Cancelled) => return Err(Health::Other(Error::Cancelled)),
        Err(Failed::Unreachable(why)) => return Err(Health::Silent(why)),
        Err(Failed::Late(_)) => return Err(Health::Silent("it does not answer".to_owned())),
        Err(Failed::Status(status @ 500.., _)) => {
            return Err(Health::Silent(format!("it answers with {status}")));
        }
        Err(failed) => return Err(Health::Other(client.error("/health", failed))),
    };
    let word = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => "nothing".to_owned(),
        other => other.to_string(),
    };
    let (service, version) = (word(&answer["service"]), word(&answer["api_version"]));
    if answer["ok"] == false {
        return Err(Health::Silent("it reports an error".to_owned()));
    }
    if service != options.expected_service || version != options.expected_api_version {
        return Err(Health::Other(Error::Refused(format!(
            "the host is {service} with API version {version}, not {} with {}",
            options.expected_service, options.expected_api_version
        ))));
    }
    Ok(())
}

fn wait_for_monitors(client: &Client, cancel: &Cancel) -> Result<(), Error> {
    let until = Instant::now() + MONITORS_WITHIN;
    loop {
        let status = client.once("/wallpaper/status", None, MONITORS_WITHIN);
        match status {
            Ok(status) if load::monitor_count(&status) > 0 => return Ok(()),
            Ok(_)
            | Err(Failed::Unreachable(_) | Failed::Late(_) | Failed::Status(500..=599, _)) => {}
            Err(failed) => return Err(client.error("/wallpaper/status", failed)),
        }
        if Instant::now() > until {
            return Err(Error::Unavailable("wal-qt finds no monitor".to_owned()));
        }
        pause(BETWEEN_QUESTIONS, cancel)?;
    }
}
