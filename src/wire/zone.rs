//! The system's time zone, in which times are written and calculated.
//!
//! Read on demand and kept for a few minutes, or until it is invalidated: the rules of a zone may be
//! replaced. Waits only for the disk.

use std::io::{self, Read};
use std::path::Path;
use std::sync::RwLock;
use std::time::{Duration, Instant};

use jiff::tz::TimeZone;

use crate::paths::open_regular;
use crate::sys::{read, write};

const FILE: &str = "/etc/localtime";
const KEPT: Duration = Duration::from_secs(300);

type KnownZone = Option<(TimeZone, Instant)>;

static KNOWN: RwLock<KnownZone> = RwLock::new(None);

pub(crate) fn local() -> TimeZone {
    let kept = |known: &KnownZone| {
        let fresh = known.as_ref().filter(|(_, since)| since.elapsed() < KEPT);
        fresh.map(|(zone, _)| zone.clone())
    };
    let zone = kept(&read(&KNOWN));
    zone.unwrap_or_else(|| {
        let mut known = write(&KNOWN);
        // Another thread may have read it in the meantime.
        kept(&known).unwrap_or_else(|| known.insert((system_zone(), Instant::now())).0.clone())
    })
}

/// Makes the next request read the zone again.
pub(crate) fn forget() {
    jiff::tz::reset_system_time_zone_cache();
    jiff::tz::db().reset();
    *write(&KNOWN) = None;
}

/// Reads the file, unless `TZ` is set: jiff would also look for the zone's name, and search all
/// directories of zones for it.
fn system_zone() -> TimeZone {
    let named = std::env::var_os("TZ").is_some();
    let of_file = if named {
        None
    } else {
        of_file(Path::new(FILE)).ok()
    };
    of_file.unwrap_or_else(TimeZone::system)
}

fn of_file(path: &Path) -> io::Result<TimeZone> {
    const MOST: u64 = 1 << 20;
    let mut rules = Vec::new();
    open_regular(path)?.take(MOST).read_to_end(&mut rules)?;
    TimeZone::tzif("Local", &rules).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zone_file_has_the_rules_of_its_zone() {
        let summer = jiff::civil::date(2026, 7, 1).at(12, 0, 0, 0);
        let zone = of_file(Path::new("/usr/share/zoneinfo/Europe/Berlin")).unwrap();
        assert_eq!(
            summer.to_zoned(zone).unwrap().strftime("%:z").to_string(),
            "+02:00"
        );
        assert!(of_file(Path::new("/etc/passwd")).is_err());
    }
}
