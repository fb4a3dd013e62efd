//! Converts images that murald cannot decode itself: chooses a program that decodes the image
//! correctly, and runs it. The programs write PNG files, which `decode` reads.
//!
//! ffmpeg ignores tiles, alpha and profiles in AVIF and HEIC; libheif's programs ignore code
//! points. EXIF in the output is ignored, as the orientation is in the container.

use std::ffi::OsString;
use std::path::Path;

use super::error::Error;
use super::facts::TONES;
use super::ffmpeg::Ffmpeg;
use super::fresh::{Fresh, RESULT};
use crate::media::{self, Shown, Traits};
use crate::process::which;
use crate::wire::Format;

/// Returns the arguments for converting a file, at this size, to another file.
type Arguments = fn(&Path, (u32, u32), &Path) -> Vec<OsString>;

/// A program that writes PNG files.
pub(crate) struct Program {
    /// The executable's names in different versions, the newest first.
    names: &'static [&'static str],
    /// The name of the Debian package.
    pub(crate) package: &'static str,
    pub(crate) opens: &'static [Format],
    /// Whether it decodes an image with these traits correctly.
    shows: fn(&Traits) -> bool,
    /// `None` for ffmpeg, whose arguments are built elsewhere.
    arguments: Option<Arguments>,
}

/// Sorted by preference.
pub(crate) const PROGRAMS: [Program; 4] = [
    Program {
        names: &["heif-dec", "heif-convert"],
        package: "libheif-examples",
        opens: &[Format::Avif, Format::Heic],
        shows: |traits| !traits.is_hdr() && !traits.premultiplied,
        arguments: Some(|path, _, to| vec![path.into(), to.into()]),
    },
    Program {
        names: &["djxl"],
        package: "libjxl-tools",
        opens: &[Format::Jxl],
        shows: |_| true,
        arguments: Some(|path, _, to| {
            vec![
                path.into(),
                to.into(),
                "--color_space=RGB_D65_SRG_Rel_SRG".into(),
            ]
        }),
    },
    Program {
        names: &["rsvg-convert"],
        package: "librsvg2-bin",
        opens: &[Format::Svg],
        shows: |_| true,
        arguments: Some(|path, (width, height), to| {
            let (width, height) = (width.to_string().into(), height.to_string().into());
            // An SVG with a view box only keeps its aspect ratio.
            let size: [OsString; 5] = ["-a".into(), "-w".into(), width, "-h".into(), height];
            size.into_iter()
                .chain(["-o".into(), to.into(), path.into()])
                .collect()
        }),
    },
    Program {
        names: &["ffmpeg"],
        package: "ffmpeg",
        opens: &[
            Format::Avif,
            Format::Heic,
            Format::Jxl,
            // Varieties that murald does not decode.
            Format::Tiff,
            Format::Bmp,
            Format::Gif,
            Format::Webp,
        ],
        shows: |traits| !(traits.derived || traits.cropped || traits.alpha || traits.profile),
        arguments: None,
    },
];

impl Program {
    /// Returns the installed executable's name; programs may be installed or removed while the
    /// daemon runs.
    pub(crate) fn installed(&self) -> Option<&'static str> {
        self.names
            .iter()
            .find(|name| which(name).is_some())
            .copied()
    }

    pub(crate) fn name(&self) -> &'static str {
        self.names[0]
    }

    /// The names for a message to the user.
    pub(crate) fn wanted(&self) -> String {
        self.names.join(" or ")
    }

    fn that_show(format: Format, traits: &Traits) -> impl Iterator<Item = &'static Self> + Clone {
        let fits = move |it: &&Self| it.opens.contains(&format) && (it.shows)(traits);
        PROGRAMS.iter().filter(fits)
    }
}

/// Fails if no installed program decodes the image correctly.
pub(crate) fn require_for(format: Format, traits: &Traits) -> Result<(), Error> {
    if Program::that_show(format, traits).any(|program| program.installed().is_some()) {
        Ok(())
    } else {
        Err(refusal(format, traits, None))
    }
}

/// Returns the error of the failed programs, and suggests a program that is not installed.
fn refusal(format: Format, traits: &Traits, failed: Option<Error>) -> Error {
    let missing = Program::that_show(format, traits).find(|it| it.installed().is_none());
    let name = media::name(format);
    let missing = missing.map(Program::wanted);
    let said = match (failed, missing) {
        (Some(error), None) => return error,
        (Some(error), Some(program)) => format!("{error}; install {program}, which decodes {name}"),
        (None, Some(program)) => {
            format!("no installed program decodes this {name} correctly; install {program}")
        }
        (None, None) => format!("no program that murald knows decodes this {name} correctly"),
    };
    Error::NotShown(said)
}

impl Ffmpeg {
    /// Converts an image to a file whose name ends in `.png` with the first installed program that
    /// decodes it correctly; an SVG is rendered at this size. Returns how to show the PNG.
    pub(crate) fn picture(
        &self,
        (path, format): (&Path, Format),
        traits: &Traits,
        size: (u32, u32),
        to: &Path,
    ) -> Result<Shown, Error> {
        let mut failed = None;
        for program in Program::that_show(format, traits) {
            let Some(name) = program.installed() else {
                continue;
            };
            let shown = match program.arguments {
                Some(arguments) => {
                    let arguments = |result: &Path| arguments(path, size, result);
                    self.convert(name, path, arguments, (to, traits))
                }
                None => self.still_of((path, format), traits, to),
            };
            match shown {
                Err(error @ (Error::Ended | Error::Write { .. })) => return Err(error),
                Err(error) => failed = failed.or(Some(error)),
                Ok(shown) => return Ok(shown),
            }
        }
        Err(refusal(format, traits, failed))
    }

    fn convert(
        &self,
        program: &'static str,
        path: &Path,
        arguments: impl FnOnce(&Path) -> Vec<OsString>,
        (to, traits): (&Path, &Traits),
    ) -> Result<Shown, Error> {
        let fresh = Fresh::beside(to)?;
        let launch = self
            .program(program)?
            .args(arguments(&fresh.result()))
            .confined([fresh.directory.clone()]);
        let ran = self.run(program, path, &launch, self.limits.frame);
        // The program writes all images of a file that has several.
        let result = match traits.number {
            Some(number) => format!("result-{number}.png"),
            None => RESULT.to_owned(),
        };
        let complaint = "it wrote no picture".to_owned();
        match ran {
            Ok(_) if fresh.take_png(&result) => Ok(Shown {
                orientation: 0,
                points: traits.points,
            }),
            Ok(_) => Err(fresh.blamed(Error::Failed { program, complaint })),
            Err(error) => Err(fresh.blamed(error)),
        }
    }

    /// Converts with ffmpeg, which may find the colours in the image data itself.
    fn still_of(&self, file: (&Path, Format), traits: &Traits, to: &Path) -> Result<Shown, Error> {
        let facts = self.facts(file.0, file.1)?;
        let colors = if traits.is_hdr() {
            TONES
        } else {
            facts.conversion().unwrap_or_default()
        };
        let filter = format!("scale=flags=area+accurate_rnd{colors}");
        self.filtered(file, &facts, 0.0, &filter, to)?;
        Ok(Shown {
            orientation: traits.orientation,
            points: None,
        })
    }
}
