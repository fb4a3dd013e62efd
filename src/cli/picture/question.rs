//! Asks the terminal which graphics protocol it has, and waits a moment for the answer.
//!
//! Every terminal answers the request for its attributes (DA1), so that request comes last: an answer
//! that has not come by then will not come.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};

use super::super::Error;
use super::super::error::Exit;
use super::Way;
use crate::sys::poll_until;

/// Every terminal answers, over a slow line late: what came after we have gone would be typed into
/// the shell.
const PATIENCE: Duration = Duration::from_secs(3);
/// What Ctrl-C types.
const INTERRUPT: u8 = 3;
/// A picture of one pixel that is not shown, then the attributes.
const QUESTION: &[u8] = b"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\\x1b[c";

pub(super) fn ask() -> Result<Way, Error> {
    let stdin = io::stdin();
    // The kernel's console prints the first question instead of passing it over.
    let console = std::env::var_os("TERM").is_some_and(|term| term == "linux");
    if !stdin.is_terminal() || console {
        return Ok(Way::Blocks);
    }
    let Some(_raw) = Raw::enter() else { return Ok(Way::Blocks) };
    let mut stdout = io::stdout();
    if stdout.write_all(QUESTION).and_then(|()| stdout.flush()).is_err() {
        return Ok(Way::Blocks);
    }
    let answer = answer(Instant::now() + PATIENCE);
    match answer.contains(&INTERRUPT) {
        true => Err(Error::new(Exit::Interrupted, "interrupted")),
        false => Ok(understand(&answer)),
    }
}

fn answer(until: Instant) -> Vec<u8> {
    let stdin = io::stdin();
    let mut all = Vec::new();
    while !is_whole(&all) {
        let mut asked = [PollFd::new(&stdin, PollFlags::IN)];
        if !poll_until(&mut asked, Some(until)).unwrap_or(false) {
            break;
        }
        let mut piece = [0; 256];
        // Past std's buffer: what a person types meanwhile is not ours to keep.
        match rustix::io::read(&stdin, &mut piece) {
            Ok(read @ 1..) => all.extend_from_slice(&piece[..read]),
            _ => break,
        }
    }
    all
}

/// The answer to the last question has come: `ESC [ ? ... c`.
fn is_whole(answer: &[u8]) -> bool {
    attributes(answer).is_some() || answer.contains(&INTERRUPT)
}

fn attributes(answer: &[u8]) -> Option<&[u8]> {
    let start = answer.windows(3).position(|bytes| bytes == b"\x1b[?")? + 3;
    let length = answer[start..].iter().position(|&byte| byte == b'c')?;
    Some(&answer[start..start + length])
}

fn understand(answer: &[u8]) -> Way {
    /// In a terminal's attributes: it knows sixels.
    const SIXEL: &[u8] = b"4";
    if answer.windows(9).any(|bytes| bytes == b"\x1b_Gi=31;O") {
        return Way::Kitty;
    }
    // The first number is the kind of terminal.
    let mut known = attributes(answer).unwrap_or_default().split(|&byte| byte == b';').skip(1);
    if known.any(|number| number == SIXEL) { Way::Sixel } else { Way::Blocks }
}

/// The terminal without echo and lines, until this is dropped.
struct Raw(Termios);

impl Raw {
    fn enter() -> Option<Self> {
        let before = tcgetattr(io::stdin()).ok()?;
        let mut raw = before.clone();
        // Ctrl-C is read: if it ended us here, the terminal would stay as it is now.
        raw.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        raw.special_codes[SpecialCodeIndex::VMIN] = 0;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(io::stdin(), OptionalActions::Now, &raw).ok()?;
        Some(Self(before))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // The terminal may have gone.
        tcsetattr(io::stdin(), OptionalActions::Now, &self.0).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_terminals() {
        #[track_caller]
        fn check(answer: &str, whole: bool, expected: Way) {
            assert_eq!(is_whole(answer.as_bytes()), whole);
            assert_eq!(understand(answer.as_bytes()), expected);
        }
        check("", false, Way::Blocks);
        check("\x1b_Gi=31;OK\x1b\\\x1b[?62;c", true, Way::Kitty);
        check("\x1b[?62;4;22c", true, Way::Sixel);
        check("\x1b[?4;22c", true, Way::Blocks);
        check("\x1b[?64;1;22c", true, Way::Blocks);
        check("\x1b[?64;4", false, Way::Blocks);
        check("\x1b_Gi=31;EINVAL:no\x1b\\\x1b[?1;2c", true, Way::Blocks);
    }
}
