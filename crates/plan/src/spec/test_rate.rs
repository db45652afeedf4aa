//! The rate at which the clients of a test begin operations.

use super::{ExpectedRate, InsertStepKind, KvStep, SysbenchStepKind, TransactionsStepKind};

/// The rate of a test, whatever the replies: an open loop.
#[derive(Clone, Debug, PartialEq)]
pub enum TestRate {
    /// Operations per second and client.
    PerClient(f64),
    /// A share of the highest rate.
    OfMax(Box<ShareOfMax>),
}

/// The rate of a step in a plan.
#[derive(Clone, Debug, PartialEq)]
pub enum StepRate {
    /// The step cannot have a rate, or there is no such step.
    CannotHave,
    /// The step may have a rate, but has none.
    None,
    /// The step has this rate.
    Given(TestRate),
}

impl StepRate {
    pub(super) fn of_insert(kind: &InsertStepKind) -> Self {
        match kind {
            InsertStepKind::Write { rate, .. } => Self::of(rate.map(TestRate::PerClient)),
            InsertStepKind::Query { rate, .. } if *rate > 0.0 => {
                Self::Given(TestRate::PerClient(*rate))
            }
            _ => Self::CannotHave,
        }
    }

    pub(super) fn of_sysbench(kind: &SysbenchStepKind) -> Self {
        match kind {
            SysbenchStepKind::Run { rate, .. } => Self::of(rate.clone()),
            _ => Self::CannotHave,
        }
    }

    pub(super) fn of_transactions(kind: &TransactionsStepKind) -> Self {
        match kind {
            // Pauses are a schedule of their own.
            TransactionsStepKind::Run { rate, pauses, .. } if pauses.is_empty() => {
                Self::of(rate.clone())
            }
            _ => Self::CannotHave,
        }
    }

    pub(super) fn of_kv(step: &KvStep) -> Self {
        if step.kind.may_have_rate() { Self::of(step.rate.clone()) } else { Self::CannotHave }
    }

    /// Returns the rate of a step that may have one.
    fn of(rate: Option<TestRate>) -> Self {
        match rate {
            Some(rate) => Self::Given(rate),
            None => Self::None,
        }
    }
}

impl TestRate {
    /// Returns the operations per second and client, of so many clients. `None` if the highest rate is
    /// not known yet.
    pub fn per_client(&self, clients: u32) -> Option<f64> {
        match self {
            Self::PerClient(rate) => Some(*rate),
            Self::OfMax(share) => Some(share.of(share.max(clients)?) / f64::from(clients)),
        }
    }
}

/// A share of the highest rate of a test: what the slowest of all targets and variants achieves
/// without a rate, with the same number of clients.
#[derive(Clone, Debug, PartialEq)]
pub struct ShareOfMax {
    /// The share in percent.
    pub percent: f64,
    /// The highest rates of all clients together that the plan gives.
    pub given: ExpectedRate,
    /// Those that were measured before the cells that need them.
    pub measured: ExpectedRate,
}

impl ShareOfMax {
    /// Returns the share of a highest rate, with four significant digits.
    pub fn of(&self, max: f64) -> f64 {
        let rate = max * self.percent / 100.0;
        let digits = 10_f64.powf(3.0 - rate.log10().floor());
        (rate * digits).round() / digits
    }

    /// Returns the highest rate of so many clients together; `None` if it is not known yet.
    pub fn max(&self, clients: u32) -> Option<f64> {
        self.given.of_clients(clients).or_else(|| self.measured.of_clients(clients))
    }

    /// Returns whether Assay measures the highest rate of so many clients.
    pub fn is_measured(&self, clients: u32) -> bool {
        self.given.of_clients(clients).is_none()
    }
}
