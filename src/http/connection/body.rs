//! Reads the body of a request: with a known length, or in chunks.

use std::time::Instant;

use super::{Connection, LATE, Stop};
use crate::http::parse::{Framing, Refusal};

/// Bytes of the lines around chunks, including extensions and trailers, and how many more are
/// allowed for each byte of a chunk: a one-byte chunk takes 5.
const LINES: usize = 32 << 10;
const PER_BYTE: usize = 6;

const BAD_CHUNKS: Stop = Stop::Refuse(Refusal {
    status: 400,
    why: "the chunks are malformed",
});
const TOO_LARGE: Stop = Stop::Refuse(Refusal {
    status: 413,
    why: "the body is larger than 8 MiB",
});

/// When the body began, and when its last piece arrived.
struct Progress {
    since: Instant,
    last: Instant,
}

impl Connection<'_> {
    /// Reads the body after a head.
    pub(super) fn body(&mut self, framing: Framing) -> Result<Vec<u8>, Stop> {
        let length = framing.length();
        if framing.wants_continue && length != Some(0) && self.input.is_empty() {
            self.output
                .extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        let Some(length) = length else {
            return self.chunks();
        };
        let mut body = Vec::new();
        self.fill_body(&mut body, length, &mut Progress::new())?;
        Ok(body)
    }

    /// Appends to the body until it has `length` bytes.
    fn fill_body(
        &mut self,
        body: &mut Vec<u8>,
        length: usize,
        progress: &mut Progress,
    ) -> Result<(), Stop> {
        loop {
            let unread = self.input.unread();
            let piece = unread.len().min(length - body.len());
            body.extend_from_slice(&unread[..piece]);
            self.input.consume(piece);
            if body.len() == length {
                return Ok(());
            }
            self.input.expect(length - body.len());
            self.more(progress)?;
        }
    }

    /// RFC 9112, 7.1: extensions and the trailer section are read and ignored.
    fn chunks(&mut self) -> Result<Vec<u8>, Stop> {
        let (mut body, mut progress, mut left) = (Vec::new(), Progress::new(), LINES);
        loop {
            let size = chunk_size(&self.line(&mut left, &mut progress)?)?;
            if size > self.shared.limits.body - body.len() {
                return Err(TOO_LARGE);
            }
            if size == 0 {
                break;
            }
            let length = body.len() + size;
            self.fill_body(&mut body, length, &mut progress)?;
            if !self.line(&mut left, &mut progress)?.is_empty() {
                return Err(BAD_CHUNKS);
            }
            left = (left + PER_BYTE * size).min(LINES);
        }
        loop {
            match self.line(&mut left, &mut progress)? {
                line if line.is_empty() => return Ok(body),
                field if !field.contains(&b':') => return Err(BAD_CHUNKS),
                _ => {}
            }
        }
    }

    /// A line around the chunks, without its end.
    fn line(&mut self, left: &mut usize, progress: &mut Progress) -> Result<Vec<u8>, Stop> {
        let mut line = Vec::new();
        loop {
            let unread = self.input.unread();
            let end = unread.iter().position(|&byte| byte == b'\n');
            let piece = end.map_or(unread.len(), |end| end + 1);
            *left = left.checked_sub(piece).ok_or(BAD_CHUNKS)?;
            line.extend_from_slice(&unread[..piece]);
            self.input.consume(piece);
            if end.is_some() {
                let line = line
                    .strip_suffix(b"\r\n")
                    .filter(|line| !line.contains(&b'\r'));
                return line.map(<[u8]>::to_vec).ok_or(BAD_CHUNKS);
            }
            self.more(progress)?;
        }
    }

    /// Waits for more of the body.
    fn more(&mut self, progress: &mut Progress) -> Result<(), Stop> {
        let limits = &self.shared.limits;
        let pause = progress.last + limits.body_pause;
        let deadline = pause.min(progress.since + limits.body_time);
        self.fill(|| deadline, LATE)?;
        progress.last = Instant::now();
        Ok(())
    }
}

impl Progress {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            since: now,
            last: now,
        }
    }
}

/// The size on the line of a chunk, without its extensions.
fn chunk_size(line: &[u8]) -> Result<usize, Stop> {
    let digits = line
        .split(|&byte| byte == b';')
        .next()
        .unwrap_or_default()
        .trim_ascii_end();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(BAD_CHUNKS);
    }
    let size = std::str::from_utf8(digits).ok();
    // The text has only digits: a number that does not parse is too large.
    Ok(size
        .and_then(|size| usize::from_str_radix(size, 16).ok())
        .unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunk_sizes_are_read() {
        let check = |line: &str, expected: Option<usize>| {
            assert_eq!(chunk_size(line.as_bytes()).ok(), expected, "{line:?}");
        };
        check("0", Some(0));
        check("00", Some(0));
        check("Ff", Some(255));
        check("a;name=value", Some(10));
        check("a ;x", Some(10));
        check("ffffffffffffffff", Some(usize::MAX));
        check("10000000000000000000000", Some(usize::MAX));
        for bad in ["", ";x", " 1", "+1", "-1", "0x1", "g", "1 1"] {
            check(bad, None);
        }
    }
}
