//! `assay check`: checks a plan and estimates its cost without running it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use analysis::counted;
use analysis::settings::{PlanTarget, Settings, declared_differences};
use inquiry::reading::pair_of;
use plan::Plan;
use runner::host::free_bytes;
use runner::matrix::only::CellFilters;
use runner::matrix::pace::about;
use runner::matrix::{factors, known_times, matching, references};
use runner::prepare::commits::{self, Unbuilt};
use runner::prepare::estimate::{Basis, Estimate, StepTime, step_times};
use runner::prepare::known_times::KnownTimes;
use runner::prepare::locate::{self, Located};
use runner::prepare::plan_file::{self, PlanFile};
use runner::prepare::preflight::{not_applicable, reject_impossible};
use runner::prepare::{estimate, memory, overridden};
use runner::{DATA, Events as _, RESULTS};

use super::check_design::design_text;
use crate::cli::CheckArgs;
use crate::display::{Display, size_text};
use crate::exit::Exit;
use crate::output::{print, style};

/// Prints the estimates, the builds and the differences between the configs of a plan.
pub fn check(args: &CheckArgs) -> anyhow::Result<Exit> {
    let display = Display::new(false);
    let mut file = plan_file::read(&args.plan.request(), &display)?;
    if let Some(pair) = &args.between {
        return check_between(&file, pair);
    }
    reject_impossible(&file)?;

    let data_root = match (&args.data, &file.plan.data_dir) {
        (Some(given), _) => given.clone(),
        (None, Some(planned)) => PathBuf::from(planned),
        (None, None) => Path::new(RESULTS).join(DATA),
    };
    let references = references(&file.plan);
    let only = CellFilters::new(&args.only, &references)?;
    let tasks = matching(&file.plan, &references, &only)?;
    let selected: Vec<plan::Cell> = tasks.into_iter().map(|task| task.cell).collect();

    let unbuilt = commits::use_stored(&mut file, selected.iter().copied())?;
    let located = locate::locate(&file, selected.iter().copied(), Some(&data_root), &display)?;

    let plan = &file.plan;
    for warning in overridden::overridden_options(&file, 0..plan.targets.len())? {
        display.warn(Some(overridden::OVERRIDDEN_CODE), &warning);
    }
    let host_bytes = probe::host(Path::new("/")).memory_total_bytes;
    for warning in memory::oversized_caches(&file, 0..plan.targets.len(), host_bytes)? {
        display.warn(Some(memory::CACHE_CODE), &warning);
    }

    let known = args.like.as_deref().map(known_times::of_run).transpose()?;
    let expected = Expected {
        estimate: estimate::of_cells(plan, &selected, known.as_ref()),
        free_bytes: data_root.ancestors().find_map(free_bytes),
    };

    let mut text = summary(plan, (&selected, &only), &expected, &data_root);
    text.push_str(&times_text(plan, &selected, known.as_ref()));
    text.push_str(&builds_text(&located, &unbuilt));
    // A design says itself how its targets differ.
    if let Some(designed) = &plan.designed {
        text.push_str(&design_text(designed));
    } else {
        let base_of = |name: &str| {
            let target = plan.targets.iter().find(|target| target.name == name)?;
            Some(plan.targets[plan.base_of(target)?].name.as_str())
        };
        let differences = declared_differences(&plan_targets(&file, &located.builds)?, base_of);
        if !differences.is_empty() {
            let _ = writeln!(text, "\ndifferences between the configs and the base:");
            text.push_str(&differences_text(differences));
        }
    }

    if args.all {
        text.push_str(&everything(plan, &selected))
    } else {
        text.push_str("\n`--all` shows every value and its origin, and the order of the cells\n")
    }

    print(&text)?;
    Ok(if expected.has_space() { Exit::Ok } else { Exit::Failed })
}

/// The needs of the selected cells, and the space that there is.
struct Expected {
    estimate: Estimate,
    /// The free space of the disk for databases; `None` if it is unknown.
    free_bytes: Option<u64>,
}

impl Expected {
    fn has_space(&self) -> bool {
        self.free_bytes.is_none_or(|free| free >= self.estimate.disk_bytes)
    }
}

/// Returns the builds of the plan, those that a run makes first, and the options that versions
/// lack.
fn builds_text(located: &Located, unbuilt: &[Unbuilt]) -> String {
    let mut text = "\nbuilds:\n".to_owned();
    for build in &located.builds {
        let _ =
            write!(text, "  {}: {} {} ({})", build.name, build.engine, build.version, build.source);
        if let Some(commit) = &build.commit {
            let _ = write!(text, ", built from {}", commit.name());
        }
        text.push('\n');
    }

    // A check builds nothing, so it does not know what the configs of these do.
    for build in unbuilt {
        let (name, recipe) = (&build.name, &build.recipe);
        let time = match build.last_duration {
            Some(duration) => format!("the last build by this recipe took {}", about(duration)),
            None => "nothing was built by this recipe yet".to_owned(),
        };
        let _ = writeln!(
            text,
            "  {name}: {}, a run builds it first: {}; {time}; its configs are tried then",
            recipe.engine,
            build.what()
        );
    }

    if !located.left_out.is_empty() {
        let _ = writeln!(text, "\noptions left out because the version lacks them:");
        for (option, targets) in &located.left_out {
            let _ = writeln!(text, "  {option}: {}", targets.join(", "));
        }
    }
    text
}

/// Returns the cells of the plan, and its estimated time, disk space and connections.
fn summary(
    plan: &Plan,
    selected: (&[plan::Cell], &CellFilters),
    expected: &Expected,
    data_root: &Path,
) -> String {
    let (cells, only) = selected;
    let estimate = &expected.estimate;

    let mut text = format!("cells        {}", factors(plan));
    // The factors are those of the whole plan.
    if cells.len() < plan.cells().len() {
        let _ = write!(text, "; `--only` selects {}", cells.len());
    }
    let _ = match plan.until_decided {
        None => write!(text, "\ntime         {}", about(estimate.time)),
        Some(until_decided) => {
            let (each, most) = (about(estimate.time), about(until_decided.time));
            write!(text, "\ntime         {each} for each repeat, {most} at most")
        }
    };

    let _ = write!(text, "\ndisk         about {} at a time", size_text(estimate.disk_bytes));
    if let Some(free) = expected.free_bytes {
        let remark = if expected.has_space() { ";" } else { "; too much: only" };
        let _ = write!(text, "{remark} {} free for `{}`", size_text(free), data_root.display());
    }

    let _ = writeln!(
        text,
        "\nconnections  at most {}, including Assay's own for loading, checks and monitoring",
        estimate.connections
    );

    for left_out in not_applicable(plan, |cell| only.matches(cell)) {
        let _ = writeln!(text, "left out     {left_out}");
    }

    text
}

/// Returns the time of each step in a cell, from the shortest of the cells to the longest, and what
/// it rests on; the steps whose time the plan gives, in one line.
fn times_text(plan: &Plan, cells: &[plan::Cell], known: Option<&KnownTimes>) -> String {
    let mut steps: Vec<StepTimes> = Vec::new();
    for cell in cells {
        for step in step_times(plan, cell, known) {
            match steps.iter_mut().find(|known| known.name == step.name) {
                Some(times) => times.add(&step),
                None => steps.push(StepTimes::of(&step)),
            }
        }
    }
    let (planned, others): (Vec<StepTimes>, Vec<StepTimes>) =
        steps.into_iter().partition(|step| step.basis == Basis::Plan);

    let width = others.iter().map(|step| step.name.len()).max().unwrap_or(0);
    let mut text = "\ntime of each step in a cell:\n".to_owned();
    for step in &others {
        let name = &step.name;
        let basis = if step.basis == Basis::Run { "as in that run" } else { "assumed" };
        let _ = writeln!(text, "  {name:width$}  {}, {basis}", range_text(step.least, step.most));
    }

    if !planned.is_empty() {
        let sum = planned.iter().map(|step| step.most).sum();
        let count = counted(planned.len(), "step");
        let _ = writeln!(text, "  {count} whose time the plan gives: {} together", about(sum));
    }
    if others.iter().any(|step| step.basis == Basis::Assumed) {
        let speed = assumed(plan);
        let _ = writeln!(text, "assumed: {speed}. `--like RUN` takes the times of a like run");
    }
    text
}

/// The times of a step in several cells.
struct StepTimes {
    name: String,
    least: Duration,
    most: Duration,
    basis: Basis,
}

impl StepTimes {
    fn of(step: &StepTime) -> Self {
        Self { name: step.name.clone(), least: step.time, most: step.time, basis: step.basis }
    }

    fn add(&mut self, step: &StepTime) {
        self.least = self.least.min(step.time);
        self.most = self.most.max(step.time);

        // One cell whose time is only assumed makes the range a guess.
        if step.basis == Basis::Assumed {
            self.basis = Basis::Assumed;
        }
    }
}

/// Returns one time, or both ends if they differ.
fn range_text(least: Duration, most: Duration) -> String {
    let (least, most) = (about(least), about(most));
    if least == most {
        return least;
    }
    format!("{least} to {}", most.trim_start_matches("about "))
}

/// Returns the throughput that the estimate assumes. All variants belong to one
/// workload.
fn assumed(plan: &Plan) -> String {
    let first = plan.variants.first();
    first.map(|variant| variant.workload.needs().assumed_speed()).unwrap_or_default()
}

/// The largest width of the column of values; longer values move their origin to the right.
const VALUE_WIDTH_MAX: usize = 40;

/// Returns every value and its origin, and the selected cells in their order.
fn everything(plan: &Plan, cells: &[plan::Cell]) -> String {
    let mut text = String::from("\nvalues:\n");
    let key_width = plan.resolved.iter().map(|resolved| resolved.key.len()).max().unwrap_or(0);
    let longest = plan.resolved.iter().map(|resolved| resolved.value.chars().count()).max();
    let value_width = longest.unwrap_or(0).min(VALUE_WIDTH_MAX);
    for resolved in &plan.resolved {
        let (key, value, origin) = (&resolved.key, &resolved.value, &resolved.origin);
        let _ = writeln!(text, "  {key:key_width$} = {value:value_width$}  # {origin}");
    }

    let _ = writeln!(text, "\ncells, in this order:");
    let names: Vec<String> = cells.iter().map(|cell| name_of(plan, cell)).collect();
    let name_width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    for (cell, name) in cells.iter().zip(&names) {
        let _ = writeln!(
            text,
            "  {name:name_width$}  clients {}  repeat {}",
            cell.clients, cell.repeat
        );
    }

    text
}

/// Returns the target of a cell, with the variant if there is one.
fn name_of(plan: &Plan, cell: &plan::Cell) -> String {
    let target = &plan.targets[cell.target].name;
    match &plan.variants[cell.variant].name {
        Some(variant) => format!("{target}  {variant}"),
        None => target.clone(),
    }
}

/// Prints how the configs of two targets differ.
fn check_between(file: &PlanFile, pair: &[String]) -> anyhow::Result<Exit> {
    let targets = plan_targets(file, &[])?;
    let (a, b) = pair_of(pair, targets.iter().map(|target| target.name.as_str()))?;
    let find = |name: &str| targets.iter().find(|target| target.name == name);

    let mut differences = Vec::new();
    if let (Some(a), Some(b)) = (find(a), find(b)) {
        differences.push(b.against(a));
    }
    print(&differences_text(differences))?;
    Ok(Exit::Ok)
}

fn differences_text(differences: Vec<analysis::settings::Comparison>) -> String {
    let settings = Settings { differences, ..Settings::default() };
    report::differences(&settings, style())
}

/// Returns the targets with what their configs declare. `located` are the builds that were found,
/// if any.
fn plan_targets(file: &PlanFile, located: &[record::Build]) -> anyhow::Result<Vec<PlanTarget>> {
    let plan = &file.plan;
    let mut targets = Vec::new();
    for target in &plan.targets {
        let (build, config) = (&plan.builds[target.build], &plan.configs[target.config]);
        let engine = build.engine.name();
        let found = located.iter().find(|located| located.name == build.name);
        targets.push(PlanTarget {
            name: target.name.clone(),
            build: build.name.clone(),
            engine: engine.to_owned(),
            version: found.map(|located| located.version.clone()).unwrap_or_default(),
            declared: file.declared(config)?,
            ..PlanTarget::default()
        });
    }

    Ok(targets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_names_the_assumptions_of_the_plans_own_workload() {
        let of = |workload: &str, build: &str| {
            let text = format!("[workload.{workload}]\n[build.a]\n{build}\n");
            let (plan, _) = plan::parse("plan.toml", &text, &[]).unwrap();
            assumed(&plan)
        };
        let sqlite = "sqlite = \"bundled\"";
        assert_eq!(of("kv", "rocksdb = \"/l.so\""), "the engine loads 200,000 keys/s");
        assert_eq!(of("sysbench", sqlite), "the engine loads 60,000 rows/s");
        assert_eq!(
            of("insert", sqlite),
            "the engine loads 60,000 rows/s, and writes 8,000 rows/s with indexes"
        );
    }
}
