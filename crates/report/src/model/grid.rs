//! Tables of one figure of each line in each step. Lines are rows and steps are columns. Where
//! steps are dozens of tests, tests are rows and lines are columns, because dozens of columns
//! don't fit.

use analysis::distinct;

use crate::model::matrix::{CellLine, Matrix, MeasuredSteps, StepHead};
use crate::model::operations::step_head;
use crate::model::table::{Cell, STEP, TEST, Table, anchor};

/// The number of columns that always fit. More targets than this are rows, if there are fewer tests.
pub(crate) const ACROSS_MAX: usize = 8;

/// The limits on columns, and on letters of a target, beyond which column headers take two lines.
const WHOLE_HEADS_MAX: usize = 3;
const WHOLE_HEAD_MAX: usize = 16;

/// A line of a table and its names.
pub(crate) struct NamedLine<L> {
    pub line: L,
    /// The texts on the left of a row, or a column header.
    pub names: Vec<String>,
}

/// Lines that are compared with each other, for a grid whose rows are tests.
pub(crate) struct TestLines<L> {
    /// The number of the group of lines, from zero.
    pub number: usize,
    /// The common properties of the lines, such as `8 clients`.
    pub label: Option<String>,
    pub lines: Vec<NamedLine<L>>,
}

/// The lines and steps of one table.
pub(crate) struct Grid<'a, L> {
    /// The common property of the steps or lines: a group of steps, or `8 clients`; `None` if
    /// all steps and lines are in one table.
    pub name: Option<String>,
    /// The end of the table's identifier.
    pub id: String,
    /// Heads of the columns on the left.
    pub lead: Vec<String>,
    /// Rows are tests and columns are lines.
    pub across: bool,
    pub lines: Vec<NamedLine<L>>,
    pub steps: Vec<StepHead<'a>>,
    /// The target of each line, if the lines are columns and may be repeats of a target.
    pub targets: Vec<String>,
}

impl<'a, L> Grid<'a, L> {
    /// Returns a grid whose rows are lines, with the steps of one group, or with the steps that
    /// belong to no group.
    pub(crate) fn of_lines(
        lead: Vec<String>,
        lines: Vec<NamedLine<L>>,
        group: Option<&str>,
        steps: Vec<StepHead<'a>>,
    ) -> Self {
        Self {
            name: group.map(str::to_string),
            id: group.map_or_else(String::new, |group| format!("-{}", anchor(group))),
            lead,
            across: false,
            lines,
            steps,
            targets: Vec::new(),
        }
    }

    /// Returns a grid whose rows are tests, or tests and other steps.
    pub(crate) fn of_tests(
        TestLines { number, label, lines }: TestLines<L>,
        steps: Vec<StepHead<'a>>,
    ) -> Self {
        // A load is not called a test.
        let lead = if steps.iter().all(StepHead::is_test) { TEST } else { STEP };

        // Identifiers differ from those of other steps, and between the groups of lines.
        let has_tests = steps.iter().any(StepHead::is_test);
        let mut id = if has_tests { "-tests".to_string() } else { String::new() };
        if number > 0 {
            id += &format!("-{}", number + 1);
        }

        Self {
            name: label,
            id,
            across: true,
            ..Self::of_lines(vec![lead.to_string()], lines, None, steps)
        }
    }

    /// Returns the words that tell the title of a table of tests from that of other steps.
    pub(crate) fn place_in_title(&self) -> &'static str {
        let has_only_tests = self.across && self.steps.iter().all(StepHead::is_test);
        if has_only_tests { " in tests" } else { "" }
    }

    /// Returns the table without its title. Calls `cell` row by row.
    pub(crate) fn table(&self, id: &str, mut cell: impl FnMut(&L, StepHead<'a>) -> Cell) -> Table {
        let id = format!("{id}{}", self.id);
        let lead = self.lead.clone();

        if self.across {
            let heads = self.lines.iter().map(|named| named.names.join("\n"));
            let mut table = Table::new(id, "", lead, heads);
            table.across = true;
            table.column_targets.clone_from(&self.targets);

            for step in &self.steps {
                let cells = self.lines.iter().map(|named| cell(&named.line, *step));
                table.push(vec![step.name.to_string()], cells.collect());
            }
            table
        } else {
            let heads = self.steps.iter().map(|step| step_head(step.name));
            let mut table = Table::new(id, "", lead, heads);

            for NamedLine { line, names } in &self.lines {
                let cells = self.steps.iter().map(|step| cell(line, *step));
                table.push(names.clone(), cells.collect());
            }
            table
        }
    }

    /// Adds a cell for each line to the table: in a row below the steps, or in a column if the lines
    /// are rows.
    pub(crate) fn add_to_each_line(&self, table: &mut Table, head: &str, cells: Vec<Cell>) {
        if self.across {
            table.push(vec![head.to_owned()], cells);
            return;
        }

        table.columns.push(head.to_owned());
        for (row, cell) in table.rows.iter_mut().zip(cells) {
            row.cells.push(cell);
        }
    }

    /// Returns the cell of a line in a step of the table.
    pub(crate) fn cell<'t>(&self, table: &'t mut Table, line: usize, step: usize) -> &'t mut Cell {
        let (row, column) = if self.across { (step, line) } else { (line, step) };
        &mut table.rows[row].cells[column]
    }
}

/// Lines of a matrix in steps.
pub(crate) type LineGrid<'m, 'a> = Grid<'a, &'m CellLine<'a>>;

/// Returns true if rows are tests, rather than targets.
pub(crate) fn are_rows(matrix: &Matrix<'_>) -> bool {
    let tests = matrix.measured().filter(StepHead::is_test);
    // The repeats of a target are one column; `--each` divides the table.
    let target_counts = matrix
        .groups()
        .map(|lines| distinct(lines.iter().map(|line| line.cell.all_repeats())).len());
    target_counts.max().unwrap_or(0) <= ACROSS_MAX.max(tests.count())
}

/// Returns the grids of all steps. If tests are rows, there is one of them for each group of lines,
/// after one of the other steps; else there is one for each group of steps.
pub(crate) fn of_all<'m, 'a>(matrix: &'m Matrix<'a>) -> Vec<LineGrid<'m, 'a>> {
    if !are_rows(matrix) {
        let by_group = matrix.measured_by_group().into_iter();
        return by_group.map(|(group, steps)| of_lines(matrix, group, steps)).collect();
    }

    let MeasuredSteps { others, tests } = matrix.measured_by_kind();
    let mut grids = Vec::new();
    if !others.is_empty() {
        grids.push(of_lines(matrix, None, others));
    }
    if !tests.is_empty() {
        grids.extend(of_tests(matrix, &tests));
    }
    grids
}

/// Returns a grid whose rows are all lines.
pub(crate) fn of_lines<'m, 'a>(
    matrix: &'m Matrix<'a>,
    group: Option<&str>,
    steps: Vec<StepHead<'a>>,
) -> LineGrid<'m, 'a> {
    let lines = matrix.lines.iter().map(|line| NamedLine { line, names: matrix.lead_of(line) });
    Grid::of_lines(matrix.lead(), lines.collect(), group, steps)
}

/// Returns a grid for each group of lines that are compared with each other. Its rows are tests;
/// the base comes first.
pub(crate) fn of_tests<'m, 'a>(
    matrix: &'m Matrix<'a>,
    steps: &[StepHead<'a>],
) -> Vec<LineGrid<'m, 'a>> {
    let grids = matrix.groups().enumerate().map(|(number, lines)| {
        let label = matrix.group_label(lines);
        let mut sorted: Vec<&CellLine<'_>> = lines.iter().collect();
        sorted.sort_by_key(|line| !matrix.is_base(&line.cell.target));

        let are_whole = lines.len() <= WHOLE_HEADS_MAX
            && lines.iter().all(|line| line.cell.target.len() <= WHOLE_HEAD_MAX);
        let targets = sorted.iter().map(|line| line.cell.target.clone()).collect();
        let named = sorted
            .into_iter()
            .map(|line| NamedLine { line, names: vec![column_head(matrix, line, are_whole)] })
            .collect();
        let lines = TestLines { number, label, lines: named };
        Grid { targets, ..Grid::of_tests(lines, steps.to_vec()) }
    });
    grids.collect()
}

/// Returns the head of a line's column: its target, in two lines if space is short, and its repeat.
fn column_head(matrix: &Matrix<'_>, line: &CellLine<'_>, is_whole: bool) -> String {
    let target = &line.cell.target;
    let build = line.rows.first().map(|row| row.build.as_str());
    let config = build.and_then(|build| target.strip_prefix(build)?.strip_prefix('.'));
    let mut head = match (build, config) {
        (Some(build), Some(config)) if !is_whole => {
            format!("{}.\n{}", step_head(build), step_head(config))
        }
        _ => target.clone(),
    };

    let suffix = matrix.suffix(line);
    if !suffix.is_empty() {
        head.push('\n');
        head.push_str(suffix.trim_start());
    }
    head
}
