//! The types of the verbs table, which parsing, help, completions and the tests of the manual read.

use super::Error;
use super::call::Call;
use super::request::Request;
use super::stdout::Stdout;

/// One command.
#[derive(Debug)]
pub struct Verb {
    pub words: &'static [&'static str],
    pub arguments: &'static [Argument],
    pub flags: &'static [Flag],
    /// One line, without a full stop.
    pub summary: &'static str,
    /// Details beyond the summary; may be empty.
    pub help: &'static str,
    /// Starts a daemon where none answers.
    pub(super) starts: bool,
    pub(super) run: Run,
}

/// Verbs that belong together, under the heading that help gives them.
#[derive(Debug)]
pub struct Group {
    pub title: &'static str,
    pub verbs: &'static [Verb],
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Run {
    /// This process becomes the daemon; `main` sees to it.
    Daemon,
    /// This process reads a file of settings; `main` sees to it.
    Check,
    /// This process looks at the database, or restores it; `main` sees to it.
    Database(Database),
    /// This process looks at everything that wallpapers need; `main` sees to it.
    Doctor,
    /// This process stops the daemon; if none runs, `main` sees to what that has left.
    Stop,
    /// This process tells how a command line can go on, for which it needs all verbs.
    Complete,
    /// This process asks the daemon for one thing and prints it.
    Request(Request),
    /// The same, in its own way.
    Client(Action),
}

/// An action on the database without the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Database {
    Check,
    Restore,
}

pub(super) type Action = fn(&Call, &mut Stdout) -> Result<(), Error>;

/// A word that stands by itself; its place gives its meaning.
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    pub name: &'static str,
    pub kind: Kind,
    pub arity: Arity,
    pub meaning: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    One,
    Optional,
    /// One or more; only the last argument.
    Some,
    /// None or more; only the last argument.
    Any,
}

#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// With its dashes.
    pub name: &'static str,
    /// The value after the flag, if any: its name in help and its kind.
    pub value: Option<(&'static str, Kind)>,
    /// May be given again.
    pub many: bool,
    pub meaning: &'static str,
}

/// The kind of a value, for parsing and for completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    File,
    Directory,
    /// Any JSON value.
    Json,
    /// A whole number from 0 on.
    Count,
    /// A finite number from 0 on.
    Number,
    /// Seconds; or minutes, hours or days with their letter: `90`, `10m`.
    Span,
    /// Hue groups by number or name, with commas.
    Hues,
    /// The kinds that name an image, a folder or a playlist: an id, a name, a path.
    Image,
    Folder,
    Playlist,
    /// An image, or a file that can become one.
    Picture,
    /// A folder, or `root`.
    FolderOrRoot,
    /// An image, and `@HH:MM` after it where the playlist follows the clock.
    Item,
    Monitor,
    Backend,
    Theme,
    /// A section of the configuration, and a key of the section before it.
    Section,
    Setting,
    /// A value of the setting before it.
    SettingValue,
    /// One of these.
    Words(&'static [&'static str]),
    /// Some of these, with commas; an empty slice allows any words.
    List(&'static [&'static str]),
    /// Words with commas, of which the library has some already.
    Tags,
}

impl Verb {
    pub(super) const fn new(
        words: &'static [&'static str],
        summary: &'static str,
        run: Action,
    ) -> Self {
        Self::run(words, summary, Run::Client(run))
    }

    pub(super) const fn asking(
        words: &'static [&'static str],
        summary: &'static str,
        request: Request,
    ) -> Self {
        Self::run(words, summary, Run::Request(request))
    }

    /// The verb that becomes the daemon.
    pub(super) const fn daemon(words: &'static [&'static str], summary: &'static str) -> Self {
        Self::run(words, summary, Run::Daemon)
    }

    /// The verb that reads a file of settings.
    pub(super) const fn check(words: &'static [&'static str], summary: &'static str) -> Self {
        Self::run(words, summary, Run::Check)
    }

    /// One that looks at the database, or restores it.
    pub(super) const fn database(
        words: &'static [&'static str],
        summary: &'static str,
        what: Database,
    ) -> Self {
        Self::run(words, summary, Run::Database(what))
    }

    /// The verb that examines the system.
    pub(super) const fn doctor(words: &'static [&'static str], summary: &'static str) -> Self {
        Self::run(words, summary, Run::Doctor)
    }

    /// The verb that stops the daemon.
    pub(super) const fn stop(words: &'static [&'static str], summary: &'static str) -> Self {
        Self::run(words, summary, Run::Stop)
    }

    /// The verb that completes command lines.
    pub(super) const fn complete(words: &'static [&'static str], summary: &'static str) -> Self {
        Self::run(words, summary, Run::Complete)
    }

    const fn run(words: &'static [&'static str], summary: &'static str, run: Run) -> Self {
        Self { words, arguments: &[], flags: &[], summary, help: "", starts: false, run }
    }

    pub(super) const fn arguments(mut self, arguments: &'static [Argument]) -> Self {
        self.arguments = arguments;
        self
    }

    pub(super) const fn flags(mut self, flags: &'static [Flag]) -> Self {
        self.flags = flags;
        self
    }

    pub(super) const fn help(mut self, help: &'static str) -> Self {
        self.help = help;
        self
    }

    /// Starts the daemon if it is not running.
    pub(super) const fn starting(mut self) -> Self {
        self.starts = true;
        self
    }

    /// The kind of the value with this name.
    pub(super) fn kind(&self, name: &str) -> Option<Kind> {
        let argument = self.arguments.iter().find(|argument| argument.name == name);
        let flag = || self.flags.iter().find(|flag| flag.name == name)?.value;
        argument.map(|argument| argument.kind).or_else(|| flag().map(|(_, kind)| kind))
    }

    /// `images list`
    pub fn name(&self) -> String {
        self.words.join(" ")
    }
}

impl Kind {
    /// Whether a word of this kind is looked up.
    pub(super) fn is_reference(self) -> bool {
        matches!(
            self,
            Self::Image | Self::Picture | Self::Folder | Self::FolderOrRoot | Self::Playlist
        )
    }
}

impl Argument {
    pub(super) const fn one(name: &'static str, kind: Kind, meaning: &'static str) -> Self {
        Self { name, kind, arity: Arity::One, meaning }
    }

    pub(super) const fn optional(name: &'static str, kind: Kind, meaning: &'static str) -> Self {
        Self { name, kind, arity: Arity::Optional, meaning }
    }

    pub(super) const fn some(name: &'static str, kind: Kind, meaning: &'static str) -> Self {
        Self { name, kind, arity: Arity::Some, meaning }
    }

    pub(super) const fn any(name: &'static str, kind: Kind, meaning: &'static str) -> Self {
        Self { name, kind, arity: Arity::Any, meaning }
    }
}

impl Flag {
    pub(super) const fn switch(name: &'static str, meaning: &'static str) -> Self {
        Self { name, value: None, many: false, meaning }
    }

    pub(super) const fn value(
        name: &'static str,
        value: &'static str,
        kind: Kind,
        meaning: &'static str,
    ) -> Self {
        Self { name, value: Some((value, kind)), many: false, meaning }
    }

    pub(super) const fn many(mut self) -> Self {
        self.many = true;
        self
    }
}

/// Flags that every verb takes.
pub const GLOBAL: &[Flag] = &[
    Flag::value(
        "--config",
        "FILE",
        Kind::File,
        "The configuration file, for `start`, `doctor`, `config path`, `config check`, `library \
         check` and `library restore`",
    ),
    Flag::value(
        "--log-level",
        "LEVEL",
        Kind::Words(LOG_LEVELS),
        "How much the daemon logs, for `start`",
    ),
    Flag::value("--socket", "PATH", Kind::File, "The socket that the daemon listens on"),
    Flag::switch("--json", "Print JSON"),
    Flag::value(
        "--format",
        "TEMPLATE",
        Kind::Text,
        "Print a line like '{id}\\t{name}' for each record",
    ),
    Flag::switch("--quiet", "Print rows, ids, values and errors only (-q for short)"),
    Flag::switch("--help", "Print help (-h for short)"),
    Flag::switch("--version", "Print the version (-V for short)"),
];

/// Flags of commands that read references from standard input.
pub(super) const NULL: Flag =
    Flag::switch("-0", "With - for standard input: each ends with a NUL, not with its line");

pub(super) const LOG_LEVELS: &[&str] = &["debug", "info", "warn", "error"];
