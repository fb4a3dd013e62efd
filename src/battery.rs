//! Finds out whether the machine runs on battery power; the thread `battery` reports changes.
//!
//! The thread sleeps until the kernel reports an event of a power supply. It does not poll.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::inotify::WatchFlags;

use crate::paths::Env;
use crate::sys::{Cancel, CancelOnDrop, Inotify, Uevents, poll_until};
use crate::thread::{OwnedThread, Spawner};

const SYSFS: &str = "/sys/class/power_supply";

/// The directory with the batteries and power adapters.
#[derive(Clone, Debug)]
pub(crate) struct Supplies {
    directory: PathBuf,
    /// Whether the directory has plain files instead of sysfs, so that changes are found by
    /// inotify.
    is_plain: bool,
}

impl Supplies {
    /// The machine's own power supplies, or the directory `MURALD_POWER_SUPPLY` if set, for tests.
    pub(crate) fn from_env(env: &Env) -> Self {
        match env.var("MURALD_POWER_SUPPLY") {
            Some(directory) => Self {
                directory: directory.into(),
                is_plain: true,
            },
            None => Self {
                directory: SYSFS.into(),
                is_plain: false,
            },
        }
    }

    /// Whether a battery is discharging and no power adapter is connected.
    pub(crate) fn on_battery(&self) -> bool {
        on_battery(&self.directory)
    }
}

/// Reports changes until the thread is ended. `tell` is called on the thread, once at the start and
/// after each change.
pub(crate) fn follow(
    spawner: &Spawner,
    supplies: Supplies,
    tell: impl Fn(bool) + Send + 'static,
) -> io::Result<OwnedThread<CancelOnDrop>> {
    let news = News::new(&supplies)?;
    let cancel = Cancel::new()?;
    let until = cancel.clone();
    let thread = spawner.spawn("battery", move || watch(&supplies, &news, &until, &tell))?;
    Ok(OwnedThread::new(CancelOnDrop(cancel), thread))
}

/// The function that the thread runs.
fn watch(supplies: &Supplies, news: &News, until: &Cancel, tell: &impl Fn(bool)) {
    let mut known = None;
    loop {
        // Watch before reading: a change in between wakes the thread again.
        news.follow(supplies);
        let now = supplies.on_battery();
        if known.replace(now) != Some(now) {
            tell(now);
        }
        while !news.heard() {
            let mut fds = [
                PollFd::new(news, PollFlags::IN),
                PollFd::new(until, PollFlags::IN),
            ];
            // Fails only if the kernel has no memory.
            let woken = poll_until(&mut fds, None);
            if woken.is_err() || !fds[1].revents().is_empty() {
                return;
            }
        }
    }
}

/// The source of events.
enum News {
    Kernel(Uevents),
    Files(Inotify),
}

impl News {
    fn new(supplies: &Supplies) -> io::Result<Self> {
        Ok(if supplies.is_plain {
            Self::Files(Inotify::new()?)
        } else {
            Self::Kernel(Uevents::new()?)
        })
    }

    /// Watches all directories that exist now.
    fn follow(&self, supplies: &Supplies) {
        let Self::Files(files) = self else { return };
        let changes = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_TO
            | WatchFlags::MOVED_FROM
            | WatchFlags::CLOSE_WRITE;
        let inside = fs::read_dir(&supplies.directory)
            .into_iter()
            .flatten()
            .flatten();
        let all = inside
            .map(|entry| entry.path())
            .chain([supplies.directory.clone()]);
        for path in all.filter(|path| path.is_dir()) {
            if let Err(error) = files.watch(&path, changes) {
                log::warn!("cannot watch {}: {error}", path.display());
            }
        }
    }

    /// Reads all pending events; returns whether the state may have changed.
    fn heard(&self) -> bool {
        match self {
            Self::Kernel(uevents) => uevents.drain("power_supply"),
            Self::Files(files) => {
                let mut any = false;
                files.read(|_| any = true);
                any
            }
        }
    }
}

impl AsFd for News {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Kernel(uevents) => uevents.as_fd(),
            Self::Files(files) => files.as_fd(),
        }
    }
}

/// Ignores the batteries of peripherals, which do not supply the machine.
fn on_battery(supplies: &Path) -> bool {
    let mut discharging = false;
    for supply in fs::read_dir(supplies).into_iter().flatten().flatten() {
        let read = |name: &str| fs::read_to_string(supply.path().join(name)).unwrap_or_default();
        if read("scope").trim() == "Device" {
            continue;
        }
        match read("type").trim() {
            "Battery" => discharging |= read("status").trim() == "Discharging",
            kind if is_mains(kind) && read("online").trim() == "1" => return false,
            _ => {}
        }
    }
    discharging
}

/// Newer types of USB have their own names, such as `USB_C` and `USB_PD`.
fn is_mains(kind: &str) -> bool {
    kind == "Mains" || kind == "Wireless" || kind.starts_with("USB")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    use crossbeam_channel::unbounded;

    type Supply<'a> = (&'a str, &'a [(&'a str, &'a str)]);

    fn write(directory: &Path, (name, files): Supply<'_>) {
        let path = directory.join(name);
        fs::create_dir_all(&path).unwrap();
        for (file, text) in files {
            // Files are replaced by renames, so that readers never see half a file.
            let part = directory.join("part");
            fs::write(&part, text).unwrap();
            fs::rename(part, path.join(file)).unwrap();
        }
    }

    const EMPTYING: Supply<'static> = (
        "BAT0",
        &[("type", "Battery\n"), ("status", "Discharging\n")],
    );
    const FULL: Supply<'static> = ("BAT0", &[("type", "Battery\n"), ("status", "Full\n")]);
    const ON: Supply<'static> = ("AC", &[("type", "Mains\n"), ("online", "1\n")]);
    const OFF: Supply<'static> = ("AC", &[("type", "Mains\n"), ("online", "0\n")]);

    #[test]
    fn battery_counts_if_no_power_adapter_is_connected() {
        let check = |supplies: &[Supply<'_>], expected| {
            let directory = tempfile::tempdir().unwrap();
            supplies
                .iter()
                .for_each(|supply| write(directory.path(), *supply));
            assert_eq!(on_battery(directory.path()), expected, "{supplies:?}");
        };
        check(&[], false);
        check(&[FULL], false);
        check(&[EMPTYING], true);
        check(&[EMPTYING, OFF], true);
        check(&[EMPTYING, ON], false);
        check(&[FULL, OFF], false);
        let usb = (
            "ucsi-source-psy",
            &[("type", "USB\n"), ("online", "1\n")][..],
        );
        check(&[EMPTYING, OFF, usb], false);
        let pd = ("usb", &[("type", "USB_PD\n"), ("online", "1\n")][..]);
        check(&[EMPTYING, pd], false);
        let mouse = ("hidpp_battery_0", EMPTYING.1);
        let scope = ("hidpp_battery_0", &[("scope", "Device\n")][..]);
        check(&[mouse, scope], false);
        check(&[mouse, scope, EMPTYING], true);
        // A port that charges a phone is not a power adapter.
        let wire = (
            "wire",
            &[("type", "USB\n"), ("online", "1\n"), ("scope", "Device\n")][..],
        );
        check(&[EMPTYING, wire], true);
        let ups = (
            "ups",
            &[
                ("type", "UPS\n"),
                ("online", "1\n"),
                ("status", "Discharging\n"),
            ][..],
        );
        check(&[ups], false);
    }

    #[test]
    fn changes_are_reported_once_until_the_watch_ends() {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), OFF);
        let (spawner, _deaths) = Spawner::new();
        let (told, hears) = unbounded();
        let supplies = Supplies {
            directory: directory.path().to_owned(),
            is_plain: true,
        };
        let tell = move |now| told.send(now).unwrap();
        let watch = follow(&spawner, supplies, tell).unwrap();
        let next = || hears.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(!next());
        // A battery is added later; then the power adapter is connected and disconnected.
        write(directory.path(), EMPTYING);
        assert!(next());
        write(directory.path(), ON);
        assert!(!next());
        write(directory.path(), FULL);
        write(directory.path(), EMPTYING);
        write(directory.path(), OFF);
        assert!(next());
        assert!(watch.end(Instant::now() + Duration::from_secs(60)));
        assert!(hears.recv().is_err(), "nothing else was told");
    }
}
