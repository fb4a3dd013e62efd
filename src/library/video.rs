//! Makes previews for browsers, palettes and loops of videos that are in the library.
//!
//! Runs on the threads of [`crate::transcode`]; callers pass a reply and do not wait. A loop lands like
//! an import, on the thread `library`. A loop that replaces its video lands beside it, gets its row in
//! one transaction, and its name once the old file is removed. After a kill at any moment, one of the
//! two is there.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::batch::Reply;
use super::decode::Tools;
use super::name::Name;
use super::task::{Prepared, Ready};
use super::{Error, Library};
use crate::paths::Replacement;
use crate::store::edits::{self, ImageChange};
use crate::transcode::{self, Cut, Ffmpeg};
use crate::wire::{GalleryDomain, Image, LoopPreset, MediaType, Resolution};

/// A loop's shortest length, in seconds.
const LOOP_MIN: f64 = 0.1;
/// The error of clients that round, in seconds.
const ROUNDING: f64 = 0.001;

/// The destination of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopGoes {
    /// It replaces the video that it was cut from.
    Replace,
    /// It becomes a new image, in this folder.
    New { folder: Option<i64> },
}

impl Library {
    /// Makes a video's preview if it has none, or anyway with `force`.
    pub fn ensure_preview(&self, id: i64, force: bool, reply: Reply<Image>) {
        let ready = self.video(id).and_then(|image| {
            let present = !force && has_preview(&image);
            if !present {
                require(&image)?;
            }
            Ok(present.then_some(image))
        });
        match ready {
            Ok(Some(image)) => reply(Ok(image)),
            Ok(None) => {
                self.transcoder
                    .submit(self.job(id, reply, move |library, ffmpeg, image| {
                        library.make_preview(ffmpeg, image, force)
                    }))
            }
            Err(error) => reply(Err(error)),
        }
    }

    /// Sets a video's palette to that of its frame at `at` seconds, or of the nearest frame.
    pub fn take_palette(&self, id: i64, at: f64, reply: Reply<Image>) {
        if let Err(error) = self.video(id).and_then(|image| require(&image)) {
            return reply(Err(error));
        }
        self.transcoder
            .submit_frame(self.job(id, reply, move |library, ffmpeg, image| {
                library.palette(ffmpeg, image, at)
            }));
    }

    /// Cuts a loop out of a video; the reply has the image of the loop.
    pub fn export_loop(
        &self,
        id: i64,
        (cut, preset): (Cut, LoopPreset),
        goes: LoopGoes,
        reply: Reply<Image>,
    ) {
        let ready = self.video(id).and_then(|image| {
            if image.in_place && goes == LoopGoes::Replace {
                return Err(Error::InPlace { id });
            }
            check_cut(cut, image.duration)?;
            require(&image)
        });
        if let Err(error) = ready {
            return reply(Err(error));
        }
        self.transcoder
            .submit(self.job(id, reply, move |library, ffmpeg, image| {
                // A shorter video may have replaced it while the job waited.
                check_cut(cut, image.duration)?;
                library.make_loop(ffmpeg, image, (cut, preset), goes)
            }));
    }

    /// Work on a video for a thread of the transcoder, which replies.
    fn job(
        &self,
        id: i64,
        reply: Reply<Image>,
        work: impl Fn(&Self, &Ffmpeg, &Image) -> Result<Image, Error> + Send + 'static,
    ) -> transcode::Job {
        let library = self.clone();
        Box::new(move |ran| {
            let ran = ran.map_err(Error::transcoding(Path::new("")));
            let work = |ffmpeg| library.on_video(id, |image| work(&library, ffmpeg, image));
            reply(ran.and_then(work));
        })
    }

    fn video(&self, id: i64) -> Result<Image, Error> {
        let image = self.image(id)?;
        match image.media_type {
            MediaType::Video => Ok(image),
            MediaType::Image | MediaType::Web => Err(Error::NotVideo {
                id,
                name: image.name,
            }),
        }
    }

    /// Works on a video as it is now, and again if its file was renamed in between.
    fn on_video<T>(&self, id: i64, work: impl Fn(&Image) -> Result<T, Error>) -> Result<T, Error> {
        let mut image = self.video(id)?;
        loop {
            match work(&image) {
                Err(Error::Transcode { path, source }) if path == image.path => {
                    match self.moved(&image)? {
                        Some(now) => image = now,
                        None => return Err(Error::Transcode { path, source }),
                    }
                }
                done => return done,
            }
        }
    }

    fn make_preview(&self, ffmpeg: &Ffmpeg, image: &Image, force: bool) -> Result<Image, Error> {
        if !force && has_preview(image) {
            return Ok(image.clone());
        }
        let path = self.thumbnails.preview(image);
        let new = Replacement::create(&path).map_err(Error::file("write", &path))?;
        let what = format!("the preview of image {}", image.id);
        let file = (&*image.path, image.format);
        let made = ffmpeg
            .facts(file.0, file.1)
            .and_then(|facts| ffmpeg.preview(&what, file, &facts, new.path()));
        made.map_err(Error::transcoding(&image.path))?;
        // Flushed before the rename, so that a power failure cannot leave half a preview.
        File::open(new.path())
            .and_then(|file| file.sync_all())
            .and_then(|()| new.land())
            .map_err(Error::file("write", &path))?;
        if !self.store.write(|c| edits::set_preview(c, image, &path))? {
            // The image was deleted, or has another video by now.
            fs::remove_file(&path).ok();
            return Err(Error::NoImage { id: image.id });
        }
        self.changed(GalleryDomain::Images);
        self.image(image.id)
    }

    fn palette(&self, ffmpeg: &Ffmpeg, image: &Image, at: f64) -> Result<Image, Error> {
        let tools = Tools {
            decoder: &self.context.decoder,
            ffmpeg,
        };
        let file = (&*image.path, image.format);
        let size = Resolution::Default;
        let frame = tools.frame(file, Some(at), size, &|| self.thumbnails.scratch(), None)?;
        let colors = Some(frame.colors);
        let change = ImageChange {
            colors,
            ..ImageChange::default()
        };
        self.store.write(|c| edits::change(c, image.id, &change))?;
        self.changed(GalleryDomain::Images);
        self.image(image.id)
    }

    fn make_loop(
        &self,
        ffmpeg: &Ffmpeg,
        image: &Image,
        (cut, preset): (Cut, LoopPreset),
        goes: LoopGoes,
    ) -> Result<Image, Error> {
        let mut copy = self.context.new_copy()?;
        let what = format!("the loop of image {}", image.id);
        let file = (&*image.path, image.format);
        let cut = Cut {
            to: cut.to.min(image.duration),
            ..cut
        };
        let made = ffmpeg
            .facts(file.0, file.1)
            .and_then(|facts| ffmpeg.cut(&what, file, &facts, (cut, preset), &copy.path));
        made.map_err(Error::transcoding(&image.path))?;
        copy.seal(&self.context.decoder)?;
        let format = preset.format();
        let present = self
            .context
            .present(&copy.checksum)?
            .map(|imported| imported.image);
        match (present, goes) {
            (Some(present), LoopGoes::Replace) if present.id != image.id => {
                Err(Error::Same { id: present.id })
            }
            (Some(present), _) => Ok(present),
            (None, LoopGoes::New { folder }) => {
                let row = self.context.describe(
                    &image.path,
                    copy.file(),
                    folder,
                    self.context.tools(),
                )?;
                let name = PathBuf::from(format!("{}_loop.{}", image.name, format.as_str()));
                let name = Name::from_path(&name, format)?;
                let ready = Ready {
                    copy,
                    name,
                    row,
                    note: None,
                };
                Ok(self.land(Prepared::Copy(Box::new(ready)))?.image)
            }
            (None, LoopGoes::Replace) => {
                let id = image.id;
                let tools = self.context.tools();
                let row = self
                    .context
                    .describe(&image.path, copy.file(), None, tools)?;
                let owner = &self.owner;
                owner.call(move |files| files.replace(id, copy, row))?;
                self.image(image.id)
            }
        }
    }
}

fn require(image: &Image) -> Result<(), Error> {
    transcode::require().map_err(Error::transcoding(&image.path))
}

fn has_preview(image: &Image) -> bool {
    image.preview_path.as_deref().is_some_and(Path::exists)
}

fn check_cut(cut: Cut, duration: f64) -> Result<(), Error> {
    let Cut { from, to, .. } = cut;
    let why = if !(from.is_finite() && to.is_finite()) || from < 0.0 {
        "in_seconds is before the video begins".to_owned()
    } else if to > duration + ROUNDING {
        format!("out_seconds is {to}, but the video has only {duration} s")
    } else if to.min(duration) - from < LOOP_MIN - 1e-9 {
        format!("a loop must have at least {LOOP_MIN} s; {from} to {to} is shorter")
    } else {
        return Ok(());
    };
    Err(Error::BadLoop { why })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_must_be_within_the_video() {
        let check = |from, to, fits: bool| {
            let cut = Cut {
                from,
                to,
                blend_halves: false,
            };
            assert_eq!(check_cut(cut, 10.0).is_ok(), fits, "{from} to {to}");
        };
        check(0.0, 10.0, true);
        check(9.9, 10.0, true);
        check(0.0, 10.0005, true);
        check(0.0, 10.5, false);
        check(-0.1, 5.0, false);
        check(5.0, 5.05, false);
        check(5.0, 4.0, false);
        check(0.0, f64::NAN, false);
    }
}
