//! Random programs whose code is moved, inlined, split and renamed, and in which work is planted.

use words::{Random, WorkCalls, WorkFunction, WorkGraph};

use super::*;

const OPERATIONS: u64 = 1000;
const PROGRAMS: u64 = 200;
/// The differences between two cells of a program, as a share of a function's own instructions.
const NOISE: f64 = 0.0001;

/// A function of a program: what one call of it executes.
#[derive(Clone)]
struct Function {
    name: String,
    own: f64,
    /// The functions that it calls, with the number of calls. All have larger numbers.
    calls: Vec<(usize, f64)>,
}

/// A program whose first function serves an operation.
#[derive(Clone)]
struct Program {
    functions: Vec<Function>,
}

impl Program {
    fn new(random: &mut Random) -> Self {
        let count = 20 + random.below(60);
        let mut functions: Vec<Function> = (0..count)
            .map(|number| Function {
                name: format!("f{number}"),
                own: 10.0 + random.below(2000) as f64,
                calls: Vec::new(),
            })
            .collect();
        // Each function has a caller, and some have several.
        for callee in 1..count {
            for _ in 0..1 + random.below(3) {
                let caller = random.below(callee) as usize;
                let calls = &mut functions[caller].calls;
                if calls.iter().all(|(known, _)| *known != callee as usize) {
                    calls.push((callee as usize, 1.0 + random.below(3) as f64));
                }
            }
        }
        Self { functions }
    }

    /// Returns how often each function is called in an operation.
    fn called(&self) -> Vec<f64> {
        let mut called = vec![0.0; self.functions.len()];
        called[0] = 1.0;
        for caller in self.in_order() {
            for &(callee, count) in &self.functions[caller].calls {
                called[callee] += called[caller] * count;
            }
        }
        called
    }

    /// Returns the functions so that callers come before what they call. New functions, which have
    /// the largest numbers, may call any.
    fn in_order(&self) -> Vec<usize> {
        let mut order = Vec::new();
        let mut open: Vec<usize> = vec![0; self.functions.len()];
        for function in &self.functions {
            for &(callee, _) in &function.calls {
                open[callee] += 1;
            }
        }
        let mut ready: Vec<usize> = (0..open.len()).filter(|&number| open[number] == 0).collect();
        while let Some(number) = ready.pop() {
            order.push(number);
            for &(callee, _) in &self.functions[number].calls {
                open[callee] -= 1;
                if open[callee] == 0 {
                    ready.push(callee);
                }
            }
        }
        order
    }

    fn total(&self) -> f64 {
        let called = self.called();
        self.functions.iter().zip(called).map(|(function, called)| function.own * called).sum()
    }

    /// Returns what a cell counts.
    fn count(&self, random: &mut Random) -> WorkGraph {
        let called = self.called();
        let order = self.in_order();
        let own: Vec<f64> = (self.functions.iter().zip(&called))
            .map(|(function, called)| {
                let noise = 1.0 + NOISE * (random.below(2001) as f64 / 1000.0 - 1.0);
                function.own * called * noise
            })
            .collect();
        let mut each = vec![0.0; own.len()];
        for &number in order.iter().rev() {
            let callees = self.functions[number].calls.iter();
            let below: f64 = callees.map(|&(callee, count)| each[callee] * count).sum();
            each[number] =
                below + if called[number] > 0.0 { own[number] / called[number] } else { 0.0 };
        }

        let per_cell = |value: f64| (value * OPERATIONS as f64).round() as u64;
        let mut graph = WorkGraph::default();
        for (number, function) in self.functions.iter().enumerate() {
            graph.functions.push(WorkFunction {
                name: function.name.clone(),
                object: "db".into(),
                own: per_cell(own[number]),
            });
            for &(callee, count) in function.calls.iter().filter(|_| called[number] > 0.0) {
                let count = called[number] * count;
                graph.calls.push(WorkCalls {
                    caller: number,
                    callee,
                    count: per_cell(count),
                    inclusive: per_cell(count * each[callee]),
                });
            }
        }
        without_the_unexecuted(graph)
    }

    /// Returns a function that is called, other than the first.
    fn any(&self, random: &mut Random) -> usize {
        let called = self.called();
        loop {
            let number = 1 + random.below(self.functions.len() as u64 - 1) as usize;
            if called[number] > 0.0 {
                return number;
            }
        }
    }

    /// Copies a function into one of its callers.
    fn inline(&mut self, random: &mut Random) {
        let function = self.any(random);
        let called = self.called();
        let calls_it =
            |caller: &Function| caller.calls.iter().any(|(callee, _)| *callee == function);
        let callers: Vec<usize> = (0..self.functions.len())
            .filter(|&caller| called[caller] > 0.0 && calls_it(&self.functions[caller]))
            .collect();
        let caller = callers[random.below(callers.len() as u64) as usize];

        let Function { own, calls, .. } = self.functions[function].clone();
        let into = &mut self.functions[caller];
        let at = into.calls.iter().position(|(callee, _)| *callee == function).unwrap();
        let (_, count) = into.calls.remove(at);
        into.own += own * count;
        for (callee, each) in calls {
            into.add_calls(callee, each * count);
        }
    }

    /// Moves a part of a function into a new one.
    fn split(&mut self, random: &mut Random) {
        let function = self.any(random);
        let new = self.functions.len();
        let from = &mut self.functions[function];
        let part = from.own * (20 + random.below(60)) as f64 / 100.0;
        from.own -= part;
        let moved = from.calls.split_off(from.calls.len() / 2);
        from.calls.push((new, 1.0));
        let name = format!("{}_part{new}", from.name);
        self.functions.push(Function { name, own: part, calls: moved });
    }

    /// Moves a part of a function to another that has the same caller.
    fn move_to_neighbor(&mut self, random: &mut Random) {
        let called = self.called();
        let has_two =
            |caller: &usize| self.functions[*caller].calls.len() > 1 && called[*caller] > 0.0;
        let callers: Vec<usize> = (0..self.functions.len()).filter(has_two).collect();
        let caller = callers[random.below(callers.len() as u64) as usize];
        let calls = &self.functions[caller].calls;
        let first = random.below(calls.len() as u64 - 1) as usize;
        let ((from, _), (to, _)) = (calls[first], calls[first + 1]);

        // Both must do it for this caller alone, or other callers would see a change.
        let only = |function: usize| {
            let calls_it =
                |caller: &&Function| caller.calls.iter().any(|(callee, _)| *callee == function);
            self.functions.iter().filter(calls_it).count() == 1
        };
        if !only(from) || !only(to) {
            return;
        }
        let part = self.functions[from].own * 0.4;
        self.functions[from].own -= part;
        self.functions[to].own += part * called[from] / called[to];
    }

    fn rename(&mut self, random: &mut Random) {
        let function = self.any(random);
        self.functions[function].name += "_renamed";
    }

    /// Returns the program after some changes that leave its work as it was.
    fn rearranged(&self, random: &mut Random) -> Self {
        let mut program = self.clone();
        for _ in 0..1 + random.below(4) {
            match random.below(4) {
                0 => program.inline(random),
                1 => program.split(random),
                2 => program.move_to_neighbor(random),
                _ => program.rename(random),
            }
        }
        assert!((program.total() / self.total() - 1.0).abs() < 1e-9);
        program
    }

    /// Adds a share of all work to a function.
    fn plant(&mut self, function: usize, share: f64) {
        let more = self.total() * share;
        let called = self.called()[function];
        self.functions[function].own += more / called;
    }
}

impl Function {
    fn add_calls(&mut self, callee: usize, count: f64) {
        match self.calls.iter_mut().find(|(known, _)| *known == callee) {
            Some((_, known)) => *known += count,
            None => self.calls.push((callee, count)),
        }
    }
}

/// Returns a graph without functions of no instructions, which a cell would not see.
fn without_the_unexecuted(graph: WorkGraph) -> WorkGraph {
    let mut executed = WorkGraph::default();
    let mut numbers = Vec::new();
    for function in graph.functions {
        numbers.push(executed.functions.len());
        if function.own > 0 {
            executed.functions.push(function);
        }
    }
    for call in graph.calls {
        let (caller, callee) = (numbers[call.caller], numbers[call.callee]);
        executed.calls.push(WorkCalls { caller, callee, ..call });
    }
    executed
}

fn compared(base: &Program, target: &Program, random: &mut Random) -> WorkChanges {
    let [base, target] =
        [base, target].map(|program| [program.count(random), program.count(random)]);
    let cells = |graphs| -> Vec<CellGraph<'_>> {
        let graphs: &[WorkGraph; 2] = graphs;
        graphs.iter().map(|graph| CellGraph { graph, operations: OPERATIONS }).collect()
    };
    changes(&cells(&base), &cells(&target)).unwrap()
}

#[test]
fn code_that_was_rearranged_gives_no_name() {
    for seed in 0..PROGRAMS {
        let random = &mut Random::new(seed);
        let base = Program::new(random);
        let target = base.rearranged(random);
        let found = compared(&base, &target, random);
        assert_eq!(found.functions, [], "program {seed}");
    }
}

#[test]
fn one_percent_that_was_planted_is_named_and_nothing_else() {
    for seed in 0..PROGRAMS {
        let random = &mut Random::new(1000 + seed);
        let base = Program::new(random);
        let mut target = base.clone();
        let function = base.any(random);
        target.plant(function, 0.01);

        let found = compared(&base, &target, random);
        let names: Vec<&str> = found.functions.iter().map(|found| found.name.as_str()).collect();
        assert_eq!(names, [base.functions[function].name.as_str()], "program {seed}");
        let share = found.functions[0].difference / base.total();
        assert!((share - 0.01).abs() < 0.0005, "program {seed}: {share}");
    }
}

#[test]
fn one_percent_that_was_planted_in_rearranged_code_is_named_and_nothing_else() {
    for seed in 0..PROGRAMS {
        let random = &mut Random::new(2000 + seed);
        let base = Program::new(random);
        let mut target = base.rearranged(random);
        // A function of which code was moved as well cannot be told from the one that has it now.
        let is_as_it_was = |number: usize| {
            let same = base.functions.get(number);
            same.is_some_and(|same| {
                let other = &target.functions[number];
                same.name == other.name && same.own == other.own && same.calls == other.calls
            })
        };
        let function = loop {
            let function = target.any(random);
            if is_as_it_was(function) {
                break function;
            }
        };
        target.plant(function, 0.01);

        let found = compared(&base, &target, random);
        let names: Vec<&str> = found.functions.iter().map(|found| found.name.as_str()).collect();
        assert_eq!(names, [base.functions[function].name.as_str()], "program {seed}");
    }
}
