use words::{CellKind, Random};

use super::*;

/// Compares with the target `old`, at an error rate of 5%.
fn compared_profiles(figures: &Figures) -> Vec<ComparedProfile> {
    compare_profiles(figures, &RowIndex::new(figures), "old", 0.05)
}

/// Returns the row of a step whose processes used so much CPU per operation.
fn row(target: &str, repeat: u32, kind: CellKind, cpu_us: f64) -> Row {
    let cell = CellKey { kind, ..CellKey::new(target, None, 1, repeat) };
    Row {
        cell,
        step: "l.i1".into(),
        valid: true,
        reported: true,
        metrics: [("server_cpu_us_per_op", Some(cpu_us))].into(),
        ..Row::default()
    }
}

/// Costs of the functions of a target, in microseconds per operation.
type Costs = [(&'static [&'static str], f64)];

const BASE: &Costs = &[
    (&["db", "main", "insert", "copy"], 20.0),
    (&["db", "main", "insert", "lock"], 10.0),
    (&["db", "main", "plan", "estimate"], 30.0),
    (&["db", "main", "plan", "estimate", "range"], 2.0),
    (&["db", "main"], 38.0),
];
/// `range` became slower by 18 us.
const SLOWER: &Costs = &[
    (&["db", "main", "insert", "copy"], 20.0),
    (&["db", "main", "insert", "lock"], 10.0),
    (&["db", "main", "plan", "estimate"], 30.0),
    (&["db", "main", "plan", "estimate", "range"], 20.0),
    (&["db", "main"], 38.0),
];

/// Adds a target with five measured repeats, and profiles of so many samples.
fn add(figures: &mut Figures, target: &str, costs: &Costs, repeats: u32, seed: u64) {
    let mut random = Random::new(seed);
    let total: f64 = costs.iter().map(|(_, us)| us).sum();
    for repeat in 1..=5 {
        let noise = 0.99 + 0.02 * random.fraction();
        figures.rows.push(row(target, repeat, CellKind::Measured, total * noise));
    }
    for repeat in 1..=repeats {
        let mut stacks = Stacks::default();
        for _ in 0..4000 {
            let mut at = random.fraction() * total;
            let mut sampled = costs.iter();
            let stack = sampled.find(|(_, us)| {
                at -= us;
                at < 0.0
            });
            let (stack, _) = stack.unwrap_or(&costs[0]);
            stacks.add(stack.iter().copied(), 1);
        }
        figures.profiled.push(ProfiledStep {
            row: row(target, repeat, CellKind::Profiled, total * 1.1),
            profile: StepProfile { samples: 4000, ..StepProfile::default() },
            stacks,
        });
    }
}

#[test]
fn a_function_that_became_slower_heads_the_difference_and_its_cost_is_right() {
    for seed in 0..20 {
        let mut figures = Figures::default();
        add(&mut figures, "old", BASE, 1, 2 * seed);
        add(&mut figures, "new", SLOWER, 1, 2 * seed + 1);
        let compared = compared_profiles(&figures);
        let [compared] = &compared[..] else {
            panic!("{compared:?}");
        };
        let first = &compared.functions[0];
        assert_eq!(first.name, "range");
        assert!(first.own.is_shown && first.inclusive.is_shown);
        let error = (first.own.difference_us - 18.0).abs();
        assert!(error <= first.own.margin_us, "{first:?}");
        assert!(first.own.margin_us < 4.0, "{first:?}");
        // All of the program is below it.
        assert!(compared.functions.iter().all(|it| it.name != "main"));
        let named = compared.named.as_ref().unwrap();
        assert_eq!((named.name.as_str(), named.caller.as_deref()), ("range", Some("estimate")));
    }
}

#[test]
fn equal_targets_show_a_function_in_at_most_the_error_rate() {
    let mut shown = 0;
    for seed in 0..200 {
        let mut figures = Figures::default();
        add(&mut figures, "old", BASE, 1 + (seed % 2) as u32, 1000 + 2 * seed);
        add(&mut figures, "new", BASE, 1 + (seed % 2) as u32, 1001 + 2 * seed);
        let compared = compared_profiles(&figures).remove(0);
        shown += u32::from(compared.shown_count > 0);
    }
    // 10 are expected at most; more than 18 happen in one of 200 cases.
    assert!(shown <= 18, "{shown} of 200");
}

#[test]
fn one_measured_repeat_shows_no_change() {
    let mut figures = Figures::default();
    add(&mut figures, "old", BASE, 1, 1);
    add(&mut figures, "new", SLOWER, 1, 2);
    figures.rows.retain(|row| row.cell.repeat == 1);
    let compared = compared_profiles(&figures).remove(0);
    assert_eq!((compared.shown_count, compared.named), (0, None));
}

#[test]
fn a_function_that_was_renamed_is_not_the_cause_of_a_change() {
    const RENAMED: &Costs = &[
        (&["db", "main", "insert", "copy"], 20.0),
        (&["db", "main", "insert", "lock"], 10.0),
        (&["db", "main", "plan", "guess"], 30.0),
        (&["db", "main", "plan", "guess", "range"], 20.0),
        (&["db", "main"], 38.0),
    ];
    let mut figures = Figures::default();
    add(&mut figures, "old", BASE, 1, 1);
    add(&mut figures, "new", RENAMED, 1, 2);
    let compared = compared_profiles(&figures).remove(0);
    // `range` is below other functions now.
    assert_eq!(compared.named.unwrap().caller.as_deref(), Some("plan"));
    let gone = |name: &str| compared.functions.iter().any(|it| it.name == name);
    assert!(gone("estimate") && gone("guess"));
}

#[test]
fn a_function_that_only_one_target_has_counts_for_its_caller() {
    const OLD: &Costs = &[(&["db", "main", "plan"], 40.0), (&["db", "main"], 40.0)];
    const NEW: &Costs = &[
        (&["db", "main", "plan"], 40.0),
        (&["db", "main", "plan", "range"], 18.0),
        (&["db", "main"], 40.0),
    ];
    let mut figures = Figures::default();
    add(&mut figures, "old", OLD, 1, 1);
    add(&mut figures, "new", NEW, 1, 2);
    let compared = compared_profiles(&figures).remove(0);
    assert_eq!(compared.named.unwrap().name, "plan");
    assert_eq!(compared.functions[0].name, "range");
}

#[test]
fn a_change_that_is_mostly_offset_elsewhere_is_not_named() {
    const LESS: &Costs = &[
        (&["db", "main", "insert", "copy"], 20.0),
        (&["db", "main", "insert", "lock"], 10.0),
        (&["db", "main", "plan", "estimate"], 12.0),
        (&["db", "main", "plan", "estimate", "range"], 2.0),
        (&["db", "main"], 38.0),
        (&["db", "unwound"], 14.0),
    ];
    let mut figures = Figures::default();
    add(&mut figures, "old", BASE, 1, 1);
    add(&mut figures, "new", LESS, 1, 2);
    let compared = compared_profiles(&figures).remove(0);
    let mut functions = compared.functions.iter();
    assert!(functions.any(|it| it.name == "estimate" && it.own.is_shown));
    assert_eq!(compared.named, None);
}

#[test]
fn a_target_without_a_profile_is_not_compared() {
    let mut figures = Figures::default();
    add(&mut figures, "old", BASE, 1, 1);
    add(&mut figures, "new", SLOWER, 0, 2);
    assert_eq!(compared_profiles(&figures), []);
}
