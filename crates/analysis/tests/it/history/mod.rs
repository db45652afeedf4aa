//! Histories of which the truth is known: where levels change, and what the machine did.

mod causes;
mod simulated;
#[allow(dead_code, reason = "the example uses what the tests do not")]
mod truth;

use crate::compare::machine;
