//! The text of a bundle: a finding as a bug report in Markdown.

use analysis::settings::Settings;

use super::writer::TerminalWriter;
use crate::model::comparison::Comparison;
use crate::model::table::{Cell, Table, TableRow};
use crate::prose::answer;
use crate::prose::method::Method;
use crate::tables::compared::{self, Board};

/// The facts of a finding beside its comparison, as a bug report shows them.
#[derive(Clone, Debug, Default)]
pub struct BundleFacts {
    /// The finding in one sentence.
    pub title: String,
    /// The step, and the way in which it was run.
    pub summary: Vec<String>,
    /// The programs that were measured.
    pub builds: Vec<BundleProgram>,
    /// Facts of the machine, with their values.
    pub host: Vec<(String, String)>,
    /// The parts that another machine cannot repeat, and those that the bundle lacks.
    pub limits: Vec<String>,
    /// The commands that repeat the finding, each with its purpose.
    pub commands: Vec<BundleCommand>,
    /// The other files of the bundle, with their contents.
    pub files: Vec<(String, String)>,
}

/// A program or library that was measured.
#[derive(Clone, Debug, Default)]
pub struct BundleProgram {
    /// The build's name in the plan.
    pub build: String,
    /// The version, as the engine reports it.
    pub version: String,
    /// The source in the plan of the bundle.
    pub source: String,
    /// The file's name.
    pub file: String,
    /// The SHA-256 of the file in hexadecimal.
    pub sha256: String,
}

/// A command that repeats a finding.
#[derive(Clone, Debug)]
pub struct BundleCommand {
    /// The purpose, as a sentence without a period.
    pub purpose: String,
    /// The command.
    pub command: String,
}

/// Formats a finding as a bug report. Without `details`, it has only the verdict, its explanation,
/// and what repeats it.
pub fn bundle_readme(
    comparison: &Comparison<'_>,
    settings: &Settings,
    facts: &BundleFacts,
    details: bool,
) -> String {
    let mut out = TerminalWriter::markdown();
    out.main_title(&facts.title);
    for line in &facts.summary {
        out.line(line);
    }
    out.findings(comparison.findings);

    let answer = answer::passage(comparison);
    out.tables(answer.figures.iter().cloned());
    if let Some(doubt) = &answer.doubt {
        out.warning(doubt);
    }

    let board = Board::new(comparison);
    out.tables(compared::other_verdicts(&board));
    out.tables(compared::work(comparison));
    write_repeating(&mut out, facts);

    out.title("What differs");
    out.setting_blocks(settings);
    out.table(&programs(&facts.builds));
    out.table(&host(&facts.host));

    out.title("How it was compared");
    out.method(&Method::of_comparison(comparison.compared));

    if details {
        out.tables(compared::functions::tables(comparison.figures, &comparison.compared.profiles));
        out.tables(compared::costs(&board));
        out.tables(compared::waits(comparison));
        out.tables(compared::system_calls(comparison));
        out.tables(compared::plans(comparison));
    }

    out.finish()
}

/// Writes how to repeat the finding, and what cannot be repeated.
fn write_repeating(out: &mut TerminalWriter, facts: &BundleFacts) {
    out.title("Repeat it");

    for BundleCommand { purpose, command } in &facts.commands {
        out.line(&format!("{purpose}:"));
        out.verbatim(command);
        out.gap();
    }

    for limit in &facts.limits {
        out.wrapped(" ", limit);
    }

    if !facts.files.is_empty() {
        out.gap();
        out.line("The bundle also has:");
        for (name, content) in &facts.files {
            out.wrapped(" ", &format!("`{name}`: {content}"));
        }
    }
}

fn programs(programs: &[BundleProgram]) -> Table {
    let row = |program: &BundleProgram| {
        let BundleProgram { build, version, source, file, sha256 } = program.clone();
        TableRow {
            lead: vec![build, version, source, file],
            cells: vec![Cell::plain(format!("`{sha256}`"))],
            ..TableRow::default()
        }
    };

    Table {
        id: "builds".into(),
        title: "Builds".into(),
        lead: ["build", "version", "source", "file"].map(str::to_owned).into(),
        columns: vec!["SHA-256".into()],
        rows: programs.iter().map(row).collect(),
        ..Table::default()
    }
}

fn host(facts: &[(String, String)]) -> Table {
    let row = |(name, value): &(String, String)| TableRow {
        lead: vec![name.clone()],
        cells: vec![Cell::plain(value)],
        ..TableRow::default()
    };

    Table {
        id: "machine".into(),
        title: "Machine".into(),
        lead: vec!["fact".into()],
        columns: vec!["value".into()],
        rows: facts.iter().map(row).collect(),
        ..Table::default()
    }
}
