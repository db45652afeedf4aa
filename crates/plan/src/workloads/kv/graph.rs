//! The table of a step `mixgraph`.

use serde_json::{Value as Json, json};

use crate::reading::context::{Context, Field, Section, ValueKind};
use crate::reading::quantity::Quantity;
use crate::reading::value_kinds::Choice;
use crate::spec::{KvGraph, KvGraphMix, KvGraphModel, KvPareto, KvPower, KvTwoTermExponential};
use crate::text::tree::{Node, Value};
use crate::text::wording::code;

const KEY_RANGES_MAX: u64 = 100_000;
/// A value holds its version.
const VALUE_SIZE_MAX: std::ops::RangeInclusive<u32> = 16..=(16 << 20);
const SCAN_LENGTH_END: std::ops::RangeInclusive<u32> = 2..=1_000_000;

/// A list of `N` numbers.
struct Numbers<const N: usize> {
    /// The names of the numbers.
    form: &'static str,
    /// Returns whether these numbers have a meaning.
    are_right: fn(&[f64; N]) -> bool,
    /// The demands on them.
    help: &'static str,
}

impl<const N: usize> ValueKind for Numbers<N> {
    type Value = [f64; N];

    fn read(&self, cx: &mut Context<'_>, name: &str, node: &Node) -> Option<[f64; N]> {
        let numbers: Option<Vec<f64>> = match &node.value {
            Value::List(nodes) => nodes.iter().map(number_of).collect(),
            Value::Bare(text) => text.split(',').map(|part| part.trim().parse().ok()).collect(),
            _ => None,
        };

        let numbers = numbers.and_then(|numbers| <[f64; N]>::try_from(numbers).ok());
        let right = numbers.filter(|numbers| {
            numbers.iter().all(|number| number.is_finite()) && (self.are_right)(numbers)
        });
        if right.is_none() {
            let message = format!("{} is not {}", code(name), self.form);
            cx.error("plan::bad-number", node.place, message)
                .label(format!("expected {N} numbers in brackets"))
                .help(self.help);
        }
        right
    }

    fn show(&self, value: &[f64; N]) -> String {
        format!("{value:?}")
    }

    fn schema(&self) -> Json {
        json!({ "type": "array", "items": { "type": "number" }, "minItems": N, "maxItems": N })
    }
}

fn number_of(node: &Node) -> Option<f64> {
    match &node.value {
        Value::Integer(text) | Value::Float(text) => text.parse().ok(),
        _ => None,
    }
}

const MIX: Numbers<3> = Numbers {
    form: "the proportions of gets, puts and scans",
    are_right: |shares| {
        shares.iter().all(|share| *share >= 0.0) && shares.iter().sum::<f64>() > 0.0
    },
    help: "give proportions that are not negative, for example `[0.83, 0.14, 0.03]`",
};

const KEY_DIST: Numbers<2> = Numbers {
    form: "the numbers a and b of `a x^b`",
    are_right: |[a, b]| *a > 0.0 && *b > 0.0 && a.powf(-1.0 / b) < 1e18,
    help: "both are above zero; `[1, 1]` makes all keys of a range equally frequent",
};

const KEYRANGE_DIST: Numbers<4> = Numbers {
    form: "the numbers a, b, c and d of `a exp(b x) + c exp(d x)`",
    are_right: |[a, _, c, _]| *a >= 0.0 && *c >= 0.0 && a + c > 0.0,
    help: "a and c are not negative; `[1, 0, 0, 0]` makes all ranges equally frequent",
};

const PARETO: Numbers<3> = Numbers {
    form: "the numbers theta, k and sigma of a generalized Pareto distribution",
    are_right: |[_, k, sigma]| *k >= 0.0 && *sigma > 0.0,
    help: "k is not negative, and sigma is above zero",
};

/// Reads the parameters of a step on `keys` keys.
pub(super) fn read(cx: &mut Context<'_>, section: &mut Section, keys: &Field<u64>) -> KvGraph {
    let models = Choice(KvGraphModel::NAMES);
    let model = cx.value(section, "model", &models, KvGraphModel::PrefixDist);
    let usual = KvGraph::of_model(model);

    let KvGraphMix { gets, puts, scans } = usual.mix;
    let [gets, puts, scans] = cx.value(section, "mix", &MIX, [gets, puts, scans]);

    // A range has at least one key.
    let most = keys.value.min(KEY_RANGES_MAX) as u32;
    let key_ranges = usual.key_ranges.min(most);
    let key_ranges =
        cx.inherited(section, "keyrange-num", &Quantity::count(1..=most), keys, key_ranges).value;

    KvGraph {
        mix: KvGraphMix { gets, puts, scans },
        key_ranges,
        range_frequency: {
            let even = KvTwoTermExponential { a: 1.0, b: 0.0, c: 0.0, d: 0.0 };
            let KvTwoTermExponential { a, b, c, d } = usual.range_frequency.unwrap_or(even);
            let [a, b, c, d] = cx.value(section, "keyrange-dist", &KEYRANGE_DIST, [a, b, c, d]);
            Some(KvTwoTermExponential { a, b, c, d }).filter(|found| *found != even)
        },
        key_frequency: {
            let even = KvPower { a: 1.0, b: 1.0 };
            let KvPower { a, b } = usual.key_frequency.unwrap_or(even);
            let [a, b] = cx.value(section, "key-dist", &KEY_DIST, [a, b]);
            Some(KvPower { a, b }).filter(|found| *found != even)
        },
        value_size: pareto(cx, section, "value-dist", usual.value_size),
        value_size_max: cx.value(
            section,
            "value-size-max",
            &Quantity::count(VALUE_SIZE_MAX),
            usual.value_size_max,
        ),
        scan_length: pareto(cx, section, "scan-dist", usual.scan_length),
        scan_length_end: cx.value(
            section,
            "scan-length-end",
            &Quantity::count(SCAN_LENGTH_END),
            usual.scan_length_end,
        ),
    }
}

fn pareto(cx: &mut Context<'_>, section: &mut Section, key: &str, usual: KvPareto) -> KvPareto {
    let KvPareto { theta, k, sigma } = usual;
    let [theta, k, sigma] = cx.value(section, key, &PARETO, [theta, k, sigma]);
    KvPareto { theta, k, sigma }
}
