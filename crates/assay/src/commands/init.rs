//! `assay init`: writes a first plan for an engine.

use std::io::{ErrorKind, Write as _};

use plan::draft::{Draft, DraftConfig, DraftRepeats, DraftWorkload};
use runner::failure::UsageError;
use runner::prepare::drafts::{NamedBuilds, REPEATS_DEFAULT, name_builds, template};
use runner::prepare::target_builds::find_all;

use crate::cli::InitArgs;
use crate::exit::Exit;
use crate::output::print;

/// Writes a first plan.
pub fn init(args: &InitArgs) -> anyhow::Result<Exit> {
    let targets = [args.target.clone()];
    let target_builds = find_all(&targets)?;
    let fetch = target_builds[0].missing().map(|spec| format!("assay fetch {spec}; "));
    let NamedBuilds { builds, .. } = name_builds(&targets, target_builds)?;
    let mut configs = Vec::new();
    // Assay cannot change the settings of a server that it does not start.
    if !builds[0].is_foreign() {
        configs.extend(DraftConfig::second_of(builds[0].engine));
    }

    let output = args.output.display();
    let next = format!("{}assay check {output}; assay run {output}", fetch.unwrap_or_default());

    let template = template(args.workload.map(DraftWorkload::from), &builds, false)?;
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
        reuse: plan::Reuse::Off,
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
