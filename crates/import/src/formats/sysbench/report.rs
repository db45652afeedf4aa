//! Lines of `--report-interval`.

use super::super::reading::Second;
use crate::text::{Line, Refusal, measure, with_unit};

/// A line such as `[ 10s ] thds: 8 tps: 951.24 qps: 19041.93 (r/w/o: ...) lat (ms,95%): 11.87 err/s: 0.00`.
pub struct Interval {
    /// The time since the start in seconds.
    at_s: f64,
    /// Transactions per second.
    transactions: f64,
    errors: f64,
}

/// Returns a line of an interval; `None` if it is none.
pub fn interval(line: &Line<'_>) -> Result<Option<Interval>, Refusal> {
    let Some((at, rest)) = line.text.strip_prefix('[').and_then(|text| text.split_once(']')) else {
        return Ok(None);
    };
    let Some((at_s, "s")) = with_unit(at) else {
        return Ok(None);
    };
    let Some(transactions) = value_of(rest, "tps:").or(value_of(rest, "eps:")) else {
        return Ok(None);
    };

    let errors = value_of(rest, "err/s:").or(value_of(rest, "errors:")).unwrap_or("0");
    Ok(Some(Interval {
        at_s,
        transactions: measure(transactions, "tps", line.number)?,
        errors: measure(errors, "err/s", line.number)?,
    }))
}

/// Returns the word after a key.
fn value_of<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let (_, after) = text.split_once(key)?;
    after.split_whitespace().next().map(|word| word.trim_end_matches(','))
}

/// Returns the seconds, if each line is one of them: a longer interval has no seconds.
pub fn seconds(intervals: &[Interval], kind: &str) -> Vec<Second> {
    let is_second = |(index, interval): (usize, &Interval)| interval.at_s == (index + 1) as f64;
    if !intervals.iter().enumerate().all(is_second) {
        return Vec::new();
    }

    let mut seconds = Vec::new();
    for (index, interval) in intervals.iter().enumerate() {
        seconds.push(Second {
            second: index as u32,
            kind: kind.to_owned(),
            ok: interval.transactions.round() as u64,
            retried: interval.errors.round() as u64,
            ..Second::default()
        });
    }
    seconds
}
