//! Titles of own CPU that changed in several steps.

use super::*;

fn title_of_costs(costs: &[ChangedCost]) -> String {
    let cases: Vec<CaseFacts> = costs.iter().map(|cost| cost.case.clone()).collect();
    let hidden = HiddenCost { costs: costs.to_vec(), is_noisy: true, ..HiddenCost::default() };
    Wording::of(&finding(Statement::HiddenCost(hidden), &cases)).title
}

/// Returns a changed cost. The place begins with its step.
fn cost(place: &str, operation: &str, ratio: f64) -> ChangedCost {
    ChangedCost {
        ratio,
        interval: None,
        repeat_count: 5,
        case: CaseFacts {
            place: place.to_owned(),
            operation: operation.to_owned(),
            ..slower(place.split(' ').next().unwrap())
        },
    }
}

/// The largest change was given for all loads.
#[test]
fn a_title_about_several_loads_of_a_step_names_each_change() {
    let costs =
        [cost("q100 at 2 clients", "query", 1.16), cost("q100 at 8 clients", "query", 1.05)];
    assert_eq!(
        title_of_costs(&costs),
        "b.c: up to 16% more own CPU per query in q100 (q100 at 2 clients 16%, q100 at 8 clients 5.0%), throughput too \
         noisy to say"
    );
}

/// A title spoke of scans where three of four steps were puts, and gave the largest change for all.
#[test]
fn a_title_about_several_steps_names_each_change_and_only_a_shared_operation() {
    let costs = [
        cost("fwdrange", "scan", 1.16),
        cost("fillseq", "put", 1.12),
        cost("overwrite", "put", 1.07),
    ];
    assert_eq!(
        title_of_costs(&costs),
        "b.c: up to 16% more own CPU per operation in 3 steps (fwdrange 16%, fillseq 12%, overwrite 7.0%), \
         throughput too noisy to say"
    );
    assert_eq!(
        title_of_costs(&costs[1..]),
        "b.c: up to 12% more own CPU per put in 2 steps (fillseq 12%, overwrite 7.0%), throughput too noisy to say"
    );
    assert_eq!(
        title_of_costs(&costs[..1]),
        "b.c: 16% more own CPU per scan in fwdrange, throughput too noisy to say"
    );
}

#[test]
fn unexplained_changes_of_several_operations_have_the_largest_change_of_own_cpu() {
    let case = |step: &str, operation: &str, ratio| CaseFacts {
        own_cpu_ratio: Some(ratio),
        operation: operation.to_owned(),
        ..slower(step)
    };
    let cases = [case("fwdrange", "scan", 1.2), case("fillseq", "put", 1.5)];
    let unexplained = change(Cause::Unexplained(WhyUnexplained::NoLargePart), &cases, Vec::new());
    assert_eq!(
        Wording::of(&unexplained).title,
        "b.c: up to 1.20x slower in fwdrange and fillseq: up to 50% more own CPU per operation, and time without a known \
         cause"
    );
}
