//! CPU profiles in the processed format of the Firefox Profiler. Later versions of the profiler
//! read it, too.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::{self, Write};

use analysis::compare::MergedProfile;
use serde_json::{Value, json};

use crate::model::names::cell_name;

/// The version of the format.
const VERSION: u32 = 58;

/// The categories of functions: the default of the format, and whose code it is.
const CATEGORIES: [(&str, &str); 3] = [("Other", "grey"), ("User", "yellow"), ("Kernel", "orange")];

/// Writes profiles into a sink, each as a process.
pub(super) fn write<W: Write>(profiles: &[MergedProfile<'_>], mut sink: W) -> io::Result<W> {
    let mut texts = TextTable::default();
    let mut threads: Vec<Value> = Vec::new();
    for (index, profile) in profiles.iter().enumerate() {
        let process = Process { profile, id: index + 1, first_thread_id: threads.len() + 1 };
        threads.extend(process.threads(&mut texts));
    }

    let interval_ms = profiles.first().map_or(1.0, interval_ms);
    let whole = json!({
        "meta": meta(interval_ms),
        "libs": [],
        "shared": {
            "stringArray": texts.list,
            "sources": {"length": 0, "uuid": [], "filename": []},
        },
        "threads": threads,
    });

    serde_json::to_writer(&mut sink, &whole)?;
    Ok(sink)
}

fn meta(interval_ms: f64) -> Value {
    let categories = CATEGORIES
        .map(|(name, color)| json!({"name": name, "color": color, "subcategories": ["Other"]}));

    json!({
        "product": "Assay", "importedFrom": "Assay", "processType": 0, "stackwalk": 1,
        "preprocessedProfileVersion": VERSION,
        // The version of the format of Firefox itself, from which profiles are processed.
        "version": 31,
        "startTime": 0, "interval": interval_ms,
        "categories": categories, "markerSchema": [],
        "symbolicated": true, "symbolicationNotSupported": true,
        "usesOnlyOneStackType": true, "sourceCodeIsNotOnSearchfox": true,
        "keepProfileThreadOrder": true,
    })
}

/// A profile, which the viewer shows as a process.
struct Process<'a> {
    profile: &'a MergedProfile<'a>,
    id: usize,
    first_thread_id: usize,
}

impl Process<'_> {
    fn threads(&self, texts: &mut TextTable) -> Vec<Value> {
        let mut threads = threads_of(self.profile, texts);

        // The first is the main thread, which stands for the process.
        threads.sort_by_key(|thread| Reverse(thread.total()));

        let name = format!("{} {}", cell_name(&self.profile.cell), self.profile.step);
        let interval_ms = interval_ms(self.profile);
        let mut values = Vec::new();
        for (index, thread) in threads.iter().enumerate() {
            let mut value = thread.json(interval_ms);
            value["isMainThread"] = (index == 0).into();
            value["pid"] = self.id.to_string().into();
            value["tid"] = (self.first_thread_id + index).into();
            value["processName"] = name.clone().into();
            values.push(value);
        }

        values
    }
}

fn interval_ms(profile: &MergedProfile<'_>) -> f64 {
    1e3 / f64::from(profile.frequency_hz.max(1))
}

/// The texts that the tables refer to by index.
#[derive(Default)]
struct TextTable {
    list: Vec<String>,
    indexes: HashMap<String, usize>,
}

impl TextTable {
    fn index(&mut self, text: &str) -> usize {
        *self.indexes.entry(text.to_owned()).or_insert_with(|| {
            self.list.push(text.to_owned());
            self.list.len() - 1
        })
    }
}

/// The tables of a thread.
#[derive(Default)]
struct Thread {
    name: String,
    /// The text of each function.
    names: Vec<usize>,
    categories: Vec<usize>,
    /// The function of each stack's innermost frame, and the stack around it.
    frames: Vec<usize>,
    prefixes: Vec<Option<usize>>,
    /// Stacks with their numbers of samples.
    samples: Vec<(Option<usize>, u64)>,
}

/// Returns the threads of a profile. The outermost frame of a stack is the name of its thread.
fn threads_of(profile: &MergedProfile, texts: &mut TextTable) -> Vec<Thread> {
    let mut threads: Vec<Thread> = Vec::new();
    // The functions of the last thread by their texts, and the stacks around the last node.
    let mut functions: HashMap<usize, usize> = HashMap::new();
    let mut path: Vec<usize> = Vec::new();

    for node in profile.stacks.tree() {
        if node.depth == 0 {
            functions.clear();
            threads.push(Thread { name: node.frame.to_owned(), ..Thread::default() });
        }

        let Some(thread) = threads.last_mut() else {
            continue;
        };

        path.truncate(node.depth.saturating_sub(1));
        if node.depth > 0 {
            let text = texts.index(node.frame);
            let function =
                *functions.entry(text).or_insert_with(|| thread.add_function(text, node.frame));
            path.push(thread.add_frame(function, path.last().copied()));
        }
        if node.samples > 0 {
            thread.samples.push((path.last().copied(), node.samples));
        }
    }
    threads
}

impl Thread {
    /// Adds a function by its text, and returns its index.
    fn add_function(&mut self, text: usize, name: &str) -> usize {
        self.names.push(text);
        let is_kernel = name.ends_with("_[k]");
        self.categories.push(1 + usize::from(is_kernel));
        self.names.len() - 1
    }

    /// Adds a stack whose innermost frame is in `function`, and returns its index.
    fn add_frame(&mut self, function: usize, outer: Option<usize>) -> usize {
        self.prefixes.push(outer);
        self.frames.push(function);
        self.frames.len() - 1
    }

    fn total(&self) -> u64 {
        self.samples.iter().map(|(_, samples)| samples).sum()
    }

    /// Returns the thread with its tables.
    fn json(&self, interval_ms: f64) -> Value {
        json!({
            "name": self.name,
            "processType": "default", "processStartupTime": 0, "processShutdownTime": null,
            "registerTime": 0, "unregisterTime": null, "pausedRanges": [],
            "samples": self.sample_table(interval_ms),
            "stackTable": {
                "length": self.frames.len(), "frame": self.frames, "prefix": self.prefixes,
            },
            "frameTable": self.frame_table(),
            "funcTable": self.function_table(),
            "markers": {
                "length": 0, "data": [], "name": [], "startTime": [], "endTime": [], "phase": [],
                "category": [],
            },
            "resourceTable": {"length": 0, "lib": [], "name": [], "host": [], "type": []},
            "nativeSymbols": {
                "length": 0, "libIndex": [], "address": [], "name": [], "functionSize": [],
            },
        })
    }

    /// Returns the samples. The profile has no times, so equal stacks come one after the other.
    fn sample_table(&self, interval_ms: f64) -> Value {
        let (stacks, weights): (Vec<_>, Vec<u64>) = self.samples.iter().copied().unzip();

        let mut times_ms = Vec::new();
        let mut before = 0;
        for samples in &weights {
            times_ms.push(before as f64 * interval_ms);
            before += samples;
        }

        json!({
            "length": stacks.len(), "stack": stacks, "weight": weights, "weightType": "samples",
            "time": times_ms,
        })
    }

    /// Returns the frames, one for each function: addresses and lines are not known.
    fn frame_table(&self) -> Value {
        let count = self.names.len();

        let functions: Vec<usize> = (0..count).collect();
        let none = vec![Value::Null; count];
        let zero = vec![0; count];
        json!({
            "length": count, "func": functions, "category": self.categories,
            "subcategory": zero, "address": vec![-1; count], "inlineDepth": zero, "line": none,
            "column": none, "nativeSymbol": none, "innerWindowID": none,
        })
    }

    fn function_table(&self) -> Value {
        let count = self.names.len();
        let none = vec![Value::Null; count];
        let no = vec![false; count];
        json!({
            "length": count, "name": self.names, "isJS": no, "relevantForJS": no,
            "resource": vec![-1; count], "source": none, "lineNumber": none, "columnNumber": none,
        })
    }
}
