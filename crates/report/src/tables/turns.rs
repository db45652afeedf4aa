//! The work of targets in their turns, and the resources that they used.

use analysis::figures::TurnTotals;
use record::{CellKey, ServerUse};

use crate::model::matrix::{Keys, Matrix, StepHead};
use crate::model::number::whole;
use crate::model::table::{Cell, Table, anchor};

/// Returns the totals of each target in its turns of a step, over all repeats. Without turns, the
/// table is empty.
pub(crate) fn totals(matrix: &Matrix<'_>, step: StepHead<'_>) -> Table {
    let mut targets: Vec<TargetTurns> = Vec::new();
    for (line, row) in matrix.lines_in(step) {
        let Some(totals) = &row.turn_totals else {
            continue;
        };

        let cell = line.cell.all_repeats();
        match targets.iter_mut().find(|known| known.cell == cell) {
            Some(known) => known.add(totals),
            None => targets.push(TargetTurns { cell, repeats: 1, totals: totals.clone() }),
        }
    }

    let keys = Keys::among(targets.iter().map(|target| &target.cell));
    let mut table = Table::new(
        format!("turns-{}", anchor(step.name)),
        "Turns: totals over all repeats",
        keys.lead("target"),
        [
            "repeats",
            "turns",
            "opera-\ntions",
            "time\ns",
            "waiting\ns",
            "client\nCPU s",
            "server\nCPU s",
            "minor\nfaults",
            "major\nfaults",
            "voluntary\nswitches",
            "involuntary\nswitches",
        ],
    );
    for target in &targets {
        table.push(keys.lead_of(&target.cell.target, &target.cell, 0), target.cells());
    }

    table.names = vec![
        "time: of its turns, by its own clock".into(),
        "waiting: for the last operation of each turn, outside of that time".into(),
    ];
    table
}

/// The totals of all repeats of a target under one load.
struct TargetTurns {
    /// The key of all repeats.
    cell: CellKey,
    repeats: u64,
    totals: TurnTotals,
}

impl TargetTurns {
    fn add(&mut self, totals: &TurnTotals) {
        self.repeats += 1;
        self.totals.add(totals);
    }

    fn cells(&self) -> Vec<Cell> {
        let TurnTotals { turns, operations, server, .. } = self.totals;
        let seconds = |seconds: f64| Cell::number(Some(seconds), 2);

        let used = |count: fn(ServerUse) -> u64| {
            server.map_or_else(Cell::not_applicable, |used| Cell::plain(whole(count(used))))
        };

        vec![
            Cell::plain(whole(self.repeats)),
            Cell::plain(whole(turns)),
            Cell::plain(whole(operations)),
            seconds(self.totals.seconds),
            seconds(self.totals.idle_seconds),
            seconds(self.totals.client_cpu_seconds),
            Cell::number(server.map(|used| used.cpu_ns as f64 / 1e9), 2),
            used(|used| used.minor_faults),
            used(|used| used.major_faults),
            used(|used| used.voluntary_switches),
            used(|used| used.involuntary_switches),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::figures::{Figures, Row};

    #[test]
    fn the_turns_of_all_repeats_of_a_target_are_added_up() {
        let row = |target: &str, repeat, server| Row {
            cell: CellKey::new(target, None, 1, repeat),
            step: "read".into(),
            reported: true,
            turn_totals: Some(TurnTotals {
                turns: 100,
                seconds: 1.5,
                operations: 5000,
                server,
                ..TurnTotals::default()
            }),
            ..Row::default()
        };
        let used = ServerUse { cpu_ns: 2_000_000_000, minor_faults: 7, ..ServerUse::default() };
        let rows =
            vec![row("pg.a", 1, Some(used)), row("pg.a", 2, Some(used)), row("sqlite.b", 1, None)];
        let figures = Figures { rows, ..Figures::default() };
        let run = record::Run::default();
        let matrix = Matrix::new(&run, &figures);

        let table = totals(&matrix, matrix.steps[0]);
        let texts = |row: usize| {
            let cells = table.rows[row].cells.iter();
            cells.map(|cell| cell.text.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(table.rows.len(), 2);
        assert_eq!(texts(0)[..4], ["2", "200", "10,000", "3.00"]);
        assert_eq!(texts(0)[6..8], ["4.00", "14"]);
        assert_eq!(texts(1)[6..], ["n/a"; 5]);
    }
}
