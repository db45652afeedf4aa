//! Events of the server's error log: every message, with its level as the kind.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use words::LogEvent;

use crate::local::log::Events;

/// Finds the events in the lines of a log. MariaDB writes local times, in whole seconds.
pub(super) fn events(lines: &mut dyn Iterator<Item = String>) -> Vec<LogEvent> {
    let here = TimeZone::system();
    let mut events = Events::default();
    for message in lines.filter_map(|line| event(&line, &here)) {
        events.add_message(message);
    }
    events.all
}

fn event(line: &str, here: &TimeZone) -> Option<LogEvent> {
    let (head, rest) = line.split_once(" [")?;
    let (level, text) = rest.split_once("] ")?;

    let mut words = head.split_whitespace();
    let first = words.next()?;

    let time = match first.parse::<Timestamp>() {
        Ok(time) => time,
        Err(_) => {
            let time: DateTime = format!("{first} {:0>8}", words.next()?).parse().ok()?;
            time.to_zoned(here.clone()).ok()?.timestamp()
        }
    };

    Some(LogEvent {
        unix_ns: i64::try_from(time.as_nanosecond()).ok()?,
        kind: level.to_lowercase(),
        text: text.to_owned(),
        ..LogEvent::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_all_servers_are_events() {
        let here = TimeZone::UTC;
        let event = |line| event(line, &here).unwrap();
        let mysql = event(
            "2026-11-24T09:05:01.500000Z 0 [Warning] [MY-010068] [Server] CA is self signed.",
        );
        let mariadb = event("2026-11-24  9:05:01 0 [Note] InnoDB: Resizing redo log");
        assert_eq!((mysql.kind.as_str(), mariadb.kind.as_str()), ("warning", "note"));
        assert_eq!(mysql.unix_ns - mariadb.unix_ns, 500_000_000);
        assert_eq!(mariadb.text, "InnoDB: Resizing redo log");
        assert_eq!(super::event("Version: '10.11'  socket: ''", &here), None);
    }
}
