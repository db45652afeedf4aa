//! The part of HTTP that a scraper and a browser need.

use std::sync::LazyLock;

use super::host::AllowedHosts;
use super::metrics;
use super::state::RunState;

/// The maximum size of a request.
const REQUEST_BYTES_MAX: usize = 8 << 10;
/// The maximum length of a method's name.
const METHOD_BYTES_MAX: usize = 20;

const TEXT: &str = "text/plain; charset=utf-8";

static PAGE: LazyLock<String> = LazyLock::new(report::live_page);

/// A request that is complete.
struct Request<'r> {
    method: &'r str,
    target: &'r str,
}

/// The result of reading the bytes that were received so far.
enum Received<'r> {
    Incomplete,
    Request(Request<'r>),
    Refused(Content),
}

/// A status, and a body of a type.
struct Content {
    status: &'static str,
    kind: &'static str,
    body: String,
}

impl Content {
    fn ok(kind: &'static str, body: String) -> Self {
        Self { status: "200 OK", kind, body }
    }

    fn text(status: &'static str, body: &str) -> Self {
        Self { status, kind: TEXT, body: format!("{body}\n") }
    }
}

/// Returns the reply to what was received so far; `None` if the request is incomplete.
pub fn reply(
    received: &[u8],
    hosts: &AllowedHosts,
    state: &RunState,
    now_ns: u64,
) -> Option<Vec<u8>> {
    let (content, has_body) = match read(received, hosts) {
        Received::Incomplete => return None,
        Received::Refused(content) => (content, true),
        Received::Request(Request { method, target }) => match method {
            "GET" => (content(target, state, now_ns), true),
            "HEAD" => (content(target, state, now_ns), false),
            _ => (Content::text("405 Method Not Allowed", "only GET and HEAD are supported"), true),
        },
    };
    let mut reply = format!(
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
        content.status,
        content.kind,
        content.body.len()
    );
    if has_body {
        reply += &content.body;
    }
    Some(reply.into_bytes())
}

/// Reads a request up to the end of its headers. Only requests to one of the `hosts` are accepted.
fn read<'r>(received: &'r [u8], hosts: &AllowedHosts) -> Received<'r> {
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

    let mut hosts_named = Vec::new();
    for line in lines {
        match line.split_once(':') {
            Some((name, _)) if name.is_empty() || name.contains([' ', '\t']) => {
                return bad_request("a header has an invalid name");
            }
            Some((name, host)) if name.eq_ignore_ascii_case("host") => {
                hosts_named.push(host.trim())
            }
            Some(_) => {}
            None => return bad_request("a header has no name"),
        }
    }

    match hosts_named[..] {
        [host] if hosts.contain(host) => Received::Request(Request { method, target }),
        [_] => Received::Refused(Content::text(
            "421 Misdirected Request",
            "this host has another name: use the address that `assay run` printed",
        )),
        // Before version 1.1, there was no such header.
        [] if version == "HTTP/1.0" => Received::Request(Request { method, target }),
        [] => bad_request("the request has no Host"),
        _ => bad_request("the request has several Hosts"),
    }
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

fn content(target: &str, state: &RunState, now_ns: u64) -> Content {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    match path {
        "/" => Content::ok("text/html; charset=utf-8", PAGE.clone()),
        "/metrics" => Content::ok(metrics::CONTENT_TYPE, metrics::text(state, now_ns)),
        "/live.json" => {
            let number = |name: &str| {
                let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
                let value = pairs.find(|(key, _)| *key == name)?.1;
                value.parse().ok()
            };
            let [step, from] = ["step", "from"].map(|name| number(name).unwrap_or(0));
            let json = state.to_json(step, from, now_ns).to_string();
            Content::ok("application/json", json)
        }
        _ => Content::text("404 Not Found", "not found: use `/`, `/metrics` or `/live.json`"),
    }
}
