//! Assigns pictures to monitors that have no assignment. Pure.

use crate::compositor::Output;
use crate::store::assignments::Assignment;
use crate::wire::Mode;

/// The pictures for monitors that have no assignment.
#[derive(Clone, Debug, Default)]
pub(super) struct Fallbacks {
    /// Whether the playlist that runs on all monitors shows an image; `None` if there is no such
    /// playlist.
    pub(super) playlist_shows: Option<bool>,
    pub(super) default: Option<Assignment>,
    pub(super) for_all: Option<Assignment>,
    /// Monitors that were connected when a wallpaper was set. If one of these has no assignment, it is
    /// empty on purpose.
    pub(super) seen: Vec<String>,
}

impl Fallbacks {
    /// Assigns the fallback picture to outputs that have no row.
    pub(super) fn adopt(self, rows: &mut Vec<Assignment>, outputs: &[Output]) {
        let Self {
            playlist_shows,
            default,
            for_all,
            seen,
        } = self;
        let is_seen = |output: &&Output| seen.contains(&output.name);
        // A playlist that shows an image also sets the images of new monitors.
        let is_ours = |output: &&Output| playlist_shows != Some(true) || is_seen(output);
        let meant = match playlist_shows {
            Some(_) => for_all.or(default),
            None => default.or(for_all),
        };
        if let Some(meant) = meant {
            return adopt(rows, &meant, outputs.iter().filter(is_ours));
        }
        // The last resort.
        if let Some(newest) = newest(rows.iter()) {
            let new = outputs.iter().filter(|output| !is_seen(output));
            adopt(rows, &newest, new.filter(is_ours));
        }
    }
}

/// The newest picture, for outputs that have none. It is not stretched over them, as it was not set for
/// them.
pub(super) fn newest<'a>(rows: impl Iterator<Item = &'a Assignment>) -> Option<Assignment> {
    let newest = rows.max_by_key(|row| row.set_at)?;
    let mode = match newest.mode {
        Mode::Extend => Mode::Individual,
        mode @ (Mode::Individual | Mode::Clone | Mode::Each) => mode,
    };
    Some(Assignment {
        mode,
        ..newest.clone()
    })
}

/// Assigns this picture to outputs that have no row. If it was set for several monitors together, the
/// new outputs join that group, so that a stretched picture spans them too.
fn adopt<'a>(
    rows: &mut Vec<Assignment>,
    meant: &Assignment,
    outputs: impl Iterator<Item = &'a Output>,
) {
    let is_new = |output: &&Output| rows.iter().all(|row| row.monitor != output.name);
    let new: Vec<String> = outputs.filter(is_new).map(|one| one.name.clone()).collect();
    if new.is_empty() {
        return;
    }
    let shares = |row: &Assignment| {
        (row.image_id, row.mode, row.set_at) == (meant.image_id, meant.mode, meant.set_at)
    };
    rows.extend(new.into_iter().map(|monitor| Assignment {
        monitor,
        ..meant.clone()
    }));
    let mut group: Vec<&mut Assignment> = rows.iter_mut().filter(|row| shares(row)).collect();
    let together: Vec<String> = group.iter().map(|row| row.monitor.clone()).collect();
    group
        .iter_mut()
        .for_each(|row| row.together.clone_from(&together));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wallpaper::worker_key::tests::placement;
    use crate::wire::Timestamp;

    fn row(monitor: &str, image_id: i64, seconds: i64) -> Assignment {
        Assignment {
            monitor: monitor.to_owned(),
            image_id,
            mode: Mode::Extend,
            together: vec![monitor.to_owned()],
            backend: "swaybg".to_owned(),
            set_at: Timestamp::from_micros(seconds),
            fit: None,
            position: None,
            sound: None,
        }
    }

    #[test]
    fn default_comes_before_what_was_set_for_all_but_not_before_a_playlist() {
        let outputs = ["A", "B", "C"].map(|name| placement(name, 0).output);
        let check = |playlist_shows, default: Option<i64>, for_all: Option<i64>, seen, expected| {
            let of = |id: Option<i64>| id.map(|id| row("*", id, 1));
            let seen = if seen {
                vec!["B".to_owned()]
            } else {
                Vec::new()
            };
            let (default, for_all) = (of(default), of(for_all));
            let mut rows = vec![row("AWAY", 3, 30), row("A", 4, 40)];
            Fallbacks {
                playlist_shows,
                default,
                for_all,
                seen,
            }
            .adopt(&mut rows, &outputs);
            let new: Vec<_> = rows[2..]
                .iter()
                .map(|row| (row.image_id, row.mode))
                .collect();
            assert_eq!(new, expected);
        };
        let two = |id, mode| vec![(id, mode), (id, mode)];
        check(None, Some(1), Some(2), true, two(1, Mode::Extend));
        check(Some(false), Some(1), Some(2), true, two(2, Mode::Extend));
        check(Some(false), Some(1), None, true, two(1, Mode::Extend));
        check(None, None, Some(2), true, two(2, Mode::Extend));
        check(None, None, None, false, two(4, Mode::Individual));
        check(None, None, None, true, vec![(4, Mode::Individual)]);
        // A playlist that shows an image sets the images of new monitors itself.
        check(Some(true), Some(1), Some(2), true, vec![(2, Mode::Extend)]);
        check(Some(true), Some(1), Some(2), false, Vec::new());
        check(Some(true), None, None, false, Vec::new());
        let mut rows = Vec::new();
        Fallbacks::default().adopt(&mut rows, &outputs);
        assert!(rows.is_empty());
    }

    #[test]
    fn new_outputs_get_the_picture_that_was_last_set_for_all() {
        let outputs = ["A", "B", "C"].map(|name| placement(name, 0).output);
        let check = |rows: &[Assignment], expected: &[(&str, i64, &[&str])]| {
            let mut rows = rows.to_vec();
            adopt(&mut rows, &row("*", 1, 10), outputs.iter());
            let seen: Vec<_> = rows
                .iter()
                .map(|row| (row.monitor.as_str(), row.image_id, row.together.join(" ")))
                .collect();
            let expected: Vec<_> = expected
                .iter()
                .map(|(name, id, all)| (*name, *id, all.join(" ")))
                .collect();
            assert_eq!(seen, expected);
        };
        let all: &[&str] = &["A", "B", "C"];
        check(&[], &[("A", 1, all), ("B", 1, all), ("C", 1, all)]);
        // A monitor with its own picture keeps it, and a disconnected monitor stays as it is.
        let (own, away) = (row("A", 2, 20), row("AWAY", 3, 5));
        let both: &[&str] = &["B", "C"];
        let expected = [
            ("A", 2, &["A"][..]),
            ("AWAY", 3, &["AWAY"]),
            ("B", 1, both),
            ("C", 1, both),
        ];
        check(&[own.clone(), away], &expected);
        let known = [own, row("B", 1, 10), row("C", 4, 10)];
        check(
            &known,
            &[("A", 2, &["A"]), ("B", 1, &["B"]), ("C", 4, &["C"])],
        );
        check(
            &known[..2],
            &[("A", 2, &["A"]), ("B", 1, both), ("C", 1, both)],
        );
    }
}
