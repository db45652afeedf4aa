//! Known differences between targets that were measured once, in words.

use super::gap;
use super::setting::setting_text;
use super::wording::Wording;
use crate::prose::numbers::list;
use analysis::explain::statement::{BEGINS_FACTOR, KnownDifferences};

/// The number of costs that a finding about targets that were measured once has sentences about.
const GAPS_NAMED: usize = 2;

pub(super) fn wording(known: &KnownDifferences) -> Wording {
    let mut sentences: Vec<String> =
        known.gaps.iter().take(GAPS_NAMED).map(gap::sentence).collect();

    let mut with_fsyncs = Vec::new();
    let mut with_settings = Vec::new();
    for fact in &known.facts {
        if !fact.fsyncs.is_empty() {
            with_fsyncs.push(format!("{} in {}", fact.who, list(&fact.fsyncs)));
        }
        if !fact.settings.is_empty() {
            let settings: Vec<String> = fact.settings.iter().map(setting_text).collect();
            with_settings.push(format!("{} in {}", fact.who, list(&settings)));
        }
    }

    if !with_fsyncs.is_empty() {
        sentences.push(format!(
            "Fsyncs per commit differ by a factor of {BEGINS_FACTOR} or more: {}.",
            list(&with_fsyncs)
        ));
    }
    if !with_settings.is_empty() {
        sentences.push(format!("Settings differ: {}.", list(&with_settings)));
    }

    let title = "Differences of targets that were measured once, so no causes are named";
    Wording { title: title.to_owned(), sentences }
}
