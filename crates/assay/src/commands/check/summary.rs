//! The needs of a plan's cells, for `assay check`: time, disk and connections.

use std::fmt::Write as _;

use plan::Plan;
use report::rate_text;
use runner::matrix::factors;
use runner::matrix::only::CellFilters;
use runner::matrix::pace::about;
use runner::prepare::estimate::{Estimate, expected_bytes};
use runner::prepare::preflight::not_applicable;
use words::{EngineInterface, counted, size_text};

/// The needs of the selected cells, and the space that there is.
pub(super) struct Expected {
    pub(super) estimate: Estimate,
    pub(super) disk: Disk,
}

/// The disk for databases.
pub(super) struct Disk {
    /// The free space; `None` if it is unknown.
    pub(super) free_bytes: Option<u64>,
    /// The place of the disk, as `81 GB free` continues.
    pub(super) name: String,
}

impl Expected {
    /// Returns whether the disk has the space; true if that is unknown.
    pub(super) fn has_space(&self) -> bool {
        self.disk.free_bytes.is_none_or(|free| free >= self.estimate.disk_bytes)
    }

    /// Returns the cells of the plan, and its estimated time, disk space and connections.
    pub(super) fn summary(&self, plan: &Plan, cells: &[plan::Cell], only: &CellFilters) -> String {
        let estimate = &self.estimate;

        let mut text = format!("cells        {}", factors(plan));
        // The factors are those of the whole plan.
        if cells.len() < plan.cells().len() {
            let _ = write!(text, "; `--only` selects {}", cells.len());
        }
        text += &shares_text(plan);
        let _ = match plan.until_decided {
            None => write!(text, "\ntime         {}", about(estimate.time)),
            Some(until_decided) => {
                let (each, most) = (about(estimate.time), about(until_decided.time));
                write!(text, "\ntime         {each} for each repeat, {most} at most")
            }
        };

        let _ = write!(text, "\ndisk         about {} at a time", size_text(estimate.disk_bytes));
        let disk = &self.disk;
        if let Some(free) = disk.free_bytes {
            let remark = if self.has_space() { ";" } else { "; too much: only" };
            let _ = write!(text, "{remark} {} free {}", size_text(free), disk.name);
        }

        text += &kept_text(plan, cells);

        text += &connections_text(plan, cells, estimate.connections);

        for left_out in not_applicable(plan, |cell| only.matches(cell)) {
            let _ = writeln!(text, "left out     {left_out}");
        }

        text
    }
}

/// Returns the most connections at a time, on a line of their own. Libraries have none: there, each is a
/// thread of a client.
fn connections_text(plan: &Plan, cells: &[plan::Cell], connections: u32) -> String {
    let mut engines = cells.iter().map(|cell| plan.builds[plan.targets[cell.target].build].engine);
    if engines.all(|engine| engine.facts().interface == EngineInterface::Keys) {
        return format!(
            "\nclients      at most {connections} threads, including those that load, or write beside readers\n"
        );
    }
    format!(
        "\nconnections  at most {connections}, including Assay's own for loading, checks and monitoring\n"
    )
}

/// Returns the rates that are shares of highest rates, each on a line of its own.
fn shares_text(plan: &Plan) -> String {
    let mut lines: Vec<String> = Vec::new();
    for variant in &plan.variants {
        for (step, share) in variant.workload.shares_of_max() {
            let of = match &variant.name {
                Some(variant) => format!("`{step}` of `{variant}`"),
                None => format!("`{step}`"),
            };
            for &clients in &plan.clients {
                let with = counted(clients as usize, "client");
                let rate = match share.max(clients) {
                    Some(max) => {
                        let (rate, max) = (rate_text(share.of(max)), rate_text(max));
                        format!("{rate}/s with {with}, {}% of {max}/s", share.percent)
                    }
                    None => format!(
                        "{}% of what the slowest target achieves with {with}, measured first",
                        share.percent
                    ),
                };
                lines.push(format!("\nrate         {of}: {rate}"));
            }
        }
    }
    lines.concat()
}

/// Returns the databases that the cells keep for later runs, and with which they begin, on lines of
/// their own.
fn kept_text(plan: &Plan, cells: &[plan::Cell]) -> String {
    let mut text = String::new();
    if let Some(step) = &plan.from {
        let _ = write!(text, "\nbegins       with databases that were kept after `{step}`");
    }
    if plan.keep_after.is_empty() {
        return text;
    }

    // Repeats make the same database.
    let mut makers: Vec<(usize, usize, u32)> = Vec::new();
    let mut bytes = 0_u64;
    for cell in cells {
        let maker = (cell.target, cell.variant, cell.clients);
        if !makers.contains(&maker) {
            makers.push(maker);
            bytes = bytes.saturating_add(expected_bytes(plan, cell));
        }
    }

    let steps: Vec<String> = plan.keep_after.iter().map(|step| format!("`{step}`")).collect();
    let count = makers.len() * steps.len();
    let _ = write!(
        text,
        "\nkeeps        {} at most after {}, about {} in all",
        counted(count, "database"),
        steps.join(" and "),
        size_text(bytes.saturating_mul(steps.len() as u64))
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the line about connections of a plan with this workload and build.
    fn line_of(workload: &str, build: &str) -> String {
        let text = format!("[workload.{workload}]\n[build.a]\n{build}\n");
        let (plan, _) = plan::parse("plan.toml", &text, &[]).unwrap();
        connections_text(&plan, &plan.cells(), 14)
    }

    #[test]
    fn libraries_have_clients_and_servers_have_connections() {
        let library = line_of("kv", "rocksdb = \"x\"");
        assert!(library.starts_with("\nclients      at most 14 threads"), "{library}");
        let server = line_of("insert", "postgres = \"15\"");
        assert!(server.starts_with("\nconnections  at most 14, including"), "{server}");
    }
}
