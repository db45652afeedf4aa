//! Configs that builds try before the run: which are refused, and why.

use std::collections::BTreeMap;
use std::path::Path;

use engine::{Needs, Obstacle, SetupError};
use plan::{Config, Diagnostic};
use record::Failure;

use crate::library::Tried;
use crate::outcome::{failure_of, is_usage};
use crate::plan_file::PlanFile;

/// The configs with which a build is measured.
pub struct Configs<'a> {
    pub file: &'a PlanFile,
    /// By config, a target that has it.
    pub targets: BTreeMap<usize, &'a str>,
    /// What the cells need of a server.
    pub needs: Needs,
    /// Where databases will be made, where that is known.
    pub data_root: Option<&'a Path>,
    pub trials: &'a mut Trials,
    /// What keeps the cells from a server that runs already.
    pub obstacles: Vec<Obstacle>,
}

impl Configs<'_> {
    /// Tries each by `try_config`, which says what is wrong with it.
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

/// What became of the configs that were tried.
#[derive(Default)]
pub struct Trials {
    /// Options of configs that versions don't have and that are left out, with the targets of which each is.
    pub left_out: BTreeMap<String, Vec<String>>,
    /// Why a config is refused, with the targets of which it is.
    refused: Vec<(Failure, Vec<Refused>)>,
}

struct Refused {
    /// The index of the config in the plan.
    config: usize,
    target: String,
    /// As the library tells it, with its version.
    told: Failure,
}

impl Trials {
    /// Takes in what became of a config of `target` that a build of `version` tried.
    pub fn add(&mut self, config: usize, target: &str, version: &str, tried: Tried) {
        let told = match tried {
            Ok(options) => {
                for option in options {
                    let targets = self.left_out.entry(option).or_default();
                    if targets.iter().all(|known| known != target) {
                        targets.push(target.to_owned());
                    }
                }
                return;
            }
            Err(told) => told,
        };
        // One mistake in a config is that of all versions.
        let general = |text: &String| match version {
            "" => text.clone(),
            version => text.replace(version, "the build"),
        };
        let refusal = Failure {
            causes: told.causes.iter().map(general).collect(),
            help: told.help.as_ref().map(general),
            log_tail: Vec::new(),
        };
        let refused = Refused {
            config,
            target: target.to_owned(),
            told,
        };
        match self.refused.iter_mut().find(|(known, _)| *known == refusal) {
            Some((_, all)) if all.iter().any(|known| known.target == target) => {}
            Some((_, all)) => all.push(refused),
            None => self.refused.push((refusal, vec![refused])),
        }
    }

    /// Returns why configs are refused, each reason once.
    pub fn diagnostics(&self, file: &PlanFile) -> impl Iterator<Item = Diagnostic> {
        self.refused.iter().map(|(general, all)| {
            let names: Vec<String> = all.iter().map(|it| format!("`{}`", it.target)).collect();
            let (refusal, word) = match all.as_slice() {
                [one] => (&one.told, "target"),
                _ => (general, "targets"),
            };
            let complaint = refusal.causes.join(": ");
            let config = &file.plan.configs[all[0].config];
            let mut diagnostic = file.refused_config(config, &complaint);
            diagnostic.message = format!("{word} {}: {complaint}", names.join(", "));
            diagnostic.help.extend(refusal.help.clone());
            diagnostic
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan_file;

    fn refused(what: &str) -> Tried {
        Err(Failure {
            causes: vec![format!("config: {what}")],
            ..Failure::default()
        })
    }

    #[test]
    fn a_mistake_in_a_config_is_told_once_with_the_targets_that_have_it() {
        let mut trials = Trials::default();
        for (target, version) in [("a.x", "RocksDB 6.0.1"), ("b.x", "RocksDB 9.9.3")] {
            // Twice, where the load has options of its own.
            for _ in 0..2 {
                trials.add(0, target, version, refused(&format!("{version} lacks `x`")));
            }
            trials.add(0, target, version, Ok(vec!["y".into()]));
        }
        trials.add(
            1,
            "a.z",
            "RocksDB 6.0.1",
            refused("RocksDB 6.0.1 has no such cache"),
        );
        let text = "[workload.kv]\n[build.a]\nrocksdb = \"/l.so\"\n\
                    [config.rocksdb.x]\nset.x = 1\n[config.rocksdb.z]\nextends = \"x\"\n";
        let nothing = record::Plan::default();
        let file = plan_file::recorded(&nothing, text.into(), Vec::new()).unwrap();
        let diagnostics: Vec<_> = trials.diagnostics(&file).collect();
        let told: Vec<_> = diagnostics
            .iter()
            .map(|it| (it.message.as_str(), it.place.position(text)))
            .collect();
        assert_eq!(
            told,
            [
                (
                    "targets `a.x`, `b.x`: config: the build lacks `x`",
                    Some((5, 9))
                ),
                (
                    "target `a.z`: config: RocksDB 6.0.1 has no such cache",
                    None
                ),
            ]
        );
        assert_eq!(trials.left_out["y"], ["a.x", "b.x"]);
    }
}
