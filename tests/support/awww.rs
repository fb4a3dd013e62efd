//! What awww is told of a picture, by the settings as they are without a file.

// Each test program uses a part of it.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::path::Path;

const WORDS: &str = "--resize crop --fill-color 000000 --filter Lanczos3 --transition-type wipe \
                     --transition-step 90 --transition-duration 3 --transition-fps 60 \
                     --transition-angle 45 --transition-pos center \
                     --transition-bezier 0.25,0.1,0.25,1.0 --transition-wave 20,20 --";

/// The words behind the program's name.
pub fn img<'a>(outputs: &'a str, picture: &'a Path) -> Vec<&'a str> {
    let picture = picture.to_str().unwrap();
    ["img", "--outputs", outputs].into_iter().chain(WORDS.split(' ')).chain([picture]).collect()
}
