//! The rates at which an engine is expected to work, for estimates.

/// The rates of all clients together, as far as the plan gives them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rates {
    /// Rows or keys that are loaded.
    pub load: ExpectedRate,
    /// Rows whose indexes are built.
    pub index: ExpectedRate,
    /// Rows that are written while there are indexes, or keys that are overwritten.
    pub insert: ExpectedRate,
    /// Transactions of a script.
    pub transactions: ExpectedRate,
}

/// A rate that may depend on the number of clients; without any, the plan does not give it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExpectedRate {
    /// The rates for some numbers of clients.
    pub rates: Vec<ClientRate>,
}

/// A rate with a number of clients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClientRate {
    /// The number of clients; `None` for any.
    pub clients: Option<u32>,
    /// Rows, keys or transactions per second, above 0.
    pub per_s: f64,
}

impl ExpectedRate {
    /// Returns the rate of this number of clients, or that of any; `None` if there is neither.
    pub fn of_clients(&self, clients: u32) -> Option<f64> {
        let mut rates = self.rates.iter();
        let rate = rates.find(|rate| rate.clients.is_none_or(|known| known == clients));
        rate.map(|rate| rate.per_s)
    }

    /// Returns the rate with the nearest number of clients, by their ratio; `None` without any.
    pub fn with_clients(&self, clients: u32) -> Option<f64> {
        let distance = |rate: &ClientRate| {
            let known = f64::from(rate.clients.unwrap_or(clients));
            (known / f64::from(clients)).ln().abs()
        };
        let nearest = self.rates.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
        nearest.map(|rate| rate.per_s)
    }
}
