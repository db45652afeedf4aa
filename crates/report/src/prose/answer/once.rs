//! The sentences about targets that were measured once: the largest differences in cost, and the
//! range of the ratios.

use analysis::counted;
use analysis::explain::TargetAnswer;
use analysis::figures::ComparedSides;

use super::{AnswerWriter, NAMED};
use crate::model::number::ratio_text;
use crate::prose::Passage;
use crate::prose::findings::gap;

impl AnswerWriter<'_> {
    /// Returns the answer for targets that were measured once: one run cannot show a change.
    pub(super) fn measured_once(&self) -> Passage {
        let targets = &self.answer.targets;
        let measured: Vec<&TargetAnswer> =
            targets.iter().filter(|target| !target.single.is_empty()).collect();

        let ratios: Vec<f64> =
            measured.iter().flat_map(|target| &target.single).map(|change| change.ratio).collect();

        let low = ratio_text(ratios.iter().copied().fold(f64::INFINITY, f64::min)) + "x";
        let high = ratio_text(ratios.iter().copied().fold(0.0, f64::max)) + "x";
        let range = if low == high { low } else { format!("{low} to {high}") };

        let base = &self.answer.base;
        let who = match measured.as_slice() {
            [one] => one.target.clone(),
            many => counted(many.len(), self.figures.sides.noun()),
        };
        let steps = measured.iter().map(|target| target.single.len()).max().unwrap_or(0);
        let not_compared = match targets.iter().map(|target| target.not_compared).sum() {
            0 => String::new(),
            1 => "; 1 is not compared".to_owned(),
            count => format!("; {count} are not compared"),
        };

        // Repeats of one of several runs are no pairs with those of another.
        let remedy = if self.figures.sides == ComparedSides::Runs {
            None
        } else {
            let more = "`assay run --resume RUN --repeats 5` adds the repeats that verdicts need.";
            Some(more.to_owned())
        };

        let said = Passage {
            heading: format!(
                "{who} had {range} the throughput of {base} in {}, measured once: one run cannot show a change{not_compared}.",
                self.count(steps)
            ),
            remedy,
            ..Passage::default()
        };

        self.headed_by_gaps(said)
    }

    /// Puts the largest differences in cost before what is said about throughput.
    fn headed_by_gaps(&self, about_throughput: Passage) -> Passage {
        let mut gaps = self.answer.gaps.iter().take(NAMED);
        let Some(largest) = gaps.next() else {
            return about_throughput;
        };

        let mut sentences = Vec::new();
        if let Some(others) = gap::also(largest) {
            sentences.push(format!("This cost also differs for {others}."));
        }
        sentences.extend(gaps.map(gap::sentence));

        sentences.push(about_throughput.heading);
        Passage {
            heading: format!("Measured once: {}.", gap::clause(&largest.gaps[0])),
            sentences,
            ..about_throughput
        }
    }
}
