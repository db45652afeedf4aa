//! Lines and numbers of text files from strangers.

mod lines;
mod number;
mod problem;

pub(crate) use lines::{Line, Lines};
pub(crate) use number::{
    before_unit, count, header_columns, measure, seconds_to_ns, share, with_unit,
};
pub use problem::{Doubt, Refusal};
