//! The arguments with which awww is called if there is no configuration file.

// Each test program uses a part of this file.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::path::Path;

const WORDS: &str = "--resize=crop --fill-color=000000 --filter=Lanczos3 --transition-type=wipe \
                     --transition-step=90 --transition-duration=3 --transition-fps=60 \
                     --transition-angle=45 --transition-pos=center \
                     --transition-bezier=0.25,0.1,0.25,1.0 --transition-wave=20,20 --";

/// Returns the arguments after the program's name.
pub fn img(outputs: &str, picture: &Path) -> Vec<String> {
    let mut words = vec!["img".to_owned(), format!("--outputs={outputs}")];
    words.extend(WORDS.split(' ').map(str::to_owned));
    words.push(picture.to_str().unwrap().to_owned());
    words
}
