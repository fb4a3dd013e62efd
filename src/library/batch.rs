//! One batch of an import: the files that are left, the counts and the events. Belongs to the thread
//! `library`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::Error;
use super::task::{Imported, Task};
use super::walk::{FoundFile, looks_like_picture};
use crate::decode::Decoder;
use crate::events::EventBus;
use crate::sys::Cancel;
use crate::wire::{Event, GalleryDomain, ImportNote, ImportProblem, ImportedBatch};

/// Called with the answer to a client's message.
pub(super) type Reply<T> = Box<dyn FnOnce(Result<T, Error>) + Send>;

/// While a batch runs, `gallery_changed` is published at most this often.
const GALLERY_EVERY: Duration = Duration::from_secs(1);

/// Called once when a batch has ended, with whether the database could not be written for any file.
pub(super) type Done = Box<dyn FnOnce(bool) + Send>;

/// A client that waits for the end, and its answer so far. The entries are sorted by the places of the
/// files, as files end in any order.
struct WaitingClient {
    images: BTreeMap<usize, i64>,
    notes: BTreeMap<usize, ImportNote>,
    errors: BTreeMap<usize, ImportProblem>,
    reply: Reply<ImportedBatch>,
}

pub(super) struct Batch {
    /// `None` for a batch of the daemon itself, which publishes no events for single files.
    pub(super) id: Option<String>,
    pub(super) folder: Option<i64>,
    pub(super) task: Task,
    /// Called when the batch has ended.
    done: Option<Done>,
    files: std::vec::IntoIter<FoundFile>,
    total: usize,
    current: usize,
    succeeded: usize,
    failed: usize,
    /// Files of unsupported kinds that were found in a directory, not named by the client.
    skipped: usize,
    waiting: Option<WaitingClient>,
    started: Instant,
    cancelled: bool,
    /// Whether the database could not be written for any file.
    is_unsaved: bool,
    /// Stops the jobs of the files in progress; `None` if there were too few file descriptors.
    cancel: Option<Cancel>,
    /// Whether an image was imported since the last `gallery_changed`.
    changed: bool,
    told: Instant,
}

impl Batch {
    pub(super) fn new(
        id: Option<String>,
        folder: Option<i64>,
        task: Task,
        files: Vec<FoundFile>,
        done: Option<Done>,
    ) -> Self {
        let now = Instant::now();
        Self {
            id,
            folder,
            task,
            done,
            total: files.len(),
            files: files.into_iter(),
            current: 0,
            succeeded: 0,
            failed: 0,
            skipped: 0,
            waiting: None,
            started: now,
            cancelled: false,
            is_unsaved: false,
            cancel: None,
            changed: false,
            told: now,
        }
    }

    /// Has the client answered when the batch has ended.
    pub(super) fn answer_at_end(&mut self, reply: Reply<ImportedBatch>) {
        let (images, notes, errors) = Default::default();
        self.waiting = Some(WaitingClient {
            images,
            notes,
            errors,
            reply,
        });
    }

    pub(super) fn total(&self) -> usize {
        self.total
    }

    /// Starts the batch, once all before it have ended.
    pub(super) fn start(&mut self, bus: &EventBus) {
        self.cancel = Cancel::new().ok();
        self.started = Instant::now();
        self.told = self.started;
        if let Some(id) = &self.id {
            bus.publish(&Event::ProcessingStarted {
                batch_id: id.clone(),
                total: self.total,
            });
        }
    }

    /// The next file, until there is none or the batch was cancelled.
    pub(super) fn next(&mut self) -> Option<FoundFile> {
        if self.is_cancelled() {
            None
        } else {
            self.files.next()
        }
    }

    /// Counts a file that has ended, and publishes its event. Only one thread does this, so `current`
    /// rises with each event.
    pub(super) fn ended(
        &mut self,
        file: &FoundFile,
        result: Result<Imported, Error>,
        bus: &EventBus,
    ) {
        if self.is_cancelled() && result.is_err() {
            // The file counts as never started.
            return;
        }
        self.is_unsaved |= result.as_ref().is_err_and(Error::is_storage);
        if matches!(result, Err(Error::NothingToDo)) {
            return;
        }
        self.current += 1;
        let FoundFile { path, inside, .. } = file;
        // A file with a picture's extension that is not a picture is reported, even inside a directory.
        let skipped = *inside
            && result.as_ref().is_err_and(Error::is_unsupported)
            && !looks_like_picture(path);
        match &result {
            Ok(imported) => {
                self.succeeded += 1;
                self.changed |= !imported.duplicate;
            }
            Err(_) if skipped => self.skipped += 1,
            Err(error) => {
                self.failed += 1;
                log::info!("not importing {}: {}", path.display(), error.reason());
            }
        }
        if let Some(waiting) = &mut self.waiting {
            waiting.add(file, &result, skipped);
        }
        let Some(id) = &self.id else { return };
        let batch_id = id.clone();
        let current = self.current;
        let total = self.total;
        let elapsed_ms = self.elapsed_ms();
        let path = path.to_string_lossy().into_owned();
        bus.publish(&match result {
            Ok(Imported {
                image,
                duplicate,
                note,
            }) => {
                let image = Box::new(image);
                let note = note.map(|note| note.text().to_owned());
                Event::ImageProcessed {
                    batch_id,
                    image,
                    current,
                    total,
                    elapsed_ms,
                    duplicate,
                    path,
                    note,
                }
            }
            Err(error) => Event::ImageError {
                batch_id,
                path,
                error: error.reason(),
                current,
                total,
                elapsed_ms,
                skipped,
            },
        });
    }

    /// When the next `gallery_changed` is due; `None` if nothing has changed.
    pub(super) fn gallery_due(&self) -> Option<Instant> {
        self.changed.then(|| self.told + GALLERY_EVERY)
    }

    pub(super) fn is_gallery_due(&self) -> bool {
        self.gallery_due().is_some_and(|due| due <= Instant::now())
    }

    pub(super) fn tell_gallery(&mut self, bus: &EventBus) {
        if self.changed {
            bus.publish(&Event::GalleryChanged {
                domain: GalleryDomain::Images,
            });
            self.changed = false;
            self.told = Instant::now();
        }
    }

    /// Ends the batch: publishes its last event, and answers a waiting client.
    pub(super) fn finish(mut self, bus: &EventBus) {
        self.tell_gallery(bus);
        let (total, succeeded, failed, skipped) =
            (self.total, self.succeeded, self.failed, self.skipped);
        let (elapsed_ms, cancelled) = (self.elapsed_ms(), self.is_cancelled());
        if let Some(done) = self.done.take() {
            done(self.is_unsaved);
        }
        let Some(batch_id) = self.id else { return };
        let waiting = self.waiting.take();
        let answer = waiting.map(|waiting| {
            let WaitingClient {
                images,
                notes,
                errors,
                reply,
            } = waiting;
            let batch_id = batch_id.clone();
            let status = if cancelled { "cancelled" } else { "complete" };
            let answer = ImportedBatch {
                status,
                batch_id,
                total,
                succeeded,
                failed,
                skipped,
                images: images.into_values().collect(),
                notes: notes.into_values().collect(),
                errors: errors.into_values().collect(),
            };
            (reply, answer)
        });
        bus.publish(&if cancelled {
            Event::ProcessingCancelled {
                batch_id,
                total,
                succeeded,
                failed,
                elapsed_ms,
                skipped,
            }
        } else {
            Event::ProcessingComplete {
                batch_id,
                total,
                succeeded,
                failed,
                elapsed_ms,
                skipped,
            }
        });
        if let Some((reply, answer)) = answer {
            reply(Ok(answer));
        }
    }

    /// Starts no more files, and stops the jobs of the files in progress.
    pub(super) fn cancel(&mut self) {
        self.cancelled = true;
        self.cancel.iter().for_each(Cancel::cancel);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    /// The decoder for the batch's files, which stops when the batch is cancelled.
    pub(super) fn decoder(&self, imports: &Decoder) -> Decoder {
        self.cancel
            .as_ref()
            .map_or_else(|| imports.clone(), |cancel| imports.until(cancel))
    }

    fn elapsed_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }
}

impl WaitingClient {
    fn add(&mut self, file: &FoundFile, result: &Result<Imported, Error>, skipped: bool) {
        let place = file.place;
        let path = file.path.to_string_lossy().into_owned();
        match result {
            Ok(imported) => {
                self.images.insert(place, imported.image.id);
                let note = imported.note.map(|note| ImportNote {
                    path,
                    note: note.text().to_owned(),
                });
                self.notes.extend(note.map(|note| (place, note)));
            }
            Err(_) if skipped => {}
            Err(error) => {
                self.errors.insert(
                    place,
                    ImportProblem {
                        path,
                        error: error.reason(),
                    },
                );
            }
        }
    }
}
