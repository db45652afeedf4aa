//! Many runs in one place, read with one glob by the queries of `docs/export.md`.

use super::*;

const DOCUMENT: &str = include_str!("../../../../../docs/export.md");

/// Returns the queries for a tool: blocks of SQL that begin with its name.
fn queries(tool: &str) -> Vec<&'static str> {
    let blocks = DOCUMENT.split("```sql\n").skip(1);
    let blocks = blocks.map(|block| block.split("```").next().unwrap());
    let begin = format!("-- {tool}\n");
    blocks.filter(|block| block.starts_with(&begin)).collect()
}

/// The rows of a query, by DuckDB.
const DUCKDB: &str = "
import duckdb, json, os, sys
os.chdir(sys.argv[1])
print(json.dumps(duckdb.sql(sys.argv[2]).fetchall(), default=str))
";

/// The same, by ClickHouse.
const CLICKHOUSE: &str = "
import chdb, json, os, sys
os.chdir(sys.argv[1])
print(json.dumps(json.loads(str(chdb.query(sys.argv[2], 'JSONCompact')))['data']))
";

/// Rows, whose numbers are numbers however a tool writes them.
fn rows(found: &Value) -> Vec<Vec<Value>> {
    let number = |value: &Value| match value.as_str().map(str::parse::<f64>) {
        Some(Ok(number)) => Value::from(number),
        _ => value.clone(),
    };
    let rows = found.as_array().unwrap().iter();
    rows.map(|row| row.as_array().unwrap().iter().map(number).collect()).collect()
}

/// Exports runs to where they are kept.
fn export(place: &Place, runs: &[PathBuf]) -> Ended {
    let mut command = vec!["export"];
    command.extend(runs.iter().map(|run| run.to_str().unwrap()));
    command.extend(["--format", "parquet", "--partition", "lake"]);
    place.assay(&command)
}

/// Returns a place with the export of some runs.
fn lake() -> Place {
    let place = Place::new();
    let results = place.join("results");
    let runs = [0, 1, 12].map(|day| recorded::write(&results, 5, day));
    // What is there already is replaced.
    for runs in [&runs[..], &runs[1..2]] {
        let ended = export(&place, runs).expect_code(0);
        assert_eq!(ended.stdout, "lake\n");
    }
    place
}

#[test]
fn each_run_is_a_file_of_its_tables_engine_and_day() {
    let place = lake();
    for table in ["steps", "metrics", "verdicts"] {
        let days = place.join(&format!("lake/table={table}/engine=postgres"));
        let found = entries(&days);
        let names = found.iter().map(|day| day.file_name().unwrap().to_str());
        let names: Vec<_> = names.map(Option::unwrap).collect();
        assert_eq!(names, ["date=2026-11-21", "date=2026-11-22", "date=2026-12-03"]);
        for (directory, day) in found.iter().zip([0, 1, 12]) {
            let name = format!("{}.parquet", recorded::id(day));
            assert_eq!(entries(directory), [directory.join(name)]);
        }
    }

    assert_eq!(entries(&place.join("lake")).len(), 3);
}

#[test]
fn a_run_that_can_not_be_read_is_left_out_and_named() {
    let place = Place::new();
    let results = place.join("results");
    let runs = [0, 1, 2].map(|day| recorded::write(&results, REPEATS, day));
    let one = export(&place, &[&runs[..], &runs[..1]].concat()).expect_code(2);
    one.expect_in_stderr(&["are the same run, `", "give each run once"]);
    assert!(!place.join("lake").exists());

    fs_err::write(runs[1].join("run.json"), "{").unwrap();
    let nowhere = results.join("nowhere");
    let unreadable = [&runs[1], &nowhere].map(|run| run.display().to_string());
    let [damaged, missing] = unreadable.map(|run| format!("run `{run}` is left out"));
    let all = [&runs[..], &[nowhere]].concat();
    let ended = export(&place, &all).expect_code(1);
    let ended = ended.expect_in_stderr(&[&damaged, "run.json` is damaged", &missing, "help: "]);
    assert_eq!(ended.stdout, "lake\n");
    let days = entries(&place.join("lake/table=verdicts/engine=postgres"));
    assert_eq!(days.len(), 2, "{days:?}");

    let ended = export(&place, &runs[1..2]).expect_code(1);
    assert_eq!(ended.expect_in_stderr(&[&damaged]).stdout, "");
}

/// Asks a tool, in a Python that a variable names, every documented query for it.
fn check_answers(name: &str, tool: (&str, &str), script: &str) {
    let Some(tool) = tool_or_test_is_skipped(tool.0, tool.1) else {
        return;
    };

    let place = lake();
    let ask = |query: &str| rows(&python(&tool, script, &[&place.join("."), Path::new(query)]));
    let answers: Vec<_> = queries(name).into_iter().map(ask).collect();
    let [by_day, slower, metrics] = answers.as_slice() else {
        panic!("{answers:?}");
    };

    // Three days, two targets; the medians of five repeats and of four: one is invalid.
    assert_eq!(by_day.len(), 6, "{by_day:?}");
    let days = ["2026-11-21", "2026-11-22", "2026-12-03"];
    for (two, day) in by_day.chunks(2).zip(days) {
        for (row, (target, median)) in two.iter().zip([(OTHER, 925.0), (BASE, 1030.0)]) {
            let told: [Value; 3] = [day.into(), "lab-1".into(), target.into()];
            assert_eq!(row[..3], told);
            let runs = 1.0;
            assert_eq!((row[3].as_f64(), row[4].as_f64()), (Some(median), Some(runs)));
        }
    }

    assert_eq!(slower.len(), 2 * 3, "{slower:?}");
    for row in slower {
        assert_eq!((&row[1], &row[2]), (&BASE.into(), &OTHER.into()));
    }

    let of = |metric: &str| metrics.iter().filter(|row| row[2] == metric).count();
    assert_eq!(of("throughput"), 4, "{metrics:?}");
    assert_eq!(of("query_response_us_p99"), 2, "{metrics:?}");
}

#[test]
fn duckdb_reads_all_runs_with_one_glob() {
    check_answers("DuckDB", ("duckdb", "ASSAY_TEST_DUCKDB"), DUCKDB);
}

#[test]
#[ignore = "ClickHouse is large, and reads the same files"]
fn clickhouse_reads_all_runs_with_one_glob() {
    check_answers("ClickHouse", ("chdb", "ASSAY_TEST_CHDB"), CLICKHOUSE);
}
