//! The builds of a plan: finds them and says what they are, and whether they take their configs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use engine::Engine as _;
use engine::mysql::{self, Mysql};
use engine::postgres::{self, Postgres};
use engine::sqlite;
use plan::{Build, BuildSource, Config, Engine, Plan};
use record::FileHash;

use crate::fetch::{self, Store, Stored, hash};
use crate::library::{self, Refusal, Trial};
use crate::outcome::{Several, UsageError};
use crate::plan_file::PlanFile;

/// An engine's name, as it is recorded.
pub fn engine_name(engine: Engine) -> &'static str {
    match engine {
        Engine::Sqlite => "sqlite",
        Engine::Postgres => "postgres",
        Engine::Mysql => "mysql",
        Engine::RocksDb => "rocksdb",
        Engine::Null => "null",
    }
}

/// Whether some of these cells has a server that assay starts on this host.
pub fn has_local_server(plan: &Plan, mut cells: impl Iterator<Item = plan::Cell>) -> bool {
    cells.any(|cell| {
        let build = &plan.builds[plan.targets[cell.target].build];
        build.engine != Engine::RocksDb && matches!(build.source, BuildSource::Installed(_))
    })
}

/// The builds of a plan.
pub struct Located {
    /// What they are.
    pub builds: Vec<record::Build>,
    /// Options of configs that versions don't have and that are left out, with the targets of which each is.
    pub left_out: BTreeMap<String, Vec<String>>,
}

/// Finds the builds of a plan that these cells use, and tries the configs of those that are libraries. A server that
/// assay doesn't start is asked for its version.
///
/// # Errors
/// All that is wrong, at once.
pub fn locate(file: &PlanFile, cells: impl Iterator<Item = plan::Cell>) -> anyhow::Result<Located> {
    let plan = &file.plan;
    // By build, its targets by their config.
    let mut used: BTreeMap<usize, BTreeMap<usize, &str>> = BTreeMap::new();
    for cell in cells {
        let target = &plan.targets[cell.target];
        let of_build = used.entry(target.build).or_default();
        of_build.entry(target.config).or_insert(&target.name);
    }
    let mut missing = Vec::new();
    let mut errors = Vec::new();
    let mut trials = Trials::default();
    let mut builds = Vec::new();
    for (build, targets) in used {
        let build = &plan.builds[build];
        let context = || format!("build `{}`", build.name);
        match missing_spec(build) {
            Ok(None) => {}
            Ok(Some(spec)) => {
                if !missing.contains(&spec) {
                    missing.push(spec);
                }
                continue;
            }
            Err(error) => {
                errors.push(error.context(context()));
                continue;
            }
        }
        let mut openings_of = Vec::new();
        if build.engine == Engine::RocksDb {
            for (config, target) in targets {
                let openings = openings(file, &plan.configs[config])?;
                openings_of.extend(openings.into_iter().map(|trial| (target, trial)));
            }
        }
        match locate_one(build, &openings_of, &mut trials) {
            Ok(located) => builds.push(located),
            Err(error) => errors.push(error.context(context())),
        }
    }
    if !missing.is_empty() {
        errors.push(not_fetched(&missing).into());
    }
    errors.extend(trials.errors());
    Several::of(errors)?;
    Ok(Located {
        builds,
        left_out: trials.left_out,
    })
}

/// The configs with which a database of RocksDB is opened, one after the other: where the plan has options for the load
/// alone, it is opened anew after it.
pub fn openings(file: &PlanFile, config: &Config) -> anyhow::Result<Vec<Trial>> {
    // One at most: more are refused before the run.
    let text = file.config_texts(config)?.pop();
    let mut openings = Vec::new();
    if !config.load.is_empty() {
        let set = [config.set.as_slice(), &config.load].concat();
        openings.push(Trial::new(config, set, text.clone()));
    }
    openings.push(Trial::new(config, config.set.clone(), text));
    Ok(openings)
}

/// What became of the configs that were tried.
#[derive(Default)]
struct Trials {
    left_out: BTreeMap<String, Vec<String>>,
    /// Why a config is refused, with the targets of which it is.
    refused: Vec<(Refusal, Vec<Refused>)>,
}

struct Refused {
    target: String,
    /// As the library tells it, with its version.
    told: Refusal,
}

impl Trials {
    fn add(&mut self, target: &str, version: &str, tried: library::Tried) {
        match tried {
            Ok(options) => {
                for option in options {
                    let targets = self.left_out.entry(option).or_default();
                    if targets.iter().all(|known| known != target) {
                        targets.push(target.to_owned());
                    }
                }
            }
            Err(told) => {
                // One mistake in a config is that of all versions.
                let general = |text: &String| text.replace(version, "the library");
                let refusal = Refusal {
                    causes: told.causes.iter().map(general).collect(),
                    help: told.help.as_ref().map(general),
                };
                let alike = self.refused.iter_mut().find(|(known, _)| *known == refusal);
                let target = target.to_owned();
                match alike {
                    Some((_, all)) if all.iter().any(|known| known.target == target) => {}
                    Some((_, all)) => all.push(Refused { target, told }),
                    None => self.refused.push((refusal, vec![Refused { target, told }])),
                }
            }
        }
    }

    fn errors(&mut self) -> impl Iterator<Item = anyhow::Error> {
        let refused = std::mem::take(&mut self.refused);
        refused.into_iter().map(|(general, mut all)| {
            let names: Vec<String> = all.iter().map(|it| format!("`{}`", it.target)).collect();
            let (refusal, word) = match all.pop() {
                Some(one) if all.is_empty() => (one.told, "target"),
                _ => (general, "targets"),
            };
            let (names, causes) = (names.join(", "), refusal.causes.join(": "));
            UsageError::new(format!("{word} {names}: {causes}"), refusal.help).into()
        })
    }
}

/// An installed build that a plan names.
pub struct Installed {
    /// What the engine is told to locate.
    pub place: String,
    /// The build of the store that it is; `None` for a directory of the user's or the distribution's build.
    stored: Option<Stored>,
}

/// Finds out what a plan means by `text`: a build of the store by name, spec or version; else what the engine itself
/// makes of it, a directory or the distribution's build.
pub fn installed(engine: Engine, text: &str) -> anyhow::Result<Installed> {
    let stored = stored(engine, text)?;
    let place = match &stored {
        Some(build) => {
            fetch::check(build, build.manifest.quick_check(&build.folder))?;
            build.path().display().to_string()
        }
        None if is_spec(text) => return Err(not_fetched(&[text]).into()),
        None => text.to_owned(),
    };
    Ok(Installed { place, stored })
}

/// What `assay fetch` would have to get for a build.
fn missing_spec(build: &Build) -> anyhow::Result<Option<&str>> {
    match &build.source {
        BuildSource::Installed(text) if is_spec(text) => {
            Ok(stored(build.engine, text)?.is_none().then_some(text))
        }
        _ => Ok(None),
    }
}

fn not_fetched(specs: &[&str]) -> UsageError {
    let names: Vec<String> = specs.iter().map(|spec| format!("`{spec}`")).collect();
    let (message, them) = match specs {
        [spec] => (format!("the build `{spec}` was not fetched"), "it"),
        _ => (
            format!(
                "{} builds were not fetched: {}",
                specs.len(),
                names.join(", ")
            ),
            "them",
        ),
    };
    let specs = specs.join(" ");
    UsageError::new(
        message,
        Some(format!(
            "`assay fetch {specs}` gets {them}; `assay builds` lists those that are here"
        )),
    )
}

fn stored(engine: Engine, text: &str) -> anyhow::Result<Option<Stored>> {
    // Without a place for builds there are none.
    match Store::of_user() {
        Ok(store) if Path::new(text).components().count() == 1 || is_spec(text) => {
            store.find(engine_name(engine), text)
        }
        _ => Ok(None),
    }
}

/// Whether it is written as `assay fetch` takes it, as no directory of a build is.
fn is_spec(text: &str) -> bool {
    !Path::new(text).exists() && fetch::is_spec(text)
}

impl Installed {
    /// The files that make the build, with their hashes: those that the engine names, or what the store has noted.
    fn hashes(&self, named: &[PathBuf]) -> anyhow::Result<Vec<FileHash>> {
        let Some(stored) = &self.stored else {
            return named.iter().map(|file| file_hash(file)).collect();
        };
        let mut hashes = Vec::new();
        for program in &stored.manifest.programs {
            let file = file_hash(&stored.folder.join(&program.path))?;
            let state = if file.sha256 == program.sha256 {
                Ok(())
            } else {
                Err(format!("`{}` has changed", file.path))
            };
            fetch::check(stored, state)?;
            hashes.push(file);
        }
        Ok(hashes)
    }
}

/// `openings` are what a library is tried with, each of a target.
fn locate_one(
    build: &Build,
    openings: &[(&str, Trial)],
    trials: &mut Trials,
) -> anyhow::Result<record::Build> {
    let (version, source, files) = match (build.engine, &build.source) {
        (Engine::Null, _) => (
            env!("CARGO_PKG_VERSION").to_owned(),
            "bundled".to_owned(),
            Vec::new(),
        ),
        (Engine::Sqlite, _) => (
            sqlite::version().to_owned(),
            "bundled".to_owned(),
            Vec::new(),
        ),
        (Engine::RocksDb, BuildSource::Installed(name)) => {
            let installed = installed(build.engine, name)?;
            let configs: Vec<Trial> = openings.iter().map(|(_, trial)| trial.clone()).collect();
            let (found, tried) = library::identify(Path::new(&installed.place), &configs)?;
            for ((target, _), tried) in openings.iter().zip(tried) {
                trials.add(target, &found.version, tried);
            }
            let files = installed.hashes(&[PathBuf::from(&found.path)])?;
            (found.version, found.path, files)
        }
        (Engine::Postgres, BuildSource::Url(url)) => (
            Postgres::attach(url.expose())?.version().to_owned(),
            url.redacted(),
            Vec::new(),
        ),
        (Engine::Postgres, BuildSource::Installed(name)) => {
            let installed = installed(build.engine, name)?;
            let found = postgres::locate(&installed.place)?;
            (
                found.version.text,
                found.bin_dir.display().to_string(),
                installed.hashes(&found.files)?,
            )
        }
        (Engine::Mysql, BuildSource::Url(url)) => (
            Mysql::attach(url.expose())?.version().to_owned(),
            url.redacted(),
            Vec::new(),
        ),
        (Engine::Mysql, BuildSource::Installed(name)) => {
            let installed = installed(build.engine, name)?;
            let found = mysql::locate(&installed.place)?;
            (
                found.version.text.clone(),
                found.program.display().to_string(),
                installed.hashes(&found.files)?,
            )
        }
        (Engine::Postgres | Engine::Mysql, BuildSource::Bundled)
        | (Engine::RocksDb, BuildSource::Bundled | BuildSource::Url(_)) => {
            unreachable!("a plan has no bundled server, and no library by URL")
        }
    };
    Ok(record::Build {
        name: build.name.clone(),
        engine: engine_name(build.engine).into(),
        version,
        source,
        files,
    })
}

fn file_hash(path: &Path) -> anyhow::Result<FileHash> {
    let (size_bytes, sha256) = hash::of_file(path)?;
    Ok(FileHash {
        path: path.display().to_string(),
        size_bytes,
        sha256,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::causes_of;

    fn refused(what: &str) -> library::Tried {
        Err(Refusal {
            causes: vec![format!("config: {what}")],
            help: None,
        })
    }

    #[test]
    fn a_mistake_in_a_config_is_told_once_with_the_targets_that_have_it() {
        let mut trials = Trials::default();
        for (target, version) in [("a.x", "RocksDB 6.0.1"), ("b.x", "RocksDB 9.9.3")] {
            // Twice, where the load has options of its own.
            for _ in 0..2 {
                trials.add(target, version, refused(&format!("{version} lacks `x`")));
            }
            trials.add(target, version, Ok(vec!["y".into()]));
        }
        trials.add(
            "a.z",
            "RocksDB 6.0.1",
            refused("RocksDB 6.0.1 has no such cache"),
        );
        let errors: Vec<String> = trials.errors().flat_map(|it| causes_of(&it)).collect();
        assert_eq!(
            errors,
            [
                "targets `a.x`, `b.x`: config: the library lacks `x`",
                "target `a.z`: config: RocksDB 6.0.1 has no such cache",
            ]
        );
        assert_eq!(trials.left_out["y"], ["a.x", "b.x"]);
    }
}
