//! Exact work: the instructions that an engine executed, by function.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The part that a thread or a process has in the work of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkRole {
    /// Work of the engine for a connection, by the thread or process that serves it.
    Serving,
    /// Other threads and processes of the engine, such as compaction or the checkpointer.
    Background,
    /// Work of the client in the engine's process, which is not the engine's.
    Client,
}

impl WorkRole {
    /// All roles, in the order of tables.
    pub const ALL: [WorkRole; 3] = [Self::Serving, Self::Background, Self::Client];

    /// Returns the role's name in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Serving => "serving",
            Self::Background => "background",
            Self::Client => "client",
        }
    }

    /// Returns the role of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

/// The work of one thread or process in a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkPart {
    /// The part that the thread or process has in the step.
    pub role: WorkRole,
    /// The name: the role of the connection that it serves, or the name of a thread or process.
    pub name: String,
    /// The kinds of operation of the connection that it serves; empty if it serves none.
    pub operations: Vec<String>,
    /// The instructions that it executed.
    pub instructions: u64,
    /// Simulated events of the processor's caches and branches by callgrind's names, such as
    /// `D1mr`; empty if they were not simulated.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub events: BTreeMap<String, u64>,
}

/// A function that was executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkFunction {
    /// The function's name, or its address in its file if it has no symbol: `0x1d70d0`.
    pub name: String,
    /// The name of the program or library that contains it, without its directory; empty if
    /// unknown.
    pub object: String,
    /// The instructions of the function itself, without those of the functions that it called.
    pub own: u64,
}

/// The calls of one function by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkCalls {
    /// Index of the calling function.
    pub caller: usize,
    /// Index of the called function.
    pub callee: usize,
    /// The number of calls.
    pub count: u64,
    /// The instructions of the called function and of all that it called, for this caller.
    pub inclusive: u64,
}

/// The functions that were executed in a step, and who called whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkGraph {
    /// The functions, in no particular order. None is listed twice.
    pub functions: Vec<WorkFunction>,
    /// The calls. No pair of functions is listed twice.
    pub calls: Vec<WorkCalls>,
}

impl WorkGraph {
    /// Returns the instructions of all functions.
    pub fn total(&self) -> u64 {
        self.functions.iter().map(|function| function.own).sum()
    }

    /// Adds the functions and calls of `other`.
    pub fn merge(&mut self, other: &Self) {
        let mut known: BTreeMap<(String, String), usize> = BTreeMap::new();
        for (index, function) in self.functions.iter().enumerate() {
            known.insert((function.object.clone(), function.name.clone()), index);
        }
        let mut numbers = Vec::with_capacity(other.functions.len());
        for function in &other.functions {
            let key = (function.object.clone(), function.name.clone());
            let number = *known.entry(key).or_insert(self.functions.len());
            match self.functions.get_mut(number) {
                Some(known_function) => known_function.own += function.own,
                None => self.functions.push(function.clone()),
            }
            numbers.push(number);
        }

        let mut pairs: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for (index, calls) in self.calls.iter().enumerate() {
            pairs.insert((calls.caller, calls.callee), index);
        }
        for calls in &other.calls {
            let (caller, callee) = (numbers[calls.caller], numbers[calls.callee]);
            let index = *pairs.entry((caller, callee)).or_insert(self.calls.len());
            match self.calls.get_mut(index) {
                Some(known_calls) => {
                    known_calls.count += calls.count;
                    known_calls.inclusive += calls.inclusive;
                }
                None => self.calls.push(WorkCalls { caller, callee, ..*calls }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str, own: u64) -> WorkFunction {
        WorkFunction { name: name.into(), object: "engine".into(), own }
    }

    #[test]
    fn merged_graphs_have_each_function_and_each_pair_once() {
        let mut graph = WorkGraph {
            functions: vec![function("main", 10), function("read", 5)],
            calls: vec![WorkCalls { caller: 0, callee: 1, count: 1, inclusive: 5 }],
        };
        let other = WorkGraph {
            functions: vec![function("read", 7), function("write", 2), function("main", 1)],
            calls: vec![
                WorkCalls { caller: 2, callee: 0, count: 2, inclusive: 7 },
                WorkCalls { caller: 2, callee: 1, count: 1, inclusive: 2 },
            ],
        };
        graph.merge(&other);
        assert_eq!(
            graph.functions,
            [function("main", 11), function("read", 12), function("write", 2)]
        );
        assert_eq!(
            graph.calls,
            [
                WorkCalls { caller: 0, callee: 1, count: 3, inclusive: 12 },
                WorkCalls { caller: 0, callee: 2, count: 1, inclusive: 2 },
            ]
        );
        assert_eq!(graph.total(), 25);
    }
}
