//! The script `orders` on SQLite, beside a model that executes the same transactions in memory.

use std::collections::BTreeMap;

use plan::transactions::ScriptType;

use super::*;
use crate::transactions::distribution::constant;

/// The script of Assay.
const ORDERS: &str = include_str!("../../../../plan/src/workloads/transactions/orders.script");
/// Numbers of the script, in order, and those of a hundredth of its customers and a thousandth of its
/// items. Larger ones that begin with them shrink as well.
const SMALLER: [(&str, &str); 8] = [
    ("3000 < 1000", "3000 < 10"),
    ("0, 999)", "0, 9)"),
    ("2101", "22"),
    ("2100", "21"),
    ("3000", "30"),
    ("3001", "31"),
    ("900", "9"),
    ("45000", "450"),
];
const SCALE: i64 = 2;
const CUSTOMERS: i64 = 30;
const ITEMS: i64 = 100;
const LAST_NAMES: i64 = 10;
/// The warehouse of the only client.
const HOME: i64 = 1;
const SEED: u64 = 5;

/// Returns the script with fewer rows.
fn small_script() -> String {
    let mut text = ORDERS.replace("100000", &ITEMS.to_string());
    for (number, smaller) in SMALLER {
        assert!(text.contains(number), "{number}");
        text = text.replace(number, smaller);
    }
    text
}

/// A table as the model knows it; every value is a text, and a time is only known to be there.
struct ModelTable {
    columns: Vec<String>,
    key: Vec<String>,
    rows: BTreeMap<Vec<i64>, Vec<String>>,
}

impl ModelTable {
    /// Reads a table.
    fn read(bench: &Bench, table: &ScriptTable) -> Self {
        let mut selected = Vec::new();
        for column in &table.columns {
            let name = &column.name;
            selected.push(match column.kind {
                ScriptType::Timestamp => format!("case when {name} is null then null else 't' end"),
                _ => name.clone(),
            });
        }

        let sql = format!("select {} from {} order by rowid", selected.join(", "), table.name);
        let columns = table.columns.iter().map(|column| column.name.clone()).collect();
        let mut read = Self { columns, key: table.key.clone(), rows: BTreeMap::new() };
        for row in bench.sqlite.connect().unwrap().query(&sql).unwrap() {
            let row = row.into_iter().map(|value| value.unwrap_or_else(|| "NULL".to_owned()));
            read.insert(row.collect());
        }
        read
    }

    fn place(&self, column: &str) -> usize {
        self.columns.iter().position(|name| name == column).unwrap()
    }

    /// Adds a row. One of a table without a key has its number.
    fn insert(&mut self, row: Vec<String>) {
        let mut key: Vec<i64> =
            self.key.iter().map(|column| row[self.place(column)].parse().unwrap()).collect();
        if key.is_empty() {
            key.push(self.rows.len() as i64);
        }
        assert!(self.rows.insert(key, row).is_none(), "the key exists");
    }
}

/// The tables, and the numbers that the client draws.
struct Model {
    tables: BTreeMap<String, ModelTable>,
    random: Random,
}

impl Model {
    /// Reads the tables before step `step`.
    fn new(bench: &Bench, step: u64) -> Self {
        let tables = &bench.workload.plan.script.tables;
        let tables =
            tables.iter().map(|table| (table.name.clone(), ModelTable::read(bench, table)));
        let random = Random::stream(SEED, &[step, 0, 0, CHOICES]);
        Self { tables: tables.collect(), random }
    }

    fn between(&mut self, least: i64, most: i64) -> i64 {
        least + self.random.below((most - least + 1) as u64) as i64
    }

    /// Draws a non-uniform number by its definition in TPC-C 2.1.6.
    fn nurand(&mut self, x: i64, least: i64, most: i64) -> i64 {
        let mask = self.between(0, x);
        let number = self.between(least, most);
        let constant = constant(x as u64, false, SEED) as i64;
        ((mask | number) + constant) % (most - least + 1) + least
    }

    fn text(&self, table: &str, key: &[i64], column: &str) -> String {
        let table = &self.tables[table];
        table.rows[key][table.place(column)].clone()
    }

    fn integer(&self, table: &str, key: &[i64], column: &str) -> i64 {
        self.text(table, key, column).parse().unwrap()
    }

    fn set(&mut self, table: &str, key: &[i64], column: &str, value: impl ToString) {
        let table = self.tables.get_mut(table).unwrap();
        let place = table.place(column);
        table.rows.get_mut(key).unwrap()[place] = value.to_string();
    }

    fn add(&mut self, table: &str, key: &[i64], column: &str, amount: i64) {
        let sum = self.integer(table, key, column) + amount;
        self.set(table, key, column, sum);
    }

    fn insert(&mut self, table: &str, row: &[&dyn std::fmt::Display]) {
        let row = row.iter().map(|value| value.to_string()).collect();
        self.tables.get_mut(table).unwrap().insert(row);
    }

    /// Executes the next transaction of the mix.
    fn run(&mut self) {
        match self.between(1, 100) {
            1..=45 => self.new_order(),
            46..=88 => self.payment(),
            89..=92 => {
                // A query of an order; its input is drawn.
                self.between(1, 10);
                self.between(1, 100);
                self.nurand(255, 0, LAST_NAMES - 1);
                self.nurand(1023, 1, CUSTOMERS);
            }
            93..=96 => self.delivery(),
            // A query of the stock.
            _ => {
                self.between(10, 20);
            }
        }
    }

    /// Draws another warehouse.
    fn other_warehouse(&mut self) -> i64 {
        (HOME - 1 + self.between(1, SCALE - 1)) % SCALE + 1
    }

    fn new_order(&mut self) {
        let d = self.between(1, 10);
        let c = self.nurand(1023, 1, CUSTOMERS);
        let count = self.between(5, 15);
        let fails = self.between(1, 100) == 1;
        let items: Vec<i64> = (0..count).map(|_| self.nurand(8191, 1, ITEMS)).collect();
        let quantities: Vec<i64> = (0..count).map(|_| self.between(1, 10)).collect();
        let mut supplies = Vec::new();
        for _ in 0..count {
            let is_remote = self.between(1, 100) == 1;
            supplies.push(if is_remote { self.other_warehouse() } else { HOME });
        }
        if fails {
            return;
        }

        let district = [HOME, d];
        let o = self.integer("district", &district, "d_next_o_id");
        self.add("district", &district, "d_next_o_id", 1);
        let all_local = u8::from(supplies.iter().all(|supply| *supply == HOME));
        self.insert("orders", &[&HOME, &d, &o, &c, &"t", &"NULL", &count, &all_local]);
        self.insert("new_orders", &[&HOME, &d, &o]);

        let lines = items.into_iter().zip(quantities).zip(supplies);
        for (number, ((item, quantity), supply)) in (1_i64..).zip(lines) {
            let stock = [supply, item];
            let left = self.integer("stock", &stock, "s_quantity") - quantity;
            let refilled = if left >= 10 { left } else { left + 91 };
            self.set("stock", &stock, "s_quantity", refilled);
            self.add("stock", &stock, "s_ytd", quantity);
            self.add("stock", &stock, "s_order_cnt", 1);
            self.add("stock", &stock, "s_remote_cnt", i64::from(supply != HOME));

            let amount = quantity * self.integer("item", &[item], "i_price");
            let info = self.text("stock", &stock, &format!("s_dist_{d:02}"));
            self.insert(
                "order_line",
                &[&HOME, &d, &o, &number, &item, &supply, &"NULL", &quantity, &amount, &info],
            );
        }
    }

    /// Returns the customer in the middle of those with a last name, by first name.
    fn customer_by_name(&self, w: i64, d: i64, name: i64) -> i64 {
        const SYLLABLES: [&str; 10] =
            ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
        let name = format!("BARBAR{}", SYLLABLES[name as usize]);
        let mut found = Vec::new();
        for c in 1..=CUSTOMERS {
            let key = [w, d, c];
            if self.text("customer", &key, "c_last") == name {
                found.push((self.text("customer", &key, "c_first"), c));
            }
        }
        found.sort();
        // TPC-C 2.5.2.2: the position n / 2, rounded up, from 1.
        found[found.len().div_ceil(2) - 1].1
    }

    fn payment(&mut self) {
        let d = self.between(1, 10);
        let is_remote = self.between(1, 100) > 85;
        let c_w = if is_remote { self.other_warehouse() } else { HOME };
        let c_d = if is_remote { self.between(1, 10) } else { d };
        let by_name = self.between(1, 100) <= 60;
        let name = self.nurand(255, 0, LAST_NAMES - 1);
        let id = self.nurand(1023, 1, CUSTOMERS);
        let amount = self.between(100, 500_000);

        self.add("warehouse", &[HOME], "w_ytd", amount);
        self.add("district", &[HOME, d], "d_ytd", amount);
        let c = if by_name { self.customer_by_name(c_w, c_d, name) } else { id };
        let customer = [c_w, c_d, c];
        self.add("customer", &customer, "c_balance", -amount);
        self.add("customer", &customer, "c_ytd_payment", amount);
        self.add("customer", &customer, "c_payment_cnt", 1);
        if self.text("customer", &customer, "c_credit") == "BC" {
            let data = self.text("customer", &customer, "c_data");
            let mut data = format!("{c} {c_d} {c_w} {d} {HOME} {amount}|{data}");
            data.truncate(500);
            self.set("customer", &customer, "c_data", data);
        }
        let name = self.text("district", &[HOME, d], "d_name");
        self.insert("history", &[&c, &c_d, &c_w, &d, &HOME, &"t", &amount, &name]);
    }

    fn delivery(&mut self) {
        let carrier = self.between(1, 10);
        for d in 1..=10 {
            let waiting = &self.tables["new_orders"].rows;
            let Some((key, _)) = waiting.range(vec![HOME, d, 0]..vec![HOME, d + 1, 0]).next()
            else {
                continue;
            };
            let order = key.clone();
            self.tables.get_mut("new_orders").unwrap().rows.remove(&order);
            self.set("orders", &order, "o_carrier_id", carrier);

            let mut amount = 0;
            for number in 1..=self.integer("orders", &order, "o_ol_cnt") {
                let line = [HOME, d, order[2], number];
                self.set("order_line", &line, "ol_delivery_d", "t");
                amount += self.integer("order_line", &line, "ol_amount");
            }
            let customer = [HOME, d, self.integer("orders", &order, "o_c_id")];
            self.add("customer", &customer, "c_balance", amount);
            self.add("customer", &customer, "c_delivery_cnt", 1);
        }
    }
}

/// Runs transactions of a script on SQLite and in the model. Returns what went wrong: transactions
/// that failed, checks that don't hold, and tables that differ.
fn faults_of(text: &str, count: u64) -> Vec<String> {
    let keys = format!("{}\nscale = {SCALE}", script(text));
    let mut bench = Bench::loaded(&plan(&keys, "'load', 'index', 'orders'"));
    bench.step(1, u64::MAX);
    assert_eq!(bench.failed_checks(), [""; 0], "after the load");
    let mut model = Model::new(&bench, 2);

    let done = bench.step(2, count);
    let failed = done.into_iter().filter_map(Result::err).map(|error| error.message);
    let mut faults: Vec<String> = failed.take(1).collect();
    faults.extend(bench.failed_checks());

    for _ in 0..count {
        model.run();
    }
    for table in &bench.workload.plan.script.tables {
        let found = ModelTable::read(&bench, table).rows;
        let expected = &model.tables[&table.name].rows;
        let differs = found.iter().zip(expected).find(|(found, expected)| found != expected);
        if found.len() != expected.len() || differs.is_some() {
            let counts = format!("{} rows instead of {}", found.len(), expected.len());
            faults.push(format!("{}: {counts}, first {differs:?}", table.name));
        }
    }
    faults
}

#[test]
fn after_ten_thousand_transactions_of_orders_every_row_is_that_of_a_model() {
    assert_eq!(faults_of(&small_script(), 10_000), [""; 0]);
}

#[test]
fn a_fault_of_a_transaction_is_found() {
    const FAULTS: [(&str, &str); 17] = [
        // The upper one of two customers in the middle.
        ("{(found - 1) / 2}", "{found / 2}"),
        // The stock of the home warehouse instead of a remote one.
        ("where s_w_id = {supply} and s_i_id = {item};", "where s_w_id = {w} and s_i_id = {item};"),
        ("s_remote_cnt + {supply != w}", "s_remote_cnt"),
        ("s_ytd = s_ytd + {quantity}", "s_ytd = s_ytd"),
        ("stock - quantity + 91", "stock - quantity + 90"),
        ("stock >= quantity + 10", "stock >= quantity + 1"),
        ("{quantity * price}", "{price}"),
        ("set number = number + 1;", "set number = number + if(number = 0, 2, 1);"),
        ("set d_next_o_id = {o} + 1", "set d_next_o_id = {o} + 2"),
        ("set all_local = 0", "set all_local = 1"),
        // A rollback that is none.
        ("abort;", "set total = 0;"),
        ("set d_ytd = d_ytd + {amount}", "set d_ytd = d_ytd"),
        ("c_balance = c_balance - {amount}", "c_balance = c_balance + {amount}"),
        ("'BC' then 1 else 0", "'BC' then 0 else 1"),
        ("{d}, {w}, current_timestamp", "{c_d}, {c_w}, current_timestamp"),
        // The newest order is delivered instead of the oldest.
        ("order by no_o_id limit 1", "order by no_o_id desc limit 1"),
        ("c_delivery_cnt = c_delivery_cnt + 1", "c_delivery_cnt = c_delivery_cnt"),
    ];
    let text = small_script();
    for (right, wrong) in FAULTS {
        assert!(text.contains(right), "{right}");
        assert_ne!(faults_of(&text.replace(right, wrong), 300), [""; 0], "{wrong}");
    }
}

#[test]
fn a_fault_of_the_data_of_orders_is_found_by_a_check() {
    let keys = format!("{}\nscale = {SCALE}", script(&small_script()));
    for (fault, checks) in [
        ("update warehouse set w_ytd = w_ytd + 1 where w_id = 2", &["1", "8"][..]),
        ("update district set d_ytd = d_ytd - 1 where d_w_id = 1 and d_id = 3", &["1", "9"]),
        ("update district set d_next_o_id = 32 where d_w_id = 1 and d_id = 3", &["2"]),
        (
            "delete from new_orders where no_w_id = 1 and no_d_id = 2 and no_o_id = 25",
            &["3", "5", "11"],
        ),
        (
            "delete from order_line where ol_w_id = 2 and ol_d_id = 1 and ol_o_id = 30 and ol_number = 2",
            &["4", "6"],
        ),
        (
            "update orders set o_carrier_id = null where o_w_id = 1 and o_d_id = 1 and o_id = 3",
            &["5", "7"],
        ),
        (
            "update order_line set ol_delivery_d = null where ol_w_id = 1 and ol_d_id = 1 and ol_o_id = 3",
            &["7"],
        ),
        (
            "delete from history where h_c_w_id = 1 and h_c_d_id = 1 and h_c_id = 3",
            &["8", "9", "10"],
        ),
        (
            "update customer set c_balance = c_balance + 1 where c_w_id = 1 and c_d_id = 1 and c_id = 3",
            &["10", "12"],
        ),
        (
            "update customer set c_ytd_payment = 0 where c_w_id = 1 and c_d_id = 1 and c_id = 3",
            &["12"],
        ),
    ] {
        let bench = Bench::loaded(&plan(&keys, "'load', 'orders'"));
        bench.run(fault);
        let failed = bench.failed_checks();
        let numbers: Vec<&str> =
            failed.iter().filter_map(|check| Some(check.split_once(':')?.0)).collect();
        assert_eq!(numbers, checks, "{fault}");
    }
}
