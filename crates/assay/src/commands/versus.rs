//! `assay versus` and `assay init`: write a plan for the targets on the command line.

mod named_builds;

use std::io::{ErrorKind, Read as _, Write};
use std::path::{Path, PathBuf};

use builds::Spec;
use plan::Reuse;
use runner::failure::{Errors, UsageError, usage};
use runner::prepare::estimate;
use runner::prepare::fetching::fetch_each;
use runner::prepare::target_builds::{TargetBuild, find_all, plan_name};
use runner::{PlanRequest, RunRequest};

use super::run::run;
use crate::cli::{InitArgs, VersusArgs, WorkloadName};
use crate::draft::{BASE, Draft, DraftBuild, DraftConfig, DraftRepeats, Template};
use crate::exit::Exit;
use crate::output::print;
use named_builds::{NamedBuilds, name_builds};

/// The minimum number of repeats for verdicts.
const REPEATS_MIN: u32 = 3;
/// The number of repeats of a first plan.
const REPEATS_DEFAULT: u32 = 5;

/// The repeats of a quick run: five short steps show more than three that are longer, since each
/// repeat is one value (`docs/statistics.md`).
const QUICK_REPEATS: u32 = 5;

/// The limits of a quick run.
const QUICK: &str = "5 repeats of 0.6-second steps show only large changes, and no slow effects such as checkpoints, vacuum, \
     compaction, or a growing database. `--minutes` shows more";

/// Compares targets: fetches missing builds, writes the plan and runs it.
pub fn versus(args: &VersusArgs) -> anyhow::Result<Exit> {
    let configs = configs(&args.configs)?;
    let found = find_or_fetch(args)?;
    let NamedBuilds { builds, identities } = name_builds(&args.targets, found)?;
    reject_duplicates(args, &identities, &configs)?;

    // One config of one build is compared with the build as it is.
    let has_base = configs.is_empty() || (builds.len() == 1 && configs.len() == 1 && !args.aa);
    // A server that Assay did not start can't be copied.
    let can_copy = !builds.iter().any(DraftBuild::is_foreign);
    let draft = Draft {
        head: String::new(),
        template: template(args.workload, &builds, !configs.is_empty())?,
        is_quick: args.quick,
        builds: &builds,
        clients: &args.clients,
        configs: &configs,
        has_base,
        is_against_itself: args.aa,
        reuse: if can_copy { args.load.reuse() } else { Reuse::Off },
        exact: args.exact.request,
    };
    reject_wrong_count(args, builds.len() * draft.config_names().len())?;
    let repeats = repeats(args, &draft)?;

    let stem = stem(&draft, args.aa);
    let title = draft.template.title;
    let text_at = |path: &str| Draft { head: head(args, title, path), ..draft }.text(repeats);

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

    let request = RunRequest {
        plan: PlanRequest { plan: Some(path), ..PlanRequest::default() },
        reuse: args.reuse.clone(),
        ..args.place.request()
    };
    run(&request, &args.place)
}

/// Finds the builds of the targets, and downloads those that are missing unless the run is only
/// rehearsed.
fn find_or_fetch(args: &VersusArgs) -> anyhow::Result<Vec<TargetBuild>> {
    let found = find_all(&args.targets)?;
    let missing: Vec<Spec> = found.iter().filter_map(TargetBuild::missing).cloned().collect();
    if args.dry_run || missing.is_empty() {
        return Ok(found);
    }

    let mut errors = Vec::new();
    let say = |line: &str| eprintln!("{line}");
    fetch_each(&missing, None, &say, |fetched| {
        errors.extend(fetched.err());
        Ok(())
    })?;

    Errors::combine(errors)?;
    find_all(&args.targets)
}

/// Refuses a single target without anything to compare it with, and several with `--aa`.
fn reject_wrong_count(args: &VersusArgs, count: usize) -> anyhow::Result<()> {
    let first = &args.targets[0];
    if args.aa && count != 1 {
        return usage(
            format!("`--aa` compares one target with itself, but {count} targets are given"),
            format!("for example: `assay versus --aa {first}`"),
        );
    }
    if !args.aa && count < 2 {
        return usage(
            format!("there is nothing to compare: `{first}` is the only target"),
            "name another target, add `--config OPTION=VALUE`, or compare the target with itself with `--aa`",
        );
    }
    Ok(())
}

/// Returns the comment at the beginning of a plan that is written to `path`.
fn head(args: &VersusArgs, title: &str, path: &str) -> String {
    let mut head = format!("{title}, small. Written by\n  {}\n", command_line());
    if args.quick {
        head += &format!("Quick: {QUICK}.\n");
    }

    head + &format!(
        "To measure something else, edit this file, then run\n  assay check {path}\n  assay run {path}"
    )
}

/// Writes a first plan.
pub fn init(args: &InitArgs) -> anyhow::Result<Exit> {
    let targets = [args.target.clone()];
    let target_builds = find_all(&targets)?;
    let fetch = target_builds[0].missing().map(|spec| format!("assay fetch {spec}; "));
    let NamedBuilds { builds, .. } = name_builds(&targets, target_builds)?;
    let mut configs = Vec::new();
    // Assay can't change the settings of a server that it does not start.
    if !builds[0].is_foreign() {
        configs.extend(DraftConfig::second_of(builds[0].engine));
    }

    let output = args.output.display();
    let next = format!("{}assay check {output}; assay run {output}", fetch.unwrap_or_default());

    let template = template(args.workload, &builds, false)?;
    let draft = Draft {
        head: format!(
            "{}, small, on {}. docs/plan.md describes all keys.\n  {next}",
            template.title, args.target
        ),
        template,
        is_quick: false,
        builds: &builds,
        clients: &[1],
        configs: &configs,
        has_base: true,
        is_against_itself: false,
        reuse: Reuse::Off,
        exact: None,
    };
    let text = draft.text(DraftRepeats::Count(REPEATS_DEFAULT));

    let created = fs_err::OpenOptions::new().write(true).create_new(true).open(&args.output);
    let mut file = created.map_err(|error| {
        let help = match error.kind() {
            ErrorKind::AlreadyExists => {
                "assay does not overwrite plans: choose another file with `-o FILE`"
            }
            _ => "choose another file with `-o FILE`",
        };
        UsageError::new(format!("cannot write the plan: {error}"), Some(help.into()))
    })?;
    file.write_all(text.as_bytes())?;

    print(&format!("{output}\n"))?;
    eprintln!("next: edit the plan; {next}");
    Ok(Exit::Ok)
}

/// Parses the arguments of `--config`.
fn configs(arguments: &[String]) -> anyhow::Result<Vec<DraftConfig>> {
    let mut configs: Vec<DraftConfig> = Vec::new();
    for (number, text) in (1..).zip(arguments) {
        let mut options = Vec::new();
        for option in text.split_whitespace() {
            match option.split_once('=') {
                Some((name, value)) if !name.is_empty() => {
                    options.push((name.to_owned(), value.to_owned()));
                }
                _ => {
                    let help = "write `--config 'OPTION=VALUE OPTION=VALUE'`; for anything else, edit the plan that `--dry-run` prints";
                    let message = format!("`--config '{text}'`: expected options as OPTION=VALUE");
                    return Err(UsageError::new(message, Some(help.into())).into());
                }
            }
        }

        let words: Vec<String> =
            options.iter().map(|(name, value)| format!("{name}-{value}")).collect();
        let mut name = plan_name(&words.join("_"));

        let is_taken = |name: &str| configs.iter().any(|other| other.name == name);
        if name.is_empty() || name.len() > 40 || name == BASE || is_taken(&name) {
            // The options make no usable name.
            name = format!("config{number}");
        }

        configs.push(DraftConfig { name, options });
    }

    Ok(configs)
}

/// Rejects builds and configs that are given twice.
fn reject_duplicates(
    args: &VersusArgs,
    identities: &[String],
    configs: &[DraftConfig],
) -> anyhow::Result<()> {
    let help = |target: &str| {
        format!(
            "to measure the noise of this machine, compare one target with itself: `assay versus --aa {target}`"
        )
    };

    for (index, identity) in identities.iter().enumerate() {
        if let Some(first) = identities[..index].iter().position(|known| known == identity) {
            let (one, other) = (&args.targets[first], &args.targets[index]);
            let message = if one == other {
                format!("`{one}` is given twice")
            } else {
                format!("`{one}` and `{other}` are the same build, `{identity}`")
            };
            return Err(UsageError::new(message, Some(help(one))).into());
        }
    }

    for (index, config) in configs.iter().enumerate() {
        if configs[..index].iter().any(|known| known.options == config.options) {
            let message = format!("`--config '{}'` is given twice", args.configs[index]);
            return Err(UsageError::new(message, Some(help(&args.targets[0]))).into());
        }
    }

    Ok(())
}

/// Returns the template of `workload`, or of the default workload of the builds.
fn template(
    workload: Option<WorkloadName>,
    builds: &[DraftBuild],
    has_configs: bool,
) -> anyhow::Result<&'static Template> {
    let mut engines = builds.iter().map(|build| build.engine);
    let first = builds[0].engine;
    let is_mixed = engines.any(|engine| engine != first);
    if is_mixed && has_configs {
        let message =
            "`--config` sets options of one engine, but the targets belong to several engines";
        let help = "remove `--config`, or edit the plan that `--dry-run` prints and give each engine its configs";
        return usage(message, help);
    }

    let is_foreign = builds[0].is_foreign();
    if builds.iter().any(|build| build.is_foreign() != is_foreign) {
        let message = "some targets are servers at URLs, and others are builds that Assay starts";
        let help = "compare targets of one kind; docs/plan.md has plans with both";
        return usage(message, help);
    }
    if is_foreign && has_configs {
        let message =
            "`--config` sets options of servers that Assay starts, but the targets are URLs";
        return usage(message, "set the options of the servers themselves, and remove `--config`");
    }

    // Only the Insert Benchmark runs on all engines.
    let default_workload = is_mixed.then_some(WorkloadName::Insert);
    let template = Template::of(workload.or(default_workload), first);
    if let Some(build) = builds.iter().find(|build| !(template.runs_on)(build.engine)) {
        let message = format!(
            "{} runs only on {}, but the engine of `{}` is {}",
            template.title,
            template.engines,
            build.name,
            build.engine.name()
        );
        let help = "choose `--workload insert`, which runs on all engines";
        return usage(message, help);
    }

    Ok(template)
}

/// Returns the repeats of the plan: until all is decided, for the time of `--minutes`. The noise of
/// one target is measured with as many repeats as fit into that time.
fn repeats(args: &VersusArgs, draft: &Draft<'_>) -> anyhow::Result<DraftRepeats> {
    if args.quick {
        return Ok(DraftRepeats::Count(QUICK_REPEATS));
    }
    // Errors of the plan are reported when it is read to be run.
    let (Some(one_s), Some(two_s)) = (estimated_s(draft, 1), estimated_s(draft, 2)) else {
        return Ok(DraftRepeats::Count(REPEATS_MIN));
    };

    // The first repeat may take longer, since it loads.
    let each_s = two_s - one_s;

    let repeats = (1.0 + (f64::from(args.minutes) * 60.0 - one_s) / each_s) as u64;
    if repeats < u64::from(REPEATS_MIN) {
        let least_s = one_s + each_s * f64::from(REPEATS_MIN - 1);
        let minutes = (least_s / 60.0).ceil();
        let message = format!(
            "`--minutes {}` is too short: verdicts need at least {REPEATS_MIN} repeats, which take about {minutes} min",
            args.minutes
        );
        let help = format!("use `--minutes {minutes}`, or `--quick` for shorter steps");
        return usage(message, help);
    }

    Ok(if args.aa {
        DraftRepeats::Count(repeats.min(plan::REPEATS_MAX.into()) as u32)
    } else {
        DraftRepeats::UntilDecided { minutes: args.minutes }
    })
}

/// Returns the estimated time of this number of repeats in seconds; `None` if the plan has errors.
fn estimated_s(draft: &Draft<'_>, repeats: u32) -> Option<f64> {
    let (plan, _) =
        plan::parse("versus.toml", &draft.text(DraftRepeats::Count(repeats)), &[]).ok()?;
    Some(estimate::of_plan(&plan).time.as_secs_f64())
}

/// Returns the name of the plan's file without its extension, made of the builds and configs.
fn stem(draft: &Draft<'_>, is_against_itself: bool) -> String {
    let mut words = vec![if is_against_itself { "aa" } else { "versus" }];
    words.extend(draft.builds.iter().map(|build| build.name.as_str()));
    words.extend(draft.configs.iter().map(|config| config.name.as_str()));
    words.join("-").chars().take(64).collect()
}

/// Writes a plan into a directory without overwriting other plans, and returns its path.
fn save(directory: &Path, stem: &str, text_at: impl Fn(&str) -> String) -> anyhow::Result<PathBuf> {
    fs_err::create_dir_all(directory).map_err(cannot_write)?;

    let mut number = 1;
    loop {
        let path = match number {
            1 => directory.join(format!("{stem}.toml")),
            _ => directory.join(format!("{stem}-{number}.toml")),
        };
        let text = text_at(&path.display().to_string());

        // The directory may be shared, so nothing that is already there is written to.
        match fs_err::File::create_new(&path) {
            Ok(mut file) => {
                file.write_all(text.as_bytes()).map_err(cannot_write)?;
                return Ok(path);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                // A plan that says the same is used again, so that repeated commands leave one.
                if has_text(&path, &text).unwrap_or(false) {
                    return Ok(path);
                }
                number += 1;
            }
            Err(error) => return Err(cannot_write(error).into()),
        }
    }
}

fn cannot_write(error: std::io::Error) -> UsageError {
    let help = "choose another directory with `--results DIR`";
    UsageError::new(format!("cannot write the plan: {error}"), Some(help.into()))
}

/// Returns whether the file at `path` has exactly this text. Reads no more than that.
fn has_text(path: &Path, text: &str) -> std::io::Result<bool> {
    let mut start = Vec::new();
    record::open_regular(path)?.take(text.len() as u64 + 1).read_to_end(&mut start)?;
    Ok(start == text.as_bytes())
}

/// Returns the command line as one line, quoted for a shell.
fn command_line() -> String {
    let mut line = "assay".to_owned();
    for arg in std::env::args().skip(1).filter(|arg| arg != "--dry-run") {
        let word = words::redact(&arg).replace(char::is_control, " ");
        line += &format!(" {}", words::shell_quoted(&word));
    }

    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config_names(given: &[&str]) -> Vec<String> {
        let given: Vec<String> = given.iter().map(|given| given.to_string()).collect();
        let configs = configs(&given).unwrap();
        configs.into_iter().map(|config| config.name).collect()
    }

    #[test]
    fn a_plan_is_not_saved_through_a_link() {
        let results = tempfile::tempdir().unwrap();
        let target = results.path().join("target");
        std::os::unix::fs::symlink(&target, results.path().join("a.toml")).unwrap();
        let text = |_: &str| "seed = 1".to_owned();
        let path = save(results.path(), "a", text).unwrap();
        assert_eq!(path, results.path().join("a-2.toml"));
        assert!(!target.exists());
        // The same plan is not saved again.
        assert_eq!(save(results.path(), "a", text).unwrap(), path);
    }

    #[test]
    fn configs_have_the_names_of_their_options_where_these_are_short() {
        let long = format!("a={}", "x".repeat(50));
        assert_eq!(
            config_names(&["synchronous_commit=on", "a=1 b=2.5", "", "base=", &long]),
            ["synchronous_commit-on", "a-1_b-2_5", "config3", "base-", "config5"]
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
