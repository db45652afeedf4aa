//! The rows of a table for which a client works: its homes.

use words::named_enum;

named_enum! {
    /// The rule that gives each client its homes.
    pub enum HomeRule {
        /// Each client has one row. The clients are dealt to the rows in turn.
        Fixed = "fixed",
        /// The rows are divided evenly among the clients. With fewer rows than clients, as `Fixed`.
        Spread = "spread",
        /// Each client has all rows.
        All = "all",
    }
}

/// The rows that are homes of a client: those from `first` to `last`, numbered from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Homes {
    /// The first row.
    pub first: i64,
    /// The last row.
    pub last: i64,
}

impl Homes {
    /// Returns the number of rows.
    #[inline]
    pub fn count(self) -> i64 {
        self.last - self.first + 1
    }
}

impl HomeRule {
    /// Returns the homes of a client, by its number from 0, in a table with this many rows, of which
    /// there is at least one.
    #[inline]
    pub fn homes(self, rows: i64, client: u32, clients: u32) -> Homes {
        let (number, clients) = (i128::from(client), i128::from(clients.max(1)));
        let has_one = self == Self::Fixed || self == Self::Spread && clients >= i128::from(rows);
        if has_one {
            let row = i64::from(client) % rows + 1;
            return Homes { first: row, last: row };
        }
        if self == Self::All {
            return Homes { first: 1, last: rows };
        }

        let before = |number: i128| (i128::from(rows) * number / clients) as i64;
        Homes { first: before(number) + 1, last: before(number + 1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn homes(rule: HomeRule, rows: i64, clients: u32) -> Vec<(i64, i64)> {
        let of_client = |client| rule.homes(rows, client, clients);
        (0..clients).map(of_client).map(|homes| (homes.first, homes.last)).collect()
    }

    #[test]
    fn a_spread_table_belongs_to_all_clients_without_gaps_or_overlaps() {
        assert_eq!(homes(HomeRule::Spread, 10, 4), [(1, 2), (3, 5), (6, 7), (8, 10)]);
        assert_eq!(homes(HomeRule::Spread, 10, 1), [(1, 10)]);
        assert_eq!(homes(HomeRule::Spread, i64::MAX, 1), [(1, i64::MAX)]);
        for (rows, clients) in [(7, 3), (100, 7), (1_000, 999)] {
            let mut next = 1;
            for (first, last) in homes(HomeRule::Spread, rows, clients) {
                assert!(first == next && last >= first, "{rows} rows, {clients} clients");
                next = last + 1;
            }
            assert_eq!(next, rows + 1);
        }
    }

    #[test]
    fn more_clients_than_rows_share_them_in_turn() {
        for rule in [HomeRule::Fixed, HomeRule::Spread] {
            assert_eq!(homes(rule, 2, 5), [(1, 1), (2, 2), (1, 1), (2, 2), (1, 1)]);
        }
        assert_eq!(homes(HomeRule::All, 2, 3), [(1, 2); 3]);
        assert_eq!(homes(HomeRule::Fixed, 10, 3), [(1, 1), (2, 2), (3, 3)]);
    }
}
