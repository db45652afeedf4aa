//! Results as lines of Go's benchmarks, which benchstat reads.

use std::path::Path;

use super::output::write_to;
use super::selection::Selection;
use crate::exit::Exit;
use crate::output::eprint_line;

impl Selection {
    /// Writes a line for each valid result.
    pub(super) fn write_benchmarks(&self, output: Option<&Path>) -> anyhow::Result<Exit> {
        let benchmarks = report::benchmarks(&self.runs(), &self.rows()?);
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

        Ok(self.exit())
    }
}
