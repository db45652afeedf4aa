//! Reads the text of a plan, and returns its targets, workloads and cells, or diagnostics with line
//! and column.
//!
//! ```text
//! plan file ──► document ──► tree ──► context, value_kinds, quantity ──► workloads ──┐
//! --set     ──► overrides ───┘                                       └─► compared ───┴──► Plan ──► cells
//!                                                                                    └──► diagnostics ──► render
//! ```
//!
//! From the bottom up: `text` has the tree of a plan's values with the place of each, and the
//! diagnostics that point there. `spec` has the resolved plan. `reading` takes values out of the
//! tree: `document` parses TOML, `overrides` applies `--set` arguments, and `context` reports what
//! is wrong with a value and notes its origin. `compared` reads the tables of what is compared, and
//! `workloads` those of what is run. A plan that is not TOML is the only error that stops the
//! reading. Nothing here does I/O.
//!
//! ```
//! let text = "
//! [workload.insert]
//! [build.lite]
//! sqlite = 'bundled'
//! [config.sqlite.fast]
//! set.synchronous = 'off'
//! [config.sqlite.safe]
//! set.synchronous = 'full'
//! ";
//! let (plan, _warnings) = plan::parse("demo.toml", text, &["clients=1,4".to_owned()]).unwrap();
//! for cell in plan.cells() {
//!     println!("{} with {} clients", plan.targets[cell.target].name, cell.clients);
//! }
//! assert_eq!(plan.cells().len(), 4);
//!
//! let text = text.replace("insert", "insrt");
//! let errors = plan::parse("demo.toml", &text, &[]).unwrap_err();
//! let shown = plan::render(&errors, "demo.toml", &text, &[], false);
//! assert!(shown.contains("demo.toml:2:11") && shown.contains("did you mean `insert`?"));
//! ```

mod bases;
mod cells;
mod compared;
mod descriptions;
#[cfg(test)]
mod doc_tables;
pub mod draft;
mod excerpt;
mod needs;
mod rates;
mod reading;
mod repeats;
mod schema;
mod spec;
mod text;
mod turns;
mod workloads;

pub use cells::{Cell, NotApplicable};
pub use compared::builds::BUNDLED;
pub use excerpt::{Excerpt, excerpt};
pub use needs::{SpeedBasis, WorkTime, WorkloadNeeds};
pub use reading::quantity::{parse_duration, parse_rate, parse_size};
pub use repeats::{REPEATS_MAX, UNTIL_DECIDED};
pub use schema::schema;
pub use spec::sysbench::Distribution;
pub use spec::*;
pub use text::diagnostic::{Diagnostic, Place, Severity, Span};
pub use text::render::render;
pub use text::wording::{key_part, quoted};

use std::net::IpAddr;
use std::time::Duration;

use bases::{BaseKeys, Bases};
use compared::Compared;
use compared::builds::DeclaredBuild;
use reading::context::{Context, Field, Section};
use reading::quantity::Quantity;
use reading::value_kinds::{
    Choice, Flag, IpAddress, Line, ListOf, Name, Optional, ReuseValue, Script, is_name,
};
use reading::{document, overrides};
use repeats::Repeats;
use spec::transactions::Form;
use text::tree::Table;
use text::wording::code;
use turns::TurnKind;
use words::EngineInterface;
use workloads::chosen_steps::ChosenSteps;

/// The plan of `assay run` without a plan; its path is [`DEFAULT_PLAN_PATH`].
pub const DEFAULT_PLAN: &str = include_str!("default.toml");

/// The name that messages show instead of a path for [`DEFAULT_PLAN`].
pub const DEFAULT_PLAN_PATH: &str = "built-in plan";

const SERVER_TIMEOUT: Duration = Duration::from_secs(120);
const STEP_COMMAND_TIMEOUT: Duration = Duration::from_secs(600);
/// Not a divisor of the rates at which programs wake up, so that samples don't keep step with them.
const FREQUENCY_HZ: u32 = 199;
/// The default number of exact cells of each target. Two are often close to each other by chance.
pub const EXACT_REPEATS: u32 = 3;
/// The default number of operations of each connection that an exact cell counts in a step.
const EXACT_OPERATIONS: u64 = 500;
/// The default number of operations of each connection before those: they fill the caches of plans,
/// pages and catalogs. A cache that still grows asks the C library for memory, whose work depends on
/// which thread was first: 1.4% of a point query of SQLite.
const EXACT_WARMUP: u64 = 2000;
const EXACT_OPERATIONS_MAX: u64 = 10_000_000;

/// Parses a plan, and returns it with its warnings. `path` is where its text came from, for
/// messages and for the name of a plan that has none. `sets` are the arguments of `--set`, which
/// override the text in their order.
///
/// # Errors
/// Returns all diagnostics, warnings included, sorted by position; at least one of them is an
/// error.
pub fn parse(
    path: &str,
    text: &str,
    sets: &[String],
) -> Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>> {
    let mut cx = Context::new(text);
    cx.table_with = schema::table_with;
    let Some(mut root) = document::read(&mut cx, text) else {
        return Err(cx.diagnostics);
    };

    overrides::apply(&mut cx, &mut root, sets);
    let plan = read(&mut cx, path, root);
    cx.diagnostics.sort_by_key(|diagnostic| diagnostic.place);
    match plan {
        Some(plan) if cx.errors() == 0 => Ok((plan, cx.diagnostics)),
        _ => Err(cx.diagnostics),
    }
}

/// Reads all of a plan. Reports what it cannot read; returns `None` only where it cannot continue.
fn read(cx: &mut Context<'_>, path: &str, root: Table) -> Option<Plan> {
    let section = &mut Section::new("", root, Place::Nowhere);

    // How cells are measured. Values are listed in the order in which they are read.
    let name = cx.value(section, "name", &Name, name_from(path));
    let cell_keys = CellKeys::read(cx, section);
    let base_keys = BaseKeys::take(cx, section);
    let seed = cx.value(section, "seed", &Quantity::count(0..=u64::MAX), 1);
    let surroundings = Surroundings::read(cx, section);
    let rates = rates::read(cx, section);
    let profile = profile(cx, section);
    let exact = exact(cx, section);

    // What runs, and what is compared.
    let chosen = ChosenSteps::read(cx, section, surroundings.reuse);
    let variants = variants(cx, section, cell_keys.clients_max(), &chosen);
    let against_itself = base_keys.is_against_itself();
    let mut compared = Compared::read(cx, section, base_keys.base(), against_itself);
    section.finish(cx);

    // What does not go together.
    chosen.check(cx, cell_keys.turns.is_some(), exact.repeats > 0);
    check_engines(cx, variants.as_deref(), &compared.builds);
    base_keys.pair_with_twin(cx, &mut compared);
    let has_comparisons = compared.targets.len() != 1 || has_variants(variants.as_deref());
    cell_keys.repeats.check(cx, has_comparisons, surroundings.reuse);

    let first = first_measured(cx, variants.as_deref(), &compared.builds, &compared.targets);

    // Without a base or a workload, there is no plan. The reason is reported already.
    let Bases { base, groups } = base_keys.bases(cx, first, &compared)?;
    let variants = variants?;
    let CellKeys { clients, repeats, turns, idle, placement } = cell_keys;
    let Compared { builds, configs, targets, designed, .. } = compared;

    Some(Plan {
        name,
        clients: clients.value.into_iter().map(|(count, _)| count).collect(),
        repeats: repeats.count,
        until_decided: repeats.until_decided,
        order: repeats.order,
        turns,
        idle,
        placement,

        base,
        bases: groups,
        against_itself,

        seed,
        data_dir: surroundings.data_dir,
        keep_data: surroundings.keep_data,
        reuse: surroundings.reuse,
        keep_after: chosen.keep_after.into_iter().map(|(step, _)| step).collect(),
        from: chosen.from.map(|(step, _)| step),
        disk_floor: surroundings.disk_floor,
        system_calls: surroundings.system_calls,
        server_timeout: surroundings.server_timeout,
        server_user: surroundings.server_user,
        listen: surroundings.listen,
        step_commands: surroundings.step_commands,
        rates,
        profile,
        exact,

        variants,
        builds: builds.into_iter().map(|declared| declared.build).collect(),
        configs: configs.into_iter().map(|declared| declared.config).collect(),
        targets,
        designed,

        resolved: std::mem::take(&mut cx.resolved),
    })
}

/// The fields of a [`Plan`] that say how often cells are measured, and in which order.
struct CellKeys {
    clients: Field<Vec<(u32, Place)>>,
    repeats: Repeats,
    turns: Option<TurnLength>,
    idle: Idle,
    placement: Placement,
}

impl CellKeys {
    fn read(cx: &mut Context<'_>, section: &mut Section) -> Self {
        let counts = ListOf(Quantity::count(1..=CLIENTS_MAX), "a list of counts");
        let placements = Choice(Placement::NAMES);

        Self {
            clients: cx.field(section, "clients", &counts, vec![(1, Place::Nowhere)]),
            repeats: Repeats::read(cx, section),
            turns: cx.value(section, "turns", &TurnKind, None),
            idle: cx.value(section, "idle", &Choice(Idle::NAMES), Idle::Frozen),
            placement: cx.value(section, "placement", &placements, Placement::Kernel),
        }
    }

    /// Returns the largest number of clients; `None` if not all numbers could be read.
    fn clients_max(&self) -> Option<u32> {
        let counts = self.clients.value.iter().map(|(count, _)| *count);
        counts.max().filter(|_| self.clients.trusted)
    }
}

/// Returns whether a target is measured under several workloads, or those are not known after an
/// error.
fn has_variants(variants: Option<&[Variant]>) -> bool {
    variants.is_none_or(|variants| {
        variants.len() > 1 && variants.iter().all(|variant| variant.alone.is_none())
    })
}

/// Reads the workloads, and the steps that are measured alone as well. `clients_max` is the largest
/// number of clients.
fn variants(
    cx: &mut Context<'_>,
    section: &mut Section,
    clients_max: Option<u32>,
    chosen: &ChosenSteps,
) -> Option<Vec<Variant>> {
    let alone = cx.given(section, "alone", &ListOf(Line, "a list of steps")).unwrap_or_default();
    let planned = workloads::read(cx, section, clients_max);
    let in_sequence = chosen.apply(cx, planned);
    workloads::alone::add_variants(cx, in_sequence, &alone)
}

/// The fields of a [`Plan`] that say where and how its servers run.
struct Surroundings {
    data_dir: Option<String>,
    keep_data: bool,
    reuse: Reuse,
    disk_floor: bool,
    system_calls: SystemCallSet,
    server_timeout: Duration,
    server_user: Option<String>,
    listen: Option<IpAddr>,
    step_commands: StepCommands,
}

impl Surroundings {
    fn read(cx: &mut Context<'_>, section: &mut Section) -> Self {
        let data_dir = Optional(Line, "(next to the results)");
        let timeout = Quantity::time(Duration::from_secs(1)..=Duration::from_secs(24 * 3600));
        let server_user = Optional(Line, "(chosen when needed)");
        let listen = Optional(IpAddress, "(chosen when needed)");

        Self {
            data_dir: cx.value(section, "data-dir", &data_dir, None),
            keep_data: cx.value(section, "keep-data", &Flag, false),
            reuse: cx.value(section, "reuse", &ReuseValue, Reuse::Off),
            disk_floor: cx.given(section, "disk-floor", &Flag).unwrap_or(false),
            system_calls: cx
                .given(section, "system-calls", &Choice(SystemCallSet::NAMES))
                .unwrap_or(SystemCallSet::Off),
            server_timeout: cx.value(section, "server-timeout", &timeout, SERVER_TIMEOUT),
            server_user: cx.value(section, "server-user", &server_user, None),
            listen: cx.value(section, "listen", &listen, None),
            step_commands: StepCommands {
                before: cx.given(section, "before-step", &Script),
                after: cx.given(section, "after-step", &Script),
                timeout: cx
                    .given(section, "step-command-timeout", &timeout)
                    .unwrap_or(STEP_COMMAND_TIMEOUT),
            },
        }
    }
}

/// Reads the table `[profile]`. Without it, no cell is profiled.
fn profile(cx: &mut Context<'_>, section: &mut Section) -> Profile {
    let table = section.take("profile");
    let table = table.and_then(|entry| Section::of(cx, "profile", entry.node));
    let Some(mut section) = table else {
        return Profile { repeats: 0, frequency_hz: FREQUENCY_HZ, call_graph: CallGraph::Auto };
    };

    let repeats = Quantity::count(1..=REPEATS_MAX);
    let frequency = Quantity::count(1..=10_000);
    let call_graph = Choice(CallGraph::NAMES);
    let profile = Profile {
        repeats: cx.value(&mut section, "repeats", &repeats, 1),
        frequency_hz: cx.value(&mut section, "frequency", &frequency, FREQUENCY_HZ),
        call_graph: cx.value(&mut section, "call-graph", &call_graph, CallGraph::Auto),
    };

    section.finish(cx);
    profile
}

/// Reads the table `[exact]`. Without it, no cell is exact.
fn exact(cx: &mut Context<'_>, section: &mut Section) -> Exact {
    let table = section.take("exact");
    let table = table.and_then(|entry| Section::of(cx, "exact", entry.node));
    let Some(mut section) = table else {
        // A resumed run may add exact cells.
        return Exact {
            repeats: 0,
            operations: EXACT_OPERATIONS,
            warmup: EXACT_WARMUP,
            simulate: Simulate::Nothing,
        };
    };

    let repeats = Quantity::count(1..=REPEATS_MAX);
    let operations = Quantity::count(1..=EXACT_OPERATIONS_MAX);
    let warmup = Quantity::count(0..=EXACT_OPERATIONS_MAX);
    let simulate = Choice(Simulate::NAMES);
    let exact = Exact {
        repeats: cx.value(&mut section, "repeats", &repeats, EXACT_REPEATS),
        operations: cx.value(&mut section, "operations", &operations, EXACT_OPERATIONS),
        warmup: cx.value(&mut section, "warmup", &warmup, EXACT_WARMUP),
        simulate: cx.value(&mut section, "simulate", &simulate, Simulate::Nothing),
    };

    section.finish(cx);
    exact
}

/// Returns the name of a plan that has none: its file's, with `-` for characters that a name cannot
/// have.
fn name_from(path: &str) -> String {
    let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let stem = file.split('.').next().unwrap_or(file);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let chars = stem.chars().map(|c| if is_plain(c) { c } else { '-' });
    let name: String = chars.take(64).collect();
    if is_name(&name) { name } else { "plan".to_owned() }
}

/// Reports builds that the workload cannot run on.
fn check_engines(cx: &mut Context<'_>, variants: Option<&[Variant]>, builds: &[DeclaredBuild]) {
    let Some(variant) = variants.and_then(<[Variant]>::first) else {
        return;
    };
    for DeclaredBuild { build, place } in builds {
        let (workload, why, help) = match (&variant.workload, build.engine.facts().interface) {
            (Workload::Kv(_), EngineInterface::Sql) => (
                "key-value sequence does",
                "is not a key-value store",
                "it runs on builds of `rocksdb` and `library`; for others use `[workload.insert]`",
            ),
            (Workload::Sysbench(_), EngineInterface::Keys) => (
                "sysbench microbenchmarks do",
                "has no SQL",
                "they run on servers and SQLite; for libraries use `[workload.kv]` or `[workload.insert]`",
            ),
            (Workload::Transactions(_), EngineInterface::Keys) => (
                "transactions do",
                "has no SQL",
                "they run on servers and SQLite; for libraries use `[workload.kv]` or `[workload.insert]`",
            ),
            _ => continue,
        };

        let engine = code(build.engine.name());
        let message = format!("the {workload} not run on build {}", code(&build.name));
        cx.error("plan::conflict", *place, message).label(format!("{engine} {why}")).help(help);
    }
    check_forms(cx, variants.unwrap_or_default(), builds);
}

/// Reports builds that cannot run transactions in the form of a variant.
fn check_forms(cx: &mut Context<'_>, variants: &[Variant], builds: &[DeclaredBuild]) {
    let workloads = variants.iter().map(|variant| &variant.workload);
    let forms = workloads.filter_map(|workload| match workload {
        Workload::Transactions(transactions) => Some(transactions.form),
        _ => None,
    });
    let forms: Vec<Form> = forms.collect();

    for DeclaredBuild { build, place } in builds {
        // A build without SQL is reported already.
        let has_sql = build.engine.facts().interface == EngineInterface::Sql;
        let refused =
            forms.iter().find_map(|form| Some((form, form.not_applicable_to(build.engine)?)));
        let Some((form, why)) = refused.filter(|_| has_sql) else {
            continue;
        };

        let (form, build_name) = (code(form.name()), code(&build.name));
        let message = format!("transactions in the form {form} do not run on build {build_name}");
        cx.error("plan::conflict", *place, message)
            .label(format!("{} {why}", code(build.engine.name())))
            .help("use `form = \"statements\"`, or remove the build");
    }
}

/// Returns the index of the first target that has cells. If no target has any, reports that and
/// returns 0.
fn first_measured(
    cx: &mut Context<'_>,
    variants: Option<&[Variant]>,
    builds: &[DeclaredBuild],
    targets: &[Target],
) -> usize {
    let mut not_applicable = None;
    for (index, target) in targets.iter().enumerate() {
        let DeclaredBuild { build, place } = &builds[target.build];
        for variant in variants.unwrap_or_default() {
            match variant.workload.not_applicable_to(build.engine) {
                None => return index,
                Some(why) => not_applicable = not_applicable.or(Some((*place, why))),
            }
        }
    }

    if let Some((place, why)) = not_applicable {
        const MESSAGE: &str = "no target can run the workload: nothing would be measured";
        cx.error("plan::conflict", place, MESSAGE)
            .label(why)
            .help("change the workload, or add a target that can run it");
    }
    0
}
