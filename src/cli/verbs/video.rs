//! The verbs for videos: previews, loops and palettes. The daemon needs ffmpeg for them.

use serde::Deserialize;
use serde_json::{Value, json};

use super::super::Error;
use super::super::call::Call;
use super::super::connection::{Answer, RequestPath};
use super::super::request::{From, Record, Request};
use super::super::stdout::Progress;
use super::super::stdout::Stdout;
use super::super::table::{Cell, Table};
use super::super::verb::{Argument, Flag, Group, Kind, Verb};
use super::{FOLDER, empty};
use crate::wire::Image;

const ONE: Argument = Argument::one("IMAGE", Kind::Image, "The video");

pub(super) const GROUP: Group = Group {
    title: "Videos",
    verbs: &[
        Verb::new(
            &["video", "preview"],
            "Make a preview of a video that browsers can play",
            preview,
        )
        .arguments(&[ONE])
        .flags(&[Flag::switch("--force", "Make it again if there is one")]),
        Verb::new(&["video", "export"], "Cut a loop out of a video", export)
            .arguments(&[ONE])
            .flags(&[
                Flag::value("--in", "SECONDS", Kind::Number, "Where the loop begins; 0 by default"),
                Flag::value(
                    "--out",
                    "SECONDS",
                    Kind::Number,
                    "Where the loop ends; this flag is needed",
                ),
                Flag::value(
                    "--preset",
                    "PRESET",
                    Kind::Words(&["mp4_h264", "webm_vp9"]),
                    "The video format; mp4_h264 by default",
                ),
                Flag::value(
                    "--action",
                    "ACTION",
                    Kind::Words(&["import_new", "replace"]),
                    "Where it goes; import_new by default",
                ),
                Flag::switch(
                    "--blend-halves",
                    "Blend its end into its beginning, so that no jump is seen",
                ),
                FOLDER,
            ]),
        Verb::asking(
            &["video", "palette"],
            "Take a video's palette from one moment of it",
            PALETTE,
        )
        .arguments(&[
            ONE,
            Argument::one("SECONDS", Kind::Number, "The moment, counted from the beginning"),
        ]),
    ],
};

const PALETTE: Request = Request::post(
    "/images/{IMAGE}/extract-video-palette",
    &[("time_seconds", From::Given("SECONDS"))],
)
.shows::<Colors>();

fn place(call: &Call, action: &str) -> RequestPath {
    RequestPath::new(&[&"images", &call.word("IMAGE"), &action])
}

/// A request that may take minutes: a person is told what goes on.
fn patiently(
    call: &Call,
    stdout: &Stdout,
    place: &RequestPath,
    body: &Value,
    what: &str,
) -> Result<Answer, Error> {
    let mut progress = Progress::stderr(!stdout.wants_data());
    progress.wait(what);
    call.connect()?.post(place, body)
}

fn preview(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let force = call.has("--force").then_some(1);
    let place = place(call, "ensure-browser-preview").query("force", force);
    let answer = patiently(call, stdout, &place, &empty(), "making the preview...")?;
    stdout.show(&answer, |stdout, image: Image| match image.preview_path {
        Some(path) => stdout.line(path.display()),
        None => stdout.say("made"),
    })
}

#[derive(Deserialize)]
struct Exported {
    image_id: i64,
    path: String,
}

fn export(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let Some(end) = call.value("--out") else {
        return Err(Error::usage("--out is missing: where the loop ends, in seconds"));
    };
    let mut body = json!({
        "in_seconds": call.value("--in").cloned().unwrap_or_else(|| 0.into()),
        "out_seconds": end,
        "preset": call.text("--preset").unwrap_or("mp4_h264"),
        "action": call.text("--action").unwrap_or("import_new"),
        "blend_halves": call.has("--blend-halves"),
    });
    if let Some(folder) = call.value("--folder") {
        body["folder_id"] = folder.clone();
    }
    let place = place(call, "video-loop-export");
    let answer = patiently(call, stdout, &place, &body, "making the loop...")?;
    stdout.show(&answer, |stdout, loop_: Exported| {
        stdout.say(format!("the loop is image {}: {}", loop_.image_id, loop_.path))
    })
}

#[derive(Deserialize)]
struct Colors {
    colors: Vec<String>,
}

impl Record for Colors {
    fn show(self, _: &Call, stdout: &mut Stdout) -> Result<(), Error> {
        let mut sheet = Table::sheet();
        sheet.field("colors", Cell::palette(&self.colors));
        stdout.table(&sheet)
    }
}
