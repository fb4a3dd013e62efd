//! The verbs for videos: previews, loops and palettes. The daemon needs ffmpeg for them.

use serde_json::Value;

use super::super::Error;
use super::super::call::Call;
use super::super::columns::{View, more, palette};
use super::super::request::From;
use super::super::verb::{Argument, Flag, Group, Kind, Verb};
use super::FOLDER;
use super::image_sheet::IMAGE;

const ONE: Argument = Argument::one("IMAGE", Kind::Image, "The video");

#[rustfmt::skip]
pub(super) const GROUP: Group = Group { title: "Videos", verbs: &[
    Verb::send(&["video", "preview"], "Create a preview of a video for browsers",
        "POST /images/{IMAGE}/ensure-browser-preview?force={--force=1}", &[])
        .takes(&[ONE]).flags(&[Flag::switch("--force", "Create it again if it exists")])
        .shows(&[&PREVIEW]).waiting("creating the preview..."),
    Verb::send(&["video", "export"], "Export a loop from a video",
        "POST /images/{IMAGE}/video-loop-export", &[
            ("in_seconds", From::Or("--in", "0")), ("out_seconds", From::Of(end)),
            ("preset", From::Or("--preset", r#""mp4_h264""#)),
            ("action", From::Or("--action", r#""import_new""#)),
            ("blend_halves", From::Switch("--blend-halves")), ("folder_id", From::Given("--folder")),
        ])
        .takes(&[ONE]).shows(&[&EXPORTED]).waiting("creating the loop...").flags(&[
            Flag::value("--in", "SECONDS", Kind::Number, "Start of the loop; 0 by default"),
            Flag::value("--out", "SECONDS", Kind::Number, "End of the loop (required)"),
            Flag::value("--preset", "PRESET", Kind::Words(&["mp4_h264", "webm_vp9"]),
                "Video format; mp4_h264 by default"),
            Flag::value("--action", "ACTION", Kind::Words(&["import_new", "replace"]),
                "Import as a new video, or replace this one; import_new by default"),
            Flag::switch("--blend-halves", "Blend the end into the beginning"),
            FOLDER,
        ]),
    Verb::send(&["video", "palette"], "Extract the palette of a video at a given time",
        "POST /images/{IMAGE}/extract-video-palette", &[("time_seconds", From::Given("SECONDS"))])
        .takes(&[ONE, Argument::one("SECONDS", Kind::Number, "Time from the beginning")])
        .shows(&[&COLORS]),
]};

fn end(call: &Call) -> Result<Option<Value>, Error> {
    let missing = || Error::usage("missing flag --out: the end of the loop, in seconds");
    call.value("--out").cloned().map(Some).ok_or_else(missing)
}

const PREVIEW: View = IMAGE.showing(|_, stdout, image| match image["preview_path"].as_str() {
    Some(path) => stdout.line(path),
    None => stdout.say("made"),
});
const EXPORTED: View = View::says(
    "POST /images/{id}/video-loop-export",
    &[more("action image_id path")],
    "the loop is image {image_id}: {path}",
);
const COLORS: View = View::sheet(
    "POST /images/{id}/extract-video-palette",
    &[more("image_id"), palette("colors", "colors"), more("image")],
);
