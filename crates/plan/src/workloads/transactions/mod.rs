//! Reads `[workload.transactions]`: the parameters of transactions on tables of a script.
//!
//! ```text
//! script ──► parser (tokens, values) ──► sql, actions, items ──► Script ──► steps
//! ```

mod actions;
mod bounded;
mod items;
mod options;
mod parser;
mod pauses;
mod sql;
mod table_values;
#[cfg(test)]
mod tests;
mod texts;

use std::ops::RangeInclusive;

use serde_json::{Value as Json, json};
use words::excerpt;

use crate::reading::context::{Context, Section, ValueKind};
use crate::reading::quantity::Quantity;
use crate::reading::value_kinds::Choice;
use crate::spec::transactions::{Form, Mix, Script, ScriptStatements, SqlPiece, Unfit};
use crate::spec::{Transactions, TransactionsStep, TransactionsStepKind};
use crate::text::diagnostic::{Diagnostic, Place};
use crate::text::tree::Node;
use crate::text::wording::{code, list, quoted};
use crate::workloads::step::{self, StepKind, StepName, StepNames};
use crate::workloads::step_policy;

use items::Sizes;
use options::TestOptions;

const PATH: &str = "workload.transactions";

/// The scripts of Assay.
const BUILTIN: [(&str, &str); 3] = [
    ("tpcb", include_str!("tpcb.script")),
    ("orders", include_str!("orders.script")),
    ("ycsb", include_str!("ycsb.script")),
];

const SCALE: RangeInclusive<u32> = 1..=10_000_000;
const LOAD_CONNECTIONS: RangeInclusive<u32> = 1..=1_000;
const LOAD_BATCH: RangeInclusive<u32> = 1..=10_000;
/// The maximum length of a statement in a message, in characters.
const EXCERPT_CHARS: usize = 60;

/// A step, as its name describes it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Load,
    Index,
    Settle,
    /// Runs a test, by its index.
    Run(usize),
}

/// The facts of a script that the names of steps depend on.
struct Known {
    tests: Vec<Mix>,
    has_indexes: bool,
}

impl StepKind for Kind {
    type Known = Known;
    const REPEATED: &'static str = "tpcb.2";

    fn defaults(known: &Known) -> Vec<&str> {
        let mut steps = vec!["load"];
        steps.extend(known.has_indexes.then_some("index"));
        steps.push("settle");
        // A transaction is a step of its own where the script defines no mix.
        let has_mix = known.tests.iter().any(|test| test.is_defined);
        let tests = known.tests.iter().filter(|test| test.is_defined || !has_mix);
        steps.extend(tests.map(|test| test.name.as_str()));
        steps
    }

    fn parse(name: &str, known: &Known) -> Option<Self> {
        match name {
            "load" => Some(Self::Load),
            "index" => Some(Self::Index),
            "settle" => Some(Self::Settle),
            _ => known.tests.iter().position(|test| test.name == name).map(Self::Run),
        }
    }

    fn names(known: &Known) -> Vec<&str> {
        let mut names = vec!["load", "index", "settle"];
        names.extend(known.tests.iter().map(|test| test.name.as_str()));
        names
    }

    fn can_repeat(self) -> bool {
        !matches!(self, Self::Load | Self::Index)
    }

    fn may_precede_load(self) -> bool {
        self == Self::Index
    }
}

/// The text of a script in a plan.
struct ScriptText;

impl ValueKind for ScriptText {
    type Value = String;

    fn read(&self, cx: &mut Context<'_>, name: &str, node: &Node) -> Option<String> {
        let help = "write it between three quotes: `script = '''...'''`";
        cx.text(name, node, "a string with a script", help).map(str::to_owned)
    }

    fn show(&self, value: &String) -> String {
        quoted(value)
    }

    fn schema(&self) -> Json {
        json!({ "type": "string", "minLength": 1 })
    }
}

/// Reads `[workload.transactions]`.
pub(crate) fn read(
    cx: &mut Context<'_>,
    node: Node,
    clients_max: Option<u32>,
) -> Option<Transactions> {
    let section = &mut Section::of(cx, PATH, node)?;

    // Keys are read in the order in which listings show them.
    let source = Source::read(cx, section);
    let scale = cx.value(section, "scale", &Quantity::count(SCALE), 1);
    let load_connections =
        cx.value(section, "load-connections", &Quantity::count(LOAD_CONNECTIONS), 4);
    let load_batch = cx.value(section, "load-batch", &Quantity::count(LOAD_BATCH), 1_000);
    let statements = cx.value(
        section,
        "statements",
        &Choice(ScriptStatements::NAMES),
        ScriptStatements::Portable,
    );
    let form_place = section.place_of("form");
    let form = cx.value(section, "form", &Choice(Form::NAMES), Form::Statements);
    let options = TestOptions::read(cx, section);
    let policy = step_policy::read(cx, section, true);

    let sizes = Sizes { scale: scale.into(), clients: clients_max.unwrap_or(1) };
    let script = source.and_then(|source| source.script(cx, sizes));
    let Some(script) = script else {
        // The names of steps are not known, so nothing can be said about them.
        return None;
    };

    check_form(cx, form, form_place, &script);

    let known = Known { tests: script.tests.clone(), has_indexes: script.has_indexes() };
    let names = step::names::<Kind>(cx, section, &known);
    options.check(cx, &script);
    let steps = step::steps(cx, section, &names, &known, |cx, name, _, section| TransactionsStep {
        name: name.name.clone(),
        kind: step(cx, name, section, &options, &script),
    });
    section.finish(cx);

    if names.trusted {
        check_order(cx, &names, &known);
    }

    Some(Transactions {
        steps,
        script,
        scale,
        load_connections,
        load_batch,
        statements,
        form,
        policy,
    })
}

/// The place that a plan names for its script.
enum Source {
    /// A script of Assay.
    Builtin(&'static str),
    /// A text in the plan.
    Own(Node, String),
}

impl Source {
    /// Takes `use` or `script`; reports a plan with both or neither.
    fn read(cx: &mut Context<'_>, section: &mut Section) -> Option<Self> {
        let builtin_place = section.place_of("use");
        let builtin = cx.given(section, "use", &Choice(&BUILTIN));

        let own = section.take("script").map(|entry| entry.node);
        cx.note_schema(&section.name_of("script"), &ScriptText, None);

        match (builtin, own) {
            (Some(text), None) => Some(Self::Builtin(text)),
            (None, Some(node)) => {
                let text = ScriptText.read(cx, &section.name_of("script"), &node)?;
                cx.resolve(section.name_of("script"), quoted(&text), node.place);
                Some(Self::Own(node, text))
            }
            (Some(_), Some(node)) => {
                let message = format!("`{PATH}.use` and `{PATH}.script` cannot be combined");
                cx.error("plan::conflict", node.place, message)
                    .label("another script")
                    .also(builtin_place, "one of Assay's scripts")
                    .help("remove one of them");
                None
            }
            // A value of `use` that is unknown is reported already.
            (None, None) if builtin_place != Place::Nowhere => None,
            (None, None) => {
                let names = BUILTIN.map(|(name, _)| name);
                let help =
                    format!("add `use` with one of {}, or `script` with your own", list(&names));
                let message = format!("{} has no script", code(&format!("[{PATH}]")));
                cx.error("plan::missing-key", section.place, message)
                    .label("neither `use` nor `script`")
                    .help(help);
                None
            }
        }
    }

    /// Reads the script; reports its first fault.
    fn script(&self, cx: &mut Context<'_>, sizes: Sizes) -> Option<Script> {
        let text = match self {
            Self::Builtin(text) => text,
            Self::Own(_, text) => text.as_str(),
        };

        let fault = match items::script(text, sizes) {
            Ok(script) => return Some(script),
            Err(fault) => *fault,
        };
        let place = match (self, fault.place) {
            (Self::Own(node, _), Place::File(span)) => cx.within(node, span.start, span.end),
            // A unit test reads all scripts of Assay.
            _ => Place::Nowhere,
        };
        cx.diagnostics.push(Diagnostic { place, ..fault });
        None
    }
}

/// Reads the work of a step from its name and its table.
fn step(
    cx: &mut Context<'_>,
    name: &StepName<Kind>,
    section: &mut Section,
    options: &TestOptions,
    script: &Script,
) -> TransactionsStepKind {
    let test = match name.kind {
        Kind::Load => return TransactionsStepKind::Load,
        Kind::Index => return TransactionsStepKind::Index,
        Kind::Settle => return TransactionsStepKind::Settle,
        Kind::Run(test) => test,
    };

    options.of_step(cx, section, script, test)
}

/// Reports the first transaction that the form cannot run.
fn check_form(cx: &mut Context<'_>, form: Form, place: Place, script: &Script) {
    for transaction in &script.transactions {
        let Some(unfit) = form.unfit(transaction) else {
            continue;
        };

        let (label, help) = match unfit {
            Unfit::Several(statement) => {
                let fixed = statement.pieces.iter().map(|piece| match piece {
                    SqlPiece::Fixed(fixed) => fixed.as_str(),
                    _ => "?",
                });
                let sql = excerpt(&fixed.collect::<String>(), EXCERPT_CHARS);
                let help = "let the statement return one row, with `expect 1:` or `expect 0..1:`";
                (format!("{} may return several rows", code(&sql)), help)
            }
            Unfit::OfClient(function) => {
                let help = "compute it with `let` before the first statement";
                (format!("only a client can compute {}", code(function)), help)
            }
        };

        let name = code(&transaction.name);
        let message = format!("transaction {name} cannot run in the form {}", code(form.name()));
        cx.error("plan::conflict", place, message).label(label).help(help);
        return;
    }
}

/// Reports steps that come before what they need.
fn check_order(cx: &mut Context<'_>, names: &StepNames<Kind>, known: &Known) {
    if !step::check_load(cx, names, Kind::Load, "tables") {
        let message = format!("`{PATH}.steps` has no step that loads the tables");
        cx.error("plan::step-order", names.place, message)
            .label("nothing to measure")
            .help("start the list with `load`");
    }
    step::check_once(cx, names, Kind::Load, "the tables are loaded");
    step::check_once(cx, names, Kind::Index, "the indexes exist");

    let mut steps = names.value.iter();
    let index = steps.find(|(step, _)| step.kind == Kind::Index);
    if let Some((_, place)) = index
        && !known.has_indexes
    {
        cx.error("plan::conflict", *place, "step `index` has no index to create")
            .label("the script has none")
            .help("remove the step");
    }
}
