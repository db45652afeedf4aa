//! The work done for every server between the steps of a run.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use engine::SettleLimits;

use crate::server::{GO_ON, TestServer, on_each_server};
use crate::tables::{fill, run, table};

on_each_server!(settling_ends_at_a_stop_and_at_its_limit);

fn settling_ends_at_a_stop_and_at_its_limit<S: TestServer>() {
    for shared in S::shared() {
        let settled = table("settle4", None);
        let mut session = fill(&shared.server, &settled, 10);
        let settle = |seconds, stop| {
            let time = Duration::from_secs(seconds);
            let limits = SettleLimits { at_least: time, at_most: time };
            let tables = std::slice::from_ref(&settled);
            shared.server.settle(tables, limits, stop).unwrap()
        };
        for settled in [settle(600, &AtomicBool::new(true)), settle(0, &GO_ON)] {
            assert_eq!(settled.actions, []);
            let said = settled.unfinished.join("; ");
            let is_said = said.contains("settle4") && said.ends_with("not begun");
            assert!(is_said, "{said}");
        }
        run(&mut session, &shared.server.dialect().drop_table(&settled));
    }
}
