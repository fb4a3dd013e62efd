//! The types of the verbs table, which parsing, help, completions and the tests of the manual read.
//!
//! A verb is a row: words, arguments, flags, a request, and what is shown of the answer.

use serde_json::Value;

use super::Error;
use super::call::Call;
use super::columns::View;
use super::request::{Body, BodyFields, Change, Request};
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
    /// All views of its answers; the answer of its request is shown as the first one.
    pub views: &'static [&'static View],
    /// Starts a daemon if none answers.
    pub(super) starts: bool,
    /// Works on the images that are named, or on all that its filters find.
    pub(super) chooses: bool,
    /// The question before the request, on a terminal.
    pub(super) confirm: Option<Confirm>,
    /// The message while a person waits for the answer, if that may be minutes.
    pub(super) waiting: &'static str,
    /// Fails if the answer of the request is not a success.
    pub(super) check: Option<Check>,
    pub(super) usage: Option<Usage>,
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
    /// One request.
    Request(Request),
    /// A function of the verb.
    Client(Action),
    /// Completion, which needs the whole table.
    Complete,
}

pub(super) type Action = fn(&Call, &mut Stdout) -> Result<(), Error>;
/// Returns the question, if one has to be asked.
pub(super) type Confirm = fn(&Call) -> Result<Option<String>, Error>;
/// Judges the command line before the daemon is asked.
pub(super) type Usage = fn(&Call) -> Result<(), Error>;
pub(super) type Check = fn(&Call, &Value) -> Result<(), Error>;

/// An argument without a flag, known by its position.
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    pub name: &'static str,
    pub kind: Kind,
    pub arity: Arity,
    /// The word that is meant if none is given.
    pub(super) default: Option<&'static str>,
    pub meaning: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    One,
    Optional,
    /// One or more; each argument behind it is one word. Only one argument of a verb is a list.
    Some,
    /// None or more, likewise.
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
    /// The name of a new record; not empty.
    Name,
    File,
    Directory,
    /// Any JSON value.
    Json,
    /// An integer between these two.
    Count(u64, u64),
    /// A finite number from 0 on.
    Number,
    /// The interval of a timer in seconds; or minutes, hours or days with their letter: `90`, `10m`.
    Span,
    /// A position, or `default`: null.
    Position,
    /// Hue groups by name, with commas.
    Hues,
    /// The kinds that name an image, a folder or a playlist: an id, a name, a path.
    Image,
    Folder,
    Playlist,
    /// An image, or a file that can become one.
    Picture,
    /// The same, or `playlist:NAME`.
    PictureOrPlaylist,
    /// A folder, or `root`.
    FolderOrRoot,
    /// An image, and `@HH:MM` after it if the playlist follows the clock.
    Item,
    Monitor,
    /// A workspace of the compositor by its full name.
    Workspace,
    Backend,
    Theme,
    /// A section of the configuration, and a key of the section before it.
    Section,
    Setting,
    /// A value of the setting before it.
    SettingValue,
    /// A line of text with the verb's fields in braces.
    Template,
    /// One of these.
    Words(&'static [&'static str]),
    /// Some of these, with commas.
    List(&'static [&'static str]),
    /// Colours with commas, and colours that have a distance: `red~20`.
    Colors,
    ColorsNear,
    /// Tags with commas; completion offers those of the library.
    Tags,
}

impl Verb {
    pub(super) const fn new(
        words: &'static [&'static str],
        summary: &'static str,
        run: Run,
    ) -> Self {
        Self {
            words,
            summary,
            run,
            arguments: &[],
            flags: &[],
            help: "",
            views: &[],
            starts: false,
            chooses: false,
            confirm: None,
            waiting: "",
            check: None,
            usage: None,
        }
    }

    /// One request: `GET /images/{IMAGE}`.
    pub(super) const fn get(
        words: &'static [&'static str],
        summary: &'static str,
        place: &'static str,
    ) -> Self {
        Self::new(
            words,
            summary,
            Run::Request(Request::new(place, Body::None)),
        )
    }

    /// The same with a body.
    pub(super) const fn send(
        words: &'static [&'static str],
        summary: &'static str,
        place: &'static str,
        body: BodyFields,
    ) -> Self {
        Self::new(
            words,
            summary,
            Run::Request(Request::new(place, Body::Fields(body))),
        )
    }

    /// One request with a body made from the present record at `place`.
    pub(super) const fn change(
        words: &'static [&'static str],
        summary: &'static str,
        place: &'static str,
        change: Change,
    ) -> Self {
        Self::new(
            words,
            summary,
            Run::Request(Request::new(place, Body::Changed(change))),
        )
    }

    pub(super) const fn own(
        words: &'static [&'static str],
        summary: &'static str,
        run: Action,
    ) -> Self {
        Self::new(words, summary, Run::Client(run))
    }

    pub(super) const fn takes(mut self, arguments: &'static [Argument]) -> Self {
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

    pub(super) const fn shows(mut self, views: &'static [&'static View]) -> Self {
        self.views = views;
        self
    }

    pub(super) const fn starting(mut self) -> Self {
        self.starts = true;
        self
    }

    pub(super) const fn choosing(mut self) -> Self {
        self.chooses = true;
        self
    }

    pub(super) const fn asking(mut self, question: Confirm) -> Self {
        self.confirm = Some(question);
        self
    }

    pub(super) const fn waiting(mut self, what: &'static str) -> Self {
        self.waiting = what;
        self
    }

    pub(super) const fn checked(mut self, check: Check) -> Self {
        self.check = Some(check);
        self
    }

    pub(super) const fn needs(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// The argument that may be several words.
    pub(super) fn list(&self) -> Option<&Argument> {
        self.arguments
            .iter()
            .find(|one| matches!(one.arity, Arity::Some | Arity::Any))
    }

    /// The kind of the argument or flag with this name.
    pub(super) fn kind(&self, name: &str) -> Option<Kind> {
        let argument = self.arguments.iter().find(|argument| argument.name == name);
        let flag = || self.flags.iter().find(|flag| flag.name == name)?.value;
        argument
            .map(|argument| argument.kind)
            .or_else(|| flag().map(|(_, kind)| kind))
    }

    /// `images list`
    pub fn name(&self) -> String {
        self.words.join(" ")
    }

    /// The fields that `--format` may name; none if only the answer can tell.
    pub fn fields(&self) -> Vec<&'static str> {
        let mut names: Vec<&str> = Vec::new();
        for name in self.views.iter().flat_map(|view| view.fields()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

impl Kind {
    /// Whether a word of this kind is looked up.
    pub(super) fn is_reference(self) -> bool {
        matches!(
            self,
            Self::Image
                | Self::Picture
                | Self::PictureOrPlaylist
                | Self::Folder
                | Self::FolderOrRoot
                | Self::Playlist
        )
    }
}

impl Argument {
    const fn new(name: &'static str, kind: Kind, arity: Arity, meaning: &'static str) -> Self {
        Self {
            name,
            kind,
            arity,
            default: None,
            meaning,
        }
    }

    pub(super) const fn one(name: &'static str, kind: Kind, meaning: &'static str) -> Self {
        Self::new(name, kind, Arity::One, meaning)
    }

    pub(super) const fn optional(name: &'static str, kind: Kind, meaning: &'static str) -> Self {
        Self::new(name, kind, Arity::Optional, meaning)
    }

    pub(super) const fn some(name: &'static str, kind: Kind, meaning: &'static str) -> Self {
        Self::new(name, kind, Arity::Some, meaning)
    }

    pub(super) const fn any(name: &'static str, kind: Kind, meaning: &'static str) -> Self {
        Self::new(name, kind, Arity::Any, meaning)
    }

    pub(super) const fn or(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }
}

impl Flag {
    pub(super) const fn switch(name: &'static str, meaning: &'static str) -> Self {
        Self {
            name,
            value: None,
            many: false,
            meaning,
        }
    }

    pub(super) const fn value(
        name: &'static str,
        value: &'static str,
        kind: Kind,
        meaning: &'static str,
    ) -> Self {
        Self {
            name,
            value: Some((value, kind)),
            many: false,
            meaning,
        }
    }

    pub(super) const fn many(mut self) -> Self {
        self.many = true;
        self
    }
}

/// Flags that every verb takes.
#[rustfmt::skip]
pub const GLOBAL: &[Flag] = &[
    Flag::value("--config", "FILE", Kind::File,
        "Configuration file, for `start`, `doctor`, `config path`, `config check`, `library \
               check` and `library restore`"),
    Flag::value("--log-level", "LEVEL", Kind::Words(LOG_LEVELS), "Log level of the daemon, for `start`"),
    Flag::value("--socket", "PATH", Kind::File, "Socket of the daemon"),
    Flag::switch("--json", "Print JSON"),
    Flag::value("--format", "TEMPLATE", Kind::Template,
        "Print one line per record, such as '{id}\\t{name}'"),
    Flag::switch("--quiet", "Print only rows, IDs, values and errors (short: -q)"),
    Flag::switch("--help", "Print help (short: -h)"),
    Flag::switch("--version", "Print the version (short: -V)"),
];

/// Flags of commands that read references from standard input.
pub(super) const NULL: Flag = Flag::switch(
    "-0",
    "Items on standard input are separated by NUL instead of newline",
);

pub(super) const LOG_LEVELS: &[&str] = &["debug", "info", "warn", "error"];
