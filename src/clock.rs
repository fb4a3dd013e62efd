//! Waits for deadlines, and notices suspend and changes of the clock and the time zone.
//!
//! An alarm is a timer over `CLOCK_BOOTTIME` (which continues in suspend), one over `CLOCK_REALTIME`
//! (which is cancelled when the clock is set), and a watch of `/etc/localtime`. It only wakes its user,
//! which reads the time and decides what is due.

use std::ffi::{OsStr, OsString};
use std::io;
use std::ops::{Add, Sub};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};
use jiff::{Timestamp, Zoned};
use rustix::event::epoll::EventFlags;
use rustix::fs::inotify::WatchFlags;
use rustix::time::{ClockId, TimerfdClockId, TimerfdTimerFlags, clock_gettime};

use crate::kernel::{Kernel, NAMES, Source, Subscriber};
use crate::sys::Timer;
use crate::wire::zone as local_zone;

/// Time since boot, including suspend. Negative values are before the boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Boottime(i64);

/// Both clocks at the same moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Now {
    pub boot: Boottime,
    /// In the system's time zone.
    pub wall: Zoned,
}

/// The deadlines that a thread waits for; by default none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Deadlines {
    pub boot: Option<Boottime>,
    /// Also wakes when the clock is set.
    pub wall: Option<Timestamp>,
}

impl Boottime {
    /// The range is 292 years in both directions.
    pub(crate) fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    pub(crate) fn as_nanos(self) -> i64 {
        self.0
    }

    /// Zero if `earlier` is later.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0).max(0).unsigned_abs())
    }
}

impl Add<Duration> for Boottime {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(nanos(span)))
    }
}

impl Sub<Duration> for Boottime {
    type Output = Self;

    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(span)))
    }
}

fn nanos(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

impl Now {
    pub(crate) fn read() -> Self {
        let time = clock_gettime(ClockId::Boottime);
        let boot = Boottime(time.tv_sec.saturating_mul(1_000_000_000) + time.tv_nsec);
        Self {
            boot,
            wall: Timestamp::now().to_zoned(local_zone::local()),
        }
    }
}

impl Deadlines {
    /// Returns the earlier deadline on each clock.
    #[must_use]
    pub(crate) fn or(self, other: Self) -> Self {
        let boot = self.boot.into_iter().chain(other.boot).min();
        let wall = self.wall.into_iter().chain(other.wall).min();
        Self { boot, wall }
    }
}

/// Returns the kernel's id of this boot, as boot times of different boots are not comparable. Empty
/// if it cannot be read.
pub(crate) fn boot_id() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.map(|id| id.trim().to_owned()).unwrap_or_default()
}

/// Removes TZ from the environment if it names something other than a regular file, such as a pipe,
/// on which reading the time would block. Returns the removed value. To be called before any thread
/// is started.
pub(crate) fn forget_unusable_zone() -> Option<OsString> {
    let written = std::env::var_os("TZ").filter(|written| !is_usable(written))?;
    // SAFETY: no other thread runs yet that could read the environment. Unsetting the variable is
    // necessary, as libraries read it themselves.
    unsafe { std::env::remove_var("TZ") };
    Some(written)
}

/// Names of zones and rules do not exist as files here; a zone file is a regular file.
fn is_usable(written: &OsStr) -> bool {
    let path = written
        .as_bytes()
        .strip_prefix(b":")
        .unwrap_or(written.as_bytes());
    let found = std::fs::metadata(OsStr::from_bytes(path));
    found.is_err() || found.is_ok_and(|found| found.is_file())
}

/// Wakes a thread at its deadlines, until it is dropped.
pub(crate) struct Alarm {
    boot: Arc<Timer>,
    wall: Arc<Timer>,
    /// A full channel means that a wake-up is pending already.
    ring: Sender<()>,
    _sources: [Source; 2],
    _zone: Option<Subscriber>,
}

impl Alarm {
    /// The returned channel is notified at a deadline, when the clock was set while there was a
    /// deadline in wall time, and when the time zone has changed. Notifications are merged.
    pub(crate) fn start(kernel: &Kernel) -> io::Result<(Self, Receiver<()>)> {
        // TZ overrides the file and does not change at run time.
        let file = std::env::var_os("TZ")
            .is_none()
            .then(|| Path::new("/etc/localtime"));
        Self::watching(kernel, file)
    }

    fn watching(kernel: &Kernel, zone_file: Option<&Path>) -> io::Result<(Self, Receiver<()>)> {
        let (ring, rings) = bounded(1);
        let boot = Arc::new(Timer::new(TimerfdClockId::Boottime)?);
        let wall = Arc::new(Timer::new(TimerfdClockId::Realtime)?);
        let alarm = Self {
            _sources: [follow(kernel, &boot, &ring)?, follow(kernel, &wall, &ring)?],
            _zone: zone_file.map(|file| follow_zone(kernel, file, &ring)),
            boot,
            wall,
            ring,
        };
        Ok((alarm, rings))
    }

    /// Replaces the deadlines. A deadline in the past wakes the user at once.
    pub(crate) fn set(&self, deadlines: Deadlines) -> io::Result<()> {
        let boot = deadlines.boot.map_or(0, |at| at.0.max(1));
        self.boot.set(TimerfdTimerFlags::ABSTIME, boot)?;
        let wall = deadlines.wall.map_or(0, |at| {
            i64::try_from(at.as_nanosecond()).unwrap_or(i64::MAX).max(1)
        });
        let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
        if self.wall.set(flags, wall)? {
            self.ring.try_send(()).ok();
        }
        Ok(())
    }
}

fn follow(kernel: &Kernel, timer: &Arc<Timer>, ring: &Sender<()>) -> io::Result<Source> {
    let (read, ring) = (Arc::clone(timer), ring.clone());
    kernel.when_ready(Arc::clone(timer), EventFlags::IN, move || {
        if read.expired() {
            ring.try_send(()).ok();
        }
    })
}

/// Follows the file that names the time zone; tools replace it by a rename.
fn follow_zone(kernel: &Kernel, file: &Path, ring: &Sender<()>) -> Subscriber {
    let ring = ring.clone();
    let mut subscriber = kernel.subscribe(move |_| {
        local_zone::forget();
        ring.try_send(()).ok();
    });
    let mut watches = subscriber.watch();
    watches.follow(file, NAMES | WatchFlags::CLOSE_WRITE);
    if let Err(error) = watches.finish() {
        log::warn!(
            "cannot watch {}: {error}; a new time zone is noticed late",
            file.display()
        );
    }
    subscriber
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::Spawner;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn tz_that_is_not_a_regular_file_is_ignored() {
        let check = |written: &str, usable| assert_eq!(is_usable(written.as_ref()), usable);
        check("Europe/Berlin", true);
        check("CET-1CEST", true);
        check("", true);
        check("/dev/zero", false);
        check(":/dev/zero", false);
        check("/", false);
        check("/etc/passwd", true);
    }

    #[test]
    fn boot_time_arithmetic_saturates() {
        let at = Boottime::from_nanos(5);
        assert_eq!(
            (at + Duration::from_nanos(3)).since(at),
            Duration::from_nanos(3)
        );
        assert_eq!(at.since(at + LONG), Duration::ZERO);
        assert_eq!((at - LONG).as_nanos(), 5 - 60_000_000_000);
        assert_eq!(at + Duration::MAX, Boottime::from_nanos(i64::MAX));
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no CLOCK_BOOTTIME: EINVAL")]
    fn boot_time_advances() {
        let now = Now::read().boot;
        assert!(now > Boottime::from_nanos(5) && Now::read().boot >= now);
    }

    #[test]
    fn earlier_deadline_is_used_on_each_clock() {
        let boot = |nanos| Some(Boottime::from_nanos(nanos));
        let one = Deadlines {
            boot: boot(7),
            wall: None,
        };
        let two = Deadlines {
            boot: boot(5),
            wall: Some(Timestamp::UNIX_EPOCH),
        };
        assert_eq!(one.or(two), two);
        assert_eq!(one.or(Deadlines::default()), one);
    }

    #[test]
    fn alarm_wakes_at_deadlines_of_both_clocks() {
        let (spawner, _deaths) = Spawner::new();
        let kernel = Kernel::start(&spawner).unwrap();
        let (alarm, rings) = Alarm::watching(&kernel, None).unwrap();
        let now = Now::read();
        let span = Duration::from_millis(30);
        alarm
            .set(Deadlines {
                boot: Some(now.boot + span),
                wall: None,
            })
            .unwrap();
        rings.recv_timeout(LONG).unwrap();
        assert!(Now::read().boot >= now.boot + span);
        let wall = now.wall.timestamp() + Duration::from_millis(60);
        alarm
            .set(Deadlines {
                boot: None,
                wall: Some(wall),
            })
            .unwrap();
        rings.recv_timeout(LONG).unwrap();
        assert!(Timestamp::now() >= wall);
        // A deadline in the past wakes at once; replaced deadlines do not wake.
        alarm
            .set(Deadlines {
                boot: Some(now.boot + LONG),
                wall: Some(wall),
            })
            .unwrap();
        rings.recv_timeout(LONG).unwrap();
        alarm.set(Deadlines::default()).unwrap();
        assert!(rings.recv_timeout(Duration::from_millis(50)).is_err());
    }

    /// Makes timerfd_settime fail on this thread as it does after an unread change of the clock,
    /// since tests must not set the clock itself.
    fn answer_that_the_clock_was_set() {
        let step = |code: u32, jf: u8, k: u32| libc::sock_filter {
            code: code as u16,
            jt: 0,
            jf,
            k,
        };
        let settime = libc::SYS_timerfd_settime as u32;
        let mut program = [
            // The data begin with the system call's number; the flags are the second argument.
            step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
            step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 3, settime),
            step(
                libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
                0,
                if LITTLE { 24 } else { 28 },
            ),
            step(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, 1, 2),
            step(
                libc::BPF_RET | libc::BPF_K,
                0,
                libc::SECCOMP_RET_ERRNO | libc::ECANCELED as u32,
            ),
            step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
        ];
        let program = libc::sock_fprog {
            len: program.len() as u16,
            filter: program.as_mut_ptr(),
        };
        // SAFETY: the program outlives the call, which copies it.
        let closed = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(
                    libc::PR_SET_SECCOMP,
                    libc::SECCOMP_MODE_FILTER,
                    &raw const program,
                ) == 0
        };
        assert!(closed, "{}", io::Error::last_os_error());
    }

    const LITTLE: bool = cfg!(target_endian = "little");

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no seccomp")]
    fn clock_change_before_setting_the_alarm_wakes_it() {
        let (spawner, _deaths) = Spawner::new();
        let kernel = Kernel::start(&spawner).unwrap();
        let (alarm, rings) = Alarm::watching(&kernel, None).unwrap();
        let wall = Some(Now::read().wall.timestamp() + LONG);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                answer_that_the_clock_was_set();
                alarm
                    .set(Deadlines { boot: None, wall })
                    .expect("it is set");
            });
        });
        rings.recv_timeout(LONG).unwrap();
    }

    #[test]
    fn time_zone_change_wakes_the_alarm() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("localtime");
        let link = |to: &str| {
            let new = directory.path().join("new");
            std::os::unix::fs::symlink(to, &new).unwrap();
            std::fs::rename(&new, &file).unwrap();
        };
        link("/usr/share/zoneinfo/Europe/Berlin");
        let (spawner, _deaths) = Spawner::new();
        let kernel = Kernel::start(&spawner).unwrap();
        let (_alarm, rings) = Alarm::watching(&kernel, Some(&file)).unwrap();
        for zone in ["Asia/Tokyo", "UTC"] {
            link(&format!("/usr/share/zoneinfo/{zone}"));
            rings.recv_timeout(LONG).unwrap();
        }
        // Other files in the directory do not matter.
        while rings.try_recv().is_ok() {}
        std::fs::write(directory.path().join("hosts"), "x").unwrap();
        assert!(rings.recv_timeout(Duration::from_millis(50)).is_err());
    }
}
