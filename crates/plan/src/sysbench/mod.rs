//! `[workload.sysbench]`: the parameters of the sysbench microbenchmarks, and tests of one's own.

mod builtin;
mod expression;
mod placeholder;
mod read;
pub(crate) mod test;
#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::{Value as Json, json};
use words::named_enum;

use crate::diagnostic::{Diagnostic, Place, Severity};
use crate::quantity::Quantity;
use crate::reader::{Context, Field, Section, ValueKind};
use crate::spec::{Sysbench, SysbenchStep, SysbenchStepKind};
use crate::step::{self, StepKind, StepName, StepNames};
use crate::step_policy;
use crate::tree::Node;
use crate::value_kinds::{Choice, Flag, Optional, check_name};
use crate::wording::{code, did_you_mean, key_part, list, nearest, quoted};

use builtin::BUILTIN;
pub use expression::{Expression, Operator};
use read::{Setting, TestSource, TestTime, Whole};
pub use test::{
    Block, Distribution, Draw, Effect, ExpectedRows, Group, Piece, Slot, TableChoice, Test,
    TestStatement,
};

const PATH: &str = "workload.sysbench";

/// The keys that the step of any test has.
const RUN_KEYS: [&str; 5] = ["time", "warmup", "distribution", "rate", "reported"];

/// Each is a file or a few of them.
const TABLES: RangeInclusive<u32> = 1..=10_000;
/// `id` is an integer of 32 bits; some are left for rows that are inserted later.
const ROWS: RangeInclusive<u64> = 1..=2_000_000_000;
const LOAD_CONNECTIONS: RangeInclusive<u32> = 1..=1_000;
/// With four values each, a statement stays below what SQLite can bind.
const LOAD_BATCH: RangeInclusive<u32> = 1..=8_000;
const TIME_MOST: Duration = Duration::from_secs(365 * 24 * 3600);
/// What is run to warm up, and is no result, takes no longer where nobody says.
const WARM_MOST: Duration = Duration::from_secs(60);
/// Suffixes that begin so are of steps that warm up what comes after them.
const WARM: &str = "warm";

/// A step as its name says it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Load,
    Index,
    Settle,
    /// A test by its index.
    Run {
        test: usize,
        /// The index of an argument that the name sets, and its value.
        argument: Option<(usize, i64)>,
    },
}

named_enum! {
    /// Lists of steps that have names.
    pub enum StepList {
        /// A few tests of each group.
        Short = "short",
        /// Until April 2025.
        Classic = "classic",
        /// Since then.
        Current = "current",
    }
}

/// What the names of steps depend on.
struct Known {
    /// Tests that the plan defines; their indices come after those of the built-in ones.
    own: Vec<TestSource>,
    order: StepList,
    secondary_index: bool,
}

impl Known {
    fn tests(&self) -> impl Iterator<Item = &TestSource> {
        BUILTIN.tests.iter().chain(&self.own)
    }

    fn test(&self, index: usize) -> Option<&TestSource> {
        self.tests().nth(index)
    }
}

impl StepKind for Kind {
    type Known = Known;
    const REPEATED: &'static str = "scan.2";

    fn defaults(known: &Known) -> Vec<&str> {
        let steps = BUILTIN.order(known.order).iter().map(String::as_str);
        steps
            .filter(|step| known.secondary_index || *step != "index")
            .collect()
    }

    fn parse(name: &str, known: &Known) -> Option<Self> {
        match name {
            "load" => return Some(Self::Load),
            "index" => return Some(Self::Index),
            "settle" => return Some(Self::Settle),
            _ => {}
        }
        let index = |name: &str| known.tests().position(|test| test.name == name);
        if let Some(test) = index(name) {
            return Some(Self::Run {
                test,
                argument: None,
            });
        }
        let (name, setting) = name.rsplit_once('.')?;
        let test = index(name)?;
        let arguments = &known.test(test)?.arguments;
        let argument = (0..).zip(arguments).find_map(|(at, argument)| {
            let digits = setting.strip_prefix(argument.name.as_str())?;
            Some((at, number(digits)?))
        });
        argument.map(|argument| Self::Run {
            test,
            argument: Some(argument),
        })
    }

    fn names(known: &Known) -> Vec<&str> {
        let mut names = vec!["load", "index", "settle"];
        names.extend(known.tests().map(|test| test.name.as_str()));
        let classic = BUILTIN.order(StepList::Classic).iter().map(String::as_str);
        names.extend(classic.filter(|name| name.contains(".range")));
        names
    }

    fn all(known: &Known) -> String {
        let tests: Vec<&str> = known.tests().map(|test| test.name.as_str()).collect();
        format!(
            "`load`, `index`, `settle`, and the tests {}, also with an argument: `read-only.range10`",
            list(&tests)
        )
    }
}

/// The number that an argument in a step's name has.
fn number(digits: &str) -> Option<i64> {
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    digits.parse().ok().filter(|_| is_number)
}

/// `"uniform"`, `"zipfian"`, `"zipfian(0.99)"`
struct DistributionKind;

impl ValueKind for DistributionKind {
    type Value = Distribution;

    fn read(&self, cx: &mut Context<'_>, name: &str, node: &Node) -> Option<Distribution> {
        const HELP: &str = "allowed: `uniform`, `zipfian`, or `zipfian(0.99)` with an exponent above 0, at most 10";
        let text = cx.text(name, node, "a string", HELP)?;
        let exponent = match text {
            "uniform" => return Some(Distribution::Uniform),
            "zipfian" => Some(expression::EXPONENT),
            _ => text
                .strip_prefix("zipfian(")
                .and_then(|text| text.strip_suffix(')'))
                .and_then(expression::exponent),
        };
        if exponent.is_none() {
            let message = format!("{} has an unknown value: {}", code(name), code(text));
            let meant = did_you_mean(text, &["uniform", "zipfian"]);
            cx.error("plan::unknown-value", node.place, message)
                .label("not one of those allowed")
                .help(format!("{meant}{HELP}"));
        }
        exponent.map(|exponent| Distribution::Zipfian { exponent })
    }

    fn show(&self, value: &Distribution) -> String {
        match value {
            Distribution::Uniform => quoted("uniform"),
            Distribution::Zipfian { exponent } => quoted(&format!("zipfian({exponent})")),
        }
    }

    fn schema(&self) -> Json {
        let with_exponent = json!({ "type": "string", "pattern": r"^zipfian\([0-9.]+\)$" });
        json!({ "anyOf": [{ "enum": ["uniform", "zipfian"] }, with_exponent] })
    }
}

/// A rate that may be absent.
const RATE: Optional<Quantity<f64>> = Optional(Quantity::rate(), "(as fast as they go)");

/// Reads `[workload.sysbench]`.
pub(crate) fn read(
    cx: &mut Context<'_>,
    node: Node,
    clients_most: Option<u32>,
) -> Option<Sysbench> {
    let section = &mut Section::of(cx, PATH, node)?;
    let tables = cx.value(section, "tables", &Quantity::count(TABLES), 1);
    let rows = cx.value(section, "rows", &Quantity::count(ROWS), 100_000);
    let load_connections = Quantity::count(LOAD_CONNECTIONS);
    let load_connections = cx.value(section, "load-connections", &load_connections, 4);
    let load_batch = cx.value(section, "load-batch", &Quantity::count(LOAD_BATCH), 1_000);
    let secondary_index = cx.field(section, "secondary-index", &Flag, true);
    let primary_key = cx.value(section, "primary-key", &Flag, true);
    let distribution = &DistributionKind;
    let distribution = cx.field(section, "distribution", distribution, Distribution::Uniform);
    let prepared = cx.value(section, "prepared", &Flag, true);
    let warmup = Quantity::time(Duration::ZERO..=TIME_MOST);
    let warmup = cx.field(section, "warmup", &warmup, Duration::from_secs(5));
    let time = Quantity::time(step::TIME_LEAST..=TIME_MOST);
    let read_time = cx.field(section, "read-time", &time, Duration::from_secs(10));
    let write_time = cx.field(section, "write-time", &time, Duration::from_secs(10));
    let rate = cx.field(section, "rate", &RATE, None);
    let policy = step_policy::read(cx, section);
    let order = cx.field(section, "order", &Choice(StepList::NAMES), StepList::Short);

    let setting = Setting {
        rows,
        tables,
        clients: clients_most.unwrap_or(1),
        prepared,
    };
    let own = own_tests(cx, section, &setting);
    let known = Known {
        own,
        order: order.value,
        secondary_index: secondary_index.value,
    };
    let names = step::names::<Kind>(cx, section, &known);
    if names.place == Place::Nowhere {
        cx.follows_from(order.place);
    } else if order.place != Place::Nowhere {
        let message = format!("`{PATH}` has `order` and `steps`");
        cx.error("plan::conflict", order.place, message)
            .label("a list of steps")
            .also(names.place, "another")
            .help("leave one of them out");
    }
    let defaults = Defaults {
        setting,
        warmup,
        read_time,
        write_time,
        distribution,
        rate,
    };
    let place_of = |name: &StepName<Kind>| {
        let listed = names.value.iter().find(|(other, _)| other == name);
        listed.map_or(names.place, |(_, place)| *place)
    };
    let steps = step::steps(cx, section, &names, &known, |cx, name, _, section| {
        SysbenchStep {
            name: name.name.clone(),
            kind: step(cx, name, place_of(name), section, &known, &defaults),
        }
    });
    section.finish(cx);
    if names.trusted {
        report_unused(cx, &known, &names);
        report_suffixes(cx, &known, &names);
        check_order(cx, &names, &known, &secondary_index);
    }
    Some(Sysbench {
        steps,
        tables,
        rows,
        load_connections,
        load_batch,
        secondary_index: secondary_index.value,
        primary_key,
        policy,
    })
}

/// Reads the tests that the plan defines.
fn own_tests(cx: &mut Context<'_>, section: &mut Section, setting: &Setting) -> Vec<TestSource> {
    let path = section.name_of("test");
    let table = cx.table(section, "test");
    let mut tests = Vec::new();
    for entry in table.entries {
        let place = entry.key_place;
        let message = "a test has a name that cannot be used";
        check_name(cx, message, &entry.key, place);
        let is_step = ["load", "index", "settle"].contains(&entry.key.as_str());
        if is_step || BUILTIN.tests.iter().any(|test| test.name == entry.key) {
            let label = match is_step {
                true => "a step that is no test",
                false => "the name of a built-in test",
            };
            let message = format!("{} is there already", code(&entry.key));
            cx.error("plan::conflict", place, message)
                .label(label)
                .help(
                    "give it another name; a built-in test's arguments are set in its step's table",
                );
        }
        let path = format!("{path}.{}", key_part(&entry.key));
        if let Some(mut test) = TestSource::new(cx, &path, &entry.key, place, entry.node) {
            test.read(cx, setting);
            tests.push(test);
        }
    }
    tests
}

/// What a step takes from the workload when it says nothing itself.
struct Defaults {
    setting: Setting,
    warmup: Field<Duration>,
    read_time: Field<Duration>,
    write_time: Field<Duration>,
    distribution: Field<Distribution>,
    rate: Field<Option<f64>>,
}

/// Puts together what a step does, from its name, its table and the workload.
fn step(
    cx: &mut Context<'_>,
    name: &StepName<Kind>,
    name_place: Place,
    section: &mut Section,
    known: &Known,
    defaults: &Defaults,
) -> SysbenchStepKind {
    let (test, argument) = match name.kind {
        Kind::Load => return SysbenchStepKind::Load,
        Kind::Index => return SysbenchStepKind::Index,
        Kind::Settle => return SysbenchStepKind::Settle,
        Kind::Run { test, argument } => (known.test(test), argument),
    };
    let Some(test) = test else {
        return SysbenchStepKind::Settle;
    };
    let suffix = name.name.rsplit_once('.').map(|(_, suffix)| suffix);
    let is_argument = |suffix: &str| {
        argument.is_some_and(|(at, value)| suffix == format!("{}{value}", test.arguments[at].name))
    };
    let is_warm = suffix.is_some_and(|suffix| suffix.starts_with(WARM) && !is_argument(suffix));

    let (values, place) = arguments(cx, test, argument, section);
    let here = place.or(name_place);
    let setting = &defaults.setting;
    // What is wrong with the test itself was said.
    let mut said = Context::new("");
    let understood = test.with(&mut said, &values, setting);
    let wrong = said.diagnostics.into_iter();
    let mut wrong = wrong.filter(|it| test.trusted && it.severity == Severity::Error);
    cx.diagnostics.extend(wrong.next().map(|wrong| Diagnostic {
        place: here,
        help: vec![format!("this is step {}", code(&name.name))],
        ..wrong
    }));
    let time_of = understood.as_ref().map_or(TestTime::Read, |it| it.time);

    let time = match time_of {
        TestTime::Write if !is_warm => &defaults.write_time,
        _ => &defaults.read_time,
    };
    let most = if is_warm { WARM_MOST } else { TIME_MOST };
    let kind = Quantity::time(step::TIME_LEAST..=TIME_MOST);
    let time = cx.inherited(section, "time", &kind, time, time.value.min(most));
    let kind = Quantity::time(Duration::ZERO..=TIME_MOST);
    let warmup = if is_warm {
        cx.field(section, "warmup", &kind, Duration::ZERO)
    } else {
        let from = &defaults.warmup;
        cx.inherited(section, "warmup", &kind, from, from.value)
    };
    let from = &defaults.distribution;
    let kind = &DistributionKind;
    let distribution = cx.inherited(section, "distribution", kind, from, from.value);
    let from = &defaults.rate;
    let rate = cx.inherited(section, "rate", &RATE, from, from.value);
    let reported = cx.field(section, "reported", &Flag, !is_warm);

    let Some(understood) = understood else {
        return SysbenchStepKind::Settle;
    };
    let ranges = test.arguments.iter().zip(&values);
    let mut ranges = ranges.filter(|(it, _)| understood.ranges.contains(&it.name));
    let rows = setting.rows;
    let is_more = |value: i64| u64::try_from(value).is_ok_and(|value| value > rows);
    if let Some((_, value)) = ranges.find(|(_, value)| is_more(**value)) {
        let message = format!(
            "step {} reads ranges of {value} rows, and a table has {rows}",
            code(&name.name)
        );
        cx.error("plan::out-of-range", here, message)
            .label(format!("at most {rows}"))
            .help("make `rows` larger, or the range smaller");
    }
    SysbenchStepKind::Run {
        test: understood.test,
        time: time.value,
        warmup: warmup.value,
        distribution: distribution.value,
        rate: rate.value,
        reported: reported.value,
    }
}

/// Takes a step's arguments, of which its name may set one, and the place of the first that its table has.
fn arguments(
    cx: &mut Context<'_>,
    test: &TestSource,
    named: Option<(usize, i64)>,
    section: &mut Section,
) -> (Vec<i64>, Place) {
    let mut values = Vec::new();
    let mut place = Place::Nowhere;
    for (index, argument) in test.arguments.iter().enumerate() {
        let named = named.filter(|(at, _)| *at == index);
        let default = named.map_or(argument.value, |(_, value)| value);
        let field = cx.field(section, &argument.name, &Whole, default);
        if named.is_some_and(|(_, named)| field.trusted && field.value != named) {
            let message = format!(
                "{} is {}, which the step's name has as {default}",
                code(&section.name_of(&argument.name)),
                field.value
            );
            cx.error("plan::conflict", field.place, message)
                .label("the name says otherwise")
                .help("leave it out, or use the test's name with a suffix of your own");
        }
        place = place.or(field.place);
        values.push(field.value);
    }
    (values, place)
}

/// Reports tests that no step runs.
fn report_unused(cx: &mut Context<'_>, known: &Known, names: &StepNames<Kind>) {
    let is_of = |kind: Kind, index| matches!(kind, Kind::Run { test, .. } if test == index);
    for (index, test) in (BUILTIN.tests.len()..).zip(&known.own) {
        if names.value.iter().any(|(name, _)| is_of(name.kind, index)) {
            continue;
        }
        let message = format!("test {} is in no step", code(&test.name));
        cx.warning("plan::unused-test", test.place, message)
            .label("not run")
            .also(names.place, "the steps")
            .help(format!("add it to `{PATH}.steps`, or take it out here"));
    }
}

/// Reports suffixes that look as if they were to set an argument.
fn report_suffixes(cx: &mut Context<'_>, known: &Known, names: &StepNames<Kind>) {
    for (name, place) in &names.value {
        let Kind::Run {
            test,
            argument: None,
        } = name.kind
        else {
            continue;
        };
        let suffix = name.name.rsplit_once('.').map_or("", |(_, suffix)| suffix);
        let word = suffix.trim_end_matches(|c: char| c.is_ascii_digit());
        let own = known.test(test).map_or(&[][..], |test| &test.arguments);
        let own: Vec<&str> = own.iter().map(|it| it.name.as_str()).collect();
        let meant = nearest(word, &own).or_else(|| nearest(word, &["range"]));
        if meant.is_none() || word.is_empty() || word == suffix {
            continue;
        }
        let help = match own.as_slice() {
            [] => "the test has no arguments; use another suffix".to_owned(),
            own => format!(
                "arguments of the test: {}; a value is in decimal digits, from 1 on and without zeros before it",
                list(own)
            ),
        };
        let message = format!(
            "{} of step {} sets no argument",
            code(suffix),
            code(&name.name)
        );
        cx.warning("plan::unknown-argument", *place, message)
            .label("only a name for another run of the same test")
            .help(help);
    }
}

/// Reports steps that come before what they need.
fn check_order(
    cx: &mut Context<'_>,
    names: &StepNames<Kind>,
    known: &Known,
    secondary_index: &Field<bool>,
) {
    // Otherwise they are there already, in a server that assay does not start, and so are their indexes.
    if !step::check_load(cx, names, Kind::Load, "tables") {
        return;
    }
    step::check_once(cx, names, Kind::Load, "the tables are loaded");
    step::check_once(cx, names, Kind::Index, "the indexes are made");
    let steps = &names.value;
    let index = steps.iter().position(|(step, _)| step.kind == Kind::Index);
    if let Some(at) = index
        && secondary_index.trusted
        && !known.secondary_index
    {
        let message = "step `index` makes an index that the tables are not to have";
        cx.error("plan::conflict", steps[at].1, message)
            .label("makes the index on `k`")
            .also(secondary_index.place, "no such index")
            .help(format!("take the step out, or `{PATH}.secondary-index`"));
    }
    let before = &steps[..index.unwrap_or(steps.len())];
    let is_run = |kind| matches!(kind, Kind::Run { .. });
    let run = before.iter().find(|(step, _)| is_run(step.kind));
    if let Some((step, place)) = run
        && known.secondary_index
    {
        let message = format!("step {} comes before the index on `k`", code(&step.name));
        let diagnostic = cx
            .warning("plan::step-order", *place, message)
            .label("there is no secondary index yet");
        match index {
            Some(at) => diagnostic
                .also(steps[at].1, "makes the index")
                .help("put `index` before it"),
            None => diagnostic.help(format!(
                "add `index` before it, or set `{PATH}.secondary-index = false`"
            )),
        };
    }
}
