//! CPU profiles in the formats of viewers: each holds the samples that were recorded.

use std::collections::{BTreeMap, BTreeSet};

use words::Stacks;

use super::recorded::{FREQUENCY_HZ, stacks};
use super::*;

/// Only the queries have samples; those of the other target are invalid in the third profiled
/// repeat.
const PROFILES: u32 = 3;

impl Exported {
    fn with_profiles() -> Self {
        let place = Place::new();
        let run = recorded::write_profiled(&place.join("results"), REPEATS, PROFILES, 0);
        Self { place, run }
    }
}

/// Returns the samples of a target in all valid profiled repeats.
fn recorded_samples(target: &str) -> Stacks {
    let mut all = Stacks::default();
    for _ in 0..if target == BASE { PROFILES } else { PROFILES - 1 } {
        all.merge(&stacks(target));
    }
    all
}

/// Returns the samples of each function of a target alone, and with all functions that it calls.
fn functions(target: &str) -> BTreeMap<String, (u64, u64)> {
    let mut functions: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (frames, samples) in recorded_samples(target).iter() {
        let frames: Vec<&str> = frames.skip(1).collect();
        functions.entry(frames.last().unwrap().to_string()).or_default().0 += samples;
        for function in BTreeSet::from_iter(frames) {
            functions.entry(function.to_owned()).or_default().1 += samples;
        }
    }
    functions
}

/// Reads folded stacks: frames between semicolons, a space, and the number of samples.
fn folded(text: &str) -> Stacks {
    let mut stacks = Stacks::default();
    for line in text.lines() {
        let (frames, samples) = line.rsplit_once(' ').unwrap();
        assert!(frames.split(';').all(|frame| !frame.is_empty()), "{line}");
        stacks.add(frames.split(';'), samples.parse().unwrap());
    }
    stacks
}

#[test]
fn folded_stacks_of_one_profile_can_be_subtracted_and_those_of_several_have_names() {
    let exported = Exported::with_profiles();
    let only = ["--format", "folded", "--only", OTHER];
    let ended = exported.export(&only).expect_code(0);
    assert_eq!(folded(&ended.stdout), recorded_samples(OTHER));
    ended.expect_in_stderr(&[
        "left out: l.i0 of new.tuned (p1): no samples",
        "left out: qr100 of new.tuned (p3): invalid: rows of pi1",
    ]);

    let both = exported.export(&["--format", "folded"]).expect_code(0);
    let mut expected = Stacks::default();
    for target in [BASE, OTHER] {
        let cell = format!("{target}/c2");
        for (frames, samples) in recorded_samples(target).iter() {
            expected.add([cell.as_str(), "qr100"].into_iter().chain(frames), samples);
        }
    }

    assert_eq!(folded(&both.stdout), expected);
}

/// Returns pprof's list of functions with their values alone and with callees.
fn top(tool: &Path, options: &[&str], files: &[&Path]) -> BTreeMap<String, (f64, f64)> {
    let mut command = Command::new(tool);
    command.args(["-top", "-nodecount=0", "-nodefraction=0", "-edgefraction=0"]);
    // It writes its settings into this directory.
    command.env("XDG_CONFIG_HOME", files[0].parent().unwrap());
    let ended = command.args(options).args(files).output().unwrap();
    let [text, complaints] = [ended.stdout, ended.stderr].map(|it| String::from_utf8(it).unwrap());
    assert!(ended.status.success() && complaints.is_empty(), "{complaints}");

    let heads = ["flat", "flat%", "sum%", "cum", "cum%"];
    let is_head = |line: &&str| line.split_whitespace().eq(heads);
    let lines = text.lines().skip_while(|line| !is_head(line)).skip(1);
    let number = |text: &str| {
        let digits = text.trim_end_matches(char::is_alphabetic);
        digits.parse::<f64>().unwrap()
    };
    let functions = lines.map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        (words[5..].join(" "), (number(words[0]), number(words[3])))
    });

    functions.collect()
}

#[test]
fn pprof_shows_the_samples_and_the_cost_of_each_function() {
    let Some(tool) = tool_or_test_is_skipped("pprof", "ASSAY_TEST_PPROF") else {
        return;
    };
    let exported = Exported::with_profiles();
    let [base, other] = [BASE, OTHER].map(|target| {
        let options = ["--format", "pprof", "--only", target];
        exported.to_file(&format!("{target}.pb.gz"), &options)
    });

    let shown = Shown::read(&exported.place, &exported.run);
    // The other target's second repeat is invalid.
    let cost_us = |target: &str| {
        let rows = shown.rows().iter();
        let costs: Vec<f64> = rows
            .filter(|row| row["target"] == target && row["step"] == "qr100")
            .filter(|row| row["valid"] == true && row["cell_kind"].is_null())
            .map(|row| row["metrics"]["server_cpu_us_per_op"].as_f64().unwrap())
            .collect();
        costs.iter().sum::<f64>() / costs.len() as f64
    };
    let us_per_sample = |target| cost_us(target) / recorded_samples(target).total() as f64;

    for (target, file) in [(BASE, &base), (OTHER, &other)] {
        let samples = top(&tool, &["-sample_index=samples"], &[file]);
        let cpu = top(&tool, &["-sample_index=cpu", "-unit=ms"], &[file]);
        // A second per million operations is a microsecond per operation.
        let cost = top(&tool, &["-unit=us"], &[file]);
        let functions = functions(target);
        assert_eq!(samples.len(), functions.len());
        let check = |shown: (f64, f64), per_sample: f64, (own, all): (u64, u64)| {
            for (shown, count) in [(shown.0, own), (shown.1, all)] {
                let expected = per_sample * count as f64;
                let error = (shown - expected).abs();
                assert!(error <= 0.01 + 1e-3 * expected, "{shown}, not {expected}");
            }
        };
        for (function, counts) in functions {
            check(samples[&function], 1.0, counts);
            check(cpu[&function], 1e3 / f64::from(FREQUENCY_HZ), counts);
            check(cost[&function], us_per_sample(target) * 1e6, counts);
        }
    }

    let base_option = format!("-diff_base={}", base.display());
    let difference = top(&tool, &["-unit=us", &base_option], &[&other]);
    let of = |target| functions(target)["range"].0 as f64 * us_per_sample(target) * 1e6;
    let (shown, expected) = (difference["range"].0, of(OTHER) - of(BASE));
    assert!((shown - expected).abs() <= 1e-3 * expected, "{shown}, not {expected}");

    // Both targets in one file.
    let both = exported.to_file("both.pb.gz", &["--format", "pprof"]);
    let focus = format!("-tagfocus=target={OTHER}");
    let selected = top(&tool, &["-sample_index=samples", &focus], &[&both]);
    assert_eq!(selected, top(&tool, &["-sample_index=samples"], &[&other]));
}

/// Returns a column of a table in the Firefox Profiler's format, which is as long as the table
/// says.
fn column<'a>(table: &'a Value, name: &str) -> &'a [Value] {
    let column = table[name].as_array().unwrap();
    assert_eq!(table["length"], column.len(), "{name}");
    column
}

/// Returns the indexes in a column, each below `count`.
fn indexes(table: &Value, name: &str, count: usize) -> Vec<Option<usize>> {
    let indexes = column(table, name).iter().map(|value| {
        let index = value.as_u64().map(|it| it as usize);
        assert!(index.map_or(value.is_null(), |it| it < count), "{name}: {value}");
        index
    });
    indexes.collect()
}

/// The columns of the tables of a thread in version 58, besides those with indexes.
const COLUMNS: [(&str, &[&str]); 6] = [
    (
        "frameTable",
        &[
            "address",
            "inlineDepth",
            "subcategory",
            "nativeSymbol",
            "innerWindowID",
            "line",
            "column",
        ],
    ),
    ("funcTable", &["isJS", "relevantForJS", "resource", "source", "lineNumber", "columnNumber"]),
    ("resourceTable", &["lib", "name", "host", "type"]),
    ("nativeSymbols", &["libIndex", "address", "name", "functionSize"]),
    ("markers", &["data", "name", "startTime", "endTime", "phase", "category"]),
    ("samples", &["time", "weight"]),
];
/// The other keys that the format requires.
const META: [&str; 8] = [
    "categories",
    "interval",
    "markerSchema",
    "processType",
    "product",
    "stackwalk",
    "startTime",
    "version",
];
const THREAD: [&str; 11] = [
    "isMainThread",
    "name",
    "pausedRanges",
    "pid",
    "processShutdownTime",
    "processStartupTime",
    "processType",
    "registerTime",
    "tid",
    "unregisterTime",
    "processName",
];

#[test]
fn the_firefox_profilers_tables_are_whole_and_hold_the_samples() {
    let exported = Exported::with_profiles();
    let file = exported.to_file("profile.json", &["--format", "firefox"]);
    let profile: Value = serde_json::from_str(&fs_err::read_to_string(file).unwrap()).unwrap();

    let meta = &profile["meta"];
    assert_eq!(meta["preprocessedProfileVersion"], 58);
    assert!(META.iter().all(|key| meta.get(key).is_some()), "{meta}");
    assert_eq!(meta["interval"], 1e3 / f64::from(FREQUENCY_HZ));
    assert!(profile["libs"].is_array());
    let categories = meta["categories"].as_array().unwrap();
    assert_eq!(categories[0]["color"], "grey");

    let texts = profile["shared"]["stringArray"].as_array().unwrap();
    for name in ["uuid", "filename"] {
        column(&profile["shared"]["sources"], name);
    }

    let mut read: BTreeMap<&str, Stacks> = BTreeMap::new();
    let mut tids = BTreeSet::new();
    let mut main_threads = Vec::new();
    for thread in profile["threads"].as_array().unwrap() {
        assert!(THREAD.iter().all(|key| thread.get(key).is_some()), "{thread}");
        assert!(tids.insert(thread["tid"].as_u64().unwrap()));
        if thread["isMainThread"] == true {
            main_threads.push((thread["pid"].as_str().unwrap(), thread["name"].as_str().unwrap()));
        }
        for (table, columns) in COLUMNS {
            for name in columns {
                column(&thread[table], name);
            }
        }

        let count = |table: &str| thread[table]["length"].as_u64().unwrap() as usize;
        let [functions, frames] = ["funcTable", "frameTable"].map(|table| &thread[table]);
        let names = indexes(functions, "name", texts.len());
        let of_frames = indexes(frames, "func", count("funcTable"));
        let categories = indexes(frames, "category", categories.len());
        let stacks = &thread["stackTable"];
        let innermost = indexes(stacks, "frame", count("frameTable"));
        let prefixes = indexes(stacks, "prefix", count("stackTable"));

        // Each stack with its thread as the outermost frame.
        let mut whole: Vec<Vec<&str>> = Vec::new();
        for (at, prefix) in prefixes.iter().enumerate() {
            assert!(prefix.is_none_or(|prefix| prefix < at), "a caller comes first");
            let frame = innermost[at].unwrap();
            let text = texts[names[of_frames[frame].unwrap()].unwrap()].as_str().unwrap();
            assert_eq!(categories[frame], Some(1 + usize::from(text.ends_with("_[k]"))));
            let outer = || vec![thread["name"].as_str().unwrap()];
            let mut stack = prefix.map_or_else(outer, |prefix| whole[prefix].clone());
            stack.push(text);
            whole.push(stack);
        }

        let samples = &thread["samples"];
        let name = thread["processName"].as_str().unwrap();
        let read = read.entry(name).or_default();
        let mut time_ms = 0.0;
        let weights = column(samples, "weight");
        for (at, stack) in indexes(samples, "stack", whole.len()).iter().enumerate() {
            let weight = weights[at].as_u64().unwrap();
            read.add(whole[stack.unwrap()].iter().copied(), weight);
            assert_eq!(samples["time"][at].as_f64(), Some(time_ms));
            time_ms += weight as f64 * 1e3 / f64::from(FREQUENCY_HZ);
        }
    }

    let expected =
        [BASE, OTHER].map(|target| (format!("{target}/c2 qr100"), recorded_samples(target)));
    let read: BTreeMap<String, Stacks> = read.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
    assert_eq!(read, BTreeMap::from(expected));
    assert_eq!(main_threads, [("1", "postgres"), ("2", "postgres")]);
}

#[test]
fn an_export_without_a_profile_says_how_to_get_one() {
    let without = Exported::new();
    let profiled = Exported::with_profiles();
    let check = |exported: &Exported, code, options: &[&str], told: &[&str]| {
        let options = [&["--format", "folded"], options].concat();
        let ended = exported.export(&options).expect_code(code);
        assert_eq!(ended.stdout, "");
        ended.expect_in_stderr(told);
    };

    check(&without, 2, &[], &["no profiled step is selected", "--resume RUN --profile"]);
    let told = ["no profiled step is selected", "`old.tuned/c2/p1`"];
    check(&profiled, 2, &["--only", "**/r1"], &told);
    check(&profiled, 2, &["--only", "olde.*"], &["matches no cell"]);
    check(&profiled, 4, &["--step", "l.i0"], &["no samples", "nothing was written"]);

    profiled
        .export(&["--format", "csv", "--table", "verdicts", "--only", BASE])
        .expect_code(2)
        .expect_in_stderr(&["comparisons need all cells"]);

    let table = profiled.export(&["--format", "csv", "--only", BASE]);
    let table = table.expect_code(0).stdout;
    assert_eq!(table.lines().count() as u32, 1 + 2 * REPEATS);
    assert!(!table.contains(OTHER), "{table}");
}
