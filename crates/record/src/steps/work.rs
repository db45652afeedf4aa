//! Rows of `work_functions.parquet` and `work_calls.parquet`: what an engine executed in a step.

use std::collections::BTreeMap;
use std::io::{self, Write};

use words::{WorkCalls, WorkFunction, WorkGraph, WorkRole};

use super::columns::{integer, unsigned};
use crate::RecordError;
use crate::files::{ColumnSpec, ColumnType, TableReader, TableWriter, Value, Values};

/// The graph of each part in a step.
type Graphs = BTreeMap<WorkRole, WorkGraph>;

pub(crate) fn function_columns() -> [ColumnSpec; 4] {
    [
        ColumnSpec::new("role", ColumnType::Text),
        ColumnSpec::new("function", ColumnType::Text),
        ColumnSpec::new("object", ColumnType::Text),
        ColumnSpec::new("own_instructions", ColumnType::Integer),
    ]
}

/// Callers and callees are numbers of rows among the functions of their role, from 0.
pub(crate) fn call_columns() -> [ColumnSpec; 5] {
    [
        ColumnSpec::new("role", ColumnType::Text),
        ColumnSpec::new("caller", ColumnType::Integer),
        ColumnSpec::new("callee", ColumnType::Integer),
        ColumnSpec::new("calls", ColumnType::Integer),
        ColumnSpec::new("inclusive_instructions", ColumnType::Integer),
    ]
}

pub(crate) fn push_functions<W: Write + Send>(
    graphs: &Graphs,
    table: &mut TableWriter<W>,
) -> io::Result<()> {
    for (role, graph) in graphs {
        for function in &graph.functions {
            table.push([
                Value::Text(role.name()),
                Value::Text(&function.name),
                Value::Text(&function.object),
                integer(function.own),
            ])?;
        }
    }
    Ok(())
}

pub(crate) fn push_calls<W: Write + Send>(
    graphs: &Graphs,
    table: &mut TableWriter<W>,
) -> io::Result<()> {
    for (role, graph) in graphs {
        for call in &graph.calls {
            table.push([
                Value::Text(role.name()),
                integer(call.caller as u64),
                integer(call.callee as u64),
                integer(call.count),
                integer(call.inclusive),
            ])?;
        }
    }
    Ok(())
}

pub(crate) fn read_functions(
    table: &mut TableReader,
    graphs: &mut Graphs,
) -> Result<(), RecordError> {
    while let Some(batch) = table.next_values()? {
        let [Values::Text(role), Values::Text(name), Values::Text(object), Values::Integer(own)] =
            batch
        else {
            unreachable!("a batch has the columns that were selected")
        };

        for row in 0..own.len() {
            let role = role_named(table, table.text(&role[row])?)?;
            graphs.entry(role).or_default().functions.push(WorkFunction {
                name: table.text(&name[row])?.to_owned(),
                object: table.text(&object[row])?.to_owned(),
                own: unsigned(own[row]),
            });
        }
    }
    Ok(())
}

pub(crate) fn read_calls(table: &mut TableReader, graphs: &mut Graphs) -> Result<(), RecordError> {
    while let Some(batch) = table.next_values()? {
        let [
            Values::Text(role),
            Values::Integer(caller),
            Values::Integer(callee),
            Values::Integer(count),
            Values::Integer(inclusive),
        ] = batch
        else {
            unreachable!("a batch has the columns that were selected")
        };

        for row in 0..caller.len() {
            let role = role_named(table, table.text(&role[row])?)?;
            let graph = graphs.entry(role).or_default();
            let calls = WorkCalls {
                caller: unsigned(caller[row]),
                callee: unsigned(callee[row]),
                count: unsigned(count[row]),
                inclusive: unsigned(inclusive[row]),
            };

            // Whoever follows the calls takes the functions from the list.
            if calls.caller.max(calls.callee) >= graph.functions.len() {
                return Err(table.damaged("it has calls of a function that is not listed".into()));
            }
            graph.calls.push(calls);
        }
    }

    Ok(())
}

/// Returns the role of that name.
fn role_named(table: &TableReader, name: &str) -> Result<WorkRole, RecordError> {
    WorkRole::named(name).ok_or_else(|| table.damaged(format!("it has an unknown role `{name}`")))
}
