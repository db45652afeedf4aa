//! The builds of a plan: finds them and says what they are, and whether they take their configs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use builds::{Spec, Store, hash};
use engine::limits::Limits;
use engine::mysql::{self, Mysql};
use engine::postgres::{self, Postgres};
use engine::sqlite::{self, Sqlite};
use engine::{Needs, Obstacle, ServerEngine, SetupError, StartOptions};
use plan::{Build, BuildSource, Config, Diagnostic, Engine, Place, Plan};
use record::FileHash;

use crate::library::{self, Refusal, Trial};
use crate::outcome::{Several, UsageError, causes_of, help_of, is_usage};
use crate::plan_file::{PlanFile, refusal};
use crate::preflight;

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

/// Finds the builds of a plan that these cells use, and has each try its configs. A server that assay doesn't start is
/// asked for its version. `data_root` is where databases will be made, where that is known.
///
/// # Errors
/// All that is wrong, at once.
pub fn locate(
    file: &PlanFile,
    cells: impl Iterator<Item = plan::Cell>,
    data_root: Option<&Path>,
) -> anyhow::Result<Located> {
    let plan = &file.plan;
    // By build, its targets by their config, and what its cells need of a server.
    let mut used: BTreeMap<usize, (BTreeMap<usize, &str>, Needs)> = BTreeMap::new();
    for cell in cells {
        let target = &plan.targets[cell.target];
        let needs = preflight::needs(&plan.variants[cell.variant], cell.clients);
        let (targets, most) = used
            .entry(target.build)
            .or_insert_with(|| (BTreeMap::new(), needs));
        targets.entry(target.config).or_insert(&target.name);
        most.connections = most.connections.max(needs.connections);
        most.makes_tables |= needs.makes_tables;
    }
    let mut missing = Vec::new();
    let mut errors = Vec::new();
    let mut diagnostics = Vec::new();
    let mut trials = Trials::default();
    let mut builds = Vec::new();
    for (build, (targets, needs)) in used {
        let build = &plan.builds[build];
        for (&config, &target) in &targets {
            if let Err(error) = limits_of(&plan.configs[config]).check() {
                trials.add(config, target, "", Err(library::refusal(error)));
            }
        }
        let mut configs = Configs {
            file,
            targets,
            needs,
            data_root,
            trials: &mut trials,
            obstacles: Vec::new(),
        };
        let located = match missing_spec(build) {
            Ok(None) => locate_one(build, &mut configs),
            Ok(Some(spec)) => {
                missing.push((spec, file.place_of_build(build)));
                continue;
            }
            Err(error) => Err(error),
        };
        diagnostics.extend(
            configs
                .obstacles
                .into_iter()
                .map(|Obstacle { what, help }| {
                    let message = format!("the server of build `{}`: {what}", build.name);
                    let place = file.place_of_build(build);
                    refusal("server::unfit", place, message, Some(&help))
                }),
        );
        let named = |error: anyhow::Error| error.context(format!("build `{}`", build.name));
        match located.map_err(named) {
            Ok(located) => builds.push(located),
            Err(error) if is_usage(&error) => {
                let is_of_data = error.chain().any(|cause| {
                    matches!(cause.downcast_ref(), Some(SetupError::Directory { .. }))
                });
                let place = match is_of_data {
                    true => file.place_of(|key| key == "data-dir"),
                    false => file.place_of_build(build),
                };
                let message = causes_of(&error).join(": ");
                let help = help_of(&error);
                diagnostics.push(refusal("build::unusable", place, message, help.as_deref()));
            }
            Err(error) => errors.push(error),
        }
    }
    diagnostics.extend(not_fetched_at(&missing));
    diagnostics.extend(trials.diagnostics(file));
    if let Err(refused) = file.refuse(&diagnostics) {
        errors.push(refused.into());
    }
    Several::of(errors)?;
    Ok(Located {
        builds,
        left_out: trials.left_out,
    })
}

/// The configs with which a build is measured.
struct Configs<'a> {
    file: &'a PlanFile,
    /// By config, a target that has it.
    targets: BTreeMap<usize, &'a str>,
    needs: Needs,
    data_root: Option<&'a Path>,
    trials: &'a mut Trials,
    /// What keeps the cells from a server that runs already.
    obstacles: Vec<Obstacle>,
}

impl Configs<'_> {
    /// Tries each by `try_config`, which says what is wrong with it.
    fn each(
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
                        Err(library::refusal(error))
                    }
                    _ => return Err(error),
                },
            };
            self.trials.add(index, target, version, tried);
        }
        Ok(())
    }

    /// Looks at a server that runs already, and returns its version.
    fn of_url(&mut self, server: &impl ServerEngine) -> anyhow::Result<String> {
        let obstacles = server.obstacles(self.needs);
        self.obstacles = obstacles.context("its limits and rights can't be read")?;
        Ok(server.version().to_owned())
    }

    /// Has the server in `place` read each.
    fn of_server(
        &mut self,
        version: &str,
        place: &str,
        read: fn(&StartOptions<'_>) -> Result<(), SetupError>,
    ) -> anyhow::Result<()> {
        let executable = std::env::current_exe().context("this program's own path is not known")?;
        let connections = preflight::estimate(&self.file.plan).connections;
        self.each(version, |this, config, target| {
            let plan = &this.file.plan;
            let data_root = this.data_root.map(|root| root.join(target));
            Ok(read(&StartOptions {
                build: place,
                data_dir: &data_root.unwrap_or_else(std::env::temp_dir),
                config_files: &this.file.config_texts(config)?,
                set: &config.set,
                user: plan.server_user.as_deref(),
                guard_exe: &executable,
                log: Path::new("log"),
                connections,
                limits: &Limits::default(),
                timeout: plan.server_timeout,
                stop: &AtomicBool::new(false),
            })?)
        })
    }
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
    /// The index of the config in the plan.
    config: usize,
    target: String,
    /// As the library tells it, with its version.
    told: Refusal,
}

impl Trials {
    fn add(&mut self, config: usize, target: &str, version: &str, tried: library::Tried) {
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
                let general = |text: &String| match version {
                    "" => text.clone(),
                    version => text.replace(version, "the build"),
                };
                let refusal = Refusal {
                    causes: told.causes.iter().map(general).collect(),
                    help: told.help.as_ref().map(general),
                };
                let alike = self.refused.iter_mut().find(|(known, _)| *known == refusal);
                let refused = Refused {
                    config,
                    target: target.to_owned(),
                    told,
                };
                match alike {
                    Some((_, all)) if all.iter().any(|known| known.target == target) => {}
                    Some((_, all)) => all.push(refused),
                    None => self.refused.push((refusal, vec![refused])),
                }
            }
        }
    }

    fn diagnostics(&self, file: &PlanFile) -> impl Iterator<Item = Diagnostic> {
        self.refused.iter().map(|(general, all)| {
            let names: Vec<String> = all.iter().map(|it| format!("`{}`", it.target)).collect();
            let (refusal, word) = match all.as_slice() {
                [one] => (&one.told, "target"),
                _ => (general, "targets"),
            };
            let complaint = refusal.causes.join(": ");
            let config = all.first().map(|one| &file.plan.configs[one.config]);
            let mut diagnostic = match config {
                Some(config) => file.refused_config(config, &complaint),
                None => Diagnostic::error("config::refused", Place::Nowhere, ""),
            };
            diagnostic.message = format!("{word} {}: {complaint}", names.join(", "));
            diagnostic.help.extend(refusal.help.clone());
            diagnostic
        })
    }
}

/// Returns what a config lets its target use.
pub fn limits_of(config: &plan::Config) -> Limits {
    Limits {
        memory_bytes: config.limits.memory_bytes,
        cpus: config.limits.cpus.clone(),
    }
}

/// An installed build that a plan names.
pub struct Installed {
    /// What the engine is told to locate.
    pub place: String,
    /// The build of the store that it is; `None` for a directory of the user's or the distribution's build.
    stored: Option<builds::Build>,
}

/// Finds out what a plan means by `text`: a build of the store by name, spec or version; else what the engine itself
/// makes of it, a directory or the distribution's build.
pub fn installed(engine: Engine, text: &str) -> anyhow::Result<Installed> {
    let stored = stored(engine, text)?;
    let place = match &stored {
        Some(build) => {
            build.check(build.manifest.quick_check(&build.folder))?;
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

/// Says which builds are to be fetched, at the places of those that name them.
fn not_fetched_at(missing: &[(&str, Place)]) -> Option<Diagnostic> {
    let (&(_, first), others) = missing.split_first()?;
    let mut specs: Vec<&str> = Vec::new();
    for (spec, _) in missing {
        if !specs.contains(spec) {
            specs.push(spec);
        }
    }
    let UsageError { message, help } = not_fetched(&specs);
    let diagnostic = refusal("build::not-fetched", first, message, help.as_deref());
    let with = |diagnostic: Diagnostic, (_, place): &(_, Place)| diagnostic.also(*place, "");
    Some(others.iter().fold(diagnostic, with))
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

fn stored(engine: Engine, text: &str) -> anyhow::Result<Option<builds::Build>> {
    // Without a place for builds there are none.
    match Store::of_user() {
        Ok(store) if Path::new(text).components().count() == 1 || is_spec(text) => {
            store.find(engine.name(), text)
        }
        _ => Ok(None),
    }
}

/// Whether it is written as `assay fetch` takes it, as no directory of a build is.
fn is_spec(text: &str) -> bool {
    !Path::new(text).exists() && Spec::parse(text).is_ok()
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
            stored.check(state)?;
            hashes.push(file);
        }
        Ok(hashes)
    }
}

/// Finds a build, and has it try its configs.
fn locate_one(build: &Build, configs: &mut Configs<'_>) -> anyhow::Result<record::Build> {
    let (version, source, files) = match (build.engine, &build.source) {
        (Engine::Null, _) => (
            env!("CARGO_PKG_VERSION").to_owned(),
            "bundled".to_owned(),
            Vec::new(),
        ),
        (Engine::Sqlite, _) => {
            let version = sqlite::version();
            let name = format!("SQLite {version}");
            configs.each(&name, |_, config, _| Ok(Sqlite::try_config(&config.set)?))?;
            (version.to_owned(), "bundled".to_owned(), Vec::new())
        }
        (Engine::RocksDb, BuildSource::Installed(name)) => {
            let installed = installed(build.engine, name)?;
            let (mut of, mut all) = (Vec::new(), Vec::new());
            for (&config, &target) in &configs.targets {
                let openings = openings(configs.file, &configs.file.plan.configs[config])?;
                of.extend(openings.iter().map(|_| (config, target)));
                all.extend(openings);
            }
            let (found, tried) = library::identify(Path::new(&installed.place), &all)?;
            for ((config, target), tried) in of.into_iter().zip(tried) {
                configs.trials.add(config, target, &found.version, tried);
            }
            let files = installed.hashes(&[PathBuf::from(&found.path)])?;
            (found.version, found.path, files)
        }
        (Engine::Postgres, BuildSource::Url(url)) => (
            configs.of_url(&Postgres::attach(url.expose())?)?,
            words::redact(url.expose()),
            Vec::new(),
        ),
        (Engine::Postgres, BuildSource::Installed(name)) => {
            let installed = installed(build.engine, name)?;
            let found = postgres::locate(&installed.place)?;
            let version = format!("PostgreSQL {}", found.version.text);
            configs.of_server(&version, &installed.place, Postgres::try_config)?;
            (
                found.version.text,
                found.bin_dir.display().to_string(),
                installed.hashes(&found.files)?,
            )
        }
        (Engine::Mysql, BuildSource::Url(url)) => (
            configs.of_url(&Mysql::attach(url.expose())?)?,
            words::redact(url.expose()),
            Vec::new(),
        ),
        (Engine::Mysql, BuildSource::Installed(name)) => {
            let installed = installed(build.engine, name)?;
            let found = mysql::locate(&installed.place)?;
            let version = found.version.to_string();
            configs.of_server(&version, &installed.place, Mysql::try_config)?;
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
        engine: build.engine.name().into(),
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
    use crate::plan_file;

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
        let file = plan_file::of_text(text);
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
