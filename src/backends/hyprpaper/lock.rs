//! The file with its number by which hyprpaper before 0.8 sees that another runs, and does not start.

use std::fs;
use std::path::Path;

const NAME: &str = "hyprpaper.lock";

/// Takes it away where it is of one of these: another is to start, before that one is ended. They
/// leave it behind in any case.
pub(super) fn take_from(runtime: &Path, mut is_ours: impl FnMut(i32) -> bool) {
    let path = runtime.join(NAME);
    let number = fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok());
    if number.is_some_and(&mut is_ours) {
        // What cannot be removed, the new one tells of.
        fs::remove_file(path).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_of_somebody_else_s_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(NAME);
        take_from(dir.path(), |_| true);
        for (text, stays) in [("42", false), ("43", true), ("", true), ("x42", true)] {
            fs::write(&path, text).unwrap();
            take_from(dir.path(), |number| number == 42);
            assert_eq!(path.exists(), stays, "{text}");
        }
    }
}
