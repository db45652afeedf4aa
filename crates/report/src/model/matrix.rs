//! The figures as a matrix: one line per cell of the plan, one column per step.

use std::collections::{BTreeMap, BTreeSet};

use analysis::{
    counted, distinct,
    figures::{Figures, MainOperation, Row, UnfinishedCell},
};
use record::{CellKey, Run, Status, StepKind};

use crate::model::worth::comparable;

/// A step, in the order of the plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepHead<'a> {
    pub name: &'a str,
    pub kind: StepKind,
    /// The main kind of operation.
    pub main_op: Option<MainOperation<'a>>,
    /// The group of the benchmark in which the step is shown.
    pub group: Option<&'a str>,
    /// True if the step is one of the reported results.
    pub reported: bool,
}

impl<'a> StepHead<'a> {
    pub(crate) fn of(row: &'a Row) -> Self {
        Self {
            name: &row.step,
            kind: row.kind,
            main_op: row.main_operation(),
            group: row.group.as_deref(),
            reported: row.reported,
        }
    }

    /// Returns whether the step is a test: a step of a group, unlike a load.
    pub(crate) fn is_test(&self) -> bool {
        self.group.is_some()
    }
}

/// The measured steps of a matrix.
#[derive(Debug, Default)]
pub(crate) struct MeasuredSteps<'a> {
    /// The steps that belong to no group, such as loads.
    pub others: Vec<StepHead<'a>>,
    /// The steps of all groups, group by group.
    pub tests: Vec<StepHead<'a>>,
}

/// The groups of a benchmark in the order in which they are shown; others follow.
const GROUPS: [&str; 4] = ["point", "range-1", "range-2", "write"];

/// The properties besides the target that distinguish lines.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Keys {
    pub variant: bool,
    pub clients: bool,
    pub repeat: bool,
    pub run: bool,
}

impl Keys {
    /// Returns the keys that differ among cells; each cell represents all of its repeats.
    pub(crate) fn among<'c>(cells: impl Iterator<Item = &'c CellKey> + Clone) -> Self {
        let variants: BTreeSet<_> = cells.clone().map(|cell| &cell.variant).collect();
        let clients: BTreeSet<_> = cells.map(|cell| cell.clients).collect();
        Self { variant: variants.len() > 1, clients: clients.len() > 1, ..Self::default() }
    }

    /// Returns the names and values of the keys that are needed.
    fn of(
        self,
        cell: &CellKey,
        run: usize,
    ) -> impl Iterator<Item = (&'static str, String)> + use<> {
        let variant = cell.variant.clone().unwrap_or_default();

        [
            (self.variant, "variant", variant),
            (self.clients, "clients", cell.clients.to_string()),
            (self.repeat, "repeat", cell.repeat.to_string()),
            (self.run, "run", (run + 1).to_string()),
        ]
        .into_iter()
        .filter(|(is_shown, ..)| *is_shown)
        .map(|(_, name, value)| (name, value))
    }

    /// Returns the column headers that identify a line, beginning with `first`.
    pub(crate) fn lead(self, first: &str) -> Vec<String> {
        let keys = self.of(&CellKey::default(), 0).map(|(name, _)| name);
        std::iter::once(first).chain(keys).map(str::to_string).collect()
    }

    /// Returns the texts of these columns.
    pub(crate) fn lead_of(self, first: &str, cell: &CellKey, run: usize) -> Vec<String> {
        let keys = self.of(cell, run).map(|(_, value)| value);
        std::iter::once(first.to_string()).chain(keys).collect()
    }

    /// Returns the label of a cell for charts and sentences: `pg17.base cached c8 r2 #1`.
    pub(crate) fn label(self, cell: &CellKey, run: usize) -> String {
        cell.target.clone() + &self.suffix(cell, run)
    }

    /// Returns the part of a label after the target.
    fn suffix(self, cell: &CellKey, run: usize) -> String {
        self.of(cell, run)
            .map(|(name, value)| match name {
                "clients" => format!(" c{value}"),
                "repeat" => format!(" r{value}"),
                "run" => format!(" #{value}"),
                _ if value.is_empty() => value,
                _ => format!(" {value}"),
            })
            .collect()
    }

    /// Returns the common properties of cells that are compared with each other, if there are
    /// several groups of them: `cached, 8 clients`.
    pub(crate) fn group_label(self, cell: &CellKey) -> Option<String> {
        let variant = cell.variant.clone().filter(|_| self.variant);
        let clients = self.clients.then(|| counted(cell.clients as usize, "client"));
        let texts: Vec<String> = variant.into_iter().chain(clients).collect();
        (!texts.is_empty()).then(|| texts.join(", "))
    }
}

/// One cell of the plan: one measurement of a target with a number of clients.
#[derive(Clone, Debug)]
pub(crate) struct CellLine<'a> {
    pub cell: &'a CellKey,
    /// The index of the cell's run.
    pub run: usize,
    pub rows: Vec<&'a Row>,
    /// The steps that the plan requires and the record lacks.
    pub missing: Vec<&'a str>,
    /// The cell's status, if it did not end as planned; `Some(None)` if it was never started.
    pub unfinished: Option<Option<Status>>,
}

impl<'a> CellLine<'a> {
    /// Returns the line's row of a step.
    pub(crate) fn row(&self, step: &str) -> Option<&'a Row> {
        self.rows.iter().copied().find(|row| row.step == step)
    }

    /// Returns true if the lines are compared with each other: they differ only in their target and
    /// repeat.
    pub(crate) fn same_group(&self, other: &CellLine<'_>) -> bool {
        self.cell.load() == other.cell.load()
    }

    /// Returns true if this is the line of that cell.
    pub(crate) fn is_of(&self, cell: &UnfinishedCell) -> bool {
        (self.run, self.cell) == (cell.run, &cell.cell)
    }
}

/// Returns the line of a cell; adds it if it is missing.
fn line_of<'l, 'a>(
    lines: &'l mut Vec<CellLine<'a>>,
    run: usize,
    cell: &'a CellKey,
) -> &'l mut CellLine<'a> {
    let known = lines.iter().position(|line| (line.run, line.cell) == (run, cell));
    let at = known.unwrap_or_else(|| {
        lines.push(CellLine { cell, run, rows: Vec::new(), missing: Vec::new(), unfinished: None });
        lines.len() - 1
    });
    &mut lines[at]
}

/// All lines and steps of a report.
#[derive(Clone, Debug)]
pub(crate) struct Matrix<'a> {
    /// The target that others are compared with; of several bases the first.
    pub base: &'a str,
    /// The base of each target, if there are several bases.
    bases: BTreeMap<&'a str, &'a str>,
    /// All reported steps, including settle steps.
    pub steps: Vec<StepHead<'a>>,
    /// The steps that no table or chart has.
    pub unreported: Vec<StepHead<'a>>,
    pub lines: Vec<CellLine<'a>>,
    keys: Keys,
}

impl<'a> Matrix<'a> {
    /// Sorts the rows into lines. Targets follow the order of `run`; targets of other runs come
    /// last.
    pub(crate) fn new(run: &'a Run, figures: &'a Figures) -> Self {
        let mut lines: Vec<CellLine<'a>> = Vec::new();
        for row in &figures.rows {
            line_of(&mut lines, row.run, &row.cell).rows.push(row);
        }
        for row in &figures.missing {
            line_of(&mut lines, row.run, &row.cell).missing.push(&row.step);
        }
        for cell in &figures.unfinished {
            line_of(&mut lines, cell.run, &cell.cell).unfinished = Some(cell.status);
        }

        sort(&mut lines, run);

        let differ = |are_alike: fn(&CellLine<'_>, &CellLine<'_>) -> bool| {
            lines.windows(2).any(|pair| !are_alike(&pair[0], &pair[1]))
        };
        let keys = Keys {
            variant: lines.iter().any(|line| line.cell.variant.is_some()),
            clients: differ(|a, b| a.cell.clients == b.cell.clients),
            repeat: differ(|a, b| a.cell.repeat == b.cell.repeat),
            run: differ(|a, b| a.run == b.run),
        };

        // If only unreported steps are selected, they are shown.
        let all_steps = steps(&lines);
        let has_results =
            all_steps.iter().any(|step| step.reported && step.kind != StepKind::Settle);
        let (steps, unreported) =
            all_steps.into_iter().partition(|step| step.reported || !has_results);
        let mut bases = BTreeMap::new();
        for target in run.targets.iter().filter(|_| !run.bases.is_empty()) {
            bases.extend(run.base_of(target).map(|base| (target.name.as_str(), base)));
        }
        Self { base: &run.base, bases, steps, unreported, lines, keys }
    }

    /// Returns the steps that have a throughput.
    pub(crate) fn measured(&self) -> impl Iterator<Item = StepHead<'a>> + '_ {
        self.steps.iter().copied().filter(|step| step.kind != StepKind::Settle)
    }

    /// Returns the steps that have a throughput by their groups. Steps without a group come first.
    pub(crate) fn measured_by_group(&self) -> Vec<(Option<&'a str>, Vec<StepHead<'a>>)> {
        let mut groups: Vec<(Option<&str>, Vec<StepHead<'_>>)> = Vec::new();
        for step in self.measured() {
            match groups.iter_mut().find(|(name, _)| *name == step.group) {
                Some((_, steps)) => steps.push(step),
                None => groups.push((step.group, vec![step])),
            }
        }

        let rank =
            |name: &str| GROUPS.iter().position(|known| *known == name).unwrap_or(GROUPS.len());
        groups.sort_by_key(|(name, _)| name.map(rank));
        groups
    }

    /// Returns the measured steps by whether they are tests.
    pub(crate) fn measured_by_kind(&self) -> MeasuredSteps<'a> {
        let mut steps = MeasuredSteps::default();
        for (group, of_group) in self.measured_by_group() {
            match group {
                Some(_) => steps.tests.extend(of_group),
                None => steps.others.extend(of_group),
            }
        }
        steps
    }

    /// Returns true if tables and charts have this step.
    pub(crate) fn shows(&self, step: &str) -> bool {
        self.unreported.iter().all(|head| head.name != step)
    }

    /// Returns the column headers that identify a line.
    pub(crate) fn lead(&self) -> Vec<String> {
        self.keys.lead("target")
    }

    /// Returns the texts of these columns.
    pub(crate) fn lead_of(&self, line: &CellLine<'_>) -> Vec<String> {
        self.keys.lead_of(&line.cell.target, line.cell, line.run)
    }

    /// Returns the label of a line for charts and sentences: `pg17.base c8 r2`.
    pub(crate) fn label(&self, line: &CellLine<'_>) -> String {
        self.keys.label(line.cell, line.run)
    }

    /// Returns the common properties of a group's lines, if there are several groups: `cached, 8
    /// clients`.
    pub(crate) fn group_label(&self, lines: &[CellLine<'_>]) -> Option<String> {
        self.load_label(lines.first()?.cell)
    }

    /// Returns the common properties of the lines that are compared with a cell.
    pub(crate) fn load_label(&self, cell: &CellKey) -> Option<String> {
        self.keys.group_label(cell)
    }

    /// Returns the column headers that tell a line from others of its group.
    pub(crate) fn lead_in_group(&self) -> Vec<String> {
        self.keys_in_group().lead("target")
    }

    /// Returns the texts of these columns.
    pub(crate) fn lead_in_group_of(&self, line: &CellLine<'_>) -> Vec<String> {
        self.keys_in_group().lead_of(&line.cell.target, line.cell, line.run)
    }

    /// Returns the properties besides the target that distinguish a line from others of its group:
    /// ` r2`.
    pub(crate) fn suffix(&self, line: &CellLine<'_>) -> String {
        self.keys_in_group().suffix(line.cell, line.run)
    }

    /// Returns the keys that differ among lines that are compared with each other.
    fn keys_in_group(&self) -> Keys {
        Keys { variant: false, clients: false, ..self.keys }
    }

    /// Returns the line that `line` is compared with: the base with the same clients and repeat,
    /// preferably of the same run.
    pub(crate) fn base_of(&self, line: &CellLine<'_>) -> Option<&CellLine<'a>> {
        let wanted = line.cell.of_target(self.base_name(&line.cell.target)?);
        let mut candidates = self.lines.iter().filter(|base| *base.cell == wanted);
        let first = candidates.next()?;
        if first.run == line.run {
            return Some(first);
        }
        candidates.find(|base| base.run == line.run).or(Some(first))
    }

    /// Returns the target that a target is compared with; `None` if there is none.
    fn base_name(&self, target: &str) -> Option<&'a str> {
        if self.bases.is_empty() { Some(self.base) } else { self.bases.get(target).copied() }
    }

    /// Returns whether others are compared with a target.
    pub(crate) fn is_base(&self, target: &str) -> bool {
        self.base_name(target) == Some(target)
    }

    /// Returns the names of the bases.
    pub(crate) fn base_names(&self) -> String {
        if self.bases.is_empty() {
            return self.base.to_owned();
        }
        distinct(self.bases.values().copied()).join(" and ")
    }

    /// Returns true if a line is compared with one of the base.
    pub(crate) fn is_other(&self, line: &CellLine<'_>) -> bool {
        !self.is_base(&line.cell.target) && self.base_of(line).is_some()
    }

    /// Returns true if cells were measured more than once.
    pub(crate) fn is_repeated(&self) -> bool {
        self.keys.repeat || self.keys.run
    }

    /// Returns the row of the base that a line is compared with, if it is valid.
    pub(crate) fn base_row(&self, line: &CellLine<'_>, step: StepHead<'_>) -> Option<&'a Row> {
        let row = self.base_of(line)?.row(step.name)?;
        comparable(row).then_some(row)
    }

    /// Returns the lines that ran a step, each with its row.
    pub(crate) fn lines_in(
        &self,
        step: StepHead<'_>,
    ) -> impl Iterator<Item = (&CellLine<'a>, &'a Row)> {
        self.lines.iter().filter_map(move |line| Some((line, line.row(step.name)?)))
    }

    /// Returns the rows of all lines that ran a step.
    pub(crate) fn rows_of(&self, step: StepHead<'_>) -> impl Iterator<Item = &'a Row> {
        self.lines_in(step).map(|(_, row)| row)
    }

    /// Returns groups of lines that are compared with each other.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &[CellLine<'a>]> {
        self.lines.chunk_by(|a, b| a.same_group(b))
    }
}

/// Sorts lines so that those that are compared with each other are adjacent.
fn sort(lines: &mut [CellLine<'_>], run: &Run) {
    lines.sort_by_cached_key(|line| {
        let cell = line.cell;
        let planned = run.targets.iter().position(|planned| planned.name == cell.target);
        let position = planned.unwrap_or(run.targets.len());

        // Rates of a search by their size: the bits of positive numbers have the same order.
        let rate = cell.variant.as_deref().and_then(analysis::search::rate_of).map(f64::to_bits);
        let variant = (rate, cell.variant.clone());

        (variant, cell.clients, position, cell.repeat, line.run)
    });
}

/// Returns the union of the steps of all lines. A step that some lines lack follows its
/// predecessor.
fn steps<'a>(lines: &[CellLine<'a>]) -> Vec<StepHead<'a>> {
    let mut steps: Vec<(&str, Vec<&Row>)> = Vec::new();

    for line in lines {
        // The place of a step that no line before had.
        let mut next = 0;
        for row in &line.rows {
            match steps.iter().position(|(name, _)| *name == row.step) {
                Some(at) => {
                    steps[at].1.push(row);
                    next = at + 1;
                }
                None => {
                    steps.insert(next, (&row.step, vec![row]));
                    next += 1;
                }
            }
        }
    }

    steps.iter().map(|(name, rows)| head(name, rows)).collect()
}

/// Returns the step that some rows are about. An unfinished step has only a name in its record, and
/// one that failed early may lack its group.
fn head<'a>(name: &'a str, rows: &[&'a Row]) -> StepHead<'a> {
    let finished: Vec<&Row> =
        rows.iter().copied().filter(|row| row.status != Status::Incomplete).collect();

    let trusted = if finished.is_empty() { rows } else { &finished };

    StepHead {
        name,
        kind: trusted.first().map(|row| row.kind).unwrap_or_default(),
        main_op: trusted.iter().find_map(|row| row.main_operation()),
        group: trusted.iter().find_map(|row| row.group.as_deref()),
        reported: trusted.iter().any(|row| row.reported),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(status: Status) -> Row {
        Row { step: "readrandom".into(), status, reported: true, ..Row::default() }
    }

    fn head_of(rows: Vec<&Row>) -> StepHead<'_> {
        let lines: Vec<CellLine<'_>> = rows
            .into_iter()
            .map(|row| CellLine {
                cell: &row.cell,
                run: row.run,
                rows: vec![row],
                missing: Vec::new(),
                unfinished: None,
            })
            .collect();
        let steps = steps(&lines);
        assert_eq!(steps.len(), 1);
        steps[0]
    }

    #[test]
    fn a_step_is_what_those_say_that_finished_it() {
        let killed = Row {
            // As a record is read in which the step has nothing but its name.
            kind: StepKind::Load,
            main_op: Some("insert".into()),
            ..row(Status::Incomplete)
        };
        let complete = Row {
            kind: StepKind::Query,
            main_op: Some("get".into()),
            group: Some("point".into()),
            reported: false,
            ..row(Status::Complete)
        };
        for rows in [vec![&killed, &complete], vec![&complete, &killed]] {
            let head = head_of(rows);
            assert_eq!(head.kind, StepKind::Query);
            assert_eq!(head.main_op.map(|main| main.kind), Some("get"));
            assert_eq!(head.group, Some("point"));
            assert!(!head.reported);
        }
        // Where nobody finished it the name has to do.
        assert!(head_of(vec![&killed]).reported);
    }

    #[test]
    fn a_step_that_failed_early_has_the_group_that_others_say() {
        let failed = Row { kind: StepKind::Query, ..row(Status::Failed) };
        let complete = Row { group: Some("point".into()), ..row(Status::Complete) };
        assert_eq!(head_of(vec![&failed, &complete]).group, Some("point"));
    }
}
