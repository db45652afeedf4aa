//! The parser of callgrind's files.
//!
//! A file has the counts of one thread since counting began, or since its last file:
//!
//! ```text
//! thread: 1
//! positions: line
//! events: Ir Dr
//!
//! ob=(1) /usr/bin/server      the functions that follow are in this file
//! fn=(1) execute              a function
//! 0 120 30                    line 0: its own instructions and reads
//! cob=(2) /usr/lib/libc.so.6
//! cfn=(2) memcpy              it called this function
//! calls=3 0                   three times,
//! 0 60 24                     for this cost of the called function and all that it called
//!
//! totals: 180 54
//! ```
//!
//! The format is described in "Callgrind Format Specification" of valgrind's manual.

use std::collections::{BTreeMap, HashMap};

use words::{WorkCalls, WorkFunction, WorkGraph};

use crate::symbols::FunctionNames;

/// The name of the event that every instruction causes.
const INSTRUCTIONS: &str = "Ir";

/// The largest count that a file may have: a step of three days. Sums of files don't overflow.
const COUNT_MAX: u64 = 1 << 48;

/// The counts in a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Dump {
    /// Valgrind's number of the thread, from 1.
    pub(super) thread: u32,
    /// All events by callgrind's names. Those that did not occur are there.
    pub(super) events: BTreeMap<String, u64>,
    pub(super) graph: WorkGraph,
}

/// A mistake in a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Damage {
    /// The line, from 1.
    pub(super) line: usize,
    pub(super) what: String,
}

/// Reads the text of a file. `names` are those of functions in files that were read before.
///
/// # Errors
/// The first line that callgrind would not write. A file that lacks its end is damaged, too.
pub(super) fn parse(text: &str, names: &mut FunctionNames) -> Result<Dump, Damage> {
    let mut parser = Parser::new(names);
    let mut line_count = 0;
    for line in text.lines() {
        line_count += 1;
        parser.line(line).map_err(|what| Damage { line: line_count, what })?;
    }
    parser.finish().map_err(|what| Damage { line: line_count.max(1), what })
}

/// The meaning of the next line with numbers.
#[derive(Clone, Copy, Default)]
enum Expected {
    /// The costs of the current function itself.
    #[default]
    OwnCosts,
    /// The costs of calls of the function, whose number has come before.
    CallCosts { count: u64 },
    /// Only the place of a jump.
    JumpPlace,
}

/// A function as a file names it.
struct NamedFunction {
    index: usize,
    /// The function was already running when this call of it began.
    is_recursive: bool,
}

struct Parser<'a> {
    names: &'a mut FunctionNames,
    thread: Option<u32>,
    position_count: Option<usize>,
    /// The names of the events, in the order of columns.
    events: Vec<String>,
    /// The column of [`INSTRUCTIONS`].
    instructions: usize,
    counts: Vec<u64>,
    totals: Option<Vec<u64>>,

    object_names: NumberedNames,
    function_names: NumberedNames,
    object: String,
    function: Option<usize>,
    /// The object of the function that is called, if it is another one.
    called_object: Option<String>,
    called: Option<NamedFunction>,
    expected: Expected,

    functions: Vec<WorkFunction>,
    /// Indexes of functions by object and name.
    known: HashMap<(String, String), usize>,
    /// Calls by the indexes of the caller and the called function.
    calls: HashMap<(usize, usize), WorkCalls>,
}

impl<'a> Parser<'a> {
    fn new(names: &'a mut FunctionNames) -> Self {
        Self {
            names,
            thread: None,
            position_count: None,
            events: Vec::new(),
            instructions: 0,
            counts: Vec::new(),
            totals: None,
            object_names: NumberedNames::default(),
            function_names: NumberedNames::default(),
            object: String::new(),
            function: None,
            called_object: None,
            called: None,
            expected: Expected::default(),
            functions: Vec::new(),
            known: HashMap::new(),
            calls: HashMap::new(),
        }
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        // A line of costs: its first position is absolute, relative, or the same as before.
        if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            return self.costs(line);
        }

        // In a header the colon comes first, in a name the equals sign.
        match line.find([':', '=']) {
            Some(at) if line[at..].starts_with(':') => {
                self.header(&line[..at], line[at + 1..].trim())
            }
            Some(at) => self.assignment(&line[..at], line[at + 1..].trim()),
            None => Err(format!("`{}` is not a line of counts", shortened(line))),
        }
    }

    fn header(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "thread" => self.thread = Some(number(value)?),
            "positions" => self.position_count = Some(value.split_whitespace().count()),
            "events" if !self.events.is_empty() => return Err("a second list of events".into()),
            "events" => {
                self.events = value.split_whitespace().map(str::to_owned).collect();
                let column = self.events.iter().position(|event| event == INSTRUCTIONS);
                self.instructions =
                    column.ok_or_else(|| format!("no event is `{INSTRUCTIONS}`"))?;
                self.counts = vec![0; self.events.len()];
            }
            "totals" => self.totals = Some(self.numbers(value.split_whitespace())?),
            // What ran, on which simulated caches, and `summary`, which is 0 after counting ended.
            "version" | "creator" | "pid" | "cmd" | "part" | "desc" | "event" | "summary" => {}
            _ => return Err(format!("the key `{}` is unknown", shortened(key))),
        }
        Ok(())
    }

    fn assignment(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "ob" => self.object = object_name(self.object_names.resolve(value)?),
            "fn" => {
                let name = self.function_names.resolve(value)?.to_owned();
                let object = self.object.clone();
                self.function = Some(self.named_function(&name, object).index);
            }
            "cob" => self.called_object = Some(object_name(self.object_names.resolve(value)?)),
            "cfn" => {
                let name = self.function_names.resolve(value)?.to_owned();
                let object = self.called_object.clone().unwrap_or_else(|| self.object.clone());
                self.called = Some(self.named_function(&name, object));
            }
            "calls" => {
                let count = value.split_whitespace().next().unwrap_or_default();
                self.expected = Expected::CallCosts { count: number(count)? };
            }
            "jump" | "jcnd" => self.expected = Expected::JumpPlace,
            // Files of the source, which functions are not told apart by, and targets of jumps.
            "fl" | "fi" | "fe" | "cfl" | "cfi" | "jfi" | "jfn" => {}
            _ => return Err(format!("the key `{}` is unknown", shortened(key))),
        }
        Ok(())
    }

    /// Reads positions and costs.
    fn costs(&mut self, line: &str) -> Result<(), String> {
        let mut words = line.split_whitespace();
        // Without the header `positions` there is one, the line in the source.
        for _ in 0..self.position_count.unwrap_or(1) {
            check_position(words.next().ok_or("a position is missing")?)?;
        }
        if let Expected::JumpPlace = self.expected {
            self.expected = Expected::OwnCosts;
            return Ok(());
        }

        let costs = self.numbers(words)?;
        let caller = self.function.ok_or("costs come before the first function")?;
        match std::mem::take(&mut self.expected) {
            Expected::CallCosts { count } => {
                let called = self.called.take().ok_or("calls of no function")?;
                self.called_object = None;
                self.add_calls(caller, &called, count, costs[self.instructions])
            }
            Expected::OwnCosts | Expected::JumpPlace => self.add_own_costs(caller, &costs),
        }
    }

    fn add_own_costs(&mut self, function: usize, costs: &[u64]) -> Result<(), String> {
        for (sum, cost) in self.counts.iter_mut().zip(costs) {
            *sum = sum.checked_add(*cost).ok_or("the costs are too large")?;
        }
        // Not above the sum of all.
        self.functions[function].own += costs[self.instructions];
        Ok(())
    }

    /// Adds calls. The cost of a recursive call is part of the cost of the outermost call, so that
    /// the costs of all calls of a function are what was executed while it ran.
    ///
    /// A call that began before a fork and returned after it has a negative cost, because counts
    /// were set to zero meanwhile. How much it really cost is not known.
    fn add_calls(
        &mut self,
        caller: usize,
        called: &NamedFunction,
        count: u64,
        cost: u64,
    ) -> Result<(), String> {
        let is_outermost = !called.is_recursive && called.index != caller;
        let is_negative = cost.cast_signed() < 0;
        let inclusive = if is_outermost && !is_negative { cost } else { 0 };

        let no_calls = WorkCalls { caller, callee: called.index, count: 0, inclusive: 0 };
        let calls = self.calls.entry((caller, called.index)).or_insert(no_calls);
        calls.count = calls.count.checked_add(count).ok_or("the calls are too many")?;
        calls.inclusive =
            calls.inclusive.checked_add(inclusive).ok_or("the costs are too large")?;
        Ok(())
    }

    /// Returns a number for each event; those that a line leaves out at its end are 0.
    fn numbers<'w>(&self, words: impl Iterator<Item = &'w str>) -> Result<Vec<u64>, String> {
        let mut numbers = words.map(number).collect::<Result<Vec<u64>, String>>()?;
        if self.events.is_empty() {
            return Err("the names of the events are missing".into());
        }
        if numbers.len() > self.events.len() {
            return Err(format!("{} costs of {} events", numbers.len(), self.events.len()));
        }
        numbers.resize(self.events.len(), 0);
        Ok(numbers)
    }

    /// Returns the function with that name, which is added if it is new.
    fn named_function(&mut self, name: &str, object: String) -> NamedFunction {
        let (symbol, is_recursive) = without_recursion(name);
        let name = match symbol.strip_prefix("0x") {
            // It has no symbol, only an address, with leading zeros.
            Some(digits) => format!("0x{}", digits.trim_start_matches('0')),
            None => self.names.of(symbol).to_owned(),
        };

        let key = (object, name);
        let index = match self.known.get(&key) {
            Some(index) => *index,
            None => {
                let (object, name) = key.clone();
                self.functions.push(WorkFunction { name, object, own: 0 });
                self.known.insert(key, self.functions.len() - 1);
                self.functions.len() - 1
            }
        };
        NamedFunction { index, is_recursive }
    }

    fn finish(self) -> Result<Dump, String> {
        let totals = self.totals.ok_or("the file lacks its end")?;
        if totals != self.counts {
            return Err("the costs differ from their totals".into());
        }

        let mut calls: Vec<WorkCalls> = self.calls.into_values().collect();
        calls.sort_by_key(|calls| (calls.caller, calls.callee));
        let are_plausible = totals.iter().all(|total| *total <= COUNT_MAX)
            && calls.iter().all(|calls| calls.count.max(calls.inclusive) <= COUNT_MAX);
        if !are_plausible {
            return Err("the counts are too large".into());
        }
        Ok(Dump {
            // Only files with separate threads have the header.
            thread: self.thread.unwrap_or(1),
            events: self.events.into_iter().zip(self.counts).collect(),
            graph: with_named_stubs(WorkGraph { functions: self.functions, calls }),
        })
    }
}

/// Names the stubs through which a library calls functions of others: `0x4c62e28`, which calls only
/// `free`, becomes `free@plt`. Callgrind does not know all of them, and their addresses differ
/// between builds.
fn with_named_stubs(mut graph: WorkGraph) -> WorkGraph {
    let mut callees: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for calls in &graph.calls {
        callees.entry(calls.caller).or_default().push(calls.callee);
    }
    for (caller, callees) in callees {
        let function = &graph.functions[caller];
        let is_unknown = function.object.is_empty() && function.name.starts_with("0x");
        if is_unknown
            && let [callee] = callees[..]
            && callee != caller
        {
            graph.functions[caller].name = format!("{}@plt", graph.functions[callee].name);
        }
    }

    // Stubs of several libraries now have the same name.
    let mut merged = WorkGraph::default();
    merged.merge(&graph);
    merged
}

/// The names that a file gives numbers: `(12) name` at first, then `(12)`.
#[derive(Default)]
struct NumberedNames(HashMap<u64, String>);

impl NumberedNames {
    fn resolve<'a>(&'a mut self, text: &'a str) -> Result<&'a str, String> {
        // Names such as `(below main)` have no number.
        let numbered = text.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        let Some((Ok(id), name)) = numbered.map(|(id, name)| (id.parse::<u64>(), name.trim()))
        else {
            return Ok(text);
        };

        if !name.is_empty() {
            self.0.insert(id, name.to_owned());
        }
        let known = self.0.get(&id);
        known.map(String::as_str).ok_or_else(|| format!("the name ({id}) is unknown"))
    }
}

/// Returns the name of a file without its directory, or nothing if callgrind does not know it.
fn object_name(path: &str) -> String {
    match path.rsplit('/').next() {
        None | Some("???") => String::new(),
        Some(name) => name.to_owned(),
    }
}

/// Splits the level of recursion from a name: `walk'2` is `walk` while `walk` is already running.
fn without_recursion(name: &str) -> (&str, bool) {
    match name.rsplit_once('\'') {
        Some((symbol, level)) if !symbol.is_empty() && level.parse::<u32>().is_ok() => {
            (symbol, true)
        }
        _ => (name, false),
    }
}

/// Checks a line or an address: a number, a difference from the one before, or `*`.
fn check_position(word: &str) -> Result<(), String> {
    if word == "*" {
        return Ok(());
    }
    number::<u64>(word.trim_start_matches(['+', '-'])).map(|_| ())
}

/// Returns a decimal or hexadecimal number.
fn number<T: TryFrom<u64>>(word: &str) -> Result<T, String> {
    let parsed = match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => word.parse(),
    };
    let value = parsed.ok().and_then(|value| T::try_from(value).ok());
    value.ok_or_else(|| format!("`{}` is not a number", shortened(word)))
}

/// Returns the beginning of a text for a message.
fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests;
