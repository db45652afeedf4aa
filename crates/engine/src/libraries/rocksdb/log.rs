//! Events of the library's log: flushes, compactions, and writes that it slowed down or stopped.

use std::collections::BTreeMap;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::Value;
use words::LogEvent;

use crate::local::log::Events;

/// The mark of a line with an event as JSON.
const EVENT: &str = "EVENT_LOG_v1 ";
/// The phrases of lines about stalled writes, and their kinds.
const STALLS: [(&str, &str); 2] =
    [("Stalling writes because", "write slowdown"), ("Stopping writes because", "write stop")];

/// Finds the events in the lines of a log. Events have a time in UTC; the lines of stalls have only
/// a local one.
pub(super) fn events(lines: &mut dyn Iterator<Item = String>) -> Vec<LogEvent> {
    let here = TimeZone::system();
    let mut events = Events::default();
    // The event of each running job.
    let mut jobs = BTreeMap::new();

    for line in lines {
        if let Some((_, json)) = line.split_once(EVENT) {
            if let Ok(fields) = serde_json::from_str(json) {
                add(&fields, &mut jobs, &mut events.all);
            }
        } else if let Some((phrase, kind)) = STALLS.iter().find(|(text, _)| line.contains(text))
            && let Some(unix_ns) = local_time(&line, &here)
        {
            let reason = line.split_once(phrase).map_or("", |(_, reason)| reason);
            events.add_message(LogEvent {
                unix_ns,
                kind: (*kind).to_owned(),
                text: reason.trim().to_owned(),
                ..LogEvent::default()
            });
        }
    }

    events.all
}

/// Adds an event of a job, or what it says of the job's earlier ones.
fn add(fields: &Value, jobs: &mut BTreeMap<i64, usize>, events: &mut Vec<LogEvent>) {
    let number = |name: &str| fields[name].as_i64();
    let (Some(micros), Some(job)) = (number("time_micros"), number("job")) else {
        return;
    };
    let Some(unix_ns) = micros.checked_mul(1000) else {
        return;
    };

    let name = fields["event"].as_str().unwrap_or_default();
    if let Some(kind) = name.strip_suffix("_started")
        && ["flush", "compaction"].contains(&kind)
    {
        jobs.insert(job, events.len());
        let reasons = [&fields["flush_reason"], &fields["compaction_reason"]];

        let reason = reasons.iter().find_map(|field| field.as_str());

        events.push(LogEvent {
            unix_ns,
            kind: kind.to_owned(),
            text: reason.unwrap_or_default().to_owned(),
            ..LogEvent::default()
        });
        return;
    }

    let Some(event) = jobs.get(&job).and_then(|at| events.get_mut(*at)) else {
        return;
    };

    match name {
        "table_file_creation" => {
            event.bytes = Some(event.bytes.unwrap_or(0) + number("file_size").unwrap_or(0));
        }
        "flush_finished" | "compaction_finished" => {
            event.duration_ns = Some((unix_ns - event.unix_ns).max(0));
            if let Some(level) = number("output_level") {
                event.text += &format!(" to level {level}");
            }
            jobs.remove(&job);
        }
        _ => {}
    }
}

/// Returns the time at the beginning of a line.
fn local_time(line: &str, here: &TimeZone) -> Option<i64> {
    let text = line.split_whitespace().next()?;
    let local = DateTime::strptime("%Y/%m/%d-%H:%M:%S%.f", text).ok()?;
    let timestamp = local.to_zoned(here.clone()).ok()?.timestamp();
    i64::try_from(timestamp.as_nanosecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_have_their_duration_and_bytes() {
        let log = r#"2026/11/24-10:00:00.000001 5 EVENT_LOG_v1 {"time_micros": 1000000, "job": 2, "event": "flush_started", "flush_reason": "Write Buffer Full"}
2026/11/24-10:00:00.000001 5 EVENT_LOG_v1 {"time_micros": 1100000, "job": 3, "event": "compaction_started", "compaction_reason": "LevelL0FilesNum", "files_L0": [9]}
2026/11/24-10:00:00.000001 5 EVENT_LOG_v1 {"time_micros": 1200000, "cf_name": "default", "job": 2, "event": "table_file_creation", "file_size": 700}
2026/11/24-10:00:00.000001 5 EVENT_LOG_v1 {"time_micros": 1500000, "job": 2, "event": "flush_finished", "lsm_state": [1]}
2026/11/24-10:00:00.000001 5 [WARN] [db/column_family.cc:991] [default] Stalling writes because we have 4 level-0 files rate 1
2026/11/24-10:00:00.000001 5 EVENT_LOG_v1 {"time_micros": 1600000, "job": 3, "event": "table_file_creation", "file_size": 5}
2026/11/24-10:00:00.000001 5 EVENT_LOG_v1 {"time_micros": 1600000, "job": 3, "event": "table_file_creation", "file_size": 6}
2026/11/24-10:00:00.000001 5 EVENT_LOG_v1 {"time_micros": 2100000, "job": 3, "event": "compaction_finished", "output_level": 1}
2026/11/24-10:00:00.000001 5 EVENT_LOG_v1 {"time_micros": 2200000, "job": 4, "event": "flush_started"}"#;
        let found = events(&mut log.lines().map(str::to_owned));
        let found: Vec<_> = found
            .iter()
            .map(|it| {
                let lasted_ms = it.duration_ns.map(|ns| ns / 1_000_000);
                (it.kind.as_str(), lasted_ms, it.bytes, it.text.as_str())
            })
            .collect();
        let expected = [
            ("flush", Some(500), Some(700), "Write Buffer Full"),
            ("compaction", Some(1000), Some(11), "LevelL0FilesNum to level 1"),
            ("write slowdown", None, None, "we have 4 level-0 files rate 1"),
            ("flush", None, None, ""),
        ];
        assert_eq!(found, expected);
    }
}
