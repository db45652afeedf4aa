//! The keys `repeats`, `time` and `effect`: how often each cell runs.

use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::reading::context::{Context, Section, ValueKind};
use crate::reading::quantity::Quantity;
use crate::reading::value_kinds::Choice;
use crate::spec::{Order, Reuse, UntilDecided};
use crate::text::diagnostic::Place;
use crate::text::tree::Node;
use crate::text::wording::{code, quoted};

/// The value of `repeats` of a run that adds repeats until all comparisons are decided.
pub const UNTIL_DECIDED: &str = "until decided";

/// The most repeats that a plan may ask for.
pub const REPEATS_MAX: u32 = 1_000;

/// The keys that belong to [`UNTIL_DECIDED`].
const TIME: &str = "time";
const EFFECT: &str = "effect";

const TIME_DEFAULT: Duration = Duration::from_secs(600);
const TIME_MAX: Duration = Duration::from_secs(30 * 24 * 3600);
const EFFECT_DEFAULT: f64 = 0.03;

/// The repeats of a plan.
pub(crate) struct Repeats {
    /// The number of repeats; 1 for the beginning of a run until all is decided, and 0 if all
    /// cells are exact.
    pub(crate) count: u32,
    pub(crate) until_decided: Option<UntilDecided>,
    pub(crate) order: Order,
    place: Place,
}

/// The number of repeats, or [`UNTIL_DECIDED`].
struct RepeatsKind;

#[derive(Clone, Copy)]
enum RepeatsValue {
    Count(u32),
    UntilDecided,
}

const COUNT: Quantity<u32> = Quantity::count(0..=REPEATS_MAX);

impl ValueKind for RepeatsKind {
    type Value = RepeatsValue;

    fn read(&self, cx: &mut Context<'_>, name: &str, node: &Node) -> Option<RepeatsValue> {
        if node.text() == Some(UNTIL_DECIDED) {
            return Some(RepeatsValue::UntilDecided);
        }

        let count = COUNT.read(cx, name, node);
        if count.is_none()
            && let Some(diagnostic) = cx.diagnostics.last_mut()
        {
            let text = code(&quoted(UNTIL_DECIDED));
            diagnostic
                .help(format!("{text} adds repeats until all is decided, or a `{TIME}` is up"));
        }

        count.map(RepeatsValue::Count)
    }

    fn show(&self, value: &RepeatsValue) -> String {
        match value {
            RepeatsValue::Count(count) => COUNT.show(count),
            RepeatsValue::UntilDecided => quoted(UNTIL_DECIDED),
        }
    }

    fn schema(&self) -> Json {
        json!({ "anyOf": [COUNT.schema(), { "const": UNTIL_DECIDED }] })
    }
}

impl Repeats {
    /// Reads the repeats and their order.
    pub(crate) fn read(cx: &mut Context<'_>, section: &mut Section) -> Self {
        let field = cx.field(section, "repeats", &RepeatsKind, RepeatsValue::Count(1));

        let (count, until_decided) = match field.value {
            RepeatsValue::Count(count) => {
                if field.trusted {
                    refuse_limits(cx, section, field.place);
                }
                (count, None)
            }
            RepeatsValue::UntilDecided => {
                let time = Quantity::time(Duration::from_secs(1)..=TIME_MAX);
                let effect = Quantity::share_above_zero();
                let until_decided = UntilDecided {
                    time: cx.value(section, TIME, &time, TIME_DEFAULT),
                    effect: cx.value(section, EFFECT, &effect, EFFECT_DEFAULT),
                };
                (1, Some(until_decided))
            }
        };

        let order = cx.value(section, "order", &Choice(Order::NAMES), Order::Interleaved);
        Self { count, until_decided, order, place: field.place }
    }

    /// Reports an order in which the targets of a repeat cannot share a load, and an order and targets
    /// or variants that cannot be compared until all is decided.
    pub(crate) fn check(&self, cx: &mut Context<'_>, has_comparisons: bool, reuse: Reuse) {
        if self.order == Order::Grouped && reuse == Reuse::Repeat {
            let message =
                "the cells of a repeat cannot share a load if they don't follow each other";
            cx.error("plan::conflict", self.place, message)
                .label("the `order` is `\"grouped\"`")
                .help("remove `order`, or set `reuse = \"run\"`");
        }

        if self.until_decided.is_none() {
            return;
        }

        if self.order == Order::Grouped {
            let message = "repeats cannot be added to a run in which targets do not take turns";
            cx.error("plan::conflict", self.place, message)
                .label("the `order` is `\"grouped\"`")
                .help("remove `order`: the default is `\"interleaved\"`");
        }

        if !has_comparisons {
            let message = "there is nothing to decide: the plan has one target";
            cx.error("plan::conflict", self.place, message)
                .label("needs a target to compare")
                .help("add a build, a config or a variant of the workload, or give the number of repeats");
        }
    }
}

/// Reports limits of a run whose number of repeats is known. A number that `--set` gives overrides
/// those of the file as well.
fn refuse_limits(cx: &mut Context<'_>, section: &mut Section, repeats_place: Place) {
    let is_overridden = matches!(repeats_place, Place::Set { .. });

    for key in [TIME, EFFECT] {
        if let Some(entry) = section.take(key)
            && !(is_overridden && matches!(entry.node.place, Place::File(_)))
        {
            let all = code(&format!("repeats = {}", quoted(UNTIL_DECIDED)));
            let message = format!("{} is only for {all}", code(key));
            cx.error("plan::conflict", entry.key_place, message)
                .label("the plan gives the number of repeats")
                .help(format!("remove it, or set {all}"));
        }
    }
}
