//! The table `[rates]`: how fast the engine is expected to work, for estimates.

use serde_json::{Value as Json, json};

use crate::reading::context::{Context, Section, ValueKind};
use crate::reading::quantity::Quantity;
use crate::spec::{ClientRate, ExpectedRate, Rates};
use crate::text::tree::{Entry, Node, Value};
use crate::text::wording::code;

/// A rate, or a table with one for each of some numbers of clients.
struct ExpectedRateKind;

/// The rate of all clients together.
const RATE: Quantity<f64> = Quantity::rate();
/// The numbers of clients.
const CLIENTS: Quantity<u32> = Quantity::count(1..=crate::CLIENTS_MAX);

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

/// Reads the table `[rates]`.
pub(crate) fn read(cx: &mut Context<'_>, section: &mut Section) -> Rates {
    let place = section.place_of("rates");
    let table = cx.table(section, "rates");

    let mut section = Section::new("rates", table, place);
    let mut expected = |key| cx.given(&mut section, key, &ExpectedRateKind).unwrap_or_default();
    let rates = Rates {
        load: expected("load"),
        index: expected("index"),
        insert: expected("insert"),
        transactions: expected("transactions"),
    };

    section.finish(cx);
    rates
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "[workload.insert]\n[build.a]\nsqlite = \"bundled\"\n";

    fn rates(table: &str) -> Rates {
        crate::parse("plan.toml", &format!("rates = {table}\n{PLAN}"), &[]).unwrap().0.rates
    }

    #[test]
    fn the_rate_of_the_nearest_number_of_clients_counts() {
        let rates = rates("{ load = \"90k\", insert = { 1 = 2000, 8 = \"10k/s\" } }");
        assert_eq!(rates.load.with_clients(40), Some(90_000.0));
        assert_eq!(rates.index.with_clients(1), None);
        let insert = [1, 2, 3, 40].map(|clients| rates.insert.with_clients(clients));
        assert_eq!(insert, [2_000.0, 2_000.0, 10_000.0, 10_000.0].map(Some));
    }

    #[test]
    fn a_wrong_rate_is_refused_with_its_place() {
        for (table, said) in [
            ("{ load = \"9q\" }", "`rates.load` has an unknown unit"),
            ("{ insert = {} }", "`rates.insert` has no rate"),
            ("{ insert = { many = 5 } }", "the number of clients"),
            ("{ insert = { 0 = 5 } }", "is out of range"),
            ("{ loads = 5 }", "unknown key `loads` in `[rates]`"),
        ] {
            let text = format!("rates = {table}\n{PLAN}");
            let errors = crate::parse("plan.toml", &text, &[]).unwrap_err();
            let shown = crate::render(&errors, "plan.toml", &text, &[], false);
            assert!(shown.contains(said) && shown.contains("plan.toml:1:"), "{shown}");
        }
    }

    #[test]
    fn a_listing_shows_rates_as_plans_write_them() {
        let text = format!("[rates]\nload = 500\ninsert = {{ 4 = \"8k\" }}\n{PLAN}");
        let (plan, _) = crate::parse("plan.toml", &text, &[]).unwrap();
        let shown = |key: &str| {
            let value = plan.resolved.iter().find(|value| value.key == key);
            value.map(|value| value.value.clone())
        };
        assert_eq!(shown("rates.load").as_deref(), Some("500"));
        assert_eq!(shown("rates.insert").as_deref(), Some("{ 4 = \"8k\" }"));
    }
}
