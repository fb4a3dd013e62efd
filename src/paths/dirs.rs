//! Finds the XDG base directories, and expands paths in the configuration.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;

use super::env::replaced;
use super::env::{own_directory, session_directory, uid};
use super::{Env, Error, NAME_MAX, PATH_MAX, SOCKET_MAX};

/// The parent of the runtime directories of login sessions.
const SESSIONS: &str = "/run/user";

/// The base directories of this user, with the defaults for variables that are unset or relative.
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

    pub fn from_process() -> Result<Self, Error> {
        Self::new(Env::process())
    }

    pub fn env(&self) -> &Env {
        &self.env
    }

    pub fn home(&self) -> &Path {
        &self.home
    }

    /// `$XDG_CONFIG_HOME`, which has files of other programs, too.
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

    /// Returns the paths at which a client looks for the socket. If `XDG_RUNTIME_DIR` is unset, as
    /// in cron jobs, there may be several. Creates no directory.
    pub fn sockets(&self) -> Vec<PathBuf> {
        let is_set = self.env.absolute("XDG_RUNTIME_DIR").is_some();
        let temporary = (!is_set).then(|| self.temporary());
        self.session()
            .into_iter()
            .chain(temporary)
            .map(|place| place.join("murald.sock"))
            .collect()
    }

    /// `$XDG_RUNTIME_DIR`, or `/run/user/<uid>` if the variable is unset and that directory belongs
    /// to this user.
    pub fn session(&self) -> Option<PathBuf> {
        self.session_under(Path::new(SESSIONS))
    }

    fn session_under(&self, sessions: &Path) -> Option<PathBuf> {
        let named = self.env.absolute("XDG_RUNTIME_DIR");
        named.or_else(|| session_directory(sessions, uid()))
    }

    /// `$XDG_RUNTIME_DIR` if set; otherwise `/run/user/<uid>` if that belongs to this user;
    /// otherwise `murald-<uid>` in the system's temporary directory, which is created if it is
    /// missing and refused if others could write to it.
    pub fn runtime(&self) -> Result<PathBuf, Error> {
        self.runtime_under(Path::new(SESSIONS))
    }

    fn runtime_under(&self, sessions: &Path) -> Result<PathBuf, Error> {
        match self.session_under(sessions) {
            Some(path) => Ok(path),
            None => own_directory(self.temporary(), uid()),
        }
    }

    /// The fallback in the temporary directory.
    fn temporary(&self) -> PathBuf {
        let temporary = self.env.absolute("TMPDIR").unwrap_or_else(|| "/tmp".into());
        temporary.join(format!("murald-{}", uid()))
    }

    /// Expands a leading `~`, or reads a `file://` URI, and nothing else: in names of files, `$` is
    /// an ordinary character.
    pub fn tilde(&self, path: &Path) -> PathBuf {
        if let Some(path) = path.to_str().and_then(from_uri) {
            return path;
        }
        path.strip_prefix("~")
            .map_or_else(|_| path.to_owned(), |rest| self.home.join(rest))
    }

    /// Expands `~`, `$VAR` and `${VAR}` in a path of the configuration. The XDG base directories
    /// always have a value. The result must be absolute.
    pub fn expand(&self, written: &str) -> Result<PathBuf, Error> {
        let path = self.tilde(Path::new(&replaced(written, |name| self.value(name))?));
        let longest = path.iter().map(OsStr::len).max().unwrap_or_default();
        if !path.is_absolute() {
            Err(Error::Relative {
                written: written.to_owned(),
            })
        } else if path.as_os_str().len() > PATH_MAX || longest > NAME_MAX {
            Err(Error::TooLong {
                path,
                max: if longest > NAME_MAX {
                    NAME_MAX
                } else {
                    PATH_MAX
                },
            })
        } else {
            Ok(path)
        }
    }

    /// Expands the path of a socket, for which the kernel has a lower limit.
    pub fn expand_socket(&self, written: &str) -> Result<PathBuf, Error> {
        let path = self.expand(written)?;
        if path.as_os_str().len() > SOCKET_MAX {
            Err(Error::TooLong {
                path,
                max: SOCKET_MAX,
            })
        } else {
            Ok(path)
        }
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

/// Returns the path of a local `file://` URI, percent-decoded; `None` for anything else.
pub(crate) fn from_uri(text: &str) -> Option<PathBuf> {
    let (scheme, rest) = text.split_at_checked("file:".len())?;
    let path = rest
        .strip_prefix("//localhost")
        .or_else(|| rest.strip_prefix("//"))
        .unwrap_or(rest);
    if !scheme.eq_ignore_ascii_case("file:") || !path.starts_with('/') {
        return None;
    }
    let bytes: Vec<u8> = percent_decode_str(path).collect();
    (!bytes.contains(&0)).then(|| OsString::from_vec(bytes).into())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

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
    fn defaults_replace_unset_and_relative_variables() {
        let dirs = dirs();
        assert_eq!(
            dirs.config_file(),
            Path::new("/home/mia/.config/murald/config.toml")
        );
        assert_eq!(dirs.data(), Path::new("/data/murald"));
        assert_eq!(dirs.cache(), Path::new("/home/mia/.cache/murald"));
        assert_eq!(dirs.socket().unwrap(), Path::new("/run/user/7/murald.sock"));
        assert!(matches!(
            Dirs::new(Env::from([("HOME", "mia")])),
            Err(Error::NoHome)
        ));
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
        check(
            "${PICTURES}x/${PICTURES}",
            Ok("/mnt/picturesx//mnt/pictures"),
        );
        check("$XDG_CACHE_HOME/murald", Ok("/home/mia/.cache/murald"));
        check(
            "$XDG_RUNTIME_DIR/murald.sock",
            Ok("/run/user/7/murald.sock"),
        );
        check("/a/$/b$", Ok("/a/$/b$"));
        check("/price$5", Ok("/price$5"));
        check(
            "$NONE/x",
            Err("the variable NONE in the path \"$NONE/x\" is not set"),
        );
        check(
            "${EMPTY}/x",
            Err("the variable EMPTY in the path \"${EMPTY}/x\" is not set"),
        );
        check(
            "/${PICTURES",
            Err("incomplete ${NAME} in the path \"/${PICTURES\""),
        );
        check("/${}", Err("incomplete ${NAME} in the path \"/${}\""));
        check("~mia/x", Err("the path \"~mia/x\" is not absolute"));
        check("x", Err("the path \"x\" is not absolute"));
        let said = |written: &str| dirs().expand(written).unwrap_err().to_string();
        assert!(said(&format!("/{}", "x".repeat(256))).ends_with("255 bytes in one component)"));
        assert!(said(&"/x".repeat(2048)).ends_with("4095 bytes in total)"));
        let socket = |bytes: usize| dirs().expand_socket(&format!("/{}", "x".repeat(bytes - 1)));
        assert!(socket(107).is_ok());
        assert!(
            socket(108)
                .unwrap_err()
                .to_string()
                .ends_with("107 bytes as the path of a socket)")
        );
    }

    #[test]
    fn dollar_in_a_file_name_is_not_expanded() {
        assert_eq!(
            dirs().tilde(Path::new("~/$HOME.png")),
            Path::new("/home/mia/$HOME.png")
        );
        assert_eq!(dirs().tilde(Path::new("/~/x")), Path::new("/~/x"));
        assert_eq!(dirs().tilde(Path::new("file:///a%20b")), Path::new("/a b"));
    }

    #[test]
    fn runtime_directory_is_created_or_refused() {
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
    fn session_directory_is_used_only_if_it_belongs_to_the_user() {
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
        assert_eq!(
            self::dirs().sockets(),
            [Path::new("/run/user/7/murald.sock")]
        );
    }

    #[test]
    fn file_uris_are_converted_to_paths() {
        let check = |text: &str, expected: Option<&[u8]>| {
            let path = from_uri(text);
            assert_eq!(
                path.as_deref().map(|path| path.as_os_str().as_bytes()),
                expected,
                "{text}"
            );
        };
        check(
            "file:///a%20b/%C3%B6%25.png",
            Some("/a b/ö%.png".as_bytes()),
        );
        check("FILE://localhost/a#b?c", Some(b"/a#b?c"));
        check("file:/a/%ff%zz", Some(b"/a/\xff%zz"));
        for other in [
            "file://host/a",
            "file:a",
            "file://",
            "file:///a%00b",
            "/a",
            "http:///a",
            "",
        ] {
            check(other, None);
        }
    }
}
