use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::state::Known;
use super::*;
use crate::so_far::{EndedCell, EndedStep, RelativeTarget};

const SECOND_NS: u64 = 1_000_000_000;

fn step(name: &str) -> Event {
    Event::Step { name: name.into(), measures: true }
}

fn count(second: u32, kind: &str, ok: u64, rows: u64) -> Count {
    Count { second, kind: kind.into(), ok, failed: u64::from(second == 1), retried: 0, rows }
}

/// Returns the latencies of `count` operations that took about 150 us.
fn latency(second: u32, kind: &str, is_response: bool, count: u64) -> Latency {
    let mut buckets = vec![0; BOUNDS.len() + 1];
    buckets[7] = count;
    Latency {
        second,
        kind: kind.into(),
        is_response,
        buckets,
        sum_s: count as f64 * 0.000_15,
        p50_ns: 150_000,
        p99_ns: 190_000,
        max_ns: 195_000,
    }
}

/// Returns a run in its second step: queries with concurrent scheduled inserts.
fn state() -> state::RunState {
    let about = state::RunInfo {
        name: "commit".into(),
        base: "pg.base".into(),
        assay: "1.2.3".into(),
        directory: "results/commit".into(),
        targets: vec![["pg.\"base\"\\", "pg", "base", "postgres"].map(String::from)],
    };
    let mut state = state::RunState::new(about);
    let load = |main_kind: &str, rows, roles: &[(&str, &str)]| {
        let roles = roles.iter();
        Event::Load {
            time_s: (rows == 0).then_some(60.0),
            main_kind: Some(main_kind.into()),
            rows,
            roles: roles.map(|(a, b)| (a.to_string(), b.to_string())).collect(),
        }
    };
    let progress = |elapsed_s, counts, latencies| {
        Event::Progress(Progress {
            elapsed_s,
            lag_s: (elapsed_s > 1.0).then_some(0.35),
            counts,
            latencies,
        })
    };
    let events = [
        Event::Cells(CellProgress { count: 10, complete: 2, failed: 1, left_s: 300.0 }),
        Event::Cell(CellKey::new("pg.\"base\"\\", None, 4, 1)),
        step("l.i0"),
        load("insert", 1000, &[("insert", "insert")]),
        progress(1.0, vec![count(0, "insert", 5, 500)], Vec::new()),
        Event::Loaded,
        Event::Ended {
            status: Status::Complete,
            valid: true,
            skipped: [("insert".into(), 3)].into(),
        },
        step("qr100"),
        load("query", 0, &[("insert", "insert"), ("query", "query")]),
        progress(2.25, vec![count(0, "insert", 2, 100), count(0, "query", 40, 4000)], Vec::new()),
        progress(
            4.5,
            vec![
                count(1, "insert", 2, 100),
                count(1, "query", 44, 4400),
                count(2, "query", 1, 100),
            ],
            vec![
                latency(0, "insert", false, 2),
                latency(0, "insert", true, 2),
                latency(0, "query", false, 40),
                latency(1, "query", false, 43),
                latency(1, "query", false, 1),
            ],
        ),
    ];
    for (at, event) in events.into_iter().enumerate() {
        state.take(event, at as u64 * SECOND_NS);
    }
    state.take(Event::SoFar(so_far()), 10 * SECOND_NS);
    state
}

/// Returns a complete cell of the base and a failed one of the target.
fn so_far() -> SoFarSnapshot {
    let cell = |target| CellKey::new(target, None, 4, 1);
    let step = |name: &str, per_second, unit: &str, is_valid| EndedStep {
        name: name.into(),
        per_second,
        unit: unit.into(),
        is_valid,
    };
    SoFarSnapshot {
        base: "pg.base".into(),
        relative: vec![RelativeTarget {
            cell: cell("pg.\"base\"\\").all_repeats(),
            repeats: 1,
            mean: 0.5,
            steps: vec![("l.i0".into(), 0.25), ("qr100".into(), 1.0)],
        }],
        cells: vec![
            EndedCell {
                cell: cell("pg.base"),
                status: Status::Complete,
                steps: vec![
                    step("l.i0", 4000.0, "rows", true),
                    step("qr100", 50.25, "queries", true),
                ],
            },
            EndedCell {
                cell: cell("pg.\"base\"\\"),
                status: Status::Failed,
                steps: vec![step("l.i0", 1000.0, "rows", false)],
            },
        ],
    }
}

#[test]
fn what_a_scraper_reads() {
    insta::assert_snapshot!(metrics::text(&state(), 11 * SECOND_NS));
}

/// the page is tested with the same.
const PAGE_JSON: &str = include_str!("../../../report/tests/it/browser/live.json");

#[test]
fn what_the_page_gets() {
    let json: Value = serde_json::from_str(PAGE_JSON).unwrap();
    let state = state();
    assert_eq!(state.to_json(Known::default(), 11 * SECOND_NS), json);
    // The page gets nothing that it has already, but all of a step that it does not have.
    for (step, known, from) in [(2, 1, 1), (2, 2, 2), (2, 99, 2), (1, 1, 0)] {
        let json = state.to_json(Known { step, seconds: known, so_far: 1 }, 0);
        assert_eq!(json["so_far"], Value::Null);
        let query = &json["step"]["kinds"][0];
        assert_eq!(json["step"]["from"], from, "{step} {known}");
        assert_eq!(query["ok"].as_array().unwrap().len(), 2 - from, "{query}");
    }
}

#[test]
fn a_step_that_has_ended_is_forgotten_after_a_while() {
    let mut state = state();
    let names = |state: &state::RunState| -> Vec<String> {
        state.steps.iter().map(|step| step.name.clone()).collect()
    };
    assert_eq!(names(&state), ["l.i0", "qr100"]);
    state.take(Event::Cells(CellProgress::default()), 65 * SECOND_NS);
    assert_eq!(names(&state), ["l.i0", "qr100"], "it ended at second 6");
    state.take(Event::Cells(CellProgress::default()), 67 * SECOND_NS);
    assert_eq!(names(&state), ["qr100"]);
    // Its process crashed: the next step says so, and it counts from there.
    state.take(step("l.i0"), 300 * SECOND_NS);
    let text = metrics::text(&state, 300 * SECOND_NS);
    let crashed = r#"repeat="1",step="qr100",state="failed"} 0"#;
    assert!(text.contains(crashed), "{text}");
    state.take(Event::Loaded, 400 * SECOND_NS);
    assert_eq!(names(&state), ["l.i0"]);
}

#[test]
fn requests_are_answered_or_refused() {
    let (_watcher, events) = channel();
    let mut site = LiveSite { state: state(), events };
    let access = http::Access {
        hosts: http::AllowedHosts::new("127.0.0.1:9187", ([127, 0, 0, 1], 9187).into()),
        key: http::Key::random().unwrap(),
    };
    let key = access.key.path();
    let bearer = format!("Authorization: Bearer {}", key.trim_matches('/'));
    let with_key = |request: &str| request.replace("/KEY/", &key).replace("BEARER", &bearer);
    let long = format!("GET /{} HTTP/1.1\r\n", "a".repeat(10_000));
    let with_host = |request: &str| request.replace("HOST", "Host: localhost:9187\r\n\r\n");
    let none = "";
    for (request, begin) in [
        ("GET /KEY/ HTTP/1.1\r\nHOST", "200 OK"),
        ("GET /KEY/metrics?x HTTP/1.0\r\n\r\n", "200 OK"),
        ("GET /KEY/live.json?step=x&from=-1 HTTP/1.1\r\nAccept: */*\r\nHOST", "200 OK"),
        ("HEAD /KEY/metrics HTTP/1.1\r\nHOST", "200 OK"),
        ("GET /metrics HTTP/1.1\r\nBEARER\r\nHOST", "200 OK"),
        ("GET /KEY/../etc/passwd HTTP/1.1\r\nHOST", "404 Not Found"),
        ("POST /KEY/ HTTP/1.1\r\nHOST", "405 Method Not Allowed"),
        // Without the key, nothing tells what is there.
        ("GET / HTTP/1.1\r\nHOST", "403 Forbidden"),
        ("GET /live.json HTTP/1.1\r\nHOST", "403 Forbidden"),
        ("POST /nothing HTTP/1.1\r\nHOST", "403 Forbidden"),
        ("GET /metrics HTTP/1.0\r\n\r\n", "403 Forbidden"),
        ("GET /metrics HTTP/1.1\r\nBEARER0\r\nHOST", "403 Forbidden"),
        // Another name may be that of a page that wants to read this one.
        ("GET /KEY/ HTTP/1.1\r\nHost: evil.example:9187\r\n\r\n", "421 Misdirected Request"),
        ("GET /KEY/ HTTP/1.0\r\nHost: evil.example\r\n\r\n", "421 Misdirected Request"),
        ("GET / HTTP/1.1\r\nHost: evil.example\r\nHOST", "400 Bad Request"),
        ("GET / HTTP/1.1\r\n\r\n", "400 Bad Request"),
        ("GET / HTTP/1.1\r\nHost : localhost:9187\r\nHOST", "400 Bad Request"),
        // What cannot become a request is refused at once.
        ("\u{16}\u{3}\u{1}", "400 Bad Request"),
        ("GET / HTTP/1.1\nHost: localhost:9187\n\n", "400 Bad Request"),
        ("nonsense", "400 Bad Request"),
        ("\r\n\r\n", "400 Bad Request"),
        ("GET /\r\n\r\n", "400 Bad Request"),
        ("\u{16}\u{3}\u{1}\r\n\r\n", "400 Bad Request"),
        (&long, "431 Request Header Fields Too Large"),
        ("", none),
        ("GET / HTTP/1.1\r\nHost: a\r\n", none),
    ] {
        let sent = with_key(&with_host(request));
        let reply = http::reply_now(sent.as_bytes(), &access, &mut site);
        let status = reply.lines().next().unwrap_or_default();
        let status = status.strip_prefix("HTTP/1.1 ").unwrap_or_default();
        assert_eq!(status, begin, "{request}");
        let is_empty = reply.split_once("\r\n\r\n").is_none_or(|parts| parts.1.is_empty());
        assert_eq!(is_empty, begin == none || request.starts_with("HEAD"));
    }
}

#[test]
fn another_process_tells_through_a_pipe() {
    let (watcher, events) = channel();
    let live = Live { watcher: Some(watcher), forwarder: None };
    let relay = live.relay().unwrap().unwrap();
    let other = Live::connect(Path::new(&path_of(&relay))).unwrap();
    other.send(|| step("a"));
    other.send(|| Event::Loaded);
    drop(other);
    drop(relay);
    let next = || events.recv_timeout(Duration::from_secs(60));
    let events = [next().unwrap(), next().unwrap()].map(|event| json!(event));
    assert_eq!(events, [json!({"Step": {"name": "a", "measures": true}}), json!("Loaded")]);
    drop(live);
    assert!(next().is_err(), "nobody is left who could tell");
    assert!(Live::default().relay().unwrap().is_none());
}

#[test]
fn latencies_are_counted_in_their_buckets() {
    let (watcher, events) = channel();
    let live = Live { watcher: Some(watcher), forwarder: None };
    let mut feed = StepFeed::default();
    let mut all = load::new_histogram();
    for ns in [1_000, 1_001, 150_000, 2_000_000, 200_000_000_000] {
        all.record(ns).unwrap();
    }
    feed.latencies(7, "query", load::LatencyKind::Service, &all);
    feed.latencies(7, "query", load::LatencyKind::Failed, &all);
    feed.end(&live);
    let Event::Progress(Progress { latencies, .. }) = events.recv().unwrap() else {
        panic!("progress comes first");
    };
    let [latency] = latencies.as_slice() else {
        panic!("failures have no histogram: {latencies:?}");
    };
    let filled = latency.buckets.iter().enumerate();
    let filled: Vec<_> = filled.filter(|(_, count)| **count > 0).collect();
    assert_eq!(filled, [(0, &1), (1, &1), (7, &1), (10, &1), (25, &1)]);
    let times = (latency.p50_ns, latency.p99_ns, latency.max_ns);
    let quantile = |share| all.value_at_quantile(share);
    assert_eq!(times, (quantile(0.5), quantile(0.99), all.max()));
    assert!((latency.sum_s - 200.002_152).abs() < 0.2, "{}", latency.sum_s);
}
