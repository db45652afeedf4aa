//! The log with a server's standard output and error.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use fs_err as fs;
use words::LogEvent;

/// Finds the events in the lines of an engine's log.
pub type LogParser = fn(&mut dyn Iterator<Item = String>) -> Vec<LogEvent>;

/// The length of the intervals in which messages are counted, and the number of messages of a kind
/// that are kept in each. The others count at the time of the last one kept, which must belong to
/// their step: hence the short interval.
const INTERVAL_NS: i64 = 1_000_000_000;
const MESSAGES_MAX: usize = 5;

/// The events of a log, with a bound on messages: a server may log millions.
#[derive(Default)]
pub(crate) struct Events {
    pub(crate) all: Vec<LogEvent>,
    /// The interval of the last message of each kind.
    intervals: BTreeMap<String, Interval>,
}

/// An interval in which messages of a kind are counted.
struct Interval {
    /// The number of the interval since 1970.
    number: i64,
    /// The number of messages that are kept in it.
    kept: usize,
    /// The index of the last one.
    last: usize,
}

impl Events {
    /// Adds a message, or only counts it with the last one of its kind if its interval has enough.
    pub(crate) fn add_message(&mut self, message: LogEvent) {
        let number = message.unix_ns.div_euclid(INTERVAL_NS);

        let mut interval = Interval { number, kept: 1, last: self.all.len() };
        if let Some(known) = self.intervals.get(&message.kind)
            && known.number == number
        {
            if known.kept == MESSAGES_MAX {
                self.all[known.last].more += 1;
                return;
            }
            interval.kept += known.kept;
        }

        self.intervals.insert(message.kind.clone(), interval);
        self.all.push(message);
    }
}

/// Reads the events of a log, in the order in which they began.
///
/// # Errors
/// The log cannot be read.
pub fn events(log: &Path, parser: LogParser) -> io::Result<Vec<LogEvent>> {
    let mut lines = BufReader::new(fs::File::open(log)?).split(b'\n');
    let mut failed = None;
    let mut texts = std::iter::from_fn(|| match lines.next()? {
        Ok(line) => Some(String::from_utf8_lossy(&line).into_owned()),
        Err(error) => {
            failed = Some(error);
            None
        }
    });

    let mut events = parser(&mut texts);
    for event in &mut events {
        cut(&mut event.text);
        if event.more > 0 {
            event.text += &format!(" (and {} more of this kind within 1 s)", event.more);
        }
    }

    events.sort_by_key(|event| event.unix_ns);
    failed.map_or(Ok(events), Err)
}

/// Returns the current size of the log; 0 if there is none.
pub(crate) fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Returns the last lines of a log, oldest first; empty if it cannot be read.
pub fn tail(log: &Path, lines: usize) -> Vec<String> {
    tail_since(log, 0, lines)
}

/// The maximum length of a line. A logged statement may be very long.
const LINE_CHARS_MAX: usize = 300;

/// Returns the last lines after the first `start` bytes, with long lines cut.
pub(crate) fn tail_since(log: &Path, start: u64, lines: usize) -> Vec<String> {
    let mut tail = whole_tail_since(log, start, lines);
    tail.iter_mut().for_each(cut);
    tail
}

fn cut(line: &mut String) {
    if let Some((end, _)) = line.char_indices().nth(LINE_CHARS_MAX) {
        line.truncate(end);
        line.push('…');
    }
}

/// Returns the last lines after the first `start` bytes.
pub(crate) fn whole_tail_since(log: &Path, start: u64, lines: usize) -> Vec<String> {
    let bytes = end_since(log, start).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let all: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    all[all.len().saturating_sub(lines)..].iter().map(|line| line.to_string()).collect()
}

/// Returns the end of a file after the first `start` bytes.
fn end_since(file: &Path, start: u64) -> std::io::Result<Vec<u8>> {
    const BYTES_MAX: u64 = 64 * 1024;
    let mut file = fs::File::open(file)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(start.max(length.saturating_sub(BYTES_MAX))))?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: &str, unix_ns: i64) -> LogEvent {
        LogEvent { kind: kind.into(), unix_ns, ..LogEvent::default() }
    }

    #[test]
    fn of_many_messages_the_first_are_kept_and_the_others_counted() {
        let mut events = Events::default();
        for at in 0..1_000_000 {
            events.add_message(message("error", at));
        }
        events.add_message(message("note", 7));
        events.add_message(message("error", INTERVAL_NS));
        let kept: Vec<_> = events.all.iter().map(|it| (it.unix_ns, it.more)).collect();
        assert_eq!(kept.len(), MESSAGES_MAX + 2);
        assert_eq!(kept[3..], [(3, 0), (4, 999_995), (7, 0), (INTERVAL_NS, 0)]);
    }

    #[test]
    fn a_burst_counts_in_each_second_that_it_reaches_into() {
        let mut events = Events::default();
        for at in 0..4_000 {
            events.add_message(message("error", at * 1_000_000));
        }
        for second in 0..4 {
            let of_second = events.all.iter().filter(|it| it.unix_ns / 1_000_000_000 == second);
            assert_eq!(of_second.map(|it| 1 + it.more).sum::<i64>(), 1_000);
        }
    }

    #[test]
    fn the_tail_has_the_last_lines_in_order() {
        let log = tempfile::NamedTempFile::new().unwrap();
        fs::write(log.path(), "one\n\ntwo\nthree\n").unwrap();
        assert_eq!(tail(log.path(), 2), ["two", "three"]);
        assert_eq!(tail_since(log.path(), 5, 9), ["two", "three"]);
        assert!(tail(Path::new("/nowhere"), 3).is_empty());
        fs::write(log.path(), format!("{}\n{}\n", "ü".repeat(300), "ü".repeat(301))).unwrap();
        let tail = tail(log.path(), 2);
        assert_eq!(tail, ["ü".repeat(300), "ü".repeat(300) + "…"]);
    }
}
