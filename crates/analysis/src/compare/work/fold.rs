//! Folds functions without a symbol into the functions that call them.

use std::collections::{BTreeMap, BTreeSet};

use words::WorkGraph;

use super::names::is_address;

/// Calls of one function by another.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Calls {
    /// The number of calls.
    pub count: f64,
    /// The instructions of the called function and all that it called, for this caller.
    pub inclusive: f64,
}

impl Calls {
    pub fn add(&mut self, other: Self) {
        self.count += other.count;
        self.inclusive += other.inclusive;
    }

    pub fn times(self, factor: f64) -> Self {
        Self { count: self.count * factor, inclusive: self.inclusive * factor }
    }
}

/// A graph whose functions all have names. They have the numbers that they had.
#[derive(Debug)]
pub(super) struct FoldedGraph {
    /// The instructions of each function itself.
    pub own: Vec<f64>,
    /// The functions that each one calls.
    pub callees: Vec<BTreeMap<usize, Calls>>,
    /// The functions that have no symbol and no caller: nothing could take them.
    pub nameless: BTreeSet<usize>,
}

impl FoldedGraph {
    /// Folds each function without a symbol into its callers, in proportion to what it cost each of
    /// them with all that it called. Its calls become theirs.
    pub fn of(graph: &WorkGraph) -> Self {
        let mut folding = Folding::of(graph);
        let mut nameless: Vec<usize> = (0..graph.functions.len())
            .filter(|&number| is_address(&graph.functions[number].name))
            .collect();
        // Functions with few calls first, which keeps the number of new pairs small.
        nameless
            .sort_by_key(|&number| folding.callers[number].len() * folding.callees[number].len());

        let mut remaining = BTreeSet::new();
        for number in nameless {
            if !folding.fold(number) {
                remaining.insert(number);
            }
        }
        Self { own: folding.own, callees: folding.callees, nameless: remaining }
    }
}

struct Folding {
    own: Vec<f64>,
    callees: Vec<BTreeMap<usize, Calls>>,
    callers: Vec<BTreeSet<usize>>,
}

impl Folding {
    fn of(graph: &WorkGraph) -> Self {
        let count = graph.functions.len();
        let mut folding = Self {
            own: graph.functions.iter().map(|function| function.own as f64).collect(),
            callees: vec![BTreeMap::new(); count],
            callers: vec![BTreeSet::new(); count],
        };

        for call in &graph.calls {
            let calls = Calls { count: call.count as f64, inclusive: call.inclusive as f64 };
            folding.add(call.caller, call.callee, calls);
        }
        folding
    }

    /// Adds calls. Those of a function by itself are left out: their cost is in the first call.
    fn add(&mut self, caller: usize, callee: usize, calls: Calls) {
        if caller != callee {
            self.callees[caller].entry(callee).or_default().add(calls);
            self.callers[callee].insert(caller);
        }
    }

    /// Folds a function into its callers. Returns false if there are none.
    fn fold(&mut self, number: usize) -> bool {
        let callers: Vec<(usize, Calls)> = self.callers[number]
            .iter()
            .map(|&caller| (caller, self.callees[caller][&number]))
            .collect();
        let inclusive: f64 = callers.iter().map(|(_, calls)| calls.inclusive).sum();
        let count: f64 = callers.iter().map(|(_, calls)| calls.count).sum();

        if inclusive <= 0.0 && count <= 0.0 {
            return false;
        }

        let own = std::mem::take(&mut self.own[number]);
        let callees = std::mem::take(&mut self.callees[number]);
        for &callee in callees.keys() {
            self.callers[callee].remove(&number);
        }

        for (caller, calls) in callers {
            let share =
                if inclusive > 0.0 { calls.inclusive / inclusive } else { calls.count / count };
            self.callees[caller].remove(&number);
            self.own[caller] += own * share;
            for (&callee, calls) in &callees {
                self.add(caller, callee, calls.times(share));
            }
        }

        self.callers[number].clear();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use words::{WorkCalls, WorkFunction};

    fn graph(functions: &[(&str, u64)], calls: &[(usize, usize, u64, u64)]) -> WorkGraph {
        let function = |&(name, own): &(&str, u64)| WorkFunction {
            name: name.into(),
            object: "db".into(),
            own,
        };
        let call = |&(caller, callee, count, inclusive): &(usize, usize, u64, u64)| WorkCalls {
            caller,
            callee,
            count,
            inclusive,
        };
        WorkGraph {
            functions: functions.iter().map(function).collect(),
            calls: calls.iter().map(call).collect(),
        }
    }

    #[test]
    fn a_function_without_a_symbol_is_a_part_of_its_callers() {
        let functions = [("main", 10), ("read", 20), ("0x1d70d0", 40), ("copy", 8)];
        let calls = [(0, 2, 1, 12), (1, 2, 3, 36), (2, 3, 8, 8), (0, 1, 1, 56)];
        let folded = FoldedGraph::of(&graph(&functions, &calls));
        assert_eq!(folded.own, [20.0, 50.0, 0.0, 8.0]);
        assert_eq!(folded.callees[0][&3], Calls { count: 2.0, inclusive: 2.0 });
        assert_eq!(folded.callees[1][&3], Calls { count: 6.0, inclusive: 6.0 });
        assert!(folded.callees[2].is_empty() && folded.nameless.is_empty());
    }

    #[test]
    fn functions_without_symbols_that_call_each_other_are_folded_too() {
        let functions = [("main", 10), ("0x1", 30), ("0x2", 60), ("0x3", 5)];
        let calls = [(0, 1, 1, 90), (1, 2, 2, 80), (2, 1, 1, 40)];
        let folded = FoldedGraph::of(&graph(&functions, &calls));
        assert_eq!(folded.own, [100.0, 0.0, 0.0, 5.0]);
        assert_eq!(folded.nameless, [3].into());
    }
}
