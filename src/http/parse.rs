//! Parses the head of a request. Pure: no socket, no clock, and any input gives an answer.
//!
//! httparse does the grammar. The additional rules keep two readers from seeing different requests
//! in the same bytes: no bare LF, one length, one way of framing a body.

use tiny_http::Method;

use super::limits::Limits;
use crate::wire::Session;

/// httparse's limit, and ours (431).
const HEADERS: usize = 64;
/// Bytes of a path (414).
const PATH: usize = 8 << 10;

/// A complete head, borrowed from the bytes it was read from.
#[derive(Debug)]
pub(super) struct Head<'b> {
    pub(super) method: Method,
    /// As sent, still percent-encoded.
    pub(super) path: &'b str,
    pub(super) query: Option<&'b str>,
    pub(super) fields: Fields<'b>,
    /// Bytes of the head, its empty line included.
    pub(super) size: usize,
    /// The minor version of HTTP/1.
    pub(super) minor: u8,
    pub(super) framing: Result<Framing, Refusal>,
}

/// How long the body is, and whether the connection stays open after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Framing {
    /// Bytes of the body; `None` if it comes in chunks.
    pub(super) length: Option<usize>,
    pub(super) keep_alive: bool,
    pub(super) wants_continue: bool,
}

/// The headers that are used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fields<'b> {
    pub(super) request_id: Option<&'b str>,
    pub(super) if_none_match: Option<&'b str>,
    pub(super) range: Option<&'b str>,
    /// `1` if a hook sends the request: its changes run no hook.
    pub(super) hook: Option<&'b str>,
    /// The session of a command that sends the request.
    pub(super) session: Option<&'b str>,
}

/// Why a request is refused; the connection is closed after the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) why: &'static str,
}

const fn refusal(status: u16, why: &'static str) -> Refusal {
    Refusal { status, why }
}

/// Reads a head from the start of `bytes`; `None` while it is incomplete.
pub(super) fn head<'b>(bytes: &'b [u8], limits: &Limits) -> Result<Option<Head<'b>>, Refusal> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let size = match request.parse(bytes) {
        Ok(httparse::Status::Complete(size)) if size <= limits.head => size,
        Ok(httparse::Status::Complete(_)) => return Err(too_large(bytes)),
        Ok(httparse::Status::Partial) if bytes.len() > limits.head => return Err(too_large(bytes)),
        Ok(httparse::Status::Partial) => return lines(bytes).map(|()| None),
        Err(httparse::Error::TooManyHeaders) => return Err(refusal(431, "more than 64 headers")),
        Err(httparse::Error::Version) => return Err(version(bytes)),
        Err(_) => return Err(refusal(400, "this is not HTTP/1.1")),
    };
    lines(&bytes[..size])?;
    let (path, query) = target(request.path.unwrap_or_default())?;
    if path.len() > PATH {
        return Err(refusal(414, "the path is too long"));
    }
    let method = request.method.unwrap_or_default().parse();
    let method: Method = method.map_err(|()| refusal(400, "the method is not ASCII"))?;
    let minor = request.version.unwrap_or(1);
    let fields = fields(request.headers);
    let framing = framing(request.headers, minor, limits);
    Ok(Some(Head {
        method,
        path,
        query,
        fields,
        size,
        minor,
        framing,
    }))
}

/// Refuses a lone LF: it ends a line for some readers and not for others.
fn lines(bytes: &[u8]) -> Result<(), Refusal> {
    let bare = |at: usize| bytes[at] == b'\n' && (at == 0 || bytes[at - 1] != b'\r');
    if (0..bytes.len()).any(bare) {
        return Err(refusal(400, "a line ends with a lone LF"));
    }
    Ok(())
}

fn too_large(bytes: &[u8]) -> Refusal {
    if bytes.contains(&b'\n') {
        refusal(431, "the headers are too large")
    } else {
        refusal(414, "the request line is too long")
    }
}

/// Another version of HTTP, or no HTTP at all.
fn version(bytes: &[u8]) -> Refusal {
    let line = bytes
        .trim_ascii_start()
        .split(|&byte| byte == b'\r')
        .next()
        .unwrap_or_default();
    match line.rsplit(|&byte| byte == b' ').next() {
        Some([b'H', b'T', b'T', b'P', b'/', digit, ..]) if digit.is_ascii_digit() => {
            refusal(505, "only HTTP/1.1 and HTTP/1.0 are supported")
        }
        _ => refusal(400, "this is not HTTP/1.1"),
    }
}

/// Path and query of a target: `/path?query`, or the absolute form that proxies send.
fn target(target: &str) -> Result<(&str, Option<&str>), Refusal> {
    let local = match target.split_at_checked("http://".len()) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http://") => {
            rest.find(['/', '?']).map_or("/", |at| &rest[at..])
        }
        _ => target,
    };
    let (path, query) = match local.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (local, None),
    };
    if local.contains('#') || !(path.starts_with('/') || path == "*") {
        return Err(refusal(400, "the target must be a path"));
    }
    Ok((path, query))
}

fn fields<'b>(headers: &[httparse::Header<'b>]) -> Fields<'b> {
    let mut fields = Fields::default();
    for header in headers {
        let field = match header.name.len() {
            12 if header.name.eq_ignore_ascii_case("x-request-id") => &mut fields.request_id,
            13 if header.name.eq_ignore_ascii_case("if-none-match") => &mut fields.if_none_match,
            5 if header.name.eq_ignore_ascii_case("range") => &mut fields.range,
            13 if header.name.eq_ignore_ascii_case("x-murald-hook") => &mut fields.hook,
            16 if header.name.eq_ignore_ascii_case(Session::HEADER) => &mut fields.session,
            _ => continue,
        };
        *field = std::str::from_utf8(header.value).ok();
    }
    fields
}

fn framing(
    headers: &[httparse::Header<'_>],
    minor: u8,
    limits: &Limits,
) -> Result<Framing, Refusal> {
    let mut length = None;
    let mut encoding = None;
    let mut wants_continue = false;
    let mut keep_alive = true;
    let mut has_host = false;
    for header in headers {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        if is("content-length") {
            let this = content_length(header.value)?;
            if length.is_some_and(|other| other != this) {
                return Err(refusal(400, "two different lengths"));
            }
            length = Some(this);
        } else if is("transfer-encoding") {
            // A list of encodings, in one header or several, is not supported.
            encoding = Some(if encoding.is_none() {
                header.value
            } else {
                b"several"
            });
        } else if is("host") {
            if has_host {
                return Err(refusal(400, "two Host headers"));
            }
            has_host = true;
        } else if is("connection") {
            let mut options = header
                .value
                .split(|&byte| byte == b',')
                .map(<[u8]>::trim_ascii);
            keep_alive &= !options.any(|option| option.eq_ignore_ascii_case(b"close"));
        } else if is("expect") && minor == 1 {
            if !header.value.eq_ignore_ascii_case(b"100-continue") {
                return Err(refusal(417, "only 100-continue can be expected"));
            }
            wants_continue = true;
        }
    }
    // An HTTP/1.0 connection is always closed after the answer.
    let framing = |length| Framing {
        length,
        keep_alive: keep_alive && minor == 1,
        wants_continue,
    };
    match (encoding, length) {
        (Some(_), Some(_)) => Err(refusal(400, "both a length and a transfer encoding")),
        (Some(_), None) if minor == 0 => Err(refusal(400, "HTTP/1.0 has no transfer encodings")),
        (Some(encoding), None) if encoding.eq_ignore_ascii_case(b"chunked") => Ok(framing(None)),
        (Some(_), None) => Err(refusal(501, "the only transfer encoding is chunked")),
        (None, length) => match usize::try_from(length.unwrap_or(0)) {
            Ok(length) if length <= limits.body => Ok(framing(Some(length))),
            _ => Err(refusal(413, "the body is larger than 8 MiB")),
        },
    }
}

fn content_length(value: &[u8]) -> Result<u64, Refusal> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return Err(refusal(400, "the Content-Length is not a number"));
    }
    // The text has only digits: a number that does not parse is too large.
    let number = std::str::from_utf8(value)
        .ok()
        .and_then(|text| text.parse().ok());
    Ok(number.unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNKED: usize = usize::MAX;

    /// `Ok(None)`: incomplete. `Ok(Some(..))`: body length and whether the connection stays.
    fn check(bytes: &[u8], expected: Result<Option<(usize, bool)>, u16>) {
        let found = match head(bytes, &Limits::default()) {
            Ok(None) => Ok(None),
            Ok(Some(head)) => match head.framing {
                Ok(framing) => Ok(Some((
                    framing.length.unwrap_or(CHUNKED),
                    framing.keep_alive,
                ))),
                Err(refusal) => Err(refusal.status),
            },
            Err(refusal) => Err(refusal.status),
        };
        assert_eq!(
            found,
            expected,
            "{:?}",
            String::from_utf8_lossy(&bytes[..bytes.len().min(80)])
        );
    }

    #[test]
    fn heads_are_accepted_or_refused() {
        let get = |rest: &str| format!("GET / HTTP/1.1\r\n{rest}\r\n").into_bytes();
        check(b"", Ok(None));
        check(b"GET / HT", Ok(None));
        check(b"GET / HTTP/1.1\r\nHost: x\r\n", Ok(None));
        check(&get(""), Ok(Some((0, true))));
        check(&get("Host: anything at all\r\n"), Ok(Some((0, true))));
        check(&get("Host: x\r\nhost: x\r\n"), Err(400));
        check(&get("connection: Upgrade, Close\r\n"), Ok(Some((0, false))));
        check(b"\r\nGET / HTTP/1.1\r\n\r\n", Ok(Some((0, true))));
        check(
            b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
            Ok(Some((0, false))),
        );
        check(&get("Content-Length: 5\r\n"), Ok(Some((5, true))));
        check(
            &get("Content-Length: 5\r\ncontent-length: 5\r\n"),
            Ok(Some((5, true))),
        );
        check(&get("Content-Length: 3\r\nContent-Length: 5\r\n"), Err(400));
        check(&get("Content-Length: 3, 3\r\n"), Err(400));
        check(&get("Content-Length: -1\r\n"), Err(400));
        check(&get("Content-Length: +1\r\n"), Err(400));
        check(&get("Content-Length: \r\n"), Err(400));
        check(
            &get("Content-Length: 8388608\r\n"),
            Ok(Some((8 << 20, true))),
        );
        check(&get("Content-Length: 8388609\r\n"), Err(413));
        check(
            &get("Content-Length: 99999999999999999999999\r\n"),
            Err(413),
        );
        check(
            &get("Transfer-Encoding: Chunked\r\n"),
            Ok(Some((CHUNKED, true))),
        );
        check(&get("Transfer-Encoding: gzip, chunked\r\n"), Err(501));
        check(
            &get("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
            Err(501),
        );
        check(&get("Transfer-Encoding: gzip\r\n"), Err(501));
        check(
            b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
            Err(400),
        );
        check(
            &get("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"),
            Err(400),
        );
        check(&get("Expect: 100-continue\r\n"), Ok(Some((0, true))));
        check(&get("Expect: a miracle\r\n"), Err(417));
        check(&get("nocolon\r\n"), Err(400));
        check(&get("Host : x\r\n"), Err(400));
        check(&get("X: a\r\n folded\r\n"), Err(400));
        check(&get("X: \u{e9}\r\n"), Ok(Some((0, true))));
        check(&get(&"A: b\r\n".repeat(64)), Ok(Some((0, true))));
        check(&get(&"A: b\r\n".repeat(65)), Err(431));
        check(&get(&format!("A: {}\r\n", "b".repeat(16 << 10))), Err(431));
    }

    #[test]
    fn request_lines_are_accepted_or_refused() {
        check(b"garbage\r\n\r\n", Err(400));
        check(b"GET /\r\n\r\n", Err(400));
        check(b"GET  / HTTP/1.1\r\n\r\n", Err(400));
        check(b"GET / HTTP/1.1\n\n", Err(400));
        check(b"GET / HTTP/1.1\nHost", Err(400));
        check(b"\nGET / HTTP/1.1\r\n\r\n", Err(400));
        check(b"GET / HTTP/0.9\r\n\r\n", Err(505));
        check(b"GET / HTTP/2.0\r\n\r\n", Err(505));
        check(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Err(505));
        check(b"GET / SPDY/1.1\r\n\r\n", Err(400));
        check(b"GET relative HTTP/1.1\r\n\r\n", Err(400));
        check(b"GET /a#b HTTP/1.1\r\n\r\n", Err(400));
        check(b"CONNECT host:80 HTTP/1.1\r\n\r\n", Err(400));
        check(b"OPTIONS * HTTP/1.1\r\n\r\n", Ok(Some((0, true))));
        check(b"FROB / HTTP/1.1\r\n\r\n", Ok(Some((0, true))));
        check(
            b"GET http://localhost/x HTTP/1.1\r\n\r\n",
            Ok(Some((0, true))),
        );
        let long = |bytes| format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(bytes)).into_bytes();
        check(&long((8 << 10) - 1), Ok(Some((0, true))));
        check(&long(8 << 10), Err(414));
        check(&[b'a'; (16 << 10) + 1], Err(414));
    }

    #[test]
    fn targets_are_split() {
        let check = |raw: &str, expected| assert_eq!(target(raw).ok(), expected, "{raw}");
        check("/a/b?c=d?e", Some(("/a/b", Some("c=d?e"))));
        check("/", Some(("/", None)));
        check("HTTP://localhost", Some(("/", None)));
        check("http://localhost/a?b", Some(("/a", Some("b"))));
        check("http://localhost?b", None);
        check("https://localhost/", None);
    }

    #[test]
    fn any_bytes_give_an_answer() {
        let limits = Limits::default();
        let seeds: [&[u8]; 3] = [
            b"GET /a%20b?x=1&y HTTP/1.1\r\nHost: x\r\nRange: bytes=0-1\r\n\r\n",
            b"POST /x HTTP/1.1\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello",
            b"HEAD / HTTP/1.0\r\nConnection: close, x\r\nTransfer-Encoding: chunked\r\n\r\n",
        ];
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        };
        for round in 0..20_000 {
            let mut bytes = seeds[round % 3].to_vec();
            for _ in 0..random(6) {
                let at = random(bytes.len());
                match random(3) {
                    0 => bytes[at] = random(256) as u8,
                    1 => bytes.insert(at, random(256) as u8),
                    _ => bytes.truncate(at + 1),
                }
            }
            if let Ok(Some(head)) = head(&bytes, &limits) {
                assert!(head.size <= bytes.len() && head.path.len() <= PATH);
            }
        }
    }
}
