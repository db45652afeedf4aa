//! The tables of one run, for a terminal or as Markdown.

use analysis::{distinct, figures::Figures, settings::Settings};
use record::{DiskFloor, Run};

use super::comparisons::write_across;
use super::writer::{TableStyle, TerminalWriter};
use crate::model::comparison::{ComparedGroup, ExplainedGroups, Subject, is_repeated};
use crate::model::matrix::Matrix;
use crate::model::table::{Cell, Table, TableRow, anchor};
use crate::prose::answer;
use crate::prose::method::Method;
use crate::tables::compared::{self, Board, work};
use crate::tables::{
    classic, disk_floor, grouped, homes, lsm, max_rates, metric_list as metric_tables, pauses,
    quality, searches, steps,
};

/// The maximum number of lines with which the tables of operations are shown for all steps.
const DETAILED_LINES_MAX: usize = 24;

/// The maximum number of tests with which the tables of each test are shown.
const TESTS_EACH_MAX: usize = 12;

/// Formats all `figures` as tables, the most important first.
pub fn tables(run: &Run, figures: &Figures, style: TableStyle) -> String {
    tables_of_steps(run, figures, &[], style)
}

/// Formats the figures of these steps as tables, the most important first; none: of all steps. The
/// verdicts are those of all steps.
pub fn tables_of_steps(
    run: &Run,
    figures: &Figures,
    steps: &[String],
    style: TableStyle,
) -> String {
    let mut out = TerminalWriter::new(style);
    write_tables(&mut out, &Subject::of(run, figures).showing(steps));
    out.finish()
}

fn write_tables(out: &mut TerminalWriter, subject: &Subject<'_>) {
    let shown = subject.shown_figures();
    let (run, figures) = (&*subject.run, &*shown);
    let matrix = Matrix::new(run, figures);
    let explained = subject.explained();
    let groups = explained.all();

    // In a terminal the answer is last, where it stays in view.
    out.head(run, figures);
    if out.is_markdown() {
        write_answers(out, run, figures, &explained);
    }

    out.targets(run);
    out.tables(searches::table(run, figures));
    out.tables(max_rates::table(run));
    out.tables(classic::summary(&matrix));
    out.tables(classic::rates(&matrix));
    out.table(&lsm::stalled(&matrix));
    for ComparedGroup { comparison, .. } in &groups {
        out.findings(comparison.findings);
        out.tables(work(comparison));
    }

    out.table(&classic::fairness(&matrix));
    out.table(&homes::homes(&matrix));
    out.table(&pauses::pauses(&matrix));
    out.tables(grouped::costs(&matrix));
    out.tables(grouped::times(&matrix));
    out.tables(classic::lengths(&matrix));
    out.table(&quality::debt(&matrix));
    out.tables(disk_floor::tables_of_runs([run]));
    out.settings(&figures.settings);
    out.problems(run, figures, &matrix);

    write_steps(out, &matrix);
    if !out.is_markdown() {
        write_answers(out, run, figures, &explained);
    }
}

/// Writes the answer of each group, and then what goes across groups.
fn write_answers(
    out: &mut TerminalWriter,
    run: &Run,
    figures: &Figures,
    explained: &ExplainedGroups<'_>,
) {
    for group in explained.all() {
        out.answer(&answer::passage(&group.comparison));
    }
    if let Some(across) = explained.across(run, figures) {
        write_across(out, &across);
    }
}

/// Writes the tables of each step, and which are left out because there would be too many.
fn write_steps(out: &mut TerminalWriter, matrix: &Matrix<'_>) {
    let has_one_step = matrix.measured().count() < 2;
    let is_detailed = matrix.lines.len() <= DETAILED_LINES_MAX || has_one_step;
    let tests = matrix.measured().filter(|step| step.group.is_some()).count();
    let are_tests_shown = tests <= TESTS_EACH_MAX;

    for step in matrix.measured().filter(|step| step.group.is_none() || are_tests_shown) {
        out.heading(step.name);
        out.tables(steps::short(matrix, step));
        if is_detailed {
            out.tables(steps::details(matrix, step));
        }
    }

    if !are_tests_shown {
        out.gap();
        out.line(&format!(
            "The other tables of each test are omitted, since there are {tests} tests: `--step NAME` shows those of one \
             test, `--format csv` shows all figures."
        ));
    }
    if !is_detailed {
        out.gap();
        out.line(&format!(
            "The tables of stalls, shifts, operations and response times are omitted, since there are {} lines: \
             `--step NAME` shows those of one step, `--format json` shows all figures.",
            matrix.lines.len()
        ));
    }
}

/// Formats the tables with these names: those over all steps, then those of each step.
///
/// # Errors
/// Returns an unknown name, and the known names.
pub fn tables_named(
    run: &Run,
    figures: &Figures,
    names: &[String],
    style: TableStyle,
) -> Result<String, (String, Vec<String>)> {
    let mut out = TerminalWriter::new(style);
    let matrix = Matrix::new(run, figures);

    let mut known: Vec<String> = Vec::new();
    let mut heading = None;

    for NamedTable { name, step, table } in all_tables(run, figures, &matrix) {
        if names.contains(&name) {
            if step.is_some() && step != heading {
                out.heading(step.unwrap_or_default());
                heading = step;
            }
            out.table(&table);
        }

        if !known.contains(&name) {
            known.push(name);
        }
    }

    match names.iter().find(|name| !known.contains(name)) {
        Some(unknown) => Err((unknown.clone(), known)),
        None => Ok(out.finish()),
    }
}

/// Returns the steps that have a table with this name.
pub fn steps_with_table(run: &Run, figures: &Figures, name: &str) -> Vec<String> {
    let measured = figures.rows.iter().map(|row| row.step.as_str());
    // A run that only counts work has no other rows.
    let counted = figures.exact.iter().map(|exact| exact.row.step.as_str());

    let mut steps = Vec::new();
    for step in distinct(measured.chain(counted)) {
        let mut of_step = figures.clone();
        of_step.retain_steps(&[step.to_owned()]);

        let matrix = Matrix::new(run, &of_step);
        if all_tables(run, &of_step, &matrix).iter().any(|named| named.name == name) {
            steps.push(step.to_owned());
        }
    }
    steps
}

/// A table with the name by which it can be chosen.
struct NamedTable<'m> {
    name: String,
    /// The step that it is about; `None`: all steps.
    step: Option<&'m str>,
    table: Table,
}

/// Returns all tables: those over all steps, then those of each step.
fn all_tables<'m>(run: &Run, figures: &Figures, matrix: &'m Matrix<'_>) -> Vec<NamedTable<'m>> {
    let mut over_steps: Vec<Table> = Vec::new();
    over_steps.extend(searches::table(run, figures));
    over_steps.extend(max_rates::table(run));
    over_steps.extend(classic::summary(matrix));
    over_steps.extend(classic::rates(matrix));
    over_steps.push(lsm::stalled(matrix));
    over_steps.push(classic::fairness(matrix));
    over_steps.push(homes::homes(matrix));
    over_steps.push(pauses::pauses(matrix));
    over_steps.extend(grouped::costs(matrix));
    over_steps.extend(grouped::times(matrix));
    over_steps.extend(classic::lengths(matrix));
    over_steps.push(quality::debt(matrix));
    over_steps.extend(disk_floor::tables_of_runs([run]));

    let mut tables = Vec::new();
    for table in over_steps {
        tables.push(NamedTable { name: table.id.clone(), step: None, table });
    }

    if !figures.exact.is_empty() {
        let subject = Subject::of(run, figures);
        let explained = subject.explained();
        for table in explained.all().iter().flat_map(|group| work(&group.comparison)) {
            tables.push(NamedTable { name: "work".to_owned(), step: None, table });
        }
    }

    for step in matrix.measured() {
        // The identifier of a table is its name with the step, which makes it unique in a page.
        let suffix = format!("-{}", anchor(step.name));
        for table in steps::all(matrix, step) {
            let name = table.id.strip_suffix(&suffix).unwrap_or(&table.id).to_owned();
            tables.push(NamedTable { name, step: Some(step.name), table });
        }
    }

    tables.retain(|named| !named.table.is_empty());
    tables
}

/// Formats the tables for the end of a run and a list of all others, with the answer last.
pub fn tables_overview(run: &Run, figures: &Figures, style: TableStyle) -> String {
    brief_and_answer(run, figures, style, true)
}

/// Returns the list of all tables.
fn table_list(run: &Run, figures: &Figures, matrix: &Matrix<'_>) -> Table {
    let mut list = Table {
        title: "Tables".to_owned(),
        lead: ["name", "content"].map(str::to_owned).to_vec(),
        columns: vec!["of".to_owned()],
        notes: vec![
            "`--table NAME` prints a table, `--step NAME` all tables of a step, and `--all` everything."
                .to_owned(),
        ],
        ..Table::default()
    };

    for NamedTable { name, step, table } in all_tables(run, figures, matrix) {
        let of = if step.is_some() { "each step" } else { "all steps" };
        let is_known = |row: &TableRow| row.lead[0] == name && row.cells[0].text == of;

        if !list.rows.iter().any(is_known) {
            // What follows is about one step, or says how to read it.
            let content = table.title.split(';').next().unwrap_or_default();
            list.rows.push(TableRow {
                lead: vec![name, content.to_owned()],
                cells: vec![Cell::plain(of)],
                ..TableRow::default()
            });
        }
    }

    list
}

/// Formats the tables for the end of a run: throughput, insert rate, problems, findings, and last,
/// where it stays visible, the answer.
pub fn tables_brief(run: &Run, figures: &Figures, style: TableStyle) -> String {
    brief_and_answer(run, figures, style, false)
}

/// Formats the tables for the end of a run, then a list of all tables if asked, then the answer.
fn brief_and_answer(run: &Run, figures: &Figures, style: TableStyle, has_list: bool) -> String {
    let subject = Subject::of(run, figures);
    let (run, figures) = (&*subject.run, &*subject.figures);
    let matrix = Matrix::new(run, figures);
    let explained = subject.explained();

    let mut out = TerminalWriter::new(style);
    write_brief(&mut out, run, figures, &matrix, &explained.all());
    if has_list {
        out.table(&table_list(run, figures, &matrix));
    }
    write_answers(&mut out, run, figures, &explained);
    out.finish()
}

/// Writes what [`tables_brief`] has before the answer.
fn write_brief(
    out: &mut TerminalWriter,
    run: &Run,
    figures: &Figures,
    matrix: &Matrix<'_>,
    groups: &[ComparedGroup<'_>],
) {
    out.head(run, figures);

    // Of a search, the rates that it tried are all there is to show.
    if let Some(search) = searches::table(run, figures) {
        out.problems(run, figures, matrix);
        out.tables([search]);
        return;
    }

    out.tables(max_rates::table(run));
    out.tables(classic::summary(matrix));
    out.tables(classic::rates(matrix));
    out.table(&lsm::stalled(matrix));
    out.problems(run, figures, matrix);
    for ComparedGroup { comparison, .. } in groups {
        let is_repeated = is_repeated(comparison.compared);
        out.findings(comparison.findings);
        if is_repeated {
            out.tables(compared::other_verdicts(&Board::new(comparison)));
        }
        out.tables(work(comparison));
        if is_repeated {
            out.method(&Method::of_comparison(comparison.compared));
        }
    }
}

/// Formats only the answer about these steps, with its verdicts, which are those of all steps; none:
/// about all.
pub fn tables_summary(run: &Run, figures: &Figures, steps: &[String], style: TableStyle) -> String {
    let mut out = TerminalWriter::new(style);
    let subject = Subject::of(run, figures).showing(steps);
    let shown = subject.shown_figures();
    write_answers(&mut out, &subject.run, &shown, &subject.explained());
    out.finish()
}

/// Formats the floor of a disk.
pub fn disk_floor(floor: &DiskFloor, style: TableStyle) -> String {
    let mut out = TerminalWriter::new(style);
    out.table(&disk_floor::table(std::slice::from_ref(floor)));
    out.finish()
}

/// Formats only the differences between settings.
pub fn differences(settings: &Settings, style: TableStyle) -> String {
    let mut out = TerminalWriter::new(style);
    out.setting_blocks(settings);
    out.finish()
}

/// Formats texts with their headings, line by line and without control characters.
pub fn verbatim(texts: &[(String, String)], style: TableStyle) -> String {
    let mut out = TerminalWriter::new(style);
    for (heading, text) in texts {
        out.heading(heading);
        out.verbatim(text);
    }
    out.finish()
}

/// Formats all metrics that can be compared, with their units and meanings.
pub fn metric_list(style: TableStyle) -> String {
    let mut out = TerminalWriter::new(style);
    out.table(&metric_tables::table());
    out.finish()
}
