//! The tables that `sysbench prepare` made in a server: measured as they are, by several cells, and
//! left there.

use engine::postgres::Postgres;
use engine::{Session, SqlEngine};

use crate::foreign_server::Foreign;
use crate::place::{Place, QUICK};
use crate::postgres_is_here_or_test_is_skipped;
use crate::show_json::Shown;

/// The statements for a table of 3000 rows, with the index on `k` by the name that sysbench gives
/// it.
const PREPARED: [&str; 3] = [
    "create table sbtest1 (id serial, k integer default 0 not null, c char(120) default '' not null, \
     pad char(60) default '' not null, primary key (id))",
    "insert into sbtest1 (k, c, pad) select 1 + n % 3000, n::text, n::text from generate_series(1, 3000) n",
    "create index k_1 on sbtest1 (k)",
];

fn plan(url: &str, steps: &str) -> String {
    format!(
        "name = \"test\"\nclients = [1, 2]\n[workload.sysbench]\nrows = 3000\nwarmup = \"0s\"\nread-time = \"{QUICK}\"\n\
         write-time = \"{QUICK}\"\nsteps = {steps}\n[build.theirs]\nurl = \"{url}\"\n"
    )
}

#[test]
fn each_cell_goes_on_from_the_tables_as_the_one_before_left_them() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }

    let server = Foreign::start();
    let url = server.url("right");
    let postgres = Postgres::attach(&url).unwrap();
    let mut creating = postgres.connect().unwrap();
    for sql in PREPARED {
        creating.query(sql).unwrap();
    }
    // Each reading of counters would wait for its end.
    drop(creating);

    let place = Place::new();
    let steps = r#"["points-covered-si", "oltp_insert", "oltp_point_select"]"#;
    let ended = place.run(&plan(&url, steps), &[]).expect_code(0);
    let run = ended.run_directory();
    let shown = Shown::read(&place, &run);
    shown.assert_all_valid();
    assert_eq!(shown.rows().len(), 6);
    let ended = ended.expect_in_stderr(&[
        "warning[sysbench::tables]: `sbtest1` has ",
        " rows at the start of the cell instead of the plan's `rows = 3000`",
    ]);

    assert_eq!(
        ended.stderr.matches("warning[sysbench::tables]").count(),
        1,
        "the first cell found what the plan says: {ended}"
    );

    // The index is counted under any name.
    let run = record::RunDir::open(run).unwrap();
    for cell in run.started_cells().unwrap() {
        for step in cell.read_steps().unwrap() {
            let checks = &step.step().checks;
            let of_index = checks.iter().find(|check| check.what == "rows in index k of sbtest1");
            let of_index = of_index.unwrap();
            assert!(of_index.left_out.is_none(), "{of_index:?}");
            assert_eq!(of_index.found, checks[0].found);
        }
    }

    let mut session = postgres.connect().unwrap();
    let rows = session.query_i64("select count(*) from sbtest1").unwrap();
    assert!(rows > Some(3000), "{rows:?}");

    // Without the index, reads by `k` would be of another thing than the plan says.
    session.query("drop index k_1").unwrap();
    let ended = place.run(&plan(&url, steps), &[]).expect_code(1);
    ended.expect_in_stderr(&[
        "`sbtest1` has no index on `k`",
        "`create index k_sbtest1 on sbtest1 (k)`",
    ]);

    let unindexed = plan(&url, r#"["oltp_point_select"]"#)
        .replace("rows = 3000", "rows = 3000\nsecondary-index = false");
    place.run(&unindexed, &[]).expect_code(0);
    drop(session);
    drop(server);
}
