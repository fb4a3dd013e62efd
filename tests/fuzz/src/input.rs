//! What the targets share: how an input is cut into parts, and pictures of one format, whose memory is
//! measured: one target at a time.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Cursor;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use murald::internals::media::{palette, probe};

/// An input as text, as far as it is some.
pub(crate) fn start(data: &[u8]) -> &str {
    data.utf8_chunks().next().map(|chunk| chunk.valid()).unwrap_or_default()
}

/// An input as text; what is none is no input.
pub(crate) fn text(data: &[u8]) -> &str {
    std::str::from_utf8(data).unwrap_or_default()
}

/// The input before its first NUL, and what is behind it.
pub(crate) fn halves(text: &str) -> (&str, &str) {
    text.split_once('\0').unwrap_or((text, ""))
}

/// The system's, and how many bytes are in use.
struct Counting;

static USED: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static COUNTING: Counting = Counting;

// SAFETY: the system's allocator does all of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(place, layout) }
    }
}

fn count(bytes: usize) {
    let used = USED.fetch_add(bytes, Relaxed) + bytes;
    MOST.fetch_max(used, Relaxed);
}

/// What comes of `work`, and how many bytes more than before were in use at most.
fn measured<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = USED.load(Relaxed);
    MOST.store(before, Relaxed);
    let result = work();
    (result, (MOST.load(Relaxed) - before) as u64)
}

/// The memory that reading the headers of a picture may take: profile and metadata, each bounded by itself, and the
/// values of a TIFF's fields, each of which is 32 bytes in memory.
const HEADERS_MAX: u64 = 128 << 20;
/// Bytes for each pixel: coefficients, or a canvas and its frames; and what a decoder takes by itself.
const FOR_PIXEL: u64 = 32;
const BESIDE: u64 = 16 << 20;
/// Frames of an animation that are looked at, and pixels of a picture.
const FRAMES: usize = 4;
const PIXELS_MAX: u32 = 256 << 10;

/// A file whose first bytes are those of one format: probed, decoded at two sizes in little memory, each
/// as large as was asked for.
pub(crate) fn picture(data: &[u8], is_format: impl Fn(&[u8]) -> bool) {
    if !is_format(data) {
        return;
    }
    let mut input = Cursor::new(data);
    let (probed, peak) = measured(|| probe(&mut input));
    assert!(peak < HEADERS_MAX + BESIDE, "{peak} bytes for the headers");
    let Ok(probe) = probed else { return };
    let whole = (probe.width, probe.height);
    let pixels = u64::from(whole.0) * u64::from(whole.1);
    // A few a second would be all.
    if pixels > u64::from(PIXELS_MAX) {
        return;
    }
    for target in [probe.fit((48, 48)), whole] {
        let (decoded, peak) = measured(|| probe.decode(&mut input, target));
        assert!(peak <= pixels * FOR_PIXEL + BESIDE, "{peak} bytes for {pixels} pixels");
        let Ok(picture) = decoded else { continue };
        let upright = picture.upright();
        let size = (upright.width(), upright.height());
        assert!(size.0 >= target.0 && size.1 >= target.1, "{size:?} of {whole:?} for {target:?}");
        let small = upright.resized(target.0.min(48), target.1.min(48));
        assert_eq!((small.width(), small.height()), (target.0.min(48), target.1.min(48)));
        palette(&small);
    }
    if probe.animated {
        let mut left = FRAMES;
        let each = &mut |_, _| {
            left -= 1;
            left > 0
        };
        probe.frames(&mut input, each).ok();
    }
}

/// Status and body of each of the answers that a connection has given; anything else is a fault.
pub(crate) fn answers(mut rest: &[u8]) -> Vec<(u16, &[u8])> {
    let mut answers = Vec::new();
    while !rest.is_empty() {
        let end = rest.windows(4).position(|four| four == b"\r\n\r\n").expect("a whole head");
        let (head, behind) = (text(&rest[..end]), &rest[end + 4..]);
        let status = head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        let status = status.expect("a status");
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let length = length.map_or(0, |length| length.parse().expect("a length"));
        // To a HEAD an error has no body, though a length.
        let none = status >= 400 && (behind.is_empty() || behind.starts_with(b"HTTP/1.1 "));
        let (body, next) = behind.split_at(if none { 0 } else { length });
        if status != 100 {
            answers.push((status, body));
        }
        rest = next;
    }
    answers
}
