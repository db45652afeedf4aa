//! The commands with which a user continues after a run.

use std::collections::BTreeSet;

use analysis::compare::{
    CompareOptions, ComparedStep, EFFECT, THROUGHPUT, Verdict, compare, groups_by_base,
};
use analysis::compat::VariantSides;
use analysis::figures::Figures;
use record::{ResolvedValue, Run, RunDir};
use runner::matrix::incomplete::{path_in_command, resume_command};
use words::shell_quoted;

/// The kind of designs whose effects may be interactions.
const SCREENING: &str = "screening";

/// Returns the commands that tell more about a complete run, as sentences.
pub fn next_commands(directory: &RunDir, run: &Run, figures: &Figures) -> Vec<String> {
    let path = path_in_command(directory);
    let tables = format!("`assay show {path} --all` prints all tables");

    // A search adds its own repeats.
    if run.search.is_some() {
        return vec![tables];
    }

    // A base alone can be compared only with what is measured later.
    let has_one_target = run.cells.iter().all(|cell| cell.key.target == run.base);
    let are_variants_compared = VariantSides::of([run]).are_all_there_is();
    if has_one_target && !are_variants_compared {
        let later =
            format!("`assay compare {path} LATER-RUN --by-run` compares a later run with this one");
        return vec![tables, later];
    }

    let measured = run.cells.iter().filter(|cell| cell.key.kind.is_measured());
    let repeats: BTreeSet<u32> = measured.map(|cell| cell.key.repeat).collect();
    let repeat_count = repeats.len() as u32;
    let resume = resume_command(directory, run);
    let twice_as_many = format!(
        "`{resume} --repeats {}` doubles the repeats, for narrower intervals",
        2 * repeat_count.max(1)
    );

    if run.design.is_some() {
        return of_design(run, &path, twice_as_many);
    }
    if repeat_count <= 1 {
        let more = format!("`{resume} --repeats 5` adds the repeats that verdicts need");
        return vec![more, tables];
    }

    let costs = format!("`assay compare {path}` also shows what each operation costs");
    // Variants take no turns within a step, and a bundle is of two targets.
    if are_variants_compared {
        return vec![costs, twice_as_many];
    }

    let throughput = throughput(run, figures);
    let is_too_noisy = throughput.iter().any(|(_, row)| row.verdict == Verdict::TooNoisy);

    let mut commands = vec![costs, twice_as_many];
    if is_too_noisy && figures.rows.iter().all(|row| row.turns.is_none()) {
        commands.extend(in_turns(run, figures));
    }
    if let Some((base, change)) = largest_change(&throughput) {
        let base = shell_quoted(base);
        let target = shell_quoted(&change.cell.target);
        let step = shell_quoted(&change.step);
        commands.push(format!(
            "`assay bundle {path} --between {base} {target} --step {step}` writes the largest \
             change as a bug report"
        ));
    }
    commands
}

/// Returns the comparisons of throughput, each with its base.
fn throughput(run: &Run, figures: &Figures) -> Vec<(String, ComparedStep)> {
    let mut all = Vec::new();
    for group in groups_by_base(run.clone(), figures.clone()) {
        let options = CompareOptions {
            base: group.run.base,
            effect: figures.effect.unwrap_or(EFFECT),
            ..CompareOptions::default()
        };
        let mut rows = compare(&group.figures, &options).rows;
        rows.retain(|row| row.metric == THROUGHPUT);
        all.extend(rows.into_iter().map(|row| (options.base.clone(), row)));
    }
    all
}

/// Returns the comparison with the largest change that is shown, with its base.
fn largest_change(rows: &[(String, ComparedStep)]) -> Option<&(String, ComparedStep)> {
    let size = |row: &ComparedStep| row.ratio.map_or(0.0, |ratio| ratio.ln().abs());
    let shown = rows.iter().filter(|(_, row)| row.verdict.is_change());
    shown.max_by(|(_, a), (_, b)| size(a).total_cmp(&size(b)))
}

/// Returns the command that measures a plan in turns, which show smaller changes; `None` if its
/// targets cannot take turns.
fn in_turns(run: &Run, figures: &Figures) -> Option<String> {
    let has_ranks = figures.rows.iter().any(|row| !row.ranks.is_empty());
    if has_ranks || run.plan.resolved.iter().any(prevents_turns) {
        return None;
    }

    let mut command = "assay run".to_owned();
    if let Some(path) = &run.plan.path {
        command += &format!(" {}", shell_quoted(path));
    }
    for set in run.plan.sets.iter().filter(|set| is_kept_in_turns(set)) {
        command += &format!(" --set {}", shell_quoted(set));
    }
    Some(format!(
        "`{command} --turns auto` lets the targets take turns, so that they share the noise and \
         smaller changes show"
    ))
}

/// Returns whether a run in turns has this change of the plan, too: it measures its own highest rates,
/// and `--turns` sets that key itself.
fn is_kept_in_turns(set: &str) -> bool {
    let is_of_turns = set.split_once('=').is_some_and(|(key, _)| key.trim() == "turns");
    !is_of_turns && !set.contains(".measured-max=")
}

/// Returns whether targets with this value of the plan cannot take turns.
fn prevents_turns(value: &ResolvedValue) -> bool {
    let is_grouped = value.key == "order" && value.value == "\"grouped\"";
    is_grouped || value.key.ends_with(".replicas")
}

/// Returns the commands that tell more about a designed experiment.
fn of_design(run: &Run, path: &str, more: String) -> Vec<String> {
    let mut commands = vec![
        format!(
            "`assay compare {path} --by design` shows all effects, and what they may be instead"
        ),
        more,
    ];

    let Some(design) = &run.design else {
        return commands;
    };
    let is_folded = design.targets.iter().any(|target| target.is_folded);
    if design.kind == SCREENING && !is_folded {
        commands.push(format!("`assay augment {path}` tells effects from interactions"));
    }

    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_with(key: &str, value: &str) -> Run {
        let mut run = Run::default();
        run.plan.path = Some("my plan.toml".to_owned());
        run.plan.sets = vec!["seed=2".to_owned(), "turns=off".to_owned()];
        run.plan.resolved =
            vec![ResolvedValue { key: key.into(), value: value.into(), origin: "default".into() }];
        run
    }

    #[test]
    fn a_plan_is_measured_again_in_turns_as_it_was() {
        let command = in_turns(&run_with("order", "\"interleaved\""), &Figures::default()).unwrap();
        assert!(
            command.starts_with("`assay run 'my plan.toml' --set seed=2 --turns auto` "),
            "{command}"
        );
    }

    #[test]
    fn what_can_not_take_turns_is_not_told_to() {
        for (key, value) in [("order", "\"grouped\""), ("config.postgres.base.replicas", "2")] {
            assert_eq!(in_turns(&run_with(key, value), &Figures::default()), None, "{key}");
        }
    }
}
