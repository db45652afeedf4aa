//! "Configuration options that make writes faster or slower with MySQL and Postgres": throughput of
//! three tests on two servers, and what the text says of one configuration in percent of another.
//! All are rounded to the nearest percent.

use record::StepKind;

use super::{MeasuredStep, Published};

const STEPS: [&str; 3] = ["insert", "update-index", "update-nonindex"];

/// Queries per second of insert, update-index and update-noindex.
type WrittenLine = (&'static str, [u64; 3]);

const SMALL: [WrittenLine; 20] = [
    ("bl0_sync0_dw0", [20413, 5662, 19837]),
    ("bl0_sync0_dw1", [20458, 5881, 20271]),
    ("bl0_sync0_dwDO", [20252, 5790, 19742]),
    ("bl1_sync0_dw0", [11814, 4935, 11051]),
    ("bl1_sync0_dw1", [11614, 4910, 10992]),
    ("bl1_sync0_dwDO", [11649, 4896, 11062]),
    ("sync0_comp0_fpi0", [25590, 28835, 32951]),
    ("sync0_comp0_fpi1", [25471, 28840, 32837]),
    ("sync0_comp1_fpi0", [26452, 29196, 32702]),
    ("sync0_comp1_fpi1", [18537, 14276, 16033]),
    ("bl0_sync1_dw0", [139, 135, 142]),
    ("bl0_sync1_dw1", [140, 134, 142]),
    ("bl0_sync1_dwDO", [140, 134, 142]),
    ("bl1_sync1_dw0", [72, 72, 73]),
    ("bl1_sync1_dw1", [73, 71, 71]),
    ("bl1_sync1_dwDO", [73, 68, 70]),
    ("sync1_comp0_fpi0", [512, 513, 516]),
    ("sync1_comp0_fpi1", [505, 507, 517]),
    ("sync1_comp1_fpi0", [512, 514, 516]),
    ("sync1_comp1_fpi1", [438, 422, 387]),
];

const MEDIUM: [WrittenLine; 24] = [
    ("bl0_sync0_dw0", [117_078, 17620, 104_215]),
    ("bl0_sync0_dw1", [118_038, 19821, 103_625]),
    ("bl0_sync0_dwDO", [117_373, 19582, 103_625]),
    ("bl1_sync0_dw0", [52602, 15201, 44727]),
    ("bl1_sync0_dw1", [52193, 15736, 44372]),
    ("bl1_sync0_dwDO", [52456, 16293, 45195]),
    ("sync0_comp0_fpi0", [127_864, 138_330, 154_650]),
    ("sync0_comp0_fpi1", [123_512, 123_825, 148_386]),
    ("sync0_comp1_fpi0", [127_456, 139_634, 155_127]),
    ("sync0_comp1_fpi1", [119_504, 117_795, 136_421]),
    ("sync0_compLZ4_fpi0", [127_885, 139_301, 154_869]),
    ("sync0_compLZ4_fpi1", [125_192, 125_532, 149_092]),
    ("bl0_sync1_dw0", [20602, 6824, 15804]),
    ("bl0_sync1_dw1", [20350, 6640, 15095]),
    ("bl0_sync1_dwDO", [20677, 6836, 16134]),
    ("bl1_sync1_dw0", [6972, 3863, 6238]),
    ("bl1_sync1_dw1", [6963, 3829, 6183]),
    ("bl1_sync1_dwDO", [6922, 3904, 6266]),
    ("sync1_comp0_fpi0", [19754, 24293, 26250]),
    ("sync1_comp0_fpi1", [15089, 9507, 10963]),
    ("sync1_comp1_fpi0", [19732, 24335, 26280]),
    ("sync1_comp1_fpi1", [13031, 8571, 9204]),
    ("sync1_compLZ4_fpi0", [19698, 24629, 26163]),
    ("sync1_compLZ4_fpi1", [15309, 9712, 11420]),
];

fn publish(clients: u32, lines: &[WrittenLine]) -> Published {
    let measured = |(step, count): (&'static str, u64)| MeasuredStep {
        step,
        kind: StepKind::Query,
        main_op: "event",
        group: Some("write"),
        seconds: 1.0,
        count,
        ..MeasuredStep::default()
    };
    let targets = lines.iter().map(|(target, counts)| {
        let steps = STEPS.into_iter().zip(*counts).map(measured);
        (*target, steps.collect())
    });
    Published::new("sysbench", clients, targets.collect())
}

/// A target, its base, and the ratios test by test.
type Said = (&'static str, &'static str, &'static str);

/// The page's statements on targets relative to bases hold.
#[track_caller]
fn check(mut published: Published, said: &[Said]) {
    for (target, base, ratios) in said {
        published = published.relative_to(base);
        let title = format!("write: throughput relative to {base}");
        let table = published.table(&title, None);
        // The column after the tests has the mean of all.
        let of_tests = &table[*target][..STEPS.len()];
        assert_eq!(of_tests.join(" "), *ratios, "{target}, {base}");
    }
}

/// In text: (57, 83, 54), (80, 20, 62) and (46, 17, 33) percent; half for updates and about 30%
/// less for inserts.
const SMALL_WITHOUT_FSYNC: [Said; 4] = [
    ("bl1_sync0_dw1", "bl0_sync0_dw1", "0.57 0.83 0.54"),
    ("bl0_sync0_dw1", "sync0_comp0_fpi1", "0.80 0.20 0.62"),
    ("bl1_sync0_dw1", "sync0_comp0_fpi1", "0.46 0.17 0.33"),
    ("sync0_comp1_fpi1", "sync0_comp1_fpi0", "0.70 0.49 0.49"),
];

/// In text: about 50, 27 and 14 percent, for all three tests together. The last two name
/// configurations without fsync, of which none of these ratios is true; those with it give them.
const SMALL_WITH_FSYNC: [Said; 3] = [
    ("bl1_sync1_dw1", "bl0_sync1_dw1", "0.52 0.53 0.50"),
    ("bl0_sync1_dw1", "sync1_comp0_fpi1", "0.28 0.26 0.27"),
    ("bl1_sync1_dw1", "sync1_comp0_fpi1", "0.14 0.14 0.14"),
];

/// In text: (44, 79, 43), (96, 16, 70) and (42, 13, 30) percent. About 5% less with full page
/// writes is said of all tests, and is true of the first.
const MEDIUM_WITHOUT_FSYNC: [Said; 4] = [
    ("bl1_sync0_dw1", "bl0_sync0_dw1", "0.44 0.79 0.43"),
    ("bl0_sync0_dw1", "sync0_comp0_fpi1", "0.96 0.16 0.70"),
    ("bl1_sync0_dw1", "sync0_comp0_fpi1", "0.42 0.13 0.30"),
    ("sync0_comp1_fpi1", "sync0_comp1_fpi0", "0.94 0.84 0.88"),
];

/// In text: (34, 58, 41), (133, 68, 132) and (45, 39, 54) percent, where again the names are those
/// of configurations without fsync; about half for updates with full page writes.
const MEDIUM_WITH_FSYNC: [Said; 4] = [
    ("bl1_sync1_dw1", "bl0_sync1_dw1", "0.34 0.58 0.41"),
    ("bl0_sync1_dw1", "sync1_compLZ4_fpi1", "1.33 0.68 1.32"),
    ("bl1_sync1_dw1", "sync1_compLZ4_fpi1", "0.45 0.39 0.54"),
    ("sync1_comp0_fpi1", "sync1_comp0_fpi0", "0.76 0.39 0.42"),
];

#[test]
fn small_server() {
    let all = [&SMALL_WITHOUT_FSYNC[..], &SMALL_WITH_FSYNC];
    check(publish(1, &SMALL), &all.concat());
}

#[test]
fn medium_server() {
    let all = [&MEDIUM_WITHOUT_FSYNC[..], &MEDIUM_WITH_FSYNC];
    check(publish(12, &MEDIUM), &all.concat());
}
