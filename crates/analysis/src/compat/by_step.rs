//! Compares the steps of a cell with each other: steps become the targets.

use record::{CellKey, Run, Target};

use super::by_run::key_of;
use super::{Facts, Incomparable, LISTED_MAX, differences, differences_text};
use crate::figures::{ComparedSides, Figures, Row, StartedCell, UnfinishedCell};
use crate::order::{distinct, grouped};
use crate::settings::Settings;

/// Two steps that are compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepPair {
    /// The names of both steps as targets, the base first. The base has the same name in all
    /// pairs.
    pub labels: [String; 2],
    /// The steps.
    pub steps: [String; 2],
    /// The name of both as one step.
    pub name: String,
}

impl StepPair {
    fn both(&self) -> impl Iterator<Item = (&String, &String)> {
        self.labels.iter().zip(&self.steps)
    }
}

/// Returns the key of a cell where steps are compared: the step is its target, and its target is a
/// variant.
pub fn key_by_step(label: &str, cell: &CellKey) -> CellKey {
    key_of(label.to_owned(), cell)
}

/// Turns steps into targets, and targets into variants. Drops steps that are in no pair. Returns
/// the run to compare, and notes on it.
///
/// # Errors
/// Fails if the steps of a pair count different operations.
pub fn by_step(
    run: &Run,
    figures: &mut Figures,
    pairs: &[StepPair],
) -> Result<(Run, Vec<String>), Incomparable> {
    for pair in pairs {
        refuse_other_work(figures, pair)?;
    }

    // Profiles, exact work and settings are compared between targets.
    figures.profiled.clear();
    figures.exact.clear();
    figures.sides = ComparedSides::Steps;
    figures.settings = Settings::default();
    for rows in [&mut figures.rows, &mut figures.missing] {
        *rows = rows.iter().flat_map(|row| as_targets(row, pairs)).collect();
    }

    // A cell has all steps, so that it is a cell of each of them.
    let labels = distinct(pairs.iter().flat_map(|pair| &pair.labels));
    let (mut unfinished, mut begun) = (Vec::new(), Vec::new());
    for end in &figures.unfinished {
        for label in &labels {
            unfinished.push(UnfinishedCell { cell: key_by_step(label, &end.cell), ..end.clone() });
        }
    }

    for start in &figures.begun {
        for label in &labels {
            begun.push(StartedCell { cell: key_by_step(label, &start.cell), ..start.clone() });
        }
    }

    figures.unfinished = unfinished;
    figures.begun = begun;

    let targets =
        labels.iter().map(|label| Target { name: (*label).clone(), ..run.targets[0].clone() });
    let shown = Run {
        targets: targets.collect(),
        base: pairs[0].labels[0].clone(),
        bases: Vec::new(),
        ..run.clone()
    };
    Ok((shown, notes(run, pairs)))
}

/// Returns a copy of a row for each pair that its step takes part in, under the step's name in that
/// pair. A step that is the base of several pairs has only one name.
fn as_targets(row: &Row, pairs: &[StepPair]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for pair in pairs {
        for (label, _) in pair.both().filter(|(_, step)| **step == row.step) {
            let cell = key_by_step(label, &row.cell);
            if !rows.iter().any(|other| other.cell == cell && other.step == pair.name) {
                rows.push(Row {
                    cell,
                    step: pair.name.clone(),
                    // A step that the user names is shown.
                    reported: true,
                    // Steps of one cell took no turns with each other.
                    half_blocks: Vec::new(),
                    ..row.clone()
                });
            }
        }
    }
    rows
}

/// Refuses steps whose ratios have no meaning, because their kinds or operations differ.
fn refuse_other_work(figures: &Figures, pair: &StepPair) -> Result<(), Incomparable> {
    let what = |step: &String| {
        let mut rows = figures.rows.iter().filter(|row| row.step == *step);
        let row = rows.find(|row| !row.damaged)?;
        Some((row.kind, &row.main_op, row.queries_per_event))
    };

    let [base, other] = &pair.steps;
    match what(base).zip(what(other)) {
        Some((of_base, of_other)) if of_base != of_other => Err(Incomparable {
            message: format!("steps `{base}` and `{other}` do not count the same operations"),
            help: "name steps with the same test, or with the same main operation",
        }),
        _ => Ok(()),
    }
}

/// Returns notes on how the steps of pairs differ in the plan, and on what runs between them.
fn notes(run: &Run, pairs: &[StepPair]) -> Vec<String> {
    let mut by_text = Vec::new();
    for pair in pairs {
        let [base, other] = pair.steps.each_ref().map(|step| facts(run, step));
        let differences = differences(&base, &other);
        if !differences.is_empty() {
            let who = format!("`{}` and `{}`", pair.steps[0], pair.steps[1]);
            by_text.push((differences_text(&differences, "none"), who));
        }
    }

    let mut notes = Vec::new();
    for (what, who) in grouped(by_text) {
        let more = who.len().saturating_sub(LISTED_MAX);
        let mut shown = who[..who.len() - more].join(", ");
        if more > 0 {
            shown += &format!(" and {more} more pairs");
        }
        notes.push(format!("Steps differ in the plan: {what} ({shown})."));
    }

    notes.push(
        "Steps of a cell always run in the same order: the difference includes what the steps in between left behind."
            .to_owned(),
    );
    notes
}

/// Returns the plan's values of a step, by their keys without the step's name.
fn facts(run: &Run, step: &str) -> Facts {
    let own = [format!(".step.{step}."), format!(".step.\"{step}\".")];
    let values = run.plan.resolved.iter().filter_map(|value| {
        let (before, name) = own.iter().find_map(|own| value.key.split_once(own))?;
        // A variant has its keys in a table of its own.
        let table = before.split_once(".variant.");
        let prefix = table.map_or(String::new(), |(_, variant)| format!("{variant}: "));
        Some((format!("{prefix}{name}"), value.value.clone()))
    });
    values.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use record::{ResolvedValue, Status, StepKind};

    use super::*;
    use crate::compare::{CompareOptions, Pairing, Verdict, compare};

    fn pair(labels: [&str; 2], steps: [&str; 2], name: &str) -> StepPair {
        StepPair {
            labels: labels.map(str::to_owned),
            steps: steps.map(str::to_owned),
            name: name.to_owned(),
        }
    }

    fn run() -> Run {
        let value = |key: &str, value: &str| ResolvedValue {
            key: key.into(),
            value: value.into(),
            origin: "default".into(),
        };
        let mut run = Run {
            targets: vec![Target {
                name: "pg.base".into(),
                build: "pg".into(),
                config: "base".into(),
                engine: "postgres".into(),
                ..Target::default()
            }],
            ..Run::default()
        };
        run.plan.resolved = vec![
            value("workload.insert.step.qr0.time", "10s"),
            value("workload.insert.step.qr100.time", "10s"),
            value("workload.insert.step.qr100.rate", "100"),
        ];
        run
    }

    /// Three repeats of three steps, of which the second is 10% slower than the first, and of one
    /// that only loads.
    fn figures() -> Figures {
        let mut figures = Figures::default();
        let steps = [("qr0", 100.0), ("qr100", 90.0), ("qr500", 80.0), ("l.i1", 7.0)];
        for repeat in 1..=3 {
            let cell = CellKey::new("pg.base", None, 1, repeat);
            for (step, rate) in steps {
                let (kind, metric) = match step {
                    "l.i1" => (StepKind::Load, "ips"),
                    _ => (StepKind::Query, "qps"),
                };
                figures.rows.push(Row {
                    cell: cell.clone(),
                    step: step.into(),
                    kind,
                    status: Status::Complete,
                    valid: true,
                    metrics: BTreeMap::from([(metric, Some(rate + 0.01 * f64::from(repeat)))]),
                    ..Row::default()
                });
            }
            figures.begun.push(StartedCell {
                cell,
                invocation: 1,
                started_unix_ns: u64::from(repeat) * 1_000_000_000,
                ..StartedCell::default()
            });
        }
        figures
    }

    #[test]
    fn steps_are_compared_in_pairs_by_repeat_in_each_target() {
        let mut figures = figures();
        let pairs = [
            pair(["qr0", "qr100"], ["qr0", "qr100"], "qr"),
            pair(["qr0", "qr500"], ["qr0", "qr500"], "qr"),
        ];
        let (shown, notes) = by_step(&run(), &mut figures, &pairs).unwrap();
        let names: Vec<&str> = shown.targets.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["qr0", "qr100", "qr500"]);
        assert_eq!(figures.rows.len(), 9, "the base is there once");
        assert!(notes[0].starts_with("Steps differ in the plan: `rate` none -> 100"), "{notes:?}");
        let compared =
            compare(&figures, &CompareOptions { base: shown.base, ..CompareOptions::default() });
        let row = &compared.rows[0];
        let place = (&*row.cell.target, row.cell.variant.as_deref(), &*row.step);
        assert_eq!(place, ("qr100", Some("pg.base"), "qr"));
        assert_eq!(row.pairing, Pairing::Paired);
        assert_eq!((row.values.len(), row.verdict), (3, Verdict::Slower));
        assert!((row.ratio.unwrap() - 0.9).abs() < 1e-3);
    }

    #[test]
    fn steps_that_count_other_things_are_refused() {
        let pairs = [pair(["qr0", "l.i1"], ["qr0", "l.i1"], "qr0")];
        let refused = by_step(&run(), &mut figures(), &pairs).unwrap_err();
        assert_eq!(refused.to_string(), "steps `qr0` and `l.i1` do not count the same operations");
    }
}
