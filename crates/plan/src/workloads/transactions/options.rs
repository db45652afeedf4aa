//! Reads how a test runs: its length, its rate or pauses, the homes of its clients, and its isolation
//! level. The workload's table has the values that each step takes unless its own table sets them.

use std::time::Duration;

use crate::reading::context::{Context, Field, Section};
use crate::reading::quantity::Quantity;
use crate::reading::value_kinds::{Choice, Flag, Optional};
use crate::spec::transactions::{HomeRule, Isolation, Pause, Script};
use crate::spec::{TestLength, TestRate, TransactionsStepKind};
use crate::text::diagnostic::Place;
use crate::text::wording::code;
use crate::workloads::step;
use crate::workloads::test_rate::RateKeys;

use super::pauses::{PauseKind, PauseTimes, pauses};

const TIME_MAX: Duration = Duration::from_secs(365 * 24 * 3600);
const TRANSACTIONS_MAX: u64 = 10_000_000_000_000;
/// The usual time and warm-up of a test that ends after a time. A test that ends after its work has no
/// warm-up, in which a faster engine would do more work.
const TIME: Duration = Duration::from_secs(10);
const WARMUP: Duration = Duration::from_secs(5);

const TIMES: Optional<Quantity<Duration>> =
    Optional(Quantity::time(step::TIME_MIN..=TIME_MAX), "(until all transactions are done)");
const WARMUPS: Quantity<Duration> = Quantity::time(Duration::ZERO..=TIME_MAX);
const TRANSACTIONS: Optional<Quantity<u64>> =
    Optional(Quantity::count(1..=TRANSACTIONS_MAX), "(as many as the time allows)");
const HOMES: Choice<HomeRule> = Choice(HomeRule::NAMES);
const LEVELS: Choice<Isolation> = Choice(Isolation::NAMES);
const PAUSES: Optional<PauseKind> = Optional(PauseKind, "(none)");
const FACTOR: Quantity<f64> = Quantity::factor();

/// The options of tests in the workload's table.
pub(super) struct TestOptions {
    home: Field<HomeRule>,
    isolation: Field<Isolation>,
    transactions: Field<Option<u64>>,
    warmup: Field<Duration>,
    time: Field<Option<Duration>>,
    rate: RateKeys,
    think: Field<Option<PauseTimes>>,
    keying: Field<Option<PauseTimes>>,
    factor: Field<f64>,
}

impl TestOptions {
    /// Takes the options from the workload's table.
    pub(super) fn read(cx: &mut Context<'_>, section: &mut Section) -> Self {
        refuse_two_lengths(cx, section);

        let home = cx.field(section, "home", &HOMES, HomeRule::Fixed);
        let isolation = cx.field(section, "isolation", &LEVELS, Isolation::Default);
        let transactions = cx.field(section, "transactions", &TRANSACTIONS, None);
        let ends_by_time = transactions.value.is_none();
        let warmup = if ends_by_time { WARMUP } else { Duration::ZERO };
        Self {
            home,
            isolation,
            transactions,
            warmup: cx.field(section, "warmup", &WARMUPS, warmup),
            time: cx.field(section, "time", &TIMES, ends_by_time.then_some(TIME)),
            rate: RateKeys::read(cx, section),
            think: cx.field(section, "think", &PAUSES, None),
            keying: cx.field(section, "keying", &PAUSES, None),
            factor: cx.field(section, "think-factor", &FACTOR, 1.0),
        }
    }

    /// Reads the work of a step that runs a test, by the test's index, from the step's table.
    pub(super) fn of_step(
        &self,
        cx: &mut Context<'_>,
        section: &mut Section,
        script: &Script,
        test: usize,
    ) -> TransactionsStepKind {
        refuse_two_lengths(cx, section);

        let has_homes = script.home_tables(test).next().is_some();
        let has_own_home = section.place_of("home") != Place::Nowhere;
        let home = cx.inherited(section, "home", &HOMES, &self.home, self.home.value);
        if has_own_home && !has_homes {
            refuse_home(cx, &home, "the step's transactions have");
        }

        let isolation = &self.isolation;
        let isolation = cx.inherited(section, "isolation", &LEVELS, isolation, isolation.value);
        let transactions = self.transactions_of(cx, section);
        let warmup = self.warmup_of(cx, section, transactions);
        let time = self.time_of(cx, section, transactions);
        let rate = self.rate.of_step(cx, section);
        let pauses = self.pauses_of(cx, section, script, &rate);
        TransactionsStepKind::Run {
            test,
            length: match transactions {
                Some(transactions) => TestLength::Transactions(transactions),
                None => TestLength::Time(time.unwrap_or(TIME)),
            },
            warmup,
            home: home.value,
            isolation: isolation.value,
            rate: rate.value,
            pauses,
            reported: cx.field(section, "reported", &Flag, true).value,
        }
    }

    /// Takes the waits of clients. Reports a step that has a rate as well.
    fn pauses_of(
        &self,
        cx: &mut Context<'_>,
        section: &mut Section,
        script: &Script,
        rate: &Field<Option<TestRate>>,
    ) -> Vec<Pause> {
        let are_own = ["think", "keying"].map(|key| section.place_of(key) != Place::Nowhere);
        let think = cx.inherited(section, "think", &PAUSES, &self.think, self.think.value.clone());
        let keying =
            cx.inherited(section, "keying", &PAUSES, &self.keying, self.keying.value.clone());
        let factor =
            cx.inherited(section, "think-factor", &FACTOR, &self.factor, self.factor.value);

        // `check` looks at the times of the workload's table, once for all steps.
        for ((key, times), is_own) in [("think", &think), ("keying", &keying)].iter().zip(are_own) {
            if let Some(times) = times.value.as_ref().filter(|_| is_own) {
                times.check(cx, &section.name_of(key), script);
            }
        }

        let pauses = pauses(script, think.value.as_ref(), keying.value.as_ref(), factor.value);
        if !pauses.is_empty() && rate.value.is_some() {
            let waits = if think.value.is_some() { think.place } else { keying.place };
            let message = "a client with think or keying times cannot have a rate";
            cx.error("plan::conflict", rate.place, message)
                .label("begins transactions at this rate, whatever the replies")
                .also(waits, "begins each one a time after the reply to the one before")
                .help("remove one of them; more clients with the same times make a higher rate");
        }
        pauses
    }

    /// Reports options of the workload's table that don't fit the script: `home` if no transaction
    /// asks for homes, and times of transactions that it does not have.
    pub(super) fn check(&self, cx: &mut Context<'_>, script: &Script) {
        if script.transactions.iter().all(|transaction| transaction.homes.is_empty()) {
            refuse_home(cx, &self.home, "the script has");
        }
        for (key, times) in [("think", &self.think), ("keying", &self.keying)] {
            if let Some(times) = &times.value {
                times.check(cx, &format!("{}.{key}", super::PATH), script);
            }
        }
    }

    /// Takes the number of transactions. A time in the step's own table overrides a number in the
    /// workload's.
    fn transactions_of(&self, cx: &mut Context<'_>, section: &mut Section) -> Option<u64> {
        if section.place_of("time") == Place::Nowhere {
            let from = &self.transactions;
            cx.inherited(section, "transactions", &TRANSACTIONS, from, from.value).value
        } else {
            cx.field(section, "transactions", &TRANSACTIONS, None).value
        }
    }

    /// Takes the time; `None` if the step ends with its `transactions`.
    fn time_of(
        &self,
        cx: &mut Context<'_>,
        section: &mut Section,
        transactions: Option<u64>,
    ) -> Option<Duration> {
        if transactions.is_none() {
            let default = self.time.value.or(Some(TIME));
            cx.inherited(section, "time", &TIMES, &self.time, default).value
        } else {
            cx.field(section, "time", &TIMES, None).value
        }
    }

    /// Takes the time of the warm-up. The usual one depends on what ends the step.
    fn warmup_of(
        &self,
        cx: &mut Context<'_>,
        section: &mut Section,
        transactions: Option<u64>,
    ) -> Duration {
        let is_given = self.warmup.place != Place::Nowhere;
        if is_given || transactions.is_some() == self.transactions.value.is_some() {
            cx.inherited(section, "warmup", &WARMUPS, &self.warmup, self.warmup.value).value
        } else {
            let usual = if transactions.is_none() { WARMUP } else { Duration::ZERO };
            cx.field(section, "warmup", &WARMUPS, usual).value
        }
    }
}

/// Reports a plan with `home` where nothing asks for the homes of clients.
fn refuse_home(cx: &mut Context<'_>, home: &Field<HomeRule>, who_has: &str) {
    if home.place == Place::Nowhere || !home.trusted {
        return;
    }

    let message = format!("`home` has no effect: {who_has} no `home(TABLE)`");
    cx.error("plan::conflict", home.place, message)
        .label("decides for which rows of a table a client works")
        .help("remove it, or draw the number of a row with `let NAME = home(TABLE);`");
}

/// Reports a table that ends a test both after a time and after a number of transactions.
fn refuse_two_lengths(cx: &mut Context<'_>, section: &Section) {
    let (time, transactions) = (section.place_of("time"), section.place_of("transactions"));
    if time == Place::Nowhere || transactions == Place::Nowhere {
        return;
    }

    let transactions_key = code(&section.name_of("transactions"));
    let time_key = code(&section.name_of("time"));
    let message = format!("{transactions_key} and {time_key} cannot be combined");
    cx.error("plan::conflict", time, message)
        .label("ends a test after this time")
        .also(transactions, "ends it after this many transactions")
        .help("remove one of them");
}
