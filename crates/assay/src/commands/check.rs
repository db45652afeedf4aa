//! `assay check`: what a plan comes to, without running it.

use std::fmt::Write as _;
use std::path::Path;

use analysis::{PlanTarget, Settings, declared_differences};

use crate::cli::CheckArgs;
use crate::locate::{self, Located};
use crate::outcome::Exit;
use crate::output::{print, style};
use crate::plan_file::{self, PlanFile};
use crate::preflight::{assumed, estimate, not_applicable, refuse_what_cannot_run};

use super::show::pair_of;

/// Shows what a plan comes to.
pub fn check(args: &CheckArgs) -> anyhow::Result<Exit> {
    let file = plan_file::read(&args.plan)?;
    if let Some(pair) = &args.between {
        return check_between(&file, pair);
    }
    refuse_what_cannot_run(&file)?;
    let Located {
        builds: located,
        left_out,
    } = locate::locate(
        &file,
        file.plan.cells().into_iter(),
        file.plan.data_dir.as_deref().map(Path::new),
    )?;
    let plan = &file.plan;
    let mut text = String::new();
    let width = plan
        .resolved
        .iter()
        .map(|resolved| resolved.key.len())
        .max()
        .unwrap_or(0);
    let value_width = plan
        .resolved
        .iter()
        .map(|resolved| resolved.value.chars().count())
        .max()
        .unwrap_or(0)
        .min(40);
    for resolved in &plan.resolved {
        let (key, value, origin) = (&resolved.key, &resolved.value, &resolved.origin);
        let _ = writeln!(text, "{key:width$} = {value:value_width$}  # {origin}");
    }
    let _ = writeln!(text, "\nbuilds:");
    for build in &located {
        let _ = writeln!(
            text,
            "  {}: {} {} ({})",
            build.name, build.engine, build.version, build.source
        );
    }
    if !left_out.is_empty() {
        let _ = writeln!(text, "\nleft out, since versions don't have it:");
        for (option, targets) in &left_out {
            let _ = writeln!(text, "  {option}: {}", targets.join(", "));
        }
    }
    let cells = plan.cells();
    let _ = writeln!(text, "\ncells, in this order:");
    for cell in &cells {
        let target = &plan.targets[cell.target].name;
        let variant = plan.variants[cell.variant].name.iter();
        let variant: String = variant.map(|name| format!("  {name}")).collect();
        let _ = writeln!(
            text,
            "  {target}{variant}  clients {}  repeat {}",
            cell.clients, cell.repeat
        );
    }
    for left_out in not_applicable(plan, |_| true) {
        let _ = writeln!(text, "  {left_out}");
    }
    let base = &plan.targets[plan.base].name;
    let differences = declared_differences(&plan_targets(&file, &located)?, base);
    if !differences.is_empty() {
        let _ = writeln!(text, "\nwhat configs declare, against the base:");
        text.push_str(&differences_text(differences));
    }
    let estimate = estimate(plan);
    let minutes = estimate.time.as_secs_f64() / 60.0;
    let _ = writeln!(
        text,
        "\n{} cells; about {minutes:.0} min, if {}; about {:.1} GB of disk at a time; at most {} connections",
        cells.len(),
        assumed(plan),
        estimate.disk_bytes as f64 / 1e9,
        estimate.connections
    );
    print(&text)?;
    Ok(Exit::Ok)
}

/// Shows in which options of their configs two targets differ.
fn check_between(file: &PlanFile, pair: &[String]) -> anyhow::Result<Exit> {
    let targets = plan_targets(file, &[])?;
    let names = targets.iter().map(|target| target.name.as_str());
    let (a, b) = pair_of(pair, names)?;
    let of = |name: &str| targets.iter().find(|target| target.name == name);
    let differences = of(a).zip(of(b)).map(|(a, b)| b.against(a));
    print(&differences_text(differences.into_iter().collect()))?;
    Ok(Exit::Ok)
}

fn differences_text(differences: Vec<analysis::Comparison>) -> String {
    let settings = Settings {
        differences,
        ..Settings::default()
    };
    report::differences(&settings, style())
}

/// The targets with what their configs declare; `located` are the builds as far as they were found.
fn plan_targets(file: &PlanFile, located: &[record::Build]) -> anyhow::Result<Vec<PlanTarget>> {
    let plan = &file.plan;
    let targets = plan.targets.iter().map(|target| {
        let (build, config) = (&plan.builds[target.build], &plan.configs[target.config]);
        let engine = build.engine.name();
        let version = located
            .iter()
            .find(|located| located.name == build.name)
            .map(|located| located.version.clone());
        Ok(PlanTarget {
            name: target.name.clone(),
            build: build.name.clone(),
            engine: engine.to_owned(),
            version: version.unwrap_or_default(),
            declared: file.declared(config)?,
        })
    });
    targets.collect()
}
