//! The steps of a workload that a run measures, and those after which a database is kept.

use super::alone::NamedStep;
use crate::reading::context::{Context, Section};
use crate::reading::value_kinds::{Line, ListOf};
use crate::spec::{Reuse, Variant, Workload};
use crate::text::diagnostic::Place;
use crate::text::wording::{choices, code};

/// The keys.
const KEEP_AFTER: &str = "keep-after";
const FROM: &str = "from";
const ONLY_STEPS: &str = "only-steps";

/// The steps that the keys of a plan choose.
pub(crate) struct ChosenSteps {
    /// The steps after which a database is kept.
    pub(crate) keep_after: Vec<NamedStep>,
    /// The step after whose kept database cells begin.
    pub(crate) from: Option<NamedStep>,
    /// The measured steps to run; none for all.
    only: Vec<NamedStep>,
    /// The sharing of loaded databases, which keeps them after the load.
    reuse: Reuse,
}

impl ChosenSteps {
    pub(crate) fn read(cx: &mut Context<'_>, section: &mut Section, reuse: Reuse) -> Self {
        let steps = ListOf(Line, "a list of steps");
        let from_place = section.place_of(FROM);
        let from = cx.given(section, FROM, &Line);

        Self {
            keep_after: cx.given(section, KEEP_AFTER, &steps).unwrap_or_default(),
            from: from.map(|step| (step, from_place)),
            only: cx.given(section, ONLY_STEPS, &steps).unwrap_or_default(),
            reuse,
        }
    }

    /// Returns the variants with the steps that are to run, and those that made the database with
    /// which cells begin. Reports names of steps that no variant has.
    pub(crate) fn apply(
        &self,
        cx: &mut Context<'_>,
        variants: Option<Vec<Variant>>,
    ) -> Option<Vec<Variant>> {
        let mut variants = variants?;

        for (step, place) in self.keep_after.iter().chain(&self.only) {
            if !variants.iter().any(|variant| variant.workload.steps_up_to(step).is_some()) {
                report_unknown(cx, &variants, step, *place);
            }
        }

        let mut first_measured = vec![0; variants.len()];
        if let Some((step, place)) = &self.from {
            for (first, variant) in first_measured.iter_mut().zip(&variants) {
                match variant.workload.steps_up_to(step) {
                    Some(count) => *first = count,
                    None => report_unknown(cx, &variants, step, *place),
                }
            }
            self.check_rest(cx, &variants, &first_measured);
        }
        for (step, place) in &self.keep_after {
            self.check_kept(cx, &variants, step, *place);
        }

        if !self.only.is_empty() {
            for (variant, first) in variants.iter_mut().zip(first_measured) {
                self.retain_chosen(&mut variant.workload, first);
            }
        }
        Some(variants)
    }

    /// Reports a plan that leaves out all steps, or chooses a step that it leaves out.
    fn check_rest(&self, cx: &mut Context<'_>, variants: &[Variant], first_measured: &[usize]) {
        let Some((from, from_place)) = &self.from else {
            return;
        };

        for (variant, first) in variants.iter().zip(first_measured) {
            let steps = variant.workload.steps();
            if *first == steps.len() {
                let message = format!("no step comes after {}", code(from));
                cx.error("plan::conflict", *from_place, message)
                    .label("cells would have nothing to run")
                    .help("add the steps to measure to `steps` of the workload");
            }

            for (step, place) in &self.only {
                if steps[..*first].iter().any(|left_out| left_out.name == step) {
                    let message = format!("{} is not after {}", code(step), code(from));
                    cx.error("plan::conflict", *place, message)
                        .label("cells begin with a database that was kept later")
                        .also(*from_place, "they begin after this step");
                }
            }
        }
    }

    /// Reports a step after which no variant keeps a database of its own: before anything is loaded,
    /// and within the load that `reuse` shares.
    fn check_kept(&self, cx: &mut Context<'_>, variants: &[Variant], step: &str, place: Place) {
        let mut refused = None;
        for variant in variants {
            let Some(count) = variant.workload.steps_up_to(step) else {
                continue;
            };
            match self.refusal(&variant.workload, step, count) {
                Some(refusal) => refused = Some(refusal),
                // The cells of this variant keep one.
                None => return,
            }
        }

        if let Some(Refusal { message, label, help }) = refused {
            cx.error("plan::conflict", place, message).label(label).help(help);
        }
    }

    /// Returns the reason why cells of a workload keep no database after a step, the last of its first
    /// `count`.
    fn refusal(&self, workload: &Workload, step: &str, count: usize) -> Option<Refusal> {
        let steps = workload.steps();
        // What other runs of the plan keep, a run with `--from` need not keep again.
        if self.from.is_some() {
            return None;
        }

        if !workload.loads_within(count) {
            let help = match (count..=steps.len()).find(|count| workload.loads_within(*count)) {
                Some(loaded) => {
                    format!("name {} or a later step", code(steps[loaded - 1].name))
                }
                None => "add the step that loads to `steps` of the workload".to_owned(),
            };
            return Some(Refusal {
                message: format!("nothing is loaded up to {}", code(step)),
                label: "there is no data to keep yet",
                help,
            });
        }

        let loading = workload.steps_that_load();
        (self.reuse != Reuse::Off && count < loading).then(|| Refusal {
            message: format!("{} is a part of the load, which `reuse` shares", code(step)),
            label: "cells may begin with a database that was kept later",
            help: format!(
                "name {}, which ends the load, or a later step; or remove `reuse`",
                code(steps[loading - 1].name)
            ),
        })
    }

    /// Removes the measured steps that `only-steps` does not name, but none of the first ones.
    fn retain_chosen(&self, workload: &mut Workload, first_measured: usize) {
        let makes_database = workload.steps_that_make();
        let names: Vec<String> = workload.steps().iter().map(|step| step.name.to_owned()).collect();

        workload.retain_steps(|index| {
            let is_chosen = self.only.iter().any(|(step, _)| *step == names[index]);
            // After `from`, only what is chosen runs; before it, all that made the database.
            let is_of_database = first_measured == 0 && makes_database[index];
            index < first_measured || is_of_database || is_chosen
        });
    }

    /// Reports what contradicts these keys elsewhere in the plan.
    pub(crate) fn check(&self, cx: &mut Context<'_>, takes_turns: bool, is_exact: bool) {
        let kept = self.keep_after.first().map(|(_, place)| (KEEP_AFTER, *place));
        let from = self.from.as_ref().map(|(_, place)| (FROM, *place));

        if matches!(self.reuse, Reuse::Run | Reuse::Repeat)
            && let Some((key, place)) = from.or(kept)
        {
            let message = format!("{} needs databases that outlive a run", code(key));
            cx.error("plan::conflict", place, message)
                .label("`reuse` removes them with the run or the repeat")
                .help("remove `reuse`, or set `reuse = true`");
        }

        if takes_turns && let Some((key, place)) = kept {
            let message = format!("{} is not possible with `turns`", code(key));
            cx.error("plan::conflict", place, message)
                .label("a target would stop while others measure the same step")
                .help("set `turns = \"off\"` for the run that keeps databases; runs that begin `from` one may take turns");
        }

        if is_exact && let Some((key, place)) = from {
            let message = format!("{} is not possible with `exact`", code(key));
            cx.error("plan::conflict", place, message)
                .label("exact cells load their own database")
                .help("remove the table `exact` and the option `--exact`");
        }
    }
}

/// The reason why no database is kept after a step.
struct Refusal {
    message: String,
    label: &'static str,
    help: String,
}

/// Reports the name of a step that a workload lacks.
fn report_unknown(cx: &mut Context<'_>, variants: &[Variant], step: &str, place: Place) {
    let mut names: Vec<String> = Vec::new();
    for variant in variants {
        for run in variant.workload.steps() {
            if !names.iter().any(|name| name == run.name) {
                names.push(run.name.to_owned());
            }
        }
    }

    let lacking = if variants.len() > 1 { "a workload" } else { "the workload" };
    let message = format!("unknown step {}", code(step));
    cx.error("plan::unknown-step", place, message)
        .label(format!("{lacking} has no such step"))
        .help(choices(step, "steps here", &names));
}
