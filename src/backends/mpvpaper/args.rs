//! Builds mpvpaper's command line, and reads it again for an adopted process. Pure.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::backends::{Error, fit_word};
use crate::compositor::Output;
use crate::config::{BackendName, Mpvpaper as Options, MpvpaperLayer};
use crate::wire::{Fit, Position, Sound};

pub(super) const NAME: &str = "mpvpaper";
/// The flag for a process that stops itself while it is not visible.
pub(super) const STOPS: &str = "-s";
const SOCKET_OPTION: &str = "input-ipc-server=";
const VOLUME: &str = "volume=";
const AUDIBLE: &str = "mute=no";
const SILENT: &str = "no-audio ";
/// Without it, mpv writes a status line to the log again and again, which wakes the daemon.
const QUIET: &str = "quiet ";
/// The options for an audio track, which override a `no-audio` of the user, and for none.
const TRACK: [&str; 2] = ["aid=auto", "aid=no"];

/// The video to play.
#[derive(Clone)]
pub(super) struct Wanted {
    /// The text by which mpvpaper finds the output.
    pub(super) matched: String,
    pub(super) file: PathBuf,
    pub(super) content: String,
    pub(super) audio: bool,
    /// Overrides `audio` and the user's own options.
    pub(super) sound: Option<Sound>,
    pub(super) fit: Option<Fit>,
    pub(super) position: Option<Position>,
}

/// The arguments of a process; the last one is the file.
pub(super) fn args(options: &Options, wanted: &Wanted, socket: &Path) -> Vec<OsString> {
    let mut args: Vec<OsString> = Vec::new();
    match options.verbose {
        0 => {}
        1 => args.push("-v".into()),
        _ => args.push("-vv".into()),
    }
    if options.auto_stop {
        args.push(STOPS.into());
    } else if options.auto_pause {
        args.push("-p".into());
    }
    if options.slideshow_secs > 0 {
        args.extend(["-n".into(), options.slideshow_secs.to_string().into()]);
    }
    if options.layer != MpvpaperLayer::Default {
        args.extend(["-l", options.layer.as_str()].map(OsString::from));
    }
    let mut mpv = OsString::from(QUIET);
    if wanted.sound.is_none() && !wanted.audio {
        mpv.push(SILENT);
    }
    if !options.mpv_options.trim().is_empty() {
        mpv.push(options.mpv_options.trim());
        mpv.push(" ");
    }
    // The requested fit follows the user's options, so that it overrides them.
    if let Some(word) = wanted
        .fit
        .and_then(|fit| fit_word(BackendName::Mpvpaper, fit))
    {
        mpv.push(word);
        mpv.push(" ");
    }
    if let Some(position) = wanted.position {
        // The range is from -1 (left or top) to 1.
        let [x, y] = [position.x(), position.y()].map(|share| share * 2.0 - 1.0);
        mpv.push(format!("video-align-x={x} video-align-y={y} "));
    }
    // The sound comes last before the socket, for `sound_in`.
    if let Some(Sound { muted, volume }) = wanted.sound {
        mpv.push(format!(
            "{} {VOLUME}{volume} {AUDIBLE} ",
            TRACK[usize::from(muted)]
        ));
    }
    mpv.push(SOCKET_OPTION);
    mpv.push(socket);
    args.extend(["-o".into(), mpv, wanted.matched.clone().into()]);
    args.push(wanted.file.clone().into_os_string());
    args
}

/// The sound that a command line sets, if murald wrote it, or a user wrote it in the same form.
pub(super) fn sound_in(args: &[OsString]) -> Option<Sound> {
    let at = args.iter().position(|arg| arg == "-o")?;
    let options = args.get(at + 1)?.to_str()?;
    let mut words = options.rsplit(' ').skip(1);
    let volume = (words.next()? == AUDIBLE).then(|| words.next()?.strip_prefix(VOLUME))??;
    let track = words.next()?;
    let muted = TRACK.iter().position(|one| *one == track)? == 1;
    Some(Sound {
        muted,
        volume: volume.parse().ok()?,
    })
}

/// The name of an output for mpvpaper. Up to 1.8 it selects every output whose name is a part of
/// the given one. If that would be a second output, the description is used.
pub(super) fn matched(output: &Output, outputs: &[Output]) -> Result<String, Error> {
    let alone = |text: &str| {
        outputs
            .iter()
            .all(|other| other.name == output.name || !text.contains(&other.name))
    };
    if alone(&output.name) {
        return Ok(output.name.clone());
    }
    // mpvpaper's descriptions lack the name that compositors append.
    let suffix = format!(" ({})", output.name);
    let description = output
        .description
        .strip_suffix(&suffix)
        .unwrap_or(&output.description);
    let same = outputs
        .iter()
        .filter(|other| other.description.starts_with(description))
        .count();
    if !description.is_empty() && same == 1 && alone(description) {
        return Ok(description.to_owned());
    }
    Err(Error::Refused(format!(
        "{NAME} cannot distinguish the output {} from another whose name is part of it",
        output.name
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(name: &str, description: &str) -> Output {
        Output {
            description: description.to_owned(),
            ..Output::plain(name)
        }
    }

    #[test]
    fn command_line_has_all_options() {
        let check = |options: &Options, audio, expected: &[&str]| {
            let asked = options.slideshow_secs.eq(&30);
            let fit = asked.then_some(Fit::Fill);
            let position = asked.then(|| "top-right".parse().unwrap());
            let matched = "DP-1".to_owned();
            let file = "/a b, #.mp4".into();
            let content = String::new();
            let wanted = Wanted {
                matched,
                file,
                content,
                audio,
                sound: None,
                fit,
                position,
            };
            let args = args(options, &wanted, Path::new("/run/m.sock"));
            assert_eq!(args, expected);
            assert_eq!(sound_in(&args), None);
            for sound in [(false, 30), (true, 100)].map(|(muted, volume)| Sound { muted, volume }) {
                let wanted = Wanted {
                    sound: Some(sound),
                    ..wanted.clone()
                };
                let args = super::args(options, &wanted, Path::new("/run/m.sock"));
                assert_eq!(sound_in(&args), Some(sound), "{args:?}");
                let set = if sound.muted {
                    "aid=no volume=100 "
                } else {
                    "aid=auto volume=30 "
                };
                assert!(
                    args.iter().any(|arg| arg.to_string_lossy().contains(set)),
                    "{args:?}"
                );
            }
        };
        let socket = "input-ipc-server=/run/m.sock";
        let silent = format!("quiet no-audio loop {socket}");
        let tail = ["DP-1", "/a b, #.mp4"];
        let default = Options::default();
        check(&default, false, &[&["-o", &silent][..], &tail].concat());
        check(
            &default,
            true,
            &[&["-o", &format!("quiet loop {socket}")][..], &tail].concat(),
        );
        let all = Options {
            mpv_options: " hwdec=auto  ".to_owned(),
            verbose: 2,
            auto_pause: true,
            auto_stop: true,
            layer: MpvpaperLayer::Bottom,
            slideshow_secs: 30,
        };
        let seen = "keepaspect=no video-align-x=1 video-align-y=-1";
        let options = format!("quiet no-audio hwdec=auto {seen} {socket}");
        let words = ["-vv", "-s", "-n", "30", "-l", "bottom", "-o", &options];
        check(&all, false, &[&words[..], &tail].concat());
        let pause = Options {
            mpv_options: String::new(),
            verbose: 1,
            auto_pause: true,
            ..Options::default()
        };
        let quiet = format!("quiet {socket}");
        check(
            &pause,
            true,
            &[&["-v", "-p", "-o", &quiet][..], &tail].concat(),
        );
    }

    #[test]
    fn output_whose_name_contains_another_is_found_by_its_description() {
        let check = |name, outputs: &[(&str, &str)], expected: Option<&str>| {
            let outputs: Vec<_> = outputs.iter().map(|(n, d)| output(n, d)).collect();
            let meant = outputs.iter().find(|output| output.name == name).unwrap();
            assert_eq!(matched(meant, &outputs).ok().as_deref(), expected, "{name}");
        };
        let both = [("DP-1", "Acer X 1 (DP-1)"), ("eDP-1", "BOE 0x0A (eDP-1)")];
        check("DP-1", &both, Some("DP-1"));
        check("eDP-1", &both, Some("BOE 0x0A"));
        check("eDP-1", &both[1..], Some("eDP-1"));
        check("DP-11", &[("DP-1", "Same"), ("DP-11", "Same")], None);
        check("DP-11", &[("DP-1", "A"), ("DP-11", "")], None);
    }
}
