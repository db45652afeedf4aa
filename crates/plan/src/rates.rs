//! The table `[rates]`: how fast the engine is expected to work, for estimates.

use crate::reading::context::{Context, Section};
use crate::reading::expected_rate::ExpectedRateKind;
use crate::spec::Rates;

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
