//! Tests of steps whose clients have a rate.

use super::*;

/// Returns the schedules of all connections of a step with this rate.
fn schedules(kind: KvStepKind, rate: Option<TestRate>) -> Vec<Schedule> {
    let mut bench = Bench::loaded();
    bench.rate = rate;
    let (_, tasks) = bench.tasks(kind);
    tasks.iter().map(|task| task.schedule).collect()
}

fn mixgraph() -> KvStepKind {
    let graph = KvGraph::of_model(KvGraphModel::AllRandom);
    KvStepKind::MixGraph { graph, time: Duration::ZERO }
}

#[test]
fn each_client_of_a_step_with_a_rate_has_an_open_schedule() {
    let of_clients = [0, 1, 2].map(|client| Schedule::rate(500.0, client, 3));
    for kind in [read(KvRead::Get), read(KvRead::Forward), mixed("ycsb_a"), OVERWRITE] {
        let rate = Some(TestRate::PerClient(500.0));
        assert_eq!(schedules(kind, rate), of_clients, "{kind:?}");
        assert_eq!(schedules(kind, None), [Schedule::Closed; 3], "{kind:?}");
    }
}

#[test]
fn a_writer_beside_readers_keeps_its_own_rate() {
    let kind = read_while(KvWrite::Put, KvRead::Get);
    let without = schedules(kind, None);
    let with = schedules(kind, Some(TestRate::PerClient(500.0)));
    assert_eq!(with[..3], [0, 1, 2].map(|client| Schedule::rate(500.0, client, 3)));
    assert_eq!(without[..3], [Schedule::Closed; 3]);
    assert_eq!(with[3], without[3]);
}

#[test]
fn a_share_of_a_highest_rate_that_is_not_known_is_no_rate() {
    let plan = planned_kv("rate = \"50% of max\"\nmax = { 3 = 900 }\n");
    let step = plan.steps.iter().find(|step| step.name == "readrandom").unwrap();
    let kind = step.kind;
    let half = [0, 1, 2].map(|client| Schedule::rate(150.0, client, 3));
    assert_eq!(schedules(kind, step.rate.clone()), half);

    let plan = planned_kv("rate = \"50% of max\"\n");
    let step = plan.steps.iter().find(|step| step.name == "readrandom").unwrap();
    assert!(step.rate.is_some());
    assert_eq!(schedules(kind, step.rate.clone()), [Schedule::Closed; 3]);
}

/// Checks the shares of the kinds of operations of a step.
fn assert_shares(kind: KvStepKind, expected: &[f64]) {
    let plan =
        planned_kv("steps = [\"fillseq\", \"mixgraph\"]\nstep.mixgraph.model = \"all_random\"");
    let mut bench = Bench::new(&plan, 1);
    bench.step(KvStepKind::FillSeq, u64::MAX);

    let (_, tasks) = bench.tasks(kind);
    let shares = tasks[0].program.shares();
    assert_eq!(shares.len(), tasks[0].program.kinds().len(), "{kind:?}");
    assert_eq!(shares.len(), expected.len(), "{kind:?}");
    let are_close = shares.iter().zip(expected).all(|(one, other)| (one - other).abs() < 1e-9);
    assert!(are_close, "{kind:?}: {shares:?}");
}

#[test]
fn the_kinds_of_a_mix_divide_the_rate_of_their_clients() {
    assert_shares(mixed("ycsb_a"), &[0.5, 0.5]);
    assert_shares(mixed("ycsb_c"), &[1.0]);
    assert_shares(mixed("ycsb_d"), &[0.95, 0.05]);
    assert_shares(mixgraph(), &[0.83, 0.14, 0.03]);
}
