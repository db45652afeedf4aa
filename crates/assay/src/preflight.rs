//! What is known of a run before it begins: whether it can run.

use plan::{BuildSource, Diagnostic, Engine, Limits, Place, Plan, Workload};
use record::CellRef;

use crate::engines;
use crate::plan_file::{PlanFile, refusal};

/// Refuses what the plan's text alone can't tell: a config for a server that assay does not start, a feature that an
/// engine doesn't have, a file that isn't there, a URL that is none.
pub fn refuse_what_cannot_run(file: &PlanFile) -> anyhow::Result<()> {
    let plan = &file.plan;
    let has_partitions = plan.variants.iter().any(
        |variant| matches!(&variant.workload, Workload::Insert(insert) if insert.partitions > 0),
    );
    let has_no_load = plan.variants.iter().any(
        |variant| matches!(&variant.workload, Workload::Sysbench(sysbench) if !sysbench.loads()),
    );
    let mut refused: Vec<Diagnostic> = Vec::new();
    for target in &plan.targets {
        let (build, config) = (&plan.builds[target.build], &plan.configs[target.config]);
        let configured = !config.files.is_empty() || !config.set.is_empty();
        let limited = config.limits != Limits::default();
        let of_config = |is_wanted: &dyn Fn(&str) -> bool| {
            let value = file.value_in(config, is_wanted);
            value.map_or(Place::Nowhere, |value| value.place)
        };
        let is_limit = |key: &str| key == "memory" || key == "cpus";
        let is_option = |key: &str| key == "file" || key.starts_with("set.");
        let is_workload = |key: &str, end: &str| key.starts_with("workload.") && key.ends_with(end);
        let what = match (build.engine, &build.source) {
            (Engine::Sqlite | Engine::Null, _) | (_, BuildSource::Url(_)) if limited => Some((
                of_config(&is_limit),
                "only a server that assay starts can be limited in memory and CPUs",
                "use a config without `memory` and `cpus`",
            )),
            (_, BuildSource::Url(_)) if configured => Some((
                of_config(&is_option),
                "a server that assay does not start can't be given a config",
                "use a config without `file` and `set`, and configure the server itself",
            )),
            (Engine::Sqlite, _) if !config.files.is_empty() => Some((
                of_config(&|key| key == "file"),
                "SQLite has no configuration file",
                "give its pragmas with `set`",
            )),
            (engine @ (Engine::Sqlite | Engine::RocksDb), _) if has_partitions => Some((
                file.place_of(|key| is_workload(key, ".partitions")),
                match engine {
                    Engine::Sqlite => "SQLite has no partitions",
                    _ => "RocksDB has no partitions",
                },
                "leave out `partitions`, or this target",
            )),
            (_, BuildSource::Installed(_) | BuildSource::Bundled) if has_no_load => Some((
                file.place_of(|key| is_workload(key, ".steps")),
                "no step loads the tables",
                "begin the steps with `load`; only a server of a `url` can have the tables of `sysbench prepare`",
            )),
            (Engine::RocksDb, _) if config.files.len() > 1 => Some((
                of_config(&|key| key == "file"),
                "RocksDB takes one file of options",
                "put them into one, or give options with `set`",
            )),
            (Engine::Null, _) if configured => Some((
                of_config(&is_option),
                "the null engine has no options",
                "use a config without `file` and `set`",
            )),
            _ => None,
        };
        if let Some((place, what, help)) = what {
            let message = format!("target `{}`: {what}", target.name);
            refused.push(refusal("target::impossible", place, message, Some(help)));
            continue;
        }
        refused.extend(file.unreadable_files(config));
    }
    for build in &plan.builds {
        let BuildSource::Url(url) = &build.source else {
            continue;
        };
        if let Err(error) = engines::of(build.engine).check_url(url.expose()) {
            let message = format!("build `{}`: {error}", build.name);
            let place = file.place_of_build(build);
            refused.push(refusal("plan::bad-url", place, message, error.help()));
        }
    }
    // One mistake of a config is that of all its targets.
    refused.sort_by_key(|diagnostic| diagnostic.place);
    refused.dedup_by(|one, other| one.place == other.place && one.place != Place::Nowhere);
    Ok(file.refuse(&refused)?)
}

/// Returns what of a plan's matrix has no cells, and why, in words; of what `is_wanted` would have had some.
pub fn not_applicable(plan: &Plan, is_wanted: impl Fn(&CellRef) -> bool) -> Vec<String> {
    let mut said = Vec::new();
    for pair in plan.not_applicable() {
        let variant = &plan.variants[pair.variant];
        let (target, name) = (&plan.targets[pair.target].name, variant.name.as_deref());
        let cell = |clients| CellRef::new(target, variant.workload.name(), name, clients, 1);
        if !plan
            .clients
            .iter()
            .any(|&clients| is_wanted(&cell(clients)))
        {
            continue;
        }
        let variant = name.map(|name| format!(" with variant `{name}`"));
        said.push(format!(
            "`{target}`{} is not applicable, and left out: {}",
            variant.unwrap_or_default(),
            pair.why
        ));
    }
    said
}
