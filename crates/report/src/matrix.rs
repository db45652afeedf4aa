//! The rows of the figures as the field looks at them: one line per cell of the plan, one column per step.

use std::collections::BTreeSet;

use analysis::{Figures, Row, UnfinishedCell, counted};
use record::{CellKey, Run, Status, StepKind};

use crate::worth::comparable;

/// A step, in the order of the plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepHead<'a> {
    pub name: &'a str,
    pub kind: StepKind,
    /// The kind of operation that it is about.
    pub main_op: Option<&'a str>,
    /// Which of its benchmark's groups it is shown in.
    pub group: Option<&'a str>,
    /// It is among the results.
    pub reported: bool,
}

impl<'a> StepHead<'a> {
    /// Returns what a row says of its step.
    pub(crate) fn of(row: &'a Row) -> Self {
        Self {
            name: &row.step,
            kind: row.kind,
            main_op: row.main_op.as_deref(),
            group: row.group.as_deref(),
            reported: row.reported,
        }
    }
}

/// The groups of a benchmark in the order in which they are shown; others follow as they come.
const GROUPS: [&str; 4] = ["point", "range-1", "range-2", "write"];

/// What tells lines apart beside their target.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Keys {
    pub variant: bool,
    pub clients: bool,
    pub repeat: bool,
    pub run: bool,
}

impl Keys {
    /// Returns those that differ among cells which stand for all repeats.
    pub(crate) fn among<'c>(cells: impl Iterator<Item = &'c CellKey> + Clone) -> Self {
        let variants: BTreeSet<_> = cells.clone().map(|cell| &cell.variant).collect();
        let clients: BTreeSet<_> = cells.map(|cell| cell.clients).collect();
        Self {
            variant: variants.len() > 1,
            clients: clients.len() > 1,
            ..Self::default()
        }
    }

    /// Returns what they are called with what they are of a cell of a run, those that are not needed left out.
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

    /// Returns the heads of the columns that tell lines apart, after one for `first`.
    pub(crate) fn lead(self, first: &str) -> Vec<String> {
        let keys = self.of(&CellKey::default(), 0);
        let heads = std::iter::once(first).chain(keys.map(|(name, _)| name));
        heads.map(str::to_string).collect()
    }

    /// Returns what stands in these columns.
    pub(crate) fn lead_of(self, first: &str, cell: &CellKey, run: usize) -> Vec<String> {
        let keys = self.of(cell, run).map(|(_, value)| value);
        std::iter::once(first.to_string()).chain(keys).collect()
    }

    /// Returns a cell in one piece of text, for charts and sentences: `pg17.base cached c8 r2 #1`.
    pub(crate) fn label(self, cell: &CellKey, run: usize) -> String {
        cell.target.clone() + &self.suffix(cell, run)
    }

    /// Returns what follows the target there.
    fn suffix(self, cell: &CellKey, run: usize) -> String {
        let texts = self.of(cell, run).map(|(name, value)| match name {
            "clients" => format!(" c{value}"),
            "repeat" => format!(" r{value}"),
            "run" => format!(" #{value}"),
            _ if value.is_empty() => value,
            _ => format!(" {value}"),
        });
        texts.collect()
    }

    /// Returns what cells that are compared with each other have in common, where there are several groups of them:
    /// `cached, 8 clients`.
    pub(crate) fn group_label(self, cell: &CellKey) -> Option<String> {
        let variant = cell.variant.clone().filter(|_| self.variant);
        let clients = self
            .clients
            .then(|| counted(cell.clients as usize, "client"));
        let texts: Vec<String> = variant.into_iter().chain(clients).collect();
        (!texts.is_empty()).then(|| texts.join(", "))
    }
}

/// One cell of the plan: a target with so many clients, once.
#[derive(Clone, Debug)]
pub(crate) struct Line<'a> {
    pub cell: &'a CellKey,
    /// Which of the runs that are shown together, from 0.
    pub run: usize,
    pub rows: Vec<&'a Row>,
    /// The steps that the plan asks for and the record does not have.
    pub missing: Vec<&'a str>,
    /// How far the cell got, where it did not end as planned.
    pub unfinished: Option<Option<Status>>,
}

impl<'a> Line<'a> {
    /// What the line did in a step.
    pub(crate) fn row(&self, step: &str) -> Option<&'a Row> {
        self.rows.iter().copied().find(|row| row.step == step)
    }

    /// Lines of one group are compared with each other: they differ in their target and repeat alone.
    pub(crate) fn same_group(&self, other: &Line<'_>) -> bool {
        self.cell.load() == other.cell.load()
    }

    /// Whether it is the line of a cell that did not end as planned.
    pub(crate) fn is_of(&self, cell: &UnfinishedCell) -> bool {
        (self.run, self.cell) == (cell.run, &cell.cell)
    }
}

/// The line of a cell, which is added if it is not there yet.
fn line_of<'l, 'a>(
    lines: &'l mut Vec<Line<'a>>,
    run: usize,
    cell: &'a CellKey,
) -> &'l mut Line<'a> {
    let same = |line: &Line<'_>| (line.run, line.cell) == (run, cell);
    let at = lines.iter().position(same).unwrap_or_else(|| {
        lines.push(Line {
            cell,
            run,
            rows: Vec::new(),
            missing: Vec::new(),
            unfinished: None,
        });
        lines.len() - 1
    });
    &mut lines[at]
}

/// All lines and steps.
#[derive(Clone, Debug)]
pub(crate) struct Matrix<'a> {
    /// The target that others are compared to.
    pub base: &'a str,
    /// Settle steps included; without those that are not among the results.
    pub steps: Vec<StepHead<'a>>,
    /// Those, which no table or chart has.
    pub unreported: Vec<StepHead<'a>>,
    pub lines: Vec<Line<'a>>,
    keys: Keys,
}

impl<'a> Matrix<'a> {
    /// Sorts the rows into lines. Targets come in the order of `run`, those of other runs after them.
    pub(crate) fn new(run: &'a Run, figures: &'a Figures) -> Self {
        let mut lines: Vec<Line<'a>> = Vec::new();
        for row in &figures.rows {
            line_of(&mut lines, row.run, &row.cell).rows.push(row);
        }
        for row in &figures.missing {
            line_of(&mut lines, row.run, &row.cell)
                .missing
                .push(&row.step);
        }
        for cell in &figures.unfinished {
            line_of(&mut lines, cell.run, &cell.cell).unfinished = Some(cell.status);
        }

        let position = |line: &Line<'_>| {
            let mut targets = run.targets.iter();
            let position = targets.position(|target| target.name == line.cell.target);
            position.unwrap_or(run.targets.len())
        };
        lines.sort_by_cached_key(|line| {
            let cell = line.cell;
            let variant = cell.variant.clone();
            (variant, cell.clients, position(line), cell.repeat, line.run)
        });

        let differ = |are_alike: fn(&Line<'_>, &Line<'_>) -> bool| {
            let mut pairs = lines.windows(2);
            pairs.any(|pair| !are_alike(&pair[0], &pair[1]))
        };
        let keys = Keys {
            variant: lines.iter().any(|line| line.cell.variant.is_some()),
            clients: differ(|a, b| a.cell.clients == b.cell.clients),
            repeat: differ(|a, b| a.cell.repeat == b.cell.repeat),
            run: differ(|a, b| a.run == b.run),
        };
        // Who asks for nothing but steps that are not among the results is shown them.
        let measured = |step: &StepHead<'_>| step.reported && step.kind != StepKind::Settle;
        let steps = steps(&lines);
        let has_results = steps.iter().any(measured);
        let (steps, unreported) = steps
            .into_iter()
            .partition(|step| step.reported || !has_results);
        Self {
            base: &run.base,
            steps,
            unreported,
            lines,
            keys,
        }
    }

    /// The steps of which throughput is a figure.
    pub(crate) fn measured(&self) -> impl Iterator<Item = StepHead<'a>> + '_ {
        self.steps
            .iter()
            .copied()
            .filter(|step| step.kind != StepKind::Settle)
    }

    /// The same by their groups: first those that belong to none, in the order of the plan within each.
    pub(crate) fn measured_by_group(&self) -> Vec<(Option<&'a str>, Vec<StepHead<'a>>)> {
        let mut groups: Vec<(Option<&str>, Vec<StepHead<'_>>)> = Vec::new();
        for step in self.measured() {
            match groups.iter_mut().find(|(name, _)| *name == step.group) {
                Some((_, steps)) => steps.push(step),
                None => groups.push((step.group, vec![step])),
            }
        }
        let place = |name: &str| GROUPS.iter().position(|known| *known == name);
        groups.sort_by_key(|(name, _)| name.map(|name| place(name).unwrap_or(GROUPS.len())));
        groups
    }

    /// Whether a step is in tables and charts.
    pub(crate) fn shows(&self, step: &str) -> bool {
        self.unreported.iter().all(|head| head.name != step)
    }

    /// Heads of the columns that tell lines apart.
    pub(crate) fn lead(&self) -> Vec<String> {
        self.keys.lead("target")
    }

    /// What stands in these columns.
    pub(crate) fn lead_of(&self, line: &Line<'_>) -> Vec<String> {
        self.keys.lead_of(&line.cell.target, line.cell, line.run)
    }

    /// The line in one piece of text, for charts and sentences: `pg17.base c8 r2`.
    pub(crate) fn label(&self, line: &Line<'_>) -> String {
        self.keys.label(line.cell, line.run)
    }

    /// What the lines of a group have in common, where there are several groups: `cached, 8 clients`.
    pub(crate) fn group_label(&self, lines: &[Line<'_>]) -> Option<String> {
        self.load_label(lines.first()?.cell)
    }

    /// The same of the lines that are compared with one cell.
    pub(crate) fn load_label(&self, cell: &CellKey) -> Option<String> {
        self.keys.group_label(cell)
    }

    /// What tells a line apart from others of its group beside its target: ` r2`.
    pub(crate) fn suffix(&self, line: &Line<'_>) -> String {
        let keys = Keys {
            variant: false,
            clients: false,
            ..self.keys
        };
        keys.suffix(line.cell, line.run)
    }

    /// The line that `line` is compared to: the base with the same clients and in the same repeat, of its own run if
    /// that has it.
    pub(crate) fn base_of(&self, line: &Line<'_>) -> Option<&Line<'a>> {
        let wanted = line.cell.of_target(self.base);
        let bases = || self.lines.iter().filter(|base| *base.cell == wanted);
        bases()
            .find(|base| base.run == line.run)
            .or_else(|| bases().next())
    }

    /// Whether a line is compared with one of the base.
    pub(crate) fn is_other(&self, line: &Line<'_>) -> bool {
        line.cell.target != self.base && self.base_of(line).is_some()
    }

    /// Whether cells were measured more than once.
    pub(crate) fn is_repeated(&self) -> bool {
        self.keys.repeat || self.keys.run
    }

    /// The row of the base that a line's is compared to, if it can be.
    pub(crate) fn base_row(&self, line: &Line<'_>, step: StepHead<'_>) -> Option<&'a Row> {
        let row = self.base_of(line)?.row(step.name)?;
        comparable(row).then_some(row)
    }

    /// The lines that did a step, each with what it did.
    pub(crate) fn lines_in(
        &self,
        step: StepHead<'_>,
    ) -> impl Iterator<Item = (&Line<'a>, &'a Row)> {
        let lines = self.lines.iter();
        lines.filter_map(move |line| Some((line, line.row(step.name)?)))
    }

    /// The rows of all lines that did a step.
    pub(crate) fn rows_of(&self, step: StepHead<'_>) -> impl Iterator<Item = &'a Row> {
        self.lines_in(step).map(|(_, row)| row)
    }

    /// Lines that are compared with each other, group by group.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &[Line<'a>]> {
        self.lines.chunk_by(|a, b| a.same_group(b))
    }
}

/// The union of the steps of all lines: a step that a line lacks keeps its place after the one before it.
fn steps<'a>(lines: &[Line<'a>]) -> Vec<StepHead<'a>> {
    let mut steps: Vec<(&str, Vec<&Row>)> = Vec::new();
    for line in lines {
        let mut at = 0;
        for row in &line.rows {
            match steps.iter().position(|(name, _)| *name == row.step) {
                Some(position) => {
                    steps[position].1.push(row);
                    at = position + 1;
                }
                None => {
                    steps.insert(at, (&row.step, vec![row]));
                    at += 1;
                }
            }
        }
    }
    let heads = steps.iter().map(|(name, rows)| head(name, rows));
    heads.collect()
}

/// What the rows of a step say that it is. Of one that was never finished nothing but the name is recorded; one that failed
/// early may not say to which group it belongs.
fn head<'a>(name: &'a str, rows: &[&'a Row]) -> StepHead<'a> {
    let is_told = |row: &&'a Row| row.status != Status::Incomplete;
    let is_any_told = rows.iter().any(is_told);
    let rows = || {
        let rows = rows.iter().copied();
        rows.filter(|row| is_told(row) || !is_any_told)
    };
    StepHead {
        name,
        kind: rows().next().map(|row| row.kind).unwrap_or_default(),
        main_op: rows().find_map(|row| row.main_op.as_deref()),
        group: rows().find_map(|row| row.group.as_deref()),
        reported: rows().any(|row| row.reported),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(status: Status) -> Row {
        Row {
            step: "readrandom".into(),
            status,
            reported: true,
            ..Row::default()
        }
    }

    fn head_of(rows: Vec<&Row>) -> StepHead<'_> {
        let lines: Vec<Line<'_>> = rows
            .into_iter()
            .map(|row| Line {
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
            assert_eq!(head.main_op, Some("get"));
            assert_eq!(head.group, Some("point"));
            assert!(!head.reported);
        }
        // Where nobody finished it the name has to do.
        assert!(head_of(vec![&killed]).reported);
    }

    #[test]
    fn a_step_that_failed_early_has_the_group_that_others_say() {
        let failed = Row {
            kind: StepKind::Query,
            ..row(Status::Failed)
        };
        let complete = Row {
            group: Some("point".into()),
            ..row(Status::Complete)
        };
        assert_eq!(head_of(vec![&failed, &complete]).group, Some("point"));
    }
}
