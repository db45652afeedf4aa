//! `assay versus`: writes a plan for the targets on the command line, and runs it.

use std::path::Path;

use plan::Reuse;
use plan::draft::{
    Draft, DraftBuild, DraftConfig, DraftExact, DraftWorkload, commented, with_sets,
};
use runner::prepare::drafts::{self, NamedBuilds};
use runner::prepare::plan_file;
use runner::prepare::preflight::reject_impossible;
use runner::prepare::target_builds::find_all;
use runner::{PlanRequest, RunRequest};

use super::run::run;
use crate::cli::VersusArgs;
use crate::display::Display;
use crate::exit::Exit;
use crate::output::print;

/// The limits of a quick run.
const QUICK: &str = "5 repeats of 0.6-second steps show only large changes, and no slow effects such as checkpoints, vacuum, \
     compaction, or a growing database. `--time` shows more";

/// Compares targets: fetches missing builds, writes the plan and runs it.
pub fn versus(args: &VersusArgs) -> anyhow::Result<Exit> {
    // What is compared: each build with each config.
    let configs = drafts::configs(&args.configs)?;
    let NamedBuilds { builds, identities } = find_builds(args)?;
    drafts::reject_duplicates(&args.targets, &args.configs, &identities, &configs)?;

    // How: the workload, and as many repeats as the time allows.
    let draft = draft_of(args, &builds, &configs)?;
    let target_count = builds.len() * draft.config_names().len();
    drafts::reject_wrong_count(&args.targets[0], target_count, args.aa)?;
    let repeats = drafts::repeats(args.time, &draft, &args.sets)?;

    // The comment of the plan says how to run it again, so the text depends on its path.
    let title = draft.template.title;
    let file_stem = stem(&draft);
    let PlanBody { text, sets } = PlanBody::of(draft.text(repeats), &args.sets);
    let text_at = |path: &str| commented(&head(args, title, path, &sets)) + &text;
    if args.dry_run {
        refuse_invalid(args, &file_stem, text_at("PLAN"))?;
        print(&text_at("PLAN"))?;
        return Ok(Exit::Ok);
    }

    let path = drafts::save(&args.place.results, &file_stem, text_at)?;
    if !args.place.quiet {
        tell_of_plan(args, &path);
    }

    let request = RunRequest {
        plan: PlanRequest { plan: Some(path), sets: args.sets.clone() },
        reuse: args.reuse.clone(),
        ..args.place.request()
    };
    run(&request, &args.place)
}

/// The text of a plan below its comment.
struct PlanBody {
    text: String,
    /// The changes of `--set` that the text lacks.
    sets: Vec<String>,
}

impl PlanBody {
    /// Writes the values of `sets` into a plan, so that it measures alone what this command measures.
    /// A password stays outside. If one of the others replaces a whole table, all stay outside.
    fn of(drafted: String, sets: &[String]) -> Self {
        let (plain, secret): (Vec<String>, Vec<String>) =
            sets.iter().cloned().partition(|set| words::redact(set) == *set);
        match with_sets(&drafted, &plain) {
            Some(text) => Self { text, sets: secret },
            None => Self { text: drafted, sets: sets.to_vec() },
        }
    }
}

/// Refuses a plan that a run would refuse, without trying its builds. The plan is not saved, and
/// `stem` is the name that its file would have.
fn refuse_invalid(args: &VersusArgs, stem: &str, text: String) -> anyhow::Result<()> {
    let path = args.place.results.join(format!("{stem}.toml"));
    let display = Display::new(args.place.quiet);
    let file = plan_file::unsaved(path, text, args.sets.clone(), &display)?;
    reject_impossible(&file)
}

/// Finds the builds of the targets, and downloads those that are missing, except for a dry run.
fn find_builds(args: &VersusArgs) -> anyhow::Result<NamedBuilds> {
    let found = if args.dry_run {
        find_all(&args.targets)?
    } else {
        drafts::find_or_fetch(&args.targets, &|line| eprintln!("{line}"))?
    };
    drafts::name_builds(&args.targets, found)
}

/// Returns the contents of the plan, without the comment at its beginning.
fn draft_of<'a>(
    args: &'a VersusArgs,
    builds: &'a [DraftBuild],
    configs: &'a [DraftConfig],
) -> anyhow::Result<Draft<'a>> {
    let workload = args.workload.map(DraftWorkload::from);
    // One config of one build is compared with the build as it is.
    let has_base = configs.is_empty() || (builds.len() == 1 && configs.len() == 1 && !args.aa);
    // A server that Assay did not start cannot be copied.
    let can_copy = !builds.iter().any(DraftBuild::is_foreign);

    Ok(Draft {
        head: String::new(),
        template: drafts::template(workload, builds, !configs.is_empty())?,
        is_quick: args.quick,
        builds,
        clients: &args.clients,
        configs,
        has_base,
        is_against_itself: args.aa,
        reuse: if can_copy { args.load.reuse() } else { Reuse::Off },
        exact: args.exact.request.map(|exact| DraftExact { simulate: exact.simulate }),
    })
}

/// Prints where the plan is, and what a quick run cannot show.
fn tell_of_plan(args: &VersusArgs, path: &Path) {
    eprintln!("plan: {}", path.display());
    if args.quick {
        eprintln!("quick: {QUICK}");
    }
}

/// Returns the comment at the beginning of a plan that is written to `path`. The plan lacks `sets`.
fn head(args: &VersusArgs, title: &str, path: &str, sets: &[String]) -> String {
    let mut head = format!("{title}, small. Written by\n  {}\n", command_line());
    if args.quick {
        head += &format!("Quick: {QUICK}.\n");
    }

    let mut options = String::new();
    for set in sets {
        options += &format!(" --set {}", words::shell_quoted(&words::redact(set)));
    }

    head + &format!(
        "To measure something else, edit this file, then run\n  assay check {path}{options}\n  assay run {path}{options}"
    )
}

/// Returns the name of the plan's file without its extension, made of the builds and configs.
fn stem(draft: &Draft<'_>) -> String {
    let mut words = vec![if draft.is_against_itself { "aa" } else { "versus" }];
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
