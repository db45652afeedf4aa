//! The output of a comparison for systems of continuous integration: the judgments of `--gate` and
//! `--require`, as files and as annotations.

use std::path::Path;

use anyhow::Context;
use report::Judgement;
use runner::failure::UsageError;

use crate::cli::{AnnotationFormat, Annotations, CompareArgs};
use crate::output::print;

/// Refuses files that would have no judgments, and thresholds that would judge nothing.
pub(super) fn check(args: &CompareArgs) -> Result<(), UsageError> {
    if !args.thresholds.is_empty() && !args.gate {
        let message = "`--threshold` needs `--gate`: without it, nothing is judged";
        return Err(UsageError::new(message, Some("add `--gate`, or remove `--threshold`".into())));
    }

    if args.gate || !args.requirements.is_empty() {
        return Ok(());
    }

    let option = if args.junit.is_some() {
        "--junit"
    } else if args.annotations.is_some() {
        "--annotations"
    } else {
        return Ok(());
    };
    let message = format!("`{option}` needs judgments");
    Err(UsageError::new(message, Some("add `--gate`, or a bound with `--require`".into())))
}

/// Writes the files and annotations that the arguments ask for. `markdown` is the comparison.
pub(super) fn write(
    args: &CompareArgs,
    plan: Plan<'_>,
    judgements: &[Judgement],
    markdown: &str,
) -> anyhow::Result<()> {
    if let Some(path) = &args.junit {
        write_file(path, &report::junit(plan.name, judgements))?;
    }

    if let Some(path) = &args.markdown {
        let summary = match judgements {
            // Without judgments, the file is the comparison alone.
            [] => String::new(),
            some => report::judgements_markdown(some),
        };
        write_file(path, &(summary + markdown))?;
    }

    match &args.annotations {
        Some(Annotations { format: AnnotationFormat::Github, file }) => {
            let lines = report::github_annotations(judgements);
            match file {
                Some(path) => write_file(path, &lines)?,
                None => print(&lines)?,
            }
        }
        Some(Annotations { format: AnnotationFormat::Gitlab, file }) => {
            let path = file.as_deref().unwrap_or(Path::new("gl-code-quality-report.json"));
            write_file(path, &report::gitlab_report(plan.path, judgements))?;
        }
        None => {}
    }

    Ok(())
}

/// The plan of the first run.
#[derive(Clone, Copy)]
pub(super) struct Plan<'a> {
    pub(super) name: &'a str,
    pub(super) path: &'a str,
}

fn write_file(path: &Path, text: &str) -> anyhow::Result<()> {
    fs_err::write(path, text).context("cannot write the result of the comparison")
}
