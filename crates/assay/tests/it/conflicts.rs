//! Transactions that get in each other's way, on a real server: the cause of a difference that a
//! comparison names.

use serde_json::Value;

use crate::compare::measured;
use crate::place::{POSTGRES, Place};
use crate::postgres_is_here_or_test_is_skipped;

/// Four sessions sum up rows and change one of them. Where transactions are serializable, many of them
/// fail, whichever session comes first. They overlap even where they rarely get a processor, since each
/// sleeps before its change.
const PLAN: &str = "
    name = 'test'
    clients = [4]
    repeats = 4
    turns = '20ms'
    disk-floor = false
    base = 'pg.base'

    [workload.transactions]
    time = '1s'
    warmup = '100ms'
    attempts = 1000
    steps = ['load', 'change']
    script = '''
    table account (id int = row, balance bigint = 0) key (id) rows 100;
    transaction change {
        let first = uniform(1, 80);
        let changed = uniform(1, 100);
        let sum = select sum(balance) from account where id between {first} and {first + 20};
        let balance = select balance from account where id = {changed};
        select pg_sleep(0.002);
        update account set balance = balance + 1 where id = {changed};
    }
    '''
";

#[test]
fn retries_are_named_as_the_cause_of_what_they_cost() {
    if !postgres_is_here_or_test_is_skipped() {
        return;
    }
    let place = Place::new();
    let plan = format!(
        "{PLAN}{POSTGRES}[config.postgres.serializable]\nextends = \"base\"\n\
         set = {{ default_transaction_isolation = \"serializable\" }}\n"
    );
    let run = measured(&place, &plan);

    let ended = place.assay(&["compare", &run, "--format", "json"]).expect_code(0);
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    let findings = json["findings"].as_array().unwrap();
    let finding = findings.iter().find(|finding| finding["step"] == "change");
    let finding = finding.unwrap_or_else(|| panic!("{findings:#?}"));

    let [title, text] = ["title", "text"].map(|key| finding[key].as_str().unwrap());
    let evidence = finding["evidence"].as_array().unwrap();
    let retries = evidence.iter().find(|figure| figure["name"] == "retries");
    let retries = retries.unwrap_or_else(|| panic!("{finding:#}"));

    // Beside other tests, throughput may be too noisy: the same cause is named for own CPU then. Or the
    // time of a transaction shows nothing, and the retries stand below the title.
    let told = if text.contains("so no cause is named") {
        text
    } else {
        assert_eq!(retries["is_cause"], true, "{finding:#}");
        title
    };
    assert!(told.contains(" retries per transaction instead of none"), "{finding:#}");
}
