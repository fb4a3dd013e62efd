//! Damaged files and requests: nothing panics, and no setting or comment is lost.
//!
//! Two seconds each; for a longer run use `MURALD_FUZZ_SECONDS=600 cargo test --test config fuzz --
//! --nocapture`.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use murald::internals::config::{ConfigHandle, Error, Section};
use murald::internals::events::EventBus;
use serde_json::{Map, Value, json};

/// Text that is inserted into files and bodies: valid syntax in wrong places.
const SNIPPETS: [&str; 32] = [
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "=",
    ",",
    ".",
    "\"",
    "'",
    "\"\"\"",
    "'''",
    "#",
    "\n",
    "\r\n",
    "\\",
    "\\u0000",
    "inf",
    "-0.0",
    "1979-05-27",
    "9223372036854775808",
    "[app]",
    "[backend.feh]",
    "backend.awww",
    "fill-color",
    "null",
    "true",
    "# note",
    "\u{feff}",
    "{ a = 1 }",
    "1e400",
];

struct Random(u64);

impl Random {
    /// xorshift with a different seed in every run, which is printed.
    fn new() -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let seed = now.map_or(1, |since| since.as_nanos() as u64) | 1;
        eprintln!("seed {seed}");
        Self(seed)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }

    fn damaged(&mut self, text: &str) -> Vec<u8> {
        let mut bytes = text.as_bytes().to_vec();
        for _ in 0..self.below(4) + 1 {
            let at = self.below(bytes.len() + 1);
            match self.below(7) {
                0 if at < bytes.len() => bytes[at] = self.below(256) as u8,
                1 => bytes.truncate(at),
                2 => drop(bytes.drain(at..(at + self.below(40)).min(bytes.len()))),
                3 => {
                    let from = self.below(bytes.len() + 1);
                    let piece = bytes[from..(from + self.below(80)).min(bytes.len())].to_vec();
                    bytes.splice(at..at, piece);
                }
                _ => {
                    let snippet = SNIPPETS[self.below(SNIPPETS.len())];
                    bytes.splice(at..at, snippet.bytes());
                }
            }
        }
        bytes
    }
}

struct Room {
    _dir: tempfile::TempDir,
    path: PathBuf,
    handle: ConfigHandle,
}

fn room() -> Room {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    let handle = ConfigHandle::open(path.clone(), EventBus::new()).unwrap();
    Room {
        _dir: dir,
        path,
        handle,
    }
}

/// Repeats for the given time, and prints the number of rounds.
fn repeat(what: &str, mut round: impl FnMut()) {
    let seconds = std::env::var("MURALD_FUZZ_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok());
    let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(2));
    let mut rounds = 0;
    while Instant::now() < end {
        round();
        rounds += 1;
    }
    eprintln!("{what}: {rounds} rounds");
}

fn complete(shown: &Map<String, Value>) {
    for section in Section::ALL {
        let whole = &shown[section.path().next().unwrap()];
        let table = section
            .path()
            .fold(whole, |table, name| table.get(name).unwrap_or(table));
        for key in section
            .keys()
            .iter()
            .filter(|key| key.default.to_json().is_some())
        {
            let value = table.get(key.name);
            assert!(
                value.is_some_and(|value| key.has_type_of(value)),
                "{}",
                key.name
            );
        }
    }
}

/// For any file, a request changes the settings that it names and no others, or nothing.
#[test]
fn fuzzed_config_files_are_read_or_refused() {
    let room = room();
    let whole = fs::read_to_string(&room.path).unwrap();
    let short = "# a\n[app] # b\ntheme = 'x' # c\nown = [ # d\n 1, { x = 2 } ]\n[app.more]\ny = 3\n\
                 [backend]\nawww.fill-color = '000000'\nfeh = { mode = 'max' }\n";
    let mut random = Random::new();
    repeat("damaged files", || {
        let seed = if random.below(2) == 0 { &whole } else { short };
        let bytes = random.damaged(seed);
        fs::write(&room.path, &bytes).unwrap();
        room.handle.reload();
        let before = room.handle.current().to_json();
        complete(&before);
        let theme = if before["app"]["theme"] == "one" {
            "two"
        } else {
            "one"
        };
        let body = json!({"app": {"theme": theme}, "backend": {"feh": {"mode": "tile"}}});
        let patched = room.handle.patch(body.as_object().unwrap());
        let after = fs::read(&room.path).unwrap();
        let Ok(_) = patched else {
            assert_eq!(after, bytes, "a file that cannot be changed was changed");
            return;
        };
        let mut expected = Value::from(before);
        expected["app"]["theme"] = theme.into();
        expected["backend"]["feh"]["mode"] = "tile".into();
        let mut shown = Value::from(room.handle.current().to_json());
        // Line numbers in warnings change, and an invalid value may have been replaced.
        expected.as_object_mut().unwrap().remove("warnings");
        shown.as_object_mut().unwrap().remove("warnings");
        let (old, new) = (
            String::from_utf8_lossy(&bytes),
            String::from_utf8_lossy(&after),
        );
        assert_eq!(shown, expected, "from\n{old}\nto\n{new}");
        let comments = old.matches("# ").count();
        assert!(
            new.matches("# ").count() >= comments.min(1),
            "from\n{old}\nto\n{new}"
        );
        let again = ConfigHandle::open(room.path.clone(), EventBus::new())
            .unwrap()
            .current()
            .to_json();
        let mut again = Value::from(again);
        again.as_object_mut().unwrap().remove("warnings");
        assert_eq!(again, shown);
    });
}

/// A request is stored as it is shown, or changes nothing.
#[test]
fn fuzzed_config_requests_are_stored_or_refused() {
    const BODIES: [&str; 5] = [
        r#"{"app":{"theme":"x","images_per_page":50,"own":{"a":[1,2.5,{"b":true}]}}}"#,
        r#"{"backend":{"type":"feh","auto_priorities":{"web":["wal-qt"]},"awww":{"fill-color":"ffffff"}}}"#,
        r#"{"backend":{"wal-qt":{"env":["A=1","B=2"],"duration_ms":7,"parallax_easing":"1,2,3,4"}}}"#,
        r#"{"daemon":{"log_level":"debug","log_max_size_mb":0},"monitors":{"selected_monitors":["DP-1"]}}"#,
        r#"{"remote_gallery":{"api_key":"secret","enabled":true},"backend":{"transition_duration_seconds":null}}"#,
    ];
    let room = room();
    let mut random = Random::new();
    let (mut taken, mut refused) = (0, 0);
    repeat("damaged requests", || {
        let seed = BODIES[random.below(BODIES.len())];
        let body = random.damaged(seed);
        let Ok(body) = serde_json::from_slice::<Map<String, Value>>(&body) else {
            return;
        };
        let before = fs::read(&room.path).unwrap();
        let shown = room.handle.current().to_json();
        match room.handle.patch(&body) {
            Ok(_) => {
                taken += 1;
                let again = ConfigHandle::open(room.path.clone(), EventBus::new()).unwrap();
                assert_eq!(
                    again.current().to_json(),
                    room.handle.current().to_json(),
                    "{body:?}"
                );
            }
            Err(error) => {
                refused += 1;
                let is_of_the_request = matches!(
                    error,
                    Error::Type { .. }
                        | Error::Refused { .. }
                        | Error::UnknownKey { .. }
                        | Error::UnknownSection { .. }
                );
                assert!(is_of_the_request, "{error:?} for {body:?}");
                assert_eq!(fs::read(&room.path).unwrap(), before);
                assert_eq!(room.handle.current().to_json(), shown);
            }
        }
        if random.below(50) == 0 {
            room.handle.reset_all().unwrap();
        }
    });
    eprintln!("{taken} taken, {refused} refused");
}
