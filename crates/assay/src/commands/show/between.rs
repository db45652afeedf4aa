//! `assay show --between`: how the settings of two targets of a run differ.

use analysis::settings::RunSettings;
use inquiry::reading::pair_of;
use record::RunDir;
use report::{TableStyle, json_text};
use runner::failure::UsageError;

use crate::cli::Format;
use crate::exit::Exit;
use crate::output::print;

/// Prints how the settings of two targets of a run differ.
pub(super) fn show_between(
    directory: &RunDir,
    pair: &[String],
    format: Format,
    style: TableStyle,
) -> anyhow::Result<Exit> {
    let of_run = RunSettings::read(directory)?;
    let (a, b) = pair_of(pair, of_run.targets())?;
    let settings = of_run.between(a, b);

    let text = match format {
        Format::Table => report::differences(&settings, style),
        Format::Json => json_text(&analysis::settings_json(&settings))?,
        Format::Csv | Format::Markdown => {
            return Err(UsageError::new(
                "`--between` needs `--format table` or `--format json`",
                Some("remove `--format`, or choose one of these".into()),
            )
            .into());
        }
    };

    print(&text)?;
    Ok(Exit::Ok)
}
