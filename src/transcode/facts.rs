//! Parses the JSON that ffprobe writes about a file. Pure.

use serde_json::Value;

use super::error::Error;
use crate::media;

/// Converts PQ or HLG to standard brightness: keeps values up to the middle tones, and compresses
/// brighter ones. White is 203 cd/m² (ITU-R BT.2408).
pub(super) const TONES: &str = ",format=gbrp16le,zscale=t=linear:npl=203,format=gbrpf32le,zscale=p=bt709,\
    tonemap=mobius,zscale=t=bt709";
/// Converts from the primaries of the image to those of sRGB.
const PRIMARIES: &str = ",format=gbrp16le,zscale=p=bt709:t=iec61966-2-1";

/// The properties of a video, or of an image that only ffmpeg decodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// In pixels as shown: square, with the rotation applied.
    pub width: u32,
    pub height: u32,
    /// Duration of the video stream in seconds; 0 for a still image, or if the file does not contain it.
    pub duration: f64,
    /// The time of the first frame in the file, in seconds.
    pub(super) start: f64,
    pub has_audio: bool,
    /// The number of the video stream.
    pub(super) stream: usize,
    /// Frames per second, as a fraction.
    pub(super) rate: (u32, u32),
    /// The file does not say its colour matrix, but has a size for which BT.709 is usual.
    pub(super) is_bt709: bool,
    /// The transfer function is PQ or HLG, for HDR screens.
    pub(super) is_hdr: bool,
    /// The primaries are wider than those of sRGB.
    pub(super) is_wide: bool,
}

impl Facts {
    pub(super) fn parse(json: &[u8]) -> Result<Self, Error> {
        let json: Value = serde_json::from_slice(json).map_err(|error| Error::Answer {
            what: error.to_string(),
        })?;
        let streams = json["streams"].as_array().map_or(&[][..], Vec::as_slice);
        let is = |stream: &Value, kind: &str| stream["codec_type"] == kind;
        // The cover of an audio file is not a video.
        let shown = |stream: &&Value| stream["disposition"]["attached_pic"] != 1;
        let videos = streams.iter().enumerate();
        let mut videos = videos.filter(|(_, stream)| is(stream, "video") && shown(stream));
        let default = |(_, video): &(usize, &Value)| video["disposition"]["default"] == 1;
        let (number, video) = videos
            .clone()
            .find(default)
            .or_else(|| videos.next())
            .ok_or(Error::NoPicture)?;
        let side = |name: &str| {
            video[name]
                .as_u64()
                .and_then(|side| u32::try_from(side).ok())
        };
        let (Some(width @ 1..), Some(height @ 1..)) = (side("width"), side("height")) else {
            return Err(Error::NoPicture);
        };
        media::check_bounds((width, height), 4).map_err(|_| Error::TooLarge { width, height })?;
        let start = number_of(&video["start_time"]).unwrap_or(0.0);
        let duration = number_of(&video["duration"])
            // ffmpeg writes the time at which a track of Matroska ends.
            .or_else(|| clock(&video["tags"]["DURATION"]).map(|end| end - start))
            .or_else(|| number_of(&json["format"]["duration"]));
        let (width, height) = square(width, height, &video["sample_aspect_ratio"]);
        let turned = quarter_turns(video) % 2 == 1;
        let colors = video["color_space"].as_str().unwrap_or("unknown");
        Ok(Self {
            width: if turned { height } else { width },
            height: if turned { width } else { height },
            duration: duration.unwrap_or(0.0),
            start,
            has_audio: streams.iter().any(|stream| is(stream, "audio")),
            stream: number,
            rate: rate(video),
            is_hdr: matches!(
                video["color_transfer"].as_str(),
                Some("smpte2084" | "arib-std-b67")
            ),
            is_wide: !matches!(
                video["color_primaries"].as_str(),
                None | Some("unknown" | "bt709" | "smpte170m" | "bt470bg")
            ),
            is_bt709: colors == "unknown" && width.max(height) >= 1280,
        })
    }
}

impl Facts {
    /// The filter that converts the colours to sRGB, if they are not.
    pub(super) fn conversion(&self) -> Option<&'static str> {
        match (self.is_hdr, self.is_wide) {
            (true, _) => Some(TONES),
            (_, true) => Some(PRIMARIES),
            _ => None,
        }
    }
}

/// Parses a finite number above zero, which ffprobe writes as text.
fn number_of(value: &Value) -> Option<f64> {
    let number: f64 = value.as_str()?.parse().ok()?;
    (number.is_finite() && number > 0.0).then_some(number)
}

/// Parses a time such as 00:01:02.5, as Matroska's tags have it.
fn clock(value: &Value) -> Option<f64> {
    let mut parts = value.as_str()?.split(':').map(str::parse::<f64>);
    let seconds = parts.try_fold(0.0, |sum, part| Some(60.0 * sum + part.ok()?))?;
    (seconds.is_finite() && seconds > 0.0).then_some(seconds)
}

/// Parses two positive integers with a separator.
fn fraction(value: &Value, sign: char) -> Option<(u32, u32)> {
    let (over, under) = value.as_str()?.split_once(sign)?;
    let (over, under) = (over.parse().ok()?, under.parse().ok()?);
    (over > 0 && under > 0).then_some((over, under))
}

/// Returns the size with square pixels, stretched like ffmpeg's `iw*sar`.
fn square(width: u32, height: u32, ratio: &Value) -> (u32, u32) {
    let Some((over, under)) = fraction(ratio, ':') else {
        return (width, height);
    };
    let stretched = f64::from(width) * f64::from(over) / f64::from(under);
    // An absurd ratio is ignored, as the picture could not be decoded.
    if !(1.0..=f64::from(media::SIDE_MAX)).contains(&stretched) {
        return (width, height);
    }
    (stretched.round() as u32, height)
}

/// Returns the number of quarter turns; other angles are rounded.
fn quarter_turns(video: &Value) -> i64 {
    let side = video["side_data_list"].as_array().into_iter().flatten();
    let noted = side.filter_map(|data| data["rotation"].as_f64()).next();
    let tagged = || video["tags"]["rotate"].as_str()?.parse::<f64>().ok();
    let angle = noted
        .or_else(tagged)
        .filter(|angle| angle.is_finite())
        .unwrap_or(0.0);
    ((angle / 90.0).round() as i64).rem_euclid(4)
}

/// Returns the frames per second of the file if they are plausible, or else 30.
fn rate(video: &Value) -> (u32, u32) {
    let believed =
        |&(over, under): &(u32, u32)| (1.0..=120.0).contains(&(f64::from(over) / f64::from(under)));
    let of = |name| fraction(&video[name], '/').filter(believed);
    of("avg_frame_rate")
        .or_else(|| of("r_frame_rate"))
        .unwrap_or((30, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expected: Option<(u32, u32, f64, bool)>) {
        let facts = Facts::parse(json.as_bytes()).ok();
        let seen = facts.map(|f| (f.width, f.height, f.duration, f.has_audio));
        assert_eq!(seen, expected, "{json}");
    }

    #[test]
    fn streams_are_parsed() {
        check("{}", None);
        check("no", None);
        check(
            r#"{"streams":[{"codec_type":"audio"}],"format":{"duration":"3.5"}}"#,
            None,
        );
        check(
            r#"{"streams":[{"codec_type":"audio"},{"codec_type":"video","width":640,"height":360}],
                "format":{"duration":"3.5"}}"#,
            Some((640, 360, 3.5, true)),
        );
        let turned = r#"{"streams":[{"codec_type":"video","width":640,"height":360,
            "duration":"2.0","side_data_list":[{"x":1},{"rotation":-90}]}],"format":{}}"#;
        check(turned, Some((360, 640, 2.0, false)));
        check(&turned.replace("-90", "180"), Some((640, 360, 2.0, false)));
        check(
            &turned.replace(r#""duration":"2.0""#, r#""duration":"N/A""#),
            Some((360, 640, 0.0, false)),
        );
        let wide = r#"{"streams":[{"codec_type":"video","width":720,"height":576,
            "sample_aspect_ratio":"64:45"}]}"#;
        check(wide, Some((1024, 576, 0.0, false)));
        check(&wide.replace("64:45", "1:0"), Some((720, 576, 0.0, false)));
        check(&wide.replace("720", "70000"), None);
        check(&wide.replace("720", "0"), None);
    }

    #[test]
    fn default_track_counts() {
        let json = r#"{"streams":[
            {"codec_type":"video","width":5,"height":5,"duration":"9.0","disposition":{"default":0}},
            {"codec_type":"video","width":7,"height":7,"start_time":"1.5",
             "tags":{"DURATION":"00:01:02.500000000"},"disposition":{"default":1}}],
            "format":{"duration":"99"}}"#;
        check(json, Some((7, 7, 61.0, false)));
        let facts = Facts::parse(json.as_bytes()).unwrap();
        assert_eq!((facts.stream, facts.start), (1, 1.5));
    }

    #[test]
    fn cover_image_is_not_a_video() {
        let cover =
            r#"{"codec_type":"video","width":9,"height":9,"disposition":{"attached_pic":1}}"#;
        let video = r#"{"codec_type":"video","width":5,"height":5}"#;
        check(&format!(r#"{{"streams":[{cover}]}}"#), None);
        check(
            &format!(r#"{{"streams":[{cover},{video}]}}"#),
            Some((5, 5, 0.0, false)),
        );
        let json = format!(r#"{{"streams":[{cover},{video}]}}"#);
        assert_eq!(Facts::parse(json.as_bytes()).unwrap().stream, 1);
    }

    #[test]
    fn implausible_frame_rates_are_ignored() {
        let check = |average: &str, real: &str, expected| {
            let video = serde_json::json!({"avg_frame_rate": average, "r_frame_rate": real});
            assert_eq!(rate(&video), expected, "{average} {real}");
        };
        check("30000/1001", "60/1", (30000, 1001));
        check("0/0", "25/1", (25, 1));
        check("90000/1", "1000/1", (30, 1));
    }
}
