//! Reads a rate of all clients together, which may depend on their number.

use serde_json::{Value as Json, json};

use crate::reading::context::{Context, ValueKind};
use crate::reading::quantity::Quantity;
use crate::spec::{CLIENTS_MAX, ClientRate, ExpectedRate};
use crate::text::tree::{Entry, Node, Value};
use crate::text::wording::code;

/// A rate, or a table with one for each of some numbers of clients.
pub(crate) struct ExpectedRateKind;

/// The rate of all clients together.
const RATE: Quantity<f64> = Quantity::rate();
/// The numbers of clients.
const CLIENTS: Quantity<u32> = Quantity::count(1..=CLIENTS_MAX);

impl ValueKind for ExpectedRateKind {
    type Value = ExpectedRate;

    fn read(&self, cx: &mut Context<'_>, name: &str, node: &Node) -> Option<ExpectedRate> {
        let Value::Table(table) = &node.value else {
            let per_s = RATE.read(cx, name, node)?;
            return Some(ExpectedRate { rates: vec![ClientRate { clients: None, per_s }] });
        };

        if table.entries.is_empty() {
            cx.error("plan::bad-number", node.place, format!("{} has no rate", code(name)))
                .label("expected a rate for one number of clients or more")
                .help("for example `{ 1 = \"8k\", 8 = \"40k\" }`");
            return None;
        }

        let errors = cx.errors();
        let rates = table.entries.iter().filter_map(|entry| read_entry(cx, name, entry)).collect();
        (cx.errors() == errors).then_some(ExpectedRate { rates })
    }

    fn show(&self, expected: &ExpectedRate) -> String {
        let mut shown = Vec::new();
        for rate in &expected.rates {
            let per_s = RATE.show(&rate.per_s);
            match rate.clients {
                None => return per_s,
                Some(clients) => shown.push(format!("{clients} = {per_s}")),
            }
        }
        format!("{{ {} }}", shown.join(", "))
    }

    fn schema(&self) -> Json {
        let by_clients = json!({ "type": "object", "additionalProperties": RATE.schema() });
        json!({ "anyOf": [RATE.schema(), by_clients] })
    }
}

/// Reads the rate for one number of clients.
fn read_entry(cx: &mut Context<'_>, name: &str, entry: &Entry) -> Option<ClientRate> {
    let clients = Node { value: Value::Integer(entry.key.clone()), place: entry.key_place };
    let clients = CLIENTS.read(cx, &format!("{name}: the number of clients"), &clients)?;
    let per_s = RATE.read(cx, &format!("{name}.{}", entry.key), &entry.node)?;
    Some(ClientRate { clients: Some(clients), per_s })
}
