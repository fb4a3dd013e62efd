//! Tests the orders that may be sent, one case for each rule.

use std::time::Instant;

use super::*;
use crate::config::BackendName::{self, Mpvpaper, Swaybg};
use crate::store::workspaces::WorkspacePicture;
use crate::wallpaper::worker_key::tests::placement;
use crate::wire::Timestamp;

/// The workers, the outputs A and B, and what they should show.
struct Case {
    slots: Slots,
    outputs: Vec<Output>,
    desired: Desired,
    /// The image whose file cannot be read.
    gone: i64,
}

impl Case {
    /// The outputs should show these images by these backends.
    fn new(desired: &[(&str, BackendName, i64)]) -> Self {
        let mut case = Self {
            slots: Slots::default(),
            outputs: ["A", "B"].map(Output::plain).into(),
            desired: Desired::new(),
            gone: 0,
        };
        desired.iter().for_each(|&one| case.want(one));
        case
    }

    fn want(&mut self, (output, backend, image_id): (&str, BackendName, i64)) {
        let place = (String::new(), output.to_owned());
        let since = Timestamp::from_micros(1);
        let wanted = Wanted {
            key: WorkerKey::new(backend, output),
            placement: Placement {
                output: self.output(output),
                ..placement(output, image_id)
            },
            ticket: None,
            row: WorkspacePicture::new(place, image_id, String::new(), since).row,
        };
        self.desired.insert(output.to_owned(), wanted);
    }

    fn output(&self, name: &str) -> Output {
        let mut outputs = self.outputs.iter();
        outputs.find(|one| one.name == name).unwrap().clone()
    }

    /// An earlier daemon has left a process; its note says what the process shows.
    fn adopt(&mut self, backend: BackendName, output: &str, noted: &[i64]) {
        let shown = noted
            .iter()
            .map(|&id| (output.to_owned(), placement(output, id)));
        self.slots
            .adopt(WorkerKey::new(backend, output), shown.collect());
    }

    /// Sends the orders that may be sent; returns them.
    fn send(&mut self) -> Vec<String> {
        let view = View {
            outputs: &self.outputs,
            slots: &self.slots,
            desired: &self.desired,
            tickets: &Tickets::default(),
            is_gone: &|one| one.image_id == self.gone,
            is_cleared: false,
        };
        let mut told = Vec::new();
        for mut order in view.next() {
            let pictures = order.scene.iter();
            let pictures: String = pictures
                .map(|(name, one)| format!(" {name}={}", one.image_id))
                .collect();
            told.push(format!(
                "{}:{}",
                order.key,
                if pictures.is_empty() { " -" } else { &pictures }
            ));
            assert!(self.slots.send(&mut order));
        }
        told
    }

    fn done(&mut self, backend: BackendName, output: &str) {
        let key = WorkerKey::new(backend, output);
        self.slots.done(&key, Vec::new()).unwrap();
    }

    /// An order fails because of the file of an image.
    fn fail(&mut self, backend: BackendName, output: &str, image_id: i64) {
        let is_named = |one: &Placement| one.image_id == image_id;
        let key = WorkerKey::new(backend, output);
        self.slots.failed(&key, is_named).unwrap();
    }
}

#[test]
fn worker_is_left_only_for_one_that_has_reported_to_this_daemon() {
    let mut case = Case::new(&[("A", Swaybg, 1)]);
    case.adopt(Swaybg, "A", &[1]);
    case.adopt(Mpvpaper, "A", &[2]);
    assert_eq!(case.send(), ["mpvpaper on A: A=2", "swaybg: A=1"]);
    case.done(Mpvpaper, "A");
    case.done(Swaybg, "A");
    assert_eq!(case.send(), ["mpvpaper on A: -"]);
}

#[test]
fn process_of_an_earlier_daemon_without_a_note_stays_until_its_output_is_covered() {
    let mut case = Case::new(&[("A", Swaybg, 1)]);
    case.adopt(Mpvpaper, "A", &[]);
    assert_eq!(case.send(), ["swaybg: A=1"]);
    case.done(Swaybg, "A");
    assert_eq!(case.send(), ["mpvpaper on A: -"]);
}

#[test]
fn worker_that_waits_for_a_retry_gets_no_order() {
    let mut case = Case::new(&[("A", Swaybg, 1)]);
    let key = WorkerKey::new(Swaybg, "A");
    let now = Instant::now();
    let retry = case.slots.backoffs.of(&key).failed(now).unwrap();
    assert_eq!(case.send(), [""; 0]);
    case.slots.backoffs.wake(retry);
    assert_eq!(case.send(), ["swaybg: A=1"]);
}

#[test]
fn picture_that_has_failed_is_not_sent_again_and_the_one_before_is_shown_again() {
    let mut case = Case::new(&[("A", Swaybg, 1)]);
    case.send();
    case.done(Swaybg, "A");
    case.want(("A", Swaybg, 2));
    assert_eq!(case.send(), ["swaybg: A=2"]);
    case.fail(Swaybg, "A", 2);
    // The failed order may have shown a part of its pictures.
    assert_eq!(case.send(), ["swaybg: A=1"]);
    case.done(Swaybg, "A");
    // Another picture for the same worker does not bring the failed one back.
    case.want(("B", Swaybg, 3));
    assert_eq!(case.send(), ["swaybg: A=1 B=3"]);
    case.done(Swaybg, "A");
    assert_eq!(case.send(), [""; 0]);
    case.slots.note_reason();
    assert_eq!(case.send(), ["swaybg: A=2 B=3"]);
}

#[test]
fn failed_picture_of_an_output_that_has_blinked_is_left_out() {
    let mut case = Case::new(&[("A", Swaybg, 1), ("B", Swaybg, 3)]);
    case.send();
    case.done(Swaybg, "A");
    case.outputs[0].instance += 1;
    case.want(("A", Mpvpaper, 2));
    assert_eq!(case.send(), ["mpvpaper on A: A=2", "swaybg: A=1 B=3"]);
    case.fail(Swaybg, "A", 1);
    assert_eq!(case.send(), ["swaybg: B=3"]);
}

#[test]
fn worker_waits_while_another_brings_something_new_to_its_output() {
    let mut case = Case::new(&[("A", Mpvpaper, 2)]);
    case.send();
    case.want(("A", Swaybg, 1));
    assert_eq!(case.send(), [""; 0]);
    case.done(Mpvpaper, "A");
    assert_eq!(case.send(), ["swaybg: A=1"]);
}

#[test]
fn picture_whose_file_is_gone_is_not_loaded_again_while_another_is_about_to_replace_it() {
    // By another worker.
    let mut case = Case::new(&[("A", Swaybg, 1), ("B", Swaybg, 1)]);
    case.send();
    case.done(Swaybg, "A");
    case.gone = 1;
    case.want(("A", Swaybg, 2));
    case.want(("B", Mpvpaper, 3));
    assert_eq!(case.send(), ["mpvpaper on B: B=3"]);
    // The other worker's picture is replaced before it is shown.
    case.want(("B", Swaybg, 4));
    assert_eq!(case.send(), [""; 0]);
    case.done(Mpvpaper, "B");
    assert_eq!(case.send(), ["swaybg: A=2 B=4"]);
}

#[test]
fn picture_whose_file_is_gone_holds_nothing_up_if_no_other_replaces_it() {
    let shown = || {
        let mut case = Case::new(&[("A", Swaybg, 1), ("B", Swaybg, 1)]);
        case.send();
        case.done(Swaybg, "A");
        case.gone = 1;
        case
    };
    // The other worker has failed, or waits for a retry.
    for waits in [false, true] {
        let mut case = shown();
        case.want(("B", Mpvpaper, 3));
        let key = WorkerKey::new(Mpvpaper, "B");
        if waits {
            case.slots.backoffs.of(&key).failed(Instant::now());
        } else {
            assert_eq!(case.send(), ["mpvpaper on B: B=3"]);
            case.fail(Mpvpaper, "B", 3);
        }
        case.want(("A", Swaybg, 2));
        assert_eq!(case.send(), ["swaybg: A=2 B=1"]);
    }
    // The picture that should replace it has failed.
    let mut case = shown();
    case.want(("B", Swaybg, 4));
    assert_eq!(case.send(), ["swaybg: A=1 B=4"]);
    case.fail(Swaybg, "A", 4);
    assert_eq!(case.send(), ["swaybg: A=1 B=1"]);
}
