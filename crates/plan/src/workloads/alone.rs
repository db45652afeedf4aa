//! Steps that are measured alone: right after the load, in a variant of their own.

use crate::reading::context::Context;
use crate::spec::{Alone, Variant, Workload};
use crate::text::diagnostic::Place;
use crate::text::wording::code;

/// A step that the plan's key `alone` names, with its place.
pub(crate) type NamedStep = (String, Place);

/// Adds a variant for each step of `alone` and each variant that has it in sequence. Reports names
/// of steps that cannot be measured alone.
pub(crate) fn add_variants(
    cx: &mut Context<'_>,
    variants: Option<Vec<Variant>>,
    alone: &[NamedStep],
) -> Option<Vec<Variant>> {
    let in_sequence = variants?;
    let mut all = Vec::new();

    for variant in &in_sequence {
        all.push(variant.clone());
        all.extend(alone.iter().filter_map(|(step, _)| variant_with(variant, step)));
    }

    for (step, place) in alone {
        let has_variant =
            |variant: &Variant| variant.alone.as_ref().is_some_and(|alone| alone.step == *step);
        if !all.iter().any(has_variant) {
            report(cx, &in_sequence, step, *place);
        }
    }

    Some(all)
}

/// Returns the variant that measures a step right after the load. `None` if the workload does not
/// load, lacks the step, or has it right after the load or within it.
fn variant_with(variant: &Variant, step: &str) -> Option<Variant> {
    let loading = variant.workload.steps_that_load();
    let at = variant.workload.steps().iter().position(|run| run.name == step)?;
    if loading == 0 || at <= loading {
        return None;
    }

    let mut workload = variant.workload.clone();
    workload.retain_steps(|index| index < loading || index == at);

    // The name of a directory has no dots.
    let suffix = format!("alone-{}", step.replace('.', "-"));
    let name = match &variant.name {
        Some(name) => format!("{name}-{suffix}"),
        None => suffix,
    };

    let alone = Alone { step: step.to_owned(), in_sequence: variant.name.clone() };
    Some(Variant { name: Some(name), workload, alone: Some(alone) })
}

/// Reports a step that no variant can measure alone.
fn report(cx: &mut Context<'_>, variants: &[Variant], step: &str, place: Place) {
    let names = |variant: &Variant| -> Vec<String> {
        let steps = variant.workload.steps();
        steps.iter().map(|run| run.name.to_owned()).collect()
    };

    let is_known = variants.iter().any(|variant| names(variant).iter().any(|name| name == step));

    let mut measurable: Vec<String> = Vec::new();
    for variant in variants {
        for name in names(variant) {
            let name_in_code = code(&name);
            // Variants may have the same steps.
            if variant_with(variant, &name).is_some() && !measurable.contains(&name_in_code) {
                measurable.push(name_in_code);
            }
        }
    }

    let label = if is_known {
        "it is part of the load, or comes right after it"
    } else {
        "the workload has no such step"
    };
    let help = if measurable.is_empty() {
        "remove the key: this workload has no step that comes later than right after its load"
            .to_owned()
    } else {
        format!("steps here: {}", measurable.join(", "))
    };

    let message = format!("{} cannot be measured alone", code(step));
    cx.error("plan::not-alone", place, message).label(label).help(help);
}

impl Workload {
    /// Keeps the steps at some positions, which are counted from 0.
    pub(super) fn retain_steps(&mut self, is_kept: impl Fn(usize) -> bool) {
        fn retain<T>(steps: &mut Vec<T>, is_kept: impl Fn(usize) -> bool) {
            let mut positions = 0..;
            steps.retain(|_| positions.next().is_some_and(&is_kept));
        }

        match self {
            Self::Insert(insert) => retain(&mut insert.steps, is_kept),
            Self::Kv(kv) => retain(&mut kv.steps, is_kept),
            Self::Sysbench(sysbench) => retain(&mut sysbench.steps, is_kept),
            Self::Transactions(transactions) => retain(&mut transactions.steps, is_kept),
        }
    }
}
