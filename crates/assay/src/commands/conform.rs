//! `assay conform`: tests an adapter of a storage engine.

use conform::{EndedCheck, Request, Verdict};
use report::{columns, json_text, terminal_text};
use runner::failure::UsageError;

use crate::cli::{ConformArgs, ConformCheckArgs, TableFormat};
use crate::exit::Exit;
use crate::output::print;

/// Runs the checks, and prints what each found.
pub fn conform(args: &ConformArgs) -> anyhow::Result<Exit> {
    let Some(library) = &args.library else {
        print(&if args.header { engine::custom::HEADER.to_owned() } else { list() })?;
        return Ok(Exit::Ok);
    };

    refuse_unknown_checks(&args.only)?;
    if !library.exists() {
        let message = format!("`{}` does not exist", library.display());
        let help = "give the path of a shared library that includes `assay_engine.h`";
        return Err(UsageError::new(message, Some(help.into())).into());
    }

    let request = Request {
        program: std::env::current_exe()?,
        library: library.clone(),
        options: args.options.clone(),
        seed: args.seed,
        kills: args.kills,
        only: args.only.clone(),
    };
    let is_table = args.format == TableFormat::Table;
    let outcomes = conform::run(&request, &mut |outcome| {
        if is_table {
            // The rest continues even if nobody reads this.
            let _ = print(&line(outcome));
        }
    })?;

    if is_table {
        print(&sum(&outcomes))?;
    } else {
        print(&json_text(&serde_json::to_value(&outcomes)?)?)?;
    }

    let has_failed = outcomes.iter().any(|outcome| outcome.verdict.is_failure());
    Ok(if has_failed { Exit::Failed } else { Exit::Ok })
}

/// Runs the part of a check that standard input asks for.
pub fn check(args: &ConformCheckArgs) -> anyhow::Result<Exit> {
    conform::run_check(&args.check, std::io::stdin())?;
    Ok(Exit::Ok)
}

fn list() -> String {
    let lines: Vec<[String; 2]> =
        conform::checks().map(|(name, promise)| [name.to_owned(), promise.to_owned()]).collect();
    columns(&lines)
}

fn refuse_unknown_checks(names: &[String]) -> anyhow::Result<()> {
    let is_known = |name: &&String| conform::checks().any(|(known, _)| known == name.as_str());
    let Some(name) = names.iter().find(|name| !is_known(name)) else {
        return Ok(());
    };

    let help = "`assay conform --list` lists the checks";
    Err(UsageError::new(format!("there is no check `{name}`"), Some(help.into())).into())
}

/// Returns the line of a check, and why it did not pass.
fn line(outcome: &EndedCheck) -> String {
    let (word, why) = match &outcome.verdict {
        Verdict::Passed => ("ok", None),
        Verdict::Failed(why) => ("FAILED", Some(why)),
        Verdict::NotApplicable(why) => ("n/a", Some(why)),
    };

    let mut text = format!("{word:<7} {:<14} {}\n", outcome.check, outcome.promise);
    if let Some(why) = why {
        text += &format!("        {:<14} {}\n", "", terminal_text(why));
    }

    text
}

/// Returns the last line: how many checks passed, failed, and did not apply.
fn sum(outcomes: &[EndedCheck]) -> String {
    let count = |is_wanted: fn(&Verdict) -> bool| {
        outcomes.iter().filter(|outcome| is_wanted(&outcome.verdict)).count()
    };

    let passed = count(|verdict| *verdict == Verdict::Passed);
    let failed = count(Verdict::is_failure);
    let others = count(|verdict| matches!(verdict, Verdict::NotApplicable(_)));

    let end = if failed == 0 { "the adapter keeps its promises" } else { "don't measure it yet" };
    format!("\n{passed} passed, {failed} failed, {others} not applicable: {end}\n")
}
