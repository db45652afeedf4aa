//! CPU profiles in the processed format of the Firefox Profiler. Later versions of the profiler
//! read it, too.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::{self, Write};

use analysis::compare::MergedProfile;
use serde_json::{Value, json};

use super::profiles::cell_name;

/// The version of the format.
const VERSION: u32 = 58;

/// The categories of functions: the default of the format, and whose code it is.
const CATEGORIES: [(&str, &str); 3] = [("Other", "grey"), ("User", "yellow"), ("Kernel", "orange")];

/// Writes profiles into a sink, each as a process.
pub(super) fn write<W: Write>(profiles: &[MergedProfile<'_>], mut sink: W) -> io::Result<W> {
    let mut texts = Texts::default();
    let mut threads = Vec::new();
    for (process, profile) in profiles.iter().enumerate() {
        let mut of_process = threads_of(profile, &mut texts);
        // The first is the main thread, which stands for the process.
        of_process.sort_by_key(|thread| Reverse(thread.total()));
        for (at, thread) in of_process.iter().enumerate() {
            let mut json = thread.json(interval_ms(profile));
            json["isMainThread"] = (at == 0).into();
            json["pid"] = (process + 1).to_string().into();
            json["tid"] = (threads.len() + 1).into();
            let cell = cell_name(&profile.cell);
            json["processName"] = format!("{cell} {}", profile.step).into();
            threads.push(json);
        }
    }
    let category =
        |(name, color)| json!({"name": name, "color": color, "subcategories": ["Other"]});
    let whole = json!({
        "meta": {
            "product": "Assay", "importedFrom": "Assay", "processType": 0, "stackwalk": 1,
            "preprocessedProfileVersion": VERSION,
            // The version of the format of Firefox itself, from which profiles are processed.
            "version": 31,
            "startTime": 0, "interval": profiles.first().map_or(1.0, interval_ms),
            "categories": CATEGORIES.map(category), "markerSchema": [],
            "symbolicated": true, "symbolicationNotSupported": true,
            "usesOnlyOneStackType": true, "sourceCodeIsNotOnSearchfox": true,
            "keepProfileThreadOrder": true,
        },
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

fn interval_ms(profile: &MergedProfile<'_>) -> f64 {
    1e3 / f64::from(profile.frequency_hz.max(1))
}

/// The texts that the tables refer to by index.
#[derive(Default)]
struct Texts {
    list: Vec<String>,
    indexes: HashMap<String, usize>,
}

impl Texts {
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
fn threads_of(profile: &MergedProfile, texts: &mut Texts) -> Vec<Thread> {
    let mut threads: Vec<Thread> = Vec::new();
    // The functions of the last thread by their texts, and the stacks around the last node.
    let mut functions = HashMap::new();
    let mut path = Vec::new();
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
            let function = *functions.entry(text).or_insert_with(|| {
                thread.names.push(text);
                let is_kernel = node.frame.ends_with("_[k]");
                thread.categories.push(1 + usize::from(is_kernel));
                thread.names.len() - 1
            });
            thread.prefixes.push(path.last().copied());
            thread.frames.push(function);
            path.push(thread.frames.len() - 1);
        }
        if node.samples > 0 {
            thread.samples.push((path.last().copied(), node.samples));
        }
    }
    threads
}

impl Thread {
    fn total(&self) -> u64 {
        self.samples.iter().map(|(_, samples)| samples).sum()
    }

    /// Returns the thread with its tables. The profile has no times, so equal stacks come one after
    /// the other.
    fn json(&self, interval_ms: f64) -> Value {
        let count = self.names.len();
        let functions: Vec<usize> = (0..count).collect();
        let none = vec![Value::Null; count];
        let (no, zero, minus_one) = (vec![false; count], vec![0; count], vec![-1; count]);
        let (stacks, weights): (Vec<_>, Vec<_>) = self.samples.iter().copied().unzip();
        let times = weights.iter().scan(0, |before, samples| {
            let time_ms = *before as f64 * interval_ms;
            *before += samples;
            Some(time_ms)
        });
        json!({
            "name": self.name,
            "processType": "default", "processStartupTime": 0, "processShutdownTime": null,
            "registerTime": 0, "unregisterTime": null, "pausedRanges": [],
            "samples": {
                "length": stacks.len(), "stack": stacks, "weight": weights, "weightType": "samples",
                "time": times.collect::<Vec<f64>>(),
            },
            "stackTable": {
                "length": self.frames.len(), "frame": self.frames, "prefix": self.prefixes,
            },
            "frameTable": {
                "length": count, "func": functions, "category": self.categories,
                "subcategory": zero, "address": minus_one, "inlineDepth": zero, "line": none,
                "column": none, "nativeSymbol": none, "innerWindowID": none,
            },
            "funcTable": {
                "length": count, "name": self.names, "isJS": no, "relevantForJS": no,
                "resource": minus_one, "source": none, "lineNumber": none, "columnNumber": none,
            },
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
}
