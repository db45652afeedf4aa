//! The times that `assay check` expects: of which run, by which rates, and of which step.

use std::fmt::Write as _;
use std::time::Duration;

use analysis::counted;
use inquiry::known_run::KnownRun;
use plan::Plan;
use report::terminal_text;
use runner::matrix::pace::about;
use runner::prepare::estimate::{Basis, CELL_OVERHEAD, StepTime, step_times};

/// Returns the time of each step in a cell, from the shortest of the cells to the longest, its sum,
/// and what it rests on; the steps whose time the plan gives, in one line; and what a cell takes
/// besides its steps.
pub(super) fn times_text(plan: &Plan, cells: &[plan::Cell], known: Option<&KnownRun>) -> String {
    let steps = times_of(plan, cells, known);
    let (planned, others): (Vec<StepTimes>, Vec<StepTimes>) =
        steps.into_iter().partition(|step| step.basis == Basis::Plan);

    // A row for each step whose time is an estimate.
    let titles: Vec<String> = others.iter().map(StepTimes::title).collect();
    let width = titles.iter().map(String::len).max().unwrap_or(0);
    let mut text = "\ntime of each step in a cell:\n".to_owned();
    for (step, title) in others.iter().zip(&titles) {
        let basis = match step.basis {
            Basis::Run => "as in that run",
            Basis::Rates => "by `rates`",
            Basis::Plan | Basis::Assumed => "assumed",
        };
        let times = range_text(step.least, step.most);
        let in_all_cells = step.all_text();
        let _ = writeln!(text, "  {title:width$}  {times}{in_all_cells}, {basis}");
    }

    if !planned.is_empty() {
        text.push_str(&planned_text(&planned));
    }
    text.push_str(&overhead_text(cells.len()));

    // The lines below say what the estimates rest on.
    let bases: Vec<Basis> = others.iter().map(|step| step.basis).collect();
    if let Some(known) = known.filter(|_| bases.contains(&Basis::Run)) {
        text.push_str(&known_text(known, plan));
    }

    let speed = assumed(plan);
    if bases.contains(&Basis::Assumed) && !speed.is_empty() {
        let _ = writeln!(
            text,
            "assumed: {speed}, whatever the engine and its clients. `rates` in the plan says how fast \
             yours works, and `--like RUN` takes the times of a like run"
        );
    }
    text
}

/// Returns one line for all steps whose time the plan gives.
fn planned_text(steps: &[StepTimes]) -> String {
    let count = counted(steps.len(), "step");
    let together = about(steps.iter().map(|step| step.most).sum());
    let about_all = about(steps.iter().map(|step| step.sum).sum());
    let in_all = about_all.trim_start_matches("about ");
    format!("  {count} whose time the plan gives: {together} together, {in_all} in all\n")
}

/// Returns the time that so many cells take besides their steps, as one line: with it, the times add
/// up to that of the run.
fn overhead_text(cell_count: usize) -> String {
    let each = about(CELL_OVERHEAD);
    let mut text = format!("  starting, checking and stopping the engine: {each}");
    if cell_count > 1 {
        let sum = about(CELL_OVERHEAD.saturating_mul(cell_count as u32));
        let _ = write!(text, ", {} in {cell_count} cells", sum.trim_start_matches("about "));
    }
    text.push('\n');
    text
}

/// Returns the run whose times are expected, as one line.
fn known_text(known: &KnownRun, plan: &Plan) -> String {
    let path = terminal_text(&known.path.display().to_string());
    if !known.is_found {
        return format!("that run: `{path}`\n");
    }
    let name = &plan.name;
    format!("that run: `{path}`, the last of plan `{name}`; `--like RUN` takes another\n")
}

/// Returns the times of each step; those of each number of clients apart where they differ.
fn times_of(plan: &Plan, cells: &[plan::Cell], known: Option<&KnownRun>) -> Vec<StepTimes> {
    let mut steps: Vec<StepTimes> = Vec::new();
    for cell in cells {
        for step in step_times(plan, cell, known.map(|known| &known.times)) {
            let like = |known: &&mut StepTimes| {
                known.name == step.name && known.clients == Some(cell.clients)
            };
            match steps.iter_mut().find(like) {
                Some(times) => times.add(&step),
                None => steps.push(StepTimes::of(&step, cell.clients)),
            }
        }
    }

    // A step that takes as long with any number of clients has one row.
    let mut merged: Vec<StepTimes> = Vec::new();
    for step in &steps {
        let mut of_step = steps.iter().filter(|other| other.name == step.name);
        if !of_step.all(|other| other.is_like(step)) {
            merged.push(step.clone());
            continue;
        }
        match merged.iter_mut().find(|known| known.name == step.name) {
            None => merged.push(StepTimes { clients: None, ..step.clone() }),
            Some(known) => {
                known.sum += step.sum;
                known.cells += step.cells;
            }
        }
    }

    // The rows of a step stay together.
    let mut names: Vec<&str> = Vec::new();
    for step in &steps {
        if !names.contains(&step.name.as_str()) {
            names.push(&step.name);
        }
    }
    merged.sort_by_key(|step| names.iter().position(|name| *name == step.name));
    merged
}

/// The times of a step in several cells.
#[derive(Clone)]
struct StepTimes {
    name: String,
    /// The number of clients; `None` if the times are the same with any.
    clients: Option<u32>,
    least: Duration,
    most: Duration,
    sum: Duration,
    cells: usize,
    basis: Basis,
}

impl StepTimes {
    fn of(step: &StepTime, clients: u32) -> Self {
        Self {
            name: step.name.clone(),
            clients: Some(clients),
            least: step.time,
            most: step.time,
            sum: step.time,
            cells: 1,
            basis: step.basis,
        }
    }

    fn add(&mut self, step: &StepTime) {
        self.least = self.least.min(step.time);
        self.most = self.most.max(step.time);
        self.sum += step.time;
        self.cells += 1;

        // One cell whose time is only assumed makes the range a guess.
        if step.basis == Basis::Assumed || self.basis == Basis::Run {
            self.basis = step.basis;
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        (self.least, self.most, self.basis) == (other.least, other.most, other.basis)
    }

    fn title(&self) -> String {
        match self.clients {
            None => self.name.clone(),
            Some(clients) => format!("{}, {}", self.name, counted(clients as usize, "client")),
        }
    }

    /// Returns the time in all cells, if there are several.
    fn all_text(&self) -> String {
        if self.cells == 1 {
            return String::new();
        }
        let sum = about(self.sum);
        format!(", {} in {} cells", sum.trim_start_matches("about "), self.cells)
    }
}

/// Returns one time, or both ends if they differ.
fn range_text(least: Duration, most: Duration) -> String {
    let (least, most) = (about(least), about(most));
    if least == most {
        return least;
    }
    format!("{least} to {}", most.trim_start_matches("about "))
}

/// Returns the throughput that the estimate assumes. All variants belong to one workload.
fn assumed(plan: &Plan) -> String {
    let first = plan.variants.first();
    first.map(|variant| variant.workload.needs().assumed_speed(&plan.rates)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Plan {
        plan::parse("plan.toml", text, &[]).unwrap().0
    }

    #[test]
    fn the_estimate_names_the_assumptions_of_the_plans_own_workload() {
        let of = |workload: &str, build: &str| {
            assumed(&plan(&format!("[workload.{workload}]\n[build.a]\n{build}\n")))
        };
        let sqlite = "sqlite = \"bundled\"";
        assert_eq!(
            of("kv", "rocksdb = \"/l.so\""),
            "the engine loads 200,000 keys/s, and overwrites 200,000 keys/s"
        );
        assert_eq!(
            of("sysbench", sqlite),
            "the engine loads 60,000 rows/s, and indexes 900,000 rows/s"
        );
        assert_eq!(
            of("insert", sqlite),
            "the engine loads 60,000 rows/s, indexes 300,000 rows/s, and writes 8,000 rows/s with indexes"
        );
    }

    #[test]
    fn each_step_has_its_time_for_each_number_of_clients_where_they_differ() {
        let plan = plan(
            "clients = [1, 8]\nrepeats = 3\n\
             rates = { load = \"10k\", insert = { 1 = \"1k\", 8 = \"4k\" } }\n\
             [workload.insert]\ninitial-rows = \"600k\"\nwrite-rows = \"120k\"\n\
             tables = \"shared\"\nsteps = [\"l.i0\", \"l.x\", \"l.i1\", \"qr100\"]\nread-write-time = \"60s\"\n\
             [build.a]\nsqlite = \"bundled\"\n",
        );
        let expected = "
time of each step in a cell:
  l.i0             about 60 s, 6 min in 6 cells, by `rates`
  l.x              about 2 s, 12 s in 6 cells, assumed
  l.i1, 1 client   about 96 s, 5 min in 3 cells, by `rates`
  l.i1, 8 clients  about 24 s, 72 s in 3 cells, by `rates`
  1 step whose time the plan gives: about 60 s together, 6 min in all
  starting, checking and stopping the engine: about 5 s, 30 s in 6 cells
assumed: the engine indexes 300,000 rows/s, whatever the engine and its clients. `rates` in the plan says how fast yours works, and `--like RUN` takes the times of a like run
";
        assert_eq!(times_text(&plan, &plan.cells(), None), expected);
    }
}
