//! Runs the threads that paint, so that the drawing loop never waits for a file.
//!
//! `Painting` paints pictures once; its result is dropped if the change was cancelled. `Animation` has a
//! thread for each output that shows an animated picture, and paints one frame ahead. It waits until the
//! next frame is wanted, so that a covered output uses no processor time.

use std::io::{self, BufReader};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, channel, sync_channel};
use std::time::Duration;

use super::message::Outcome;
use super::paint::{self, Painted, STACK, Task, paint};
use super::storage::Storage;
use crate::paths::open_regular;
use crate::sys::{Cancel, CancelOnDrop, Waker};
use crate::{media, memory, thread};

/// The result of a painting.
type Finished = Result<Vec<Painted>, Outcome>;

/// A painting in progress.
pub(super) struct Painting {
    pub(super) tasks: Vec<Task>,
    result: Receiver<Finished>,
    /// Set once the result is there, or will never be.
    done: Cancel,
}

impl Painting {
    pub(super) fn start(tasks: Vec<Task>) -> io::Result<Self> {
        let done = Cancel::new()?;
        let (send, result) = channel();
        // Dropped in this order, even by a panic: the channel closes before `done` wakes the receiver.
        let ends = (send, CancelOnDrop(done.clone()));
        let own = tasks.clone();
        let work = move || {
            // The receiver of a cancelled painting is gone.
            ends.0.send(paint(&own)).ok();
            drop(ends);
            memory::trim();
        };
        // A cancelled painting ends by itself.
        thread::expendable("paint", STACK, work)?.leave();
        Ok(Self {
            tasks,
            result,
            done,
        })
    }

    /// Readable once [`Self::take`] returns a result.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.done.as_fd()
    }

    /// The finished painting; `None` while it is in progress.
    pub(super) fn take(&self) -> Option<Finished> {
        let lost = || Outcome::Refused("the painting thread has failed".to_owned());
        self.done
            .is_cancelled()
            .then(|| self.result.recv().unwrap_or_else(|_| Err(lost())))
    }
}

pub(super) struct Animation {
    frames: Receiver<(Storage, Duration)>,
    waker: Arc<Waker>,
}

/// The state of the next frame.
pub(super) enum NextFrame {
    /// The frame, and how long it is shown.
    Ready(Arc<Storage>, Duration),
    NotYet,
    /// The file is gone or damaged, so the last frame stays.
    Never,
}

impl Animation {
    pub(super) fn start(task: Task) -> io::Result<Self> {
        let (send, frames) = sync_channel(1);
        let waker = Arc::new(Waker::new()?);
        // Dropped in this order, even if a decoder panics: the channel closes before the wake-up.
        let ends = (send, Ring(Arc::clone(&waker)));
        let play = move || {
            let (send, ring) = &ends;
            while run(&task, send, ring) {}
        };
        thread::expendable("animation", STACK, play)?.leave();
        Ok(Self { frames, waker })
    }

    pub(super) fn next(&self) -> NextFrame {
        self.waker.reset();
        match self.frames.try_recv() {
            Ok((frame, stays)) => NextFrame::Ready(Arc::new(frame), stays),
            Err(TryRecvError::Empty) => NextFrame::NotYet,
            Err(TryRecvError::Disconnected) => NextFrame::Never,
        }
    }
}

impl AsFd for Animation {
    /// Readable when there is something new about the next frame.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}

/// Also wakes the loop when it is dropped, after which there are no more frames.
struct Ring(Arc<Waker>);

impl Drop for Ring {
    fn drop(&mut self) {
        self.0.wake();
    }
}

/// Plays the file once; returns whether to play it again.
fn run(task: &Task, send: &SyncSender<(Storage, Duration)>, ring: &Ring) -> bool {
    let Ok(file) = open_regular(Path::new(&task.wanted.path)) else {
        return false;
    };
    let mut file = BufReader::new(file);
    let Ok(probe) = media::probe(&mut file) else {
        return false;
    };
    let natural = (probe.width, probe.height);
    let mut count = 0_u32;
    let mut is_wanted = true;
    let gone_through = probe.frames(&mut file, &mut |picture, stays| {
        let sent = paint::frame(&picture, natural, task)
            .is_ok_and(|frame| send.send((frame, stays)).is_ok());
        ring.0.wake();
        (count, is_wanted) = (count.saturating_add(1), sent);
        sent
    });
    // A damaged file is played again if it has several intact frames.
    is_wanted && count > if gone_through.is_ok() { 0 } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::super::message::{Style, Wanted};
    use super::*;
    use crate::wire::{Fit, Position};

    /// Plays an animation of three frames, of which the one of this number is damaged. Returns how many
    /// are painted, and whether it plays again.
    fn played(damaged: usize) -> (usize, bool) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("video.png");
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, 8, 4);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_animated(3, 0).unwrap();
        let mut writer = encoder.write_header().unwrap();
        (0..3).for_each(|n| writer.write_image_data(&[n * 90; 96]).unwrap());
        writer.finish().unwrap();
        let data = |at: &usize| matches!(&bytes[*at..at + 4], b"IDAT" | b"fdAT" | b"IEND");
        // Damages 16 bytes behind the type of a chunk; the last chunk has none to damage.
        let at = (0..bytes.len() - 3).filter(data).nth(damaged).unwrap() + 8;
        bytes
            .iter_mut()
            .skip(at)
            .take(16)
            .for_each(|byte| *byte = !*byte);
        std::fs::write(&path, &bytes).unwrap();
        let position = Position::CENTER;
        let style = Style {
            fit: Fit::Fill,
            position,
            fill: [0; 3],
            span: None,
            animate: true,
        };
        let output = "A".to_owned();
        let content = String::new();
        let wanted = Wanted {
            output,
            path: path.into_os_string(),
            content,
            style,
            backdrop: None,
        };
        let (send, frames) = sync_channel(9);
        let ring = Ring(Arc::new(Waker::new().unwrap()));
        let again = run(
            &Task {
                wanted,
                size: (8, 4).into(),
            },
            &send,
            &ring,
        );
        drop(send);
        (frames.iter().count(), again)
    }

    #[test]
    fn damaged_animation_goes_on_with_its_intact_frames() {
        assert_eq!(played(3), (3, true));
        assert_eq!(played(2), (2, true));
        // One intact frame is no animation.
        assert_eq!(played(1), (1, false));
        assert_eq!(played(0), (0, false));
    }
}
