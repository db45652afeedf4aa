//! `[workload.kv]`: the parameters of the key-value sequence.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::diagnostic::{Diagnostic, Place};
use crate::insert::{check_pair, inherited};
use crate::kinds::{ByteRate, Choice, Count, ListOf, Share, SmallCount, Time};
use crate::quantity::show_duration;
use crate::reader::{Context, Fault, Field, Kind, Section, table_of, wrong_type};
use crate::spec::{Checks, Kv, KvRead, KvStep, KvStepKind, Workload};
use crate::step::split_suffix;
use crate::tree::{Entry, Node, Value};
use crate::variants::Reader;
use crate::wording::{code, did_you_mean, key_part, quoted};

const PATH: &str = "workload.kv";

const KEYS: [&str; 18] = [
    "keys",
    "key-size",
    "value-size",
    "compression-ratio",
    "write-rate",
    "read-time",
    "read-write-time",
    "scan-length",
    "multiget-keys",
    "verify-share",
    "checks",
    "error-limit",
    "attempts",
    "settle-at-least",
    "settle-at-most",
    "steps",
    "step",
    // Read by those who read this for each variant.
    "variant",
];

/// The keys that a step's table may have.
pub(crate) const STEP_KEYS: [&str; 3] = ["time", "write-rate", "writes"];

/// Versions of values count as far, and further than anyone has keys.
const KEYS_MOST: u64 = 100_000_000_000;
/// A key holds its number, a value its version and as much that depends on it.
const KEY_SIZE: RangeInclusive<u32> = 8..=4096;
const VALUE_SIZE: RangeInclusive<u32> = 16..=(16 << 20);
const ENTRIES: RangeInclusive<u32> = 1..=1_000_000;
const MULTIGET_KEYS: RangeInclusive<u32> = 1..=10_000;
/// `overwritesome` overwrites this part of the keys.
const SOME: u64 = 10;
const TIME_MOST: Duration = Duration::from_secs(72 * 3600);
const SETTLE_MOST: Duration = Duration::from_secs(365 * 24 * 3600);

/// What a run has if the plan does not say.
const DEFAULT_STEPS: [&str; 11] = [
    "fillseq",
    "drain",
    "readrandom",
    "fwdrange",
    "multireadrandom",
    "overwritesome",
    "flush",
    "revrangewhilewriting",
    "fwdrangewhilewriting",
    "readwhilewriting",
    "overwrite",
];

const STEPS: [(&str, Sort); 13] = [
    ("fillseq", Sort::FillSeq),
    ("drain", Sort::Drain),
    ("flush", Sort::Flush),
    ("readrandom", Sort::Read(KvRead::Get)),
    ("multireadrandom", Sort::Read(KvRead::MultiGet)),
    ("fwdrange", Sort::Read(KvRead::Forward)),
    ("revrange", Sort::Read(KvRead::Reverse)),
    ("readwhilewriting", Sort::ReadWhileWriting(KvRead::Get)),
    (
        "multireadwhilewriting",
        Sort::ReadWhileWriting(KvRead::MultiGet),
    ),
    (
        "fwdrangewhilewriting",
        Sort::ReadWhileWriting(KvRead::Forward),
    ),
    (
        "revrangewhilewriting",
        Sort::ReadWhileWriting(KvRead::Reverse),
    ),
    ("overwritesome", Sort::OverwriteSome),
    ("overwrite", Sort::Overwrite),
];

fn steps_help() -> String {
    let names: Vec<String> = STEPS.iter().map(|(name, _)| code(name)).collect();
    format!(
        "steps: {}; to repeat one, add a suffix: `overwrite.2`",
        names.join(", ")
    )
}

/// A step as its name says it.
#[derive(Clone, Debug)]
struct StepName {
    name: String,
    sort: Sort,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    FillSeq,
    Drain,
    Flush,
    Read(KvRead),
    ReadWhileWriting(KvRead),
    OverwriteSome,
    Overwrite,
}

impl PartialEq for StepName {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl StepName {
    /// Reads a name; `None` for what is no step.
    fn parse(text: &str) -> Option<Self> {
        let base = split_suffix(text)?;
        let (_, sort) = STEPS.iter().find(|(name, _)| *name == base)?;
        Some(Self {
            name: text.to_owned(),
            sort: *sort,
        })
    }

    fn unknown(text: &str, place: Place, within: &str) -> Diagnostic {
        let names = STEPS.map(|(name, _)| name);
        Diagnostic::error(
            "plan::unknown-step",
            place,
            format!("unknown step {} in {}", code(text), code(within)),
        )
        .label("not a step")
        .help(format!("{}{}", did_you_mean(text, &names), steps_help()))
    }
}

/// A step's name in a list of steps.
struct Step;

impl Kind for Step {
    type Value = StepName;

    fn read(&self, name: &str, node: &Node) -> Result<StepName, Fault> {
        let Some(text) = node.text() else {
            if matches!(node.value, Value::Broken) {
                return Err(Fault::SAID);
            }
            return Err(wrong_type(name, node, "the name of a step")
                .help(steps_help())
                .into());
        };
        StepName::parse(text).ok_or_else(|| StepName::unknown(text, node.place, name).into())
    }

    fn show(&self, value: &StepName) -> String {
        quoted(&value.name)
    }

    fn help_for_twice(&self) -> Option<&'static str> {
        Some("to repeat a step, add a suffix: `overwrite.2`")
    }
}

/// `[workload.kv]`
pub(crate) struct KvReader;

impl Reader for KvReader {
    const PATH: &'static str = PATH;

    fn read(cx: &mut Context<'_>, node: Node, _: Option<u32>) -> Option<Workload> {
        read(cx, node).map(Workload::Kv)
    }
}

fn read(cx: &mut Context<'_>, node: Node) -> Option<Kv> {
    let section = &mut Section::of(cx, PATH, node, &KEYS)?;
    let keys = cx.field(section, "keys", &Count(1..=KEYS_MOST), 1_000_000);
    let key_size = cx.field(section, "key-size", &SmallCount(KEY_SIZE), 20);
    let value_size = cx.field(section, "value-size", &SmallCount(VALUE_SIZE), 400);
    let compression_ratio = cx.field(section, "compression-ratio", &Share, 0.5);
    let write_rate = cx.field(section, "write-rate", &ByteRate, 2 << 20);
    let time = Time(Duration::from_secs(1)..=TIME_MOST);
    let read_time = cx.field(section, "read-time", &time, Duration::from_secs(5));
    let read_write_time = cx.field(section, "read-write-time", &time, Duration::from_secs(10));
    let scan_length = cx.field(section, "scan-length", &SmallCount(ENTRIES), 10);
    let multiget_keys = cx.field(section, "multiget-keys", &SmallCount(MULTIGET_KEYS), 10);
    let verify_share = cx.field(section, "verify-share", &Share, 0.01);
    let checks = Choice(&[
        ("full", Checks::Full),
        ("keys", Checks::Keys),
        ("off", Checks::Off),
    ]);
    let checks = cx.field(section, "checks", &checks, Checks::Full);
    let error_limit = cx.field(section, "error-limit", &Count(0..=u64::MAX), 0);
    let attempts = cx.field(section, "attempts", &SmallCount(1..=1_000_000), 100);
    let settle = Time(Duration::ZERO..=SETTLE_MOST);
    let settle_at_least = cx.field(section, "settle-at-least", &settle, Duration::ZERO);
    let settle_at_most = cx.field(
        section,
        "settle-at-most",
        &settle,
        Duration::from_secs(1200),
    );

    let default = DEFAULT_STEPS
        .iter()
        .filter_map(|name| Some((StepName::parse(name)?, Place::Nowhere)))
        .collect();
    let names = cx.field(section, "steps", &ListOf(Step, "a list of steps"), default);
    let defaults = Defaults {
        keys,
        write_rate,
        read_time,
        read_write_time,
    };
    let mut tables = step_tables(cx, section, &names, &defaults);
    let steps = names
        .value
        .iter()
        .map(|(name, _)| {
            let at = tables.iter().position(|entry| entry.key == name.name);
            let entry = at.map(|at| tables.remove(at));
            KvStep {
                name: name.name.clone(),
                kind: step(cx, name, entry, &defaults),
            }
        })
        .collect();

    if names.trusted {
        check_order(cx, &names);
    }
    check_pair(
        cx,
        PATH,
        ["settle-at-least", "settle-at-most"],
        [&settle_at_least, &settle_at_most],
        |time| show_duration(*time),
    );
    Some(Kv {
        steps,
        keys: defaults.keys.value,
        key_size: key_size.value,
        value_size: value_size.value,
        compression_ratio: compression_ratio.value,
        write_bytes_per_s: defaults.write_rate.value,
        read_time: defaults.read_time.value,
        read_write_time: defaults.read_write_time.value,
        scan_length: scan_length.value,
        multiget_keys: multiget_keys.value,
        verify_share: verify_share.value,
        checks: checks.value,
        error_limit: error_limit.value,
        attempts: attempts.value,
        settle_at_least: settle_at_least.value,
        settle_at_most: settle_at_most.value,
    })
}

/// What a step takes from the workload when it says nothing itself.
struct Defaults {
    keys: Field<u64>,
    write_rate: Field<u64>,
    read_time: Field<Duration>,
    read_write_time: Field<Duration>,
}

/// The tables `[workload.kv.step.NAME]` of steps that are run; the others are reported.
fn step_tables(
    cx: &mut Context<'_>,
    section: &mut Section,
    names: &Field<Vec<(StepName, Place)>>,
    defaults: &Defaults,
) -> Vec<Entry> {
    let path = section.name_of("step");
    let table = section
        .take("step")
        .and_then(|entry| table_of(cx, &path, entry.node))
        .unwrap_or_default();
    let mut tables = Vec::new();
    for entry in table.entries {
        let Some(name) = StepName::parse(&entry.key) else {
            cx.report(StepName::unknown(&entry.key, entry.key_place, &path));
            continue;
        };
        if names.value.iter().any(|(other, _)| *other == name) {
            tables.push(entry);
            continue;
        }
        if names.trusted {
            let listed: Vec<&str> = names
                .value
                .iter()
                .map(|(name, _)| name.name.as_str())
                .collect();
            cx.report(
                Diagnostic::warning(
                    "plan::unused-step",
                    entry.key_place,
                    format!("step {} is not among the steps", code(&entry.key)),
                )
                .label("has no effect")
                .also(names.place, "the steps")
                .help(format!(
                    "{}add it to `{PATH}.steps`, or take it out here",
                    did_you_mean(&entry.key, &listed)
                )),
            );
        }
        // Read all the same, for what is wrong in it.
        let resolved = cx.resolved.len();
        step(cx, &name, Some(entry), defaults);
        cx.resolved.truncate(resolved);
    }
    tables
}

/// Puts a step together from its name, its table and the workload.
fn step(
    cx: &mut Context<'_>,
    name: &StepName,
    entry: Option<Entry>,
    defaults: &Defaults,
) -> KvStepKind {
    let keys: &[&str] = match name.sort {
        Sort::FillSeq | Sort::Drain | Sort::Flush => &[],
        Sort::Read(_) | Sort::Overwrite => &["time"],
        Sort::ReadWhileWriting(_) => &["time", "write-rate"],
        Sort::OverwriteSome => &["writes"],
    };
    let path = format!("{PATH}.step.{}", key_part(&name.name));
    let section = entry.and_then(|entry| Section::of(cx, &path, entry.node, keys));
    let section = &mut section.unwrap_or_else(|| Section::empty(&path));
    let time = |cx: &mut Context<'_>, section: &mut Section, from: &Field<Duration>| {
        let kind = Time(Duration::from_secs(1)..=TIME_MOST);
        inherited(cx, section, "time", &kind, from, from.value).value
    };
    match name.sort {
        Sort::FillSeq => KvStepKind::FillSeq,
        Sort::Drain => KvStepKind::Drain,
        Sort::Flush => KvStepKind::Flush,
        Sort::Read(read) => KvStepKind::Read {
            read,
            time: time(cx, section, &defaults.read_time),
        },
        Sort::ReadWhileWriting(read) => {
            let time = time(cx, section, &defaults.read_write_time);
            let from = &defaults.write_rate;
            let rate = inherited(cx, section, "write-rate", &ByteRate, from, from.value);
            KvStepKind::ReadWhileWriting {
                read,
                write_bytes_per_s: rate.value,
                time,
            }
        }
        Sort::OverwriteSome => {
            let keys = &defaults.keys;
            let some = (keys.value / SOME).max(1);
            let writes = inherited(cx, section, "writes", &Count(1..=KEYS_MOST), keys, some);
            KvStepKind::OverwriteSome {
                writes: writes.value,
            }
        }
        Sort::Overwrite => KvStepKind::Overwrite {
            time: time(cx, section, &defaults.read_write_time),
        },
    }
}

/// Reports steps that come before there are keys, and a load after there are.
fn check_order(cx: &mut Context<'_>, names: &Field<Vec<(StepName, Place)>>) {
    let steps = &names.value;
    let order =
        |place: Place, message: String| Diagnostic::error("plan::step-order", place, message);
    let mut loads = steps.iter().filter(|(step, _)| step.sort == Sort::FillSeq);
    let Some((load, load_place)) = loads.next() else {
        cx.report(
            order(names.place, "no step loads the keys".to_owned())
                .label("`fillseq` is missing")
                .help("begin with `fillseq`: it writes all keys in their order"),
        );
        return;
    };
    for (step, place) in steps.iter().take_while(|(step, _)| step != load) {
        cx.report(
            order(
                *place,
                format!("step {} comes before the keys are loaded", code(&step.name)),
            )
            .label("there are no keys yet")
            .also(*load_place, "loads the keys")
            .help(format!("begin with {}", code(&load.name))),
        );
    }
    for (step, place) in loads {
        cx.report(
            order(
                *place,
                format!(
                    "step {} comes when the keys are loaded already",
                    code(&step.name)
                ),
            )
            .label("can only be done once")
            .also(*load_place, "done here")
            .help("take it out; `overwrite` writes keys that are there"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_known_by_its_name() {
        let sort = |text| StepName::parse(text).map(|step| step.sort);
        assert_eq!(sort("fillseq"), Some(Sort::FillSeq));
        assert_eq!(sort("overwrite.2"), Some(Sort::Overwrite));
        assert_eq!(sort("overwritesome"), Some(Sort::OverwriteSome));
        assert_eq!(
            sort("revrangewhilewriting.8mb"),
            Some(Sort::ReadWhileWriting(KvRead::Reverse))
        );
        for text in [
            "",
            "fill",
            "fillseq.",
            "fillseq2",
            "Overwrite",
            "flush.a.b",
            "drain.B",
        ] {
            assert!(StepName::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn every_default_step_is_one() {
        for name in DEFAULT_STEPS {
            assert!(StepName::parse(name).is_some(), "{name}");
        }
    }
}
