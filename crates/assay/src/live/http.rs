//! The part of HTTP that a scraper and a browser need.

use std::sync::LazyLock;

use super::metrics;
use super::state::RunState;

/// The maximum size of a request.
const REQUEST_BYTES_MAX: usize = 8 << 10;

const TEXT: &str = "text/plain; charset=utf-8";

static PAGE: LazyLock<String> = LazyLock::new(report::live_page);

/// Returns the reply to what was received so far; `None` if the request is incomplete.
pub fn reply(received: &[u8], state: &RunState, now_ns: u64) -> Option<Vec<u8>> {
    let is_whole = received.windows(4).any(|end| end == b"\r\n\r\n");
    if !is_whole && received.len() < REQUEST_BYTES_MAX {
        return None;
    }
    let line = received.split(|&byte| byte == b'\r').next();
    let line = str::from_utf8(line.unwrap_or_default()).unwrap_or_default();
    let mut words = line.split(' ');
    let (method, target, version) = (words.next()?, words.next(), words.next());
    let (status, kind, body) = match (target, version) {
        _ if !is_whole => {
            ("431 Request Header Fields Too Large", TEXT, "request too long\n".into())
        }
        (Some(target), Some(version)) if version.starts_with("HTTP/1.") => match method {
            "GET" | "HEAD" => content(target, state, now_ns),
            _ => ("405 Method Not Allowed", TEXT, "only GET and HEAD are supported\n".into()),
        },
        _ => ("400 Bad Request", TEXT, "not an HTTP request\n".into()),
    };
    let mut reply = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
        body.len()
    );
    if method != "HEAD" {
        reply += &body;
    }
    Some(reply.into_bytes())
}

fn content(target: &str, state: &RunState, now_ns: u64) -> (&'static str, &'static str, String) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    match path {
        "/" => ("200 OK", "text/html; charset=utf-8", PAGE.clone()),
        "/metrics" => ("200 OK", metrics::CONTENT_TYPE, metrics::text(state, now_ns)),
        "/live.json" => {
            let number = |name: &str| {
                let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
                let value = pairs.find(|(key, _)| *key == name)?.1;
                value.parse().ok()
            };
            let [step, from] = ["step", "from"].map(|name| number(name).unwrap_or(0));
            let json = state.to_json(step, from, now_ns).to_string();
            ("200 OK", "application/json", json)
        }
        _ => ("404 Not Found", TEXT, "not found: use `/`, `/metrics` or `/live.json`\n".into()),
    }
}
