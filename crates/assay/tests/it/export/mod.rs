//! `assay export`, read by the tools that it writes for: Python's csv, DuckDB, ClickHouse,
//! benchstat, HdrHistogram's own library and pprof.
//!
//! `ASSAY_TEST_DUCKDB` names a Python that has DuckDB, `ASSAY_TEST_CHDB` one that has ClickHouse as
//! chdb, `ASSAY_TEST_BENCHSTAT` the program, as `ASSAY_TEST_PPROF` does, `ASSAY_TEST_HDRHISTOGRAM`
//! the library's jar, which needs `java`. A tool that is missing is a skip, aloud; where it is
//! required, a failure.

mod copies;
mod many;
mod profiles;
pub(crate) mod recorded;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::forged::change_json;
use crate::not_here;
use crate::place::{Ended, NULL, Place, entries, workload};
use crate::show_json::Shown;
use recorded::{BASE, LONGEST_NS, OTHER, REASON, SECONDS, queries_per_second};

/// Returns the tool that a variable names; otherwise the test that asks has been called skipped.
pub(crate) fn tool_or_test_is_skipped(name: &str, variable: &str) -> Option<PathBuf> {
    let tool = std::env::var_os(variable).map(PathBuf::from);
    if tool.is_none() {
        not_here(name, &format!("{variable} names none"));
    }
    tool
}

/// Returns the output of a program, which succeeds.
fn output(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the JSON that a script in Python prints.
fn python(python: &Path, script: &str, arguments: &[&Path]) -> Value {
    let mut command = Command::new(python);
    command.args(["-I", "-c", script]).args(arguments);
    serde_json::from_str(&output(&mut command)).unwrap()
}

/// A table as CSV: a list of lines, each a map from heads to texts.
const READ_CSV: &str = "
import csv, json, sys
with open(sys.argv[1], newline='', encoding='utf-8') as file:
    print(json.dumps(list(csv.DictReader(file, strict=True))))
";

/// A Parquet file: its metadata, the types of its columns, and its lines.
const READ_PARQUET: &str = "
import duckdb, json, sys
name = sys.argv[1].replace(\"'\", \"''\")
notes = duckdb.sql(f\"select key, value from parquet_kv_metadata('{name}')\").fetchall()
table = duckdb.sql(f\"select * replace (strftime(started_at at time zone 'UTC', '%Y-%m-%dT%H:%M:%S.%fZ') as started_at) from read_parquet('{name}')\")
print(json.dumps({
    'notes': {key.decode(): value.decode() for key, value in notes},
    'types': {name: str(type) for name, type in zip(table.columns, table.types)},
    'rows': [dict(zip(table.columns, row)) for row in table.fetchall()],
}))
";

/// Enough for each thing to be there once.
const REPEATS: u32 = 2;

/// A recorded run, and what was exported of it.
struct Exported {
    place: Place,
    run: PathBuf,
}

impl Exported {
    fn new() -> Self {
        Self::with_repeats(REPEATS)
    }

    fn with_repeats(repeats: u32) -> Self {
        let place = Place::new();
        let run = recorded::write(&place.join("results"), repeats, 0);
        Self { place, run }
    }

    /// Exports it into a file of that name.
    fn to_file(&self, name: &str, options: &[&str]) -> PathBuf {
        let file = self.place.join(name);
        let ended = self.export(&[options, &["-o", file.to_str().unwrap()]].concat());
        let ended = ended.expect_code(0);
        assert_eq!(ended.stdout.trim_end(), file.to_str().unwrap(), "{ended}");
        file
    }

    fn export(&self, options: &[&str]) -> Ended {
        let run = self.run.to_str().unwrap();
        self.place.assay(&[&["export", run], options].concat())
    }
}

/// Returns true if two values are equal, except for the last digit of numbers, which the JSON
/// reader may round.
fn same(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-15 * a.abs(),
        _ => a == b,
    }
}

/// Returns a value of a table in CSV as what it is in Parquet.
fn typed(text: &str, of_type: &str) -> Value {
    match of_type {
        _ if text.is_empty() => Value::Null,
        "VARCHAR" => Value::from(text),
        "BIGINT" => Value::from(text.parse::<i64>().unwrap()),
        "DOUBLE" => Value::from(text.parse::<f64>().unwrap()),
        "BOOLEAN" => Value::from(text.parse::<bool>().unwrap()),
        other => panic!("a column of type {other}"),
    }
}

/// Both forms of a table have the same heads, lines and values; these lines, with their types.
fn lines_of(exported: &Exported, tool: &Path, name: &str, options: &[&str]) -> Vec<Value> {
    let with = |format| [&["--format", format], options].concat();
    let csv = exported.to_file(&format!("{name}.csv"), &with("csv"));
    let parquet = exported.to_file(&format!("{name}.parquet"), &with("parquet"));
    let text = python(tool, READ_CSV, &[&csv]);
    let columns = python(tool, READ_PARQUET, &[&parquet]);

    assert_eq!(columns["notes"]["assay.table"], name);
    assert_eq!(columns["notes"]["assay.version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(columns["notes"]["assay.schema_version"], "1");

    let runs: Value =
        serde_json::from_str(columns["notes"]["assay.runs"].as_str().unwrap()).unwrap();
    assert_eq!(
        (&runs[0]["run_id"], &runs[0]["name"], &runs[0]["base"]),
        (&recorded::id(0).into(), &"known".into(), &BASE.into())
    );

    let types = columns["types"].as_object().unwrap();
    let lines = columns["rows"].as_array().unwrap().clone();
    let text = text.as_array().unwrap();
    assert_eq!(lines.len(), text.len());

    for (line, text) in lines.iter().zip(text) {
        let text = text.as_object().unwrap();
        assert_eq!(text.len(), types.len());
        for (head, known) in [
            ("run_name", "known"),
            ("started_at", "2026-11-21T19:02:11.250000Z"),
            ("host", "lab-1"),
            ("cpu_model", "Some CPU @ 2 GHz"),
            ("assay_version", "0.1.0"),
        ] {
            assert_eq!(line[head], known, "{head}");
        }

        for (name, of_type) in types {
            let text = typed(text[name].as_str().unwrap(), of_type.as_str().unwrap());
            assert!(same(&line[name], &text), "{name}, {text}, in {line}");
        }
    }

    lines
}

#[test]
fn a_table_of_steps_is_what_show_says_with_units_and_reasons() {
    let Some(tool) = tool_or_test_is_skipped("duckdb", "ASSAY_TEST_DUCKDB") else {
        return;
    };

    let exported = Exported::new();
    let lines = lines_of(&exported, &tool, "steps", &[]);
    let shown = Shown::read(&exported.place, &exported.run);
    assert_eq!(lines.len(), shown.rows().len());

    let mut invalid = 0;
    for (line, row) in lines.iter().zip(shown.rows()) {
        for key in ["target", "step", "clients", "repeat", "valid", "main_op"] {
            assert_eq!(line[key], row[key], "{key}");
        }

        assert_eq!(line["run_id"], recorded::id(0));
        let (fast, unit) =
            if line["step"] == "l.i0" { ("ips", "rows/s") } else { ("qps", "queries/s") };
        assert_eq!(line["throughput_unit"], unit);
        for (head, metric) in
            [("ips_rows_per_s", "ips"), ("cs_per_op", "cs/o"), ("throughput", fast)]
        {
            let shown = &row["metrics"][metric];
            assert!(same(&line[head], shown), "{head}, {shown}, in {line}");
        }

        assert_eq!(line["sla_met"], row["sla"]["met"]);
        // Nothing was read from disks that nobody looked at: that is not zero.
        assert_eq!(line["rps_per_s"], Value::Null);

        let main = &row["ops"][row["main_op"].as_str().unwrap()];
        assert_eq!(line["main_ok_count"], main["count"]);
        assert_eq!(line["main_response_us_max"], main["response_us"]["max"]);
        if line["valid"] == false {
            assert_eq!(line["reasons"], REASON);
            invalid += 1;
        } else {
            assert_eq!(line["reasons"], Value::Null);
        }
    }

    assert_eq!(invalid, 1);
}

#[test]
fn a_table_of_seconds_has_every_second_and_whether_it_counts() {
    let Some(tool) = tool_or_test_is_skipped("duckdb", "ASSAY_TEST_DUCKDB") else {
        return;
    };

    let exported = Exported::new();
    let lines = lines_of(&exported, &tool, "seconds", &["--table", "seconds", "--step", "qr100"]);
    // Two kinds of operation.
    assert_eq!(lines.len() as u32, 2 * REPEATS * 2 * SECONDS);

    for line in &lines {
        let target = line["target"].as_str().unwrap();
        let repeat = line["repeat"].as_u64().unwrap() as u32;
        assert_eq!(line["step"], "qr100");
        assert_eq!(line["length_s"], 1.0);
        let second = line["second"].as_u64().unwrap();
        let began = Value::from(1_795_287_751.25 + second as f64);
        assert!(same(&line["unix_s"], &began), "{line}");

        let is_invalid = target == OTHER && repeat == REPEATS;
        assert_eq!(line["valid"], !is_invalid);
        assert_eq!(line["reasons"].as_str(), is_invalid.then_some(REASON));

        if line["op"] == "query" {
            assert_eq!(line["ok_count"], queries_per_second(target, repeat));
            let slow = second == 2;
            let us = if slow { LONGEST_NS as f64 / 1e3 } else { 1e3 };
            assert!(same(&line["response_us_max"], &us.into()), "{line}");
        }
    }

    let total: u64 = lines
        .iter()
        .filter(|line| line["op"] == "query" && line["target"] == BASE)
        .map(|line| line["ok_count"].as_u64().unwrap())
        .sum();
    let expected: u64 =
        (1..=REPEATS).map(|repeat| queries_per_second(BASE, repeat) * u64::from(SECONDS)).sum();

    assert_eq!(total, expected);
}

#[test]
fn a_table_of_latencies_has_every_operation_once() {
    let Some(tool) = tool_or_test_is_skipped("duckdb", "ASSAY_TEST_DUCKDB") else {
        return;
    };

    let exported = Exported::new();
    let lines =
        lines_of(&exported, &tool, "latencies", &["--table", "latencies", "--step", "qr100"]);
    let is_of_query = |line: &&Value| {
        line["op"] == "query" && line["time"] == "response" && line["target"] == BASE
    };

    let count = |line: &Value| line["op_count"].as_u64().unwrap();
    let total: u64 = lines.iter().filter(is_of_query).map(count).sum();
    let expected: u64 =
        (1..=REPEATS).map(|repeat| queries_per_second(BASE, repeat) * u64::from(SECONDS)).sum();
    assert_eq!(total, expected);

    // A bucket's value is right to three digits.
    let us = |line: &Value| line["value_us"].as_f64().unwrap();
    let longest_us = lines.iter().filter(is_of_query).map(us).fold(0.0, f64::max);
    assert!((longest_us / (LONGEST_NS as f64 / 1e3) - 1.0).abs() < 0.001, "{longest_us}");
}

#[test]
fn a_table_of_metrics_has_a_line_for_each_figure_that_is_applicable() {
    let Some(tool) = tool_or_test_is_skipped("duckdb", "ASSAY_TEST_DUCKDB") else {
        return;
    };

    let exported = Exported::new();
    let steps = lines_of(&exported, &tool, "steps", &[]);
    let metrics = lines_of(&exported, &tool, "metrics", &["--table", "metrics"]);

    // Whatever a step has is here by the same name, and nothing else.
    for step in &steps {
        let is_of = |line: &&Value| {
            let mut keys = ["target", "repeat", "step", "valid"].iter();
            keys.all(|key| line[key] == step[key])
        };
        let of: Vec<&Value> = metrics.iter().filter(is_of).collect();

        let names = words::METRICS.iter().map(|metric| metric.column);
        for name in names.chain(["throughput", "elapsed_s", "sla_target_rows_per_s"]) {
            let named = of.iter().find(|line| line["metric"] == name);
            let value = named.map_or(&Value::Null, |line| &line["value"]);
            assert!(same(&step[name], value), "{name} {value} in {step}");
        }
    }

    let figure = |metric: &str| {
        let mut lines = metrics.iter();
        let is_it = |line: &&Value| line["metric"] == metric && line["target"] == BASE;
        let line = lines.find(is_it).unwrap();
        (line["unit"].as_str(), line["value"].as_f64().unwrap())
    };

    assert_eq!(figure("query_ok_count"), (None, 4040.0));
    assert_eq!(figure("query_response_us_max"), (Some("us"), 250_000.0));
    assert_eq!(figure("cs_per_op").0, Some("/op"));
}

#[test]
fn verdicts_are_those_of_the_comparison() {
    let Some(tool) = tool_or_test_is_skipped("duckdb", "ASSAY_TEST_DUCKDB") else {
        return;
    };

    let exported = Exported::with_repeats(5);
    let lines = lines_of(&exported, &tool, "verdicts", &["--table", "verdicts"]);
    let csv = exported.to_file("verdicts.csv", &["--format", "csv", "--table", "verdicts"]);
    let run = exported.run.to_str().unwrap();
    let compared = exported.place.assay(&["compare", run, "--format", "csv"]);
    assert_eq!(compared.expect_code(0).stdout, fs_err::read_to_string(csv).unwrap());

    let is_of = |line: &&Value| line["metric"] == "throughput" && line["step"] == "qr100";
    let line = lines.iter().find(is_of).unwrap();
    let ratio = line["ratio"].as_f64().unwrap();
    assert!((0.89..0.91).contains(&ratio), "{line}");

    for (key, value) in [
        ("run_ids", recorded::id(0).as_str()),
        ("base", BASE),
        ("target", OTHER),
        ("engine", "postgres"),
        ("unit", "queries/s"),
        ("verdict", "slower"),
    ] {
        assert_eq!(line[key], value, "{key}");
    }

    assert_eq!(line["target_repeat_count"], 4);
}

#[test]
fn benchstat_compares_the_targets_and_never_sees_what_is_invalid() {
    let Some(benchstat) = tool_or_test_is_skipped("benchstat", "ASSAY_TEST_BENCHSTAT") else {
        return;
    };

    // benchstat gives an interval from six on.
    let exported = Exported::with_repeats(6);
    let file = exported.place.join("benchmarks.txt");
    let options = ["--format", "benchstat", "-o", file.to_str().unwrap()];
    exported.export(&options).expect_code(0).expect_in_stderr(&[
        "warning: left out: qr100 of new.tuned (c2, r6): rows of pi1: \"9\" found",
    ]);

    let compare = |unit: &str| {
        let filter = format!(".unit:\"{unit}\" /step:qr100");
        output(
            Command::new(&benchstat)
                .args(["-format", "csv", "-col", "target", "-filter", &filter])
                .arg(&file),
        )
    };

    let text = compare("queries/s");
    for head in ["run: known", "cpu: Some CPU @ 2 GHz", "engine: postgres"] {
        assert!(text.contains(head), "{text}");
    }
    // The base first, with six samples; the other with five.
    assert!(text.contains(&format!(",{BASE},,{OTHER}")), "{text}");

    let result = text
        .lines()
        .find(|line| line.starts_with("Insert/step=qr100/clients=2-2,"))
        .unwrap_or_else(|| panic!("{text}"));

    let fields: Vec<&str> = result.split(',').collect();
    assert_eq!((fields[1], fields[3]), ("1035", "930"), "{text}");
    assert_eq!((fields[5], fields[6]), ("-10.14%", "p=0.004 n=6+5"), "{text}");

    // Times get their unit's prefix by benchstat itself: it knows them as seconds.
    let text = compare("max-response-sec");
    assert!(text.contains(",0.25,"), "{text}");
}

/// Checks the input of the tool above, but not the tool's use of it.
#[test]
fn a_line_is_a_repeat_and_the_base_comes_first() {
    let exported = Exported::new();
    let ended = exported.export(&["--format", "benchstat", "--step", "qr100"]);
    let text = ended.expect_code(0).stdout;
    let (head, results) = text.split_once("\n\n").unwrap();

    let lines: Vec<&str> = head.lines().collect();
    assert_eq!(
        lines[..4],
        ["run: known", "assay-version: 0.1.0", "cpu: Some CPU @ 2 GHz", "engine: postgres"]
    );
    assert!(lines.contains(&"Unit queries/s better=higher"), "{text}");
    assert!(lines.contains(&"Unit switches/op better=lower"), "{text}");

    let (base, other) = results.split_once("\n\n").unwrap();
    let base: Vec<&str> = base.lines().collect();
    assert_eq!(base[..2], ["target: old.tuned", "# build old, config tuned, postgres 1.2"]);
    assert_eq!(base.len() as u32, 2 + REPEATS);

    assert!(
        base[2].starts_with(
            "BenchmarkInsert/step=qr100/clients=2-2 4040 990099.0099009901 ns/op 1010 queries/s "
        ),
        "{text}"
    );
    assert!(base[2].ends_with(" 250000000 max-response-ns"), "{text}");

    assert_eq!(other.lines().count() as u32, 2 + REPEATS - 1);
}

#[test]
fn a_format_that_cannot_say_invalid_is_not_written_of_invalid_results_alone() {
    let exported = Exported::new();
    // A run whose only step is invalid has no results.
    let run_json = exported.run.join("run.json");
    change_json(&run_json, |run| {
        let cells = run["cells"].as_array_mut().unwrap();
        cells.retain(|cell| cell["target"] == OTHER && cell["repeat"] == REPEATS);
    });
    let file = exported.place.join("benchmarks.txt");
    let options = ["--format", "benchstat", "--step", "qr100", "-o"];
    let ended = exported.export(&[&options[..], &[file.to_str().unwrap()]].concat());
    ended.expect_code(4).expect_in_stderr(&["left out: qr100 of new.tuned", "no valid result"]);
    assert!(!file.exists());
}

/// Returns the output of HdrHistogram's own log processor for a log.
fn processed(jar: &Path, log: &Path, options: &[&str]) -> String {
    output(
        Command::new("java")
            .arg("-cp")
            .arg(jar)
            .arg("org.HdrHistogram.HistogramLogProcessor")
            .arg("-i")
            .arg(log)
            .args(options),
    )
}

#[test]
fn hdrhistogram_reads_the_latencies_of_each_cell() {
    let Some(jar) = tool_or_test_is_skipped("hdrhistogram", "ASSAY_TEST_HDRHISTOGRAM") else {
        return;
    };

    let exported = Exported::new();
    let logs = exported.place.join("logs");
    let options = ["--format", "hdr", "-o", logs.to_str().unwrap()];
    exported
        .export(&options)
        .expect_code(0)
        .expect_in_stderr(&["warning: step `qr100` of `new.tuned` is invalid"]);
    assert_eq!(entries(&logs).len() as u32, 2 * REPEATS);

    let log = logs.join("old.tuned-c2-r1.hlog");
    let tags = processed(&jar, &log, &["-listtags"]);
    for tag in ["l.i0.insert.service", "qr100.query.response"] {
        assert!(tags.contains(tag), "{tags}");
    }
    assert!(!tags.contains("invalid"), "{tags}");

    let text = processed(&jar, &log, &["-tag", "qr100.query.response"]);
    let count = queries_per_second(BASE, 1) * u64::from(SECONDS);
    assert!(text.contains(&format!("Total count    = {count:>12}")), "{text}");
    // In milliseconds, to three digits.
    assert!(text.contains("#[Max     =      250.0"), "{text}");

    let log = logs.join("new.tuned-c2-r2.hlog");
    let tags = processed(&jar, &log, &["-listtags"]);
    assert!(tags.contains("invalid.qr100.query.response"), "{tags}");
    let text = processed(&jar, &log, &["-tag", "qr100.query.response"]);
    assert!(text.is_empty(), "{text}");
}

#[test]
fn the_example_in_python_reads_a_run() {
    let Some(tool) = tool_or_test_is_skipped("duckdb", "ASSAY_TEST_DUCKDB") else {
        return;
    };
    let exported = Exported::new();
    let file = exported.to_file("steps.parquet", &["--format", "parquet"]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/read_run.py");
    let text = output(Command::new(tool).arg(script).arg(file));
    for target in [BASE, OTHER] {
        let is_of = |line: &str| line.contains(target) && line.contains(" repeats)");
        assert!(text.lines().any(is_of), "{target} in {text}");
    }
}

/// Checks the export of a real run, all seconds together.
#[test]
fn a_real_run_comes_out_whole() {
    let Some(jar) = tool_or_test_is_skipped("hdrhistogram", "ASSAY_TEST_HDRHISTOGRAM") else {
        return;
    };

    let place = Place::new();
    let plan = workload(1_000, 500, "2s", "steps = [\"l.i0\", \"l.x\", \"qr100\"]") + NULL;
    let run = place.run(&plan, &["--quiet"]).run_directory();
    let run = run.to_str().unwrap();
    place.assay(&["export", run, "--format", "hdr", "-o", "logs"]).expect_code(0);

    let shown = Shown::read(&place, Path::new(run));
    let count = |kind: &str| &shown.row("null.default", "qr100")["ops"][kind]["count"];
    let log = entries(&place.join("logs")).remove(0);

    for kind in ["insert", "query"] {
        let text = processed(&jar, &log, &["-tag", &format!("qr100.{kind}.service")]);
        let expected = format!("Total count    = {:>12}]", count(kind).as_u64().unwrap());
        assert!(text.contains(&expected), "{expected} in {text}");
    }
}

#[test]
fn an_export_says_what_it_cannot_do() {
    let exported = Exported::new();
    let check = |options: &[&str], told: &[&str]| {
        exported.export(options).expect_code(2).expect_in_stderr(told);
    };

    check(&["--format", "hdr"], &["one file per cell", "-o DIR"]);
    check(
        &["--format", "benchstat", "--table", "seconds"],
        &["need `--format csv`", "--format parquet"],
    );
    check(
        &["--format", "csv", "--table", "steps", "--table", "metrics"],
        &["several tables need a directory", "-o DIR/"],
    );
    check(
        &["--format", "csv", "--step", "l.i9"],
        &["the run has no step `l.i9`", "did you mean `l.i0`?"],
    );
}

#[test]
fn a_directory_gets_a_file_and_stdout_the_same() {
    let exported = Exported::new();
    let there = exported.place.join("new/");
    let options = ["--format", "csv", "-o", there.to_str().unwrap()];
    let ended = exported.export(&options).expect_code(0);
    let file = there.join("steps.csv");
    assert_eq!(ended.stdout.trim_end(), file.to_str().unwrap());
    let printed = exported.export(&["--format", "csv"]).expect_code(0).stdout;
    assert_eq!(fs_err::read_to_string(file).unwrap(), printed);
    // Nothing that was in the making is left.
    assert_eq!(entries(&there).len(), 1);
}

#[test]
fn a_device_stays_what_it_is() {
    let exported = Exported::new();
    let options = ["--format", "parquet", "-o", "/dev/full"];
    exported.export(&options).expect_code(1).expect_in_stderr(&["No space left on device"]);
    assert!(!fs_err::metadata("/dev/full").unwrap().is_file());
}
