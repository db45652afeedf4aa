//! The names of the steps of the Insert Benchmark.

use crate::diagnostic::Diagnostic;
use crate::kinds::Rate;
use crate::reader::{Fault, Kind, wrong_type};
use crate::spec::Query;
use crate::tree::{Node, Value};
use crate::wording::{code, did_you_mean, quoted};

/// A step as its name says it.
#[derive(Clone, Debug)]
pub(crate) struct StepName {
    pub(crate) name: String,
    pub(crate) sort: StepSort,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum StepSort {
    Load,
    Index,
    /// `l.i1`
    WriteMost,
    /// `l.i2`
    WriteRest,
    Query {
        query: Query,
        rate: f64,
    },
    Settle,
}

impl PartialEq for StepName {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// What a run has if the plan does not say.
pub(crate) const DEFAULT_STEPS: [&str; 11] = [
    "l.i0", "l.x", "l.i1", "l.i2", "settle", "qr100", "qp100", "qr500", "qp500", "qr1000", "qp1000",
];

pub(crate) const STEPS_HELP: &str = "steps: `l.i0`, `l.x`, `l.i1`, `l.i2`, `settle`, `qrN` and `qpN` with N rows written per second; \
     to repeat one, add a suffix: `qr100.2`";

/// Suffixes become part of a directory's name.
const SUFFIX_LONGEST: usize = 32;

impl StepName {
    /// Reads a name; `None` for what is no step.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let fixed = [
            ("l.i0", StepSort::Load),
            ("l.x", StepSort::Index),
            ("l.i1", StepSort::WriteMost),
            ("l.i2", StepSort::WriteRest),
            ("settle", StepSort::Settle),
        ];
        let found = fixed
            .into_iter()
            .find_map(|(name, sort)| Some((sort, text.strip_prefix(name)?)));
        let (sort, rest) = found.or_else(|| query(text))?;
        let is_step = rest.is_empty() || rest.strip_prefix('.').is_some_and(is_suffix);
        is_step.then(|| Self {
            name: text.to_owned(),
            sort,
        })
    }
}

fn is_suffix(suffix: &str) -> bool {
    (1..=SUFFIX_LONGEST).contains(&suffix.len())
        && suffix
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

/// `overwrite.2` -> `overwrite`; `None` where what follows the dot is no suffix.
pub(crate) fn split_suffix(text: &str) -> Option<&str> {
    match text.split_once('.') {
        None => Some(text),
        Some((name, suffix)) => is_suffix(suffix).then_some(name),
    }
}

/// `qr100` -> the query with its rate, and what follows.
fn query(text: &str) -> Option<(StepSort, &str)> {
    let (query, rest) = match (text.strip_prefix("qr"), text.strip_prefix("qp")) {
        (Some(rest), _) => (Query::Range, rest),
        (_, Some(rest)) => (Query::Point, rest),
        _ => return None,
    };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = rest.split_at(digits);
    if number.starts_with('0') {
        return None;
    }
    let rate = number.parse().ok().filter(|rate| *rate <= Rate::MOST)?;
    Some((StepSort::Query { query, rate }, rest))
}

/// A step's name in a list of steps.
pub(crate) struct Step;

impl Kind for Step {
    type Value = StepName;

    fn read(&self, name: &str, node: &Node) -> Result<StepName, Fault> {
        let Some(text) = node.text() else {
            if matches!(node.value, Value::Broken) {
                return Err(Fault::SAID);
            }
            return Err(wrong_type(name, node, "the name of a step")
                .help(STEPS_HELP)
                .into());
        };
        StepName::parse(text).ok_or_else(|| {
            Diagnostic::error(
                "plan::unknown-step",
                node.place,
                format!("unknown step {} in {}", code(text), code(name)),
            )
            .label("not a step")
            .help(format!(
                "{}{STEPS_HELP}",
                did_you_mean(text, &DEFAULT_STEPS)
            ))
            .into()
        })
    }

    fn show(&self, value: &StepName) -> String {
        quoted(&value.name)
    }

    fn help_for_twice(&self) -> Option<&'static str> {
        Some("to repeat a step, add a suffix: `qr100.2`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_known_by_its_name() {
        let sort = |text| StepName::parse(text).map(|step| step.sort);
        assert_eq!(sort("l.i0"), Some(StepSort::Load));
        assert_eq!(sort("l.i1.b"), Some(StepSort::WriteMost));
        assert_eq!(sort("settle.2"), Some(StepSort::Settle));
        assert_eq!(
            sort("qr100"),
            Some(StepSort::Query {
                query: Query::Range,
                rate: 100.0
            })
        );
        assert_eq!(
            sort("qp1000.again"),
            Some(StepSort::Query {
                query: Query::Point,
                rate: 1000.0
            })
        );
    }

    #[test]
    fn what_is_no_step_is_refused() {
        for text in [
            "",
            "l.i",
            "l.i3",
            "l.i00",
            "l.x.",
            "l.i1.B",
            "l.i1.a.b",
            "qr",
            "qr0",
            "qr010",
            "qr-1",
            "q100",
            "qr1e3",
            "settle2",
            "qr99999999999",
            "L.i0",
            "qr100 ",
        ] {
            assert!(StepName::parse(text).is_none(), "{text}");
        }
    }
}
