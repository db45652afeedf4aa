//! The steps of a comparison as the gate judges them.

use analysis::compare::{Compared, Gate, Judged, Thresholds, gate_of, judged};

/// A comparison whose steps the gate has judged.
pub struct JudgedSteps<'a> {
    pub(super) compared: &'a Compared,
    pub(super) thresholds: Thresholds,
    /// The judgment of each comparison that the gate rests on, with its index in [`Compared::rows`].
    pub(super) judged: Vec<(usize, Judged)>,
    /// The decision that follows from them.
    pub(super) gate: Gate,
}

impl<'a> JudgedSteps<'a> {
    /// Judges the steps of a comparison by these thresholds.
    pub(super) fn of(compared: &'a Compared, thresholds: Thresholds) -> Self {
        let judged = judged(compared, &thresholds);
        let gate = gate_of(&judged, compared, &thresholds);
        Self { compared, thresholds, judged, gate }
    }
}
