//! What the tests of all workloads share.

pub(crate) mod memory;

use plan::Workload;

/// The workload of a plan with this text, for an engine of that name.
pub(crate) fn planned(engine: &str, text: &str) -> Workload {
    let build = if engine == "sqlite" { "bundled" } else { "any" };
    let text = format!("{text}\n[build.any]\n{engine} = \"{build}\"\n[config.{engine}.any]\n");
    let (plan, _) = plan::parse("test", &text, &[]).unwrap();
    plan.variants.into_iter().next().unwrap().workload
}
