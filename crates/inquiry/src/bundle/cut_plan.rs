//! The plan of a bundle: two targets and one step of the recorded plan, with builds that others can
//! fetch.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use analysis::compare::WORK;
use analysis::figures::Figures;
use anyhow::Context as _;
use builds::{Manifest, Spec};
use plan::{Build, BuildSource, Engine, Excerpt, Plan, Resolved, Variant};
use record::{CellKey, Run, RunDir};
use runner::bundle::{PLAN, refused_values};
use runner::failure::UsageError;
use runner::prepare::plan_file::{self, PlanFile};
use words::EngineHome;

use super::finding::{BundledFigure, ChosenFinding};

/// The name in place of a build that others cannot get.
const NO_BUILD: &str = "name-a-build";

/// The fewest repeats of a bundle whose figure depends on time.
const REPEATS_MIN: u32 = 5;

/// The most characters of the name of a plan.
const NAME_LENGTH_MAX: usize = 64;

/// The plan of a bundle.
pub struct CutPlan {
    /// The text.
    pub text: String,
    /// The source of each build in it, by the build's name.
    pub sources: BTreeMap<String, String>,
    /// The values of options of the recorded plan that it lacks, as TOML.
    pub left_out: Vec<String>,
    /// The parts that others cannot repeat.
    pub limits: Vec<String>,
}

/// Cuts the recorded plan down to a finding.
pub fn cut(
    directory: &RunDir,
    run: &Run,
    figures: &Figures,
    chosen: &ChosenFinding,
    pair: &[String; 2],
    step: &str,
) -> anyhow::Result<CutPlan> {
    let file = plan_file::recorded_quietly(&run.plan)?;
    let plan = &file.plan;
    if plan.against_itself {
        let message = "a run of a target against itself shows noise, which is not a finding";
        return Err(UsageError::new(message, None).into());
    }

    // The part with the finding, with all options of both targets.
    let variant = variant_of(plan, &chosen.cell)?;
    let name = plan_name(run, step);
    let mut limits = Vec::new();
    let sources = sources(run, plan, pair, &mut limits);
    let mut wanted = Excerpt {
        name: &name,
        targets: [&pair[0], &pair[1]],
        clients: clients_of(plan, &chosen.cell),
        variant: variant.name.as_deref(),
        steps: variant.workload.steps_to_reach(step),
        repeats: repeats_of(plan, &chosen.figure),
        sources: sources.clone(),
        file_options: [
            file_options(&file, &pair[0], &mut limits)?,
            file_options(&file, &pair[1], &mut limits)?,
        ],
        left_out: Vec::new(),
        is_profiled: !figures.profiled.is_empty(),
        is_exact: !figures.exact.is_empty(),
    };
    let values = parse(&excerpt(&file, &wanted)?)?.resolved;

    // Now that the options are known one by one, leave out those that must not leave this machine.
    let reported = reported_settings(directory, run, pair)?;
    leave_out_refused(&values, &mut wanted.left_out, &mut limits);
    leave_out_unreported(&values, &reported, &mut wanted.left_out, &mut limits);

    let text = excerpt(&file, &wanted)?;
    parse(&text)?;

    let is_left_out = |value: &&Resolved| wanted.left_out.contains(&value.key);
    let left_out = values.iter().filter(is_left_out).map(|value| value.value.clone()).collect();

    // Both targets may have the same config.
    limits.dedup();
    Ok(CutPlan { text, sources, left_out, limits })
}

/// Returns the name of the bundle's plan, which may have no dots.
fn plan_name(run: &Run, step: &str) -> String {
    let name = format!("{}-{step}", run.name).replace('.', "-");
    name.chars().take(NAME_LENGTH_MAX).collect()
}

/// Returns the variant of the workload that a cell measured.
fn variant_of<'p>(plan: &'p Plan, cell: &CellKey) -> anyhow::Result<&'p Variant> {
    let mut variants = plan.variants.iter();
    variants
        .find(|variant| variant.name == cell.variant)
        .context("the recorded plan lacks the variant of the finding")
}

/// Returns the number of clients in the bundle of a finding that a cell shows. That of an exact cell
/// is its own, not one of the plan.
fn clients_of(plan: &Plan, cell: &CellKey) -> u32 {
    if plan.clients.contains(&cell.clients) { cell.clients } else { plan.clients[0] }
}

/// Returns the number of repeats in the bundle of a figure: as many as there were of both targets, and
/// at least [`REPEATS_MIN`].
fn repeats_of(plan: &Plan, figure: &BundledFigure) -> u32 {
    // Exact cells, which count work, have repeats of their own.
    if figure.metric == WORK {
        return plan.repeats;
    }

    let of_both = figure.base_values.len().min(figure.values.len());
    REPEATS_MIN.max(of_both as u32)
}

/// Leaves out the options that a bundle cannot have. Of all else, says what `run` refuses.
fn leave_out_refused(values: &[Resolved], left_out: &mut Vec<String>, limits: &mut Vec<String>) {
    for refused in refused_values(values) {
        let is_option = refused.key.starts_with("config.");
        if is_option {
            limits.push(format!("`{}` is left out: it {}", refused.key, refused.why));
            left_out.push(refused.key);
        } else if !refused.key.starts_with("build.") {
            limits.push(format!(
                "`assay run` refuses the bundle, since `{}` {}: read `plan.toml`, then run that",
                refused.key, refused.why
            ));
        }
    }
}

/// Leaves out the options that the engine does not have among the settings that it `reported`: nobody
/// can tell what they do.
fn leave_out_unreported(
    values: &[Resolved],
    reported: &HashSet<String>,
    left_out: &mut Vec<String>,
    limits: &mut Vec<String>,
) {
    for key in unreported_options(values, reported) {
        if !left_out.contains(&key) {
            limits.push(format!("`{key}` is left out: the engine does not report such an option"));
            left_out.push(key);
        }
    }
}

/// Returns the names of all settings that the servers of two targets reported, in each engine's
/// common spelling.
fn reported_settings(
    directory: &RunDir,
    run: &Run,
    pair: &[String; 2],
) -> anyhow::Result<HashSet<String>> {
    let mut names = HashSet::new();
    for reference in run.cells.iter().filter(|cell| pair.contains(&cell.key.target)) {
        let cell = directory.cell(reference)?;
        if !cell.exists() {
            continue;
        }
        let target = run.targets.iter().find(|target| target.name == reference.key.target);
        let notation = engine::notation_of(target.map_or("", |target| target.engine.as_str()));
        names.extend(cell.read()?.settings.iter().map(|setting| notation.key(&setting.name)));
    }

    Ok(names)
}

/// Returns the dotted keys of options of servers that are not among the `reported` settings: a server
/// accepts some that it does not have, so their values may be anything. Libraries refuse such options.
fn unreported_options(resolved: &[Resolved], reported: &HashSet<String>) -> Vec<String> {
    let mut keys = Vec::new();
    for value in resolved {
        let Some((engine, option)) = option_of_config(&value.key) else {
            continue;
        };
        let is_server = engine.facts().home == EngineHome::Server;
        let notation = engine::notation_of(engine.name());
        let (setting, _) = notation.target_setting(notation.key(option), None);
        if is_server && !reported.contains(&setting) {
            keys.push(value.key.clone());
        }
    }

    keys
}

/// Returns the engine and the name of the option that a dotted key of a plan sets.
fn option_of_config(key: &str) -> Option<(Engine, &str)> {
    let (engine_name, rest) = key.strip_prefix("config.")?.split_once('.')?;
    let (_, engine) = Engine::NAMES.iter().find(|(name, _)| *name == engine_name)?;
    // The names of configs have no dots.
    let (_config, own) = rest.split_once('.')?;
    let option = own.strip_prefix("set.").or_else(|| own.strip_prefix("replica.set."))?;
    Some((*engine, option.trim_matches('"')))
}

fn excerpt(file: &PlanFile, wanted: &Excerpt<'_>) -> anyhow::Result<String> {
    let text = plan::excerpt(&file.plan, &file.text, &file.sets, wanted);
    text.context("the recorded plan lacks a part of the finding")
}

/// Parses the plan of a bundle, which must be one.
fn parse(text: &str) -> anyhow::Result<Plan> {
    match plan::parse(PLAN, text, &[]) {
        Ok((plan, _warnings)) => Ok(plan),
        Err(errors) => Err(anyhow::anyhow!(
            "the part of the plan with the finding is not a plan by itself:\n{}",
            plan::render(&errors, PLAN, text, &[], false)
        )),
    }
}

/// Returns the options in the files of a target's config.
fn file_options(
    file: &PlanFile,
    target: &str,
    limits: &mut Vec<String>,
) -> anyhow::Result<Vec<(String, String)>> {
    let mut targets = file.plan.targets.iter();
    let target =
        targets.find(|known| known.name == target).context("the recorded plan lacks a target")?;
    let config = &file.plan.configs[target.config];
    let notation = engine::notation_of(config.engine.name());

    let mut options = Vec::new();
    for (name, text) in config.files.iter().zip(file.config_texts(config)?) {
        for (option, value) in notation.options(&text) {
            // An empty value means a name without a value, in plans as well.
            options.push((option, value.unwrap_or_default()));
        }

        let includes =
            |line: &str| line.trim_start().trim_start_matches('!').starts_with("include");
        if text.lines().any(includes) {
            let name = Path::new(name).file_name().unwrap_or_default().to_string_lossy();
            let limit = format!("the config file `{name}` includes others, which the bundle lacks");
            limits.push(limit);
        }
    }

    Ok(options)
}

/// Returns the source of each build in the plan of the bundle, and says which others cannot get.
fn sources(
    run: &Run,
    plan: &Plan,
    pair: &[String; 2],
    limits: &mut Vec<String>,
) -> BTreeMap<String, String> {
    let mut sources = BTreeMap::new();
    for target in plan.targets.iter().filter(|target| pair.contains(&target.name)) {
        let build = &plan.builds[target.build];
        if sources.contains_key(&build.name) {
            continue;
        }

        let source = source_of(run, build, limits);
        sources.insert(build.name.clone(), source);
    }

    sources
}

/// Returns the source of a build, and says if others cannot get it.
fn source_of(run: &Run, build: &Build, limits: &mut Vec<String>) -> String {
    let (name, engine) = (&build.name, build.engine.name());
    let set = format!("name one of yours with `--set build.{name}.{engine}=DIRECTORY`");

    let (limit, source) = match &build.source {
        BuildSource::Bundled => {
            let limit = format!("{engine} is a part of Assay: this was assay {}", run.assay);
            (limit, "bundled".to_owned())
        }
        BuildSource::Installed(text) => {
            if let Some(spec) = fetchable(run, name, text) {
                // Others can fetch it, so there is nothing to tell.
                return spec;
            }
            if is_of_distribution(text) {
                let limit = format!(
                    "build `{name}` is what the distribution had installed, and another machine may have another"
                );
                (limit, text.clone())
            } else {
                (format!("build `{name}` cannot be downloaded: {set}"), NO_BUILD.to_owned())
            }
        }
        BuildSource::Commit(_) => {
            (format!("build `{name}` was made from a commit: {set}"), NO_BUILD.to_owned())
        }
        BuildSource::Url(_) => {
            let limit = format!("build `{name}` was a server that Assay did not start: {set}");
            (limit, NO_BUILD.to_owned())
        }
    };

    limits.push(limit);
    source
}

/// Returns the spec by which others can fetch a build; `None` if there is none.
fn fetchable(run: &Run, name: &str, text: &str) -> Option<String> {
    let recorded = run.builds.iter().find(|build| build.name == name);
    let source = recorded.map_or(text, |build| build.source.as_str());
    // The build's own folder says what it is, in whatever store it is.
    for folder in Path::new(source).ancestors() {
        let Ok(Some(manifest)) = Manifest::read(folder) else {
            continue;
        };
        return match Spec::parse(&manifest.spec) {
            // `postgres@17` will be another version later.
            Ok(Spec::Release { .. }) => Some(format!("{}@{}", manifest.product, manifest.version)),
            Ok(Spec::Debian { .. }) => Some(manifest.spec),
            _ => None,
        };
    }

    match Spec::parse(text) {
        Ok(Spec::Release { .. } | Spec::Debian { .. }) => Some(text.to_owned()),
        _ => None,
    }
}

/// Returns whether a plan means the distribution's build by this text.
fn is_of_distribution(text: &str) -> bool {
    let is_version = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text == "distribution" || is_version
}
