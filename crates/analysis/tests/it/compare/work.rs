//! Verdicts on exact work: by hand, and where the truth is known. The figures are in
//! `docs/exact.md`.

use std::collections::BTreeMap;

use analysis::compare::{CompareOptions, Compared, ComparedWork, WorkVerdict, compare};
use analysis::figures::{ExactStep, Figures, Row};
use record::{CellKey, Status, StepKind, StepWork};
use words::{CellKind, WorkPart, WorkRole};

use super::machine::Random;
use crate::simulations::{at_most, simulations};
use crate::tell;

const OPERATIONS: u64 = 1000;
const STEPS: u32 = 10;

/// A part with its instructions per operation.
type Parts<'a> = &'a [(WorkRole, &'a str, f64)];

fn exact(target: &str, step: &str, repeat: u32, parts: Parts<'_>) -> ExactStep {
    let part = |&(role, name, per_operation): &(WorkRole, &str, f64)| WorkPart {
        role,
        name: name.into(),
        operations: if role == WorkRole::Serving { vec![name.into()] } else { Vec::new() },
        instructions: (per_operation * OPERATIONS as f64).round() as u64,
        events: BTreeMap::new(),
    };
    let serving = parts.iter().filter(|(role, ..)| *role == WorkRole::Serving);
    ExactStep {
        row: Row {
            cell: CellKey { kind: CellKind::Exact, ..CellKey::new(target, None, 1, repeat) },
            step: step.into(),
            kind: StepKind::Query,
            status: Status::Complete,
            reported: true,
            valid: true,
            ..Row::default()
        },
        work: StepWork {
            missing: None,
            tool: "valgrind-3.19.0".into(),
            warmup_operations: 200,
            operations: serving.map(|(_, name, _)| ((*name).into(), OPERATIONS)).collect(),
            parts: parts.iter().map(part).collect(),
        },
        graphs: BTreeMap::new(),
    }
}

fn compared(exact: Vec<ExactStep>) -> Compared {
    let figures = Figures { exact, ..Figures::default() };
    compare(&figures, &CompareOptions { base: "base".into(), ..CompareOptions::default() })
}

/// Returns the comparison of one step's queries: the instructions of each cell of both targets.
fn of_queries(base: &[f64], target: &[f64]) -> ComparedWork {
    let mut steps = Vec::new();
    for (name, values) in [("base", base), ("new", target)] {
        for (repeat, value) in (1..).zip(values) {
            steps.push(exact(name, "q1", repeat, &[(WorkRole::Serving, "query", *value)]));
        }
    }
    let mut work = compared(steps).work;
    assert_eq!(work.len(), 1);
    work.remove(0)
}

#[test]
fn a_change_is_shown_if_it_is_large_and_several_floors() {
    let exactly = |value: f64| [value, value * 1.0003];
    for (ratio, verdict) in [
        (1.01, WorkVerdict::More),
        (0.99, WorkVerdict::Less),
        (1.004, WorkVerdict::NoChangeShown),
        (1.0, WorkVerdict::NoChangeShown),
    ] {
        let work = of_queries(&exactly(65_800.0), &exactly(65_800.0 * ratio));
        assert_eq!(work.verdict, verdict, "{ratio}");
        assert!((work.ratio.unwrap() - ratio).abs() < 1e-6);
        assert!((work.floor.unwrap() - 0.0003).abs() < 1e-6);
        assert_eq!(work.shown_from, Some(0.005));
    }

    let noisy = of_queries(&[1000.0, 1004.0], &[1020.0, 1020.0]);
    assert_eq!(noisy.verdict, WorkVerdict::NoChangeShown);
    assert!((noisy.shown_from.unwrap() - 8.0 * 4.0 / 1002.0).abs() < 1e-9);
    assert!(noisy.is_deterministic());
    let wild = of_queries(&[1000.0, 1040.0], &[1020.0, 1020.0]);
    assert_eq!(wild.verdict, WorkVerdict::NotDeterministic);
    assert!(!wild.is_deterministic());
}

#[test]
fn a_single_cell_tells_no_floor() {
    let work = of_queries(&[1000.0, 1000.0], &[1500.0]);
    assert_eq!(work.verdict, WorkVerdict::Single);
    assert_eq!((work.ratio, work.floor), (Some(1.5), None));
    assert_eq!(work.reasons, ["new has one exact cell that counts"]);
}

#[test]
fn each_connection_is_compared_by_its_own_operations_and_the_background_by_all() {
    let step = |target, repeat, factor: f64| {
        let parts = [
            (WorkRole::Serving, "query", 1000.0),
            (WorkRole::Serving, "insert", 3000.0 * factor),
            (WorkRole::Background, "checkpointer", 10.0),
            (WorkRole::Background, "walwriter", 30.0),
            (WorkRole::Client, "client", 500.0 * factor),
        ];
        exact(target, "q1", repeat, &parts)
    };
    let steps =
        [step("base", 1, 1.0), step("base", 2, 1.0), step("new", 1, 1.1), step("new", 2, 1.1)];
    let work = compared(steps.into()).work;
    let found: Vec<_> = work
        .iter()
        .map(|work| (work.part.name(), work.base_mean().unwrap(), work.verdict))
        .collect();
    assert_eq!(
        found,
        [
            ("query", 1000.0, WorkVerdict::NoChangeShown),
            ("insert", 3000.0, WorkVerdict::More),
            ("background", 20.0, WorkVerdict::NoChangeShown),
        ]
    );
}

#[test]
fn cells_that_were_not_counted_are_told_with_the_reason() {
    let queries =
        |target, repeat| exact(target, "q1", repeat, &[(WorkRole::Serving, "query", 1000.0)]);
    let mut lost = queries("new", 2);
    lost.work = StepWork { missing: Some("the engine was killed".into()), ..StepWork::default() };
    let work = compared(vec![queries("base", 1), queries("base", 2), queries("new", 1), lost]).work;
    assert_eq!(work[0].verdict, WorkVerdict::Single);
    assert_eq!(
        work[0].reasons,
        [
            "new, exact cell 2 is left out: the engine was killed",
            "new has one exact cell that counts",
        ]
    );

    let work = compared(vec![queries("other", 1), queries("other", 2)]).work;
    assert_eq!(work[0].verdict, WorkVerdict::NotComparable);
    assert_eq!(work[0].reasons, ["base has no work counted here"]);
}

#[test]
fn cells_that_were_counted_in_another_way_are_told() {
    let mut steps = Vec::new();
    for (target, tool) in [("base", "valgrind-3.19.0"), ("new", "valgrind-3.24.0")] {
        for repeat in 1..=2 {
            let mut step = exact(target, "q1", repeat, &[(WorkRole::Serving, "query", 1000.0)]);
            step.work.tool = tool.into();
            steps.push(step);
        }
    }
    assert_eq!(
        compared(steps).work[0].reasons,
        ["the cells were counted in different ways: valgrind-3.19.0 after 200 operations, \
          valgrind-3.24.0 after 200 operations"]
    );
}

/// A run of which the truth is known.
#[derive(Clone, Copy, Debug)]
struct Truth {
    /// The cells of each target.
    cells: u32,
    /// The steps of each cell.
    steps: u32,
    /// The standard deviation of a cell's work, relative.
    noise: f64,
    /// The target's work, relative to the base's.
    ratio: f64,
    /// Half of the cells do 1% more work than the others, whichever their target.
    has_two_modes: bool,
}

impl Truth {
    fn measure(self, random: &mut Random) -> Compared {
        let mut steps = Vec::new();
        for (target, ratio) in [("base", 1.0), ("new", self.ratio)] {
            for repeat in 1..=self.cells {
                for step in 0..self.steps {
                    let mut value = 1e6 * ratio * (1.0 + self.noise * random.normal());
                    if self.has_two_modes && random.uniform() < 0.5 {
                        value *= 1.01;
                    }
                    let parts = [(WorkRole::Serving, "query", value)];
                    steps.push(exact(target, &format!("q{step}"), repeat, &parts));
                }
            }
        }
        compared(steps)
    }

    /// Returns the share of runs in which any of the steps changed, and the share of steps.
    fn shown(self, times: u32) -> (f64, f64) {
        let mut random = Random::new(7);
        let (mut runs, mut steps) = (0, 0);
        for _ in 0..times {
            let work = self.measure(&mut random).work;
            let changed = work.iter().filter(|work| work.verdict.is_change()).count();
            runs += u32::from(changed > 0);
            steps += changed as u32;
        }
        (f64::from(runs) / f64::from(times), f64::from(steps) / f64::from(times * self.steps))
    }
}

#[test]
fn simulated_cells_of_equal_targets_show_a_change_in_at_most_one_of_twenty_runs() {
    let times = simulations(1000);
    let noises = [0.0001, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02];
    let of_ten = noises.map(|noise| (STEPS, noise));
    let of_many = [(24, 0.005), (24, 0.02), (100, 0.01)];
    for cells in 2..=5 {
        for (step_count, noise) in of_ten.into_iter().chain(of_many) {
            // As many steps in all, so that each figure takes as long.
            let runs = times * STEPS / step_count;
            let truth = Truth { cells, steps: step_count, noise, ratio: 1.0, has_two_modes: false };
            let (share, of_steps) = truth.shown(runs);
            let case = format!("{cells} cells, {step_count} steps, noise {noise}");
            tell!("equal: {case}: {share} of runs, {of_steps} of steps");
            assert!(share <= at_most(0.05, runs), "{case}: {share}");
        }
    }
}

#[test]
fn simulated_cells_show_one_percent_of_work_in_the_noise_of_exact_cells() {
    // Cells, noise, and the least share of steps in which 1% more is shown.
    for (cells, noise, least) in [
        (2, 0.0001, 1.0),
        (2, 0.0003, 0.98),
        (2, 0.0005, 0.8),
        (3, 0.0005, 1.0),
        (3, 0.001, 0.98),
        (3, 0.002, 0.6),
        (4, 0.002, 0.75),
        (5, 0.002, 0.95),
    ] {
        let (_, steps) =
            Truth { cells, steps: STEPS, noise, ratio: 1.01, has_two_modes: false }.shown(300);
        tell!("power: {cells} cells, noise {noise}: {steps} of steps");
        assert!(steps >= least, "{cells} cells, noise {noise}: {steps}");
    }
}

#[test]
fn simulated_work_of_two_modes_deceives_two_cells_and_not_five() {
    let [two, five] = [2, 5].map(|cells| {
        Truth { cells, steps: STEPS, noise: 0.0001, ratio: 1.0, has_two_modes: true }.shown(500).1
    });
    tell!("two modes: {two} of steps with 2 cells, {five} with 5");
    assert!(two > 0.1 && five < 0.01, "{two} {five}");
}
