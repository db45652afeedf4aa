//! The trials of configs before a run: which configs a build refuses, and why.

use std::collections::BTreeMap;
use std::path::Path;

use engine::{Needs, Obstacle, SetupError};
use plan::{Config, Diagnostic};
use record::Failure;

use crate::library::Tried;
use crate::outcome::{failure_of, is_usage};
use crate::plan_file::PlanFile;

/// The context of an error about the replicas of a config's server.
pub const ITS_REPLICAS: &str = "its replicas";

/// The configs with which a build is measured.
pub struct Configs<'a> {
    pub file: &'a PlanFile,
    /// A target for each config, by the config's index in the plan.
    pub targets: BTreeMap<usize, &'a str>,
    /// The needs of the cells from a server.
    pub needs: Needs,
    /// The directory for databases, if it is known.
    pub data_root: Option<&'a Path>,
    pub trials: &'a mut Trials,
    /// The reasons why the cells can't run on a server that already runs.
    pub obstacles: Vec<Obstacle>,
}

impl Configs<'_> {
    /// Returns the needs of the cells from a replica that this many connections watch.
    pub fn needs_of_replicas(&self, watching: u32) -> Needs {
        let mut configs = self.targets.keys().map(|&it| &self.file.plan.configs[it]);
        let reading =
            if configs.any(|config| config.reads_replicas) { self.needs.connections } else { 0 };
        Needs { connections: watching + reading, makes_tables: false }
    }

    /// Tries each config with `try_config`, which returns what is wrong with it.
    pub fn each(
        &mut self,
        version: &str,
        mut try_config: impl FnMut(&Self, &Config, &str) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        for (&index, &target) in &self.targets {
            let tried = match try_config(self, &self.file.plan.configs[index], target) {
                Ok(()) => Ok(Vec::new()),
                Err(error) if is_usage(&error) => return Err(error),
                Err(error) => match error.downcast_ref() {
                    Some(SetupError::Config { .. } | SetupError::Server { .. }) => {
                        Err(failure_of(&error))
                    }
                    _ => return Err(error),
                },
            };
            self.trials.add(index, target, version, tried);
        }
        Ok(())
    }
}

/// The results of trying configs.
#[derive(Default)]
pub struct Trials {
    /// Options that are left out because a version lacks them, each with its targets.
    pub left_out: BTreeMap<String, Vec<String>>,
    /// Each reason to refuse a config, without the version, with the targets that it concerns.
    refused: Vec<(Failure, Vec<Refused>)>,
}

struct Refused {
    /// The index of the config in the plan.
    config: usize,
    target: String,
    /// The reason, with the version.
    reason: Failure,
}

impl Trials {
    /// Adds the result of a build of `version` that tried a config of `target`.
    pub fn add(&mut self, config: usize, target: &str, version: &str, tried: Tried) {
        let reason = match tried {
            Ok(options) => {
                for option in options {
                    let targets = self.left_out.entry(option).or_default();
                    if targets.iter().all(|known| known != target) {
                        targets.push(target.to_owned());
                    }
                }
                return;
            }
            Err(reason) => reason,
        };
        // Versions that refuse a config for the same reason are reported together.
        let without_version = |text: &String| match version {
            "" => text.clone(),
            version => text.replace(version, "the build"),
        };
        let general_reason = Failure {
            causes: reason.causes.iter().map(without_version).collect(),
            help: reason.help.as_ref().map(without_version),
            log_tail: Vec::new(),
        };
        let refused = Refused { config, target: target.to_owned(), reason };
        let mut known_reasons = self.refused.iter_mut();
        match known_reasons.find(|(known, _)| *known == general_reason) {
            Some((_, all)) if all.iter().any(|known| known.target == target) => {}
            Some((_, all)) => all.push(refused),
            None => self.refused.push((general_reason, vec![refused])),
        }
    }

    /// Returns the errors of refused configs, one for each reason.
    pub fn diagnostics(&self, file: &PlanFile) -> impl Iterator<Item = Diagnostic> {
        self.refused.iter().map(|(general_reason, all)| {
            let names: Vec<String> = all.iter().map(|it| format!("`{}`", it.target)).collect();
            let (reason, word) = match all.as_slice() {
                [one] => (&one.reason, "target"),
                _ => (general_reason, "targets"),
            };
            let message = reason.causes.join(": ");
            let config = &file.plan.configs[all[0].config];
            let mut diagnostic = file.refused_config(config, &message);
            diagnostic.message = format!("{word} {}: {message}", names.join(", "));
            diagnostic.help.extend(reason.help.clone());
            diagnostic
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan_file;

    fn refused(reason: &str) -> Tried {
        Err(Failure { causes: vec![format!("config: {reason}")], ..Failure::default() })
    }

    #[test]
    fn a_mistake_in_a_config_is_reported_once_with_the_targets_that_have_it() {
        let mut trials = Trials::default();
        for (target, version) in [("a.x", "RocksDB 6.0.1"), ("b.x", "RocksDB 9.9.3")] {
            // Twice, where the load has options of its own.
            for _ in 0..2 {
                trials.add(0, target, version, refused(&format!("{version} lacks `x`")));
            }
            trials.add(0, target, version, Ok(vec!["y".into()]));
        }
        trials.add(1, "a.z", "RocksDB 6.0.1", refused("RocksDB 6.0.1 has no such cache"));
        let text = "[workload.kv]\n[build.a]\nrocksdb = \"/l.so\"\n\
                    [config.rocksdb.x]\nset.x = 1\n[config.rocksdb.z]\nextends = \"x\"\n";
        let nothing = record::Plan::default();
        let file = plan_file::recorded(&nothing, text.into(), Vec::new()).unwrap();
        let diagnostics: Vec<_> = trials.diagnostics(&file).collect();
        let messages: Vec<_> =
            diagnostics.iter().map(|it| (it.message.as_str(), it.place.position(text))).collect();
        assert_eq!(
            messages,
            [
                ("targets `a.x`, `b.x`: config: the build lacks `x`", Some((5, 9))),
                ("target `a.z`: config: RocksDB 6.0.1 has no such cache", None),
            ]
        );
        assert_eq!(trials.left_out["y"], ["a.x", "b.x"]);
    }
}
