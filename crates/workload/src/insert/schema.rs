//! The tables of the Insert Benchmark, in two versions: their indexes changed in December 2023.

use engine::{Column, ColumnType, Comparison, Index, Partitions, Table};
use plan::{INDEX_NAMES, IndexSet};

/// Distinct cash registers. Columns are drawn uniformly from 0 to one below such a number.
pub(super) const CASH_REGISTERS: u32 = 1000;
pub(super) const CUSTOMERS: u32 = 100_000;
pub(super) const PRODUCTS: u32 = 10_000;
pub(super) const PRICES: u32 = 500;

/// One of the three range queries: it scans an index from a random first key.
pub(super) struct RangeQuery {
    /// The first key is drawn from 0 to one below this.
    pub(super) domain: u32,
    pub(super) comparison: Comparison,
}

pub(super) const RANGE_LIMIT: u32 = 10;
pub(super) const POINT_KEYS: u32 = 10;
/// Columns that a point query reads besides the key.
pub(super) const POINT_COLUMNS: [&str; 2] = ["productid", "data"];

/// A column that an index may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IndexColumn {
    Date,
    CashRegister,
    Customer,
    Product,
    Price,
}

impl IndexColumn {
    fn name(self) -> &'static str {
        match self {
            Self::Date => "dateandtime",
            Self::CashRegister => "cashregisterid",
            Self::Customer => "customerid",
            Self::Product => "productid",
            Self::Price => "price",
        }
    }
}

/// Returns the columns of the three possible indexes; range queries compare the first column of
/// each.
pub(super) fn index_columns(set: IndexSet) -> [&'static [IndexColumn]; 3] {
    use IndexColumn::{CashRegister, Customer, Date, Price, Product};
    let pdc = &[Price, Date, Customer];
    match set {
        IndexSet::Current => [&[Product, Customer, Price], &[CashRegister, Customer, Price], pdc],
        IndexSet::Before2023Dec => [&[Price, Customer], &[CashRegister, Price, Customer], pdc],
    }
}

fn indexes_of(set: IndexSet, count: usize) -> Vec<Index> {
    INDEX_NAMES
        .into_iter()
        .zip(index_columns(set))
        .take(count)
        .map(|(name, columns)| Index {
            name,
            columns: columns.iter().map(|column| column.name()).collect(),
        })
        .collect()
}

/// Returns the range queries in the order of the indexes that they scan.
pub(super) fn range_queries(set: IndexSet) -> [RangeQuery; 3] {
    let market_domain = match set {
        IndexSet::Current => PRODUCTS,
        IndexSet::Before2023Dec => PRICES,
    };
    [
        RangeQuery { domain: market_domain, comparison: Comparison::AtLeast },
        RangeQuery { domain: CASH_REGISTERS, comparison: Comparison::Above },
        RangeQuery { domain: PRICES, comparison: Comparison::AtLeast },
    ]
}

fn column(name: &'static str, kind: ColumnType) -> Column {
    Column { name, kind }
}

/// Returns table number `number`, from 0: `pi1` is the first. The table has the first
/// `index_count` indexes of the set.
pub(super) fn table(
    number: u32,
    indexes: IndexSet,
    index_count: usize,
    data_length_max: u32,
    partitions: Option<Partitions>,
) -> Table {
    Table {
        name: format!("pi{}", number + 1),
        columns: vec![
            column("transactionid", ColumnType::AutoKey),
            column("dateandtime", ColumnType::Timestamp),
            column("cashregisterid", ColumnType::Int4),
            column("customerid", ColumnType::Int4),
            column("productid", ColumnType::Int4),
            column("price", ColumnType::Int4),
            column("data", ColumnType::Text(data_length_max.max(4000))),
        ],
        indexes: indexes_of(indexes, index_count),
        partitions,
    }
}
