//! Which monitor has which of several pictures: pure, but for reading how pictures stand.

use std::collections::HashSet;

use crate::store::{self, Connection, images};
use crate::wire::Orientation;

/// A monitor that is to have a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hand {
    pub(super) monitor: String,
    /// Higher than wide.
    pub(super) upright: bool,
}

/// Those of the images that are higher than wide.
pub(super) fn upright(connection: &Connection, ids: &[i64]) -> Result<HashSet<i64>, store::Error> {
    let images = images::by_ids(connection, ids)?.into_iter();
    let stands = images
        .filter(|image| Orientation::of((image.width, image.height)) == Orientation::Portrait);
    Ok(stands.map(|image| image.id).collect())
}

/// Deals images out, in their order: upright ones to upright monitors first. They repeat where they
/// are fewer than the monitors.
pub(super) fn deal(ids: &[i64], upright: &HashSet<i64>, hands: &[Hand]) -> Vec<(String, i64)> {
    let mut left: Vec<i64> = ids.iter().copied().cycle().take(hands.len()).collect();
    let mut dealt: Vec<(String, i64)> = Vec::new();
    let mut give = |hand: &Hand, fits: &dyn Fn(&i64) -> bool| {
        let at = left.iter().position(fits)?;
        dealt.push((hand.monitor.clone(), left.remove(at)));
        Some(())
    };
    let (standing, lying): (Vec<&Hand>, Vec<&Hand>) = hands.iter().partition(|hand| hand.upright);
    let without: Vec<&Hand> = standing
        .into_iter()
        .filter(|hand| give(hand, &|id| upright.contains(id)).is_none())
        .collect();
    // In the order of the monitors again, so that pictures that suit all come in theirs.
    for hand in hands.iter().filter(|hand| lying.contains(hand) || without.contains(hand)) {
        let lies = |id: &i64| hand.upright || !upright.contains(id);
        give(hand, &lies).or_else(|| give(hand, &|_| true));
    }
    dealt.sort();
    dealt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upright_pictures_go_to_upright_monitors() {
        // In capitals: upright.
        let check = |monitors: &[(&str, bool)], ids: &[i64], upright: &[i64], expected: &[i64]| {
            let hand = |&(name, upright): &(&str, bool)| Hand { monitor: name.to_owned(), upright };
            let hands: Vec<Hand> = monitors.iter().map(hand).collect();
            let dealt = deal(ids, &upright.iter().copied().collect(), &hands);
            let names: Vec<&str> = dealt.iter().map(|(monitor, _)| monitor.as_str()).collect();
            assert_eq!(names, monitors.iter().map(|(name, _)| *name).collect::<Vec<_>>());
            assert_eq!(dealt.iter().map(|(_, id)| *id).collect::<Vec<_>>(), expected);
        };
        let three = &[("A", false), ("B", true), ("C", false)];
        check(three, &[1, 2, 3], &[], &[1, 2, 3]);
        check(three, &[1, 2, 3], &[2], &[1, 2, 3]);
        check(three, &[1, 2, 3], &[1], &[2, 1, 3]);
        check(three, &[1, 2, 3], &[3], &[1, 3, 2]);
        check(three, &[1, 2, 3], &[1, 3], &[2, 1, 3]);
        check(three, &[1, 2, 3], &[1, 2, 3], &[2, 1, 3]);
        check(three, &[1, 2], &[2], &[1, 2, 1]);
        // A lying one for who lies, though an upright one comes before it.
        check(&[("A", true), ("B", false), ("C", false)], &[1, 2, 3], &[1, 2], &[1, 3, 2]);
        check(three, &[1], &[], &[1, 1, 1]);
        check(&[("A", true)], &[1, 2], &[2], &[1]);
    }
}
