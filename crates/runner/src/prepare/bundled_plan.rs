//! The plan of a bundle: it is refused if it could do more than measure what everybody can fetch,
//! and the builds that it names are fetched before it runs.

use std::path::{Path, PathBuf};

use plan::Diagnostic;

use super::installed::missing_spec;
use super::plan_file::{self, PlanFile, refusal};
use crate::bundle::{PLAN, Refused, refused_values};
use crate::ground::events::Silent;
use crate::ground::request::PlanRequest;

/// Refuses a plan with values that a bundle may not have. `bundle` is its directory or archive.
///
/// # Errors
/// The values that are refused, with their places.
pub fn refuse_values(file: &PlanFile, bundle: &Path) -> anyhow::Result<()> {
    let mut diagnostics: Vec<Diagnostic> = Vec::new();
    for Refused { key, why, place, is_build } in refused_values(&file.plan.resolved) {
        let message = format!("a bundle cannot have `{key}`: it {why}");
        let own = format!("name a build of yours with `--set {key}=DIRECTORY`");
        let help = is_build.then_some(own.as_str());
        diagnostics.push(refusal("bundle::refused", place, message, help));
    }

    // The remedy is the same for all mistakes, and stands once, below the last.
    if let Some(last) = diagnostics.last_mut() {
        let is_unpacked = bundle.is_dir();
        let plan = if is_unpacked { bundle.join(PLAN) } else { PathBuf::from(PLAN) };
        let unpack = if is_unpacked { "" } else { "unpack the bundle, and " };
        last.help(format!(
            "a bundle may come from a stranger. If you have read its `{PLAN}` and trust it, {unpack}run that as an \
             ordinary plan: `assay run {}`",
            plan.display()
        ));
    }

    Ok(file.refuse(&diagnostics)?)
}

/// Returns the specs of the builds of a plan that must be fetched before it can run.
///
/// # Errors
/// The plan is refused.
pub fn builds_to_fetch(request: &PlanRequest) -> anyhow::Result<Vec<String>> {
    let file = plan_file::read(request, &Silent)?;
    let mut specs: Vec<String> = Vec::new();

    for build in &file.plan.builds {
        let missing = missing_spec(build)?;
        specs.extend(missing.filter(|spec| !specs.contains(spec)));
    }

    Ok(specs)
}
