//! The rows of tables for which clients work, such as warehouses.

use record::HomeRows;
use words::Decimals;

use crate::model::matrix::Matrix;
use crate::model::number::fixed;
use crate::model::table::{Cell, Table};

/// Returns for how many rows of a table each client works: a line for each step, number of clients
/// and table. Empty if the workloads divide no rows among clients.
pub(crate) fn homes(matrix: &Matrix<'_>) -> Table {
    let lead = ["step", "clients", "table", "rule"].map(str::to_owned).to_vec();
    let heads = ["rows\n", "rows\nper client", "clients\nper row"];
    let title = "Homes: the rows for which each client works";
    let mut table = Table::new("homes", title, lead, heads.map(str::to_owned));

    for step in matrix.measured() {
        // All targets and repeats have the same.
        let mut listed: Vec<(u32, &HomeRows)> = Vec::new();
        for row in matrix.rows_of(step) {
            for homes in &row.homes {
                let of_clients = (row.cell.clients, homes);
                if !listed.contains(&of_clients) {
                    listed.push(of_clients);
                }
            }
        }

        for (clients, homes) in listed {
            let lead = [
                step.name.to_owned(),
                clients.to_string(),
                homes.table.clone(),
                homes.rule.clone(),
            ];
            table.push(lead.to_vec(), cells(clients, homes));
        }
    }
    table
}

fn cells(clients: u32, homes: &HomeRows) -> Vec<Cell> {
    let HomeRows { rows, least_per_client: least, most_per_client: most, .. } = homes;
    let per_client = if least == most { least.to_string() } else { format!("{least} to {most}") };

    let clients_per_row = if *most == 1 {
        f64::from(clients) / (*rows).max(1) as f64
    } else if least == rows {
        f64::from(clients)
    } else {
        // Each row belongs to one client.
        1.0
    };
    let decimals = Decimals::Two.of([clients_per_row]);
    vec![
        Cell::plain(rows.to_string()),
        Cell::plain(per_client),
        Cell::plain(fixed(clients_per_row, decimals)),
    ]
}
