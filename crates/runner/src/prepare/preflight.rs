//! Checks, before a run begins, that its plan can run.

use std::net::TcpListener;

use plan::{BuildSource, Config, Diagnostic, Limits, Place, Plan, Reuse, Target};
use probe::Proc;
use record::CellRef;
use words::{ConfigFiles, EngineFacts, EngineHome};

use super::engines;
use super::plan_file::{PlanFile, refusal};
use super::turns;

/// Rejects what the parser of plans cannot see: a config for a server that Assay does not start, a
/// feature that an engine lacks, a missing file, an invalid URL, and a plan without any cell.
pub fn reject_impossible(file: &PlanFile) -> anyhow::Result<()> {
    let mut refused: Vec<Diagnostic> = Vec::new();
    for target in &file.plan.targets {
        match TargetCheck::of(file, target).problem() {
            Some(problem) => {
                let message = format!("target `{}`: {}", target.name, problem.what);
                let help = Some(problem.help);
                refused.push(refusal("target::impossible", problem.place, message, help));
            }
            None => refused.extend(file.unreadable_files(&file.plan.configs[target.config])),
        }
    }

    refused.extend(invalid_urls(file));
    refused.extend(unusable_address(file));
    refused.extend(turns::impossible_turns(file));
    refused.extend(no_cells(file));

    // Several targets may share a config, and so its mistake: report it once.
    refused.sort_by_key(|diagnostic| diagnostic.place);
    refused.dedup_by(|one, other| one.place == other.place && one.place != Place::Nowhere);

    Ok(file.refuse(&refused)?)
}

/// Refuses a plan of no repeats that has no exact cells either.
fn no_cells(file: &PlanFile) -> Option<Diagnostic> {
    let plan = &file.plan;
    if plan.repeats > 0 || plan.exact.repeats > 0 {
        return None;
    }

    let message = "there is nothing to measure: `repeats` is 0".to_owned();
    let help = "with `repeats = 0` only work is counted: add `[exact]` to the plan, or `--exact` to `assay run`";
    Some(refusal("plan::conflict", Place::Nowhere, message, Some(help)))
}

/// A target whose plan asks for what it cannot have.
struct Problem {
    place: Place,
    what: String,
    help: &'static str,
}

/// A target with what decides whether it can run as the plan says.
struct TargetCheck<'a> {
    file: &'a PlanFile,
    target: &'a Target,
    config: &'a Config,
    facts: &'static EngineFacts,
    home: EngineHome,
    /// Assay does not start its server.
    is_foreign: bool,
}

impl<'a> TargetCheck<'a> {
    fn of(file: &'a PlanFile, target: &'a Target) -> Self {
        let build = &file.plan.builds[target.build];
        Self {
            file,
            target,
            config: &file.plan.configs[target.config],
            facts: build.engine.facts(),
            home: build.home(),
            is_foreign: matches!(build.source, BuildSource::Url(_)),
        }
    }

    /// Returns the first problem.
    fn problem(&self) -> Option<Problem> {
        self.limits()
            .or_else(|| self.replicas())
            .or_else(|| self.reads())
            .or_else(|| self.options())
            .or_else(|| self.workload())
            .or_else(|| self.reuse())
    }

    /// Returns the reason why no other target can load the database of this one.
    fn load_with(&self) -> Option<Problem> {
        let plan = &self.file.plan;
        let loader = &plan.targets[self.target.load_with?];
        let (what, help) = if plan.reuse == Reuse::Off && plan.from.is_none() {
            ("the plan does not keep databases", "add `reuse = \"run\"` or `reuse = true`")
        } else if plan.builds[loader.build].engine != plan.builds[self.target.build].engine {
            ("that target has another engine", "name a target of the same engine")
        } else if !self.config.makes_the_same_database(&plan.configs[loader.config]) {
            (
                "that target makes another kind of database",
                "give both the same `table-format`, `table-options`, `extensions`, `setup-sql` and `init-arguments`",
            )
        } else if loader.load_with.is_some() {
            ("that target's own database is loaded by another", "name the target that loads it")
        } else {
            return None;
        };

        Some(Problem {
            place: self.file.place_of(|key| key == "target.load-with"),
            what: format!("`{}` cannot load its database: {what}", loader.name),
            help,
        })
    }

    /// Returns the reason why the target cannot share its load, as its plan asks.
    fn reuse(&self) -> Option<Problem> {
        let plan = &self.file.plan;
        if let Some(problem) = self.load_with() {
            return Some(problem);
        }

        // A cell that begins `from` a step has a copy, and one that keeps its database stops in between.
        let key = if plan.from.is_some() {
            "from"
        } else if !plan.keep_after.is_empty() {
            "keep-after"
        } else if plan.reuse != Reuse::Off {
            "reuse"
        } else {
            return None;
        };

        let why = if key != "reuse" && !self.facts.stores_data {
            "the engine stores no data"
        } else if key == "keep-after" && self.target.load_with.is_some() {
            "the database of the target would be that of another build, changed by this one"
        } else if self.is_foreign {
            "assay cannot copy the database of a server that it did not start"
        } else if self.config.replicas > 0 {
            "the replicas of a copied database would have to be made again"
        } else {
            return None;
        };

        Some(Problem {
            place: self.file.place_of(|name| name == key),
            what: format!("`{key}` is not possible: {why}"),
            help: if key == "reuse" {
                "set `reuse = false`, or leave the target out of the plan"
            } else {
                "remove the key, or leave the target out of the plan"
            },
        })
    }

    fn limits(&self) -> Option<Problem> {
        let is_limited = self.config.limits != Limits::default();

        if !is_limited || (self.home != EngineHome::Bundled && !self.is_foreign) {
            return None;
        }

        Some(Problem {
            place: self.place_in_config(|key| matches!(key, "memory" | "cpus" | "cpu-quota")),
            what: "only a server that assay starts can be limited in memory and CPUs".into(),
            help: "remove `memory`, `cpus` and `cpu-quota` from its config",
        })
    }

    fn replicas(&self) -> Option<Problem> {
        let Config { replicas, replica_set, replica_limits, logical_replication, .. } = self.config;
        if self.is_foreign && *replicas > 0 {
            return Some(Problem {
                place: self.place_in_config(|key| key == "replicas"),
                what: "assay makes replicas only of a server that it starts".into(),
                help: "remove `replicas` from its config",
            });
        }
        if self.is_foreign && (!replica_set.is_empty() || *replica_limits != Limits::default()) {
            return Some(Problem {
                place: self.place_in_config(|key| key.starts_with("replica.")),
                what: "assay cannot configure or limit replicas that it does not start".into(),
                help: "remove `replica` from its config",
            });
        }
        if *logical_replication && *replicas == 0 {
            return Some(Problem {
                place: self.place_in_config(|key| key == "replication"),
                what: "logical replication is configured, but there is no replica".into(),
                help: "set `replicas` in its config, or remove `replication`",
            });
        }
        None
    }

    fn reads(&self) -> Option<Problem> {
        if !self.config.reads_replicas {
            return None;
        }

        let place = self.place_in_config(|key| key == "reads");
        if !self.file.plan.has_replicas(self.target) {
            return Some(Problem {
                place,
                what: "it reads from replicas, but has none".into(),
                help: "set `replicas` in its config, or `replica-url` in a build with a `url`, or remove `reads`",
            });
        }

        let needs_tcp = self.config.tls || self.file.plan.listen.is_some();
        if self.config.replicas > 0 && needs_tcp {
            return Some(Problem {
                place,
                what: "reads go to a replica by its private socket, not by TCP or TLS".into(),
                help: "remove `reads` from the config, or `tls` and `listen`",
            });
        }

        None
    }

    fn options(&self) -> Option<Problem> {
        let Config { files, set, tls, .. } = self.config;
        let has_surroundings = !self.config.surroundings().is_empty();
        let is_configured = !files.is_empty() || !set.is_empty() || *tls || has_surroundings;
        let title = self.facts.title;

        if self.is_foreign && is_configured {
            return Some(Problem {
                place: self.place_of_options(),
                what: "assay cannot configure a server that it does not start".into(),
                help: "leave its config empty, and configure the server itself",
            });
        }

        if !self.facts.has_options && is_configured {
            return Some(Problem {
                place: self.place_of_options(),
                what: format!("{title} has no options"),
                help: "remove `file` and `set` from its config",
            });
        }

        match self.facts.config_files {
            ConfigFiles::None if !files.is_empty() => Some(Problem {
                place: self.place_in_config(|key| key == "file"),
                what: format!("{title} has no configuration file"),
                help: "set its options with `set`",
            }),
            ConfigFiles::One if files.len() > 1 => Some(Problem {
                place: self.place_in_config(|key| key == "file"),
                what: format!("{title} accepts only one options file"),
                help: "merge the files, or set options with `set`",
            }),
            ConfigFiles::None | ConfigFiles::One | ConfigFiles::Several => None,
        }
    }

    fn workload(&self) -> Option<Problem> {
        let mut workloads = self.file.plan.variants.iter().map(|variant| &variant.workload);
        let has_partitions = workloads.clone().any(|workload| workload.needs().has_partitions());
        if has_partitions && !self.facts.has_partitions {
            return Some(Problem {
                place: self.place_in_workload(".partitions"),
                what: format!("{} has no partitions", self.facts.title),
                help: "remove `partitions`, or this target",
            });
        }

        // Only a server that Assay does not start may already have tables.
        let has_no_load = workloads.any(|workload| !workload.needs().makes_tables());
        if has_no_load && !self.is_foreign {
            return Some(Problem {
                place: self.place_in_workload(".steps"),
                what: "no step loads the tables".into(),
                help: "begin the steps with `load`; only a server given by `url` may already have the tables of `sysbench prepare`",
            });
        }

        None
    }

    /// Returns the place of the first key of the config that `is_wanted`.
    fn place_in_config(&self, is_wanted: impl Fn(&str) -> bool) -> Place {
        let value = self.file.value_in(self.config, is_wanted);
        value.map_or(Place::Nowhere, |value| value.place)
    }

    fn place_of_options(&self) -> Place {
        const KEYS: [&str; 7] = [
            "file",
            "tls",
            "table-format",
            "table-options",
            "extensions",
            "setup-sql",
            "init-arguments",
        ];

        const TABLES: [&str; 2] = ["set.", "env."];
        self.place_in_config(|key| {
            KEYS.contains(&key) || TABLES.iter().any(|table| key.starts_with(table))
        })
    }

    fn place_in_workload(&self, end: &str) -> Place {
        self.file.place_of(|key| key.starts_with("workload.") && key.ends_with(end))
    }
}

/// Returns the errors of URLs of servers that Assay does not start.
fn invalid_urls(file: &PlanFile) -> Vec<Diagnostic> {
    let mut errors = Vec::new();
    for build in &file.plan.builds {
        let BuildSource::Url(url) = &build.source else {
            continue;
        };
        for url in [url].into_iter().chain(&build.replica_urls) {
            if let Err(error) = engines::of(build.engine).check_url(url.expose()) {
                let message = format!("build `{}`: {error}", build.name);
                let place = file.place_of_build(build);
                errors.push(refusal("plan::bad-url", place, message, error.help().as_deref()));
            }
        }
    }

    errors
}

/// Returns the error for an address on which this host's servers cannot listen.
fn unusable_address(file: &PlanFile) -> Option<Diagnostic> {
    let address = file.plan.listen?;
    let error = TcpListener::bind((address, 0)).err()?;
    // The system knows best on which addresses it can listen: try it, with any free port.
    let own = probe::host_addresses(&Proc::live());
    let own: Vec<String> = own.iter().map(|address| format!("`{address}`")).collect();

    let help = format!(
        "write an address of this host ({}, or `127.0.0.1` for clients on it), or remove `listen`",
        own.join(", ")
    );

    let message = format!("a server cannot listen on {address}: {error}");
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
        // A filter selects a target's cells, and this target has none: try what they would be.
        let cell = |clients| CellRef::new(target, variant.workload.name(), name, clients, 1);
        if !plan.clients.iter().any(|&clients| is_wanted(&cell(clients))) {
            continue;
        }

        let variant = name.map(|name| format!(" with variant `{name}`"));
        sentences.push(format!(
            "`{target}`{} cannot be measured and is left out: {}",
            variant.unwrap_or_default(),
            pair.why
        ));
    }

    if plan.exact.repeats > 0 {
        for (target, why) in plan.not_countable() {
            sentences.push(format!("the work of `{}` cannot be counted: {why}", target.name));
        }
    }

    sentences
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::prepare::plan_file;

    fn plan_of(configs: &str) -> PlanFile {
        let text = format!("[workload.insert]\n[build.a]\nsqlite = \"bundled\"\n{configs}");
        let nothing = record::Plan::default();
        plan_file::recorded(&nothing, text, Vec::new(), &crate::Silent).unwrap()
    }

    #[test]
    fn a_long_chain_of_configs_is_checked_without_reading_it_for_each_of_them() {
        // Walking up the chain from each config would take minutes.
        let mut configs = String::from("[config.sqlite.c0]\nset.cache_size = 7\n");
        for index in 1..10_000 {
            let _ = writeln!(configs, "[config.sqlite.c{index}]\nextends = \"c{}\"", index - 1);
        }
        let file = plan_of(&configs);
        reject_impossible(&file).unwrap();

        // The last config still has its value from the first one.
        let last = file.plan.configs.last().unwrap();
        let value = file.value_in(last, |key| key == "set.cache_size").unwrap();
        assert_eq!(
            (value.key.as_str(), value.value.as_str()),
            ("config.sqlite.c0.set.cache_size", "7")
        );
        assert_eq!(file.value_in(last, |key| key == "file"), None);
    }
}
