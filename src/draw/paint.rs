//! Turns files into frames: each picture is decoded once and painted for every output that wants it.
//!
//! Runs on a thread of its own for each change, so that animations continue. Decoded pictures are freed
//! with it; only the frames stay.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use super::backdrop;
use super::fit::Layout;
use super::message::{Outcome, Style, Wanted};
use super::storage::{PIXEL, Storage};
use crate::error_chain::chain;
use crate::media::{self, Picture, Probe, Region};
use crate::paths::open_regular;
use crate::wire::Fit;

/// The stack of a thread that decodes; untouched pages cost nothing.
pub(super) const STACK: usize = 2 << 20;

type Size = (u32, u32);

/// The size of a frame, and the size for which the picture is placed in it. They differ by a few pixels
/// at fractional scales: the frame has the size that the compositor shows pixel for pixel, and the
/// picture, placed for the pixels of the output, is cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FrameSize {
    pub(super) pixels: Size,
    pub(super) placed: Size,
}

impl From<Size> for FrameSize {
    fn from(size: Size) -> Self {
        Self {
            pixels: size,
            placed: size,
        }
    }
}

/// A picture, and the frame that it is for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Task {
    pub(super) wanted: Wanted,
    pub(super) size: FrameSize,
}

impl Task {
    /// The layout of a picture of this size.
    fn layout(&self, natural: Size) -> Layout {
        let style = &self.wanted.style;
        match &style.span {
            Some(span) => span.layout(natural, self.size.placed),
            None => style.fit.place(natural, self.size.placed, style.position),
        }
    }
}

/// The result of a task.
#[derive(Clone, Debug)]
pub(super) struct Painted {
    pub(super) frame: Arc<Storage>,
    /// The frame is the first of an animation that should play.
    pub(super) moves: bool,
    pub(super) backdrop: Option<Arc<Storage>>,
}

/// Paints a frame for each task, in order. Tasks with the same result share a frame.
pub(super) fn paint(tasks: &[Task]) -> Result<Vec<Painted>, Outcome> {
    let mut by_path: BTreeMap<&OsString, Vec<&Task>> = BTreeMap::new();
    for task in tasks {
        by_path.entry(&task.wanted.path).or_default().push(task);
    }
    let mut painted: Vec<(&Task, Painted)> = Vec::new();
    for (path, tasks) in by_path {
        let path = Path::new(path);
        // The first frame's memory is allocated at the same time, which takes a sixth of decoding's
        // time.
        let (picture, first) = beside(
            || Storage::new(tasks[0].size.pixels),
            || media::catch_panic(|| decode(path, &tasks)),
        );
        let (picture, natural, is_animated) = picture
            .unwrap_or_else(|_| Err("murald cannot decode this file".to_owned()))
            .map_err(|why| Outcome::File {
                path: path.as_os_str().to_owned(),
                why,
            })?;
        let mut first = Some(first);
        for task in tasks {
            let same = |(other, _): &&(&Task, Painted)| is_same(task, other);
            let frames = match painted.iter().find(same) {
                Some((_, painted)) => painted.clone(),
                None => {
                    let storage = first
                        .take()
                        .unwrap_or_else(|| Storage::new(task.size.pixels));
                    let frame = storage.and_then(|it| lay(&picture, natural, task, it));
                    let frames = frame.and_then(|frame| with_backdrop(Arc::new(frame), task));
                    let frames = frames.map_err(|error| no_memory(task.size.pixels, &error))?;
                    let moves = is_animated && task.wanted.style.animate;
                    Painted { moves, ..frames }
                }
            };
            painted.push((task, frames));
        }
    }
    let of = |task: &Task| {
        let found = painted.iter().find(|(other, _)| std::ptr::eq(*other, task));
        found
            .map(|(_, painted)| painted.clone())
            .expect("all tasks were painted")
    };
    Ok(tasks.iter().map(of).collect())
}

fn with_backdrop(frame: Arc<Storage>, task: &Task) -> std::io::Result<Painted> {
    let backdrop = task
        .wanted
        .backdrop
        .map(|effect| backdrop::paint(&frame, effect));
    Ok(Painted {
        backdrop: backdrop.transpose()?,
        frame,
        moves: false,
    })
}

/// The results of both functions; the first runs on a thread of its own if one can be started.
fn beside<A: Send, B>(one: impl Fn() -> A + Sync, other: impl FnOnce() -> B) -> (B, A) {
    let (other, done) = std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().name("frame".to_owned());
        let thread = builder.spawn_scoped(scope, &one);
        (other(), thread.ok().and_then(|thread| thread.join().ok()))
    });
    (other, done.unwrap_or_else(one))
}

fn no_memory((width, height): Size, error: &std::io::Error) -> Outcome {
    let what = format!("a frame of {width} × {height} pixels");
    Outcome::Refused(format!("cannot allocate shared memory for {what}: {error}"))
}

fn is_same(one: &Task, other: &Task) -> bool {
    (
        one.size,
        &one.wanted.path,
        &one.wanted.style,
        one.wanted.backdrop,
    ) == (
        other.size,
        &other.wanted.path,
        &other.wanted.style,
        other.wanted.backdrop,
    )
}

/// Decodes the picture, upright and with as many pixels as any of the tasks can show. Also returns the
/// picture's own size, and whether it is animated.
fn decode(path: &Path, tasks: &[&Task]) -> Result<(Picture, Size, bool), String> {
    let file = open_regular(path).map_err(|error| chain(&error))?;
    let mut file = BufReader::new(file);
    let probe: Probe = media::probe(&mut file).map_err(|error| chain(&error))?;
    let natural = (probe.width, probe.height);
    let scaled = tasks
        .iter()
        .map(|task| task.layout(natural).scaled(natural));
    let (width, height) = scaled.fold((1, 1), |most, size| {
        (most.0.max(size.0), most.1.max(size.1))
    });
    let target = (width.min(natural.0), height.min(natural.1));
    let picture = probe
        .decode(&mut file, target)
        .map_err(|error| chain(&error))?;
    Ok((picture.upright(), natural, probe.animated))
}

/// Paints the frame of one output.
pub(super) fn frame(picture: &Picture, natural: Size, task: &Task) -> std::io::Result<Storage> {
    lay(picture, natural, task, Storage::new(task.size.pixels)?)
}

/// Draws a picture into a frame.
fn lay(
    picture: &Picture,
    natural: Size,
    task: &Task,
    storage: Storage,
) -> std::io::Result<Storage> {
    let mut pixels = storage.map()?;
    let style = &task.wanted.style;
    let layout = task.layout(natural);
    let part = part(picture, natural, &layout);
    let mut canvas = Canvas {
        pixels: &mut pixels,
        size: task.size.pixels,
        fill: style.fill,
    };
    canvas.draw(&part, layout.target, style);
    drop(pixels);
    Ok(storage)
}

/// The visible part of the picture, in its visible size: often the picture as it was decoded.
fn part<'a>(picture: &'a Picture, natural: Size, layout: &Layout) -> Cow<'a, Picture> {
    let [x, y, width, height] = layout.source;
    // A picture that was reduced in decoding has fewer pixels.
    let (across, down) = picture.extent();
    let (across, down) = (across / f64::from(natural.0), down / f64::from(natural.1));
    let region = Region {
        x: x * across,
        y: y * down,
        width: width * across,
        height: height * down,
    };
    let [_, _, width, height] = layout.target;
    if picture.is(region, width, height) {
        return Cow::Borrowed(picture);
    }
    Cow::Owned(picture.cut(region, width, height))
}

struct Canvas<'a> {
    pixels: &'a mut [u8],
    size: Size,
    fill: [u8; 3],
}

impl Canvas<'_> {
    /// Draws a picture as far as it fits, and the fill colour on the area that it leaves free.
    fn draw(&mut self, part: &Picture, target: [u32; 4], style: &Style) {
        let [left, top, width, height] = target.map(|side| side as usize);
        let line = self.size.0 as usize * PIXEL;
        let channels = if part.has_alpha() { 4 } else { 3 };
        let tiled = style.fit == Fit::Tile && style.span.is_none();
        for y in 0..self.size.1 as usize {
            let row = &mut self.pixels[y * line..(y + 1) * line];
            let inside = if tiled {
                Some(y % height)
            } else {
                y.checked_sub(top)
            };
            let Some(from) = inside.filter(|&from| from < height) else {
                fill(row, self.fill);
                continue;
            };
            let from = &part.pixels()[from * width * channels..(from + 1) * width * channels];
            if tiled {
                row.chunks_mut(width * PIXEL)
                    .for_each(|row| copy(from, channels, self.fill, row));
                continue;
            }
            let (before, rest) = row.split_at_mut((left * PIXEL).min(row.len()));
            let (middle, after) = rest.split_at_mut((width * PIXEL).min(rest.len()));
            fill(before, self.fill);
            copy(from, channels, self.fill, middle);
            fill(after, self.fill);
        }
    }
}

fn fill(row: &mut [u8], [red, green, blue]: [u8; 3]) {
    row.chunks_exact_mut(PIXEL)
        .for_each(|pixel| pixel.copy_from_slice(&[blue, green, red, 255]));
}

/// Draws a row of the picture over the fill colour, as far as it fits.
fn copy(from: &[u8], channels: usize, fill: [u8; 3], row: &mut [u8]) {
    let over = |value: u8, below: u8, alpha: u8| {
        let sum = u32::from(value) * u32::from(alpha) + u32::from(below) * u32::from(255 - alpha);
        ((sum + 127) / 255) as u8
    };
    let pixels = row.chunks_exact_mut(PIXEL);
    if channels == 3 {
        for (pixel, from) in pixels.zip(from.chunks_exact(3)) {
            pixel.copy_from_slice(&[from[2], from[1], from[0], 255]);
        }
        return;
    }
    for (pixel, from) in pixels.zip(from.chunks_exact(4)) {
        let [red, green, blue] = std::array::from_fn(|at| over(from[at], fill[at], from[3]));
        pixel.copy_from_slice(&[blue, green, red, 255]);
    }
}

/// A frame of one colour.
pub(super) fn plain(size: Size, color: [u8; 3]) -> std::io::Result<Storage> {
    let storage = Storage::new(size)?;
    fill(&mut storage.map()?, color);
    Ok(storage)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Position;
    use image::{Rgb, RgbImage, Rgba, RgbaImage};
    use std::path::PathBuf;

    const RED: [u8; 3] = [255, 0, 0];
    const BLUE: [u8; 3] = [0, 0, 255];
    const GREY: [u8; 3] = [40, 50, 60];

    fn task(path: &Path, fit: Fit, size: Size) -> Task {
        let style = Style {
            fit,
            position: Position::CENTER,
            fill: GREY,
            span: None,
            animate: false,
        };
        let wanted = Wanted {
            output: "A".to_owned(),
            path: path.as_os_str().to_owned(),
            content: String::new(),
            style,
            backdrop: None,
        };
        let size = size.into();
        Task { wanted, size }
    }

    fn shown(task: Task) -> impl Fn(u32, u32) -> [u8; 3] {
        let width = task.size.pixels.0;
        let frame = paint(&[task]).unwrap().remove(0).frame;
        let pixels = frame.map().unwrap();
        move |x, y| {
            let at = (y * width + x) as usize * PIXEL;
            [pixels[at + 2], pixels[at + 1], pixels[at]]
        }
    }

    /// Red above, blue below.
    fn halves(dir: &Path) -> PathBuf {
        let path = dir.join("halves.png");
        let color = |y| if y < 10 { Rgb(RED) } else { Rgb(BLUE) };
        RgbImage::from_fn(20, 20, |_, y| color(y))
            .save(&path)
            .unwrap();
        path
    }

    #[test]
    fn each_fit_paints_the_right_pixels() {
        let dir = tempfile::tempdir().unwrap();
        let path = halves(dir.path());
        let check = |fit, spots: &[(u32, u32, [u8; 3])]| {
            let at = shown(task(&path, fit, (80, 40)));
            for &(x, y, color) in spots {
                assert_eq!(at(x, y), color, "{fit:?} at {x}, {y}");
            }
        };
        check(
            Fit::Cover,
            &[(0, 0, RED), (79, 0, RED), (0, 39, BLUE), (40, 5, RED)],
        );
        check(
            Fit::Contain,
            &[(19, 0, GREY), (20, 0, RED), (59, 39, BLUE), (60, 39, GREY)],
        );
        check(Fit::Fill, &[(0, 0, RED), (79, 39, BLUE)]);
        check(
            Fit::Center,
            &[
                (29, 10, GREY),
                (30, 10, RED),
                (49, 29, BLUE),
                (49, 30, GREY),
            ],
        );
        check(
            Fit::Tile,
            &[(0, 0, RED), (79, 9, RED), (79, 10, BLUE), (5, 20, RED)],
        );
    }

    #[test]
    fn picture_of_the_outputs_size_is_painted_exactly() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("noise.png");
        let noise = |x: u32, y: u32| {
            let mixed = (x * 31 + y * 17) ^ (x * y);
            Rgb([mixed as u8, (mixed >> 3) as u8, (mixed * 7) as u8])
        };
        RgbImage::from_fn(64, 48, noise).save(&path).unwrap();
        for fit in [Fit::Cover, Fit::Contain, Fit::Fill, Fit::Tile, Fit::Center] {
            let at = shown(task(&path, fit, (64, 48)));
            for (x, y) in [(0, 0), (63, 47), (13, 31), (40, 2)] {
                assert_eq!(at(x, y), noise(x, y).0, "{fit:?}");
            }
        }
    }

    #[test]
    fn picture_is_cut_and_not_scaled_by_a_frame_that_differs_from_the_output() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lines.png");
        let line = |x| if x % 2 == 0 { Rgb(RED) } else { Rgb(BLUE) };
        RgbImage::from_fn(64, 48, |x, _| line(x))
            .save(&path)
            .unwrap();
        for fit in [Fit::Cover, Fit::Contain, Fit::Fill, Fit::Tile, Fit::Center] {
            for pixels in [(63, 47), (65, 49)] {
                let mut task = task(&path, fit, (64, 48));
                task.size.pixels = pixels;
                let at = shown(task);
                for x in [0, 30, 31, 62] {
                    assert_eq!(at(x, 46), line(x).0, "{fit:?} {pixels:?}");
                }
            }
        }
    }

    #[test]
    fn transparent_pixels_show_the_fill_colour() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("glass.png");
        RgbaImage::from_pixel(4, 4, Rgba([255, 0, 0, 51]))
            .save(&path)
            .unwrap();
        assert_eq!(shown(task(&path, Fit::Fill, (8, 8)))(4, 4), [83, 40, 48]);
    }

    #[test]
    fn equal_frames_are_shared_and_errors_name_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = halves(dir.path());
        let one = task(&path, Fit::Cover, (80, 40));
        let other = task(&path, Fit::Cover, (40, 80));
        let frames = paint(&[one.clone(), other, one.clone()]).unwrap();
        let is_one =
            |one: usize, other: usize| Arc::ptr_eq(&frames[one].frame, &frames[other].frame);
        assert!(is_one(0, 2) && !is_one(0, 1));
        let gone = dir.path().join("gone.png");
        let outcome = paint(&[one, task(&gone, Fit::Cover, (8, 8))]).unwrap_err();
        assert!(matches!(outcome, Outcome::File { path, .. } if path == gone.as_os_str()));
    }
}
