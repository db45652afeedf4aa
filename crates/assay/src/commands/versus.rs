//! `assay versus` and `assay init`: plans for what the command line names.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use builds::{Spec, Store};
use plan::Engine;

use super::builds::fetch_each;
use crate::cli::{InitArgs, PlanArgs, RunArgs, VersusArgs, WorkloadName};
use crate::draft::{BASE, Draft, DraftBuild, DraftConfig, Template};
use crate::outcome::{Exit, Several, UsageError};
use crate::output::print;
use crate::{estimate, run};

/// Repeats without which there is no verdict.
const REPEATS_LEAST: u32 = 3;
/// A plan has no more.
const REPEATS_MOST: u64 = 1000;
/// Repeats of a first plan.
const REPEATS_USUAL: u32 = 5;

/// Builds that have a name of their own, and what plans call them.
const UNVERSIONED: [(&str, Engine, &str); 5] = [
    ("sqlite", Engine::Sqlite, "bundled"),
    ("postgres", Engine::Postgres, "distribution"),
    ("mysql", Engine::Mysql, "distribution"),
    ("mariadb", Engine::Mysql, "distribution"),
    ("null", Engine::Null, "bundled"),
];

/// What a quick run is good for.
const QUICK: &str = "3 repeats of steps of 1 s show large changes alone, and nothing that takes its time: checkpoints, vacuum, \
     compaction, a database that grows. `--minutes` shows more";

/// Returns the error of a command line that can't be followed.
fn refused<T>(message: impl Into<String>, help: impl Into<String>) -> anyhow::Result<T> {
    Err(UsageError::new(message, Some(help.into())).into())
}

/// Measures targets against each other: fetches what is missing, writes the plan and runs it.
pub fn versus(args: &VersusArgs) -> anyhow::Result<Exit> {
    let configs = configs(&args.configs)?;
    let mut found = find_all(&args.targets)?;
    let missing: Vec<Spec> = found.iter().filter_map(Found::missing).cloned().collect();
    if !args.dry_run && !missing.is_empty() {
        let mut errors = Vec::new();
        fetch_each(&missing, None, |fetched| {
            errors.extend(fetched.err());
            Ok(())
        })?;
        Several::of(errors)?;
        found = find_all(&args.targets)?;
    }
    let (builds, identities) = named(&args.targets, found)?;
    let has_base = configs.is_empty() || (builds.len() == 1 && configs.len() == 1 && !args.aa);
    refuse_twins(args, &identities, &configs)?;
    let template = template(args.workload, &builds, !configs.is_empty())?;
    let draft = Draft {
        head: String::new(),
        template,
        is_quick: args.quick,
        builds: &builds,
        clients: &args.clients,
        configs: &configs,
        has_base,
        is_against_itself: args.aa,
    };
    let count = builds.len() * draft.config_names().len();
    let first = &args.targets[0];
    match (args.aa, count) {
        (true, 1) | (false, 2..) => {}
        (true, _) => {
            return refused(
                format!("`--aa` measures one target against itself, not {count}"),
                format!("`assay versus --aa {first}`"),
            );
        }
        (false, _) => {
            return refused(
                format!("`{first}` is one target, and there is nothing to compare it with"),
                "name another one, give `--config OPTION=VALUE`, or measure it against itself with `--aa`",
            );
        }
    }
    let stem = stem(&draft, args.aa);
    let head = |path: &str| {
        let title = draft.template.title;
        let mut head = format!("{title}, small. Written by\n  {}\n", command_line());
        if args.quick {
            head += &format!("Quick: {QUICK}.\n");
        }
        head + &format!(
            "To measure something else, edit it, then\n  assay check {path}\n  assay run {path}"
        )
    };
    let repeats = repeats(args, &draft)?;
    let text_at = |path: &str| {
        let draft = Draft {
            head: head(path),
            ..draft
        };
        draft.text(repeats)
    };
    if args.dry_run {
        print(&text_at("PLAN"))?;
        return Ok(Exit::Ok);
    }
    let path = save(&args.place.results, &stem, text_at)?;
    if !args.place.quiet {
        eprintln!("plan: {}", path.display());
        if args.quick {
            eprintln!("quick: {QUICK}");
        }
    }
    run::run(&RunArgs {
        plan: PlanArgs {
            plan: Some(path),
            ..PlanArgs::default()
        },
        place: args.place.clone(),
        ..RunArgs::default()
    })
}

/// Writes a first plan.
pub fn init(args: &InitArgs) -> anyhow::Result<Exit> {
    let targets = [args.target.clone()];
    let found = find_all(&targets)?;
    let fetch = found[0]
        .missing()
        .map(|spec| format!("assay fetch {spec}; "));
    let (builds, _) = named(&targets, found)?;
    let configs = Vec::from_iter(DraftConfig::beside(builds[0].engine));
    let output = args.output.display();
    let next = format!(
        "{}assay check {output}; assay run {output}",
        fetch.unwrap_or_default()
    );
    let template = template(args.workload, &builds, false)?;
    let draft = Draft {
        head: format!(
            "{}, small, on {}. docs/plan.md has all keys.\n  {next}",
            template.title, args.target
        ),
        template,
        is_quick: false,
        builds: &builds,
        clients: &[1],
        configs: &configs,
        has_base: true,
        is_against_itself: false,
    };
    let text = draft.text(REPEATS_USUAL);
    let file = fs_err::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&args.output);
    let mut file = file.map_err(|error| {
        let help = match error.kind() {
            ErrorKind::AlreadyExists => "assay overwrites no plan: name another file with `-o`",
            _ => "name another file with `-o`",
        };
        UsageError::new(
            format!("the plan can't be written: {error}"),
            Some(help.into()),
        )
    })?;
    file.write_all(text.as_bytes())?;
    eprintln!("next: {next}");
    print(&format!("{output}\n"))?;
    Ok(Exit::Ok)
}

/// What a target on the command line is.
enum Found {
    /// A build that is here, or is looked for when the plan is read.
    Here {
        engine: Engine,
        /// What a plan calls it.
        source: String,
        /// What it is, whatever it is called.
        identity: String,
    },
    /// A build that was not fetched.
    Missing(Spec),
}

impl Found {
    fn missing(&self) -> Option<&Spec> {
        match self {
            Self::Here { .. } => None,
            Self::Missing(spec) => Some(spec),
        }
    }
}

fn find_all(targets: &[String]) -> anyhow::Result<Vec<Found>> {
    // Without a place for builds there are none.
    let store = Store::of_user().ok();
    targets.iter().map(|it| find(store.as_ref(), it)).collect()
}

/// Finds out what a target is: a build of the store by its name, an engine, or a spec.
fn find(store: Option<&Store>, target: &str) -> anyhow::Result<Found> {
    let here = |engine: &str, source: &str, identity: &str| {
        let named = Engine::NAMES.iter().find(|(name, _)| *name == engine);
        let (_, engine) = named.with_context(|| format!("`{engine}` is no engine of plans"))?;
        Ok(Found::Here {
            engine: *engine,
            source: source.to_owned(),
            identity: identity.to_owned(),
        })
    };
    if let Some(build) = store.map(|it| it.by_name(target)).transpose()?.flatten() {
        return here(&build.manifest.engine, target, target);
    }
    if let Some((_, engine, source)) = UNVERSIONED.iter().find(|(name, ..)| *name == target) {
        return here(engine.name(), source, engine.name());
    }
    if ["rocksdb", "speedb"].contains(&target) {
        let newest = store.map(|it| it.newest(target)).transpose()?.flatten();
        let Some(build) = newest else {
            let help =
                "name a version, as in `rocksdb@9.9.3`, which `assay versus` and `assay fetch` get";
            let message = format!("no build of `{target}` was fetched");
            return refused(message, help);
        };
        let name = &build.manifest.name;
        return here(&build.manifest.engine, name, name);
    }
    let spec = Spec::parse(target).map_err(|error| {
        let engines: Vec<&str> = UNVERSIONED.iter().map(|(name, ..)| *name).collect();
        let help = format!(
            "{}; or name one of `assay builds`, or an engine: `{}`, `rocksdb`, `speedb`",
            error.help(),
            engines.join("`, `")
        );
        UsageError::new(error.to_string(), Some(help))
    })?;
    let found = match (store, spec.engine()) {
        (None, _) => None,
        (Some(store), Some(engine)) => store.find(engine, target)?,
        (Some(store), None) => match &spec {
            Spec::Directory {
                name: Some(name), ..
            } => store.by_name(name)?,
            _ => store.by_spec(&spec.to_string())?,
        },
    };
    match found {
        None => Ok(Found::Missing(spec)),
        Some(build) => {
            let name = &build.manifest.name;
            let source = spec.engine().map_or(name.as_str(), |_| target);
            here(&build.manifest.engine, source, name)
        }
    }
}

/// Returns the builds with names for a plan, and what each is. One that was not fetched stands as it was asked for, where its
/// engine is known.
fn named(targets: &[String], found: Vec<Found>) -> anyhow::Result<(Vec<DraftBuild>, Vec<String>)> {
    let mut builds: Vec<DraftBuild> = Vec::new();
    let mut identities = Vec::new();
    for (target, found) in targets.iter().zip(found) {
        let (engine, source, identity) = match found {
            Found::Here {
                engine,
                source,
                identity,
            } => (engine, source, identity),
            Found::Missing(spec) => {
                let named = |(name, _): &&(&str, Engine)| spec.engine() == Some(*name);
                let Some((_, engine)) = Engine::NAMES.iter().find(named) else {
                    let message =
                        format!("which engine `{target}` is of is known once it is fetched");
                    let help = format!("`assay fetch {target}` gets it");
                    return refused(message, help);
                };
                (*engine, target.clone(), target.clone())
            }
        };
        let text = match source.as_str() {
            "bundled" | "distribution" => target,
            source => source,
        };
        let name = plan_name(&text.replace('@', ""));
        builds.push(DraftBuild {
            name,
            engine,
            source,
        });
        identities.push(identity);
    }
    Ok((builds, identities))
}

/// Returns text as a name in a plan.
fn plan_name(text: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || char == '-' || char == '_';
    let chars = text
        .chars()
        .map(|char| if is_plain(char) { char } else { '_' });
    chars.take(60).collect()
}

/// Returns the configs of `--config`.
fn configs(given: &[String]) -> anyhow::Result<Vec<DraftConfig>> {
    let mut configs: Vec<DraftConfig> = Vec::new();
    for (number, text) in (1..).zip(given) {
        let options = text.split_whitespace().map(|option| {
            let option = option.split_once('=').filter(|(name, _)| !name.is_empty());
            let (name, value) = option.ok_or_else(|| {
                let help = "write `--config 'OPTION=VALUE OPTION=VALUE'`; other options are for the plan: `--dry-run` prints it";
                UsageError::new(format!("`{text}` is no list of options"), Some(help.into()))
            })?;
            Ok((name.to_owned(), value.to_owned()))
        });
        let options = options.collect::<Result<Vec<_>, UsageError>>()?;
        let words: Vec<String> = options
            .iter()
            .map(|(name, value)| format!("{name}-{value}"))
            .collect();
        let mut name = plan_name(&words.join("_"));
        let is_taken = |name: &str| configs.iter().any(|other| other.name == name);
        if name.is_empty() || name.len() > 40 || name == BASE || is_taken(&name) {
            name = format!("config{number}");
        }
        configs.push(DraftConfig { name, options });
    }
    Ok(configs)
}

/// Refuses targets that are the same thing twice.
fn refuse_twins(
    args: &VersusArgs,
    identities: &[String],
    configs: &[DraftConfig],
) -> anyhow::Result<()> {
    let target = &args.targets[0];
    let help = |target: &str| {
        format!(
            "`assay versus --aa {target}` measures it against itself: what this machine calls a difference for no reason"
        )
    };
    for (index, identity) in identities.iter().enumerate() {
        if let Some(first) = identities[..index].iter().position(|it| it == identity) {
            let (one, other) = (&args.targets[first], &args.targets[index]);
            let message = match one == other {
                true => format!("`{one}` is there twice"),
                false => format!("`{one}` and `{other}` are the same build, `{identity}`"),
            };
            return Err(UsageError::new(message, Some(help(one))).into());
        }
    }
    for (index, config) in configs.iter().enumerate() {
        if configs[..index]
            .iter()
            .any(|it| it.options == config.options)
        {
            let message = format!("`--config '{}'` is there twice", args.configs[index]);
            return Err(UsageError::new(message, Some(help(target))).into());
        }
    }
    Ok(())
}

/// Returns the template of the workload that is asked for, or that suits the builds.
fn template(
    workload: Option<WorkloadName>,
    builds: &[DraftBuild],
    has_configs: bool,
) -> anyhow::Result<&'static Template> {
    let mut engines = builds.iter().map(|build| build.engine);
    let first = builds[0].engine;
    let is_mixed = engines.any(|engine| engine != first);
    if is_mixed && has_configs {
        let message = "`--config` has options of one engine, and the targets are of several";
        let help =
            "leave it out, or give each engine its configs in the plan, which `--dry-run` prints";
        return refused(message, help);
    }
    let workload = workload.or(is_mixed.then_some(WorkloadName::Insert));
    let template = Template::of(workload, first);
    if let Some(build) = builds
        .iter()
        .find(|build| !(template.runs_on)(build.engine))
    {
        let message = format!(
            "{} runs on {}, and `{}` is {}",
            template.title,
            template.engines,
            build.name,
            build.engine.name()
        );
        let help = "`--workload insert` runs on all engines";
        return refused(message, help);
    }
    Ok(template)
}

/// Returns how many repeats fit into the time that is given.
fn repeats(args: &VersusArgs, draft: &Draft<'_>) -> anyhow::Result<u32> {
    let parsed = plan::parse("versus.toml", &draft.text(1), &[]);
    // What is wrong with the plan is told when it is read.
    let (false, Ok((plan, _))) = (args.quick, parsed) else {
        return Ok(REPEATS_LEAST);
    };
    let each_s = estimate::of_plan(&plan).time.as_secs_f64();
    let repeats = (f64::from(args.minutes) * 60.0 / each_s) as u64;
    if repeats < u64::from(REPEATS_LEAST) {
        let minutes = (each_s * f64::from(REPEATS_LEAST) / 60.0).ceil();
        let message = format!(
            "{} min are too few: {REPEATS_LEAST} repeats, the least that verdicts need, take about {minutes} min",
            args.minutes
        );
        let help = format!("`--minutes {minutes}` measures them, `--quick` shorter steps");
        return refused(message, help);
    }
    Ok(repeats.min(REPEATS_MOST) as u32)
}

/// Returns the name of the plan's file: what is compared.
fn stem(draft: &Draft<'_>, is_against_itself: bool) -> String {
    let mut words = vec![match is_against_itself {
        true => "aa",
        false => "versus",
    }];
    words.extend(draft.builds.iter().map(|build| build.name.as_str()));
    words.extend(draft.configs.iter().map(|config| config.name.as_str()));
    words.join("-").chars().take(64).collect()
}

/// Writes a plan into a directory, beside other plans that are there; returns where it is.
fn save(directory: &Path, stem: &str, text_at: impl Fn(&str) -> String) -> anyhow::Result<PathBuf> {
    let unusable = |error: std::io::Error| {
        let help = "name another directory with `--results`";
        UsageError::new(
            format!("the plan can't be written: {error}"),
            Some(help.into()),
        )
    };
    fs_err::create_dir_all(directory).map_err(unusable)?;
    let mut number = 1;
    loop {
        let path = match number {
            1 => directory.join(format!("{stem}.toml")),
            _ => directory.join(format!("{stem}-{number}.toml")),
        };
        let text = text_at(&path.display().to_string());
        match fs_err::read_to_string(&path) {
            Ok(there) if there == text => return Ok(path),
            Ok(_) => number += 1,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                fs_err::write(&path, text).map_err(unusable)?;
                return Ok(path);
            }
            Err(error) => return Err(unusable(error).into()),
        }
    }
}

/// Returns the command line in one line, as a shell takes it.
fn command_line() -> String {
    let args = std::env::args().skip(1).filter(|arg| arg != "--dry-run");
    let args = args.map(|arg| {
        let arg = words::redact(&arg).replace(char::is_control, " ");
        let is_plain = |char: char| char.is_alphanumeric() || "@._-/=:,+".contains(char);
        match !arg.is_empty() && arg.chars().all(is_plain) {
            true => arg,
            false => format!("'{}'", arg.replace('\'', r"'\''")),
        }
    });
    let words: Vec<String> = std::iter::once("assay".to_owned()).chain(args).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config_names(given: &[&str]) -> Vec<String> {
        let given: Vec<String> = given.iter().map(|it| it.to_string()).collect();
        let configs = configs(&given).unwrap();
        configs.into_iter().map(|config| config.name).collect()
    }

    #[test]
    fn configs_have_the_names_of_their_options_where_these_are_short() {
        let long = format!("a={}", "x".repeat(50));
        assert_eq!(
            config_names(&["synchronous_commit=on", "a=1 b=2.5", "", "base=", &long]),
            [
                "synchronous_commit-on",
                "a-1_b-2_5",
                "config3",
                "base-",
                "config5"
            ]
        );
        assert_eq!(config_names(&["a=+", "a=*"]), ["a-_", "config2"]);
        for bad in ["jit", "=on", "jit on"] {
            assert!(configs(&[bad.to_owned()]).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_plan_that_was_edited_stays_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let results = directory.path().join("results");
        let saved = |text: &str| save(&results, "versus-a", |_| text.to_owned()).unwrap();
        assert_eq!(saved("one"), results.join("versus-a.toml"));
        assert_eq!(saved("one"), results.join("versus-a.toml"));
        assert_eq!(saved("two"), results.join("versus-a-2.toml"));
        assert_eq!(fs_err::read_to_string(saved("one")).unwrap(), "one");
    }
}
