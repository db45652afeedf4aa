//! What is not explained, and causes that are told apart.

use record::Warning;

use super::*;
use crate::{Lsm, Moved, Quality, Shift, Stall};

const CACHED: &[(&str, f64)] = &[
    ("cpupq", 100.0),
    ("client_cpu_us_per_op", 20.0),
    ("server_cpu_us_per_op", 75.0),
    ("rpq", 0.0),
    ("rkbpq", 0.0),
    ("wKB/o", 0.1),
    ("cspq", 2.0),
];

fn cost<'a>(
    target: &'a str,
    step: &'a str,
    rate: f64,
    metrics: &'a [(&'static str, f64)],
) -> Cost<'a> {
    Cost {
        target,
        step,
        clients: 4,
        rate,
        metrics,
    }
}

#[test]
fn equal_targets_give_no_finding() {
    let costs = [
        cost("a.c", "q100", 30_000.0, CACHED),
        cost("b.c", "q100", 30_000.0, CACHED),
    ];
    assert_eq!(found(&single(&costs)), []);
    assert_eq!(found(&repeated(&costs)), []);
}

#[test]
fn noise_alone_gives_no_finding() {
    // Repeats that differ by up to 20 %, and means that don't.
    let rates = [
        [30_000.0, 27_000.0],
        [26_000.0, 31_000.0],
        [31_000.0, 29_500.0],
        [28_000.0, 30_500.0],
        [30_500.0, 28_000.0],
    ];
    let mut figures = Figures::default();
    for (repeat, rates) in (1..).zip(rates) {
        for (target, rate) in ["a.c", "b.c"].into_iter().zip(rates) {
            figures
                .rows
                .push(row(&cost(target, "q100", rate, CACHED), repeat));
        }
    }
    assert_eq!(found(&figures), []);
    // A single run that is 4 % slower is within what single runs differ by.
    let near = [
        cost("a.c", "q100", 30_000.0, CACHED),
        cost("b.c", "q100", 28_800.0, CACHED),
    ];
    assert_eq!(found(&single(&near)), []);
}

#[test]
fn an_invalid_row_explains_nothing() {
    let slow: &[(&str, f64)] = &[("cpupq", 200.0), ("rpq", 0.0), ("wKB/o", 0.1)];
    let costs = [
        cost("a.c", "q100", 30_000.0, CACHED),
        cost("b.c", "q100", 15_000.0, slow),
    ];
    let mut figures = single(&costs);
    assert_eq!(kinds(&found(&figures)), [FindingKind::Cpu]);
    figures.rows[1].valid = false;
    figures.rows[1].reasons = vec!["the data is not what was written".to_owned()];
    assert_eq!(found(&figures), []);
    figures.rows[1].valid = true;
    figures.rows[0].valid = false;
    assert_eq!(found(&figures), []);

    // Of five repeats the invalid one is in no figure.
    let mut figures = repeated(&costs);
    let last = figures.rows.len() - 1;
    figures.rows[last].valid = false;
    figures.rows[last].metrics.insert("cpupq", Some(1e9));
    let findings = found(&figures);
    assert_eq!(kinds(&findings), [FindingKind::Cpu]);
    says(&findings[0], &["2.00x as much CPU per query"]);
    says_not(&findings[0], &["1000000000", "e9"]);
}

#[test]
fn a_shown_change_has_its_interval_and_no_word_of_single_runs() {
    let dear: &[(&str, f64)] = &[
        ("cpupq", 120.0),
        ("client_cpu_us_per_op", 21.0),
        ("server_cpu_us_per_op", 94.0),
        ("rpq", 0.0),
        ("rkbpq", 0.0),
        ("wKB/o", 0.1),
        ("cspq", 2.0),
    ];
    let figures = repeated(&[
        cost("a.c", "q100", 30_000.0, CACHED),
        cost("b.c", "q100", 25_000.0, dear),
    ]);
    let findings = found(&figures);
    assert_eq!(kinds(&findings), [FindingKind::Cpu]);
    says(
        &findings[0],
        &[
            "b.c: 17% slower in q100: 20% more CPU per query",
            "over 5 repeats",
            "Of the difference +19 us is the server's and +1 us is the client's.",
            "A client's time per query: 133 -> 160 us, 1.20x; of the difference CPU is +19.9 us, waiting +6.64 us.",
        ],
    );
    says_not(&findings[0], &["single run"]);
}

#[test]
fn clients_that_wait_longer_are_not_called_cpu() {
    let figures = single(&[
        cost("a.c", "q100", 30_000.0, CACHED),
        cost("b.c", "q100", 10_000.0, CACHED),
    ]);
    let findings = found(&figures);
    assert_eq!(kinds(&findings), [FindingKind::Waiting]);
    says(
        &findings[0],
        &[
            "CPU, reads and writes per query are unchanged; what changed is the time that a client waits without CPU, \
             33.3 -> 300 us per query, 9.00x",
        ],
    );
}

#[test]
fn little_cpu_that_doubles_beside_a_slow_device_is_not_the_cause() {
    let of = |cpu: f64| [("cpupq", cpu), ("fsyncs_per_commit", 1.0)];
    let (base, other) = (of(20.0), of(40.0));
    let figures = single(&[
        cost("a.c", "insert", 500.0, &base),
        cost("b.c", "insert", 250.0, &other),
    ]);
    assert_eq!(kinds(&found(&figures)), [FindingKind::Waiting]);
}

#[test]
fn a_client_without_time_left_is_called_the_limit() {
    let client: &[(&str, f64)] = &[
        ("cpupq", 100.0),
        ("client_cpu_us_per_op", 60.0),
        ("server_cpu_us_per_op", 30.0),
    ];
    // 4 clients, 62500 per second: 64 us each, of which the client's own CPU is 60.
    let costs = [
        cost("a.c", "q100", 62_500.0, client),
        cost("b.c", "q100", 62_600.0, client),
    ];
    let findings = found(&repeated(&costs));
    assert_eq!(kinds(&findings), [FindingKind::ClientBound]);
    says(
        &findings[0],
        &[
            "The client is the limit in q100",
            "client threads are busy 94% of the time (60 -> 60 us of CPU per query, 1.00x)",
            "the client's limit, not the server's",
        ],
    );
    // An engine that works on these threads is no client.
    let embedded: Vec<(&str, f64)> = vec![("cpupq", 62.0), ("client_cpu_us_per_op", 60.0)];
    let costs = [
        cost("a.c", "q100", 62_500.0, &embedded),
        cost("b.c", "q100", 62_600.0, &embedded),
    ];
    assert_eq!(found(&repeated(&costs)), []);
}

#[test]
fn writes_that_amplify_explain_an_insert() {
    let of = |kb: f64, mb: f64, amplification: f64| {
        [
            ("cpupq", 10.0),
            ("rpq", 0.0),
            ("rkbpq", 0.0),
            ("wKB/o", kb),
            ("wmbps", mb),
            ("w_amp", amplification),
        ]
    };
    let (base, other) = (of(4.0, 390.0, 8.0), of(8.0, 400.0, 16.0));
    let figures = single(&[
        cost("a.c", "l.i1", 100_000.0, &base),
        cost("b.c", "l.i1", 51_000.0, &other),
    ]);
    let findings = found(&figures);
    assert_eq!(kinds(&findings), [FindingKind::Writes]);
    says(
        &findings[0],
        &[
            "writes 2.00x as much per row (4 -> 8 KB, 2.00x)",
            "Both write the same bytes per second (390 -> 400 MB/s, 1.03x)",
            "8 -> 16, 2.00x",
        ],
    );
}

#[test]
fn seconds_without_progress_and_a_changed_level_explain_a_mean() {
    let quality = |stalled: usize, median: f64| Quality {
        kind: "query".to_owned(),
        seconds: 100,
        stalled_seconds: Some(stalled),
        median,
        usual: median,
        ..Quality::default()
    };
    let costs = [
        cost("a.c", "q100", 30_000.0, CACHED),
        cost("b.c", "q100", 24_000.0, CACHED),
    ];
    let mut figures = single(&costs);
    figures.rows[0].quality = Some(quality(0, 30_000.0));
    let mut stalled = quality(20, 30_000.0);
    stalled.stalls = vec![Stall {
        from_second: 31,
        seconds: 20,
        beside: vec![Moved {
            name: "disk_write_bytes".to_owned(),
            unit: "bytes/s".to_owned(),
            during: 9e8,
            otherwise: 1e8,
            ..Moved::default()
        }],
        ..Stall::default()
    }];
    figures.rows[1].quality = Some(stalled);
    let findings = found(&figures);
    assert_eq!(kinds(&findings), [FindingKind::Stall]);
    says(
        &findings[0],
        &[
            "It stood still for 20 seconds of 100 against 0 seconds of 100 with a.c, which accounts for the whole change.",
            "The longest stall is 20 seconds from second 31 on; beside it: disk_write_bytes 900000000 (otherwise \
             100000000 bytes/s).",
        ],
    );

    let mut shifted = quality(0, 24_000.0);
    shifted.shift_count = 1;
    shifted.shifts = vec![Shift {
        second: 50,
        before: 30_100.0,
        after: 18_000.0,
        beside: Vec::new(),
    }];
    figures.rows[1].quality = Some(shifted);
    let findings = found(&figures);
    assert_eq!(kinds(&findings), [FindingKind::LevelShift]);
    says(
        &findings[0],
        &["Until second 50 b.c ran as a.c does (30100 against 30000 queries/s), then at 18000"],
    );
}

#[test]
fn stalls_without_reasons_are_told_without_reasons() {
    let costs = [
        cost("a.c", "overwrite", 100_000.0, &[("stall%", 0.0)]),
        cost("b.c", "overwrite", 70_000.0, &[("stall%", 30.0)]),
    ];
    let mut figures = single(&costs);
    for row in &mut figures.rows {
        row.lsm = Some(Lsm::default());
    }
    let findings = found(&figures);
    assert_eq!(kinds(&findings), [FindingKind::WriteStalls]);
    says(&findings[0], &["held up 30% of the time against 0%"]);
    says_not(&findings[0], &["delays"]);
}

#[test]
fn cpu_that_grows_where_throughput_is_held_is_told_and_weighs_less() {
    let dear: &[(&str, f64)] = &[("cpupq", 150.0), ("rpq", 0.0), ("wKB/o", 0.1)];
    let costs = [
        cost("a.c", "q100", 5000.0, CACHED),
        cost("b.c", "q100", 5000.0, dear),
    ];
    let findings = found(&repeated(&costs));
    assert_eq!(kinds(&findings), [FindingKind::HiddenCost]);
    says(
        &findings[0],
        &["b.c: 50% more CPU per query at the same throughput in q100"],
    );
}

#[test]
fn many_targets_and_steps_with_one_cause_are_one_paragraph() {
    let dear: &[(&str, f64)] = &[
        ("cpupq", 150.0),
        ("rpq", 0.0),
        ("rkbpq", 0.0),
        ("wKB/o", 0.1),
    ];
    let names: Vec<String> = (0..28).map(|number| format!("t{number}.c")).collect();
    let steps: Vec<String> = (0..10).map(|number| format!("q{number}")).collect();
    let mut costs = Vec::new();
    for (number, name) in names.iter().enumerate() {
        for step in &steps {
            // Every third is dear.
            let (rate, metrics) = match number % 3 {
                1 => (20_000.0, dear),
                _ => (30_000.0, CACHED),
            };
            costs.push(cost(name, step, rate, metrics));
        }
    }
    let findings = found(&single(&costs));
    assert_eq!(kinds(&findings), [FindingKind::Cpu]);
    assert_eq!(findings[0].targets.len(), 9);
    assert_eq!(findings[0].steps.len(), 10);
    says(
        &findings[0],
        &[
            "9 targets: up to 33% slower in 90 of 90 comparisons: more CPU per operation (single runs)",
            "The same: t4.c q0 (0.67x; CPU 100 -> 150 us, 1.50x), t7.c q0",
            "85 more.",
        ][..1],
    );
    assert!(findings[0].text.len() < 1500, "{}", findings[0].text);
}

#[test]
fn the_counter_that_moved_most_is_named_and_zero_does_not_make_it() {
    let dear: &[(&str, f64)] = &[("cpupq", 150.0), ("rpq", 0.0), ("wKB/o", 0.1)];
    let mut figures = single(&[
        cost("a.c", "q100", 30_000.0, CACHED),
        cost("b.c", "q100", 20_000.0, dear),
    ]);
    // Per query: 1 -> 6 rows read, 0 -> one deadlock in all, and a counter that nobody should look at.
    for (row, read, deadlocks) in [(0, 3e6, 0.0), (1, 12e6, 1.0)] {
        figures.rows[row].counters = BTreeMap::from([
            ("row_read_count".to_owned(), read),
            ("deadlock_count".to_owned(), deadlocks),
            ("table_bytes.pi1".to_owned(), read * read),
        ]);
    }
    let findings = found(&figures);
    says(
        &findings[0],
        &["Of the engine's counters row_read_count moved with it the most: 1 -> 6 /query, 6.00x."],
    );
    assert!(
        findings[0]
            .evidence
            .iter()
            .any(|evidence| evidence.name == "row_read_count")
    );
    figures.rows[1].engine = "postgres".to_owned();
    says_not(&found(&figures)[0], &["row_read_count"]);
}

#[test]
fn warnings_of_a_busy_client_are_told_once() {
    let dear: &[(&str, f64)] = &[
        ("cpupq", 150.0),
        ("client_cpu_us_per_op", 20.0),
        ("server_cpu_us_per_op", 120.0),
    ];
    let mut figures = single(&[
        cost("a.c", "q100", 30_000.0, CACHED),
        cost("b.c", "q100", 20_000.0, dear),
    ]);
    figures.rows[1].warnings = ["client::busy", "settle::not-over"]
        .map(|code| Warning {
            code: code.to_owned(),
            text: String::new(),
        })
        .to_vec();
    let findings = found(&figures);
    says(
        &findings[0],
        &[
            "at least one client thread is busy nearly all the time",
            "there are warnings: settle::not-over (b.c)",
        ],
    );
    says_not(&findings[0], &["client::busy"]);
}

#[test]
fn cpu_of_others_on_the_host_is_not_the_targets() {
    let busy: &[(&str, f64)] = &[
        ("cpupq", 150.0),
        ("client_cpu_us_per_op", 20.0),
        ("server_cpu_us_per_op", 77.0),
        ("rpq", 0.0),
        ("wKB/o", 0.1),
    ];
    let findings = found(&single(&[
        cost("a.c", "q100", 30_000.0, CACHED),
        cost("b.c", "q100", 20_000.0, busy),
    ]));
    assert_eq!(kinds(&findings), [FindingKind::HostBusy]);
    says(
        &findings[0],
        &[
            "b.c: 33% slower in q100: others on the host used more CPU",
            "Neither engine nor clients, but others or the kernel for them, used 3.75 -> 26.5% of the processors, 7.07x, \
             which accounts for about 67% of the change.",
            "Engine and clients together: 95 -> 97 us per query, 1.02x.",
        ],
    );
    says_not(&findings[0], &["this is CPU and not IO"]);
}

#[test]
fn what_the_host_does_all_the_time_does_not_make_operations_slower() {
    // Beside both there is a processor's worth of other work: for an operation that takes longer it is more.
    let with = |rate: f64, own: f64| {
        [
            ("cpupq", own + 1e6 / rate),
            ("client_cpu_us_per_op", 20.0),
            ("server_cpu_us_per_op", own - 20.0),
            ("rpq", 0.0),
            ("wKB/o", 0.1),
        ]
    };
    let waits = |own: f64| {
        let (base, other) = (with(20_000.0, 40.0), with(10_000.0, own));
        let costs = [
            cost("a.c", "q100", 20_000.0, &base),
            cost("b.c", "q100", 10_000.0, &other),
        ];
        found(&single(&costs))
    };
    assert_eq!(kinds(&waits(40.0)), [FindingKind::Waiting]);
    // And it hides nothing of what the engine uses.
    let findings = waits(80.0);
    assert_eq!(kinds(&findings), [FindingKind::Cpu]);
    says(
        &findings[0],
        &[
            "in q100: 2.00x as much CPU per query",
            "Engine and clients use 2.00x as much CPU per query (40 -> 80 us, 2.00x), which accounts for the whole change",
            "Of the difference +40 us is the server's.",
        ],
    );
    says_not(&findings[0], &["CPU of others"]);
}

#[test]
fn reads_that_take_longer_than_their_operation_are_not_what_it_waits_for() {
    // One client: 2250 us and 73 us for an operation, and devices at work for seven times as long; the host uses more
    // CPU than there is time, so that nobody knows what was waited.
    let (base, other) = (
        [
            ("cpupq", 3600.0),
            ("rpq", 160.0),
            ("rkbpq", 0.0),
            ("wKB/o", 36.0),
        ],
        [
            ("cpupq", 80.0),
            ("rpq", 0.5),
            ("rkbpq", 0.0),
            ("wKB/o", 0.7),
        ],
    );
    let one = |target, rate, metrics| Cost {
        clients: 1,
        ..cost(target, "update", rate, metrics)
    };
    let findings = found(&single(&[
        one("a.c", 444.0, &base),
        one("b.c", 13_690.0, &other),
    ]));
    assert_eq!(kinds(&findings), [FindingKind::Cpu]);
    says(&findings[0], &["Beside it: ", "reads 160 -> 0.5 /query"]);

    // Of reads that grew by eight times what an operation did most were done beside the clients.
    let of = |reads: f64| {
        [
            ("cpupq", 1300.0),
            ("rpq", reads),
            ("rkbpq", 0.0),
            ("wKB/o", 1.0),
        ]
    };
    let (base, other) = (of(0.7), of(4.9));
    let findings = found(&single(&[
        one("a.c", 1056.0, &base),
        one("b.c", 1001.0, &other),
    ]));
    assert_eq!(kinds(&findings), [FindingKind::Unexplained]);

    // What takes the whole of an operation is named, and the ratio is of the time.
    let (base, other) = (of(0.5), of(20.0));
    let findings = found(&single(&[
        one("a.c", 1000.0, &base),
        one("b.c", 500.0, &other),
    ]));
    assert_eq!(kinds(&findings), [FindingKind::Reads]);
    says(
        &findings[0],
        &["at the 100 us of a read that is 50 -> 2000 us of a client's time, 40.0x"],
    );
}

#[test]
fn reads_that_nobody_waits_for_are_not_the_cause() {
    // 30 us more, all of it CPU, beside 60 us of reads that others did.
    let (base, other) = (
        [
            ("cpupq", 90.0),
            ("rpq", 0.0),
            ("rkbpq", 0.0),
            ("wKB/o", 0.0),
        ],
        [
            ("cpupq", 120.0),
            ("rpq", 0.6),
            ("rkbpq", 0.0),
            ("wKB/o", 0.0),
        ],
    );
    let findings = found(&single(&[
        cost("a.c", "q100", 40_000.0, &base),
        cost("b.c", "q100", 30_769.0, &other),
    ]));
    assert_eq!(kinds(&findings), [FindingKind::Cpu]);
}

#[test]
fn of_an_engine_without_a_server_the_background_is_told_apart() {
    let of = |all: f64, client: f64, process: f64| {
        [
            ("cpupq", all),
            ("client_cpu_us_per_op", client),
            ("u_cpu", process),
            ("s_cpu", 0.0),
        ]
    };
    // Of 100 s at 40000 and 20000 per second: 4 and 2 million operations, of 90 and 190 us in the process.
    let (base, other) = (of(95.0, 70.0, 360.0), of(200.0, 80.0, 380.0));
    let findings = found(&single(&[
        cost("a.c", "q100", 40_000.0, &base),
        cost("b.c", "q100", 20_000.0, &other),
    ]));
    assert_eq!(kinds(&findings), [FindingKind::Cpu]);
    says(
        &findings[0],
        &[
            "Of the difference +10 us is on the clients' threads, where the engine works, +90 us is of its threads in the \
             background and +5 us is of the rest of the host.",
        ],
    );
}

#[test]
fn processors_that_a_hypervisor_took_away_are_not_the_targets() {
    let mut figures = single(&[
        cost("a.c", "q100", 30_000.0, &[("rpq", 0.0), ("wKB/o", 0.1)]),
        cost("b.c", "q100", 27_000.0, &[("rpq", 0.0), ("wKB/o", 0.1)]),
    ]);
    for (row, stolen) in [(0, 0.0), (1, 1e9)] {
        figures.rows[row].host_sums = BTreeMap::from([
            ("cpu_user_ns".to_owned(), 100.0 * (10e9 - stolen)),
            ("cpu_steal_ns".to_owned(), 100.0 * stolen),
        ]);
    }
    let findings = found(&figures);
    assert_eq!(kinds(&findings), [FindingKind::HostBusy]);
    says(
        &findings[0],
        &[
            "b.c: 10% slower in q100: the hypervisor took processors away",
            "for 0 -> 10% of the time, which accounts for the whole change.",
        ],
    );
    let against = findings[0].against.join("\n");
    assert!(against.contains("no change of the target"), "{against}");
    assert!(!against.contains("hypervisor"), "{against}");
}

#[test]
fn figures_that_make_no_sense_make_no_nonsense() {
    const NAMES: [&str; 14] = [
        "cpupq",
        "client_cpu_us_per_op",
        "server_cpu_us_per_op",
        "rpq",
        "rkbpq",
        "wKB/o",
        "wmbps",
        "wpi",
        "cspq",
        "stall%",
        "fsyncs_per_commit",
        "w_amp",
        "u_cpu",
        "s_cpu",
    ];
    const ODD: [f64; 5] = [0.0, 1e-12, 1.0, 100.0, 1e12];
    let mut told = 0;
    for name in NAMES {
        for base in ODD {
            for value in ODD {
                let with = |odd: f64| -> Vec<(&'static str, f64)> {
                    NAMES
                        .iter()
                        .map(|other| (*other, if *other == name { odd } else { 10.0 }))
                        .collect()
                };
                let (of_base, of_target) = (with(base), with(value));
                let findings = found(&single(&[
                    cost("a.c", "l.i1", 30_000.0, &of_base),
                    cost("b.c", "l.i1", 10_000.0, &of_target),
                ]));
                for finding in &findings {
                    assert!(finding.weight.is_finite(), "{finding:?}");
                    says_not(finding, &["NaN", "inf", "-0 ", "()"]);
                }
                told += findings.len();
            }
        }
    }
    // The throughput is a third each time: that is always told.
    assert!(told >= NAMES.len() * ODD.len() * ODD.len());
}

#[test]
fn of_repeats_the_worst_is_told_as_that() {
    let mut figures = repeated(&[cost("a.c", "l.i1", 30_000.0, CACHED)]);
    for (row, slowest) in figures
        .rows
        .iter_mut()
        .zip([110.0, 120.0, 180.0, 115.0, 130.0])
    {
        row.fairness = Some(crate::Fairness {
            fastest_seconds: 100.0,
            slowest_seconds: slowest,
            abs_seconds: slowest - 100.0,
            pct: slowest - 100.0,
            ..crate::Fairness::default()
        });
    }
    let findings = found(&figures);
    assert_eq!(kinds(&findings), [FindingKind::Unfair]);
    says(
        &findings[0],
        &["after 100 s and the slowest after 180 s, 80.0% later, the worst of 5 repeats."],
    );
}
