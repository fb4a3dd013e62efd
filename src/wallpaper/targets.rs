//! Which monitors a request means: pure.

/// What a request names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Targets {
    /// All that are connected when the request is carried out.
    All,
    /// These, without repeats, in the order given.
    Named(Vec<String>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoTarget {
    /// None of these is connected; those are.
    Unknown { names: Vec<String>, connected: Vec<String> },
    /// No monitor is connected at all.
    None,
}

impl Targets {
    /// From names as clients write them: none or `*` means all.
    pub fn from_names(names: impl IntoIterator<Item = String>) -> Self {
        let mut named: Vec<String> = Vec::new();
        for name in names {
            if name == "*" {
                return Self::All;
            }
            if !named.contains(&name) {
                named.push(name);
            }
        }
        if named.is_empty() { Self::All } else { Self::Named(named) }
    }

    /// The names of connected outputs that are meant, and those that are named and not connected.
    /// At least one must be connected.
    pub(super) fn resolve<'a>(
        &self,
        connected: impl Iterator<Item = &'a str>,
    ) -> Result<(Vec<String>, Vec<String>), NoTarget> {
        let connected: Vec<String> = connected.map(str::to_owned).collect();
        match self {
            Self::All if connected.is_empty() => Err(NoTarget::None),
            Self::All => Ok((connected, Vec::new())),
            Self::Named(names) => {
                let (found, missing): (Vec<_>, Vec<_>) =
                    names.iter().cloned().partition(|name| connected.contains(name));
                match found.is_empty() {
                    true => Err(NoTarget::Unknown { names: missing, connected }),
                    false => Ok((found, missing)),
                }
            }
        }
    }

    /// Whether a later request for `self` leaves nothing of one for `other` to be seen.
    pub(super) fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) => true,
            (Self::Named(_), Self::All) => false,
            (Self::Named(mine), Self::Named(theirs)) => {
                theirs.iter().all(|name| mine.contains(name))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> Targets {
        Targets::from_names(names.iter().map(|&name| name.to_owned()))
    }

    #[test]
    fn names_are_resolved_against_what_is_connected() {
        type Found<'a> = (&'a [&'a str], &'a [&'a str]);
        let check = |names: &[&str], connected: &[&str], expected: Result<Found<'_>, NoTarget>| {
            let owned = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
            let expected = expected.map(|(found, skipped)| (owned(found), owned(skipped)));
            assert_eq!(named(names).resolve(connected.iter().copied()), expected);
        };
        check(&[], &["A", "B"], Ok((&["A", "B"], &[])));
        check(&["B", "*"], &["A", "B"], Ok((&["A", "B"], &[])));
        check(&["B", "B"], &["A", "B"], Ok((&["B"], &[])));
        check(&["C", "B", "D"], &["A", "B"], Ok((&["B"], &["C", "D"])));
        check(&[], &[], Err(NoTarget::None));
        let unknown = NoTarget::Unknown { names: vec!["C".into()], connected: vec!["A".into()] };
        check(&["C"], &["A"], Err(unknown));
    }

    #[test]
    fn a_request_covers_those_whose_monitors_it_takes() {
        assert!(named(&["*"]).covers(&named(&["A"])));
        assert!(named(&["A", "B"]).covers(&named(&["B"])));
        assert!(!named(&["A"]).covers(&named(&["A", "B"])));
        assert!(!named(&["A"]).covers(&Targets::All));
    }
}
