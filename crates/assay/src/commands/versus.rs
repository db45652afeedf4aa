//! `assay versus`: writes a plan for the targets on the command line, and runs it.

use plan::Reuse;
use plan::draft::{Draft, DraftBuild, DraftExact, DraftWorkload};
use runner::prepare::drafts::{
    NamedBuilds, configs, find_or_fetch, name_builds, reject_duplicates, reject_wrong_count,
    repeats, save, template,
};
use runner::prepare::target_builds::find_all;
use runner::{PlanRequest, RunRequest};

use super::run::run;
use crate::cli::VersusArgs;
use crate::exit::Exit;
use crate::output::print;

/// The limits of a quick run.
const QUICK: &str = "5 repeats of 0.6-second steps show only large changes, and no slow effects such as checkpoints, vacuum, \
     compaction, or a growing database. `--time` shows more";

/// Compares targets: fetches missing builds, writes the plan and runs it.
pub fn versus(args: &VersusArgs) -> anyhow::Result<Exit> {
    let configs = configs(&args.configs)?;
    let found = if args.dry_run {
        find_all(&args.targets)?
    } else {
        find_or_fetch(&args.targets, &|line| eprintln!("{line}"))?
    };
    let NamedBuilds { builds, identities } = name_builds(&args.targets, found)?;
    reject_duplicates(&args.targets, &args.configs, &identities, &configs)?;

    // One config of one build is compared with the build as it is.
    let has_base = configs.is_empty() || (builds.len() == 1 && configs.len() == 1 && !args.aa);
    // A server that Assay did not start can't be copied.
    let can_copy = !builds.iter().any(DraftBuild::is_foreign);
    let draft = Draft {
        head: String::new(),
        template: template(args.workload.map(DraftWorkload::from), &builds, !configs.is_empty())?,
        is_quick: args.quick,
        builds: &builds,
        clients: &args.clients,
        configs: &configs,
        has_base,
        is_against_itself: args.aa,
        reuse: if can_copy { args.load.reuse() } else { Reuse::Off },
        exact: args.exact.request.map(|exact| DraftExact { simulate: exact.simulate }),
    };
    reject_wrong_count(&args.targets[0], builds.len() * draft.config_names().len(), args.aa)?;
    let repeats = repeats(args.time, &draft, &args.sets)?;

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
        plan: PlanRequest { plan: Some(path), sets: args.sets.clone() },
        reuse: args.reuse.clone(),
        ..args.place.request()
    };
    run(&request, &args.place)
}

/// Returns the comment at the beginning of a plan that is written to `path`.
fn head(args: &VersusArgs, title: &str, path: &str) -> String {
    let mut head = format!("{title}, small. Written by\n  {}\n", command_line());
    if args.quick {
        head += &format!("Quick: {QUICK}.\n");
    }

    // The file itself has no changes of `--set`.
    let mut sets = String::new();
    for set in &args.sets {
        sets += &format!(" --set {}", words::shell_quoted(set));
    }

    head + &format!(
        "To measure something else, edit this file, then run\n  assay check {path}{sets}\n  assay run {path}{sets}"
    )
}

/// Returns the name of the plan's file without its extension, made of the builds and configs.
fn stem(draft: &Draft<'_>, is_against_itself: bool) -> String {
    let mut words = vec![if is_against_itself { "aa" } else { "versus" }];
    words.extend(draft.builds.iter().map(|build| build.name.as_str()));
    words.extend(draft.configs.iter().map(|config| config.name.as_str()));
    words.join("-").chars().take(64).collect()
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
