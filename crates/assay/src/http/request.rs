//! The part of HTTP that a scraper and a browser need.

use super::hosts::AllowedHosts;
use super::key::Key;
use super::{Answer, Content, Site};

/// The maximum size of a request.
const REQUEST_BYTES_MAX: usize = 8 << 10;
/// The maximum length of a method's name.
const METHOD_BYTES_MAX: usize = 20;

/// Headers of all replies. A page cannot be shown within another one, and pages from elsewhere cannot
/// read it. Whatever else a page may load or run, the policy in its own head says.
const HEADERS: &str = "Cache-Control: no-store\r\n\
    Content-Security-Policy: frame-ancestors 'none'; base-uri 'none'; form-action 'self'\r\n\
    Cross-Origin-Resource-Policy: same-origin\r\n\
    Referrer-Policy: no-referrer\r\n\
    X-Content-Type-Options: nosniff\r\n\
    Connection: close\r\n";

/// The host and the key that a request must have.
pub struct Access {
    /// The name and port of the server.
    pub hosts: AllowedHosts,
    pub key: Key,
}

/// A request that is complete.
struct Request<'r> {
    method: &'r str,
    /// The path, which lacks the key, and the query.
    target: &'r str,
}

/// The result of reading the bytes that were received so far.
enum Received<'r> {
    Incomplete,
    Request(Request<'r>),
    Refused(Content),
}

/// The reply to a request that was read.
pub(super) struct Reply {
    pub answer: Answer,
    /// The reply has no body, as one to `HEAD`.
    pub is_head: bool,
    /// The request had the key, so it is not one of a flood by others.
    pub has_key: bool,
}

impl Reply {
    fn refusing(content: Content, has_key: bool) -> Self {
        Self { answer: Answer::Now(content), is_head: false, has_key }
    }
}

/// Returns the reply to what was received so far; `None` if the request is incomplete.
pub(super) fn reply(
    received: &[u8],
    access: &Access,
    site: &mut impl Site,
    now_ns: u64,
) -> Option<Reply> {
    let Request { method, target } = match read(received, access) {
        Received::Incomplete => return None,
        Received::Refused(content) => return Some(Reply::refusing(content, false)),
        Received::Request(request) => request,
    };

    if !matches!(method, "GET" | "HEAD") {
        let refusal = Content::text("405 Method Not Allowed", "only GET and HEAD are supported");
        return Some(Reply::refusing(refusal, true));
    }

    let answer = site.answer(target, now_ns);
    Some(Reply { answer, is_head: method == "HEAD", has_key: true })
}

/// Returns the bytes of a reply.
pub(super) fn bytes(content: &Content, is_head: bool) -> Vec<u8> {
    let Content { status, kind, body } = content;
    let length = body.len();
    let mut reply = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{HEADERS}\r\n"
    );

    if !is_head {
        reply += body;
    }

    reply.into_bytes()
}

/// Returns the reply to a request at once, as text; empty if the request is incomplete, or if the
/// answer takes time.
#[cfg(test)]
pub fn reply_now(received: &[u8], access: &Access, site: &mut impl Site) -> String {
    match reply(received, access, site, 0) {
        Some(Reply { answer: Answer::Now(content), is_head, .. }) => {
            String::from_utf8(bytes(&content, is_head)).unwrap()
        }
        _ => String::new(),
    }
}

/// Reads a request up to the end of its headers. Only requests with `access` are accepted.
fn read<'r>(received: &'r [u8], access: &Access) -> Received<'r> {
    if !may_begin_request(received) {
        return bad_request("not an HTTP request");
    }

    let Some(end) = received.windows(4).position(|end| end == b"\r\n\r\n") else {
        if received.len() < REQUEST_BYTES_MAX {
            return Received::Incomplete;
        }
        let status = "431 Request Header Fields Too Large";
        return Received::Refused(Content::text(status, "request too long"));
    };

    let Ok(head) = str::from_utf8(&received[..end]) else {
        return bad_request("the request is not text");
    };

    let mut lines = head.split("\r\n");
    let first: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, target, version] = first[..] else {
        return bad_request("not an HTTP request");
    };
    if !version.starts_with("HTTP/1.") {
        return bad_request("not an HTTP request");
    }

    let headers = match read_headers(lines) {
        Ok(headers) => headers,
        Err(why) => return bad_request(why),
    };

    match headers.hosts[..] {
        [host] if access.hosts.contain(host) => {}
        [_] => {
            return Received::Refused(Content::text(
                "421 Misdirected Request",
                "this host has another name: use the address that Assay printed",
            ));
        }
        // Before version 1.1, there was no such header.
        [] if version == "HTTP/1.0" => {}
        [] => return bad_request("the request has no Host"),
        _ => return bad_request("the request has several Hosts"),
    }

    match access.key.unlock(target, headers.authorization) {
        Some(target) => Received::Request(Request { method, target }),
        None => Received::Refused(Content::text(
            "403 Forbidden",
            "the address lacks the key of this server: use the address that Assay printed",
        )),
    }
}

/// The headers of a request that matter.
#[derive(Default)]
struct Headers<'r> {
    hosts: Vec<&'r str>,
    authorization: Option<&'r str>,
}

/// Reads the lines of headers; an error says what is wrong with one.
fn read_headers<'r>(lines: impl Iterator<Item = &'r str>) -> Result<Headers<'r>, &'static str> {
    let mut headers = Headers::default();
    for line in lines {
        let (name, value) = line.split_once(':').ok_or("a header has no name")?;
        if name.is_empty() || name.contains([' ', '\t']) {
            return Err("a header has an invalid name");
        }

        if name.eq_ignore_ascii_case("host") {
            headers.hosts.push(value.trim());
        } else if name.eq_ignore_ascii_case("authorization") {
            headers.authorization = Some(value.trim());
        }
    }

    Ok(headers)
}

fn bad_request<'r>(why: &str) -> Received<'r> {
    Received::Refused(Content::text("400 Bad Request", why))
}

/// Returns whether bytes can be the beginning of a request: a method in capital letters, and no
/// line that ends otherwise than HTTP's.
fn may_begin_request(received: &[u8]) -> bool {
    let method = received.split(|&byte| byte == b' ').next().unwrap_or_default();
    let is_method = method.iter().all(u8::is_ascii_uppercase) && method.len() <= METHOD_BYTES_MAX;
    let has_method = !method.is_empty() || received.is_empty();

    let has_bare_line_end = received.first() == Some(&b'\n')
        || received.windows(2).any(|two| two[1] == b'\n' && two[0] != b'\r');

    is_method && has_method && !has_bare_line_end
}
