//! The rows of the figures as the field looks at them: one line per cell of the plan, one column per step.

use analysis::{Figures, Row, Unfinished, counted};
use record::{CellKey, Run, Status, StepKind};

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

/// The groups of a benchmark in the order in which they are shown; others follow as they come.
const GROUPS: [&str; 4] = ["point", "range-1", "range-2", "write"];

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
    pub(crate) fn is_of(&self, cell: &Unfinished) -> bool {
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
    /// Which columns beside the target tell lines apart: variant, clients, repeat, run.
    keys: [bool; 4],
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

        let targets: Vec<&str> = run
            .targets
            .iter()
            .map(|target| target.name.as_str())
            .collect();
        let position = |line: &Line<'_>| {
            targets
                .iter()
                .position(|name| *name == line.cell.target)
                .unwrap_or(targets.len())
        };
        lines.sort_by_cached_key(|line| {
            (
                line.cell.variant.clone(),
                line.cell.clients,
                position(line),
                line.cell.repeat,
                line.run,
            )
        });

        let differ = |key: &dyn Fn(&Line<'_>) -> u64| {
            lines
                .iter()
                .any(|line| lines.first().is_some_and(|first| key(first) != key(line)))
        };
        let keys = [
            lines.iter().any(|line| line.cell.variant.is_some()),
            differ(&|line| u64::from(line.cell.clients)),
            differ(&|line| u64::from(line.cell.repeat)),
            differ(&|line| line.run as u64),
        ];
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
        let names = ["variant", "clients", "repeat", "run"];
        let keys = names
            .iter()
            .zip(self.keys)
            .filter(|(_, shown)| *shown)
            .map(|(name, _)| name.to_string());
        std::iter::once("target".to_string()).chain(keys).collect()
    }

    /// What stands in these columns.
    pub(crate) fn lead_of(&self, line: &Line<'_>) -> Vec<String> {
        let values = [
            line.cell.variant.clone().unwrap_or_default(),
            line.cell.clients.to_string(),
            line.cell.repeat.to_string(),
            (line.run + 1).to_string(),
        ];
        let keys = values
            .into_iter()
            .zip(self.keys)
            .filter(|(_, shown)| *shown)
            .map(|(value, _)| value);
        std::iter::once(line.cell.target.to_string())
            .chain(keys)
            .collect()
    }

    /// The line in one piece of text, for charts and sentences: `pg17.base c8 r2`.
    pub(crate) fn label(&self, line: &Line<'_>) -> String {
        let [variant, clients, ..] = self.keys;
        let mut label = line.cell.target.to_string();
        if let (true, Some(variant)) = (variant, &line.cell.variant) {
            label += &format!(" {variant}");
        }
        if clients {
            label += &format!(" c{}", line.cell.clients);
        }
        label += &self.suffix(line);
        label
    }

    /// What the lines of a group have in common, where there are several groups: `cached, 8 clients`.
    pub(crate) fn group_label(&self, lines: &[Line<'_>]) -> Option<String> {
        let line = lines.first()?;
        let variant = line.cell.variant.clone().filter(|_| self.keys[0]);
        let clients = self.keys[1].then(|| counted(line.cell.clients as usize, "client"));
        let texts: Vec<String> = variant.into_iter().chain(clients).collect();
        (!texts.is_empty()).then(|| texts.join(", "))
    }

    /// What tells a line apart from others of its group beside its target: ` r2`.
    pub(crate) fn suffix(&self, line: &Line<'_>) -> String {
        let [_, _, repeat, run] = self.keys;
        let mut suffix = String::new();
        for (shown, letter, value) in [
            (repeat, 'r', line.cell.repeat as usize),
            (run, '#', line.run + 1),
        ] {
            if shown {
                suffix += &format!(" {letter}{value}");
            }
        }
        suffix
    }

    /// The lines of a group, those of the base first.
    pub(crate) fn base_first<'l>(&self, lines: &'l [Line<'a>]) -> Vec<&'l Line<'a>> {
        let mut lines: Vec<_> = lines.iter().collect();
        lines.sort_by_key(|line| line.cell.target != self.base);
        lines
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

    /// The rows of all lines that did a step.
    pub(crate) fn rows_of(&self, step: StepHead<'a>) -> impl Iterator<Item = &'a Row> {
        self.lines
            .iter()
            .filter_map(move |line| line.row(step.name))
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
