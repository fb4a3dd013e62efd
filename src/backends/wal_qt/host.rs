//! Finds or starts the host process, and checks that it is the expected one.
//!
//! The host logs when each of its windows is ready for a picture. It loses pictures that arrive before.

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
/// The time limit for the start, as a web engine is slow on a slow disk, and the first and the longest
/// pause between requests.
const UP_WITHIN: (Duration, Duration, Duration) = (
    Duration::from_secs(50),
    Duration::from_millis(150),
    Duration::from_secs(2),
);
const MONITORS_WITHIN: Duration = Duration::from_secs(10);
pub(super) const BETWEEN_QUESTIONS: Duration = Duration::from_millis(50);
/// The log line of a window that is ready for a picture: after its start, and after it has shown an HTML
/// wallpaper.
const READY: &str = "renderer ready";
/// The time limit for these lines, which a host may be configured not to write.
const READY_WITHIN: Duration = Duration::from_secs(10);
/// The time between SIGTERM and SIGKILL: a web engine writes its profile to disk when it exits.
const GRACE: Duration = Duration::from_secs(3);
/// The pause between the exit of a host and the next start.
const AFTER_DEATH: Duration = Duration::from_millis(400);

/// The host: one that murald started, or one that ran already.
pub(super) struct Host {
    pub(super) ours: Processes,
    /// A host that murald did not start.
    pub(super) foreign: Option<Foreign>,
    /// How many times windows should have reported that they are ready; `None` for a host that this
    /// daemon did not start.
    expected: Option<usize>,
    died: Option<Instant>,
}

impl Host {
    pub(super) fn new(context: &Context) -> Self {
        let mut ours = Processes::taken_over(context);
        ours.grace = GRACE;
        Self {
            ours,
            foreign: None,
            expected: None,
            died: None,
        }
    }

    /// Makes sure that a host answers and has its monitors; returns true if it is another host than
    /// before.
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

    /// Pauses and returns true if a host has just exited. Somebody else may start one during the pause.
    fn pause_after_death(&mut self, cancel: &Cancel) -> Result<bool, Error> {
        let Some(died) = self.died.take() else {
            return Ok(false);
        };
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
        self.ours.replace(context.start(|_| launch)?);
        Ok(())
    }

    fn wait_for_health(
        &mut self,
        client: &Client,
        options: &Options,
        cancel: &Cancel,
    ) -> Result<(), Error> {
        let limit = Duration::from_millis(options.request_timeout_ms.into());
        let gone = || Error::Unavailable("wal-qt does not start: it exited".to_owned());
        let up = self.ours.newest().ok_or_else(gone).and_then(|host| {
            let mut silent = None;
            let up = ask_until_up(host, UP_WITHIN, cancel, || {
                match health(client, options, limit) {
                    Ok(()) => Ok(Some(())),
                    Err(Health::Other(error)) => Err(error),
                    Err(Health::Silent(why)) => {
                        silent = Some(why);
                        Ok(None)
                    }
                }
            });
            up?.ok_or_else(|| {
                let why = silent.filter(|_| host.child().is_running());
                let shown = host.record().shown();
                let why = why.unwrap_or_else(|| host.last_words());
                Error::Unavailable(format!("{shown} does not start: {why}"))
            })
        });
        up.inspect_err(|_| self.ours.end_all())
    }

    /// Notes that this many more windows will report that they are ready.
    pub(super) fn expect(&mut self, more: usize) {
        self.expected = self.expected.map(|expected| expected + more);
    }

    /// Stops waiting for this many windows.
    pub(super) fn expect_less(&mut self, less: usize) {
        self.expected = self.expected.map(|expected| expected.saturating_sub(less));
    }

    /// Waits until all expected windows are ready; returns false if the host does not report it.
    pub(super) fn are_windows_ready(&mut self, cancel: &Cancel) -> Result<bool, Error> {
        let (Some(expected), Some(host)) = (self.expected, self.ours.newest()) else {
            return Ok(false);
        };
        let until = Instant::now() + READY_WITHIN;
        let mut ready = 0;
        let followed = follow(host, 0, &[READY], until, cancel, |line| {
            ready += usize::from(line.contains(READY));
            if ready >= expected {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
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

    /// Whether no host is known.
    pub(super) fn is_none(&self) -> bool {
        self.ours.newest().is_none() && self.foreign.is_none()
    }

    /// Whether a known host runs; removes one that has exited.
    pub(super) fn is_running(&mut self) -> bool {
        let had_one = !self.is_none();
        self.ours.reap();
        if self
            .foreign
            .as_ref()
            .is_some_and(|foreign| !foreign.is_running())
        {
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
    /// No host answers, for this reason; a retry may succeed.
    Silent(String),
    /// A retry cannot succeed.
    Other(Error),
}

/// Asks the host for its name and its API version.
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
            return Err(Error::Unavailable("wal-qt has found no monitor".to_owned()));
        }
        pause(BETWEEN_QUESTIONS, cancel)?;
    }
}
