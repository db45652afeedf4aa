//! Computes figures from records, compares them, and explains what changed.
//!
//! ```text
//! record ─► settings ─► figures ─► compare ─► explain
//!           what        one Row    a ratio,   a Finding for
//!           differs     for each   interval   each change:
//!           between     step of    and        cause, evidence,
//!           targets     a cell     verdict    caveats
//!                         │
//!                         ├─► compat   whether runs can be compared at all
//!                         ├─► search   which rate to try next
//!                         ├─► bisect   which version to try next
//!                         ├─► tune     which options to try next
//!                         └─► history  since when, over many runs
//! ```
//!
//! Each module uses only those before it, so that a figure cannot depend on what it is compared
//! with, nor a verdict on its explanation.
//!
//! | module | main types |
//! |---|---|
//! | [`settings`] | [`Settings`](settings::Settings), [`Comparison`](settings::Comparison), [`Factors`](settings::Factors) |
//! | [`figures`] | [`Figures`](figures::Figures), [`Row`](figures::Row), [`Series`](figures::Series), [`Quality`](figures::Quality) |
//! | [`mod@compare`] | [`Compared`](compare::Compared), [`ComparedStep`](compare::ComparedStep), [`Verdict`](compare::Verdict), [`Effects`](compare::Effects), [`Gate`](compare::Gate) |
//! | [`mod@explain`] | [`Finding`](explain::Finding), [`Answer`](explain::Answer) |
//! | [`compat`] | [`Recorded`](compat::Recorded), [`Incomparable`](compat::Incomparable) |
//! | [`bisect`] | [`Search`](bisect::Search), [`Trial`](bisect::Trial), [`Link`](bisect::Link) |
//! | [`history`] | [`History`](history::History), [`Levels`](history::Levels), [`RunSummary`](history::RunSummary) |
//! | [`tune`] | [`Phase`](tune::Phase), [`Goal`](tune::Goal) |
//! | [`search`] | [`SearchedTarget`](search::SearchedTarget), [`RateTrial`](search::RateTrial) |
//!
//! This crate is pure: the same record always gives the same figures. It reads run directories and
//! writes nothing. Formulas and their sources are in `docs/metrics.md`, those of comparisons in
//! `docs/statistics.md`, and the rules of findings in `docs/findings.md`.
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use analysis::compare::{CompareOptions, Verdict, compare};
//! use analysis::explain::{FindingKind, explain};
//! use analysis::figures::{Figures, Row};
//! use record::{CellKey, Status, StepKind};
//!
//! // Five repeats of two targets in turn; `b.fast` takes 20 us per query instead of 25.
//! let mut figures = Figures::default();
//! for repeat in 1..=5 {
//!     for (target, us) in [("a.base", 25.0), ("b.fast", 20.0)] {
//!         let us = us + 0.1 * f64::from(repeat % 3);
//!         figures.rows.push(Row {
//!             cell: CellKey::new(target, None, 1, repeat),
//!             step: "q100".to_owned(),
//!             kind: StepKind::Query,
//!             status: Status::Complete,
//!             reported: true,
//!             valid: true,
//!             metrics: BTreeMap::from([("qps", Some(1e6 / us))]),
//!             ..Row::default()
//!         });
//!     }
//! }
//! let options = CompareOptions { base: "a.base".to_owned(), ..CompareOptions::default() };
//! let compared = compare(&figures, &options);
//! let throughput = &compared.rows[0];
//! assert_eq!(throughput.verdict, Verdict::Faster);
//! assert!((throughput.ratio.unwrap() - 1.25).abs() < 0.01);
//!
//! let findings = explain(&figures, &compared);
//! assert_eq!(findings[0].kind, FindingKind::Unexplained);
//! assert_eq!(findings[0].target, "b.fast");
//! ```

pub mod bisect;
pub mod compare;
pub mod compat;
pub mod explain;
pub mod figures;
pub mod history;
mod json;
mod order;
mod parallel;
pub mod search;
pub mod settings;
mod shade;
pub mod tune;

pub use json::{json, missing_json, settings_json};
pub use order::distinct;
pub use parallel::map_parallel;
pub use shade::{Shade, relative, shade_max, shade_share, shade_summary};
pub use words::counted;
