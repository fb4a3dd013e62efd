//! The entry point: arguments in, exit code out. Runs the daemon, a client command, a check, `draw`
//! or `decode`.

use std::process::ExitCode;

use crate::cli::{self, Error, Next, Setting, Start};
use crate::config::{Key, Section};
use crate::daemon::{self, Options};
use crate::decode;
use crate::draw;

/// The whole executable.
pub fn main() -> ExitCode {
    if let Some(code) = draw::main().or_else(decode::main) {
        return code;
    }
    match cli::main(settings, daemon::listens_at) {
        Next::End(code) => code,
        Next::CheckConfig(file, report) => report.settings(&file, daemon::check(&file)),
        Next::CheckDatabase(config, report) => {
            report.database(daemon::check_database(&config).map_err(coded))
        }
        Next::RestoreDatabase(config, backup, report) => {
            report.restored(daemon::restore_database(&config, backup.as_deref()).map_err(coded))
        }
        Next::Examine(start, report) => report.findings(&daemon::examine(&options(start))),
        Next::TakeDown(start, report) => {
            report.taken_down(daemon::take_down(&options(start)).map_err(coded))
        }
        Next::Daemon(start) => match run(&options(start)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                let hint = error.hint();
                Error::of_daemon(error.exit_code(), hint.as_deref(), &error).report(false)
            }
        },
    }
}

fn run(options: &Options) -> Result<(), daemon::Error> {
    if options.detached {
        // It fails only for the leader of a group, which has a terminal of its own choice.
        rustix::process::setsid().ok();
    }
    daemon::run(options)
}

/// The settings that the command knows.
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

fn coded(error: daemon::Error) -> (u8, daemon::Error) {
    (error.exit_code(), error)
}

fn options(start: Start) -> Options {
    let level = |word: String| word.parse().expect("the command line has the schema's words");
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
    fn the_command_line_knows_every_log_level() {
        let flag = GLOBAL.iter().find(|flag| flag.name == "--log-level").unwrap();
        assert!(matches!(flag.value, Some((_, Kind::Words(words))) if words == LogLevel::WORDS));
        let start = Start { log_level: Some("warn".to_owned()), ..Start::default() };
        assert_eq!(options(start).log_level, Some(LogLevel::Warn));
    }
}
