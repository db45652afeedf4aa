//! `[workload.kv]`: the parameters of the key-value sequence.

mod graph;
mod transactions;

use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::{Value as Json, json};
use words::MergeOperator;

use crate::reading::context::{Context, Field, Section, ValueKind};
use crate::reading::quantity::Quantity;
use crate::reading::value_kinds::{Choice, Flag};
use crate::spec::{
    Kv, KvDelete, KvGraph, KvKeys, KvMix, KvRead, KvStep, KvStepKind, KvTransactions, KvWrite,
};
use crate::text::diagnostic::Place;
use crate::text::tree::Node;
use crate::text::wording::{code, quoted};
use crate::workloads::step::{self, StepKind, StepNames};
use crate::workloads::step_policy;
use crate::workloads::test_rate::RateKeys;

const PATH: &str = "workload.kv";

/// More keys than any machine holds; versions of values count this far too.
const KEYS_MAX: u64 = 100_000_000_000;
/// A key holds its number; a value holds its version and bytes that depend on it.
const KEY_SIZE: RangeInclusive<u32> = 8..=4096;
const VALUE_SIZE: RangeInclusive<u32> = 16..=(16 << 20);
/// The size of a value that is a sum.
const SUM_SIZE: u32 = 8;
const ENTRIES: RangeInclusive<u32> = 1..=1_000_000;
const MULTIGET_KEYS: RangeInclusive<u32> = 1..=10_000;
/// `overwritesome` overwrites one in this many keys, and `delete*` delete one.
const SOME_DIVISOR: u64 = 10;
/// Keys of a deleted range, as in `db_bench`.
const RANGE_WIDTH: u32 = 100;
const RANGE_WIDTHS: RangeInclusive<u32> = 1..=1_000_000;
const TIME_MAX: Duration = Duration::from_secs(72 * 3600);

const STEPS: [(&str, Kind); 24] = [
    ("fillseq", Kind::FillSeq),
    ("fillsst", Kind::FillSst),
    ("drain", Kind::Drain),
    ("flush", Kind::Flush),
    ("readrandom", Kind::Read(KvRead::Get)),
    ("multireadrandom", Kind::Read(KvRead::MultiGet)),
    ("fwdrange", Kind::Read(KvRead::Forward)),
    ("revrange", Kind::Read(KvRead::Reverse)),
    ("readwhilewriting", Kind::ReadWhileWriting(KvRead::Get, KvWrite::Put)),
    ("multireadwhilewriting", Kind::ReadWhileWriting(KvRead::MultiGet, KvWrite::Put)),
    ("fwdrangewhilewriting", Kind::ReadWhileWriting(KvRead::Forward, KvWrite::Put)),
    ("revrangewhilewriting", Kind::ReadWhileWriting(KvRead::Reverse, KvWrite::Put)),
    ("readwhilemerging", Kind::ReadWhileWriting(KvRead::Get, KvWrite::Merge)),
    ("multireadwhilemerging", Kind::ReadWhileWriting(KvRead::MultiGet, KvWrite::Merge)),
    ("fwdrangewhilemerging", Kind::ReadWhileWriting(KvRead::Forward, KvWrite::Merge)),
    ("revrangewhilemerging", Kind::ReadWhileWriting(KvRead::Reverse, KvWrite::Merge)),
    ("overwritesome", Kind::OverwriteSome),
    ("overwrite", Kind::Overwrite(KvWrite::Put)),
    ("mergerandom", Kind::Overwrite(KvWrite::Merge)),
    ("deleteseq", Kind::Delete(KvDelete::InOrder)),
    ("deleterandom", Kind::Delete(KvDelete::Random)),
    ("deleterange", Kind::Delete(KvDelete::Range { width: RANGE_WIDTH })),
    ("mixgraph", Kind::MixGraph),
    ("randomtransaction", Kind::Transactions),
];

/// Tests of `db_bench` that have other names here, with the step that has the same work.
const DB_BENCH: [(&str, &str); 4] = [
    ("seekrandom", "fwdrange"),
    ("seekrandomwhilewriting", "fwdrangewhilewriting"),
    ("seekrandomwhilemerging", "fwdrangewhilemerging"),
    ("waitforcompaction", "drain"),
];

/// Tests of `db_bench` whose work no step has.
const DB_BENCH_ONLY: [&str; 11] = [
    "fillrandom",
    "filluniquerandom",
    "fillbatch",
    "fillsync",
    "readseq",
    "readreverse",
    "readmissing",
    "readtocache",
    "updaterandom",
    "readrandomwriterandom",
    "readrandommergerandom",
];

/// A step, as its name describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    FillSeq,
    FillSst,
    Drain,
    Flush,
    Read(KvRead),
    ReadWhileWriting(KvRead, KvWrite),
    OverwriteSome,
    Overwrite(KvWrite),
    Delete(KvDelete),
    Mixed(KvMix),
    MixGraph,
    Transactions,
}

/// The steps of a plan that lists none.
const DEFAULTS: &[&str] = &[
    "fillseq",
    "flush",
    "readrandom",
    "fwdrange",
    "multireadrandom",
    "overwritesome",
    "flush.2",
    "revrangewhilewriting",
    "fwdrangewhilewriting",
    "readwhilewriting",
    "overwrite",
];

impl Kind {
    fn is_load(self) -> bool {
        matches!(self, Self::FillSeq | Self::FillSst)
    }
}

impl StepKind for Kind {
    type Known = ();
    const REPEATED: &'static str = "overwrite.2";

    fn defaults((): &()) -> Vec<&str> {
        DEFAULTS.to_vec()
    }

    fn parse(name: &str, (): &()) -> Option<Self> {
        let plain = STEPS.iter().find(|(other, _)| *other == name).map(|(_, kind)| *kind);
        let mix = KvMix::YCSB.iter().find(|(other, _)| *other == name);
        plain.or(mix.map(|(_, mix)| Self::Mixed(*mix)))
    }

    fn can_repeat(self) -> bool {
        !self.is_load()
    }

    fn hint(name: &str) -> Option<String> {
        let test = format!("{} of `db_bench`", code(name));
        if let Some((_, step)) = DB_BENCH.iter().find(|(other, _)| *other == name) {
            return Some(format!("{test} is {} here", code(step)));
        }
        let is_known = DB_BENCH_ONLY.contains(&name);
        is_known.then(|| format!("no step does what {test} does"))
    }

    fn names((): &()) -> Vec<&str> {
        let mixes = KvMix::YCSB.iter().map(|(name, _)| *name);
        STEPS.iter().map(|(name, _)| *name).chain(mixes).collect()
    }
}

/// Reads `[workload.kv]`.
pub(crate) fn read(cx: &mut Context<'_>, node: Node) -> Option<Kv> {
    let section = &mut Section::of(cx, PATH, node)?;

    // Keys are read in the order in which listings show them.
    let keys = cx.field(section, "keys", &Quantity::count(1..=KEYS_MAX), 1_000_000);
    let key_size = cx.value(section, "key-size", &Quantity::count(KEY_SIZE), 20);
    let operators = Choice(MergeOperator::NAMES);
    let merge_operator = cx.field(section, "merge-operator", &operators, MergeOperator::Put);
    let value_size = value_size(cx, section, &merge_operator);
    let compression_ratio = cx.value(section, "compression-ratio", &Quantity::share(), 0.5);
    let write_rate = cx.field(section, "write-rate", &Quantity::byte_rate(), 2 << 20);

    let time = Quantity::time(step::TIME_MIN..=TIME_MAX);
    let read_time = cx.field(section, "read-time", &time, Duration::from_secs(5));
    let read_write_time = cx.field(section, "read-write-time", &time, Duration::from_secs(10));
    let read_keys = cx.field(section, "read-keys", &KeysKind, KvKeys::Uniform);
    let rate = RateKeys::read(cx, section);
    let sync = cx.field(section, "sync", &Flag, false);

    let multiget = Quantity::count(MULTIGET_KEYS);
    let mut kv = Kv {
        steps: Vec::new(),
        keys: keys.value,
        key_size,
        value_size,
        merge_operator: merge_operator.value,
        compression_ratio,
        scan_length: cx.value(section, "scan-length", &Quantity::count(ENTRIES), 10),
        multiget_keys: cx.value(section, "multiget-keys", &multiget, 10),
        verify_share: cx.value(section, "verify-share", &Quantity::share(), 0.01),
        policy: step_policy::read(cx, section, false),
    };

    // The steps, which inherit what their own tables don't set.
    let names = step::names(cx, section, &());
    let defaults = Defaults { keys, write_rate, read_time, read_write_time, read_keys, rate };
    kv.steps = step::steps(cx, section, &names, &(), |cx, name, number, section| {
        let kind = step(&mut StepOptions { cx, section, defaults: &defaults }, name.kind);
        let is_synced =
            kind.may_sync() && cx.inherited(section, "sync", &Flag, &sync, sync.value).value;
        let rate =
            if kind.may_have_rate() { defaults.rate.of_step(cx, section).value } else { None };
        KvStep { number, name: name.name.clone(), kind, sync: is_synced, rate }
    });
    section.finish(cx);

    if names.trusted {
        check_order(cx, &names);
        if kv.merge_operator == MergeOperator::Uint64Add {
            check_sums(cx, &kv, &names, merge_operator.place);
        }
    }
    Some(kv)
}

/// Reads the size of a value, which is fixed where values are sums.
fn value_size(
    cx: &mut Context<'_>,
    section: &mut Section,
    merge_operator: &Field<MergeOperator>,
) -> u32 {
    let (sizes, usual) = match merge_operator.value {
        MergeOperator::Put => (VALUE_SIZE, 400),
        MergeOperator::Uint64Add => (SUM_SIZE..=SUM_SIZE, SUM_SIZE),
    };
    cx.inherited(section, "value-size", &Quantity::count(sizes), merge_operator, usual).value
}

/// The options that a step takes from the workload unless its own table sets them.
struct Defaults {
    keys: Field<u64>,
    write_rate: Field<u64>,
    read_time: Field<Duration>,
    read_write_time: Field<Duration>,
    read_keys: Field<KvKeys>,
    rate: RateKeys,
}

/// A distribution of keys: `"uniform"`, `"zipfian(0.99)"`, `"exponential(15)"`.
struct KeysKind;

impl ValueKind for KeysKind {
    type Value = KvKeys;

    fn read(&self, cx: &mut Context<'_>, name: &str, node: &Node) -> Option<KvKeys> {
        const HELP: &str = "allowed: `uniform`, `zipfian(0.99)` with an exponent above 0 and up to \
                            10, or `exponential(15)` with a range above 0 and up to 100";
        let text = cx.text(name, node, "a string", HELP)?;
        let keys = KvKeys::parse(text);
        if keys.is_none() {
            let message = format!("{} has an unknown value: {}", code(name), code(text));
            cx.error("plan::unknown-value", node.place, message)
                .label("not an allowed value")
                .help(HELP);
        }
        keys
    }

    fn show(&self, value: &KvKeys) -> String {
        quoted(&value.to_string())
    }

    fn schema(&self) -> Json {
        let with_number =
            json!({ "type": "string", "pattern": r"^(zipfian|exponential)\([0-9.]+\)$" });
        json!({ "anyOf": [{ "enum": ["uniform"] }, with_number] })
    }
}

/// Reads the work of a step from its name, its table and the workload. Options are listed in the
/// order in which they are read.
fn step(options: &mut StepOptions<'_, '_>, kind: Kind) -> KvStepKind {
    match kind {
        Kind::FillSeq => KvStepKind::FillSeq,
        Kind::FillSst => KvStepKind::FillSst,
        Kind::Drain => KvStepKind::Drain,
        Kind::Flush => KvStepKind::Flush,

        Kind::Read(read) => {
            KvStepKind::Read { read, time: options.read_time(), keys: options.read_keys() }
        }
        Kind::ReadWhileWriting(read, write) => KvStepKind::ReadWhileWriting {
            read,
            write,
            time: options.read_write_time(),
            write_bytes_per_s: options.write_bytes_per_s(),
            keys: options.read_keys(),
        },

        Kind::OverwriteSome => KvStepKind::OverwriteSome { writes: options.writes() },
        Kind::Overwrite(write) => KvStepKind::Overwrite { write, time: options.read_write_time() },
        Kind::Delete(delete) => options.deletes(delete),

        Kind::Mixed(mix) => KvStepKind::Mixed { mix, time: options.read_write_time() },
        Kind::MixGraph => {
            KvStepKind::MixGraph { graph: options.graph(), time: options.read_write_time() }
        }
        Kind::Transactions => KvStepKind::Transactions {
            transactions: options.transactions(),
            time: options.read_write_time(),
        },
    }
}

/// Reads the options of one step.
struct StepOptions<'s, 'c> {
    cx: &'s mut Context<'c>,
    section: &'s mut Section,
    defaults: &'s Defaults,
}

impl StepOptions<'_, '_> {
    /// Reads how long a step runs that only reads.
    fn read_time(&mut self) -> Duration {
        self.time(&self.defaults.read_time)
    }

    /// Reads how long a step runs that writes.
    fn read_write_time(&mut self) -> Duration {
        self.time(&self.defaults.read_write_time)
    }

    fn time(&mut self, usual: &Field<Duration>) -> Duration {
        let kind = Quantity::time(step::TIME_MIN..=TIME_MAX);
        self.cx.inherited(self.section, "time", &kind, usual, usual.value).value
    }

    fn read_keys(&mut self) -> KvKeys {
        let usual = &self.defaults.read_keys;
        self.cx.inherited(self.section, "read-keys", &KeysKind, usual, usual.value).value
    }

    fn write_bytes_per_s(&mut self) -> u64 {
        let usual = &self.defaults.write_rate;
        let kind = Quantity::byte_rate();
        self.cx.inherited(self.section, "write-rate", &kind, usual, usual.value).value
    }

    /// Reads how many keys `overwritesome` overwrites.
    fn writes(&mut self) -> u64 {
        let keys = &self.defaults.keys;
        let usual = (keys.value / SOME_DIVISOR).max(1);
        let kind = Quantity::count(1..=KEYS_MAX);
        self.cx.inherited(self.section, "writes", &kind, keys, usual).value
    }

    /// Reads how many keys or ranges a step deletes, and how wide the ranges are.
    fn deletes(&mut self, mut delete: KvDelete) -> KvStepKind {
        let keys = &self.defaults.keys;
        let mut usual = keys.value / SOME_DIVISOR;
        let mut most = KEYS_MAX;
        match &mut delete {
            // No key is deleted twice.
            KvDelete::InOrder => most = keys.value,
            KvDelete::Random => {}
            KvDelete::Range { width } => {
                let kind = Quantity::count(RANGE_WIDTHS);
                *width = self.cx.value(self.section, "range-width", &kind, *width);
                usual /= u64::from(*width);
            }
        }

        let kind = Quantity::count(1..=most);
        let deletes = self.cx.inherited(self.section, "deletes", &kind, keys, usual.max(1)).value;
        KvStepKind::Delete { delete, deletes }
    }

    fn graph(&mut self) -> KvGraph {
        graph::read(self.cx, self.section, &self.defaults.keys)
    }

    fn transactions(&mut self) -> KvTransactions {
        transactions::read(self.cx, self.section, &self.defaults.keys)
    }
}

/// Reports steps that write values which are no summands: of several clients that put values, nobody
/// knows whose is the last.
fn check_sums(cx: &mut Context<'_>, kv: &Kv, names: &StepNames<Kind>, operator_place: Place) {
    if names.place == Place::Nowhere {
        cx.error(
            "plan::conflict",
            operator_place,
            "the usual steps cannot run with sums as values",
        )
        .label("they put values")
        .help("list `steps` that load, read, merge or settle: `[\"fillseq\", \"mergerandom\"]`");
        return;
    }

    for (step, (name, place)) in kv.steps.iter().zip(&names.value) {
        if !step.kind.keeps_sums() {
            let message = format!("step {} cannot run with sums as values", code(&name.name));
            cx.error("plan::conflict", *place, message).label("it puts or deletes values").help(
                "with `merge-operator = \"uint64add\"`, use steps that load, read, merge or settle",
            );
        }
    }
}

/// Reports steps that come before the load, and a second load.
fn check_order(cx: &mut Context<'_>, names: &StepNames<Kind>) {
    let mut loads = names.value.iter().filter(|(step, _)| step.kind.is_load());
    let load = loads.next().map_or(Kind::FillSeq, |(step, _)| step.kind);
    if !step::check_load(cx, names, load, "keys") {
        cx.error("plan::step-order", names.place, "no step loads the keys")
            .label("`fillseq` is missing")
            .help("start the list with `fillseq` or `fillsst`, which write all keys in order");
    }
    step::check_once(cx, names, load, "the keys are loaded");

    if let Some((step, place)) = loads.find(|(step, _)| step.kind != load) {
        let message = format!("step {} loads the keys again", code(&step.name));
        cx.error("plan::step-order", *place, message)
            .label("the keys are loaded already")
            .help("remove it, or compare both loads in two variants");
    }
}

#[cfg(test)]
mod tests {
    use words::CellKind;

    use super::*;
    use crate::workloads::step::StepName;
    use crate::{StepRate, Workload};

    #[test]
    fn a_step_is_known_by_its_name() {
        let kind = |text| StepName::parse(text, &()).map(|step: StepName<Kind>| step.kind);
        assert_eq!(kind("fillseq"), Some(Kind::FillSeq));
        assert_eq!(kind("overwrite.2"), Some(Kind::Overwrite(KvWrite::Put)));
        assert_eq!(kind("mergerandom"), Some(Kind::Overwrite(KvWrite::Merge)));
        assert_eq!(kind("overwritesome"), Some(Kind::OverwriteSome));
        let reverse = Kind::ReadWhileWriting(KvRead::Reverse, KvWrite::Put);
        assert_eq!(kind("revrangewhilewriting.8mb"), Some(reverse));
        for text in ["", "fill", "fillseq.", "fillseq2", "Overwrite", "flush.a.b", "drain.B"] {
            assert!(kind(text).is_none(), "{text}");
        }
    }

    /// Returns a plan of the key-value sequence with these lines, or the messages about it.
    fn plan(lines: &str) -> Result<crate::Plan, String> {
        let text = format!("clients = [4]\n[workload.kv]\n{lines}\n[build.a]\nrocksdb = \"x\"\n");
        match crate::parse("plan.toml", &text, &[]) {
            Ok((plan, _)) => Ok(plan),
            Err(errors) => Err(crate::render(&errors, "plan.toml", &text, &[], false)),
        }
    }

    #[test]
    fn a_test_of_db_bench_is_named_with_the_step_that_it_is_here() {
        for (name, said) in [
            ("seekrandom", "`seekrandom` of `db_bench` is `fwdrange` here; available steps"),
            ("seekrandom.2", "`seekrandom` of `db_bench` is `fwdrange` here; available steps"),
            ("readmissing", "no step does what `readmissing` of `db_bench` does; available steps"),
            ("readrandon", "did you mean `readrandom`? available steps"),
        ] {
            let refused = plan(&format!("steps = [\"fillseq\", \"{name}\"]")).unwrap_err();
            assert!(refused.contains(said), "{refused}");
        }

        let names = Kind::names(&());
        assert!(DB_BENCH.iter().all(|(test, step)| !names.contains(test) && names.contains(step)));
        assert!(DB_BENCH_ONLY.iter().all(|test| !names.contains(test)));
    }

    /// Returns the rate of each of four clients in a step; `None` if it has none.
    fn rate_of(workload: &Workload, step: &str) -> Option<f64> {
        match workload.step_rate(step) {
            StepRate::Given(rate) => rate.per_client(4),
            StepRate::CannotHave | StepRate::None => None,
        }
    }

    #[test]
    fn steps_that_run_for_a_time_may_have_a_rate_of_their_clients() {
        let lines = r#"
            steps = ["fillseq", "drain", "readrandom", "readwhilewriting", "overwritesome", "overwrite", "ycsb_a"]
            rate = 500
            step.overwrite = { rate = "50% of max", max = 8000 }
            step.ycsb_a.rate = "1k/s"
        "#;
        let resolved = plan(lines).unwrap();
        let workload = &resolved.variants[0].workload;
        assert_eq!(rate_of(workload, "readrandom"), Some(500.0));
        assert_eq!(rate_of(workload, "readwhilewriting"), Some(500.0));
        assert_eq!(rate_of(workload, "overwrite"), Some(1000.0));
        assert_eq!(rate_of(workload, "ycsb_a"), Some(1000.0));
        for step in ["fillseq", "drain", "overwritesome"] {
            assert_eq!(workload.step_rate(step), StepRate::CannotHave, "{step}");
        }

        let shares: Vec<&str> = workload.shares_of_max().iter().map(|(step, _)| *step).collect();
        assert_eq!(shares, ["overwrite"]);
        let mut without_shares = workload.clone();
        if let Workload::Kv(kv) = &mut without_shares {
            kv.remove_shares();
        }
        assert_eq!(without_shares.step_rate("overwrite"), StepRate::None);
        assert_eq!(rate_of(&without_shares, "readrandom"), Some(500.0));
    }

    /// Returns whether a plan with this rate has cells that measure the highest one.
    fn measures_highest_rates(rate: &str) -> bool {
        let cells = plan(&format!("rate = {rate}")).unwrap().cells();
        cells.iter().any(|cell| cell.kind == CellKind::Unlimited)
    }

    #[test]
    fn only_a_share_of_a_highest_rate_needs_cells_that_measure_it() {
        assert!(measures_highest_rates("\"70% of max\""));
        assert!(!measures_highest_rates("700"));
    }

    #[test]
    fn steps_that_only_read_start_with_an_empty_level_0() {
        let mut is_empty = false;
        for name in DEFAULTS {
            let step: StepName<Kind> = StepName::parse(name, &()).unwrap();
            match step.kind {
                Kind::Flush => is_empty = true,
                Kind::Read(_) => assert!(is_empty, "{name}"),
                _ => is_empty = false,
            }
        }
    }

    #[test]
    fn every_default_step_is_one() {
        for name in DEFAULTS {
            let step: Option<StepName<Kind>> = StepName::parse(name, &());
            assert!(step.is_some(), "{name}");
        }
    }
}
