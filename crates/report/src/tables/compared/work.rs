//! Exact work: instructions per operation, relative to the base.

use analysis::{
    compare::{
        CallKind, ChangedCalls, ChangedFunction, Compared, ComparedCalls, ComparedWork, TargetWork,
        WorkShift, WorkVerdict, target_work,
    },
    counted, distinct,
};
use record::CellKey;

use crate::model::comparison::Comparison;
use crate::model::names::cell_name;
use crate::model::number::{fixed, whole};
use crate::model::table::{Cell, STEP, Table, Tone};
use crate::model::worth::Footnotes;

/// The limits of exact work, below its table.
const LIMITS: &str = "Instructions say nothing of waits, I/O, cache misses, atomics and the layout of code: times can change without them";

/// The title of the table of calls.
const CALLS_TITLE: &str = "System calls and allocations per operation, by the call graphs";

/// The limits of the numbers of calls.
const CALLS_LIMITS: &str = "Calls of the library's wrappers of system calls and of allocators by their names; the bytes are unknown";

/// The decimals of a number of calls.
const CALL_DECIMALS: usize = 3;

/// The number of callers that a path lists.
const PATH_LISTED: usize = 4;

/// Returns the table of work and its changes, and those of the functions that changed; without
/// anything to compare, that of each target. Without exact cells, there is none.
pub(super) fn tables(comparison: &Comparison<'_>) -> Vec<Table> {
    let compared = comparison.compared;
    if compared.work.is_empty() {
        return own(&target_work(comparison.figures));
    }

    let targets = distinct(compared.work.iter().map(|work| cell_name(&work.cell)));
    let mut lead = vec![STEP.to_owned(), "connection".to_owned()];
    lead.extend((targets.len() > 1).then(|| "target".to_owned()));
    let mut table = Table::new(
        "work",
        format!("Work per operation: instructions, relative to {}", compared.base),
        lead,
        ["base", "target", "ratio", "floor\n%", "shown\nfrom %", "verdict"],
    );

    let mut reasons = Footnotes::default();
    for work in &compared.work {
        let name = work.part.name().to_owned();
        let mut row_lead = vec![work.step.clone(), name.clone()];
        row_lead.extend((targets.len() > 1).then(|| cell_name(&work.cell)));

        let mut cells = cells(work);
        if let Some(verdict) = cells.last_mut() {
            let place = format!("{} {} {name}", work.cell.target, work.step);
            reasons.mark(verdict, &work.reasons, place);
        }
        table.push(row_lead, cells);
    }

    table.names = vec![
        "floor: the largest range of a target's exact cells".to_owned(),
        "shown from: the least change that these cells show".to_owned(),
    ];
    table.notes.push(LIMITS.to_owned());
    table.notes.extend(reasons.notes_in("[", "]"));

    let changed = compared.work.iter().filter(|work| work.functions.is_some());
    let functions = changed.enumerate().filter_map(|(number, work)| functions(work, number));
    let mut tables = vec![table];
    tables.extend(functions);
    tables.push(calls(compared));
    tables
}

/// Returns the table of the system calls and allocations whose numbers changed. It has no rows if
/// none did.
fn calls(compared: &Compared) -> Table {
    let title = format!("{CALLS_TITLE}, relative to {}", compared.base);
    let mut table = calls_table(title, &["base", "target", "change"]);
    let mut same_count = 0;

    for work in &compared.work {
        for calls in &work.calls {
            let Some(base) = calls.base.filter(|_| calls.has_changed()) else {
                same_count += 1;
                continue;
            };

            let tone = if calls.target > base { Tone::WorkGrew } else { Tone::WorkShrank };
            let cells = vec![
                Cell::number(Some(base), CALL_DECIMALS),
                Cell::number(Some(calls.target), CALL_DECIMALS),
                Cell::toned(format!("{:+.CALL_DECIMALS$}", calls.target - base), tone),
            ];
            table.push(calls_lead(&work.cell, &work.step, calls), cells);
        }
    }

    if same_count > 0 {
        table.notes.push(format!("{} did not change", counted(same_count, "number")));
    }
    table.notes.push(CALLS_LIMITS.to_owned());
    table
}

/// Returns the table of the system calls and allocations of targets that are compared with nothing.
fn own_calls(targets: &[TargetWork]) -> Table {
    let mut table = calls_table(CALLS_TITLE.to_owned(), &["calls"]);
    for work in targets {
        for calls in &work.calls {
            let cells = vec![Cell::number(Some(calls.target), CALL_DECIMALS)];
            table.push(calls_lead(&work.cell, &work.step, calls), cells);
        }
    }
    table.notes.push(CALLS_LIMITS.to_owned());
    table
}

/// Returns an empty table of system calls and allocations.
fn calls_table(title: String, columns: &[&str]) -> Table {
    let lead = ["target", STEP, "kind", "call"].map(str::to_owned).to_vec();
    Table::new("work-calls", title, lead, columns.iter().copied())
}

/// Returns the leading cells of a row of that table.
fn calls_lead(cell: &CellKey, step: &str, calls: &ComparedCalls) -> Vec<String> {
    let kind = match calls.kind {
        CallKind::SystemCall => "system call",
        CallKind::Allocation => "allocation",
    };
    [&cell_name(cell), step, kind, calls.name].map(str::to_owned).to_vec()
}

/// Returns the table of the functions in which a part's work changed; `None` if nothing is known
/// about them.
fn functions(work: &ComparedWork, number: usize) -> Option<Table> {
    let changes = work.functions.as_ref()?;
    let mut table = Table::new(
        format!("work-functions-{}", number + 1),
        format!(
            "Functions with the change of work: instructions per operation, {} in {}, {}",
            cell_name(&work.cell),
            work.step,
            work.part.name()
        ),
        ["function", "called by"].map(str::to_owned).to_vec(),
        ["change", "own\nbase", "own\ntarget", "calls\nbase", "calls\ntarget"],
    );

    for function in &changes.functions {
        let ChangedFunction { name, path, difference, base, target, .. } = function;
        let cells = vec![
            change(*difference),
            instructions(Some(base.own)),
            instructions(Some(target.own)),
            Cell::number(Some(base.calls), 2),
            Cell::number(Some(target.calls), 2),
        ];
        table.push(vec![name.clone(), brief_path(path)], cells);
    }

    if table.is_empty() {
        let lead = vec!["no single function".to_owned(), String::new()];
        table.push(lead, vec![Cell::not_run(); 5]);
    }

    for function in &changes.functions {
        if let Some(ChangedCalls { callee, base, target }) = &function.calls {
            table.notes.push(format!(
                "`{}` calls `{callee}` {} times per operation, not {}",
                function.name,
                fixed(*target, 2),
                fixed(*base, 2)
            ));
        }
    }
    table.notes.extend(shifts(&changes.shifts));
    Some(table)
}

/// Returns the work that was only moved, in a sentence; `None` if none was.
fn shifts(shifts: &[WorkShift]) -> Option<String> {
    if shifts.is_empty() {
        return None;
    }
    let mut moved = Vec::new();
    for WorkShift { from, to, instructions } in shifts {
        moved.push(format!("{} from `{from}` to `{to}`", fixed(*instructions, 0)));
    }
    Some(format!("not changed, but moved, inlined, split or renamed: {}", moved.join(", ")))
}

/// Returns the change of instructions per operation.
fn change(difference: f64) -> Cell {
    let decimals = if difference.abs() >= 100.0 { 0 } else { 2 };
    let tone = if difference > 0.0 { Tone::WorkGrew } else { Tone::WorkShrank };
    Cell::toned(format!("{difference:+.decimals$}"), tone)
}

/// Returns the callers of a function in brief: the root and the last ones.
fn brief_path(path: &[String]) -> String {
    let short = match path {
        [first, .., before, last] if path.len() > PATH_LISTED => {
            vec![first.as_str(), "...", before, last]
        }
        _ => path.iter().map(String::as_str).collect(),
    };
    short.join(" > ")
}

fn cells(work: &ComparedWork) -> Vec<Cell> {
    let tone = tone(work.verdict);
    let ratio = match work.ratio {
        Some(ratio) => Cell::toned(fixed(ratio, 4), tone),
        None => Cell::not_applicable(),
    };

    vec![
        instructions(work.base_mean()),
        instructions(work.target_mean()),
        ratio,
        percent(work.floor),
        percent(work.shown_from),
        Cell::plain(work.verdict.to_string()),
    ]
}

fn tone(verdict: WorkVerdict) -> Tone {
    match verdict {
        WorkVerdict::More => Tone::WorkGrew,
        WorkVerdict::Less => Tone::WorkShrank,
        WorkVerdict::NoChangeShown | WorkVerdict::NotDeterministic => Tone::Plain,
        WorkVerdict::Single => Tone::Unjudged,
        WorkVerdict::NotComparable => Tone::Absent,
    }
}

/// Returns the table of targets that are compared with nothing.
fn own(targets: &[TargetWork]) -> Vec<Table> {
    let lead = [STEP, "connection", "target"].map(str::to_owned).to_vec();
    let mut table =
        Table::new("work", "Work per operation: instructions", lead, ["instructions", "floor\n%"]);
    let mut reasons = Footnotes::default();

    for work in targets {
        let name = work.part.name().to_owned();
        let mut cell = instructions(work.per_operation);
        let place = format!("{} {} {name}", work.cell.target, work.step);
        reasons.mark(&mut cell, &work.reasons, place);

        let row_lead = vec![work.step.clone(), name, cell_name(&work.cell)];
        table.push(row_lead, vec![cell, percent(work.floor)]);
    }
    if table.is_empty() {
        return Vec::new();
    }

    table.names = vec!["floor: the range of a target's exact cells".to_owned()];
    table.notes.push(LIMITS.to_owned());
    table.notes.extend(reasons.notes_in("[", "]"));
    vec![table, own_calls(targets)]
}

/// Returns a number of instructions, with decimals if there are few.
fn instructions(count: Option<f64>) -> Cell {
    match count {
        Some(count) if count >= 100.0 => Cell::plain(whole(count.round() as u64)),
        _ => Cell::number(count, 2),
    }
}

fn percent(share: Option<f64>) -> Cell {
    Cell::number(share.map(|share| share * 100.0), 3)
}
