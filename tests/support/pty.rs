//! Runs a program on a terminal: sends input, and reads its output and exit code.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Instant;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::{PATIENCE, end_of};

pub struct Pty {
    child: Child,
    master: File,
    shown: Receiver<Vec<u8>>,
    /// Output that was not waited for yet.
    text: Vec<u8>,
}

impl Pty {
    /// Runs a command of a [`super::TestDaemon`] on a terminal of this size.
    pub fn new(mut command: Command, columns: u16, rows: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = rustix::fs::open(
            name,
            OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .unwrap();
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&slave, size).unwrap();
        let end = |slave: &OwnedFd| Stdio::from(slave.try_clone().unwrap());
        command
            .stdin(end(&slave))
            .stdout(end(&slave))
            .stderr(end(&slave));
        let child = command.spawn().unwrap();
        // These hold descriptors of the terminal, which would keep it open after the program's end.
        drop((command, slave));
        let master = File::from(master);
        let mut reader = master.try_clone().unwrap();
        let (sender, shown) = channel();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            // Reading fails once no program has the terminal open.
            while let Ok(read @ 1..) = reader.read(&mut piece) {
                if sender.send(piece[..read].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self {
            child,
            master,
            shown,
            text: Vec::new(),
        }
    }

    pub fn types(&mut self, bytes: &[u8]) {
        self.master.write_all(bytes).unwrap();
    }

    /// Waits until `wanted` is shown; returns all output up to its end.
    #[track_caller]
    pub fn until(&mut self, wanted: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let found = self
                .text
                .windows(wanted.len())
                .position(|part| part == wanted.as_bytes());
            if let Some(at) = found {
                let rest = self.text.split_off(at + wanted.len());
                let before = std::mem::replace(&mut self.text, rest);
                return String::from_utf8_lossy(&before).into_owned();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.shown.recv_timeout(left) {
                Ok(piece) => self.text.extend(piece),
                Err(why) => panic!(
                    "{wanted:?} is not shown ({why}): {:?}",
                    String::from_utf8_lossy(&self.text)
                ),
            }
        }
    }

    /// Waits until the program has exited; returns its exit code and remaining output, with plain
    /// line ends.
    #[track_caller]
    pub fn end(mut self) -> (Option<i32>, String) {
        let code = end_of(self.child).code();
        loop {
            match self.shown.recv_timeout(PATIENCE) {
                Ok(piece) => self.text.extend(piece),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("somebody holds the terminal"),
            }
        }
        (
            code,
            String::from_utf8_lossy(&self.text).replace("\r\n", "\n"),
        )
    }
}
