//! Tables that were published, made again from their inputs: these are recorded as a run that
//! measured them, read back, and come out of the report's tables to the digits that were printed.
//! Figures are those of the pages that each test names by title.

mod fairness;
mod scan;
mod stalls;
mod writes;

use std::collections::BTreeMap;

use analysis::figures::Figures;
use record::{
    Cell, CellRef, Connection, Counter, HostColumn, IntervalRow, Ops, Role, Run, RunDir, Status,
    Step, StepKind, latency_histogram,
};
use report::tables;

use crate::WIDE;
use crate::synthetic::target;

/// The measurements of a step, as a record has them.
#[derive(Default)]
struct MeasuredStep {
    step: &'static str,
    kind: StepKind,
    main_op: &'static str,
    group: Option<&'static str>,
    seconds: f64,
    /// Operations that succeeded.
    count: u64,
    /// The growth of columns of the host's samples.
    host: Vec<(&'static str, i64)>,
    /// The time at which each client ended, in seconds.
    ends: Vec<f64>,
    /// Counters of the engine that grew from nothing to this.
    counters: Vec<(String, f64)>,
    /// The engine's gauges at the end.
    gauges: Vec<(&'static str, f64)>,
}

/// A target's name without its config, and what was measured of it.
type Target<'a> = (&'a str, Vec<MeasuredStep>);

/// A published run: its record was written and read again.
struct Published {
    run: Run,
    figures: Figures,
}

impl Published {
    /// Records a run in which these were measured, the base first, and reads it.
    fn new(workload: &str, clients: u32, targets: Vec<Target<'_>>) -> Self {
        let cell = |target: &str| CellRef::new(&full(target), workload, None, clients, 1);
        let run = Run {
            name: "published".to_owned(),
            status: Status::Complete,
            base: full(targets[0].0),
            targets: targets.iter().map(|(name, _)| target(&full(name), "some")).collect(),
            cells: targets.iter().map(|(name, _)| cell(name)).collect(),
            ..Run::default()
        };
        let results = tempfile::tempdir().unwrap();
        let directory = RunDir::create(results.path(), &run).unwrap();
        for (reference, (name, steps)) in run.cells.iter().zip(&targets) {
            let begun = directory.begin_cell(reference).unwrap();
            let cell = Cell {
                key: record::CellKey::new(&full(name), None, clients, 1),
                build: (*name).to_owned(),
                config: "as".to_owned(),
                engine: "some".to_owned(),
                workload: workload.to_owned(),

                status: Status::Complete,
                ..Cell::default()
            };
            begun.write(&cell).unwrap();
            for (number, measured) in (1..).zip(steps) {
                measured.write(&begun, number, clients);
            }
        }
        directory.write_run(&run).unwrap();
        let figures = analysis::figures::figures(&[directory]).unwrap();
        for row in &figures.rows {
            assert!(row.valid, "{} of {}: {:?}", row.step, row.cell.target, row.reasons);
        }
        Self { run, figures }
    }

    /// Returns a metric of a step as the analysis has it.
    #[track_caller]
    fn metric(&self, target: &str, step: &str, name: &str) -> f64 {
        let target = full(target);
        let mut rows = self.figures.rows.iter();
        let row = rows.find(|row| row.cell.target == target && row.step == step);
        row.unwrap().metrics[name].unwrap()
    }

    /// Returns the cells of a table of the report by the beginning of its title: each row's cells
    /// without color marks, by its first word. A test's name that is shown once above its
    /// targets is skipped.
    #[track_caller]
    fn table(&self, title: &str, test: Option<&str>) -> BTreeMap<String, Vec<String>> {
        let text = tables(&self.run, &self.figures, WIDE);
        let from =
            text.find(&format!("\n{title}")).unwrap_or_else(|| panic!("no `{title}` in {text}"));
        text[from..]
            .lines()
            .skip_while(|line| !line.starts_with('─'))
            .skip(1)
            // Notes are indented by two, and rows of a test that is named above by more.
            .take_while(|line| {
                !line.is_empty() && (line.starts_with("   ") || !line.starts_with(' '))
            })
            .map(|line| {
                let mut words = line.split_whitespace().peekable();
                words.next_if(|word| Some(*word) == test);
                let name = words.next().unwrap().trim_end_matches(".as");
                let cells = words.map(|cell| cell.trim_end_matches(['+', '-']).replace(',', ""));
                (name.to_owned(), cells.collect())
            })
            .collect()
    }

    /// Has another base: the figures stay what they are.
    fn relative_to(mut self, base: &str) -> Self {
        self.run.base = full(base);
        self
    }
}

fn full(target: &str) -> String {
    format!("{target}.as")
}

impl MeasuredStep {
    fn write(&self, cell: &record::CellDir, number: u32, clients: u32) {
        let columns: Vec<HostColumn<'_>> =
            self.host.iter().map(|&(name, _)| HostColumn { name, cumulative: true }).collect();
        let mut writer = cell.begin_step(number, self.step, &columns).unwrap();
        let elapsed_ns = (self.seconds * 1e9).round() as u64;
        let before = vec![Some(0); columns.len()];
        writer.host(0, 0, 0, &before).unwrap();
        let after: Vec<_> = self.host.iter().map(|&(_, grown)| Some(grown)).collect();
        let last = (elapsed_ns - 1) / 1_000_000_000;
        writer.host(0, last as u32, elapsed_ns as i64, &after).unwrap();
        let interval = IntervalRow {
            kind: self.main_op,
            ok: self.count,
            rows: self.count,
            service_ns_max: 1_000_000,
            response_ns_max: 1_000_000,
            ..IntervalRow::default()
        };
        writer.intervals(&[interval]).unwrap();
        let mut histogram = latency_histogram();
        histogram.record_n(1_000_000, self.count).unwrap();
        for time in ["service", "response"] {
            let tag = format!("{}.{time}", self.main_op);
            writer.latency(0, &tag, &histogram).unwrap();
        }
        writer.finish(&self.step(elapsed_ns, clients)).unwrap();
    }

    fn step(&self, elapsed_ns: u64, clients: u32) -> Step {
        let ops = Ops { offered: self.count, ok: self.count, rows: self.count, ..Ops::default() };
        let connection = |(client, &end): (u32, &f64)| Connection {
            client,
            role: self.main_op.to_owned(),
            ended_ns: (end * 1e9).round() as u64,
            ..Connection::default()
        };
        let counters = |share: f64| -> Vec<Counter> {
            let grown = self.counters.iter().map(|(name, value)| {
                Counter::cumulative(name, value * share).with_role(Role::WriteStallCount)
            });
            let gauges = self
                .gauges
                .iter()
                .map(|&(name, value)| Counter::gauge(name, value).with_role(Role::TreeBytes));
            grown.chain(gauges).collect()
        };
        Step {
            name: self.step.to_owned(),
            kind: self.kind,
            main_op: Some(self.main_op.to_owned()),
            queries_per_event: (self.kind == StepKind::Query).then_some(1.0),
            group: self.group.map(str::to_owned),
            status: Status::Complete,
            valid: true,
            elapsed_ns,
            clients,
            connections: (0..).zip(&self.ends).map(connection).collect(),
            ops: BTreeMap::from([(self.main_op.to_owned(), ops)]),
            counters_before: counters(0.0),
            counters_after: counters(1.0),
            ..Step::default()
        }
    }
}
