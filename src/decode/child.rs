//! The process `murald decode`: reads jobs from its socket, does one after another and replies.
//!
//! It keeps no state between jobs, and exits when the daemon closes the socket. A panic is reported
//! in a reply and ends the process; if a limit or a signal ends it, the daemon finds out itself.

use std::env::ArgsOs;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use sha2::{Digest, Sha256};

use super::limits;
use super::package;
use super::protocol::{Drawn, Error, Hashed, Header, Job, Looked, Reply, Stamp, Task, stamp};
use super::reading::{Daemon, PROGRESS_EVERY, feed, open};
use crate::color::Rgb;
use crate::digest::Checksum;
use crate::media::{self, Cut, Probe, Shown};
use crate::process::{confine, helper_main};
use crate::thread;
use crate::wire::MediaType;

/// The first argument of such a process.
pub(super) const VERB: &str = "decode";
/// Maximum size of an image file in bytes; the largest that can be decoded, with 16 bits per
/// sample, have half of it.
const PICTURE_MAX: u64 = 2 << 30;

/// Runs the process if it was started as `murald decode`.
pub(crate) fn main() -> Option<ExitCode> {
    helper_main(VERB, run)
}

fn run(writable: ArgsOs) -> io::Result<()> {
    let socket = io::stdout().as_fd().try_clone_to_owned()?;
    let kind = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&socket)?.st_mode);
    if kind != rustix::fs::FileType::Socket {
        return Err(io::Error::other(
            "only murald itself runs this command; see murald(1)",
        ));
    }
    limits::limit()?;
    confine(writable.map(PathBuf::from))?;
    let stream = UnixStream::from(socket);
    let daemon = Daemon::new(&stream)?;
    let reporter = daemon.clone();
    std::panic::set_hook(Box::new(move |panic| {
        let said = thread::panic_text(panic.payload()).to_owned();
        reporter.reply(&Reply::<()>::Failed(Error::Broke(said)));
        std::process::exit(101);
    }));
    let reporter = daemon.clone();
    std::thread::Builder::new()
        .name("progress".into())
        .spawn(move || report_progress(&reporter))?;
    serve(stream, &daemon);
    Ok(())
}

/// Reports progress while the job uses processor time, which is limited separately. A job that
/// waits for a disk reports nothing.
fn report_progress(daemon: &Daemon) {
    let used = || {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    let mut before = used();
    loop {
        std::thread::sleep(PROGRESS_EVERY);
        let now = used();
        // This thread itself uses microseconds.
        if now - before > Duration::from_millis(10) {
            daemon.reply(&Reply::<()>::Progress);
        }
        before = now;
    }
}

/// Does jobs until the daemon closes the socket.
pub(super) fn serve(stream: UnixStream, daemon: &Daemon) {
    for line in BufReader::new(stream).lines() {
        let Ok(job) = line.and_then(|line| Ok(serde_json::from_str::<Job>(&line)?)) else {
            return;
        };
        let path = Path::new(&job.path);
        match job.task {
            Task::Look => daemon.answer(look(path)),
            Task::Checksum => daemon.answer(checksum(path, daemon)),
            Task::Copy { to } => daemon.answer(copy(path, Path::new(&to), daemon)),
            Task::Manifest { names } => daemon.answer(package::manifest(path, &names)),
            Task::Find { files } => {
                let found = files
                    .iter()
                    .map(|file| package::find(path, Path::new(file)));
                daemon.answer(Ok(found.collect::<Vec<_>>()));
            }
            Task::Package { to } => {
                daemon.answer(package::copy(path, to.as_deref().map(Path::new), daemon));
            }
            Task::Thumbnail { fits, to } => daemon.answer(thumbnail(path, job.shown, fits, to)),
            Task::Still { fits, fill, to } => {
                daemon.answer(still(path, job.shown, (fits, fill), Path::new(&to)));
            }
            Task::Slices { cut, to } => daemon.answer(slices(path, job.shown, &cut, &to)),
        }
    }
}

type Input = BufReader<File>;

fn read<T>(
    path: &Path,
    body: impl FnOnce(&mut Input) -> Result<T, media::Error>,
) -> Result<T, Error> {
    Ok(body(&mut BufReader::with_capacity(64 << 10, open(path)?))?)
}

fn meta(file: &File) -> Result<Stamp, Error> {
    let meta = file.metadata();
    meta.map(|meta| stamp(&meta))
        .map_err(|error| Error::Read(error.into()))
}

/// Reads a file's headers, and the whole file if necessary to find out whether it is complete.
fn look(path: &Path) -> Result<Looked, Error> {
    let file = open(path)?;
    let meta = meta(&file)?;
    let mut input = BufReader::with_capacity(64 << 10, file);
    let (format, foreign) = match media::format(&mut input).map_err(Error::from) {
        Err(error @ Error::NeedsTranscoder { format, .. }) => (format, Some(error)),
        format => (format?, None),
    };
    let is_long = meta.size > PICTURE_MAX && format.media_type() != MediaType::Video;
    let header = match foreign {
        _ if is_long => Err(Error::TooLong { bytes: meta.size }),
        Some(error) => Err(error),
        None => media::probe(&mut input)
            .map(|probe| header(&probe))
            .map_err(Error::from),
    };
    Ok(Looked {
        format,
        meta,
        header,
    })
}

fn header(probe: &Probe) -> Header {
    Header {
        width: probe.width,
        height: probe.height,
        animated: probe.animated,
        upright: probe.is_upright(),
        plain: probe.is_plain(),
        alpha: probe.has_alpha(),
        note: probe.note,
    }
}

fn probe(input: &mut Input, shown: Option<Shown>) -> Result<Probe, media::Error> {
    let probe = media::probe(input)?;
    Ok(match shown {
        Some(shown) => probe.shown(shown),
        None => probe,
    })
}

fn thumbnail(
    path: &Path,
    shown: Option<Shown>,
    fits: (u32, u32),
    to: Option<OsString>,
) -> Result<Drawn, Error> {
    let (probe, thumbnail) = read(path, |input| {
        let probe = probe(input, shown)?;
        let thumbnail = probe.thumbnail(input, fits)?;
        Ok((probe, thumbnail))
    })?;
    if let Some(to) = to {
        write(Path::new(&to), &thumbnail.webp)?;
    }
    let colors = media::palette(&thumbnail.picture);
    Ok(Drawn {
        format: probe.format,
        header: header(&probe),
        colors,
    })
}

/// Writes the first frame as a PNG, over the colour `fill`. Returns the colours if it was transparent.
fn still(
    path: &Path,
    shown: Option<Shown>,
    (fits, fill): ((u32, u32), Rgb),
    to: &Path,
) -> Result<Option<Vec<Rgb>>, Error> {
    let (png, colors) = read(path, |input| {
        let probe = probe(input, shown)?;
        let (width, height) = probe.fit(fits);
        let mut picture = probe.decode(input, (width, height))?.resized(width, height);
        let has_alpha = picture.has_alpha();
        if has_alpha {
            picture = media::flattened(&picture, fill);
        }
        let colors = has_alpha.then(|| media::palette(&picture));
        Ok((picture.png()?, colors))
    })?;
    write(to, &png)?;
    Ok(colors)
}

/// Writes the parts of an image as PNG files.
fn slices(path: &Path, shown: Option<Shown>, cut: &Cut, to: &[OsString]) -> Result<(), Error> {
    let slices = read(path, |input| probe(input, shown)?.slices(input, cut))?;
    to.iter()
        .zip(slices)
        .try_for_each(|(to, slice)| write(Path::new(to), &slice))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    fs::write(path, bytes).map_err(Error::write(path))
}

fn checksum(path: &Path, daemon: &Daemon) -> Result<Hashed, Error> {
    let mut file = open(path)?;
    let meta = meta(&file)?;
    let hashed = hash(&mut file, meta.size, &mut |_| Ok(()), daemon);
    let checksum = hashed.map_err(|error| Error::Read(error.into()))?;
    Ok(Hashed { checksum, meta })
}

/// Copies a file to a new one, sharing blocks if the file system supports that. The checksum is
/// that of the copy.
fn copy(path: &Path, to: &Path, daemon: &Daemon) -> Result<Hashed, Error> {
    let mut file = open(path)?;
    let size = meta(&file)?.size;
    let target = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(to);
    let mut target = target.map_err(Error::write(to))?;
    let hashed = match rustix::fs::ioctl_ficlone(&target, &file) {
        Ok(()) => hash(&mut target, u64::MAX, &mut |_| Ok(()), daemon),
        Err(_) => copy_bytes(&mut file, size, &mut target, daemon),
    };
    let checksum = hashed.map_err(Error::copy(to))?;
    let meta = target.metadata().map_err(Error::write(to))?;
    let meta = stamp(&meta);
    Ok(Hashed { checksum, meta })
}

/// Copies a file into an empty one, with holes instead of zeros, so that a sparse file takes no
/// more space than before.
fn copy_bytes(
    file: &mut File,
    size: u64,
    target: &mut File,
    daemon: &Daemon,
) -> io::Result<Checksum> {
    let mut length = 0;
    let mut put = |bytes: &[u8]| {
        length += bytes.len() as u64;
        if bytes.iter().all(|&byte| byte == 0) {
            target.seek(SeekFrom::Start(length)).map(drop)
        } else {
            target.write_all(bytes)
        }
    };
    let checksum = hash(file, size, &mut put, daemon)?;
    target.set_len(length)?;
    Ok(checksum)
}

/// Hashes a file from its start, and passes its content to `put`.
fn hash(
    file: &mut File,
    size: u64,
    put: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    daemon: &Daemon,
) -> io::Result<Checksum> {
    file.rewind()?;
    let mut digest = Sha256::new();
    let mut both = |bytes: &[u8]| {
        digest.update(bytes);
        put(bytes)
    };
    feed(file, size, &mut both, daemon)?;
    Ok(digest.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_that_grows_while_it_is_copied_is_given_up() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a");
        fs::write(&path, "12345").unwrap();
        let (mut file, (stream, _)) = (open(&path).unwrap(), UnixStream::pair().unwrap());
        let daemon = Daemon::new(&stream).unwrap();
        let mut hashed = |size| hash(&mut file, size, &mut |_| Ok(()), &daemon);
        assert!(hashed(5).is_ok());
        let error = hashed(4).unwrap_err();
        assert_eq!(error.to_string(), "it grew while it was read");
    }

    #[test]
    fn image_files_are_limited_in_size_for_all_decoders() {
        let home = tempfile::tempdir().unwrap();
        let check = |name: &str, head: &[u8], is_refused| {
            let path = home.path().join(name);
            fs::write(&path, head).unwrap();
            OpenOptions::new()
                .write(true)
                .open(&path)
                .unwrap()
                .set_len(PICTURE_MAX + 1)
                .unwrap();
            let header = look(&path).unwrap().header.unwrap_err();
            assert_eq!(
                matches!(header, Error::TooLong { .. }),
                is_refused,
                "{name}: {header}"
            );
        };
        check("a.avif", b"\0\0\0\x14ftypavif\0\0\0\0avif", true);
        check("a.svg", b"<svg/>", true);
        check("a.gif", b"GIF89a", true);
        check("a.mp4", b"\0\0\0\x14ftypisom\0\0\0\0isom", false);
    }
}
