//! Drafts of plans for targets on a command line: `plan::draft` has the texts.
//!
//! ```text
//! targets ─► find_or_fetch ─► name_builds ─► Draft ─► repeats ─► save
//! ```

mod named_builds;
mod saving;

use std::time::Duration;

use builds::Spec;
use plan::draft::{
    BASE, Draft, DraftBuild, DraftConfig, DraftRepeats, DraftWorkload, Template, duration_text,
};

use super::estimate::of_plan;
use super::fetching::fetch_each;
use super::target_builds::{TargetBuild, find_all, plan_name};
use crate::ground::failure::{Errors, UsageError, usage};

pub use named_builds::{NamedBuilds, name_builds};
pub use saving::save;

/// The minimum number of repeats for verdicts.
const REPEATS_MIN: u32 = 3;
/// The number of repeats of a first plan.
pub const REPEATS_DEFAULT: u32 = 5;

/// The repeats of a quick run: five short steps show more than three that are longer, since each
/// repeat is one value (`docs/statistics.md`).
const QUICK_REPEATS: u32 = 5;

/// Finds the builds of targets, and downloads those that are missing. `say` gets lines of progress.
///
/// # Errors
/// A target stands for no build, or a build cannot be downloaded.
pub fn find_or_fetch(targets: &[String], say: &dyn Fn(&str)) -> anyhow::Result<Vec<TargetBuild>> {
    let found = find_all(targets)?;
    let missing: Vec<Spec> = found.iter().filter_map(TargetBuild::missing).cloned().collect();
    if missing.is_empty() {
        return Ok(found);
    }

    let mut errors = Vec::new();
    fetch_each(&missing, None, say, |fetched| {
        errors.extend(fetched.err());
        Ok(())
    })?;

    Errors::combine(errors)?;
    find_all(targets)
}

/// Refuses a single target without anything to compare it with, and several with `--aa`.
///
/// # Errors
/// There is nothing to compare, or too much.
pub fn reject_wrong_count(
    first: &str,
    count: usize,
    is_against_itself: bool,
) -> anyhow::Result<()> {
    if is_against_itself && count != 1 {
        return usage(
            format!("`--aa` compares one target with itself, but {count} targets are given"),
            format!("for example: `assay versus --aa {first}`"),
        );
    }
    if !is_against_itself && count < 2 {
        return usage(
            format!("there is nothing to compare: `{first}` is the only target"),
            "name another target, add `--config OPTION=VALUE`, or compare the target with itself with `--aa`",
        );
    }
    Ok(())
}

/// Parses the arguments of `--config`.
///
/// # Errors
/// One is not written as options with values.
pub fn configs(arguments: &[String]) -> anyhow::Result<Vec<DraftConfig>> {
    let mut configs: Vec<DraftConfig> = Vec::new();
    for (number, text) in (1..).zip(arguments) {
        let mut options = Vec::new();
        for option in text.split_whitespace() {
            match option.split_once('=') {
                Some((name, value)) if !name.is_empty() => {
                    options.push((name.to_owned(), value.to_owned()));
                }
                _ => {
                    let help = "write `--config 'OPTION=VALUE OPTION=VALUE'`; for anything else, edit the plan that `--dry-run` prints";
                    let message = format!("`--config '{text}'`: expected options as OPTION=VALUE");
                    return Err(UsageError::new(message, Some(help.into())).into());
                }
            }
        }

        let words: Vec<String> =
            options.iter().map(|(name, value)| format!("{name}-{value}")).collect();
        let mut name = plan_name(&words.join("_"));

        let is_taken = |name: &str| configs.iter().any(|other| other.name == name);
        if name.is_empty() || name.len() > 40 || name == BASE || is_taken(&name) {
            // The options make no usable name.
            name = format!("config{number}");
        }

        configs.push(DraftConfig { name, options });
    }

    Ok(configs)
}

/// Rejects builds and configs that are given twice.
///
/// # Errors
/// A build or a config is given twice.
pub fn reject_duplicates(
    targets: &[String],
    config_texts: &[String],
    identities: &[String],
    configs: &[DraftConfig],
) -> anyhow::Result<()> {
    let help = |target: &str| {
        format!(
            "to measure the noise of this machine, compare one target with itself: `assay versus --aa {target}`"
        )
    };

    for (index, identity) in identities.iter().enumerate() {
        if let Some(first) = identities[..index].iter().position(|known| known == identity) {
            let (one, other) = (&targets[first], &targets[index]);
            let message = if one == other {
                format!("`{one}` is given twice")
            } else {
                format!("`{one}` and `{other}` are the same build, `{identity}`")
            };
            return Err(UsageError::new(message, Some(help(one))).into());
        }
    }

    for (index, config) in configs.iter().enumerate() {
        if configs[..index].iter().any(|known| known.options == config.options) {
            let message = format!("`--config '{}'` is given twice", config_texts[index]);
            return Err(UsageError::new(message, Some(help(&targets[0]))).into());
        }
    }

    Ok(())
}

/// Returns the template of `workload`, or of the default workload of the builds.
///
/// # Errors
/// The builds cannot be in one plan, or don't run the workload.
pub fn template(
    workload: Option<DraftWorkload>,
    builds: &[DraftBuild],
    has_configs: bool,
) -> anyhow::Result<&'static Template> {
    let mut engines = builds.iter().map(|build| build.engine);
    let first = builds[0].engine;
    let is_mixed = engines.any(|engine| engine != first);
    if is_mixed && has_configs {
        let message =
            "`--config` sets options of one engine, but the targets belong to several engines";
        let help = "remove `--config`, or edit the plan that `--dry-run` prints and give each engine its configs";
        return usage(message, help);
    }

    let is_foreign = builds[0].is_foreign();
    if builds.iter().any(|build| build.is_foreign() != is_foreign) {
        let message = "some targets are servers at URLs, and others are builds that Assay starts";
        let help = "compare targets of one kind; docs/plan.md has plans with both";
        return usage(message, help);
    }
    if is_foreign && has_configs {
        let message =
            "`--config` sets options of servers that Assay starts, but the targets are URLs";
        return usage(message, "set the options of the servers themselves, and remove `--config`");
    }

    // Only the Insert Benchmark runs on all engines.
    let default_workload = is_mixed.then_some(DraftWorkload::Insert);
    let template = Template::of(workload.or(default_workload), first);
    if let Some(build) = builds.iter().find(|build| !(template.runs_on)(build.engine)) {
        let message = format!(
            "{} runs only on {}, but the engine of `{}` is {}",
            template.title,
            template.engines,
            build.name,
            build.engine.name()
        );
        let help = "choose `--workload insert`, which runs on all engines";
        return usage(message, help);
    }

    Ok(template)
}

/// Returns the repeats of the plan with the changes of `sets`: until all is decided, for at most this
/// time. The noise of one target is measured with as many repeats as fit into that time.
///
/// # Errors
/// The time is too short for verdicts.
pub fn repeats(time: Duration, draft: &Draft<'_>, sets: &[String]) -> anyhow::Result<DraftRepeats> {
    if draft.is_quick {
        return Ok(DraftRepeats::Count(QUICK_REPEATS));
    }
    // Errors of the plan are reported when it is read to be run.
    let estimates = (estimated_s(draft, sets, 1), estimated_s(draft, sets, 2));
    let (Some(one_s), Some(two_s)) = estimates else {
        return Ok(DraftRepeats::Count(REPEATS_MIN));
    };

    // The first repeat may take longer, since it loads.
    let each_s = two_s - one_s;

    let repeats = (1.0 + (time.as_secs_f64() - one_s) / each_s) as u64;
    if repeats < u64::from(REPEATS_MIN) {
        let least_s = one_s + each_s * f64::from(REPEATS_MIN - 1);
        let least = (least_s / 60.0).ceil();
        let message = format!(
            "`--time {}` is too short: verdicts need at least {REPEATS_MIN} repeats, which take about {least} min",
            duration_text(time)
        );
        let help = format!("use `--time {least}m`, or `--quick` for shorter steps");
        return usage(message, help);
    }

    Ok(if draft.is_against_itself {
        DraftRepeats::Count(repeats.min(plan::REPEATS_MAX.into()) as u32)
    } else {
        DraftRepeats::UntilDecided { time }
    })
}

/// Returns the estimated time of this number of repeats in seconds; `None` if the plan has errors.
fn estimated_s(draft: &Draft<'_>, sets: &[String], repeats: u32) -> Option<f64> {
    let (plan, _) =
        plan::parse("versus.toml", &draft.text(DraftRepeats::Count(repeats)), sets).ok()?;
    Some(of_plan(&plan).time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config_names(given: &[&str]) -> Vec<String> {
        let given: Vec<String> = given.iter().map(|given| given.to_string()).collect();
        let configs = configs(&given).unwrap();
        configs.into_iter().map(|config| config.name).collect()
    }

    #[test]
    fn configs_have_the_names_of_their_options_where_these_are_short() {
        let long = format!("a={}", "x".repeat(50));
        assert_eq!(
            config_names(&["synchronous_commit=on", "a=1 b=2.5", "", "base=", &long]),
            ["synchronous_commit-on", "a-1_b-2_5", "config3", "base-", "config5"]
        );
        assert_eq!(config_names(&["a=+", "a=*"]), ["a-_", "config2"]);
        for bad in ["jit", "=on", "jit on"] {
            assert!(configs(&[bad.to_owned()]).is_err(), "{bad}");
        }
    }
}
