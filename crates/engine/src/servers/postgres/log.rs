//! Events of the server's log: checkpoints, the work of autovacuum, and messages of warnings and
//! errors.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use words::LogEvent;

use crate::local::log::Events;

/// The levels of messages that are events whatever they say.
const LEVELS: [&str; 4] = ["WARNING", "ERROR", "FATAL", "PANIC"];
/// The beginnings of messages about autovacuum, and their kinds.
const AUTOMATIC: [(&str, &str); 3] = [
    ("automatic vacuum ", "autovacuum"),
    ("automatic aggressive vacuum ", "autovacuum"),
    ("automatic analyze of table ", "autoanalyze"),
];

/// Finds the events in the lines of a log. Its times are in UTC, as Assay's own options ask for.
pub(super) fn events(lines: &mut dyn Iterator<Item = String>) -> Vec<LogEvent> {
    let mut reader = LogReader::default();
    for line in lines {
        reader.read(&line);
    }
    reader.events.all
}

#[derive(Default)]
struct LogReader {
    events: Events,
    /// The checkpoint that has begun, as an index into the events.
    checkpoint: Option<usize>,
    /// The message to which the next lines belong, if it is about autovacuum.
    automatic: Option<usize>,
}

impl LogReader {
    fn read(&mut self, line: &str) {
        if line.starts_with('\t') {
            let event = self.automatic.and_then(|index| self.events.all.get_mut(index));
            if let Some(event) = event {
                add_detail(event, line.trim());
            }
            return;
        }

        self.automatic = None;
        if let Some(message) = Message::of(line) {
            self.add(message);
        }
    }

    fn add(&mut self, message: Message<'_>) {
        let Message { unix_ns, level, text } = message;
        let mut event = LogEvent { unix_ns, text: text.to_owned(), ..LogEvent::default() };

        if let Some(why) = text.strip_prefix("checkpoint starting: ") {
            self.checkpoint = Some(self.events.all.len());
            event.kind = "checkpoint".into();
            event.text = why.to_owned();
            self.events.all.push(event);
        } else if let Some(done) = text.strip_prefix("checkpoint complete: ") {
            self.end_checkpoint(unix_ns, done);
        } else if let Some((_, kind)) = AUTOMATIC.iter().find(|(start, _)| text.starts_with(start))
        {
            event.kind = (*kind).to_owned();
            event.text = text.split('"').nth(1).unwrap_or(text).to_owned();
            add_detail(&mut event, text);
            self.automatic = Some(self.events.all.len());
            self.events.all.push(event);
        } else if LEVELS.contains(&level) {
            event.kind = level.to_lowercase();
            self.events.add_message(event);
        } else if text.starts_with("checkpoints are occurring too frequently") {
            event.kind = "warning".into();
            self.events.add_message(event);
        }
    }

    /// Adds the duration of the checkpoint that has begun, and what was written.
    fn end_checkpoint(&mut self, unix_ns: i64, done: &str) {
        // Only the last lines of a log that was cut lack the beginning.
        let begun = self.checkpoint.take().and_then(|index| self.events.all.get_mut(index));
        let Some(begun) = begun else { return };

        begun.duration_ns = Some((unix_ns - begun.unix_ns).max(0));
        for fact in done.split("; ") {
            if fact.starts_with("wrote") || fact.starts_with("distance") {
                begun.text += &format!("; {fact}");
            }
        }
    }
}

/// The message in a line of the log: `2026-11-24 10:00:01.250 UTC [9] LOG:  checkpoint starting: wal`.
struct Message<'l> {
    unix_ns: i64,
    level: &'l str,
    text: &'l str,
}

impl<'l> Message<'l> {
    /// Returns the message that a line begins; `None` if it begins none.
    fn of(line: &'l str) -> Option<Self> {
        let (time, rest) = line.split_once(" UTC")?;
        let date_time: DateTime = time.parse().ok()?;
        let unix_ns = date_time.to_zoned(TimeZone::UTC).ok()?.timestamp().as_nanosecond();
        let (head, text) = rest.split_once(":  ")?;
        let level = head.rsplit(' ').next()?;
        Some(Self { unix_ns: i64::try_from(unix_ns).ok()?, level, text })
    }
}

/// Adds what a line of a message about autovacuum says. The message comes at the end of the work.
fn add_detail(event: &mut LogEvent, line: &str) {
    if line.starts_with("tuples: ") {
        event.text += &format!("; {line}");
    }

    let elapsed = line.split_once("elapsed: ").map(|(_, rest)| rest);
    let seconds = elapsed.and_then(|rest| rest.split(' ').next()?.parse::<f64>().ok());
    if let Some(seconds) = seconds {
        let duration_ns = (seconds * 1e9) as i64;
        event.unix_ns -= duration_ns;
        event.duration_ns = Some(duration_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_autovacuum_and_errors_are_events() {
        let log = "\
2026-11-24 10:00:00.000 UTC [7] LOG:  database system is ready to accept connections
2026-11-24 10:00:01.250 UTC [9] LOG:  checkpoint starting: wal
2026-11-24 10:00:02.000 UTC [8] ERROR:  canceling statement due to user request
2026-11-24 10:00:03.500 UTC [10] LOG:  automatic vacuum of table \"ib.public.pi1\": index scans: 1
\tpages: 0 removed, 5 remain, 5 scanned (100.00% of total), 0 eagerly scanned
\ttuples: 100 removed, 400 remain, 0 are dead but not yet removable
\tsystem usage: CPU: user: 0.10 s, system: 0.00 s, elapsed: 0.50 s
2026-11-24 10:00:03.600 UTC [10] LOG:  something else about a vacuum:
\tsystem usage: elapsed: 9.00 s
2026-11-24 10:00:03.750 UTC [9] LOG:  checkpoint complete: wrote 51 buffers (0.3%); 0 WAL file(s) added; write=2.4 s; distance=16384 kB, estimate=16384 kB
2026-11-24 10:00:04.000 UTC [10] LOG:  automatic analyze of table \"ib.public.pi1\" system usage: CPU: user: 0.01 s, system: 0.00 s, elapsed: 0.01 s
2026-11-24 10:00:05.000 UTC [9] LOG:  checkpoint starting: time";
        let mut found = events(&mut log.lines().map(str::to_owned));
        found.sort_by_key(|event| event.unix_ns);
        let start = found[0].unix_ns - 1_250_000_000;
        let found: Vec<_> = found
            .iter()
            .map(|it| {
                let at_ms = (it.unix_ns - start) / 1_000_000;
                let lasted_ms = it.duration_ns.map(|ns| ns / 1_000_000);
                (at_ms, it.kind.as_str(), lasted_ms, it.text.as_str())
            })
            .collect();
        let expected = [
            (
                1250,
                "checkpoint",
                Some(2500),
                "wal; wrote 51 buffers (0.3%); distance=16384 kB, estimate=16384 kB",
            ),
            (2000, "error", None, "canceling statement due to user request"),
            (
                3000,
                "autovacuum",
                Some(500),
                "ib.public.pi1; tuples: 100 removed, 400 remain, 0 are dead but not yet removable",
            ),
            (3990, "autoanalyze", Some(10), "ib.public.pi1"),
            (5000, "checkpoint", None, "time"),
        ];
        assert_eq!(found, expected);
    }
}
