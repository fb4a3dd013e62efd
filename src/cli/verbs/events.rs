//! `murald events`: prints each event as a line.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FileType, fstat};

use super::{
    Call, Error, Events, Exit, Flag, Item, Kind, RequestPath, Stdout, Verb, View, more, warn,
};
use crate::wire::EventKind;

#[rustfmt::skip]
pub(super) const VERB: Verb =
    Verb::own(&["events"], "Print events as lines of JSON", events)
        .flags(&[Flag::value("--types", "A,B", Kind::List(EventKind::WORDS), "Only events of these \
               types")])
        .shows(&[&EVENT])
        .help("A line is {\"event\": TYPE, \"data\": FIELDS}. If events are lost because the output \
               is read too slowly, standard error says how \
               many. Exits with 69 when the daemon stops, and with 0 when its output is closed.");
pub(super) const EVENT: View = View::new("", &[more("event data")]);

fn events(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let mut connection = call.connect()?;
    if let Some(reader) = reader_s_end() {
        connection = connection.interruptible(reader);
    }
    let place = RequestPath::new(&[&"events"]).query("types", call.query("--types"));
    let mut events = match connection.stream(&place) {
        Ok(stream) => Events::new(stream),
        Err(error) if error.is_interrupt() => return Ok(()),
        Err(error) => return Err(error),
    };
    loop {
        match events.next() {
            Ok(Some(item)) => print(stdout, &item)?,
            Ok(None) => {
                return Err(Error::new(Exit::Unavailable, "the daemon has stopped"));
            }
            // The reader of the output has closed it.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(Error::lost_daemon(error)),
        }
    }
}

/// Prints an event as a line, and the number of lost events to stderr.
pub(super) fn print(stdout: &mut Stdout, item: &Item) -> Result<(), Error> {
    match item {
        Item::Event { kind, data } => {
            let line = format!("{{\"event\":\"{kind}\",\"data\":{data}}}");
            match serde_json::from_str(&line) {
                Ok(event) if stdout.has_template() => {
                    stdout.data(&event).and_then(|()| stdout.flush())
                }
                _ => stdout.body(line.as_bytes()),
            }
        }
        Item::Lost(count) => {
            warn(format!("{count} events were lost"));
            Ok(())
        }
    }
}

/// Standard output, if it is a pipe. It hangs up when its reader closes it, even without any event.
fn reader_s_end() -> Option<OwnedFd> {
    let stdout = io::stdout();
    let is_pipe =
        fstat(&stdout).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo);
    if is_pipe {
        stdout.as_fd().try_clone_to_owned().ok()
    } else {
        None
    }
}
