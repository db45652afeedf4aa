//! Tests that need the machine for themselves. `cargo xtask test` runs them after all others;
//! wherever else they are run, they wait until no other test is at work.

use crate::place::Place;
use crate::ranks::{a_stall_shows_on_all_ranks, mpi_is_here_or_test_is_skipped};
use crate::replication::postgres_lag_agrees_with_the_log;
use crate::replication_mysql::mysql_lag_agrees_with_the_log;
use crate::scale::memory_does_not_grow;
use crate::stall::a_stall_shows;
use crate::turns_host::{self, columns_agree_with_those_of_a_run_without_turns};
use crate::{mysql_or_test_is_skipped, postgres_is_here_or_test_is_skipped};

#[test]
fn a_stall_of_the_server_shows_in_the_response_time_of_all_that_it_delayed() {
    if postgres_is_here_or_test_is_skipped() {
        a_stall_shows(&Place::alone());
    }
}

#[test]
fn a_stall_of_the_server_delays_the_operations_of_all_load_ranks() {
    if mpi_is_here_or_test_is_skipped() {
        a_stall_shows_on_all_ranks(&Place::alone());
    }
}

#[test]
fn memory_does_not_grow_with_the_length_of_a_step() {
    memory_does_not_grow(&Place::alone());
}

#[test]
fn a_replica_with_too_little_cpu_falls_behind_as_fast_as_its_log_and_catches_up() {
    if postgres_is_here_or_test_is_skipped() {
        postgres_lag_agrees_with_the_log(&Place::alone());
    }
}

#[test]
#[ignore = "the lag is measured as that of PostgreSQL's replicas"]
fn a_replica_of_mysql_falls_behind_as_fast_as_its_log_and_catches_up() {
    if let Some(build) = mysql_or_test_is_skipped("innodb") {
        mysql_lag_agrees_with_the_log(&Place::alone(), &build);
    }
}

#[test]
fn the_host_s_columns_of_sqlite_in_turns_agree_with_those_without() {
    let engine = turns_host::sqlite();
    columns_agree_with_those_of_a_run_without_turns(&Place::alone_on_disk(), &engine);
}

#[test]
#[ignore = "the columns are those of the host, beside MySQL as beside any server"]
fn the_host_s_columns_of_postgres_in_turns_agree_with_those_without() {
    if postgres_is_here_or_test_is_skipped() {
        let engine = turns_host::postgres();
        columns_agree_with_those_of_a_run_without_turns(&Place::alone_on_disk(), &engine);
    }
}

#[test]
fn the_host_s_columns_of_mysql_in_turns_agree_with_those_without() {
    if let Some(build) = mysql_or_test_is_skipped("innodb") {
        let engine = turns_host::mysql(&build);
        columns_agree_with_those_of_a_run_without_turns(&Place::alone_on_disk(), &engine);
    }
}
