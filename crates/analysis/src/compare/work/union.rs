//! The functions of a base and a target together, per operation.

use std::collections::BTreeMap;

use words::WorkGraph;

use super::fold::{Calls, FoldedGraph};
use super::names;

/// A graph of a cell, with the operations that it counted.
#[derive(Clone, Copy)]
pub(super) struct CellGraph<'a> {
    pub graph: &'a WorkGraph,
    pub operations: u64,
}

/// The name of a function in both targets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FunctionName {
    pub name: String,
    pub object: String,
}

/// The functions of one target, per operation, as means of its cells.
#[derive(Debug, Default)]
pub(super) struct Side {
    /// The instructions of each function itself.
    pub own: Vec<f64>,
    /// The range of the cells' own instructions of each function.
    pub range: Vec<f64>,
    /// The number of calls of each function by others.
    pub called: Vec<f64>,
    /// The callers of each function.
    pub callers: Vec<BTreeMap<usize, Calls>>,
}

impl Side {
    /// Returns the instructions of all functions.
    pub fn total(&self) -> f64 {
        self.own.iter().sum()
    }

    /// Returns the calls of one function by another; none if there are none.
    pub fn calls(&self, caller: usize, callee: usize) -> Calls {
        self.callers[callee].get(&caller).copied().unwrap_or_default()
    }
}

/// The functions of both targets.
#[derive(Debug)]
pub(super) struct Union {
    /// The functions' names; their numbers are the same in both targets.
    pub names: Vec<FunctionName>,
    pub base: Side,
    pub target: Side,
    /// The least operations that a cell counted.
    pub operations: f64,
}

impl Union {
    /// Returns the functions of both targets; `None` if one of them has no graph.
    pub fn of(base: &[CellGraph<'_>], target: &[CellGraph<'_>]) -> Option<Self> {
        let mut names = Names::default();
        let [base_cells, target_cells] =
            [base, target].map(|cells| cells.iter().map(|cell| names.number(cell)).collect());
        let fewest = base.iter().chain(target).map(|cell| cell.operations).min()?;

        let count = names.all.len();
        Some(Self {
            base: side(base_cells, count)?,
            target: side(target_cells, count)?,
            names: names.all,
            operations: fewest as f64,
        })
    }

    pub fn own_change(&self, function: usize) -> f64 {
        self.target.own[function] - self.base.own[function]
    }

    /// Returns the change of the number of calls.
    pub fn count_change(&self, caller: usize, callee: usize) -> f64 {
        let [base, target] = [&self.base, &self.target].map(|side| side.calls(caller, callee));
        target.count - base.count
    }

    /// Returns the callers of a function in either target.
    pub fn callers(&self, function: usize) -> impl Iterator<Item = usize> {
        let of_base = self.base.callers[function].keys();
        let of_target = self.target.callers[function].keys();
        let new = of_target.filter(move |caller| !self.base.callers[function].contains_key(caller));
        of_base.chain(new).copied()
    }
}

/// The functions of a cell per operation, by the numbers of their names.
#[derive(Default)]
struct NumberedCell {
    own: BTreeMap<usize, f64>,
    calls: BTreeMap<(usize, usize), Calls>,
}

/// Gives functions of several cells the same numbers.
#[derive(Default)]
struct Names {
    all: Vec<FunctionName>,
    numbers: BTreeMap<FunctionName, usize>,
}

impl Names {
    fn number(&mut self, cell: &CellGraph<'_>) -> NumberedCell {
        let graph = cell.graph;
        let folded = FoldedGraph::of(graph);

        let mut numbers = Vec::with_capacity(graph.functions.len());
        for (index, function) in graph.functions.iter().enumerate() {
            let object = names::object(&function.object).to_owned();
            let name = if folded.nameless.contains(&index) {
                format!("[{object}]")
            } else {
                names::function(&function.name)
            };
            numbers.push(self.number_of(FunctionName { name, object }));
        }

        let share = 1.0 / cell.operations.max(1) as f64;
        let mut numbered = NumberedCell::default();
        for (index, own) in folded.own.iter().enumerate() {
            *numbered.own.entry(numbers[index]).or_default() += own * share;
        }

        for (index, callees) in folded.callees.iter().enumerate() {
            for (&callee, calls) in callees {
                let pair = (numbers[index], numbers[callee]);
                // Parts of a function, such as its cold one, are one function.
                if pair.0 != pair.1 {
                    numbered.calls.entry(pair).or_default().add(calls.times(share));
                }
            }
        }
        numbered
    }

    fn number_of(&mut self, name: FunctionName) -> usize {
        let all = &mut self.all;
        *self.numbers.entry(name).or_insert_with_key(|name| {
            all.push(name.clone());
            all.len() - 1
        })
    }
}

/// Returns the means of a target's cells; `None` without cells.
fn side(cells: Vec<NumberedCell>, count: usize) -> Option<Side> {
    if cells.is_empty() {
        return None;
    }

    let share = 1.0 / cells.len() as f64;
    let mut side = Side {
        own: vec![0.0; count],
        range: vec![0.0; count],
        called: vec![0.0; count],
        callers: vec![BTreeMap::new(); count],
    };

    for function in 0..count {
        let own = cells.iter().map(|cell| cell.own.get(&function).copied().unwrap_or(0.0));
        let (least, most) = super::super::bounds(own.clone());
        side.own[function] = own.sum::<f64>() * share;
        side.range[function] = most - least;
    }

    for ((caller, callee), calls) in cells.into_iter().flat_map(|cell| cell.calls) {
        side.callers[callee].entry(caller).or_default().add(calls.times(share));
        side.called[callee] += calls.count * share;
    }
    Some(side)
}
