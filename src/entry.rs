//! The entry point of the executable: runs the daemon, a client command, a check, `draw` or
//! `decode`.

use std::process::ExitCode;

use crate::cli::{self, Error, Exit, Host, Setting, Start};
use crate::config::{Key, Section};
use crate::daemon::{self, Options};
use crate::decode;
use crate::draw;
use crate::error_chain::chain;

/// Runs the executable.
pub fn main() -> ExitCode {
    draw::main()
        .or_else(decode::main)
        .unwrap_or_else(|| cli::main(&HOST))
}

static HOST: Host = Host {
    settings,
    listens_at: daemon::listens_at,
    run: |start| run(&options(start)).map_err(told),
    examine: |start| daemon::examine(&options(start)),
    take_down: |start| daemon::take_down(&options(start)).map_err(told),
    check_config: |file| {
        daemon::check(file).map_err(|error| Error::new(Exit::Config, chain(&error)))
    },
    check_database: |config| daemon::check_database(config).map_err(told),
    restore_database: |config, from| daemon::restore_database(config, from).map_err(told),
};

fn run(options: &Options) -> Result<(), daemon::Error> {
    if options.detached {
        // Fails only for a process group leader, which a user has started on a terminal.
        rustix::process::setsid().ok();
    }
    daemon::run(options)
}

/// Returns all settings, for the client commands.
fn settings() -> Vec<Setting> {
    let all = Section::ALL.into_iter().flat_map(|section| {
        let of = move |key: &Key| Setting {
            section: section.heading(),
            key: key.name,
            words: key.words(),
        };
        section.keys().iter().map(of)
    });
    all.collect()
}

fn told(error: daemon::Error) -> Error {
    Error::from_daemon(error.exit_code(), error.hint().as_deref(), &error)
}

fn options(start: Start) -> Options {
    let level = |word: String| {
        word.parse()
            .expect("the command line has the schema's words")
    };
    Options {
        config: start.config,
        log_level: start.log_level.map(level),
        socket: start.socket,
        detached: start.detached,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::GLOBAL;
    use crate::cli::Kind;
    use crate::config::LogLevel;

    #[test]
    fn log_level_flag_accepts_all_levels() {
        let flag = GLOBAL
            .iter()
            .find(|flag| flag.name == "--log-level")
            .unwrap();
        assert!(matches!(flag.value, Some((_, Kind::Words(words))) if words == LogLevel::WORDS));
        let start = Start {
            log_level: Some("warn".to_owned()),
            ..Start::default()
        };
        assert_eq!(options(start).log_level, Some(LogLevel::Warn));
    }
}
