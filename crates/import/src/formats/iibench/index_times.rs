//! Times of index creation, such as `14 seconds : create all with explicit inplace`.

use record::{OpRole, StepKind};

use super::super::reading::StepResult;
use crate::text::{Line, Refusal, count, seconds_to_ns};

/// The time that an action took.
pub struct IndexTime {
    seconds: u64,
    action: String,
    line: u64,
}

/// Returns the time in a line; `None` if it has none.
pub fn index_time(line: &Line<'_>) -> Result<Option<IndexTime>, Refusal> {
    let Some((seconds, action)) = line.text.split_once(" seconds : ") else {
        return Ok(None);
    };
    if !seconds.trim().bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(None);
    }

    let seconds = count(seconds, "seconds", line.number)?;
    seconds_to_ns(seconds as f64, "seconds", line.number)?;
    let action: String = action.trim().chars().take(100).collect();
    Ok(Some(IndexTime { seconds, action, line: line.number }))
}

/// Returns a step for each action, with the rows that it indexed.
pub fn outcomes(times: &[IndexTime], rows: Option<u64>) -> Vec<StepResult> {
    let mut outcomes = Vec::new();
    for time in times {
        let mut outcome = StepResult::of(StepKind::Index, "create_index", OpRole::CreateIndex);
        outcome.step = Some(time.action.replace(' ', "-"));
        outcome.elapsed_ns = time.seconds * 1_000_000_000;
        outcome.rows_before = rows.unwrap_or(0);
        outcome.line = time.line;
        outcome.count_ok("create_index", OpRole::CreateIndex, 1, 0);
        outcomes.push(outcome);
    }
    outcomes
}
