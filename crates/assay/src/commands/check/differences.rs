//! The differences between the configs of a plan, for `assay check`.

use analysis::settings::{PlanTarget, Settings, declared_differences};
use inquiry::reading::pair_of;
use runner::prepare::plan_file::PlanFile;

use crate::exit::Exit;
use crate::output::{print, style};

/// Returns how the configs of the targets differ from those of their base; empty if they don't.
/// `located` are the builds that were found.
///
/// # Errors
/// A file of a config cannot be read.
pub(super) fn from_base(file: &PlanFile, located: &[record::Build]) -> anyhow::Result<String> {
    let plan = &file.plan;
    let base_of = |name: &str| {
        let target = plan.targets.iter().find(|target| target.name == name)?;
        Some(plan.targets[plan.base_of(target)?].name.as_str())
    };

    let differences = declared_differences(&plan_targets(file, located)?, base_of);
    if differences.is_empty() {
        return Ok(String::new());
    }
    let text = differences_text(differences);
    Ok(format!("\ndifferences between the configs and the base:\n{text}"))
}

/// Prints how the configs of two targets differ.
pub(super) fn print_between(file: &PlanFile, pair: &[String]) -> anyhow::Result<Exit> {
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
