//! `assay check`: what a plan comes to, without running it.

use std::fmt::Write as _;

use crate::builds;
use crate::cli::PlanArgs;
use crate::outcome::Exit;
use crate::plan_file::{self, origin};
use crate::preflight::{LOAD_ROWS_PER_S, WRITE_ROWS_PER_S, estimate, refuse_what_cannot_run};
use crate::results::print;

/// Shows what a plan comes to.
pub fn check(args: &PlanArgs) -> anyhow::Result<Exit> {
    let file = plan_file::read(args)?;
    refuse_what_cannot_run(&file)?;
    let located = builds::locate(&file.plan)?;
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
        let (key, value, origin) = (&resolved.key, &resolved.value, origin(resolved.origin));
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
    let cells = plan.cells();
    let _ = writeln!(text, "\ncells, in this order:");
    for cell in &cells {
        let target = &plan.targets[cell.target].name;
        let _ = writeln!(
            text,
            "  {target}  clients {}  repeat {}",
            cell.clients, cell.repeat
        );
    }
    let estimate = estimate(plan);
    let minutes = estimate.time.as_secs_f64() / 60.0;
    let _ = writeln!(
        text,
        "\n{} cells; about {minutes:.0} min, if {LOAD_ROWS_PER_S} rows/s are loaded and {WRITE_ROWS_PER_S} rows/s \
         written with indexes; about {:.1} GB of disk at a time; at most {} connections",
        cells.len(),
        estimate.disk_bytes as f64 / 1e9,
        estimate.connections
    );
    print(&text)?;
    Ok(Exit::Ok)
}
