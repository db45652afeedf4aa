//! The results of a run so far: the cells that have ended, and the throughput of each target
//! relative to the base.
//!
//! The record is read between cells, because cells run in other processes too, and earlier
//! invocations have measured some. Only `cell.json` and `step.json` are read, which takes a few
//! milliseconds.

use std::collections::BTreeMap;
use std::path::PathBuf;

use analysis::counted;
use record::{CellKey, CellRef, RecordError, Run, RunDir, Status, StepKind, StepState};
use serde::{Deserialize, Serialize};

use crate::throughput::EndedThroughput;

/// The maximum number of targets that a line names; of more it has the range.
const NAMED_MAX: usize = 5;

/// The results of a run so far.
#[derive(Default)]
pub struct SoFar {
    /// The run's directory; `None` before the run begins, and in the process of a cell.
    directory: Option<PathBuf>,
    /// The target that others are compared with, from [`Run::replace_unmeasured_bases`]; of several
    /// bases all, as in `a and b`.
    base: String,
    /// The base of each target, if there are several.
    bases: BTreeMap<String, String>,
    /// The run searches for the highest rate of each target, so that throughput is as requested.
    is_search: bool,
    ended: Vec<EndedCell>,
    /// The last line that was shown.
    shown: Option<String>,
}

/// The state of a run at some time.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct SoFarSnapshot {
    /// The target that others are compared with.
    pub base: String,
    pub relative: Vec<RelativeTarget>,
    /// The cells that have ended, in the order of the run.
    pub cells: Vec<EndedCell>,
}

/// A cell that has ended.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct EndedCell {
    pub cell: CellKey,
    pub status: Status,
    pub steps: Vec<EndedStep>,
}

/// A step of a cell that has ended. Settle steps and those that tables leave out are missing.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct EndedStep {
    pub name: String,
    pub per_second: f64,
    /// The name of what is counted per second.
    pub unit: String,
    /// The step is complete and valid.
    pub is_valid: bool,
}

/// A target under one load, relative to the base.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct RelativeTarget {
    /// The target's cells, in all repeats.
    pub cell: CellKey,
    /// The number of repeats that both have completed.
    pub repeats: usize,
    /// The geometric mean of the ratios of all steps.
    pub mean: f64,
    /// The ratio of throughput in each step: the geometric mean of the repeats.
    pub steps: Vec<(String, f64)>,
}

impl SoFar {
    /// Takes note of a run.
    pub fn begin(&mut self, run: &Run, directory: &RunDir) {
        self.directory = Some(directory.path().to_owned());
        let mut measured = run.clone();
        measured.replace_unmeasured_bases(|target| run.has_cell_of(target));
        self.bases.clear();
        self.base.clone_from(&measured.base);
        if !measured.bases.is_empty() {
            let names: Vec<&str> = measured.bases.iter().map(|base| base.target.as_str()).collect();
            self.base = names.join(" and ");
            for target in &measured.targets {
                let base = measured.base_of(target).map(str::to_owned);
                self.bases.extend(base.map(|base| (target.name.clone(), base)));
            }
        }
        self.is_search = run.search.is_some();
    }

    /// Reads the cells that have ended since; returns whether there are any.
    pub fn refresh(&mut self) -> bool {
        // A record that cannot be read ends the run elsewhere, with its error.
        let Ok(ended) = self.read_ended() else {
            return false;
        };

        let has_changed = ended != self.ended;
        self.ended = ended;
        has_changed
    }

    fn read_ended(&self) -> Result<Vec<EndedCell>, RecordError> {
        let Some(path) = &self.directory else {
            return Ok(Vec::new());
        };
        let directory = RunDir::open(path)?;

        let mut ended = Vec::new();
        for cell in &directory.read_run()?.cells {
            // A cell that failed may be measured again, and a complete one never is.
            let is_complete = |known: &&EndedCell| known.status == Status::Complete;
            let known = self.ended.iter().find(|known| known.cell == cell.key);
            if let Some(complete) = known.filter(is_complete) {
                ended.push(complete.clone());
            } else if cell.key.kind.is_measured() {
                ended.extend(EndedCell::read(&directory, cell)?);
            }
        }

        Ok(ended)
    }

    /// Returns what is known now.
    pub fn snapshot(&self) -> SoFarSnapshot {
        SoFarSnapshot {
            base: self.base.clone(),
            relative: self.relative(),
            cells: self.ended.clone(),
        }
    }

    /// Returns each target relative to the base, in the repeats that both have completed. A cell that
    /// failed or was interrupted may be measured again.
    fn relative(&self) -> Vec<RelativeTarget> {
        if self.is_search {
            return Vec::new();
        }

        let mut found: Vec<RelativeRepeats> = Vec::new();
        for ended in self.completed() {
            let Some(base) = self.base_of(&ended.cell.target) else {
                continue;
            };
            let of_base = ended.cell.of_target(base);
            let Some(of_base) = self.completed().find(|other| other.cell == of_base) else {
                continue;
            };

            let cell = ended.cell.all_repeats();
            let at = found.iter().position(|known| known.cell == cell).unwrap_or_else(|| {
                found.push(RelativeRepeats { cell, logs: Vec::new(), repeats: 0 });
                found.len() - 1
            });
            found[at].add(ended, of_base);
        }

        found.iter().filter_map(RelativeRepeats::relative).collect()
    }

    /// Returns the cells that are complete.
    fn completed(&self) -> impl Iterator<Item = &EndedCell> {
        self.ended.iter().filter(|cell| cell.status == Status::Complete)
    }

    /// Returns the other target that a target is compared with.
    fn base_of(&self, target: &str) -> Option<&str> {
        let base = if self.bases.is_empty() { &self.base } else { self.bases.get(target)? };
        (base != target).then_some(base)
    }

    /// Returns a line about the comparison so far; `None` if it is the last one again, or if
    /// nothing can be compared.
    pub fn new_line(&mut self) -> Option<String> {
        let line = line(&self.base, &self.relative())?;
        if self.shown.as_ref() == Some(&line) {
            return None;
        }
        self.shown = Some(line.clone());
        Some(line)
    }
}

impl EndedCell {
    /// Reads a cell; `None` if it has not ended.
    fn read(directory: &RunDir, cell: &CellRef) -> Result<Option<Self>, RecordError> {
        let directory = directory.cell(cell)?;
        if !directory.exists() {
            return Ok(None);
        }

        let status = directory.read()?.status;
        if status == Status::Incomplete {
            return Ok(None);
        }

        let mut steps = Vec::new();
        for reader in directory.read_steps()? {
            let step = reader.step();
            // As in the final tables.
            let is_shown = !step.unreported && step.kind != StepKind::Settle;
            if reader.state() != StepState::Finished || !is_shown {
                continue;
            }
            if let Some(EndedThroughput { per_second, unit }) = EndedThroughput::of(step) {
                let is_valid = step.valid && step.status == Status::Complete;
                steps.push(EndedStep { name: step.name.clone(), per_second, unit, is_valid });
            }
        }

        Ok(Some(Self { cell: cell.key.clone(), status, steps }))
    }

    /// Returns the throughput of a step, if it may be compared.
    fn throughput(&self, step: &str) -> Option<f64> {
        let step = self.steps.iter().find(|known| known.name == step && known.is_valid)?;
        (step.per_second > 0.0).then_some(step.per_second)
    }
}

/// The ratios of the repeats of a target.
struct RelativeRepeats {
    cell: CellKey,
    /// The logarithms of the ratios in each step, in the order of the steps.
    logs: Vec<(String, Vec<f64>)>,
    repeats: usize,
}

impl RelativeRepeats {
    fn add(&mut self, ended: &EndedCell, base: &EndedCell) {
        self.repeats += 1;
        for step in &ended.steps {
            let rates = ended.throughput(&step.name).zip(base.throughput(&step.name));
            let Some((rate, base)) = rates else {
                continue;
            };

            let log = (rate / base).ln();
            match self.logs.iter_mut().find(|(name, _)| *name == step.name) {
                Some((_, logs)) => logs.push(log),
                None => self.logs.push((step.name.clone(), vec![log])),
            }
        }
    }

    /// Returns the geometric means; `None` if no step can be compared.
    fn relative(&self) -> Option<RelativeTarget> {
        let means: Vec<f64> = self.logs.iter().map(|(_, logs)| mean(logs)).collect();
        if means.is_empty() {
            return None;
        }

        let names = self.logs.iter().map(|(name, _)| name.clone());

        Some(RelativeTarget {
            cell: self.cell.clone(),
            repeats: self.repeats,
            mean: mean(&means).exp(),
            steps: names.zip(means.iter().map(|mean| mean.exp())).collect(),
        })
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the line about targets relative to the base; `None` without any.
fn line(base: &str, targets: &[RelativeTarget]) -> Option<String> {
    let repeats = targets.iter().map(|target| target.repeats).max()?;
    let steps = targets.iter().map(|target| target.steps.len()).max()?;
    let mut by_load: BTreeMap<(Option<&str>, u32), usize> = BTreeMap::new();
    for target in targets {
        *by_load.entry(target.cell.load()).or_default() += 1;
    }

    let text = |target: &RelativeTarget| {
        // Targets of one load need no name of it.
        let name = name(&target.cell, by_load.len() > 1);
        format!("{name} {}", ratio_text(target.mean))
    };

    let ratios = if targets.len() <= NAMED_MAX {
        targets.iter().map(text).collect::<Vec<_>>().join(", ")
    } else {
        let least = targets.iter().min_by(|a, b| a.mean.total_cmp(&b.mean))?;
        let most = targets.iter().max_by(|a, b| a.mean.total_cmp(&b.mean))?;
        format!("{} to {} of {}", text(least), text(most), counted(targets.len(), "target"))
    };

    Some(format!(
        "so far, throughput relative to {base}: {ratios} (mean of {}, {}; no verdict yet)",
        counted(steps, "step"),
        counted(repeats, "repeat")
    ))
}

/// Returns the name of a target, with its load if there are several.
fn name(cell: &CellKey, has_load: bool) -> String {
    if has_load { cell.target_and_load() } else { cell.target.clone() }
}

/// Returns a ratio with three digits.
fn ratio_text(ratio: f64) -> String {
    let decimals = (2 - ratio.log10().floor() as i32).clamp(0, 6) as usize;
    format!("{ratio:.decimals$}x")
}

#[cfg(test)]
mod tests {
    use record::{Cell, Target};

    use super::*;

    fn ended(target: &str, repeat: u32, rates: &[(&str, f64)]) -> EndedCell {
        let step = |(name, per_second): &(&str, f64)| EndedStep {
            name: (*name).to_owned(),
            per_second: *per_second,
            unit: "queries".to_owned(),
            is_valid: true,
        };
        EndedCell {
            cell: CellKey::new(target, None, 1, repeat),
            status: Status::Complete,
            steps: rates.iter().map(step).collect(),
        }
    }

    fn so_far(ended: Vec<EndedCell>) -> SoFar {
        SoFar { base: "pg.a".to_owned(), ended, ..SoFar::default() }
    }

    #[test]
    fn targets_are_compared_in_the_repeats_that_both_have_ended() {
        let mut so_far = so_far(vec![
            ended("pg.a", 1, &[("load", 100.0), ("read", 100.0)]),
            ended("pg.b", 1, &[("load", 200.0), ("read", 50.0)]),
            ended("pg.a", 2, &[("load", 100.0), ("read", 100.0)]),
        ]);
        let [target] = &so_far.relative()[..] else {
            panic!("one target is compared");
        };
        assert_eq!(target.repeats, 1);
        assert_eq!(target.steps, [("load".to_owned(), 2.0), ("read".to_owned(), 0.5)]);
        let line = "so far, throughput relative to pg.a: pg.b 1.00x (mean of 2 steps, 1 repeat; no verdict yet)";
        assert_eq!(so_far.new_line().as_deref(), Some(line));
        assert_eq!(so_far.new_line(), None, "the same line is not shown again");
    }

    #[test]
    fn an_invalid_step_is_not_compared() {
        let mut invalid = ended("pg.b", 1, &[("load", 200.0)]);
        invalid.steps[0].is_valid = false;
        let mut so_far = so_far(vec![ended("pg.a", 1, &[("load", 100.0)]), invalid]);
        assert_eq!(so_far.new_line(), None);
    }

    #[test]
    fn an_interrupted_cell_is_not_compared() {
        let mut interrupted = ended("pg.b", 1, &[("load", 200.0)]);
        interrupted.status = Status::Interrupted;
        let mut so_far = so_far(vec![ended("pg.a", 1, &[("load", 100.0)]), interrupted]);
        assert_eq!(so_far.new_line(), None);
    }

    #[test]
    fn a_search_for_the_highest_rate_compares_no_throughput() {
        let mut so_far =
            so_far(vec![ended("pg.a", 1, &[("load", 1.0)]), ended("pg.b", 1, &[("load", 2.0)])]);
        so_far.is_search = true;
        assert_eq!(so_far.new_line(), None);
    }

    #[test]
    fn of_many_targets_the_line_has_the_range() {
        let mut cells = vec![ended("pg.a", 1, &[("load", 100.0)])];
        for at in 1..=8 {
            cells.push(ended(&format!("pg.b{at}"), 1, &[("load", 100.0 * f64::from(at))]));
        }
        let line = so_far(cells).new_line().unwrap();
        assert!(line.contains(": pg.b1 1.00x to pg.b8 8.00x of 8 targets ("), "{line}");
    }

    #[test]
    fn without_its_base_a_run_is_compared_with_the_first_target_of_its_plan() {
        let folder = tempfile::tempdir().unwrap();
        let cell = |target| CellRef::of(CellKey::new(target, None, 1, 1), "insert");
        let target = |name: &str| Target { name: name.to_owned(), ..Target::default() };
        let mut run = Run {
            base: "pg.base".to_owned(),
            targets: ["pg.base", "pg.a", "pg.z"].map(target).into(),
            cells: vec![cell("pg.z"), cell("pg.base"), cell("pg.a")],
            ..Run::default()
        };
        let directory = RunDir::create(folder.path(), &run).unwrap();
        let mut so_far = SoFar::default();
        so_far.begin(&run, &directory);
        assert_eq!(so_far.base, "pg.base");
        run.cells.remove(1);
        so_far.begin(&run, &directory);
        assert_eq!(so_far.base, "pg.a");
    }

    #[test]
    fn cells_are_read_when_they_have_ended() {
        let folder = tempfile::tempdir().unwrap();
        let cell = CellRef::of(CellKey::new("pg.a", None, 1, 1), "insert");
        let run = Run { cells: vec![cell.clone()], ..Run::default() };
        let directory = RunDir::create(folder.path(), &run).unwrap();
        let mut so_far = SoFar::default();
        so_far.begin(&run, &directory);
        assert!(!so_far.refresh(), "nothing has begun");

        let written = directory.begin_cell(&cell).unwrap();
        let mut record = Cell { key: cell.key.clone(), ..Cell::default() };
        written.write(&record).unwrap();
        assert!(!so_far.refresh(), "it is being measured");

        record.status = Status::Complete;
        written.write(&record).unwrap();
        directory.end_cell(&cell).unwrap();
        assert!(so_far.refresh());
        assert!(!so_far.refresh(), "nothing has changed");
    }
}
