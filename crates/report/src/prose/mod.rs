//! Statements about results: sentences as values, which every printer prints.
//!
//! A terminal, Markdown, a page and JSON must say the same thing. So the wording is chosen once,
//! here, and a printer only decides on order, wrapping and emphasis.
//!
//! ```text
//! Comparison ─┬─ answer, searches ─► Passage    one heading, sentences, doubt, remedy, figures
//!             ├─ findings ─────────► Passages   the most important explanations
//!             ├─ method ───────────► Method     how targets were compared
//!             └─ why                            what makes an interval as wide as it is
//! Figures ────┬─ problems ─────────► Problem    what failed, by severity and place
//!             ├─ validity ─────────► Validity   whether the figures can be trusted
//!             ├─ uneven, trees, profiles        what makes a comparison doubtful
//!             └─ remarks                        what follows from the figures of a step
//! Settings ──── settings ──────────► Block      what differs between targets
//! Run ───────── run                             what was run, and how it ended
//! Search, EndedPhase ── bisections, tunings      what a series of runs shows
//! ```

pub(crate) mod amount;
pub(crate) mod answer;
pub(crate) mod bisections;
pub(crate) mod brief;
pub(crate) mod factors;
pub(crate) mod findings;
pub(crate) mod history;
pub(crate) mod judgements;
pub(crate) mod max_rates;
pub(crate) mod method;
pub(crate) mod numbers;
pub(crate) mod problems;
pub(crate) mod profiles;
pub(crate) mod remarks;
pub(crate) mod run;
pub(crate) mod searches;
pub(crate) mod settings;
pub(crate) mod trees;
pub(crate) mod tunings;
pub(crate) mod uneven;
pub(crate) mod validity;
pub(crate) mod why;

use analysis::counted;

use crate::model::table::Table;

/// The beginning of the sentence that says whether what a search found is confirmed.
pub(crate) const SECOND_TRIAL: &str = "A second trial, with new servers and databases,";

/// A statement about results, with the figures that support it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Passage {
    /// The statement itself: the title of a finding, or the first sentence of an answer.
    pub heading: String,
    /// The reasons, and how certain they are.
    pub sentences: Vec<String>,
    /// The next thing to do.
    pub remedy: Option<String>,
    /// The reason to doubt it.
    pub doubt: Option<String>,
    pub figures: Vec<Table>,
}

impl Passage {
    /// Returns what follows the heading as one paragraph; empty if nothing does.
    pub(crate) fn text(&self) -> String {
        let all: Vec<&str> =
            self.sentences.iter().chain(&self.remedy).map(String::as_str).collect();
        all.join(" ")
    }

    /// Returns the heading and what follows as one paragraph.
    pub(crate) fn whole(&self) -> String {
        let parts = [self.heading.clone(), self.text()];
        parts.join(" ").trim().to_owned()
    }
}

/// Returns the words for a load: ` of small at 8 clients`.
pub(crate) fn at_load(variant: Option<&str>, clients: u32) -> String {
    let of_variant = variant.map_or(String::new(), |variant| format!(" of {variant}"));
    format!("{of_variant} at {}", counted(clients as usize, "client"))
}
