//! Functions for the tests of all workloads.

pub(crate) mod memory;

use plan::Workload;

/// Returns the workload of a plan with this text, for an engine.
pub(crate) fn planned(engine: &str, text: &str) -> Workload {
    let build = if engine == "sqlite" { "bundled" } else { "any" };
    let text = format!("{text}\n[build.any]\n{engine} = \"{build}\"\n[config.{engine}.any]\n");
    let (plan, _) = plan::parse("test", &text, &[]).unwrap();
    plan.variants.into_iter().next().unwrap().workload
}
