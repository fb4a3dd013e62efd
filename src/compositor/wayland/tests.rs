//! Tests the requests to a compositor, with one that speaks a small part of the protocol.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::sync::Mutex;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::*;
use crate::sys::connect;

const PATIENCE: Duration = Duration::from_secs(60);
const OUTPUT: u32 = 1;
const MANAGER: u32 = 2;
const HEAD: u32 = 0xff00_0000;

/// A compositor whose outputs do not report their serial numbers, and whose manager does.
struct Compositor {
    listener: UnixListener,
    /// The connected outputs, by the names of their globals.
    outputs: Mutex<Vec<u32>>,
    /// The first connection and its registry.
    first: Mutex<Option<(UnixStream, u32)>>,
    /// Gets a message when a connection has ended: whether it had the manager.
    ended: Sender<bool>,
}

impl Compositor {
    fn serve(&self) {
        std::thread::scope(|scope| {
            for stream in self.listener.incoming().map_while(Result::ok) {
                scope.spawn(move || self.client(stream));
            }
        });
    }

    fn client(&self, stream: UnixStream) {
        let mut has_manager = false;
        while let Some((object, operation, body)) = request(&stream) {
            let last = body.last().copied();
            match (object, operation, last) {
                (1, 0, Some(callback)) => {
                    event(&stream, callback, 0, &[Word::Number(0)]);
                    event(&stream, 1, 1, &[Word::Number(callback)]);
                }
                (1, 1, Some(registry)) => {
                    let mut first = self.first.lock().unwrap();
                    first.get_or_insert_with(|| (stream.try_clone().unwrap(), registry));
                    global(&stream, registry, MANAGER, "zwlr_output_manager_v1");
                    for &output in &*self.outputs.lock().unwrap() {
                        global(&stream, registry, output, "wl_output");
                    }
                }
                (_, 0, Some(new)) if body[0] == MANAGER => {
                    has_manager = true;
                    self.tell_heads(&stream, new);
                }
                (_, 0, Some(new)) if self.outputs.lock().unwrap().contains(&body[0]) => {
                    tell_output(&stream, new, body[0]);
                }
                _ => {}
            }
        }
        self.ended.send(has_manager).ok();
    }

    /// Reports the heads, with object numbers that the server chooses.
    fn tell_heads(&self, stream: &UnixStream, manager: u32) {
        for (&output, head) in self.outputs.lock().unwrap().iter().zip(HEAD..) {
            event(stream, manager, 0, &[Word::Number(head)]);
            let told = [(0, name(output)), (10, "Acme".into()), (11, "M7".into())];
            for (number, text) in told.into_iter().chain([(12, format!("S{output}"))]) {
                event(stream, head, number, &[Word::Text(&text)]);
            }
        }
        event(stream, manager, 1, &[Word::Number(1)]);
    }

    /// Connects another output.
    fn plug(&self, output: u32) {
        self.outputs.lock().unwrap().push(output);
        let first = self.first.lock().unwrap();
        let (stream, registry) = first.as_ref().unwrap();
        global(stream, *registry, output, "wl_output");
    }
}

enum Word<'a> {
    Number(u32),
    Text(&'a str),
}

fn event(mut stream: &UnixStream, object: u32, number: u32, words: &[Word<'_>]) {
    let mut body = Vec::new();
    for word in words {
        match word {
            Word::Number(number) => body.extend(number.to_ne_bytes()),
            Word::Text(text) => {
                let length = text.len() + 1;
                body.extend(u32::try_from(length).unwrap().to_ne_bytes());
                body.extend(text.bytes());
                body.resize(body.len() + 1 + length.next_multiple_of(4) - length, 0);
            }
        }
    }
    let size = u32::try_from(body.len() + 8).unwrap();
    let head = [object.to_ne_bytes(), (size << 16 | number).to_ne_bytes()].concat();
    // The client may have gone.
    stream.write_all(&[head, body].concat()).ok();
}

/// Reads a request: the object, the operation, and the arguments as numbers.
fn request(mut stream: &UnixStream) -> Option<(u32, u32, Vec<u32>)> {
    let mut number = || {
        let mut bytes = [0; 4];
        stream.read_exact(&mut bytes).ok()?;
        Some(u32::from_ne_bytes(bytes))
    };
    let (object, size) = (number()?, number()?);
    let body = (0..(size >> 16) / 4 - 2)
        .map(|_| number())
        .collect::<Option<_>>()?;
    Some((object, size & 0xffff, body))
}

fn global(stream: &UnixStream, registry: u32, global: u32, interface: &str) {
    let words = [Word::Number(global), Word::Text(interface), Word::Number(4)];
    event(stream, registry, 0, &words);
}

fn name(output: u32) -> String {
    format!("DP-{output}")
}

fn tell_output(stream: &UnixStream, proxy: u32, output: u32) {
    let numbers = |numbers: &[u32]| numbers.iter().map(|&one| Word::Number(one)).collect();
    let mut geometry: Vec<Word<'_>> = numbers(&[0; 5]);
    geometry.extend([Word::Text("Acme"), Word::Text("M7"), Word::Number(0)]);
    event(stream, proxy, 0, &geometry);
    event(stream, proxy, 1, &numbers(&[1, 640, 480, 60_000]));
    event(stream, proxy, 4, &[Word::Text(&name(output))]);
    event(stream, proxy, 2, &[]);
}

fn serials(told: &Receiver<Vec<Output>>) -> BTreeMap<String, String> {
    let list = told.recv_timeout(PATIENCE).unwrap();
    list.into_iter()
        .map(|output| (output.name, output.identity.serial))
        .collect()
}

#[test]
fn makers_are_read_over_a_connection_that_is_closed_after_the_answer() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("wayland-1");
    let listener = UnixListener::bind(&socket).unwrap();
    let (send, ended) = unbounded();
    let outputs = Mutex::new(vec![OUTPUT]);
    let compositor = Compositor {
        listener,
        outputs,
        first: Mutex::default(),
        ended: send,
    };
    let compositor: &'static Compositor = Box::leak(Box::new(compositor));
    std::thread::spawn(|| compositor.serve());
    let stop = Cancel::new().unwrap();
    let (tell, told) = unbounded();
    let follows = {
        let stop = stop.clone();
        let socket = socket.clone();
        std::thread::spawn(move || {
            let stream = connect(&socket).unwrap();
            follow(stream, &socket, &stop, &mut |list, _| {
                tell.send(list).unwrap()
            })
            .unwrap();
        })
    };
    let expected = |outputs: &[u32]| -> BTreeMap<String, String> {
        outputs
            .iter()
            .map(|&output| (name(output), format!("S{output}")))
            .collect()
    };
    assert_eq!(serials(&told), expected(&[1]));
    assert_eq!(ended.recv_timeout(PATIENCE), Ok(true));
    compositor.plug(3);
    assert_eq!(serials(&told), expected(&[1, 3]));
    assert_eq!(ended.recv_timeout(PATIENCE), Ok(true));
    // The connection that follows the outputs never had the manager.
    stop.cancel();
    follows.join().unwrap();
    assert_eq!(ended.recv_timeout(PATIENCE), Ok(false));
}
