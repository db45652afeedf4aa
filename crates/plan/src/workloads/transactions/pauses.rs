//! Reads `think` and `keying`: the times for which a client waits before its transactions.

use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::reading::context::{Context, ValueKind};
use crate::reading::quantity::Quantity;
use crate::spec::transactions::{Pause, Script};
use crate::text::diagnostic::Place;
use crate::text::tree::{Node, Value};
use crate::text::wording::{choices, code, key_part};

/// Longer waits would not fit in any step.
const PAUSE_MAX: Duration = Duration::from_secs(24 * 3600);
const TIME: Quantity<Duration> = Quantity::time(Duration::ZERO..=PAUSE_MAX);

/// A time for each transaction.
#[derive(Clone, Debug)]
pub(super) enum PauseTimes {
    /// The same for all.
    All(Duration),
    /// One for each of some transactions; 0 for the others.
    Each(Vec<NamedPause>),
}

/// The time of a transaction, which a plan names.
#[derive(Clone, Debug)]
pub(super) struct NamedPause {
    transaction: String,
    place: Place,
    time: Duration,
}

/// A time, or a table with one for each of some transactions.
pub(super) struct PauseKind;

impl ValueKind for PauseKind {
    type Value = PauseTimes;

    fn read(&self, cx: &mut Context<'_>, name: &str, node: &Node) -> Option<PauseTimes> {
        let Value::Table(table) = &node.value else {
            return TIME.read(cx, name, node).map(PauseTimes::All);
        };

        let errors = cx.errors();
        let mut each = Vec::new();
        for entry in &table.entries {
            let key = format!("{name}.{}", key_part(&entry.key));
            if let Some(time) = TIME.read(cx, &key, &entry.node) {
                let transaction = entry.key.clone();
                each.push(NamedPause { transaction, place: entry.key_place, time });
            }
        }
        (cx.errors() == errors).then_some(PauseTimes::Each(each))
    }

    fn show(&self, times: &PauseTimes) -> String {
        let each = match times {
            PauseTimes::All(time) => return TIME.show(time),
            PauseTimes::Each(each) => each,
        };
        let shown = each
            .iter()
            .map(|pause| format!("{} = {}", key_part(&pause.transaction), TIME.show(&pause.time)));
        format!("{{ {} }}", shown.collect::<Vec<_>>().join(", "))
    }

    fn schema(&self) -> Json {
        let by_transaction = json!({ "type": "object", "additionalProperties": TIME.schema() });
        json!({ "anyOf": [TIME.schema(), by_transaction] })
    }
}

impl PauseTimes {
    /// Reports names that are no transactions of the script; `key` is the plan's key with the times.
    pub(super) fn check(&self, cx: &mut Context<'_>, key: &str, script: &Script) {
        let Self::Each(each) = self else { return };
        let known: Vec<&str> =
            script.transactions.iter().map(|transaction| transaction.name.as_str()).collect();
        for pause in each.iter().filter(|pause| !known.contains(&pause.transaction.as_str())) {
            let name = &pause.transaction;
            let message = format!("{} has a time for {}", code(key), code(name));
            cx.error("plan::unknown-name", pause.place, message)
                .label("not a transaction of the script")
                .help(choices(name, "transactions", &known));
        }
    }

    /// Returns the time of a transaction.
    fn of(&self, transaction: &str) -> Duration {
        match self {
            Self::All(time) => *time,
            Self::Each(each) => {
                let named = each.iter().find(|pause| pause.transaction == transaction);
                named.map_or(Duration::ZERO, |pause| pause.time)
            }
        }
    }
}

/// Returns the waits before and after each transaction of a script, multiplied by `factor`; empty if
/// there are none.
pub(super) fn pauses(
    script: &Script,
    think: Option<&PauseTimes>,
    keying: Option<&PauseTimes>,
    factor: f64,
) -> Vec<Pause> {
    let mut pauses = Vec::new();
    for transaction in &script.transactions {
        let time = |times: Option<&PauseTimes>| {
            times.map_or(Duration::ZERO, |times| times.of(&transaction.name)).mul_f64(factor)
        };
        pauses.push(Pause { think_mean: time(think), keying: time(keying) });
    }

    let waits = |pause: &Pause| !pause.think_mean.is_zero() || !pause.keying.is_zero();
    if pauses.iter().any(waits) { pauses } else { Vec::new() }
}
