//! CPU profiles for viewers of other tools.

use std::path::Path;

use analysis::{
    distinct,
    figures::{Figures, ProfiledStep},
};
use inquiry::reading;
use inquiry::selection::Selection;
use record::RunDir;
use report::ProfileForm;
use runner::failure::UsageError;
use words::CellKind;

use super::output::write_to;
use crate::damages::exit_of_reading;
use crate::exit::Exit;
use crate::output::eprint_line;

/// Writes the profiles of all selected steps into one file.
pub(super) fn write_profiles(
    selection: &Selection,
    form: ProfileForm,
    output: Option<&Path>,
) -> anyhow::Result<Exit> {
    let (mut figures, _) = reading::figures(&selection.directories, |row| {
        row.series = analysis::figures::Series::default();
    })?;
    let directories: Vec<&Path> = selection.directories.iter().map(RunDir::path).collect();
    let exit = exit_of_reading(&figures, &directories);

    // As in a comparison, warm-ups only count if they are asked for.
    figures.profiled.retain(|step| {
        selection.has(&step.row) && (step.row.reported || !selection.steps.is_empty())
    });
    if figures.profiled.is_empty() {
        return Err(without_profiles(selection).into());
    }
    warn_of_left_out(&figures);

    let profiles = analysis::compare::merged_profiles(&figures);
    if profiles.is_empty() {
        eprint_line!("error: no selected step has a profile, so nothing was written");
        return Ok(Exit::Invalid);
    }

    let is_binary = form == ProfileForm::Pprof;
    write_to(output, form.file_name(), is_binary, |sink| Ok(form.write(&profiles, sink)?))?;
    Ok(exit)
}

/// Returns the error that no profiled step is selected, with the profiled cells.
fn without_profiles(selection: &Selection) -> UsageError {
    let cells = selection.runs.iter().flat_map(|run| &run.cells);
    let profiled = cells.filter(|cell| cell.key.kind == CellKind::Profiled);
    let names = distinct(profiled.map(|cell| format!("`{}`", cell.name())));

    let help = if names.is_empty() {
        "`assay run --resume RUN --profile` adds profiles to a run".into()
    } else {
        format!("profiled cells: {}", names.join(", "))
    };
    UsageError::new("no profiled step is selected", Some(help))
}

/// Warns about steps whose profiles don't count.
fn warn_of_left_out(figures: &Figures) {
    for ProfiledStep { row, profile, stacks } in &figures.profiled {
        let why = match &profile.missing {
            _ if !row.valid => format!("invalid: {}", row.reasons.join("; ")),
            Some(why) => why.clone(),
            None if stacks.total() == 0 => "no samples".to_owned(),
            None => continue,
        };

        let (step, cell, why) = (&row.step, &row.cell, report::terminal_text(&why));
        eprint_line!("warning: left out: {step} of {} (p{}): {why}", cell.target, cell.repeat);
    }
}
