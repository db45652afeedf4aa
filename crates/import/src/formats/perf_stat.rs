//! Output of `perf stat`, for people or with `-x,`.

use std::collections::BTreeMap;

use record::Counter;

use super::reading::{FileContents, FormatReader};
use crate::text::{Line, Refusal, measure};

/// Reads `perf stat`.
#[derive(Default)]
pub(crate) struct PerfStatReader {
    events: BTreeMap<String, f64>,
    is_perf: bool,
}

impl PerfStatReader {
    fn add(&mut self, name: &str, value: &str, line: u64) -> Result<(), Refusal> {
        let name: String = name.chars().take(100).collect();
        let value = measure(&value.replace(',', ""), &name, line)?;
        if self.events.insert(name.clone(), value).is_some() {
            let text = format!("`{name}` is counted twice; each `perf stat` needs its own file");
            return Err(Refusal::at(line, text));
        }
        self.is_perf = true;
        Ok(())
    }
}

impl FormatReader for PerfStatReader {
    fn line(&mut self, line: &Line<'_>) -> Result<(), Refusal> {
        let text = line.text.trim();
        if text.starts_with("Performance counter stats for") {
            self.is_perf = true;
            return Ok(());
        }
        if text.is_empty() || text.starts_with('#') || text.starts_with('<') {
            return Ok(());
        }

        // `123,,cycles,1000,100.00,,` with `-x,`: value, unit, event.
        let fields: Vec<&str> = text.split(',').collect();
        let is_separated = fields.len() >= 5 && is_number(fields[0]) && !is_number(fields[2]);
        if is_separated && fields[2].len() > 2 {
            return self.add(fields[2], fields[0], line.number);
        }

        // `1,234,567 cycles:u # 3.1 GHz` or `12.50 msec task-clock`.
        let words: Vec<&str> = text.split('#').next().unwrap_or("").split_whitespace().collect();
        match words[..] {
            [value, unit @ ("msec" | "ns" | "seconds"), name, ..] if is_value(value) => {
                if matches!(name, "time" | "user" | "sys") {
                    return Ok(());
                }
                self.add(&format!("{name}_{unit}"), value, line.number)
            }
            [value, name] | [value, name, _] if is_value(value) => {
                self.add(name, value, line.number)
            }
            _ => Ok(()),
        }
    }

    fn end(self: Box<Self>) -> Result<FileContents, Refusal> {
        if !self.is_perf || self.events.is_empty() {
            return Err(Refusal::of_file("it has no counts of `perf stat`"));
        }

        let mut events = Vec::new();
        for (name, value) in &self.events {
            events.push(Counter::gauge(format!("perf.{name}"), *value));
        }
        Ok(FileContents { events, ..FileContents::default() })
    }
}

fn is_number(field: &str) -> bool {
    field.parse::<f64>().is_ok()
}

/// Returns whether a word is a number with commas between its digits.
fn is_value(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit() || b",.".contains(&byte))
        && word.starts_with(|letter: char| letter.is_ascii_digit())
}
