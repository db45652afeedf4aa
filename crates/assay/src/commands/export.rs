//! `assay export`: writes the results of runs for other tools.

mod benchmarks;
mod latencies;
mod new_file;
mod output;
mod partitions;
mod profiles;
mod tables;
mod verdicts;

use std::path::Path;

use inquiry::selection::Selection;
use record::RunDir;
use report::{Form, ProfileForm};
use runner::failure::UsageError;

use self::benchmarks::write_benchmarks;
use self::latencies::write_latencies;
use self::partitions::write_partitions;
use self::profiles::write_profiles;
use self::tables::write_tables;
use crate::cli::{ExportArgs, ExportFormat, ExportTable};
use crate::damages::say_help_for_damage;
use crate::exit::Exit;
use crate::output::eprint_plain;

/// Writes the results of runs in the format that `args` names.
pub fn export(args: &ExportArgs) -> anyhow::Result<Exit> {
    let is_of_tables = matches!(args.format, ExportFormat::Csv | ExportFormat::Parquet);
    if !is_of_tables && (!args.tables.is_empty() || args.partition.is_some()) {
        return Err(UsageError::new(
            "`--table` and `--partition` need `--format csv` or `--format parquet`",
            Some("remove them, or choose one of these formats".into()),
        )
        .into());
    }

    let output = args.output.as_deref();
    // Profiles of all forms are selected and merged in the same way.
    let profile_form = match args.format {
        ExportFormat::Csv => return export_tables(args, Form::Csv),
        ExportFormat::Parquet => return export_tables(args, Form::Parquet),
        ExportFormat::Benchstat => return write_benchmarks(&selected(args)?, output),
        ExportFormat::Hdr => return write_latencies(&selected(args)?, output),
        ExportFormat::Folded => ProfileForm::Folded,
        ExportFormat::Pprof => ProfileForm::Pprof,
        ExportFormat::Firefox => ProfileForm::Firefox,
    };
    write_profiles(&selected(args)?, profile_form, output)
}

/// Writes the tables that `args` names.
fn export_tables(args: &ExportArgs, form: Form) -> anyhow::Result<Exit> {
    if !args.only.is_empty() && args.tables.contains(&ExportTable::Verdicts) {
        return Err(UsageError::new(
            "`--only` cannot select rows of the table `verdicts`, whose comparisons need all cells",
            Some("export this table without `--only`".into()),
        )
        .into());
    }

    match &args.partition {
        Some(directory) => write_partitions(args, form, directory),
        None => write_tables(&selected(args)?, &args.tables, form, args.output.as_deref()),
    }
}

/// Returns what the arguments choose.
fn selected(args: &ExportArgs) -> anyhow::Result<Selection> {
    Selection::new(&args.runs, &args.steps, &args.only, eprint_plain)
}

/// Returns the exit code of an export that was written, after saying what to do about damage.
fn exit_of(selection: &Selection) -> Exit {
    let Some(damage) = selection.seen_damage() else {
        return Exit::Ok;
    };

    let directories: Vec<&Path> = selection.directories.iter().map(RunDir::path).collect();
    say_help_for_damage(&damage, &directories);
    Exit::Failed
}
