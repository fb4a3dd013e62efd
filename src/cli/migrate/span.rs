//! Reads spans of time such as `30m`, `1h 30min` and `2 days`.

/// The units of the crate humantime and their aliases, in milliseconds.
const UNITS: &[(&[&str], u64)] = &[
    (&["ms", "msec", "millis"], 1),
    (&["s", "sec", "secs", "second", "seconds"], 1000),
    (&["m", "min", "mins", "minute", "minutes"], 60_000),
    (&["h", "hr", "hrs", "hour", "hours"], 3_600_000),
    (&["d", "day", "days"], 86_400_000),
    (&["w", "wk", "wks", "week", "weeks"], 604_800_000),
];

/// Seconds, rounded up: what changes several times a second changes every second here.
pub(super) fn seconds(text: &str) -> Option<u64> {
    let (mut rest, mut sum) = (text.trim(), 0_u64);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, after) = rest.split_at(digits);
        let after = after.trim_start();
        let end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, more) = after.split_at(end);
        let (_, size) = UNITS.iter().find(|(words, _)| words.contains(&unit))?;
        sum = sum.checked_add(number.parse::<u64>().ok()?.checked_mul(*size)?)?;
        rest = more.trim_start();
    }
    Some(sum.div_ceil(1000)).filter(|&seconds| seconds > 0)
}

#[cfg(test)]
mod tests {
    #[test]
    fn spans_are_read() {
        let check = |text: &str, expected: Option<u64>| {
            assert_eq!(super::seconds(text), expected, "{text:?}");
        };
        check("30m", Some(1800));
        check("30s", Some(30));
        check("1h 30min", Some(5400));
        check("2days12h", Some(216_000));
        check("1 week", Some(604_800));
        check("200ms", Some(1));
        check("30", None);
        check("m", None);
        check("", None);
        check("0s", None);
        check("5 parsecs", None);
        check("99999999999999999999s", None);
        check("18446744073709551615d", None);
    }
}
