//! Reads the event stream, item by item.

use std::io::{self, Read};

use super::Error;
use super::connection::{Connection, RequestPath};

/// One item of the stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Item {
    Event {
        kind: String,
        /// One line of JSON.
        data: String,
    },
    /// The number of events that were dropped before the next one.
    Lost(u64),
}

/// Reads a stream; keepalives are skipped.
pub(super) struct Events<R> {
    reader: R,
    buffer: Vec<u8>,
    /// The number of bytes of `buffer` that are read already.
    used: usize,
}

/// Subscribes to events of these types.
pub(super) fn listen(
    connection: &Connection,
    types: &str,
) -> Result<Events<impl Read + use<>>, Error> {
    let place = RequestPath::new(&[&"events"]).query("types", Some(types));
    Ok(Events::new(connection.stream(&place)?))
}

impl<R: Read> Events<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader,
            buffer: Vec::new(),
            used: 0,
        }
    }

    /// The next item; `None` at the clean end of the stream. `ErrorKind::Interrupted` means that the
    /// connection was interrupted.
    pub(super) fn next(&mut self) -> io::Result<Option<Item>> {
        let (mut kind, mut data) = (String::new(), String::new());
        while let Some(line) = self.line()? {
            if line.is_empty() {
                if !data.is_empty() {
                    return Ok(Some(Item::Event { kind, data }));
                }
            } else if let Some(count) = line.strip_prefix(": lost ") {
                return Ok(Some(Item::Lost(count.trim().parse().unwrap_or(1))));
            } else if let Some(name) = line.strip_prefix("event:") {
                kind = name.trim().to_owned();
            } else if let Some(more) = line.strip_prefix("data:") {
                data.push_str(more.trim());
            }
        }
        Ok(None)
    }

    fn line(&mut self) -> io::Result<Option<String>> {
        let mut searched = self.used;
        loop {
            if let Some(at) = self.buffer[searched..]
                .iter()
                .position(|&byte| byte == b'\n')
            {
                let line = &self.buffer[self.used..searched + at];
                let line = String::from_utf8_lossy(line)
                    .trim_end_matches('\r')
                    .to_owned();
                self.used = searched + at + 1;
                return Ok(Some(line));
            }
            self.buffer.drain(..self.used);
            self.used = 0;
            searched = self.buffer.len();
            let mut piece = [0; 8192];
            // Not through `BufRead`, which would retry an interrupted read.
            match self.reader.read(&mut piece)? {
                0 => return Ok(None),
                read => self.buffer.extend_from_slice(&piece[..read]),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time.
    struct Drops<'a>(&'a [u8]);

    impl Read for Drops<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let most = buffer.len().min(1);
            self.0.read(&mut buffer[..most])
        }
    }

    #[test]
    fn items_are_read_from_pieces_of_any_size() {
        let stream = ": keepalive\n\nevent: a\ndata: {\"x\":1}\n\n: lost 3\nevent:b\r\ndata:{}\r\n\r\n\
                      event: cut\ndata: {";
        let event = |kind: &str, data: &str| Item::Event {
            kind: kind.into(),
            data: data.into(),
        };
        let expected = [event("a", "{\"x\":1}"), Item::Lost(3), event("b", "{}")];
        let mut whole = Events::new(stream.as_bytes());
        let mut drops = Events::new(Drops(stream.as_bytes()));
        for item in expected {
            assert_eq!(whole.next().unwrap().as_ref(), Some(&item));
            assert_eq!(drops.next().unwrap(), Some(item));
        }
        assert_eq!(whole.next().unwrap(), None);
        assert_eq!(drops.next().unwrap(), None);
    }
}
