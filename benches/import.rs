//! Measures imports, beside `vipsthumbnail` making the same thumbnails of the same files.
//!
//! `cargo bench --bench import [-- PICTURES] [jpg] [progressive] [png] [small]`. Times are processor
//! time, which other work on the machine changes little; ratios are of the same run. The import hashes,
//! copies, flushes and decodes the file, makes the thumbnail and the palette, and writes the row;
//! vipsthumbnail makes the thumbnail only. Many small pictures are imported last.
#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::unwrap_used)]

#[path = "../tests/support/photo.rs"]
mod photo;

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use image::codecs::jpeg::JpegEncoder;
use image::{ExtendedColorType, ImageEncoder, ImageFormat};
use murald::internals::decode::{self, Decoder};
use murald::internals::events::{EventBus, EventFilter};
use murald::internals::kernel::Kernel;
use murald::internals::library::{self, Settings};
use murald::internals::store::Store;
use murald::internals::thread::Spawner;
use murald::internals::transcode;
use murald::internals::wire::EventKind;
use murald::internals::{media, memory};
use rustix::time::{ClockId, clock_gettime};

const WIDTH: u32 = 3840;
const HEIGHT: u32 = 2160;
const FRAME: (u32, u32) = (500, 500);
const KINDS: [&str; 4] = ["jpg", "progressive", "png", "small"];
/// The size of the small pictures.
const SMALL: (u32, u32) = (320, 200);
const SMALL_COUNT: u32 = 2000;
/// The factor by which each of their sides was reduced.
const REDUCED: u32 = 4;
/// The number of different small pictures: the others differ in brightness only.
const SMALL_PHOTOS: u32 = 40;

fn main() {
    memory::restrain();
    let pictures = std::env::args()
        .skip(1)
        .find_map(|word| word.parse().ok())
        .unwrap_or(24);
    let directory = tempfile::tempdir().unwrap();
    println!("{pictures} pictures of {WIDTH} × {HEIGHT}, processor time each\n");
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| KINDS.contains(&&**word))
        .collect();
    let is_wanted = |kind: &str| wanted.is_empty() || wanted.iter().any(|word| word == kind);
    for kind in KINDS[..3].iter().copied().filter(|kind| is_wanted(kind)) {
        let source = directory.path().join(kind);
        fs::create_dir(&source).unwrap();
        let files = (0..pictures).map(|number| match kind {
            "progressive" => make_progressive(&source, number),
            _ => Some(make(&source, number, kind)),
        });
        let Some(files) = files.collect::<Option<Vec<_>>>() else {
            println!("{kind}: jpegtran is missing (Debian: libjpeg-turbo-progs)\n");
            continue;
        };
        let bytes: u64 = files
            .iter()
            .map(|file| fs::metadata(file).unwrap().len())
            .sum();
        println!("{kind}, {} kB each", bytes / 1000 / u64::from(pictures));
        stages(&files);
        let ours = import(directory.path(), kind, pictures);
        // The cheapest way: one process for all files, one thread, the encoder's effort as ours.
        let batch = files
            .chunks(files.len())
            .map(|all| vips(directory.path(), all, ",effort=2"));
        // As scripts call it: one process for each file, with its defaults.
        let single = files
            .chunks(1)
            .take(8)
            .map(|file| vips(directory.path(), file, ""));
        compare("vipsthumbnail, all in one process", ours, batch.collect());
        compare("vipsthumbnail, one for each file", ours, single.collect());
        println!();
    }
    if !is_wanted("small") {
        return;
    }
    let source = directory.path().join("small");
    fs::create_dir(&source).unwrap();
    let files = make_small(&source);
    println!(
        "{} of {} × {}, photographs that were reduced to it",
        files.len(),
        SMALL.0,
        SMALL.1
    );
    stages(&files);
    import(directory.path(), "small", SMALL_COUNT);
}

/// Measures the parts of the work one after another.
fn stages(files: &[PathBuf]) {
    let mut times = [0.0; 5];
    for file in files {
        let mut input = BufReader::new(File::open(file).unwrap());
        let (probe, time) = timed(|| media::probe(&mut input).unwrap());
        times[0] += time;
        let (width, height) = probe.fit(FRAME);
        let (picture, time) = timed(|| probe.decode(&mut input, (width, height)).unwrap());
        times[1] += time;
        let (small, time) = timed(|| picture.resized(width, height));
        times[2] += time;
        times[3] += timed(|| media::encode(&small).unwrap()).1;
        times[4] += timed(|| media::palette(&small)).1;
    }
    let names = ["probe", "decode and average", "resize", "encode", "palette"];
    for (name, time) in names.into_iter().zip(times) {
        println!("  {name:<34} {:>8.1} ms", time / files.len() as f64);
    }
}

/// Measures the whole import, with the library's own threads.
fn import(directory: &Path, kind: &str, pictures: u32) -> f64 {
    let home = directory.join(format!("home-{kind}"));
    let (bus, (spawner, _deaths)) = (EventBus::new(), Spawner::new());
    let settings = Settings {
        images_dir: home.join("images"),
        thumbnails_dir: home.join("thumbnails"),
        workers: processors(),
        video_audio: Arc::new(|| false),
        decoder: decoder(&home, &spawner),
    };
    let store = Store::open(&home.join("db/murald.sqlite3")).unwrap();
    let events = bus.subscribe(
        EventFilter::from_iter([EventKind::ProcessingComplete]),
        || (),
    );
    let (transcoder, _transcoder) = transcode::start(&spawner, Default::default()).unwrap();
    let kernel = Kernel::start(&spawner).unwrap();
    let (library, running) =
        library::start(&settings, store, bus, transcoder, &kernel, &spawner).unwrap();
    memory::trim();
    // Resets the peak of memory.
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let (start, before) = (Instant::now(), children());
    let (_, own) = timed(|| {
        library.import(vec![directory.join(kind)], None).unwrap();
        events
            .receiver()
            .recv_timeout(Duration::from_secs(600))
            .unwrap();
    });
    // The decoders wait for the next import.
    let cpu = own + children() - before;
    let (each, wall) = (cpu / f64::from(pictures), start.elapsed().as_secs_f64());
    drop(running);
    println!("  {:<34} {each:>8.2} ms", "import, everything");
    println!(
        "  {:<34} {:>8.1} /s",
        "imports for each processor",
        1000.0 / each
    );
    println!(
        "  {:<34} {:>8.1} /s",
        "imports by the clock",
        f64::from(pictures) / wall
    );
    let (peak, now) = (status("VmHWM") >> 10, status("VmRSS") >> 10);
    println!(
        "  {:<34} {peak:>8} MiB, {now} MiB afterwards",
        "peak memory"
    );
    each
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The decoder for a library in this directory.
fn decoder(directory: &Path, spawner: &Spawner) -> Decoder {
    let program = Some(env!("CARGO_BIN_EXE_murald").into());
    let writable = vec![directory.to_owned()];
    Decoder::start(
        decode::Settings {
            program,
            writable,
            imports: processors(),
            silent_for: None,
        },
        spawner,
    )
    .unwrap()
}

/// Milliseconds that vipsthumbnail takes for each thumbnail; `None` if it is missing.
fn vips(directory: &Path, files: &[PathBuf], effort: &str) -> Option<f64> {
    let out = directory.join("vips");
    fs::create_dir_all(&out).unwrap();
    let before = children();
    let run = Command::new("vipsthumbnail")
        .env("VIPS_CONCURRENCY", "1")
        .args(["--size", &format!("{}x{}", FRAME.0, FRAME.1), "--output"])
        .arg(out.join(format!("%s.webp[Q=80{effort}]")))
        .args(files)
        .status();
    let time = children() - before;
    run.ok().map(|status| {
        assert!(status.success());
        time / files.len() as f64
    })
}

fn compare(name: &str, ours: f64, runs: Vec<Option<f64>>) {
    let Some(times) = runs.iter().copied().collect::<Option<Vec<_>>>() else {
        println!("  {name:<34}  missing (Debian: libvips-tools)");
        return;
    };
    let theirs = times.iter().sum::<f64>() / times.len() as f64;
    println!("  {name:<34} {theirs:>8.1} ms, ratio {:.2}", ours / theirs);
}

fn make(directory: &Path, number: u32, kind: &str) -> PathBuf {
    let path = directory.join(format!("photo-{number}.{kind}"));
    let pixels = photo::photo(WIDTH, HEIGHT, number);
    let color = ExtendedColorType::Rgb8;
    if kind == "png" {
        let format = ImageFormat::Png;
        image::save_buffer_with_format(&path, &pixels, WIDTH, HEIGHT, color, format).unwrap();
        return path;
    }
    // As cameras write it, with colours at half the resolution, which needs libvips.
    let plain = directory.with_extension("ppm");
    let mut bytes = format!("P6 {WIDTH} {HEIGHT} 255\n").into_bytes();
    bytes.extend(&pixels);
    fs::write(&plain, bytes).unwrap();
    let output = format!("{}[Q=88,subsample-mode=on]", path.display());
    if !Command::new("vips")
        .arg("copy")
        .arg(&plain)
        .arg(output)
        .status()
        .is_ok_and(|s| s.success())
    {
        write_jpeg(&path, &pixels, (WIDTH, HEIGHT));
    }
    path
}

/// Pictures as they are on the web: reduced photographs without grain.
fn make_small(directory: &Path) -> Vec<PathBuf> {
    let (width, height) = SMALL;
    let mut files = Vec::new();
    for number in 0..SMALL_PHOTOS {
        let pixels = photo::photo(width * REDUCED, height * REDUCED, number);
        let photo = image::RgbImage::from_raw(width * REDUCED, height * REDUCED, pixels).unwrap();
        let small = image::imageops::thumbnail(&photo, width, height).into_raw();
        for light in 0..SMALL_COUNT / SMALL_PHOTOS {
            let path = directory.join(format!("photo-{number}-{light}.jpg"));
            let pixels: Vec<u8> = small
                .iter()
                .map(|&of| of.saturating_add(light as u8))
                .collect();
            write_jpeg(&path, &pixels, SMALL);
            files.push(path);
        }
    }
    files
}

/// Makes a progressive JPEG with jpegtran; `None` if that is missing.
fn make_progressive(directory: &Path, number: u32) -> Option<PathBuf> {
    let path = make(directory, number, "jpg");
    let scans = directory.join("scans");
    let mut run = Command::new("jpegtran");
    let status = run
        .arg("-progressive")
        .arg("-outfile")
        .arg(&scans)
        .arg(&path)
        .status();
    assert!(status.ok()?.success());
    fs::rename(scans, &path).unwrap();
    Some(path)
}

fn write_jpeg(path: &Path, pixels: &[u8], (width, height): (u32, u32)) {
    let mut bytes = Vec::new();
    let encoder = JpegEncoder::new_with_quality(&mut bytes, 85);
    encoder
        .write_image(pixels, width, height, ExtendedColorType::Rgb8)
        .unwrap();
    fs::write(path, bytes).unwrap();
}

/// The result, and the milliseconds of processor time of all threads, in user and kernel mode.
fn timed<T>(body: impl FnOnce() -> T) -> (T, f64) {
    let now = || {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
    };
    let before = now();
    let value = body();
    (value, now() - before)
}

/// Milliseconds of processor time of all children: those that have exited, and those that run.
fn children() -> f64 {
    // Fields are counted after the name, which may contain anything: the 12th and 13th are user and
    // system time of the process itself, the next two those of its exited children.
    let ticks = |stat: &Path, from: usize| -> u64 {
        let stat = fs::read_to_string(stat).unwrap_or_default();
        let fields = stat
            .rsplit_once(')')
            .map_or("", |(_, fields)| fields)
            .split_whitespace();
        fields
            .skip(from)
            .take(2)
            .map(|field| field.parse::<u64>().unwrap())
            .sum()
    };
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let running: String = tasks
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .collect();
    let running = running
        .split_whitespace()
        .map(|pid| ticks(&Path::new("/proc").join(pid).join("stat"), 11));
    // Linux reports hundredths of a second here, whatever the kernel's own tick.
    (ticks(Path::new("/proc/self/stat"), 13) + running.sum::<u64>()) as f64 * 10.0
}

/// A value of `/proc/self/status`, in KiB.
fn status(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
