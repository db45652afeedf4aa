//! Takes the values of a plan out of its text and of `--set` arguments.

pub(crate) mod context;
pub(crate) mod document;
pub(crate) mod expected_rate;
pub(crate) mod overrides;
pub(crate) mod quantity;
pub(crate) mod value_kinds;
