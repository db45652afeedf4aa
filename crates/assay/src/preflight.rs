//! Checks, before a run begins, that its plan can run.

use std::net::TcpListener;

use plan::{BuildSource, Diagnostic, Engine, Limits, Place, Plan, Workload};
use probe::Proc;
use record::CellRef;

use crate::engines;
use crate::plan_file::{PlanFile, refusal};

/// Rejects what the parser of plans can't see: a config for a server that assay does not start, a
/// feature that an engine lacks, a missing file, an invalid URL.
pub fn reject_impossible(file: &PlanFile) -> anyhow::Result<()> {
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
        let configured = !config.files.is_empty() || !config.set.is_empty() || config.tls;
        let limited = config.limits != Limits::default();
        let replicas_configured =
            !config.replica_set.is_empty() || config.replica_limits != Limits::default();
        let of_config = |is_wanted: &dyn Fn(&str) -> bool| {
            let value = file.value_in(config, is_wanted);
            value.map_or(Place::Nowhere, |value| value.place)
        };
        let is_limit = |key: &str| matches!(key, "memory" | "cpus" | "cpu-quota");
        let is_option = |key: &str| key == "file" || key == "tls" || key.starts_with("set.");
        let is_workload = |key: &str, end: &str| key.starts_with("workload.") && key.ends_with(end);
        let problem = match (build.engine, &build.source) {
            (Engine::Sqlite | Engine::Null, _) | (_, BuildSource::Url(_)) if limited => Some((
                of_config(&is_limit),
                "only a server that assay starts can be limited in memory and CPUs",
                "remove `memory`, `cpus` and `cpu-quota` from its config",
            )),
            (_, BuildSource::Url(_)) if config.replicas > 0 => Some((
                of_config(&|key| key == "replicas"),
                "assay makes replicas only of a server that it starts",
                "remove `replicas` from its config",
            )),
            (_, BuildSource::Url(_)) if replicas_configured => Some((
                of_config(&|key| key.starts_with("replica.")),
                "assay can't configure or limit replicas that it does not start",
                "remove `replica` from its config",
            )),
            _ if config.reads_replicas && !plan.has_replicas(target) => Some((
                of_config(&|key| key == "reads"),
                "it reads from replicas, but has none",
                "set `replicas` in its config, or `replica-url` in a build with a `url`, or remove `reads`",
            )),
            _ if config.reads_replicas
                && config.replicas > 0
                && (config.tls || plan.listen.is_some()) =>
            {
                Some((
                    of_config(&|key| key == "reads"),
                    "reads go to a replica by its private socket, not by TCP or TLS",
                    "remove `reads` from the config, or `tls` and `listen`",
                ))
            }
            _ if config.logical_replication && config.replicas == 0 => Some((
                of_config(&|key| key == "replication"),
                "logical replication is configured, but there is no replica",
                "set `replicas` in its config, or remove `replication`",
            )),
            (_, BuildSource::Url(_)) if configured => Some((
                of_config(&is_option),
                "assay can't configure a server that it does not start",
                "remove `file`, `set` and `tls` from its config, and configure the server itself",
            )),
            (Engine::Sqlite, _) if !config.files.is_empty() => Some((
                of_config(&|key| key == "file"),
                "SQLite has no configuration file",
                "set its pragmas with `set`",
            )),
            (engine @ (Engine::Sqlite | Engine::RocksDb), _) if has_partitions => Some((
                file.place_of(|key| is_workload(key, ".partitions")),
                match engine {
                    Engine::Sqlite => "SQLite has no partitions",
                    _ => "RocksDB has no partitions",
                },
                "remove `partitions`, or this target",
            )),
            (_, BuildSource::Installed(_) | BuildSource::Bundled) if has_no_load => Some((
                file.place_of(|key| is_workload(key, ".steps")),
                "no step loads the tables",
                "begin the steps with `load`; only a server given by `url` may already have the tables of `sysbench prepare`",
            )),
            (Engine::RocksDb, _) if config.files.len() > 1 => Some((
                of_config(&|key| key == "file"),
                "RocksDB takes only one options file",
                "merge the files, or set options with `set`",
            )),
            (Engine::Null, _) if configured => Some((
                of_config(&is_option),
                "the null engine has no options",
                "remove `file` and `set` from its config",
            )),
            _ => None,
        };
        if let Some((place, problem, help)) = problem {
            let message = format!("target `{}`: {problem}", target.name);
            refused.push(refusal("target::impossible", place, message, Some(help)));
            continue;
        }
        refused.extend(file.unreadable_files(config));
    }
    for build in &plan.builds {
        let BuildSource::Url(url) = &build.source else {
            continue;
        };
        for url in [url].into_iter().chain(&build.replica_urls) {
            if let Err(error) = engines::of(build.engine).check_url(url.expose()) {
                let message = format!("build `{}`: {error}", build.name);
                let place = file.place_of_build(build);
                refused.push(refusal("plan::bad-url", place, message, error.help()));
            }
        }
    }
    refused.extend(unusable_address(file));
    // Several targets may share a config, and so its mistake: report it once.
    refused.sort_by_key(|diagnostic| diagnostic.place);
    refused.dedup_by(|one, other| one.place == other.place && one.place != Place::Nowhere);
    Ok(file.refuse(&refused)?)
}

/// Returns the error for an address on which this host's servers can't listen.
fn unusable_address(file: &PlanFile) -> Option<Diagnostic> {
    let address = file.plan.listen?;
    let error = TcpListener::bind((address, 0)).err()?;
    let own = probe::host_addresses(&Proc::live());
    let own: Vec<String> = own.iter().map(|own| format!("`{own}`")).collect();
    let help = format!(
        "write an address of this host ({}, or `127.0.0.1` for clients on it), or remove `listen`",
        own.join(", ")
    );
    let message = format!("a server can't listen on {address}: {error}");
    let place = file.place_of(|key| key == "listen");
    Some(refusal("plan::bad-address", place, message, Some(&help)))
}

/// Returns a sentence for each target and variant that has no cells, with the reason. Skips those
/// without a cell that `is_wanted`.
pub fn not_applicable(plan: &Plan, is_wanted: impl Fn(&CellRef) -> bool) -> Vec<String> {
    let mut sentences = Vec::new();
    for pair in plan.not_applicable() {
        let variant = &plan.variants[pair.variant];
        let (target, name) = (&plan.targets[pair.target].name, variant.name.as_deref());
        let cell = |clients| CellRef::new(target, variant.workload.name(), name, clients, 1);
        if !plan.clients.iter().any(|&clients| is_wanted(&cell(clients))) {
            continue;
        }
        let variant = name.map(|name| format!(" with variant `{name}`"));
        sentences.push(format!(
            "`{target}`{} can't be measured and is left out: {}",
            variant.unwrap_or_default(),
            pair.why
        ));
    }
    sentences
}
