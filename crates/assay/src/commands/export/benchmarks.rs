//! Results as lines of Go's benchmarks, which benchstat reads.

use std::path::Path;

use inquiry::selection::Selection;

use super::exit_of;
use super::output::write_to;
use crate::exit::Exit;
use crate::output::eprint_line;

/// Writes a line for each valid result.
pub(super) fn write_benchmarks(
    selection: &Selection,
    output: Option<&Path>,
) -> anyhow::Result<Exit> {
    let benchmarks = report::benchmarks(&selection.runs(), &selection.rows()?);
    for left_out in &benchmarks.left_out {
        eprint_line!("warning: left out: {left_out}");
    }
    if benchmarks.result_count == 0 {
        eprint_line!(
            "error: the runs have no valid result, so nothing was written\n\
             help: `assay show RUN` says why each step is invalid"
        );
        return Ok(Exit::Invalid);
    }

    write_to(output, "benchmarks.txt", false, |mut sink| {
        sink.write_all(benchmarks.text.as_bytes())?;
        Ok(sink)
    })?;

    Ok(exit_of(selection))
}
