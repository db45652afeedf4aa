//! Steps after others, in words.

use super::wording::{Wording, interval_text};
use crate::prose::numbers::{list_any, pace, times};
use analysis::explain::statement::{Pair, SequencedStep};

pub(super) fn wording(sequenced: &SequencedStep) -> Wording {
    let SequencedStep { who, step, before, index_gb, ratio, interval, repeat_count } = sequenced;
    let changed = pace(*ratio, *interval);
    let after = list_any(before.clone()).unwrap_or_else(|| "other steps".to_owned());
    let interval = interval_text(*interval, *repeat_count);

    let grown = match index_gb.and_then(Pair::ratio) {
        Some(ratio) => format!(", so that indexes are {} as large", times(ratio)),
        None => String::new(),
    };

    Wording {
        title: format!("{who}: {step} is {changed} after {after} than right after the load"),
        sentences: vec![
            format!(
                "In sequence, {step} of {who} is {changed} than in cells of its own, right after the load{interval}."
            ),
            format!(
                "Between the load and this step, {after} changed the data{grown}, and may have left unfinished work."
            ),
            "To tell changed data from unfinished work, let the engine settle before the step."
                .to_owned(),
        ],
    }
}
