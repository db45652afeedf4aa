//! The record -> figures: per operation, SLA, fairness, distributions, series. Pure: the same record always comes to
//! the same figures. Every formula, with its source, is in `docs/metrics.md`; that of comparisons in `docs/statistics.md`.

mod answer;
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
mod metrics;
mod operation;
mod order;
mod quality;
mod remarks;
mod rows;
mod series;
mod settings;
mod shade;
mod sla;

pub use answer::{Answer, Change, TargetAnswer};
pub use compare::{
    CombinationEffect, CompareOptions, Compared, ComparedStep, DetectableEffect, Deviation, Effect,
    Effects, Gate, Interval, NoiseFloor, POWER, Pairing, REPEATS_CAP, Sample, StepNoise,
    THROUGHPUT, Thresholds, VERDICT_METRICS, Verdict, compare, costs, effects, gate, metric_label,
    more_is_better, noise_floor, repeats_to_judge, throughput,
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
pub use metrics::{COARSE_SHARE, metrics};
pub use operation::{noun, throughput_unit};
pub use order::distinct;
pub use quality::{
    ConcurrentChange, LISTED_MAX, Pending, Quality, SHIFT_SECONDS_MIN, STALL_SHARE, SettleAction,
    SettleWork, Shift, SlaHistory, Stall, WorstResponse,
};
pub use remarks::Remark;
pub use rows::{figures, figures_and, for_each_row};
pub use series::{per_second, rate_exceeded_in};
pub use settings::{
    Comparison, Difference, DifferenceKind, IgnoredOption, OneSidedSetting, PlanTarget, Profile,
    ProfileSetting, RunSettings, Settings, TargetSettings, VaryingSetting, declared_differences,
};
pub use shade::{Shade, relative, shade_max, shade_share, shade_summary};
pub use sla::{SLA_SHARE, sla};
pub use words::counted;
