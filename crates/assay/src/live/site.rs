//! The answers of the live view of a run to requests.

use std::sync::LazyLock;
use std::sync::mpsc::Receiver;

use super::state::{Known, RunState};
use super::{Event, metrics};
use crate::http::{Answer, Content, HTML, Site};

static PAGE: LazyLock<String> = LazyLock::new(report::live_page);

/// The path of the metrics for Prometheus.
pub(super) const METRICS: &str = "/metrics";

/// The live view of a run.
pub(super) struct LiveSite {
    pub state: RunState,
    pub events: Receiver<Event>,
}

impl Site for LiveSite {
    fn tick(&mut self, now_ns: u64) {
        for event in self.events.try_iter() {
            self.state.take(event, now_ns);
        }
    }

    fn answer(&mut self, target: &str, now_ns: u64) -> Answer {
        Answer::Now(content(target, &self.state, now_ns))
    }
}

fn content(target: &str, state: &RunState, now_ns: u64) -> Content {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    match path {
        "/" => Content::ok(HTML, PAGE.clone()),
        METRICS => Content::ok(metrics::CONTENT_TYPE, metrics::text(state, now_ns)),
        "/live.json" => {
            let known = Known {
                step: number_in(query, "step").unwrap_or(0),
                seconds: number_in(query, "from").unwrap_or(0),
                so_far: number_in(query, "seen").unwrap_or(0),
            };
            let json = state.to_json(known, now_ns).to_string();
            Content::ok("application/json", json)
        }
        _ => Content::text("404 Not Found", "there is no such page"),
    }
}

fn number_in(query: &str, name: &str) -> Option<usize> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(key, _)| *key == name)?;
    value.parse().ok()
}
