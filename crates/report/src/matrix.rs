//! The rows of the figures as the field looks at them: one line per cell of the plan, one column per step.

use analysis::{Figures, Row};
use record::{Run, Status, StepKind};

/// A step, in the order of the plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepHead<'a> {
    pub name: &'a str,
    pub kind: StepKind,
}

/// One cell of the plan: a target with so many clients, once.
#[derive(Clone, Debug)]
pub(crate) struct Line<'a> {
    pub target: &'a str,
    pub variant: Option<&'a str>,
    pub clients: u32,
    pub repeat: u32,
    /// Which of several runs that hold the same cell, from 1.
    pub occurrence: u32,
    pub rows: Vec<&'a Row>,
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
        (self.variant, self.clients) == (other.variant, other.clients)
    }

    fn is(&self, target: &str, variant: Option<&str>, clients: u32, repeat: u32) -> bool {
        (self.target, self.variant, self.clients, self.repeat) == (target, variant, clients, repeat)
    }
}

/// All lines and steps.
#[derive(Clone, Debug)]
pub(crate) struct Matrix<'a> {
    /// The target that others are compared to.
    pub base: &'a str,
    /// Settle steps included.
    pub steps: Vec<StepHead<'a>>,
    pub lines: Vec<Line<'a>>,
    /// Which columns beside the target tell lines apart: variant, clients, repeat, occurrence.
    keys: [bool; 4],
}

impl<'a> Matrix<'a> {
    /// Sorts the rows into lines. Targets come in the order of `run`, those of other runs after them.
    pub(crate) fn new(run: &'a Run, figures: &'a Figures) -> Self {
        let mut lines: Vec<Line<'a>> = Vec::new();
        for row in &figures.rows {
            let variant = row.variant.as_deref();
            let same =
                |line: &&mut Line<'a>| line.is(&row.target, variant, row.clients, row.repeat);
            match lines.iter_mut().rev().find(same) {
                Some(line) if line.row(&row.step).is_none() => line.rows.push(row),
                before => {
                    let occurrence = before.map_or(1, |line| line.occurrence + 1);
                    lines.push(Line {
                        target: &row.target,
                        variant,
                        clients: row.clients,
                        repeat: row.repeat,
                        occurrence,
                        rows: vec![row],
                        unfinished: None,
                    });
                }
            }
        }
        for cell in &figures.unfinished {
            let of_cell = |line: &&mut Line<'a>| {
                line.target == cell.target
                    && (line.clients, line.repeat) == (cell.clients, cell.repeat)
            };
            match lines.iter_mut().rev().find(of_cell) {
                Some(line) => line.unfinished = Some(cell.status),
                None => lines.push(Line {
                    target: &cell.target,
                    variant: None,
                    clients: cell.clients,
                    repeat: cell.repeat,
                    occurrence: 1,
                    rows: Vec::new(),
                    unfinished: Some(cell.status),
                }),
            }
        }

        let targets: Vec<&str> = run
            .targets
            .iter()
            .map(|target| target.name.as_str())
            .collect();
        let position = |line: &Line<'_>| {
            targets
                .iter()
                .position(|name| *name == line.target)
                .unwrap_or(targets.len())
        };
        lines.sort_by_cached_key(|line| {
            (
                line.variant.map(str::to_owned),
                line.clients,
                position(line),
                line.repeat,
                line.occurrence,
            )
        });

        let differ = |key: &dyn Fn(&Line<'_>) -> u64| {
            lines
                .iter()
                .any(|line| lines.first().is_some_and(|first| key(first) != key(line)))
        };
        let keys = [
            lines.iter().any(|line| line.variant.is_some()),
            differ(&|line| u64::from(line.clients)),
            differ(&|line| u64::from(line.repeat)),
            differ(&|line| u64::from(line.occurrence)),
        ];
        Self {
            base: &run.base,
            steps: steps(&lines),
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
            line.variant.unwrap_or_default().to_string(),
            line.clients.to_string(),
            line.repeat.to_string(),
            line.occurrence.to_string(),
        ];
        let keys = values
            .into_iter()
            .zip(self.keys)
            .filter(|(_, shown)| *shown)
            .map(|(value, _)| value);
        std::iter::once(line.target.to_string())
            .chain(keys)
            .collect()
    }

    /// The line in one piece of text, for charts and sentences: `pg17.base c8 r2`.
    pub(crate) fn label(&self, line: &Line<'_>) -> String {
        let [variant, clients, repeat, occurrence] = self.keys;
        let mut label = line.target.to_string();
        if let (true, Some(variant)) = (variant, line.variant) {
            label += &format!(" {variant}");
        }
        for (shown, letter, value) in [
            (clients, 'c', line.clients),
            (repeat, 'r', line.repeat),
            (occurrence, '#', line.occurrence),
        ] {
            if shown {
                label += &format!(" {letter}{value}");
            }
        }
        label
    }

    /// The line that `line` is compared to: the base with the same clients and in the same repeat.
    pub(crate) fn base_of(&self, line: &Line<'_>) -> Option<&Line<'a>> {
        let bases = || {
            self.lines
                .iter()
                .filter(|base| base.is(self.base, line.variant, line.clients, line.repeat))
        };
        bases()
            .find(|base| base.occurrence == line.occurrence)
            .or_else(|| bases().next())
    }

    /// Lines that are compared with each other, group by group.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &[Line<'a>]> {
        self.lines.chunk_by(|a, b| a.same_group(b))
    }
}

/// The union of the steps of all lines: a step that a line lacks keeps its place after the one before it.
fn steps<'a>(lines: &[Line<'a>]) -> Vec<StepHead<'a>> {
    let mut steps: Vec<StepHead<'a>> = Vec::new();
    for line in lines {
        let mut at = 0;
        for row in &line.rows {
            match steps.iter().position(|step| step.name == row.step) {
                Some(position) => at = position + 1,
                None => {
                    steps.insert(
                        at,
                        StepHead {
                            name: &row.step,
                            kind: row.kind,
                        },
                    );
                    at += 1;
                }
            }
        }
    }
    steps
}
