//! What is on record of a process of a backend: what was started, and which process it is. Pure but for
//! reading the file.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::text::{self, Text};
use super::{Identity, Launch, show_command};

/// What was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub backend: String,
    /// The output it serves; none when it serves all.
    pub output: Option<String>,
    #[serde(with = "text")]
    program: OsString,
    args: Vec<Text>,
    env: Vec<(Text, Text)>,
}

impl Record {
    pub(super) fn new(launch: &Launch, backend: &str, output: Option<&str>) -> Self {
        Self {
            backend: backend.to_owned(),
            output: output.map(str::to_owned),
            program: launch.program.clone().into_os_string(),
            args: launch.args.iter().map(Text::from).collect(),
            env: launch.env.iter().map(|(n, v)| (Text::from(n), Text::from(v))).collect(),
        }
    }

    /// Whether the same command line would be started again.
    pub fn is(&self, launch: &Launch) -> bool {
        *self == Self::new(launch, &self.backend, self.output.as_deref())
    }

    pub fn args(&self) -> Vec<OsString> {
        self.args.iter().map(|text| text.0.clone()).collect()
    }

    /// For messages and logs.
    pub fn shown(&self) -> String {
        show_command(Path::new(&self.program), &self.args())
    }
}

pub(super) fn read(path: &Path) -> Option<(Record, Identity)> {
    parse(&fs::read(path).ok()?)
}

/// What was started, and the process: two lines.
pub(super) fn parse(bytes: &[u8]) -> Option<(Record, Identity)> {
    let mut lines = bytes.splitn(2, |&b| b == b'\n');
    let record = serde_json::from_slice(lines.next()?).ok()?;
    Some((record, Identity::from_stat(lines.next()?)?))
}
