//! The report in the directory of a run. A run does not fail for want of one.

use std::path::PathBuf;

use analysis::figures::Figures;
use inquiry::page;
use record::RunDir;
use report::Curves;

use crate::exit::report_error;

/// Writes the report of a run whose record was finished late.
pub(super) fn renew_report(directory: &RunDir) {
    match analysis::figures::figures_and(std::slice::from_ref(directory), Curves::take) {
        Ok((figures, curves)) => {
            write_report(directory, &figures, &curves);
        }
        Err(error) => {
            report_error(&error.into());
        }
    }
}

/// Returns the path of the report; `None` if it cannot be written, which is not fatal: it can be
/// made again.
pub(super) fn write_report(
    directory: &RunDir,
    figures: &Figures,
    curves: &[Curves],
) -> Option<PathBuf> {
    match page::write_report(directory, figures, curves) {
        Ok(output) => Some(output),
        Err(error) => {
            report_error(&error);
            None
        }
    }
}
