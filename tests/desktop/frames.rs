//! Records the frames of an output as the compositor shows them: a client of wlr-screencopy.

// Each test program that includes this file uses a part of it.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::disallowed_methods,
    clippy::unwrap_used
)]

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use wayland_client::globals::{GlobalListContents, registry_queue_init};
use wayland_client::protocol::wl_output::{self, WlOutput};
use wayland_client::protocol::wl_registry::WlRegistry;
use wayland_client::protocol::wl_shm::{Format, WlShm};
use wayland_client::protocol::{wl_buffer::WlBuffer, wl_registry, wl_shm_pool::WlShmPool};
use wayland_client::{Connection, Dispatch, EventQueue, QueueHandle, WEnum, delegate_noop};
use wayland_protocols_wlr::screencopy::v1::client::zwlr_screencopy_frame_v1::{
    Event, ZwlrScreencopyFrameV1,
};
use wayland_protocols_wlr::screencopy::v1::client::zwlr_screencopy_manager_v1::ZwlrScreencopyManagerV1;

use crate::desktop::{Desktop, wait_until};

/// A position in every output of the tests, in its own coordinates. It is near the corner, so that
/// a surface of the old size still covers it just after the compositor has changed the output's
/// scale.
const SPOT: (i32, i32) = (10, 10);

/// The colour of a frame and its time.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    pub at: Instant,
    pub color: [u8; 3],
}

type Seen = Mutex<Vec<Frame>>;

/// Records one pixel of each frame of an output, until it is finished.
pub struct Watcher {
    stop: Sender<()>,
    seen: Arc<Seen>,
    /// Returns the time at which the compositor accepted the connection.
    thread: std::thread::JoinHandle<Instant>,
}

impl Watcher {
    /// Starts recording; returns after the first frame.
    pub fn start(desktop: &Desktop, output: &str) -> Self {
        let socket = socket(desktop);
        let watcher = Self::with(output, move |_| UnixStream::connect(socket).ok());
        wait_until("the first frame", || watcher.frames() > 0);
        watcher
    }

    /// Records the next compositor that is started, from its first frame on.
    pub fn for_next(desktop: &Desktop, output: &str) -> Self {
        let socket = socket(desktop);
        let before = made(&socket);
        Self::with(output, move |stop| {
            while stop.try_recv() == Err(TryRecvError::Empty) {
                // A killed compositor leaves its socket behind.
                let stream = UnixStream::connect(&socket)
                    .ok()
                    .filter(|_| made(&socket) != before);
                if stream.is_some() {
                    return stream;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            None
        })
    }

    fn with(
        output: &str,
        connect: impl FnOnce(&Receiver<()>) -> Option<UnixStream> + Send + 'static,
    ) -> Self {
        let (stop, stopped) = bounded(0);
        let seen = Arc::default();
        let (into, name) = (Arc::clone(&seen), output.to_owned());
        let thread = std::thread::spawn(move || {
            let stream = connect(&stopped).expect("there is no compositor");
            let since = Instant::now();
            watch(
                &Connection::from_socket(stream).unwrap(),
                &name,
                &into,
                &stopped,
            );
            since
        });
        Self { stop, seen, thread }
    }

    pub fn frames(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    /// Returns the colour of the newest frame.
    pub fn latest(&self) -> [u8; 3] {
        self.seen.lock().unwrap().last().unwrap().color
    }

    /// Returns the colours of the frames after the first `count`.
    pub fn since(&self, count: usize) -> Vec<[u8; 3]> {
        self.timed_since(count)
            .iter()
            .map(|frame| frame.color)
            .collect()
    }

    pub fn timed_since(&self, count: usize) -> Vec<Frame> {
        self.seen.lock().unwrap()[count..].to_vec()
    }

    /// Stops recording; returns the colours of all frames.
    pub fn finish(self) -> Vec<[u8; 3]> {
        self.finish_timed()
            .1
            .iter()
            .map(|frame| frame.color)
            .collect()
    }

    /// Stops recording; returns when the compositor accepted the connection, and all frames.
    pub fn finish_timed(self) -> (Instant, Vec<Frame>) {
        drop(self.stop);
        let since = self.thread.join().unwrap();
        (since, std::mem::take(&mut *self.seen.lock().unwrap()))
    }
}

fn socket(desktop: &Desktop) -> PathBuf {
    let directory = Path::new(desktop.var("XDG_RUNTIME_DIR").unwrap());
    directory.join(desktop.var("WAYLAND_DISPLAY").unwrap())
}

/// Identifies a socket file, to distinguish it from an earlier one at the same path.
fn made(socket: &Path) -> Option<(u64, i64, i64)> {
    let its = socket.metadata().ok()?;
    Some((its.ino(), its.ctime(), its.ctime_nsec()))
}

/// The function that the thread runs. A frame fails if its output has gone or changes; then the
/// next is tried.
fn watch(connection: &Connection, name: &str, into: &Seen, stop: &Receiver<()>) {
    let (globals, mut queue) = registry_queue_init::<State>(connection).unwrap();
    let handle = queue.handle();
    let mut state = State::default();
    let manager: ZwlrScreencopyManagerV1 = globals.bind(&handle, 1..=1, ()).unwrap();
    let shm: WlShm = globals.bind(&handle, 1..=1, ()).unwrap();
    for global in globals.contents().clone_list() {
        if global.interface == "wl_output" {
            state.outputs.push((
                globals.registry().bind(global.name, 4, &handle, ()),
                String::new(),
            ));
        }
    }
    queue.roundtrip(&mut state).unwrap();
    let named = state.outputs.iter().find(|(_, its)| its == name);
    let output = named.expect("the output is not there").0.clone();
    let file = File::from(memfd_create("frame", MemfdFlags::CLOEXEC).unwrap());
    while stop.try_recv() == Err(TryRecvError::Empty) {
        let frame = manager.capture_output_region(0, &output, SPOT.0, SPOT.1, 1, 1, &handle, ());
        if let Some(color) = state.photograph(&mut queue, &shm, &frame, &file) {
            into.lock().unwrap().push(Frame {
                at: Instant::now(),
                color,
            });
        }
        frame.destroy();
    }
}

#[derive(Default)]
struct State {
    outputs: Vec<(WlOutput, String)>,
    /// The buffer that the compositor requires: format, width, height, stride in bytes.
    layout: Option<(Format, u32, u32, u32)>,
    /// Whether the frame was copied or failed.
    result: Option<bool>,
}

impl State {
    fn photograph(
        &mut self,
        queue: &mut EventQueue<Self>,
        shm: &WlShm,
        frame: &ZwlrScreencopyFrameV1,
        file: &File,
    ) -> Option<[u8; 3]> {
        (self.layout, self.result) = (None, None);
        while self.layout.is_none() && self.result.is_none() {
            queue.blocking_dispatch(self).unwrap();
        }
        let (format, width, height, stride) = self.layout?;
        let size = stride * height;
        ftruncate(file, u64::from(size)).unwrap();
        let handle = queue.handle();
        let pool = shm.create_pool(file.as_fd(), size as i32, &handle, ());
        let sides = [width, height, stride].map(|side| side as i32);
        let buffer = pool.create_buffer(0, sides[0], sides[1], sides[2], format, &handle, ());
        pool.destroy();
        frame.copy(&buffer);
        while self.result.is_none() {
            queue.blocking_dispatch(self).unwrap();
        }
        buffer.destroy();
        let mut bytes = [0; 4];
        file.read_exact_at(&mut bytes, 0).unwrap();
        let [first, green, third, _] = bytes;
        let pixel = match format {
            Format::Xrgb8888 | Format::Argb8888 => [third, green, first],
            Format::Xbgr8888 | Format::Abgr8888 => [first, green, third],
            other => panic!("a frame in {other:?}"),
        };
        self.result?.then_some(pixel)
    }
}

impl Dispatch<ZwlrScreencopyFrameV1, ()> for State {
    fn event(
        state: &mut Self,
        _: &ZwlrScreencopyFrameV1,
        event: Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        match event {
            Event::Buffer {
                format: WEnum::Value(format),
                width,
                height,
                stride,
            } => {
                state.layout = Some((format, width, height, stride));
            }
            Event::Ready { .. } => state.result = Some(true),
            Event::Failed => state.result = Some(false),
            _ => {}
        }
    }
}

impl Dispatch<WlOutput, ()> for State {
    fn event(
        state: &mut Self,
        output: &WlOutput,
        event: wl_output::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        if let wl_output::Event::Name { name } = event {
            let known = state.outputs.iter_mut().find(|(known, _)| known == output);
            known.unwrap().1 = name;
        }
    }
}

impl Dispatch<WlRegistry, GlobalListContents> for State {
    fn event(
        _: &mut Self,
        _: &WlRegistry,
        _: wl_registry::Event,
        _: &GlobalListContents,
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
    }
}

delegate_noop!(State: ignore ZwlrScreencopyManagerV1);
delegate_noop!(State: ignore WlShm);
delegate_noop!(State: ignore WlShmPool);
delegate_noop!(State: ignore WlBuffer);
