//! `assay export`: writes the results of runs for other tools.

mod benchmarks;
mod latencies;
mod output;
mod partitions;
mod profiles;
mod selection;
mod tables;

use report::{Form, ProfileForm};
use runner::failure::UsageError;

use crate::cli::{ExportArgs, ExportFormat, ExportTable};
use crate::exit::Exit;
use partitions::write_partitions;
use selection::Selection;

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
        ExportFormat::Benchstat => return Selection::new(args)?.write_benchmarks(output),
        ExportFormat::Hdr => return Selection::new(args)?.write_latencies(output),
        ExportFormat::Folded => ProfileForm::Folded,
        ExportFormat::Pprof => ProfileForm::Pprof,
        ExportFormat::Firefox => ProfileForm::Firefox,
    };
    Selection::new(args)?.write_profiles(profile_form, output)
}

/// Writes the tables that `args` names.
fn export_tables(args: &ExportArgs, form: Form) -> anyhow::Result<Exit> {
    if !args.only.is_empty() && args.tables.contains(&ExportTable::Verdicts) {
        return Err(UsageError::new(
            "`--only` can't select rows of the table `verdicts`, whose comparisons need all cells",
            Some("export this table without `--only`".into()),
        )
        .into());
    }

    match &args.partition {
        Some(directory) => write_partitions(args, form, directory),
        None => Selection::new(args)?.write_tables(&args.tables, form, args.output.as_deref()),
    }
}
