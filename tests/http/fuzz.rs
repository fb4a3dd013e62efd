//! Sends 15,000 randomly damaged requests; the server must survive them all.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use super::support::TestServer;

const SEEDS: [&[u8]; 6] = [
    b"GET /tiny HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST /echo HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
    b"HEAD /large HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    b"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    b"GET /file/%2e%2e%2fs?x=%41 HTTP/1.1\r\nConnection: upgrade\r\nRange: bytes=0-1\r\n\r\n",
    b"GET /events HTTP/1.1\r\n\r\n",
];

/// xorshift; the same sequence in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn damaged(&mut self) -> Vec<u8> {
        let seed = SEEDS[self.below(SEEDS.len())];
        let mut bytes = seed.repeat([1, 1, 2, 5][self.below(4)]);
        for _ in 0..self.below(6) {
            let at = self.below(bytes.len().max(1)).min(bytes.len());
            match self.below(5) {
                0 if at < bytes.len() => bytes[at] = self.below(256) as u8,
                1 => {
                    let noise: Vec<u8> = (0..self.below(20) + 1)
                        .map(|_| self.below(256) as u8)
                        .collect();
                    bytes.splice(at..at, noise);
                }
                2 => drop(bytes.drain(at..(at + self.below(10)).min(bytes.len()))),
                3 => drop(bytes.splice(at..at, b"9".repeat(self.below(30) + 1))),
                _ => bytes.truncate(at),
            }
        }
        bytes
    }
}

#[test]
fn fuzzed_http_requests_do_no_harm() {
    let server = TestServer::new();
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let began = Instant::now();
    for round in 0..15_000 {
        let bytes = random.damaged();
        let mut socket = UnixStream::connect(&server.socket).unwrap();
        // The server may refuse the request before all of it is sent.
        socket.write_all(&bytes).ok();
        if round % 500 == 0 {
            server.is_well();
        }
        // Some clients wait for the answer, most hang up.
        if random.below(4) == 0 {
            socket.shutdown(std::net::Shutdown::Write).ok();
            let mut piece = [0; 512];
            let stream = bytes.windows(7).any(|part| part == b"/events");
            if !stream {
                std::io::Read::read(&mut socket, &mut piece).ok();
            }
        }
    }
    println!("15,000 requests in {:?}", began.elapsed());
    server.is_well();
    server.end();
}
