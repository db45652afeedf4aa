//! The floor of a disk: its rates for a program alone.

use record::{DiskFloor, IoRate, Run};
use words::Decimals;

use crate::model::number::fixed;
use crate::model::table::{Cell, Table};

/// A rate with the request that it counts.
struct FloorRate<'a> {
    request: String,
    size: String,
    depth: String,
    mode: &'static str,
    rate: &'a IoRate,
}

impl FloorRate<'_> {
    /// Returns the texts that tell it from the other rates of a measurement.
    fn lead(&self) -> Vec<String> {
        [&self.request, &self.size, &self.depth, self.mode].map(str::to_owned).to_vec()
    }
}

/// Returns the floors that runs measured, one table for each time that one was started.
pub(crate) fn tables_of_runs<'r>(runs: impl IntoIterator<Item = &'r Run>) -> Vec<Table> {
    let invocations = runs.into_iter().flat_map(|run| &run.invocations);
    let floors = invocations.map(|invocation| invocation.disk_floors.as_slice());
    let mut tables: Vec<Table> = floors.filter(|floors| !floors.is_empty()).map(table).collect();
    for (index, table) in tables.iter_mut().enumerate().skip(1) {
        table.id = format!("{ID}-{}", index + 1);
    }
    tables
}

/// The name of the table.
const ID: &str = "disk-floor";

/// Returns a table of one or several measurements of the same disk, empty without any. The times
/// of requests are those of the first.
pub(crate) fn table(floors: &[DiskFloor]) -> Table {
    let rates = floors.first().map(rates_of).unwrap_or_default();
    let later: Vec<Vec<FloorRate<'_>>> = floors.iter().skip(1).map(rates_of).collect();

    let title = "Floor of the disk: what it does for a program alone";
    let lead = ["request", "size", "depth", "page cache"].map(str::to_owned).to_vec();
    let mut heads = vec!["rate\n/s", "p50\n\u{b5}s", "p99\n\u{b5}s", "max\n\u{b5}s"];
    heads.extend(later.iter().map(|_| "after the\nlast cell, /s"));

    let mut table = Table::new(ID, title, lead, heads);
    for rate in &rates {
        let IoRate { requests_per_s, p50_ns, p99_ns, max_ns, .. } = *rate.rate;
        let mut cells = vec![per_second(requests_per_s)];
        cells.extend([p50_ns, p99_ns, max_ns].map(microseconds));

        for others in &later {
            let again = others.iter().find(|other| other.lead() == rate.lead());
            cells.push(
                again.map_or_else(Cell::not_applicable, |again| {
                    per_second(again.rate.requests_per_s)
                }),
            );
        }
        table.push(rate.lead(), cells);
    }

    table.notes = notes(floors);
    table
}

fn notes(floors: &[DiskFloor]) -> Vec<String> {
    let Some(first) = floors.first() else {
        return Vec::new();
    };

    let size_mib = first.file_bytes >> 20;

    let mut notes = vec![format!(
        "Reads are of a file of {size_mib} MiB that this program wrote just before. A cache of the device, or of the host \
         of a virtual machine, may have had a part of it."
    )];

    for note in floors.iter().flat_map(|floor| &floor.notes) {
        let text = format!("Not measured: {note}.");
        if !notes.contains(&text) {
            notes.push(text);
        }
    }

    notes
}

/// Returns all rates of a measurement.
fn rates_of(floor: &DiskFloor) -> Vec<FloorRate<'_>> {
    let mut rates = Vec::new();
    for read in &floor.reads {
        rates.push(FloorRate {
            request: "random read".to_owned(),
            size: size_text(read.block_bytes),
            depth: read.depth.to_string(),
            mode: read.mode.name(),
            rate: &read.rate,
        });
    }

    for sync in &floor.syncs {
        rates.push(FloorRate {
            request: format!("{} + fdatasync", sync.place.name()),
            size: size_text(sync.block_bytes),
            depth: "1".to_owned(),
            mode: sync.mode.name(),
            rate: &sync.rate,
        });
    }

    rates
}

fn size_text(bytes: u32) -> String {
    if bytes.is_multiple_of(1024) { format!("{} KiB", bytes / 1024) } else { format!("{bytes} B") }
}

fn per_second(rate: f64) -> Cell {
    Cell::plain(fixed(rate, Decimals::Rate.of([rate])))
}

fn microseconds(ns: u64) -> Cell {
    let us = ns as f64 / 1e3;
    Cell::plain(fixed(us, Decimals::Microseconds.of([us])))
}
