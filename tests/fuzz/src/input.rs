//! Helpers of the targets: splitting an input into parts, and decoding pictures within memory limits.
//! Memory is measured for the whole process, so only one target may run at a time.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Cursor;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use murald::internals::media::{palette, probe};

/// The valid UTF-8 at the start of an input.
pub(crate) fn start(data: &[u8]) -> &str {
    data.utf8_chunks()
        .next()
        .map(|chunk| chunk.valid())
        .unwrap_or_default()
}

/// The input as text; empty if it is not UTF-8.
pub(crate) fn text(data: &[u8]) -> &str {
    std::str::from_utf8(data).unwrap_or_default()
}

/// The parts before and after the first NUL.
pub(crate) fn halves(text: &str) -> (&str, &str) {
    text.split_once('\0').unwrap_or((text, ""))
}

/// The system's allocator, which also counts the bytes in use.
struct Counting;

static USED: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static COUNTING: Counting = Counting;

// SAFETY: every call is passed on to the system allocator unchanged.
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

/// The result of `work`, and the peak of the memory that it used.
fn measured<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = USED.load(Relaxed);
    MOST.store(before, Relaxed);
    let result = work();
    (result, (MOST.load(Relaxed) - before) as u64)
}

/// The most memory for reading a picture's headers: profile and metadata, each with its own limit, and
/// the values of a TIFF's fields, which take 32 bytes each.
const HEADERS_MAX: u64 = 128 << 20;
/// Bytes for each pixel, for coefficients or for a canvas and its frames; and a decoder's fixed cost.
const FOR_PIXEL: u64 = 32;
const BESIDE: u64 = 16 << 20;
/// The most frames of an animation that are decoded, and the largest picture in pixels.
const FRAMES: usize = 4;
const PIXELS_MAX: u32 = 256 << 10;

/// Probes a file of one format, and decodes it at two sizes: memory must be within the limits, and each
/// picture at least as large as requested.
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
    // Larger pictures would allow only a few executions a second.
    if pixels > u64::from(PIXELS_MAX) {
        return;
    }
    for target in [probe.fit((48, 48)), whole] {
        let (decoded, peak) = measured(|| probe.decode(&mut input, target));
        assert!(
            peak <= pixels * FOR_PIXEL + BESIDE,
            "{peak} bytes for {pixels} pixels"
        );
        let Ok(picture) = decoded else { continue };
        let upright = picture.upright();
        let size = (upright.width(), upright.height());
        assert!(
            size.0 >= target.0 && size.1 >= target.1,
            "{size:?} of {whole:?} for {target:?}"
        );
        let small = upright.resized(target.0.min(48), target.1.min(48));
        assert_eq!(
            (small.width(), small.height()),
            (target.0.min(48), target.1.min(48))
        );
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

/// Status and body of each answer on a connection; panics at anything else.
pub(crate) fn answers(mut rest: &[u8]) -> Vec<(u16, &[u8])> {
    let mut answers = Vec::new();
    while !rest.is_empty() {
        let end = rest
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .expect("a whole head");
        let (head, behind) = (text(&rest[..end]), &rest[end + 4..]);
        let status = head
            .strip_prefix("HTTP/1.1 ")
            .and_then(|rest| rest.get(..3)?.parse().ok());
        let status = status.expect("a status");
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("Content-Length: "));
        let length = length.map_or(0, |length| length.parse().expect("a length"));
        // An error answer to HEAD has a length, but no body.
        let none = status >= 400 && (behind.is_empty() || behind.starts_with(b"HTTP/1.1 "));
        let (body, next) = behind.split_at(if none { 0 } else { length });
        if status != 100 {
            answers.push((status, body));
        }
        rest = next;
    }
    answers
}
