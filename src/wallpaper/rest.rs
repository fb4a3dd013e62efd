//! Where films and pages stand still: pure.
//!
//! While the machine rests they do on all outputs, but on those for which somebody has asked since.

use std::collections::BTreeSet;

use crate::backends::Placement;

#[derive(Debug, Default)]
pub(super) struct Rest {
    rests: bool,
    /// The outputs whose pictures were asked for since it began.
    asked: BTreeSet<String>,
}

impl Rest {
    /// Begins or ends it.
    pub(super) fn set(&mut self, rests: bool) {
        if self.rests != rests {
            self.rests = rests;
            self.asked.clear();
        }
    }

    /// Somebody has asked for what these outputs show by now.
    pub(super) fn note_asked(&mut self, outputs: &[String]) {
        if self.rests {
            self.asked.extend(outputs.iter().cloned());
        }
    }

    /// Where what is shown is to stand still; `asking` are outputs that somebody asks for just now.
    pub(super) fn paused(&self, shown: &[Placement], asking: &[String]) -> BTreeSet<String> {
        let outputs = shown.iter().map(|placement| &placement.output.name);
        let is_asked = |name: &&String| self.asked.contains(*name) || asking.contains(name);
        outputs.filter(|name| self.rests && !is_asked(name)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wallpaper::plan::tests::placement;

    #[test]
    fn what_was_asked_for_since_plays_on_until_the_next_rest() {
        let shown = ["A", "B", "C"].map(|output| placement(output, 1));
        let mut rest = Rest::default();
        let names = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
        let check = |rest: &Rest, asking: &[&str], expected: &[&str]| {
            let paused = rest.paused(&shown, &names(asking));
            assert!(paused.iter().eq(expected), "{paused:?}");
        };
        rest.note_asked(&names(&["A"]));
        check(&rest, &[], &[]);
        rest.set(true);
        check(&rest, &[], &["A", "B", "C"]);
        check(&rest, &["B"], &["A", "C"]);
        rest.note_asked(&names(&["B"]));
        // For another reason: it goes on all the same.
        rest.set(true);
        check(&rest, &[], &["A", "C"]);
        rest.set(false);
        check(&rest, &[], &[]);
        rest.set(true);
        check(&rest, &[], &["A", "B", "C"]);
    }
}
