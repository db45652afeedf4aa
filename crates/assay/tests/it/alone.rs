//! Tests that need the machine for themselves. `cargo xtask test` runs them after all others; wherever else they are
//! run, they wait until no other test is at work.

use crate::place::{NULL, POSTGRES, Place, SQLITE};
use crate::postgres_is_here_or_test_is_skipped;
use crate::ranks::{a_stall_shows_on_all_ranks, mpi_is_here_or_test_is_skipped};
use crate::scale::run_64_clients;
use crate::stall::a_stall_shows;

#[test]
fn sixty_four_clients_on_postgres() {
    if postgres_is_here_or_test_is_skipped() {
        run_64_clients(&Place::alone(), "pg.base", POSTGRES);
    }
}

#[test]
#[ignore = "the clients are those of every engine"]
fn sixty_four_clients_on_the_null_engine() {
    run_64_clients(&Place::alone(), "null.default", NULL);
}

#[test]
#[ignore = "the clients are those of every engine"]
fn sixty_four_clients_on_sqlite() {
    run_64_clients(&Place::alone(), "lite.base", SQLITE);
}

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
