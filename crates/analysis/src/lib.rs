//! Computes figures from records, compares them, and explains what changed.
//!
//! ```text
//! record ─► figures ─► Figures ─► compare ─► Compared ─► explain ─► Finding
//!           metrics    Row: one   samples    interval    rules      title, text,
//!           quality    step of a  pairs      and verdict return     evidence,
//!           sla        cell       families   of a step   values     caveats
//!
//! settings   what differs between targets          compat   whether runs can be compared
//! factors    levels of a matrix ─► effects         answer   one summary of all verdicts
//! ```
//!
//! This crate is pure: the same record always gives the same figures. Formulas and their sources
//! are in `docs/metrics.md`, those of comparisons in `docs/statistics.md`, and the rules of
//! findings in `docs/findings.md`.
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use analysis::{CompareOptions, Figures, Row, Verdict, compare, explain, factor_within};
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
//! assert_eq!(factor_within(throughput.ratio.unwrap(), throughput.interval), "1.25x");
//!
//! let findings = explain(&figures, &compared);
//! assert_eq!(findings[0].title, "b.fast: 1.25x faster in q100: unexplained");
//! ```

mod answer;
mod calls;
mod client_hosts;
mod compare;
pub mod compat;
mod competition;
mod consistency;
mod explain;
mod factors;
mod fairness;
mod figures;
mod initial_tree;
mod json;
mod latency;
mod log_events;
mod machines;
mod metrics;
mod operation;
mod order;
mod parallel;
mod plans;
mod profile;
mod quality;
mod rate_search;
mod remarks;
mod rows;
mod series;
mod settings;
mod shade;
mod sizes;
mod sla;
mod step_figures;
mod waits;

pub use answer::{Answer, Change, TargetAnswer};
pub use calls::Calls;
pub use compare::{
    Bound, CombinationEffect, CompareOptions, Compared, ComparedMachines, ComparedStep,
    DetectableEffect, Deviation, Effect, Effects, Gate, Interval, NoiseFloor, POWER, Pairing,
    REPEATS_CAP, Requirement, RequirementResult, RequirementVerdict, Sample, StepNoise, THROUGHPUT,
    Thresholds, VERDICT_METRICS, VarianceShare, Verdict, compare, costs, effects, gate,
    metric_label, more_is_better, noise_floor, repeats_to_judge, throughput,
};
pub use competition::{Competition, UnevenStep, competition, uneven_steps};
pub use explain::{
    Evidence, FINDINGS_SHOWN_MAX, Finding, FindingKind, explain, factor, factor_within, figure,
    range,
};
pub use factors::{Combination, Factor, Factors};
pub use fairness::fairness;
pub use figures::*;
pub use initial_tree::InitialTree;
pub use json::{json, missing_json, settings_json};
pub use latency::{BUCKET_NS_LIMITS, buckets, curve, percentiles};
pub use log_events::{EventTotals, StepEvents};
pub use metrics::{COARSE_SHARE, Lag, LagVerdict, lag, metrics};
pub use operation::{noun, throughput_unit};
pub use order::distinct;
pub use plans::{ComparedPlans, PlanDifference};
pub use profile::{
    ComparedProfile, CostDifference, FunctionDifference, MergedProfile, NamedFunction,
    ProfileTotals, ProfiledStep, compare_profiles, merged_profiles, profiled_cpu_us,
};
pub use quality::{
    ConcurrentChange, LISTED_MAX, Pending, Quality, SHIFT_SECONDS_MIN, STALL_SHARE, SettleAction,
    SettleWork, Shift, SlaHistory, Stall, WorstResponse,
};
pub use rate_search::{
    MissedBound, RateTrial, SearchState, SearchedTarget, TrialVerdict, bracket, rate_of,
    rate_searches, rate_variant,
};
pub use remarks::Remark;
pub use rows::{figures, figures_and, for_each_row};
pub use series::{per_second, rate_exceeded_in};
pub use settings::{
    Comparison, Difference, DifferenceKind, IgnoredOption, OneSidedSetting, PlanTarget, Profile,
    ProfileSetting, RunSettings, Settings, TargetSettings, VaryingSetting, declared_differences,
};
pub use shade::{Shade, relative, shade_max, shade_share, shade_summary};
pub use sizes::{Size, TablePart};
pub use sla::{SLA_SHARE, sla};
pub use step_figures::operations_needed;
pub use waits::{ComparedWaits, StateDifference};
pub use words::counted;
