//! Tables of figures.

pub(crate) mod classic;
pub(crate) mod compared;
pub(crate) mod grouped;
pub(crate) mod lsm;
pub(crate) mod metric_list;
pub(crate) mod metrics;
pub(crate) mod plans;
pub(crate) mod quality;
pub(crate) mod searches;
pub(crate) mod sizes;
pub(crate) mod steps;
pub(crate) mod times;
