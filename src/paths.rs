//! Where things live: the XDG base directories, and paths as people write them.
//!
//! Runs in whatever thread asks. Reads the environment only through [`Env`], and makes no directory
//! but the runtime directory that stands in for a missing `XDG_RUNTIME_DIR`.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, fs, io};

use rustix::fs::OFlags;

/// Bytes that the kernel takes in a path, in one name of it, and in the path of a socket.
const PATH_MAX: usize = 4095;
const NAME_MAX: usize = 255;
const SOCKET_MAX: usize = 107;
/// Where a login makes a directory for each user.
const SESSIONS: &str = "/run/user";

/// Opens a file for reading that must be a regular one: a pipe without a writer, or a device, holds
/// nobody up. What is opened is what is looked at, whatever lies at the path a moment later.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

/// A look-up of environment variables: the process's own, or a test's.
#[derive(Clone)]
pub struct Env(Arc<Lookup>);

type Lookup = dyn Fn(&str) -> Option<OsString> + Send + Sync;

impl Env {
    /// The process's own. A missing `HOME` is looked up in the user database.
    pub fn process() -> Self {
        Self::new(|name| match std::env::var_os(name) {
            None if name == "HOME" => std::env::home_dir().map(PathBuf::into_os_string),
            value => value,
        })
    }

    pub fn new(lookup: impl Fn(&str) -> Option<OsString> + Send + Sync + 'static) -> Self {
        Self(Arc::new(lookup))
    }

    pub fn var(&self, name: &str) -> Option<OsString> {
        (self.0)(name)
    }

    /// A variable that must hold an absolute path to count (XDG Base Directory Specification).
    fn absolute(&self, name: &str) -> Option<PathBuf> {
        self.var(name).map(PathBuf::from).filter(|path| path.is_absolute())
    }
}

impl<const N: usize> From<[(&'static str, &str); N]> for Env {
    fn from(pairs: [(&'static str, &str); N]) -> Self {
        let pairs = pairs.map(|(name, value)| (name, OsString::from(value)));
        Self::new(move |name| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| v.clone()))
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Env")
    }
}

/// The base directories of this user, with their fall-backs where a variable is unset or relative.
#[derive(Clone, Debug)]
pub struct Dirs {
    env: Env,
    home: PathBuf,
    config: PathBuf,
    data: PathBuf,
    cache: PathBuf,
    state: PathBuf,
}

impl Dirs {
    pub fn new(env: Env) -> Result<Self, Error> {
        let home = env.absolute("HOME").ok_or(Error::NoHome)?;
        let base = |name: &str, under: &str| env.absolute(name).unwrap_or_else(|| home.join(under));
        Ok(Self {
            config: base("XDG_CONFIG_HOME", ".config"),
            data: base("XDG_DATA_HOME", ".local/share"),
            cache: base("XDG_CACHE_HOME", ".cache"),
            state: base("XDG_STATE_HOME", ".local/state"),
            home,
            env,
        })
    }

    /// Of the running process.
    pub fn of_process() -> Result<Self, Error> {
        Self::new(Env::process())
    }

    pub fn env(&self) -> &Env {
        &self.env
    }

    pub fn home(&self) -> &Path {
        &self.home
    }

    /// `$XDG_CONFIG_HOME`; other programs' files are under it too.
    pub fn config_home(&self) -> &Path {
        &self.config
    }

    /// `$XDG_CONFIG_HOME/murald/config.toml`
    pub fn config_file(&self) -> PathBuf {
        self.config.join("murald/config.toml")
    }

    /// `$XDG_CONFIG_HOME/murald/themes`
    pub fn themes(&self) -> PathBuf {
        self.config.join("murald/themes")
    }

    /// `$XDG_DATA_HOME/murald`
    pub fn data(&self) -> PathBuf {
        self.data.join("murald")
    }

    /// `$XDG_CACHE_HOME/murald`
    pub fn cache(&self) -> PathBuf {
        self.cache.join("murald")
    }

    /// `$XDG_STATE_HOME/murald`
    pub fn state(&self) -> PathBuf {
        self.state.join("murald")
    }

    /// `$XDG_RUNTIME_DIR/murald.sock`
    pub fn socket(&self) -> Result<PathBuf, Error> {
        Ok(self.runtime()?.join("murald.sock"))
    }

    /// Where a client looks for the socket: one place, or where `XDG_RUNTIME_DIR` is unset, as for
    /// cron, every one that a daemon may have taken. Makes no directory.
    pub fn sockets(&self) -> Vec<PathBuf> {
        let places = match self.env.absolute("XDG_RUNTIME_DIR") {
            Some(path) => vec![path],
            None => {
                let session = session_directory(Path::new(SESSIONS), uid());
                session.into_iter().chain([self.temporary()]).collect()
            }
        };
        places.into_iter().map(|place| place.join("murald.sock")).collect()
    }

    /// `$XDG_RUNTIME_DIR`; where it is unset, `/run/user/<uid>` if that is ours, else `murald-<uid>`
    /// under the system's temporary directory, which is made if it is missing and refused if others
    /// could write to it.
    pub fn runtime(&self) -> Result<PathBuf, Error> {
        self.runtime_under(Path::new(SESSIONS))
    }

    fn runtime_under(&self, sessions: &Path) -> Result<PathBuf, Error> {
        let named = self.env.absolute("XDG_RUNTIME_DIR");
        match named.or_else(|| session_directory(sessions, uid())) {
            Some(path) => Ok(path),
            None => own_directory(self.temporary(), uid()),
        }
    }

    /// The last resort.
    fn temporary(&self) -> PathBuf {
        let temporary = self.env.absolute("TMPDIR").unwrap_or_else(|| "/tmp".into());
        temporary.join(format!("murald-{}", uid()))
    }

    /// A leading `~` replaced, and nothing else: for paths that name files, where `$` is a letter.
    pub fn tilde(&self, path: &Path) -> PathBuf {
        path.strip_prefix("~").map_or_else(|_| path.to_owned(), |rest| self.home.join(rest))
    }

    /// A path of the configuration: `~`, `$VAR` and `${VAR}` replaced. The XDG base directories
    /// count as set. What comes out must be absolute.
    pub fn expand(&self, written: &str) -> Result<PathBuf, Error> {
        let path = self.tilde(Path::new(&self.variables(written)?));
        let longest = path.iter().map(OsStr::len).max().unwrap_or_default();
        if !path.is_absolute() {
            Err(Error::Relative { written: written.to_owned() })
        } else if path.as_os_str().len() > PATH_MAX || longest > NAME_MAX {
            Err(Error::TooLong { path, max: if longest > NAME_MAX { NAME_MAX } else { PATH_MAX } })
        } else {
            Ok(path)
        }
    }

    /// The same for a socket, which the kernel allows less.
    pub fn expand_socket(&self, written: &str) -> Result<PathBuf, Error> {
        let path = self.expand(written)?;
        match path.as_os_str().len() > SOCKET_MAX {
            true => Err(Error::TooLong { path, max: SOCKET_MAX }),
            false => Ok(path),
        }
    }

    fn variables(&self, written: &str) -> Result<OsString, Error> {
        let mut out = Vec::with_capacity(written.len());
        let mut rest = written;
        while let Some(at) = rest.find('$') {
            out.extend_from_slice(&rest.as_bytes()[..at]);
            let (name, after) = match variable_name(&rest[at + 1..]) {
                Ok(Some(found)) => found,
                // A `$` that begins no name stands for itself.
                Ok(None) => {
                    out.push(b'$');
                    rest = &rest[at + 1..];
                    continue;
                }
                Err(()) => return Err(Error::Brace { written: written.to_owned() }),
            };
            let value = self.value(name)?.ok_or_else(|| Error::Unset {
                variable: name.to_owned(),
                written: written.to_owned(),
            })?;
            out.extend_from_slice(value.as_bytes());
            rest = after;
        }
        out.extend_from_slice(rest.as_bytes());
        Ok(OsString::from_vec(out))
    }

    fn value(&self, name: &str) -> Result<Option<OsString>, Error> {
        let base = match name {
            "HOME" => &self.home,
            "XDG_CONFIG_HOME" => &self.config,
            "XDG_DATA_HOME" => &self.data,
            "XDG_CACHE_HOME" => &self.cache,
            "XDG_STATE_HOME" => &self.state,
            "XDG_RUNTIME_DIR" => return Ok(Some(self.runtime()?.into_os_string())),
            _ => return Ok(self.env.var(name).filter(|value| !value.is_empty())),
        };
        Ok(Some(base.clone().into_os_string()))
    }
}

/// Why a place cannot be named.
#[derive(Debug)]
pub enum Error {
    /// Neither `HOME` nor the user database names a home directory.
    NoHome,
    /// The runtime directory under the system's temporary directory cannot be made or read.
    Runtime {
        path: PathBuf,
        source: io::Error,
    },
    /// It belongs to somebody else, is a link, or others may write to it.
    NotOurs {
        path: PathBuf,
    },
    Unset {
        variable: String,
        written: String,
    },
    /// `${` without its `}`, or with no name between.
    Brace {
        written: String,
    },
    Relative {
        written: String,
    },
    /// The kernel takes no more than `max` bytes: of a path, of a name in it or of a socket.
    TooLong {
        path: PathBuf,
        max: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHome => write!(f, "HOME is not set to an absolute path"),
            Self::Runtime { path, .. } => {
                write!(f, "cannot make the runtime directory {}", path.display())
            }
            Self::NotOurs { path } => write!(
                f,
                "{} is not a directory that only this user can write to: \
                 remove it, or set XDG_RUNTIME_DIR",
                path.display()
            ),
            Self::Unset { variable, written } => {
                write!(f, "the variable {variable} in the path {written:?} is not set")
            }
            Self::Brace { written } => {
                write!(f, "the path {written:?} has a ${{ that is not followed by NAME}}")
            }
            Self::Relative { written } => write!(f, "the path {written:?} is not absolute"),
            Self::TooLong { path, max } => {
                let what = match *max {
                    SOCKET_MAX => "as the path of a socket",
                    NAME_MAX => "in one of its names",
                    _ => "in all",
                };
                write!(f, "the path {path:?} is too long: it may have {max} bytes {what}")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Runtime { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// The name after a `$` and what follows it; `None` where no name begins.
fn variable_name(after: &str) -> Result<Option<(&str, &str)>, ()> {
    let (text, braced) = after.strip_prefix('{').map_or((after, false), |inner| (inner, true));
    let end = match text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
        _ if text.starts_with(|c: char| c.is_ascii_digit()) => 0,
        end => end.unwrap_or(text.len()),
    };
    let (name, rest) = text.split_at(end);
    match (braced, name.is_empty()) {
        (true, false) => rest.strip_prefix('}').map(|rest| Some((name, rest))).ok_or(()),
        (true, true) => Err(()),
        (false, false) => Ok(Some((name, rest))),
        (false, true) => Ok(None),
    }
}

fn uid() -> u32 {
    rustix::process::getuid().as_raw()
}

/// What a login makes for a user, if it is there and nobody else's.
fn session_directory(sessions: &Path, uid: u32) -> Option<PathBuf> {
    let path = sessions.join(uid.to_string());
    let found = fs::symlink_metadata(&path).ok()?;
    (found.is_dir() && found.uid() == uid && found.mode() & 0o022 == 0).then_some(path)
}

/// A directory of mode 0700 that belongs to `uid`, made if it is missing.
fn own_directory(path: PathBuf, uid: u32) -> Result<PathBuf, Error> {
    let failed = |source| Error::Runtime { path: path.clone(), source };
    match fs::DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    // Not through a link: it would be somebody else's choice where our socket goes.
    let found = fs::symlink_metadata(&path).map_err(failed)?;
    if !found.is_dir() || found.uid() != uid || found.mode() & 0o022 != 0 {
        return Err(Error::NotOurs { path });
    }
    if found.mode() & 0o077 != 0 {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).map_err(failed)?;
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_regular_file_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("file"), "x").unwrap();
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, at("fifo"), rustix::fs::FileType::Fifo, mode, 0)
            .unwrap();
        for name in ["file", "link"] {
            assert!(open_regular(&at(name)).is_ok());
        }
        for other in [at("fifo"), "/dev/null".into(), directory.path().to_owned()] {
            let refused = open_regular(&other).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{}", other.display());
        }
        assert_eq!(open_regular(&at("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    fn dirs() -> Dirs {
        Dirs::new(Env::from([
            ("HOME", "/home/mia"),
            ("XDG_CACHE_HOME", "relative"),
            ("XDG_DATA_HOME", "/data"),
            ("XDG_RUNTIME_DIR", "/run/user/7"),
            ("PICTURES", "/mnt/pictures"),
            ("EMPTY", ""),
        ]))
        .unwrap()
    }

    #[test]
    fn unset_and_relative_variables_fall_back() {
        let dirs = dirs();
        assert_eq!(dirs.config_file(), Path::new("/home/mia/.config/murald/config.toml"));
        assert_eq!(dirs.data(), Path::new("/data/murald"));
        assert_eq!(dirs.cache(), Path::new("/home/mia/.cache/murald"));
        assert_eq!(dirs.socket().unwrap(), Path::new("/run/user/7/murald.sock"));
        assert!(matches!(Dirs::new(Env::from([("HOME", "mia")])), Err(Error::NoHome)));
    }

    #[test]
    fn paths_are_expanded() {
        #[track_caller]
        fn check(written: &str, expected: Result<&str, &str>) {
            let found = dirs().expand(written).map_err(|error| error.to_string());
            assert_eq!(found, expected.map(PathBuf::from).map_err(str::to_owned));
        }
        check("~", Ok("/home/mia"));
        check("~/a b", Ok("/home/mia/a b"));
        check("$PICTURES/x", Ok("/mnt/pictures/x"));
        check("${PICTURES}x/${PICTURES}", Ok("/mnt/picturesx//mnt/pictures"));
        check("$XDG_CACHE_HOME/murald", Ok("/home/mia/.cache/murald"));
        check("$XDG_RUNTIME_DIR/murald.sock", Ok("/run/user/7/murald.sock"));
        check("/a/$/b$", Ok("/a/$/b$"));
        check("/price$5", Ok("/price$5"));
        check("$NONE/x", Err("the variable NONE in the path \"$NONE/x\" is not set"));
        check("${EMPTY}/x", Err("the variable EMPTY in the path \"${EMPTY}/x\" is not set"));
        check(
            "/${PICTURES",
            Err("the path \"/${PICTURES\" has a ${ that is not followed by NAME}"),
        );
        check("/${}", Err("the path \"/${}\" has a ${ that is not followed by NAME}"));
        check("~mia/x", Err("the path \"~mia/x\" is not absolute"));
        check("x", Err("the path \"x\" is not absolute"));
        let said = |written: &str| dirs().expand(written).unwrap_err().to_string();
        assert!(said(&format!("/{}", "x".repeat(256))).ends_with("255 bytes in one of its names"));
        assert!(said(&"/x".repeat(2048)).ends_with("4095 bytes in all"));
        let socket = |bytes: usize| dirs().expand_socket(&format!("/{}", "x".repeat(bytes - 1)));
        assert!(socket(107).is_ok());
        assert!(
            socket(108).unwrap_err().to_string().ends_with("107 bytes as the path of a socket")
        );
    }

    #[test]
    fn a_dollar_in_a_file_s_name_is_a_letter() {
        assert_eq!(dirs().tilde(Path::new("~/$HOME.png")), Path::new("/home/mia/$HOME.png"));
        assert_eq!(dirs().tilde(Path::new("/~/x")), Path::new("/~/x"));
    }

    #[test]
    fn a_runtime_directory_is_made_or_refused() {
        let temporary = tempfile::tempdir().unwrap();
        let tmp = temporary.path().to_str().unwrap().to_owned();
        let dirs = Dirs::new(Env::new(move |name| match name {
            "HOME" => Some("/home/mia".into()),
            "TMPDIR" => Some(tmp.clone().into()),
            _ => None,
        }))
        .unwrap();
        let none = temporary.path().join("none");
        let runtime = || dirs.runtime_under(&none);
        let path = runtime().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(runtime().unwrap(), path);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(runtime(), Err(Error::NotOurs { .. })));
        fs::remove_dir(&path).unwrap();
        std::os::unix::fs::symlink(temporary.path(), &path).unwrap();
        assert!(matches!(runtime(), Err(Error::NotOurs { .. })));
        fs::remove_file(&path).unwrap();
        fs::write(&path, "").unwrap();
        assert!(matches!(runtime(), Err(Error::NotOurs { .. })));
        assert!(matches!(
            own_directory(temporary.path().to_owned(), u32::MAX),
            Err(Error::NotOurs { .. })
        ));
    }

    #[test]
    fn a_session_s_directory_counts_where_it_is_ours() {
        let sessions = tempfile::tempdir().unwrap();
        let own = sessions.path().join(uid().to_string());
        let dirs = Dirs::new(Env::from([("HOME", "/home/mia")])).unwrap();
        assert_eq!(session_directory(sessions.path(), uid()), None);
        fs::create_dir(&own).unwrap();
        fs::set_permissions(&own, fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(dirs.runtime_under(sessions.path()).unwrap(), own);
        assert_eq!(session_directory(sessions.path(), uid() + 1), None);
        fs::set_permissions(&own, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(session_directory(sessions.path(), uid()), None);
        assert_eq!(self::dirs().sockets(), [Path::new("/run/user/7/murald.sock")]);
    }
}
