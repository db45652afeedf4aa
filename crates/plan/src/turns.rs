//! Reads how targets take turns.

use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::reading::context::{Context, ValueKind};
use crate::reading::quantity::Quantity;
use crate::spec::TurnLength;
use crate::text::tree::{Node, Value};
use crate::text::wording::quoted;

const OFF: &str = "off";
const AUTO: &str = "auto";

/// The shortest turn. A switch from one target to another takes about a millisecond.
pub(crate) const TURN_MIN: Duration = Duration::from_millis(5);
/// The longest turn.
pub(crate) const TURN_MAX: Duration = Duration::from_secs(60);

/// `"off"`, `"auto"`, or the length of a turn.
pub(crate) struct TurnKind;

impl ValueKind for TurnKind {
    type Value = Option<TurnLength>;

    fn read(&self, cx: &mut Context<'_>, name: &str, node: &Node) -> Option<Option<TurnLength>> {
        match &node.value {
            Value::String(text) | Value::Bare(text) if text == OFF => Some(None),
            Value::String(text) | Value::Bare(text) if text == AUTO => Some(Some(TurnLength::Auto)),
            _ => {
                let length = Quantity::time(TURN_MIN..=TURN_MAX).read(cx, name, node)?;
                Some(Some(TurnLength::Fixed(length)))
            }
        }
    }

    fn show(&self, value: &Option<TurnLength>) -> String {
        match value {
            None => quoted(OFF),
            Some(TurnLength::Auto) => quoted(AUTO),
            Some(TurnLength::Fixed(length)) => Quantity::time(TURN_MIN..=TURN_MAX).show(length),
        }
    }

    fn schema(&self) -> Json {
        json!({ "anyOf": [{ "enum": [OFF, AUTO] }, Quantity::time(TURN_MIN..=TURN_MAX).schema()] })
    }
}
