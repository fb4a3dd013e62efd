//! Pictures that only other programs decode: which of them show which picture right, and how they are
//! called. They write PNGs, which `decode` reads.
//!
//! ffmpeg ignores tiles, alpha and profiles in AVIF and HEIC; libheif's programs ignore the numbers of
//! colours there. EXIF in what they write is ignored: the container alone says how a picture is turned.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::error::Error;
use super::ffmpeg::{Ffmpeg, TONES, blamed, is_whole};
use crate::media::{self, Shown, Traits};
use crate::process::which;
use crate::wire::Format;

/// From the primaries that the picture names to those of sRGB. It needs zimg.
const PRIMARIES: &str = ",format=gbrp16le,zscale=p=bt709:t=iec61966-2-1";

/// The arguments to draw a file in a size into another file.
type Arguments = fn(&Path, (u32, u32), &Path) -> Vec<OsString>;

/// A program that writes PNGs.
pub(crate) struct Program {
    /// The names that it has in its versions, the newest first.
    names: &'static [&'static str],
    /// Debian's package of it.
    pub(crate) package: &'static str,
    pub(crate) opens: &'static [Format],
    /// Whether it shows a picture right.
    shows: fn(&Traits) -> bool,
    /// None: those of ffmpeg.
    arguments: Option<Arguments>,
}

/// In the order in which they are tried.
pub(crate) const PROGRAMS: [Program; 4] = [
    Program {
        names: &["heif-dec", "heif-convert"],
        package: "libheif-examples",
        opens: &[Format::Avif, Format::Heic],
        shows: |traits| !traits.is_hdr(),
        arguments: Some(|path, _, to| vec![path.into(), to.into()]),
    },
    Program {
        names: &["djxl"],
        package: "libjxl-tools",
        opens: &[Format::Jxl],
        shows: |_| true,
        arguments: Some(|path, _, to| {
            vec![path.into(), to.into(), "--color_space=RGB_D65_SRG_Rel_SRG".into()]
        }),
    },
    Program {
        names: &["rsvg-convert"],
        package: "librsvg2-bin",
        opens: &[Format::Svg],
        shows: |_| true,
        arguments: Some(|path, (width, height), to| {
            let (width, height) = (width.to_string().into(), height.to_string().into());
            // A drawing without a size of its own keeps its shape.
            let size: [OsString; 5] = ["-a".into(), "-w".into(), width, "-h".into(), height];
            size.into_iter().chain(["-o".into(), to.into(), path.into()]).collect()
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
    /// The name of the installed one, which may come and go while the daemon runs.
    pub(crate) fn installed(&self) -> Option<&'static str> {
        self.names.iter().find(|name| which(name).is_some()).copied()
    }

    pub(crate) fn name(&self) -> &'static str {
        self.names[0]
    }

    /// For people, who may find it by any of its names.
    pub(crate) fn wanted(&self) -> String {
        self.names.join(" or ")
    }

    fn that_show(format: Format, traits: &Traits) -> impl Iterator<Item = &'static Self> + Clone {
        let fits = move |it: &&Self| it.opens.contains(&format) && (it.shows)(traits);
        PROGRAMS.iter().filter(fits)
    }
}

/// Refuses a picture that no installed program shows right.
pub(crate) fn require_for(format: Format, traits: &Traits) -> Result<(), Error> {
    match Program::that_show(format, traits).any(|program| program.installed().is_some()) {
        true => Ok(()),
        false => Err(refusal(format, traits, None)),
    }
}

/// The failure of what was tried, with the name of a program that is not installed and does better.
fn refusal(format: Format, traits: &Traits, failed: Option<Error>) -> Error {
    let missing = Program::that_show(format, traits).find(|it| it.installed().is_none());
    let (name, missing) = (media::name(format), missing.map(Program::wanted));
    let said = match (failed, missing) {
        (Some(error), None) => return error,
        (Some(error), Some(program)) => format!("{error}; {program} opens {name}"),
        (None, Some(program)) => {
            format!("no installed program shows this {name} right; {program} does")
        }
        (None, None) => format!("no program that murald knows shows this {name} right"),
    };
    Error::NotShown(said)
}

impl Ffmpeg {
    /// Writes a picture to a file whose name ends in `.png`, by the first installed program that shows
    /// it right; a drawing in this size. Returns how the file is to be shown.
    pub(crate) fn picture(
        &self,
        (path, format): (&Path, Format),
        traits: &Traits,
        size: (u32, u32),
        to: &Path,
    ) -> Result<Shown, Error> {
        let mut failed = None;
        for program in Program::that_show(format, traits) {
            let Some(name) = program.installed() else { continue };
            let shown = match program.arguments {
                Some(arguments) => {
                    self.convert(name, path, arguments(path, size, to), (to, traits))
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
        arguments: Vec<OsString>,
        (to, traits): (&Path, &Traits),
    ) -> Result<Shown, Error> {
        // A file that another program has left there must not pass for this one's.
        fs::remove_file(to).ok();
        let launch = self.program(program)?.args(arguments);
        let ran = self.run(program, path, &launch, self.limits.frame);
        if let Some(number) = traits.number {
            keep_number(number, to);
        }
        let complaint = "it wrote no picture".to_owned();
        match ran {
            Ok(_) if is_whole(to) => Ok(Shown { orientation: 0, points: traits.points }),
            Ok(_) => Err(blamed(Error::Failed { program, complaint }, to)),
            Err(error) => Err(blamed(error, to)),
        }
    }

    /// Converts with ffmpeg, which may read the colours from the picture itself.
    fn still_of(&self, file: (&Path, Format), traits: &Traits, to: &Path) -> Result<Shown, Error> {
        let facts = self.facts(file.0, file.1)?;
        let colors = match (facts.is_hdr || traits.is_hdr(), facts.is_wide) {
            (true, _) => TONES,
            (_, true) => PRIMARIES,
            _ => "",
        };
        let filter = format!("scale=flags=area+accurate_rnd{colors}");
        self.filtered(file, &facts, 0.0, &filter, to)?;
        Ok(Shown { orientation: traits.orientation, points: None })
    }
}

/// Keeps one of the pictures of a file, which were all written, each with its number.
fn keep_number(kept: usize, to: &Path) {
    let stem = to.with_extension("");
    for number in 1.. {
        let mut name = stem.clone().into_os_string();
        name.push(format!("-{number}.png"));
        let part = PathBuf::from(name);
        let done = match number == kept {
            true => fs::rename(&part, to),
            false => fs::remove_file(&part),
        };
        if done.is_err() {
            break;
        }
    }
}
