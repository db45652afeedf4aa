//! Writes the report of a run that never was, to look at: `synthetic TARGETS CLIENTS SECONDS > report.html`.

#[path = "../tests/it/synthetic.rs"]
#[allow(
    dead_code,
    clippy::unwrap_used,
    reason = "the tests use all of it, and what is made by rule is well formed"
)]
mod synthetic;

use std::io::Write;

use synthetic::{ALL_STEPS, Size, figures, source};

fn main() -> std::io::Result<()> {
    let numbers: Vec<usize> = std::env::args()
        .skip(1)
        .filter_map(|text| text.parse().ok())
        .collect();
    let number = |at: usize, default| numbers.get(at).copied().unwrap_or(default);
    let size = Size {
        targets: number(0, 4),
        clients: number(1, 4),
        seconds: number(2, 300),
        steps: ALL_STEPS,
    };
    std::io::stdout().write_all(report::html(&[source(size)], &figures(size)).as_bytes())
}
