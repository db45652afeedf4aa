//! The answer's sentence about a difference that is not shown, but whose repeats are far apart.

use super::AnswerWriter;
use super::costs::what;
use crate::model::number::ratio_text;

impl AnswerWriter<'_> {
    /// Returns the sentence; `None` if something is shown, or nothing is far apart.
    pub(super) fn apart(&self) -> Option<String> {
        let apart = self.answer.apart.as_ref()?;

        Some(format!(
            "Not shown, but far apart: {} has {}x the {} of {} in {}, and even their closest repeats differ by {}x. More \
             repeats tell whether that is noise.",
            apart.target,
            ratio_text(apart.ratio),
            what(&apart.metric),
            self.answer.base,
            self.place_of(&apart.step, apart.variant.as_deref(), apart.clients),
            ratio_text(apart.distance),
        ))
    }
}

#[cfg(test)]
mod tests {
    use analysis::compare::{Compared, ComparedStep, Effects, Sample, Verdict};
    use analysis::explain::Answer;
    use analysis::figures::Figures;
    use record::CellKey;

    use super::*;

    fn sentence(compared: &Compared) -> Option<String> {
        let figures = Figures::default();
        let answer = Answer::new(&figures, compared, &Effects::default(), &[]);
        AnswerWriter::new(&answer, &figures).apart()
    }

    #[test]
    fn if_nothing_is_shown_the_metric_whose_repeats_are_far_apart_is_named() {
        let values = |values: [f64; 3]| {
            let sample = |(repeat, value)| Sample { run: 0, repeat, value };
            (1..).zip(values).map(sample).collect()
        };
        let reads = ComparedStep {
            cell: CellKey::new("v8_6.base", None, 1, 0),
            step: "overwrite".into(),
            metric: "r/o".into(),
            ratio: Some(11.6),
            base_values: values([0.0042, 0.0062, 0.0048]),
            values: values([0.0547, 0.0495, 0.0722]),
            verdict: Verdict::TooNoisy,
            ..ComparedStep::default()
        };
        let mut compared =
            Compared { base: "v8_5.base".into(), rows: vec![reads], ..Compared::default() };
        assert_eq!(
            sentence(&compared).unwrap(),
            "Not shown, but far apart: v8_6.base has 11.6x the disk reads per operation (r/o) of v8_5.base in overwrite, and \
             even their closest repeats differ by 7.98x. More repeats tell whether that is noise."
        );

        // What is shown needs no hint.
        compared.rows.push(ComparedStep { verdict: Verdict::Slower, ..ComparedStep::default() });
        assert_eq!(sentence(&compared), None);
    }
}
