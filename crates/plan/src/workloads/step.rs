//! The steps of a workload: their names in its list `steps`, and their tables
//! `[workload.X.step.NAME]`.

use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::reading::context::{Context, Field, Section, ValueKind, table_of};
use crate::reading::value_kinds::ListOf;
use crate::text::diagnostic::Place;
use crate::text::tree::{Entry, Node, Table};
use crate::text::wording::{code, did_you_mean, key_part, list, quoted};

/// The shortest time that a plan may give a step. A step shorter than a second has no rates per
/// second.
pub(crate) const TIME_MIN: Duration = Duration::from_millis(100);

/// The kind of a step, as its name says it.
pub(crate) trait StepKind: Copy {
    /// The options of the workload that names of steps depend on.
    type Known;

    /// An example of a name with a suffix, with which a step is repeated.
    const REPEATED: &'static str;

    /// Returns the names of the steps of a plan that lists none.
    fn defaults(known: &Self::Known) -> Vec<&str>;

    /// Reads a name without a suffix; `None` if it is not a step's.
    fn parse(name: &str, known: &Self::Known) -> Option<Self>;

    /// Returns the names among which an unknown name is looked for.
    fn names(known: &Self::Known) -> Vec<&str>;

    /// Returns whether a run can have it more than once.
    fn can_repeat(self) -> bool {
        true
    }

    /// Returns whether the step may come before the one that loads.
    fn may_precede_load(self) -> bool {
        false
    }

    /// Says which step has the work that another tool calls so; `None` if that is not known.
    fn hint(_name: &str) -> Option<String> {
        None
    }

    /// Describes all names, for help.
    fn describe_names(known: &Self::Known) -> String {
        list(&Self::names(known))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct StepName<S> {
    pub(crate) name: String,
    pub(crate) kind: S,
}

impl<S> PartialEq for StepName<S> {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// Suffixes become part of a directory's name.
const SUFFIX_LENGTH_MAX: usize = 32;

fn is_suffix(suffix: &str) -> bool {
    (1..=SUFFIX_LENGTH_MAX).contains(&suffix.len())
        && suffix.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

impl<S: StepKind> StepName<S> {
    /// Reads a name, with or without a suffix; `None` if it is not a step's.
    pub(crate) fn parse(text: &str, known: &S::Known) -> Option<Self> {
        // The whole text first: a name may itself contain a dot.
        let repeated = || match text.rsplit_once('.') {
            Some((name, suffix)) if is_suffix(suffix) => S::parse(name, known),
            _ => None,
        };
        Some(Self { name: text.to_owned(), kind: S::parse(text, known).or_else(repeated)? })
    }
}

/// Lists the names of steps.
fn names_help<S: StepKind>(known: &S::Known) -> String {
    let (all, repeated) = (S::describe_names(known), code(S::REPEATED));
    format!("available steps: {all}; to repeat one, add a suffix: {repeated}")
}

fn unknown_help<S: StepKind>(text: &str, known: &S::Known) -> String {
    let name = text.split_once('.').map_or(text, |(name, _)| name);
    let suggestion = match S::hint(name) {
        Some(hint) => format!("{hint}; "),
        None => did_you_mean(text, &S::names(known)),
    };
    format!("{suggestion}{}", names_help::<S>(known))
}

fn report_unknown(cx: &mut Context<'_>, text: &str, place: Place, within: &str, help: String) {
    let message = format!("unknown step {} in {}", code(text), code(within));
    cx.error("plan::unknown-step", place, message).label("not a step").help(help);
}

/// A step's name in a list of steps.
struct Step<'a, S: StepKind>(&'a S::Known);

impl<S: StepKind> ValueKind for Step<'_, S> {
    type Value = StepName<S>;

    fn read(&self, cx: &mut Context<'_>, name: &str, node: &Node) -> Option<StepName<S>> {
        let text = cx.text(name, node, "the name of a step", &names_help::<S>(self.0))?;
        let step = StepName::parse(text, self.0);
        if step.is_none() {
            let help = unknown_help::<S>(text, self.0);
            report_unknown(cx, text, node.place, name, help);
        }
        step
    }

    fn show(&self, value: &StepName<S>) -> String {
        quoted(&value.name)
    }

    fn help_for_duplicate(&self, value: &StepName<S>) -> String {
        if !value.kind.can_repeat() {
            return "remove one of them".to_owned();
        }

        let base = match (S::parse(&value.name, self.0), value.name.rsplit_once('.')) {
            (None, Some((base, _))) => base,
            _ => &value.name,
        };
        let repeated = format!("{base}.again");

        format!("to repeat a step, add a suffix: {}", code(&repeated))
    }

    fn schema(&self) -> Json {
        // Names may have suffixes; the list is what editors offer.
        json!({ "anyOf": [{ "enum": S::names(self.0) }, { "type": "string" }] })
    }
}

/// The names in a list of steps, each with its place.
pub(crate) type StepNames<S> = Field<Vec<(StepName<S>, Place)>>;

/// Takes the list `steps` of a workload.
pub(crate) fn names<S: StepKind>(
    cx: &mut Context<'_>,
    section: &mut Section,
    known: &S::Known,
) -> StepNames<S> {
    let default = S::defaults(known)
        .iter()
        .filter_map(|name| Some((StepName::parse(name, known)?, Place::Nowhere)))
        .collect();
    let kind = ListOf(Step::<S>(known), "a list of steps");
    cx.field(section, "steps", &kind, default)
}

/// Reports a step before the one that loads `what`, unless it may come first. Returns `false` if no
/// step loads it.
pub(crate) fn check_load<S: StepKind + PartialEq>(
    cx: &mut Context<'_>,
    names: &StepNames<S>,
    load: S,
    what: &str,
) -> bool {
    let mut steps = names.value.iter();
    let Some((load, load_place)) = steps.find(|(step, _)| step.kind == load) else {
        return false;
    };

    let mut others = names.value.iter();
    let first = others.find(|(step, _)| !step.kind.may_precede_load());
    if let Some((first, place)) = first.filter(|(first, _)| first != load) {
        let message = format!("step {} comes before the {what} are loaded", code(&first.name));
        cx.error("plan::step-order", *place, message)
            .label(format!("there are no {what} yet"))
            .also(*load_place, format!("loads the {what}"))
            .help(format!("start the list with {}", code(&load.name)));
    }

    true
}

/// Reports all steps of a kind but the first, after which `done` is true.
pub(crate) fn check_once<S: StepKind + PartialEq>(
    cx: &mut Context<'_>,
    names: &StepNames<S>,
    kind: S,
    done: &str,
) {
    let mut steps = names.value.iter().filter(|(step, _)| step.kind == kind);
    let Some((first, first_place)) = steps.next() else {
        return;
    };

    for (step, place) in steps {
        let (name, first) = (code(&step.name), code(&first.name));
        let message = format!("step {name} repeats {first}, which can run only once");
        cx.error("plan::step-order", *place, message)
            .label(format!("{done} already"))
            .also(*first_place, "by this step")
            .help("remove it");
    }
}

/// Reads the steps with `read`, each from its table and with its number in the list. Reports tables
/// of steps that do not run.
pub(crate) fn steps<S: StepKind, T>(
    cx: &mut Context<'_>,
    section: &mut Section,
    names: &StepNames<S>,
    known: &S::Known,
    mut read: impl FnMut(&mut Context<'_>, &StepName<S>, u32, &mut Section) -> T,
) -> Vec<T> {
    let list = section.name_of("steps");
    let path = section.name_of("step");
    // Variants are read before, and have steps of their own.
    section.allow("variant");
    let table = cx.table(section, "step");

    let mut tables = Vec::new();
    for entry in table.entries {
        let Some(name) = StepName::parse(&entry.key, known) else {
            let beginning = format!("{}.", entry.key);
            let mut steps = S::names(known).into_iter();
            let help = match steps.find(|step| step.starts_with(&beginning)) {
                Some(dotted) => {
                    let header = format!("[{path}.{}]", quoted(dotted));
                    format!("put a name that contains a dot in quotes: `{header}`")
                }
                None => unknown_help::<S>(&entry.key, known),
            };
            report_unknown(cx, &entry.key, entry.key_place, &path, help);
            continue;
        };

        if names.value.iter().any(|(other, _)| *other == name) {
            tables.push(entry);
            continue;
        }

        if names.trusted {
            let listed = names.value.iter().map(|(name, _)| name.name.as_str());
            let suggestion = did_you_mean(&entry.key, &listed.collect::<Vec<_>>());
            let message = format!("step {} has a table, but does not run", code(&entry.key));
            cx.warning("plan::unused-step", entry.key_place, message)
                .label("has no effect")
                .also(names.place, "the steps that run")
                .help(format!("{suggestion}add it to `{list}`, or remove its table"));
        }

        // It is still read, to report its errors.
        let resolved = cx.resolved.len();
        let section = &mut section_of_step(cx, &path, &name.name, Some(entry));
        read(cx, &name, 0, section);
        section.finish(cx);
        cx.resolved.truncate(resolved);
    }

    let mut steps = Vec::new();
    for (number, (name, _)) in (0..).zip(&names.value) {
        let at = tables.iter().position(|entry| entry.key == name.name);
        let entry = at.map(|at| tables.remove(at));
        let section = &mut section_of_step(cx, &path, &name.name, entry);
        steps.push(read(cx, name, number, section));
        section.finish(cx);
    }
    steps
}

/// Returns the table of a step below `path`; an empty one if the plan has none.
fn section_of_step(cx: &mut Context<'_>, path: &str, name: &str, entry: Option<Entry>) -> Section {
    let step_path = format!("{path}.{}", key_part(name));
    let Some(entry) = entry else {
        return Section::new(&step_path, Table::default(), Place::Nowhere);
    };

    let place = entry.node.place;
    let table = table_of(cx, &step_path, entry.node).unwrap_or_default();
    Section::new(&step_path, table, place)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps of a workload, one of whose names contains a dot.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Kind {
        Scan,
        Read,
        ReadTen,
    }

    impl StepKind for Kind {
        type Known = ();
        const REPEATED: &'static str = "scan.2";

        fn defaults((): &()) -> Vec<&str> {
            vec!["scan"]
        }

        fn parse(name: &str, (): &()) -> Option<Self> {
            match name {
                "scan" => Some(Self::Scan),
                "read" => Some(Self::Read),
                "read.range10" => Some(Self::ReadTen),
                _ => None,
            }
        }

        fn names((): &()) -> Vec<&str> {
            vec!["scan", "read", "read.range10"]
        }
    }

    fn kind(text: &str) -> Option<Kind> {
        StepName::parse(text, &()).map(|step| step.kind)
    }

    #[test]
    fn a_step_is_repeated_under_a_suffix() {
        assert_eq!(kind("scan"), Some(Kind::Scan));
        assert_eq!(kind("scan.2"), Some(Kind::Scan));
        assert_eq!(kind("scan.again"), Some(Kind::Scan));
        let longest = "x".repeat(SUFFIX_LENGTH_MAX);
        assert_eq!(kind(&format!("scan.{longest}")), Some(Kind::Scan));
        for text in [
            "",
            ".",
            ".2",
            "scan.",
            "scan2",
            "scan-2",
            "scan.B",
            "scan.a.b",
            "scan.2 ",
            &format!("scan.{longest}x"),
        ] {
            assert!(kind(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_name_with_a_dot_comes_before_a_suffix() {
        assert_eq!(kind("read.range10"), Some(Kind::ReadTen));
        assert_eq!(kind("read.range10.2"), Some(Kind::ReadTen));
        assert_eq!(kind("read.2"), Some(Kind::Read));
    }
}
