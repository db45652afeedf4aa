//! The record -> figures: per operation, SLA, fairness, distributions, series. Pure: the same record always comes to
//! the same figures. Every formula, with its source, is in `docs/metrics.md`.

mod consistency;
mod fairness;
mod figures;
mod json;
mod latency;
mod metrics;
mod operation;
mod rows;
mod series;
mod settings;
mod shade;
mod sla;

pub use fairness::fairness;
pub use figures::*;
pub use json::{json, settings_json};
pub use latency::{BUCKET_NS_LIMITS, buckets, curve, percentiles};
pub use metrics::{METRICS, metrics};
pub use rows::{figures, figures_and};
pub use series::{per_second, rate_exceeded_in};
pub use settings::{
    Comparison, Declared, Difference, Fate, Ignored, Mark, OneSided, PlanTarget, RunSettings,
    Settings, TargetSettings, Varying, declared, declared_differences,
};
pub use shade::{Shade, relative, shade_max, shade_relative, shade_share, shade_summary};
pub use sla::{SLA_SHARE, sla};
