//! Finds caches of configs that are larger than the memory that they may use.

use std::collections::BTreeMap;

use plan::{BuildSource, Target};
use words::{EngineFacts, SettingRole, size_text};

use super::plan_file::PlanFile;

/// The code of the warning about such caches.
pub const CACHE_CODE: &str = "host::cache-exceeds-memory";

/// The beginning of the names of limits among declared options.
const LIMIT_PREFIX: &str = "limit.";

/// The memory of a machine.
#[derive(Clone, Copy)]
pub struct HostMemory<'a> {
    /// The size.
    pub bytes: u64,
    /// The machine, as warnings name it: `this host`.
    pub of: &'a str,
}

/// Returns a warning for each cache of the `targets` that is larger than the machine's memory, or
/// than the limit of its config. Servers that Assay does not start are left out.
pub fn oversized_caches(
    file: &PlanFile,
    targets: impl Iterator<Item = usize>,
    memory: HostMemory<'_>,
) -> anyhow::Result<Vec<String>> {
    let plan = &file.plan;

    // Targets that share a config have the same problem: one warning names them all.
    let mut by_problem: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for target in targets.map(|target| &plan.targets[target]) {
        for problem in problems_of(file, target, memory)? {
            let known = by_problem.entry(problem).or_default();
            if !known.contains(&target.name.as_str()) {
                known.push(&target.name);
            }
        }
    }

    let warnings = by_problem.into_iter().map(|(problem, targets)| {
        let word = if targets.len() == 1 { "target" } else { "targets" };
        format!("{word} `{}`: {problem}", targets.join("`, `"))
    });
    Ok(warnings.collect())
}

/// Returns what is wrong with the caches of a target.
fn problems_of(
    file: &PlanFile,
    target: &Target,
    memory: HostMemory<'_>,
) -> anyhow::Result<Vec<String>> {
    let (build, config) = (&file.plan.builds[target.build], &file.plan.configs[target.config]);
    let facts = build.engine.facts();
    if facts.cache_unit_bytes.is_none() || matches!(build.source, BuildSource::Url(_)) {
        return Ok(Vec::new());
    }

    let limit = config.limits.memory_bytes.filter(|&bytes| bytes < memory.bytes);
    let (most, whose) = match limit {
        Some(limit) => (limit, "`memory` of its config".to_owned()),
        None => (memory.bytes, format!("memory of {}", memory.of)),
    };

    let mut problems = Vec::new();
    for option in file.declared(config)? {
        // The limits of a server are declared, too.
        let is_cache =
            option.role == Some(SettingRole::CacheSize) && !option.name.starts_with(LIMIT_PREFIX);

        let bytes = cache_bytes(facts, &option.value);

        if is_cache && bytes.is_some_and(|bytes| bytes > most as f64) {
            let (name, value, size) = (&option.name, &option.value, size_text(most));
            problems.push(format!("`{name} = {value}` is more than the {size} of {whose}"));
        }
    }

    Ok(problems)
}

/// Parses the size of a cache in the notation of an engine; `None` for other texts.
fn cache_bytes(facts: &EngineFacts, text: &str) -> Option<f64> {
    let size = match text.split_once("capacity=") {
        Some((_, capacity)) if facts.has_nested_options => {
            capacity.split([';', '}']).next().unwrap_or_default().trim()
        }
        _ => text.trim(),
    };

    let digits = size.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(size.len());
    let (number, unit) = size.split_at(digits);
    let number: f64 = number.parse().ok()?;
    let factor = match unit.trim().to_ascii_lowercase().trim_end_matches('b') {
        "" if unit.ends_with(['b', 'B']) => 1.0,
        "" => f64::from(facts.cache_unit_bytes?),
        "k" => 1024.0,
        "m" => 1024.0_f64.powi(2),
        "g" => 1024.0_f64.powi(3),
        "t" => 1024.0_f64.powi(4),
        _ => return None,
    };

    Some(number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prepare::plan_file;

    #[test]
    fn caches_that_exceed_the_memory_are_found_in_each_notation() {
        let text = r#"
[workload.insert]
[build.pg]
postgres = "17"
[build.my]
mysql = "8.0"
[build.rocks]
rocksdb = "/l.so"
[build.far]
url = "postgresql://db/x"
[config.postgres.small]
set.shared_buffers = "8GB"
[config.postgres.pages]
set.shared_buffers = 8388608
[config.postgres.limited]
memory = "4GiB"
set.shared_buffers = "8GB"
[config.mysql.large]
set.innodb_buffer_pool_size = "64G"
[config.rocksdb.lru]
set.block_cache = "90G"
[config.rocksdb.clock]
set.block_cache = "{id=HyperClockCache;capacity=90G;estimated_entry_charge=8K}"
[[target]]
builds = ["pg", "my", "rocks"]
"#;
        let nothing = record::Plan::default();
        let file = plan_file::recorded(&nothing, text.into(), Vec::new(), &crate::Silent).unwrap();
        let targets = 0..file.plan.targets.len();
        let memory = HostMemory { bytes: 24_000_000_000, of: "this host" };
        let warnings = oversized_caches(&file, targets, memory).unwrap();
        assert_eq!(
            warnings,
            [
                "target `rocks.lru`: `block_cache = 90G` is more than the 24.0 GB of memory of this host",
                "target `rocks.clock`: `block_cache.capacity = 90G` is more than the 24.0 GB of memory of this host",
                "target `my.large`: `innodb_buffer_pool_size = 64G` is more than the 24.0 GB of memory of this host",
                "target `pg.pages`: `shared_buffers = 8388608` is more than the 24.0 GB of memory of this host",
                "target `pg.limited`: `shared_buffers = 8GB` is more than the 4.3 GB of `memory` of its config",
            ]
        );
    }
}
