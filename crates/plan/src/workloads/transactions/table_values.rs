//! Reads the values that a transaction asks of a table: `home(TABLE)`, `homes(TABLE)`,
//! `next(TABLE)` and `newest(TABLE)`.

use super::bounded::Bounded;
use super::parser::{Fault, Parser, fault};
use crate::spec::transactions::Number;
use crate::text::wording::{choices, code};

/// A table that is defined above a transaction.
#[derive(Clone, Debug)]
pub(super) struct DefinedTable {
    pub(super) name: String,
    /// The number of rows that are loaded, or fewer if a condition decides.
    pub(super) rows: u64,
    pub(super) has_condition: bool,
}

impl Parser<'_> {
    /// Takes the table of the function `name`, which is `home` or `homes`, and returns its result.
    pub(super) fn home(&mut self, name: &str) -> Result<Bounded, Fault> {
        let span = self.peek();
        let index = self.defined_table(name)?;

        let table = &self.tables[index];
        let rows = i64::try_from(table.rows).ok();
        let Some(rows) = rows.filter(|rows| *rows > 0 && !table.has_condition) else {
            let message = format!("table {} has no fixed number of rows", code(&table.name));
            let label = "no client can have rows of it as its homes";
            let mut fault = fault("plan::bad-script", span, message, label);
            fault.help("name a table with rows that are loaded without a condition");
            return Err(fault);
        };

        if !self.scope.homes.contains(&index) {
            self.scope.homes.push(index);
        }
        let is_drawn = name == "home";
        Ok(if is_drawn { Bounded::home(rows) } else { Bounded::home_count(rows) })
    }

    /// Takes the table of the function `name`, which is `next` or `newest`, and returns that number
    /// of its rows.
    pub(super) fn row_number(&mut self, name: &str) -> Result<Bounded, Fault> {
        let index = self.defined_table(name)?;
        if !self.scope.numbered_tables.contains(&index) {
            self.scope.numbered_tables.push(index);
        }

        let rows = self.tables[index].rows;
        Ok(if name == "next" {
            Bounded::row_number(Number::Next(index), rows + 1)
        } else {
            Bounded::row_number(Number::Newest(index), rows)
        })
    }

    /// Takes the name of a table for a function, and returns the table's index.
    fn defined_table(&mut self, function: &str) -> Result<usize, Fault> {
        if self.scope.is_table {
            return Err(self.unexpected(&format!("a transaction around {}", code(function))));
        }

        let span = self.peek();
        let name = self.name("the name of a table")?;
        let index = self.tables.iter().position(|table| table.name == name);
        index.ok_or_else(|| {
            let known: Vec<&str> = self.tables.iter().map(|table| table.name.as_str()).collect();
            let message = format!("unknown table {}", code(name));
            let mut fault = fault("plan::unknown-name", span, message, "not defined above");
            fault.help(choices(name, "tables above", &known));
            fault
        })
    }
}
