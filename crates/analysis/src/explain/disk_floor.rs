//! Finds steps whose commits or reads the disk limits: they come close to its floor, what it does
//! for a program alone.

use super::case::Context;
use super::clients::{RepeatFigures, by_cell, by_step};
use super::explanation::Explanation;
use super::finding::{Evidence, place_of};
use super::statement::{AtFloor, AtFloorStep, FloorRequests, Statement};
use super::thresholds::{
    DEVICE_OF_TIME, FLOOR_DRIFT_MAX, FLOOR_PCT_MAX, FLOOR_PCT_MIN, FSYNCS_PER_COMMIT_MIN,
};
use crate::figures::{FloorRate, Row};
use crate::order::sort_largest_first;

/// The weight of a limit of the disk, which may hide differences as the client's limit does. It
/// grows with the number of steps.
const WEIGHT: f64 = 0.08;

/// Returns the steps whose commits, and those whose reads, come close to the floor of the disk.
pub(super) fn explain<'a>(context: Context<'a>) -> Vec<Explanation<'a>> {
    let requests = [FloorRequests::Commits, FloorRequests::Reads];
    requests.into_iter().filter_map(|requests| at_floor(context, requests)).collect()
}

fn at_floor<'a>(context: Context<'a>, requests: FloorRequests) -> Option<Explanation<'a>> {
    let mut steps = Vec::new();
    for ((_, step), rows) in by_step(context.figures) {
        let figure = |row: &'a Row| row.metrics.get(requests.metric())?.as_ref();
        let cells = by_cell(&rows, context, figure, |percent| *percent);
        steps.extend(cells.iter().filter_map(|cell| step_at_floor(step, cell, requests)));
    }
    sort_largest_first(&mut steps, |(item, _)| item.percent);

    let (first, _) = steps.first()?;

    let mut evidence = vec![
        Evidence::single(
            format!("{} of {} in {}", requests.noun(), first.who, first.step),
            "/s",
            first.per_s(),
        ),
        Evidence::single(
            format!("{} of the disk alone", requests.floor_noun()),
            "/s",
            first.floor.per_s,
        ),
    ];

    evidence.extend(steps.iter().map(|(step, _)| {
        let name = format!("share of the floor of {} in {}", step.who, step.step);
        Evidence::single(name, "%", step.percent)
    }));

    Some(Explanation {
        places: steps.iter().map(|(_, row)| place_of(row)).collect(),
        evidence,
        caveats: Vec::new(),
        weight: WEIGHT * (1.0 + (steps.len() as f64).ln()),
        statement: Statement::AtFloor(AtFloor {
            requests,
            steps: steps.into_iter().map(|(step, _)| step).collect(),
        }),
    })
}

/// Returns the typical repeat of a target in a step, if the disk limits it.
fn step_at_floor<'a>(
    step: &str,
    cell: &RepeatFigures<'a, f64>,
    requests: FloorRequests,
) -> Option<(AtFloorStep, &'a Row)> {
    let (row, &percent) = cell.typical();
    let floor = requests.floor_of(row)?;
    let is_near = (FLOOR_PCT_MIN..=FLOOR_PCT_MAX).contains(&percent);
    if !is_near || floor.drift >= FLOOR_DRIFT_MAX || !requests.are_waited_for(row) {
        return None;
    }

    let fsyncs_per_commit = row.metric("log_fsyncs_per_commit");
    let at_floor = AtFloorStep {
        who: cell.who.clone(),
        step: step.to_owned(),
        percent,
        floor,
        clients: row.cell.clients,
        read_kb: row.metric("rareqsz"),
        commits_per_fsync: fsyncs_per_commit.map(|fsyncs| 1.0 / fsyncs),
    };
    Some((at_floor, row))
}

impl FloorRequests {
    /// Returns the name of the metric that compares them with the floor.
    fn metric(self) -> &'static str {
        match self {
            Self::Commits => "fsync_efficiency",
            Self::Reads => "io_efficiency",
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Commits => "fsyncs of the log",
            Self::Reads => "reads",
        }
    }

    fn floor_noun(self) -> &'static str {
        match self {
            Self::Commits => "`fdatasync` calls",
            Self::Reads => "random reads",
        }
    }

    fn floor_of(self, row: &Row) -> Option<FloorRate> {
        let floor = row.floor?;
        match self {
            Self::Commits => floor.syncs,
            Self::Reads => floor.reads,
        }
    }

    /// Returns whether operations wait for these requests, and not only background work.
    fn are_waited_for(self, row: &Row) -> bool {
        match self {
            Self::Commits => {
                let fsyncs = row.metric("log_fsyncs_per_commit");
                fsyncs.is_some_and(|fsyncs| fsyncs >= FSYNCS_PER_COMMIT_MIN)
            }
            Self::Reads => {
                let times = row.metric("op_read_us").zip(row.metric("op_time_us"));
                times.is_some_and(|(read_us, time_us)| read_us >= DEVICE_OF_TIME * time_us)
            }
        }
    }
}
