//! What ffmpeg says of its progress.

/// How far it is, in seconds, by the last report in what ffmpeg says of its progress.
pub(super) fn seconds(said: &str) -> Option<f64> {
    let line = said.lines().rev().find_map(|line| line.strip_prefix("out_time_us="))?;
    let micros: f64 = line.trim().parse().ok()?;
    Some((micros / 1e6).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_read() {
        assert_eq!(seconds("frame=1\nout_time_us=1500000\nout_time=x\n"), Some(1.5));
        assert_eq!(seconds("out_time_us=1\nout_time_us=-5\n"), Some(0.0));
        assert_eq!(seconds("out_time_us=N/A\n"), None);
    }
}
