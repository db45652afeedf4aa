//! The trials of configs before a run: which configs a build refuses, and why.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use engine::{Needs, Obstacle, SetupError};
use plan::{Config, Diagnostic};
use record::Failure;

use super::plan_file::PlanFile;
use crate::ground::events::Events;
use crate::ground::failure::{failure_of, is_usage};

/// The context of an error about the replicas of a config's server.
pub const ITS_REPLICAS: OfReplicas = OfReplicas;

/// The type of [`ITS_REPLICAS`], which tells such an error from others.
#[derive(Clone, Copy, Debug)]
pub struct OfReplicas;

impl std::fmt::Display for OfReplicas {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("its replicas")
    }
}

/// The configs with which a build is measured.
pub struct Configs<'a> {
    pub file: &'a PlanFile,
    /// A target for each config, by the config's index in the plan.
    pub targets: BTreeMap<usize, &'a str>,
    /// The needs of the cells from a server.
    pub needs: Needs,
    /// The directory for databases, if it is known.
    pub data_root: Option<&'a Path>,
    /// The trials that the build needs.
    pub trials: Vec<Trial<'a>>,
    /// The reasons why the cells cannot run on a server that already runs.
    pub obstacles: Vec<Obstacle>,
}

/// The outcome of trying a config.
#[derive(Debug)]
pub enum Tried {
    /// The config is accepted, without the options that the version lacks.
    Accepted(Vec<String>),
    /// The config is refused.
    Refused(Refusal),
    /// The trial ended before it could tell, for this reason.
    Incomplete(String),
}

/// The reason why a config is refused.
#[derive(Clone, Debug)]
pub struct Refusal {
    pub failure: Failure,
    /// The option that is wrong, if the engine names it.
    pub option: Option<String>,
    /// The reason is about the replicas of the config's server.
    pub is_of_replicas: bool,
}

impl Refusal {
    /// Returns the reason in an engine's error.
    pub fn of(error: &anyhow::Error) -> Self {
        let option = match error.downcast_ref() {
            Some(SetupError::Config { option, .. }) => option.clone(),
            _ => None,
        };

        Self {
            failure: failure_of(error),
            option,
            is_of_replicas: error.downcast_ref::<OfReplicas>().is_some(),
        }
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self { failure, option: None, is_of_replicas: false }
    }
}

impl Tried {
    /// Returns what an engine's own trial shows.
    ///
    /// # Errors
    /// Errors that are not about the config, such as a build that cannot be used.
    pub fn of(result: anyhow::Result<()>) -> anyhow::Result<Self> {
        let Err(error) = result else {
            return Ok(Self::Accepted(Vec::new()));
        };

        if is_usage(&error) {
            return Err(error);
        }

        match error.downcast_ref() {
            Some(SetupError::Config { .. } | SetupError::Server { .. }) => {
                Ok(Self::Refused(Refusal::of(&error)))
            }
            Some(SetupError::Trial { .. }) => {
                Ok(Self::Incomplete(failure_of(&error).causes.join(": ")))
            }
            _ => Err(error),
        }
    }
}

/// The function that tries a config.
type TryConfig<'a> = dyn Fn() -> anyhow::Result<Tried> + Send + Sync + 'a;

/// A config that a build has to try.
pub struct Trial<'a> {
    /// The index of the config in the plan.
    pub config: usize,
    /// The first target with this build and config.
    pub target: &'a str,
    /// The build's product and version.
    pub version: String,
    /// Tries the config in another process, or in a directory of its own.
    pub try_config: Box<TryConfig<'a>>,
}

/// Runs trials side by side, on as many processors as there are. Returns their results in order.
pub fn run_all(trials: &[Trial<'_>], events: &dyn Events) -> Vec<anyhow::Result<Tried>> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);

    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<anyhow::Result<Tried>>>> =
        trials.iter().map(|_| Mutex::new(None)).collect();
    let done = AtomicUsize::new(0);

    events.configs_tried(Some(0), trials.len());

    let worker = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let (Some(trial), Some(slot)) = (trials.get(index), results.get(index)) else {
                return;
            };

            let result = (trial.try_config)();
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);

            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            events.configs_tried(Some(done), trials.len());
        }
    };

    std::thread::scope(|scope| {
        // This thread is one of the workers, so that trials run even where no thread can start.
        for _ in 1..processors.min(trials.len()) {
            let worker_thread = std::thread::Builder::new().name("trial".into());
            if worker_thread.spawn_scoped(scope, worker).is_err() {
                break;
            }
        }
        worker();
    });

    events.configs_tried(None, trials.len());

    let slots = results.into_iter().map(Mutex::into_inner);
    slots.filter_map(|slot| slot.unwrap_or_else(PoisonError::into_inner)).collect()
}

impl<'a> Configs<'a> {
    /// Adds a trial of each config with `try_config`, which also gets the target.
    pub fn each(
        &mut self,
        version: &str,
        try_config: impl Fn(&Config, &str) -> anyhow::Result<()> + Send + Sync + Clone + 'a,
    ) {
        let plan = &self.file.plan;
        for (&index, &target) in &self.targets {
            let config = &plan.configs[index];
            let try_config = try_config.clone();
            self.trials.push(Trial {
                config: index,
                target,
                version: version.to_owned(),
                try_config: Box::new(move || Tried::of(try_config(config, target))),
            });
        }
    }

    /// Returns the needs of the cells from a replica that this many connections watch.
    pub fn needs_of_replicas(&self, watching: u32) -> Needs {
        let mut configs = self.targets.keys().map(|&config| &self.file.plan.configs[config]);
        let reading =
            if configs.any(|config| config.reads_replicas) { self.needs.connections } else { 0 };
        Needs { connections: watching + reading, makes_tables: false }
    }
}

/// The results of trying configs.
#[derive(Default)]
pub struct Trials {
    /// Options that are left out because a version lacks them, each with its targets.
    pub left_out: BTreeMap<String, Vec<String>>,
    /// Each reason to refuse a config, without the version, with the targets that it concerns.
    refused: Vec<(Failure, Vec<Refused>)>,
    /// Each reason why a trial could not be completed, with the targets that it concerns.
    incomplete: BTreeMap<String, Vec<String>>,
}

struct Refused {
    /// The index of the config in the plan.
    config: usize,
    target: String,
    /// The reason, with the version.
    reason: Refusal,
}

impl Trials {
    /// Adds the result of a build of `version` that tried a config of `target`.
    pub fn add(&mut self, config: usize, target: &str, version: &str, tried: Tried) {
        match tried {
            Tried::Accepted(options) => {
                for option in options {
                    add_once(self.left_out.entry(option).or_default(), target);
                }
            }
            Tried::Incomplete(why) => add_once(self.incomplete.entry(why).or_default(), target),
            Tried::Refused(reason) => {
                let refused = Refused { config, target: target.to_owned(), reason };
                self.add_refusal(version, refused);
            }
        }
    }

    /// Adds a refusal. Versions that refuse a config for the same reason are reported together.
    fn add_refusal(&mut self, version: &str, refused: Refused) {
        // Versions that say their own name in an otherwise equal reason have the same reason.
        let without_version = |text: &String| match version {
            "" => text.clone(),
            version => text.replace(version, "the build"),
        };

        let general_reason = Failure {
            causes: refused.reason.failure.causes.iter().map(without_version).collect(),
            help: refused.reason.failure.help.as_ref().map(without_version),
            log_tail: Vec::new(),
        };

        let mut known_reasons = self.refused.iter_mut();
        match known_reasons.find(|(known, _)| *known == general_reason) {
            // A target may try several configs, such as one for the load: one refusal tells enough.
            Some((_, all)) if all.iter().any(|known| known.target == refused.target) => {}
            Some((_, all)) => all.push(refused),
            None => self.refused.push((general_reason, vec![refused])),
        }
    }

    /// Returns a warning for each reason why a trial could not be completed.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        self.incomplete.iter().map(|(why, targets)| {
            let word = if targets.len() == 1 { "target" } else { "targets" };
            format!("{word} `{}`: {why}; the config was not checked", targets.join("`, `"))
        })
    }

    /// Returns the errors of refused configs, one for each reason.
    pub fn diagnostics(&self, file: &PlanFile) -> impl Iterator<Item = Diagnostic> {
        self.refused.iter().map(|(general_reason, all)| {
            let names: Vec<String> =
                all.iter().map(|refused| format!("`{}`", refused.target)).collect();

            // A single build may be named by its version.
            let (reason, word) = match all.as_slice() {
                [one] => (&one.reason.failure, "target"),
                _ => (general_reason, "targets"),
            };

            let message = reason.causes.join(": ");
            let config = &file.plan.configs[all[0].config];
            let mut diagnostic = file.refused_config(config, &message, &all[0].reason);

            diagnostic.message = format!("{word} {}: {message}", names.join(", "));
            diagnostic.help.extend(reason.help.clone());

            diagnostic
        })
    }
}

/// Adds a target unless it is there.
fn add_once(targets: &mut Vec<String>, target: &str) {
    if targets.iter().all(|known| known != target) {
        targets.push(target.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prepare::plan_file;

    fn refused(reason: &str) -> Tried {
        let causes = vec![format!("config: {reason}")];
        Tried::Refused(Failure { causes, ..Failure::default() }.into())
    }

    #[test]
    fn a_mistake_in_a_config_is_reported_once_with_the_targets_that_have_it() {
        let mut trials = Trials::default();
        for (target, version) in [("a.x", "RocksDB 6.0.1"), ("b.x", "RocksDB 9.9.3")] {
            // Twice, where the load has options of its own.
            for _ in 0..2 {
                trials.add(0, target, version, refused(&format!("{version} lacks `x`")));
            }
            trials.add(0, target, version, Tried::Accepted(vec!["y".into()]));
        }
        trials.add(1, "a.z", "RocksDB 6.0.1", refused("RocksDB 6.0.1 has no such cache"));
        let of_table = "`block_based_table_factory.block_cache = 64MiB`: expected a number";
        trials.add(2, "a.cache", "RocksDB 6.0.1", refused(of_table));
        let text = "[workload.kv]\n[build.a]\nrocksdb = \"/l.so\"\n\
                    [config.rocksdb.x]\nset.x = 1\n[config.rocksdb.z]\nextends = \"x\"\n\
                    [config.rocksdb.cache]\nset.block_cache = \"64MiB\"\n";
        let nothing = record::Plan::default();
        let file = plan_file::recorded(&nothing, text.into(), Vec::new(), &crate::Silent).unwrap();
        let diagnostics: Vec<_> = trials.diagnostics(&file).collect();
        let messages: Vec<_> = diagnostics
            .iter()
            .map(|diagnostic| (diagnostic.message.as_str(), diagnostic.place.position(text)))
            .collect();
        assert_eq!(
            messages,
            [
                ("targets `a.x`, `b.x`: config: the build lacks `x`", Some((5, 9))),
                ("target `a.z`: config: RocksDB 6.0.1 has no such cache", None),
                (
                    "target `a.cache`: config: `block_based_table_factory.block_cache = 64MiB`: expected a number",
                    Some((9, 19))
                ),
            ]
        );
        assert_eq!(trials.left_out["y"], ["a.x", "b.x"]);
    }
}
