//! Encodes videos: previews for browsers, and loops. Runs on the thread `transcode`.

use std::path::Path;
use std::time::Duration;

use super::error::Error;
use super::facts::Facts;
use super::ffmpeg::progress_seconds;
use super::ffmpeg::{Ffmpeg, checked, file, input};
use super::fresh::{Fresh, RESULT};
use crate::process::{self, Launch};
use crate::wire::{Format, LoopPreset};

/// Maximum size of a preview.
const PREVIEW: (u32, u32) = (1280, 720);
/// Duration of the transition between the halves of a loop, in seconds.
const BLEND: f64 = 1.0;
/// Interval of ffmpeg's progress reports, in seconds.
const TELL_EVERY: &str = "5";

/// A part of a video, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cut {
    pub from: f64,
    pub to: f64,
    /// Swaps the halves and blends them where they meet, so that the loop ends as it begins.
    pub blend_halves: bool,
}

impl Ffmpeg {
    /// Writes a small H.264 video that every browser can play. `what` names the job in the log.
    pub fn preview(
        &self,
        what: &str,
        (path, format): (&Path, Format),
        facts: &Facts,
        to: &Path,
    ) -> Result<(), Error> {
        let (width, height) = crate::media::fit((facts.width, facts.height), PREVIEW);
        let scale = format!("scale={}:{},setsar=1", even(width), even(height));
        let launch = self
            .writer()?
            .args(input(path, format))
            .args([
                "-map",
                &format!("0:{}", facts.stream),
                "-map",
                "0:a:0?",
                "-vf",
                &scale,
            ])
            .args([
                "-c:v", "libx264", "-preset", "veryfast", "-crf", "26", "-pix_fmt", "yuv420p",
            ])
            .args(["-c:a", "aac", "-b:a", "96k", "-ac", "2"])
            .args(["-movflags", "+faststart", "-f", "mp4"]);
        self.write(what, (path, to), &launch, facts.duration)
    }

    /// Writes a part of a video.
    pub fn cut(
        &self,
        what: &str,
        (path, format): (&Path, Format),
        facts: &Facts,
        (cut, preset): (Cut, LoopPreset),
        to: &Path,
    ) -> Result<(), Error> {
        let source = input(path, format);
        let plan = if cut.blend_halves {
            Plan::blended(cut, facts)
        } else {
            Plan::plain(cut, facts)
        };
        let mut launch = self.writer()?;
        for (from, length) in &plan.parts {
            launch = launch
                .args(["-ss", &format!("{from:.6}"), "-t", &format!("{length:.6}")])
                .args(source.clone());
        }
        launch = launch.args(["-filter_complex", &plan.filter, "-map", "[v]"]);
        if facts.has_audio {
            launch = launch.args(["-map", "[a]"]);
        }
        launch = launch.args(coding(preset));
        self.write(what, (path, to), &launch, plan.length)
    }

    /// Returns the start of every command that writes a video. The same input gives the same bytes,
    /// so that a loop that is made twice is in the library once.
    fn writer(&self) -> Result<Launch, Error> {
        let launch = self.ffmpeg("ffmpeg")?;
        Ok(launch
            .args(["-nostdin", "-y", "-nostats", "-progress", "pipe:1"])
            .args(["-stats_period", TELL_EVERY]))
    }

    fn write(
        &self,
        what: &str,
        (path, to): (&Path, &Path),
        launch: &Launch,
        length: f64,
    ) -> Result<(), Error> {
        // One minute plus ten times the length of the video.
        let cpu = Duration::from_secs_f64((60.0 + 10.0 * length.max(0.0)).min(1e9));
        let fresh = Fresh::beside(to)?;
        let launch = &launch
            .clone()
            .args([file(&fresh.result())])
            .limits(self.resources(cpu))
            .confined([fresh.directory.clone()]);
        log::info!("{what} started");
        log::debug!("{}", launch.shown());
        let mut said = String::new();
        let mut on_output = |bytes: &[u8]| {
            said.push_str(&String::from_utf8_lossy(bytes));
            // A report ends with a line `progress=`.
            let Some(end) = said.rfind("progress=") else {
                return;
            };
            if let Some(done) = progress_seconds(&said[..end]).filter(|_| length > 0.0) {
                let percent = (100.0 * done / length).clamp(0.0, 100.0);
                log::info!("{what}: {percent:.0} %");
            }
            said.clear();
        };
        let ran = process::run_with_progress(
            launch,
            self.limits.silence,
            &[&self.cancel],
            &mut on_output,
        );
        let failed = |complaint: String| Error::Failed {
            program: "ffmpeg",
            complaint,
        };
        checked("ffmpeg", path, ran).map_err(|error| fresh.blamed(error))?;
        let made = fresh.take(RESULT).and_then(|made| made.metadata());
        let made = made.map_err(|_| fresh.blamed(failed("it wrote no video".to_owned())))?;
        // ffmpeg exits successfully even if it cannot write the end of the file.
        if made.len() >= self.limits.output {
            let limit = self.limits.output >> 20;
            return Err(failed(format!("the result is larger than {limit} MiB")));
        }
        log::info!("{what} finished");
        Ok(())
    }
}

/// Which parts of a file are read, and how they are combined.
struct Plan {
    /// Start and length of each part, in seconds.
    parts: Vec<(f64, f64)>,
    filter: String,
    /// The length of the result, in seconds.
    length: f64,
}

impl Plan {
    fn plain(cut: Cut, facts: &Facts) -> Self {
        let length = cut.to - cut.from;
        let mut filter = format!("[0:{}]{}[v]", facts.stream, LAST);
        if facts.has_audio {
            filter.push_str(";[0:a:0]anull[a]");
        }
        Self {
            parts: vec![(cut.from, length)],
            filter,
            length,
        }
    }

    fn blended(cut: Cut, facts: &Facts) -> Self {
        let (over, under) = facts.rate;
        let second = f64::from(over) / f64::from(under);
        // Halves are whole numbers of frames. The first half, which comes last, has one frame more,
        // so that the last frame of the loop is the same as its first.
        let frames = ((cut.to - cut.from) * second / 2.0).floor().max(1.0);
        let half = frames / second;
        let fade = (frames / 2.0).floor().min((BLEND * second).round()) / second;
        let stream = facts.stream;
        // Without setpts, after which ffmpeg 7.1 does not know the constant rate that xfade
        // requires.
        let even = format!("fps={over}/{under}:start_time=0,settb=AVTB");
        let mut filter = format!("[1:{stream}]{even}[first];[0:{stream}]{even}[second];");
        if fade > 0.0 {
            let offset = half - fade;
            filter.push_str(&format!(
                "[second][first]xfade=transition=fade:duration={fade:.6}:offset={offset:.6},{LAST}[v]"
            ));
        } else {
            filter.push_str(&format!("[second][first]concat=n=2:v=1:a=0,{LAST}[v]"));
        }
        if facts.has_audio && fade > 0.0 {
            filter.push_str(&format!(
                ";[1:a:0]atrim=end={half:.6}[heard];\
                 [0:a:0][heard]acrossfade=d={fade:.6}:c1=tri:c2=tri[a]"
            ));
        } else if facts.has_audio {
            filter.push_str(";[0:a:0][1:a:0]concat=n=2:v=0:a=1[a]");
        }
        let frame = 1.0 / second;
        let parts = vec![(cut.from + half, half), (cut.from, half + frame)];
        Self {
            parts,
            filter,
            length: 2.0 * half + frame - fade,
        }
    }
}

/// Makes a video that both codecs accept: even dimensions, planar YUV.
const LAST: &str = "scale=trunc(iw/2)*2:trunc(ih/2)*2,format=yuv420p";

fn coding(preset: LoopPreset) -> Vec<&'static str> {
    let mut words = match preset {
        LoopPreset::Mp4H264 => {
            let mut words = vec!["-c:v", "libx264", "-preset", "medium", "-crf", "18"];
            words.extend([
                "-c:a",
                "aac",
                "-b:a",
                "192k",
                "-movflags",
                "+faststart",
                "-f",
                "mp4",
            ]);
            words
        }
        LoopPreset::WebmVp9 => {
            let mut words = vec![
                "-c:v",
                "libvpx-vp9",
                "-crf",
                "28",
                "-b:v",
                "0",
                "-row-mt",
                "1",
            ];
            words.extend(["-deadline", "good", "-cpu-used", "4"]);
            words.extend(["-c:a", "libopus", "-b:a", "160k", "-f", "webm"]);
            words
        }
    };
    words.extend([
        "-map_metadata",
        "-1",
        "-fflags",
        "+bitexact",
        "-flags",
        "+bitexact",
    ]);
    words
}

fn even(side: u32) -> u32 {
    (side & !1).max(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(has_audio: bool) -> Facts {
        let json = br#"{"streams":[{"codec_type":"video","width":64,"height":64,
            "avg_frame_rate":"30/1"}],"format":{"duration":"10"}}"#;
        Facts {
            has_audio,
            ..Facts::parse(json).unwrap()
        }
    }

    #[test]
    fn halves_are_whole_frames_and_swapped() {
        let check = |from, to, parts: [(f64, f64); 2], length: f64| {
            let plan = Plan::blended(
                Cut {
                    from,
                    to,
                    blend_halves: true,
                },
                &facts(false),
            );
            for (&(from, length), expected) in plan.parts.iter().zip(parts) {
                assert!((from - expected.0).abs() < 1e-6 && (length - expected.1).abs() < 1e-6);
            }
            assert!((plan.length - length).abs() < 1e-6, "{}", plan.length);
        };
        let frame = 1.0 / 30.0;
        check(1.0, 9.0, [(5.0, 4.0), (1.0, 4.0 + frame)], 7.0 + frame);
        check(0.0, 2.0, [(1.0, 1.0), (0.0, 1.0 + frame)], 1.5 + frame);
        // Three frames: halves of one frame each, and no transition.
        check(0.0, 0.1, [(frame, frame), (0.0, 2.0 * frame)], 3.0 * frame);
    }
}
