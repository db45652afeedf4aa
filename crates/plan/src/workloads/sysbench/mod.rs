//! Reads `[workload.sysbench]`: the parameters of the sysbench microbenchmarks, and tests that a
//! plan defines.

mod builtin;
mod expression;
mod names;
mod parser;
mod placeholder;
mod read;
mod statement;
#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::{Value as Json, json};
use words::named_enum;

use crate::reading::context::{Context, Field, Section, ValueKind};
use crate::reading::quantity::Quantity;
use crate::reading::value_kinds::{Choice, Flag, check_name};
use crate::spec::sysbench::Distribution;
use crate::spec::{Sysbench, SysbenchStep, SysbenchStepKind};
use crate::text::diagnostic::{Diagnostic, Place, Severity};
use crate::text::tree::Node;
use crate::text::wording::{code, did_you_mean, key_part, list, nearest, quoted};
use crate::workloads::step::{self, StepKind, StepName, StepNames};
use crate::workloads::step_policy;
use crate::workloads::test_rate::RateKeys;

use builtin::BUILTIN;
use read::{ParsedTest, Setting, TestSource, TestTime, Whole};

const PATH: &str = "workload.sysbench";

/// The keys that every step has that runs a test.
const RUN_KEYS: [&str; 7] =
    ["time", "warmup", "distribution", "rate", "max", "measured-max", "reported"];

/// Each table is a file or several.
const TABLES: RangeInclusive<u32> = 1..=10_000;
/// `id` is a 32-bit integer; some values are left for rows that are inserted later.
const ROWS: RangeInclusive<u64> = 1..=2_000_000_000;
const LOAD_CONNECTIONS: RangeInclusive<u32> = 1..=1_000;
/// With four values per row, a statement has fewer parameters than SQLite allows.
const LOAD_BATCH: RangeInclusive<u32> = 1..=8_000;
const TIME_MAX: Duration = Duration::from_secs(365 * 24 * 3600);
/// The longest default time of a step that only warms up.
const WARMUP_STEP_TIME_MAX: Duration = Duration::from_secs(60);
/// The beginning of the suffix of steps that only warm up for later steps.
const WARMUP_SUFFIX: &str = "warm";

/// A step, as its name describes it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Load,
    Index,
    Settle,
    /// Runs a test, by its index.
    Run {
        test: usize,
        /// The index of the argument that the name sets, and its value.
        argument: Option<(usize, i64)>,
    },
}

named_enum! {
    /// The built-in lists of steps.
    pub enum StepList {
        /// A few tests of each group.
        Short = "short",
        /// The list in use until April 2025.
        Classic = "classic",
        /// The list in use since April 2025.
        Current = "current",
    }
}

/// The options that the names of steps depend on.
struct Known {
    /// Tests that the plan defines; their indexes come after those of the built-in tests.
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
        steps.filter(|step| known.secondary_index || *step != "index").collect()
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
            return Some(Self::Run { test, argument: None });
        }

        let (name, setting) = name.rsplit_once('.')?;
        let test = index(name)?;
        let arguments = &known.test(test)?.arguments;
        let argument = (0..).zip(arguments).find_map(|(at, argument)| {
            let digits = setting.strip_prefix(argument.name.as_str())?;
            Some((at, number(digits)?))
        });
        argument.map(|argument| Self::Run { test, argument: Some(argument) })
    }

    fn can_repeat(self) -> bool {
        !matches!(self, Self::Load | Self::Index)
    }

    fn names(known: &Known) -> Vec<&str> {
        let mut names = vec!["load", "index", "settle"];
        names.extend(known.tests().map(|test| test.name.as_str()));
        let classic = BUILTIN.order(StepList::Classic).iter().map(String::as_str);
        names.extend(classic.filter(|name| name.contains(".range")));
        names
    }

    fn describe_names(known: &Known) -> String {
        let tests: Vec<&str> = known.tests().map(|test| test.name.as_str()).collect();
        format!(
            "`load`, `index`, `settle`, and the tests {}, also with an argument: `read-only.range10`",
            list(&tests)
        )
    }
}

/// Reads the value of an argument in a step's name.
fn number(digits: &str) -> Option<i64> {
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    digits.parse().ok().filter(|_| is_number)
}

/// A distribution: `"uniform"`, `"zipfian"`, `"zipfian(0.99)"`.
struct DistributionKind;

impl ValueKind for DistributionKind {
    type Value = Distribution;

    fn read(&self, cx: &mut Context<'_>, name: &str, node: &Node) -> Option<Distribution> {
        const HELP: &str = "allowed: `uniform`, `zipfian`, or `zipfian(0.99)` with an exponent above 0 and up to 10";
        let text = cx.text(name, node, "a string", HELP)?;
        let exponent = match text {
            "uniform" => return Some(Distribution::Uniform),
            "zipfian" => Some(expression::EXPONENT),
            _ => text
                .strip_prefix("zipfian(")
                .and_then(|text| text.strip_suffix(')'))
                .and_then(parser::exponent),
        };

        if exponent.is_none() {
            let message = format!("{} has an unknown value: {}", code(name), code(text));
            let suggestion = did_you_mean(text, &["uniform", "zipfian"]);
            cx.error("plan::unknown-value", node.place, message)
                .label("not an allowed value")
                .help(format!("{suggestion}{HELP}"));
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

/// Reads `[workload.sysbench]`.
pub(crate) fn read(cx: &mut Context<'_>, node: Node, clients_max: Option<u32>) -> Option<Sysbench> {
    let section = &mut Section::of(cx, PATH, node)?;

    // Keys are read in the order in which listings show them.
    let tables = TableKeys::read(cx, section);
    let defaults = Defaults::read(cx, section, &tables, clients_max);
    let policy = step_policy::read(cx, section, true);
    let order = cx.field(section, "order", &Choice(StepList::NAMES), StepList::Short);

    // Steps are read last: their names may be those of the plan's own tests.
    let own = own_tests(cx, section, &defaults.setting);
    let known = Known { own, order: order.value, secondary_index: tables.secondary_index.value };
    let names = step::names::<Kind>(cx, section, &known);
    if names.place == Place::Nowhere {
        // The steps are those that `order` selects.
        cx.follows_from(order.place);
    } else if order.place != Place::Nowhere {
        refuse_two_lists(cx, names.place, order.place);
    }

    let steps = step::steps(cx, section, &names, &known, |cx, name, _, section| {
        let listed = names.value.iter().find(|(other, _)| other == name);
        let place = listed.map_or(names.place, |(_, place)| *place);
        SysbenchStep {
            name: name.name.clone(),
            kind: step(cx, name, place, section, &known, &defaults),
        }
    });
    section.finish(cx);

    if names.trusted {
        report_unused(cx, &known, &names);
        report_suffixes(cx, &known, &names);
        check_order(cx, &names, &known, &tables.secondary_index);
    }

    Some(Sysbench {
        steps,
        tables: tables.count,
        rows: tables.rows,
        load_connections: tables.load_connections,
        load_batch: tables.load_batch,
        secondary_index: tables.secondary_index.value,
        primary_key: tables.primary_key,
        policy,
    })
}

/// The keys of the tables, and of the step that loads them.
struct TableKeys {
    count: u32,
    rows: u64,
    load_connections: u32,
    load_batch: u32,
    secondary_index: Field<bool>,
    primary_key: bool,
}

impl TableKeys {
    fn read(cx: &mut Context<'_>, section: &mut Section) -> Self {
        let connections = Quantity::count(LOAD_CONNECTIONS);
        Self {
            count: cx.value(section, "tables", &Quantity::count(TABLES), 1),
            rows: cx.value(section, "rows", &Quantity::count(ROWS), 100_000),
            load_connections: cx.value(section, "load-connections", &connections, 4),
            load_batch: cx.value(section, "load-batch", &Quantity::count(LOAD_BATCH), 1_000),
            secondary_index: cx.field(section, "secondary-index", &Flag, true),
            primary_key: cx.value(section, "primary-key", &Flag, true),
        }
    }
}

/// Reports a plan that selects a list of steps and gives another one.
fn refuse_two_lists(cx: &mut Context<'_>, steps: Place, order: Place) {
    let message = format!("`{PATH}.order` and `{PATH}.steps` cannot be combined");
    cx.error("plan::conflict", order, message)
        .label("selects a built-in list of steps")
        .also(steps, "gives another list")
        .help("remove one of them");
}

fn own_tests(cx: &mut Context<'_>, section: &mut Section, setting: &Setting) -> Vec<TestSource> {
    let path = section.name_of("test");
    let table = cx.table(section, "test");
    let mut tests = Vec::new();
    for entry in table.entries {
        let place = entry.key_place;
        check_name(cx, "invalid name of a test", &entry.key, place);

        let is_step = ["load", "index", "settle"].contains(&entry.key.as_str());
        if is_step || BUILTIN.tests.iter().any(|test| test.name == entry.key) {
            let label = if is_step {
                "a built-in step has this name"
            } else {
                "a built-in test has this name"
            };
            let message = format!("test {} exists already", code(&entry.key));
            cx.error("plan::conflict", place, message).label(label).help(
                "rename it; to change the arguments of a built-in test, use its step's table",
            );
        }

        let test_path = format!("{path}.{}", key_part(&entry.key));
        if let Some(mut test) = TestSource::new(cx, &test_path, &entry.key, place, entry.node) {
            test.read(cx, setting);
            tests.push(test);
        }
    }
    tests
}

/// The options that a step takes from the workload unless its own table sets them.
struct Defaults {
    setting: Setting,
    warmup: Field<Duration>,
    read_time: Field<Duration>,
    write_time: Field<Duration>,
    distribution: Field<Distribution>,
    rate: RateKeys,
}

impl Defaults {
    /// Reads the options. `clients_max` is the largest number of clients.
    fn read(
        cx: &mut Context<'_>,
        section: &mut Section,
        tables: &TableKeys,
        clients_max: Option<u32>,
    ) -> Self {
        let uniform = Distribution::Uniform;
        let warmups = Quantity::time(Duration::ZERO..=TIME_MAX);
        let times = Quantity::time(step::TIME_MIN..=TIME_MAX);

        let distribution = cx.field(section, "distribution", &DistributionKind, uniform);
        let prepared = cx.value(section, "prepared", &Flag, true);
        let warmup = cx.field(section, "warmup", &warmups, Duration::from_secs(5));
        let read_time = cx.field(section, "read-time", &times, Duration::from_secs(10));
        let write_time = cx.field(section, "write-time", &times, Duration::from_secs(10));
        let rate = RateKeys::read(cx, section);

        let clients = clients_max.unwrap_or(1);
        let setting = Setting { rows: tables.rows, tables: tables.count, clients, prepared };
        Self { setting, warmup, read_time, write_time, distribution, rate }
    }
}

/// Reads the work of a step from its name, its table and the workload.
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
    let is_warmup = is_warmup(name, test, argument);

    let (values, place) = arguments(cx, test, argument, section);
    let here = place.or(name_place);
    let parsed = with_arguments(cx, test, &values, name, here, &defaults.setting);

    // The keys are read even if the test is wrong, to report their errors as well.
    let test_time = parsed.as_ref().map_or(TestTime::Read, |parsed| parsed.time);
    let time = match test_time {
        TestTime::Write if !is_warmup => &defaults.write_time,
        _ => &defaults.read_time,
    };
    let time_max = if is_warmup { WARMUP_STEP_TIME_MAX } else { TIME_MAX };
    let times = Quantity::time(step::TIME_MIN..=TIME_MAX);
    let time = cx.inherited(section, "time", &times, time, time.value.min(time_max));

    let warmups = Quantity::time(Duration::ZERO..=TIME_MAX);
    let warmup = if is_warmup {
        cx.field(section, "warmup", &warmups, Duration::ZERO)
    } else {
        let from = &defaults.warmup;
        cx.inherited(section, "warmup", &warmups, from, from.value)
    };
    let from = &defaults.distribution;
    let distribution = cx.inherited(section, "distribution", &DistributionKind, from, from.value);
    let rate = defaults.rate.of_step(cx, section);
    let reported = cx.field(section, "reported", &Flag, !is_warmup);

    let Some(parsed) = parsed else {
        return SysbenchStepKind::Settle;
    };
    check_ranges(cx, name, here, test, &values, &parsed.ranges, defaults.setting.rows);
    SysbenchStepKind::Run {
        test: parsed.test,
        time: time.value,
        warmup: warmup.value,
        distribution: distribution.value,
        rate: rate.value,
        reported: reported.value,
    }
}

/// Returns whether a step's suffix says that it warms up, rather than sets an argument.
fn is_warmup(name: &StepName<Kind>, test: &TestSource, argument: Option<(usize, i64)>) -> bool {
    let Some((_, suffix)) = name.name.rsplit_once('.') else {
        return false;
    };
    let sets_argument =
        argument.is_some_and(|(at, value)| suffix == format!("{}{value}", test.arguments[at].name));
    suffix.starts_with(WARMUP_SUFFIX) && !sets_argument
}

/// Reads a test with the values of a step's arguments. Reports the first error at `place`, since
/// the arguments cause it.
fn with_arguments(
    cx: &mut Context<'_>,
    test: &TestSource,
    values: &[i64],
    name: &StepName<Kind>,
    place: Place,
    setting: &Setting,
) -> Option<ParsedTest> {
    let mut test_cx = Context::new("");
    let parsed = test.read_with(&mut test_cx, values, setting);

    // Errors of the test itself are reported where it is defined.
    if test.is_valid {
        let mut diagnostics = test_cx.diagnostics.into_iter();
        let error = diagnostics.find(|diagnostic| diagnostic.severity == Severity::Error);
        let help = vec![format!("change the arguments of step {}", code(&name.name))];
        cx.diagnostics.extend(error.map(|error| Diagnostic { place, help, ..error }));
    }
    parsed
}

/// Reports an argument that makes ranges of more rows than a table has.
fn check_ranges(
    cx: &mut Context<'_>,
    name: &StepName<Kind>,
    place: Place,
    test: &TestSource,
    values: &[i64],
    ranges: &[String],
    rows: u64,
) {
    let arguments = test.arguments.iter().zip(values);
    let too_long = arguments
        .filter(|(argument, _)| ranges.contains(&argument.name))
        .find(|(_, value)| u64::try_from(**value).is_ok_and(|value| value > rows));
    if let Some((_, value)) = too_long {
        let message = format!(
            "step {} reads ranges of {value} rows, but a table has only {rows}",
            code(&name.name)
        );
        cx.error("plan::out-of-range", place, message)
            .label(format!("allowed: at most {rows}"))
            .help("use more `rows`, or a smaller range");
    }
}

/// Takes the values of a step's arguments, one of which its name may set, and the place of the
/// first in its table.
fn arguments(
    cx: &mut Context<'_>,
    test: &TestSource,
    named: Option<(usize, i64)>,
    section: &mut Section,
) -> (Vec<i64>, Place) {
    let mut values = Vec::new();
    let mut place = Place::Nowhere;
    for (index, argument) in test.arguments.iter().enumerate() {
        let by_name = named.filter(|(at, _)| *at == index);
        let default = by_name.map_or(argument.value, |(_, value)| value);
        let field = cx.field(section, &argument.name, &Whole, default);
        if by_name.is_some_and(|(_, value)| field.trusted && field.value != value) {
            let message = format!(
                "{} is {}, but the step's name says {default}",
                code(&section.name_of(&argument.name)),
                field.value
            );
            cx.error("plan::conflict", field.place, message)
                .label("conflicts with the step's name")
                .help("remove it, or rename the step, with a suffix of your own");
        }

        place = place.or(field.place);
        values.push(field.value);
    }
    (values, place)
}

/// Reports tests that no step runs.
fn report_unused(cx: &mut Context<'_>, known: &Known, names: &StepNames<Kind>) {
    for (index, test) in (BUILTIN.tests.len()..).zip(&known.own) {
        let runs = |kind: Kind| matches!(kind, Kind::Run { test, .. } if test == index);
        if names.value.iter().any(|(name, _)| runs(name.kind)) {
            continue;
        }
        let message = format!("no step runs test {}", code(&test.name));
        cx.warning("plan::unused-test", test.place, message)
            .label("does not run")
            .also(names.place, "the steps that run")
            .help(format!("add it to `{PATH}.steps`, or remove it"));
    }
}

/// Reports suffixes that look like arguments but set none, such as `rnage100` in
/// `range-covered-pk.rnage100`: the step would run with the default of `range`.
fn report_suffixes(cx: &mut Context<'_>, known: &Known, names: &StepNames<Kind>) {
    for (name, place) in &names.value {
        let Kind::Run { test, argument: None } = name.kind else {
            continue;
        };

        let suffix = name.name.rsplit_once('.').map_or("", |(_, suffix)| suffix);
        let word = suffix.trim_end_matches(|c: char| c.is_ascii_digit());
        let has_value = word != suffix;

        let mut own: Vec<&str> = Vec::new();
        for argument in known.test(test).iter().flat_map(|test| &test.arguments) {
            own.push(&argument.name);
        }
        let looks_like_argument =
            nearest(word, &own).is_some() || nearest(word, &["range"]).is_some();
        if word.is_empty() || !has_value || !looks_like_argument {
            continue;
        }

        let help = match own.as_slice() {
            [] => "the test has no arguments; use another suffix".to_owned(),
            own => format!(
                "arguments of the test: {}; a value is a whole number from 1, without leading zeros",
                list(own)
            ),
        };
        let message = format!("{} of step {} sets no argument", code(suffix), code(&name.name));
        cx.warning("plan::unknown-argument", *place, message)
            .label("only tells it from other steps of the same test")
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
    // Without a load, the tables and their indexes exist already, in a server that Assay does not
    // start.
    if !step::check_load(cx, names, Kind::Load, "tables") {
        return;
    }
    step::check_once(cx, names, Kind::Load, "the tables are loaded");
    step::check_once(cx, names, Kind::Index, "the indexes exist");

    let steps = &names.value;
    let index = steps.iter().position(|(step, _)| step.kind == Kind::Index);
    if let Some(at) = index
        && secondary_index.trusted
        && !known.secondary_index
    {
        let message = "step `index` creates an index, but `secondary-index` is false";
        cx.error("plan::conflict", steps[at].1, message)
            .label("creates the index on `k`")
            .also(secondary_index.place, "no index on `k`")
            .help(format!("remove the step, or set `{PATH}.secondary-index = true`"));
    }

    let before = &steps[..index.unwrap_or(steps.len())];
    let run = before.iter().find(|(step, _)| matches!(step.kind, Kind::Run { .. }));
    if let Some((step, place)) = run
        && known.secondary_index
    {
        let message = format!("step {} comes before the index on `k`", code(&step.name));
        let diagnostic = cx
            .warning("plan::step-order", *place, message)
            .label("there is no secondary index yet");
        match index {
            Some(at) => {
                diagnostic.also(steps[at].1, "creates the index").help("move `index` before it")
            }
            None => diagnostic
                .help(format!("add `index` before it, or set `{PATH}.secondary-index = false`")),
        };
    }
}
