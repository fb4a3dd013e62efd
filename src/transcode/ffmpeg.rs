//! Runs ffmpeg and ffprobe: builds their arguments and interprets their failures.
//!
//! The demuxer is set to the format that was detected, and only the protocol `file` is allowed: a
//! file can neither refer to other files nor reach the network. Runs on the calling thread.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::Error;
use super::facts::Facts;
use super::fresh::{Fresh, RESULT};
use crate::process::{self, Launch, Output, ResourceLimits, which};
use crate::sys::Cancel;
use crate::wire::{Format, MediaType};

/// The part of a video's end that is checked, in seconds.
const TAIL: f64 = 3.0;
/// Limit of processor time for examining a file or decoding a frame.
const FRAME_CPU: Duration = Duration::from_secs(120);
/// Number of seconds that may be missing at the end, as the streams of a file may end at different
/// times.
const MISSING: f64 = 1.0;

/// Runs ffmpeg; clones are cancelled together.
#[derive(Clone, Debug)]
pub struct Ffmpeg {
    pub(super) limits: Limits,
    pub(super) cancel: Cancel,
    /// Cancels only the jobs of a batch.
    batch: Option<Cancel>,
}

/// Fails unless both programs are installed now; they may be installed or removed while the daemon
/// runs.
pub(crate) fn require() -> Result<(), Error> {
    let missing = ["ffmpeg", "ffprobe"]
        .into_iter()
        .find(|program| which(program).is_none());
    missing.map_or(Ok(()), |program| Err(Error::Missing { program }))
}

/// Whether both programs are installed now.
pub(crate) fn is_available() -> bool {
    require().is_ok()
}

impl Ffmpeg {
    pub fn new(limits: Limits, cancel: Cancel) -> Self {
        Self {
            limits,
            cancel,
            batch: None,
        }
    }

    /// Returns a handle for the files of a batch, which can be cancelled separately.
    pub(crate) fn until(&self, batch: Option<&Cancel>) -> Self {
        Self {
            batch: batch.cloned(),
            ..self.clone()
        }
    }

    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled() || self.batch.as_ref().is_some_and(Cancel::is_cancelled)
    }

    /// Reads the properties of a file.
    pub fn facts(&self, path: &Path, format: Format) -> Result<Facts, Error> {
        const WANTED: &str = "format=duration:stream=codec_type,start_time,width,height,sample_aspect_ratio,\
            avg_frame_rate,r_frame_rate,duration,color_space,color_transfer,color_primaries:stream_disposition=attached_pic,default:\
            stream_side_data=rotation:stream_tags=rotate,DURATION";
        let launch = self
            .ffmpeg("ffprobe")?
            .args(["-of", "json", "-show_entries", WANTED]);
        let launch = launch.args(input(path, format));
        let output = self.run("ffprobe", path, &launch, self.limits.look)?;
        let mut facts = Facts::parse(&output.stdout)?;
        let is_video = format.media_type() == MediaType::Video;
        // Still images that do not say their matrix use that of JPEG, whatever their size.
        facts.is_bt709 &= is_video;
        if is_video && facts.duration == 0.0 {
            // Truncated and live recordings do not contain their duration.
            facts.duration = self.measure(path, format)?;
        }
        Ok(facts)
    }

    /// Checks that a video is complete: a truncated file still contains its original duration.
    pub fn check_end(&self, path: &Path, format: Format, facts: &Facts) -> Result<(), Error> {
        let from = facts.start + (facts.duration - TAIL).max(0.0);
        let launch = self
            .ffmpeg("ffprobe")?
            .args(["-select_streams", &facts.stream.to_string()])
            .args(["-read_intervals", &format!("{from}%"), "-of", "csv=p=0"])
            .args(["-show_entries", "packet=pts_time,duration_time"])
            .args(input(path, format));
        let output = self.run("ffprobe", path, &launch, self.limits.look)?;
        let times = String::from_utf8_lossy(&output.stdout).into_owned();
        // The presentation time, and the duration if it is known.
        let number = |word: &str| word.parse::<f64>().ok().filter(|number| number.is_finite());
        let end = |line: &str| {
            let mut words = line.split(',');
            Some(number(words.next()?)? + words.next().and_then(number).unwrap_or(0.0))
        };
        let end = times.lines().filter_map(end).fold(0.0, f64::max) - facts.start;
        let all = output.stdout.len() < process::STDOUT_MAX;
        if all && end < facts.duration * 0.9 - MISSING {
            Err(Error::Truncated)
        } else {
            Ok(())
        }
    }

    /// Writes the frame at `at` seconds to a new PNG file of this size. HDR and wide gamuts are
    /// converted if this ffmpeg has zimg; otherwise the colours are pale, unless the PNG names their
    /// primaries and transfer function.
    pub fn frame(
        &self,
        file: (&Path, Format),
        facts: &Facts,
        at: f64,
        (width, height): (u32, u32),
        to: &Path,
    ) -> Result<(), Error> {
        let matrix = if facts.is_bt709 {
            ":in_color_matrix=bt709"
        } else {
            ""
        };
        let scale = format!("scale={width}:{height}:flags=area+accurate_rnd{matrix},setsar=1");
        if let Some(colors) = facts.conversion() {
            match self.filtered(file, facts, at, &(scale.clone() + colors), to) {
                Err(Error::Failed { complaint, .. }) => {
                    log::debug!("cannot convert the colours to sRGB, ignoring them: {complaint}");
                }
                other => return other,
            }
        }
        self.filtered(file, facts, at, &scale, to)
    }

    pub(super) fn filtered(
        &self,
        (path, format): (&Path, Format),
        facts: &Facts,
        at: f64,
        filter: &str,
        to: &Path,
    ) -> Result<(), Error> {
        let fresh = Fresh::beside(to)?;
        // There may be no frame close to the end.
        for at in [at, at - 1.0, 0.0] {
            // Counted from the start of the track, which may come after that of the file.
            let moment = format!("{:.6}", facts.start + at);
            let seek = (at > 0.0).then(|| ["-seek_timestamp", "1", "-ss", &moment]);
            // The orientation of a still image is in the container, and not all versions of ffmpeg
            // apply it.
            let as_stored = (format.media_type() != MediaType::Video).then_some("-noautorotate");
            let launch = self
                .ffmpeg("ffmpeg")?
                .args(["-nostdin", "-y"])
                .args(as_stored)
                .args(seek.into_iter().flatten())
                .args(input(path, format))
                .args([
                    "-map",
                    &format!("0:{}", facts.stream),
                    "-frames:v",
                    "1",
                    "-vf",
                    filter,
                ])
                .args(["-f", "image2pipe", "-c:v", "png", "-compression_level", "1"])
                .args([file(&fresh.result())])
                .confined([fresh.directory.clone()]);
            let ran = self.run("ffmpeg", path, &launch, self.limits.frame);
            ran.map_err(|error| fresh.blamed(error))?;
            if fresh.take_png(RESULT) {
                return Ok(());
            }
        }
        Err(fresh.blamed(Error::NoPicture))
    }

    /// Measures the duration of a video by reading all packets, without decoding.
    fn measure(&self, path: &Path, format: Format) -> Result<f64, Error> {
        let launch = self
            .ffmpeg("ffmpeg")?
            .args(["-nostdin", "-nostats", "-progress", "pipe:1"])
            .args(input(path, format))
            .args(["-map", "0:v", "-c", "copy", "-f", "null", "-"]);
        let output = self.run("ffmpeg", path, &launch, self.limits.frame)?;
        Ok(progress_seconds(&String::from_utf8_lossy(&output.stdout)).unwrap_or(0.0))
    }

    /// Returns the resource limits of a process with this processor time.
    pub(super) fn resources(&self, cpu: Duration) -> ResourceLimits {
        ResourceLimits {
            memory: Some(self.limits.memory),
            cpu: Some(cpu),
            output: Some(self.limits.output),
            ..ResourceLimits::default()
        }
    }

    pub(super) fn program(&self, program: &'static str) -> Result<Launch, Error> {
        if self.is_cancelled() {
            return Err(Error::Ended);
        }
        let path: PathBuf = which(program).ok_or(Error::Missing { program })?;
        // The allocator would use most of the limited memory if it had an arena per thread.
        let launch = Launch::new(path)
            .env("MALLOC_ARENA_MAX", "2")
            .limits(self.resources(FRAME_CPU))
            .confined([]);
        Ok(launch.makes_our_files())
    }

    /// Like [`Self::program`] for ffmpeg and ffprobe, with less output.
    pub(super) fn ffmpeg(&self, program: &'static str) -> Result<Launch, Error> {
        Ok(self.program(program)?.args(["-hide_banner", "-v", "error"]))
    }

    pub(super) fn run(
        &self,
        program: &'static str,
        path: &Path,
        launch: &Launch,
        limit: Duration,
    ) -> Result<Output, Error> {
        let cancels: Vec<_> = std::iter::once(&self.cancel).chain(&self.batch).collect();
        checked(program, path, process::run(launch, limit, &cancels))
    }
}

/// Converts the result of a program.
pub(super) fn checked(
    program: &'static str,
    path: &Path,
    ran: Result<Output, process::Error>,
) -> Result<Output, Error> {
    match ran {
        Ok(output) if output.is_success() => Ok(output),
        Ok(output) => {
            let complaint = plain(&output.complaint(), path);
            Err(Error::Failed { program, complaint })
        }
        Err(process::Error::Cancelled) => Err(Error::Ended),
        Err(source) => Err(Error::Run { program, source }),
    }
}

/// Returns the arguments for an input that is read as this format only.
pub(super) fn input(path: &Path, format: Format) -> Vec<OsString> {
    let demuxer = match format {
        Format::Webm | Format::Mkv => "matroska",
        Format::Avi => "avi",
        Format::Jxl => "jpegxl_pipe",
        Format::Bmp => "bmp_pipe",
        Format::Gif => "gif",
        Format::Tiff => "tiff_pipe",
        Format::Webp => "webp_pipe",
        Format::Mp4 | Format::Mov | Format::Avif | Format::Heic => "mov",
        Format::Jpg => "jpeg_pipe",
        Format::Png => "png_pipe",
        Format::Svg => "svg_pipe",
        // No format of ffmpeg: nothing of murald passes it.
        Format::Html => "data",
    };
    let mut words: Vec<OsString> = ["-protocol_whitelist", "file", "-f", demuxer, "-i"]
        .map(OsString::from)
        .into();
    words.push(file(path));
    words
}

/// Returns a path as an argument that cannot be mistaken for an option or another protocol.
pub(super) fn file(path: &Path) -> OsString {
    let mut word = OsString::from("file:");
    word.push(path);
    word
}

/// Removes from an error message what does not help users: the path, which is shown separately and may
/// be that of a copy, and the address of the reporting component.
fn plain(complaint: &str, path: &Path) -> String {
    let complaint = match complaint
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("] "))
    {
        Some((_, rest)) => rest,
        None => complaint,
    };
    let named = format!("{}: ", path.display());
    complaint
        .split_once(&named)
        .map_or(complaint, |(_, why)| why)
        .to_owned()
}

/// The limits of ffmpeg's run time and resources.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Time for examining a file.
    pub look: Duration,
    /// Time for decoding a frame.
    pub frame: Duration,
    /// Maximum time without a progress report while a video is written.
    pub silence: Duration,
    /// Maximum address space in bytes, and maximum size of the output.
    pub memory: u64,
    pub output: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            look: Duration::from_secs(20),
            frame: Duration::from_secs(40),
            silence: Duration::from_secs(120),
            memory: 2 << 30,
            output: 2 << 30,
        }
    }
}

/// Returns the position in seconds from the last of ffmpeg's progress reports.
pub(super) fn progress_seconds(said: &str) -> Option<f64> {
    let line = said
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("out_time_us="))?;
    let micros: f64 = line.trim().parse().ok()?;
    Some((micros / 1e6).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_messages_are_simplified() {
        let check = |said: &str, plainly| assert_eq!(plain(said, Path::new("/a b")), plainly);
        check("file:/a b: Invalid data found", "Invalid data found");
        check(
            "Error reading SVG /a b: XML parse error: no end",
            "XML parse error: no end",
        );
        check(
            "[mov,mp4 @ 0x55d] moov atom not found",
            "moov atom not found",
        );
        check("exit code 3", "exit code 3");
    }

    #[test]
    fn progress_is_parsed() {
        assert_eq!(
            progress_seconds("frame=1\nout_time_us=1500000\nout_time=x\n"),
            Some(1.5)
        );
        assert_eq!(
            progress_seconds("out_time_us=1\nout_time_us=-5\n"),
            Some(0.0)
        );
        assert_eq!(progress_seconds("out_time_us=N/A\n"), None);
    }
}
