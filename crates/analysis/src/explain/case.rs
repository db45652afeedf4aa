//! One compared step: the repeats of both targets, and how a figure differs between them.

use record::{CellKey, SettingRole};

use super::accounting::changed_time;
use super::difference::{TargetDifference, shared};
use super::thresholds::{EXPLAINS, INDEX_GROWTH, SAME, WHOLE_MAX};
use crate::compare::{
    Compared, ComparedStep, Interval, NamedFunction, Pairing, PlanDifference, Sample,
    StateDifference, Verdict,
};
use crate::figures::average::mean;
use crate::figures::index::RowIndex;
use crate::figures::operation::{noun, throughput_unit};
use crate::figures::{Figures, Row};
use crate::{compare, counted};

/// The metric of the size of all indexes when the step began.
pub(super) const INDEX_GB: &str = "index_gb";

/// The metric of the CPU of the engine's threads that serve no connection.
pub(super) const BACKGROUND_CPU: &str = "background_cpu_us_per_op";

/// The comparison that is explained.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub figures: &'a Figures,
    pub index: &'a RowIndex<'a>,
    pub compared: &'a Compared,
    /// The compared steps have several numbers of clients, so that names include it.
    names_clients: bool,
    /// The compared steps have several variants, so that names include them.
    names_variants: bool,
}

impl<'a> Context<'a> {
    pub(super) fn new(
        figures: &'a Figures,
        index: &'a RowIndex<'a>,
        compared: &'a Compared,
    ) -> Self {
        let neighbors = compared.rows.windows(2);
        Self {
            figures,
            index,
            compared,
            names_clients: neighbors.clone().any(|two| two[0].cell.clients != two[1].cell.clients),
            names_variants: neighbors.clone().any(|two| two[0].cell.variant != two[1].cell.variant),
        }
    }

    /// Appends the variant and clients to a name, where several were compared: `scan`, `scan of
    /// small at 8 clients`.
    pub(super) fn named(self, name: &str, cell: &CellKey) -> String {
        let (variant, clients) = cell.load();
        let mut text = name.to_owned();

        if let Some(variant) = self.named_variant(variant) {
            text += &format!(" of {variant}");
        }
        if self.names_clients {
            text += &format!(" at {}", counted(clients as usize, "client"));
        }

        text
    }

    /// Returns the variant that the name of a place needs.
    pub(super) fn named_variant(self, variant: Option<&str>) -> Option<&str> {
        variant.filter(|_| self.names_variants)
    }
}

/// The compared repeats of one target in one step.
#[derive(Clone)]
pub(super) struct Side<'a> {
    /// The rows of the repeats: at least one, all valid.
    pub rows: Vec<&'a Row>,
    /// Operations per second: the geometric mean of the repeats.
    pub throughput: f64,
}

impl<'a> Side<'a> {
    fn new(
        context: Context<'a>,
        step: &ComparedStep,
        target: &str,
        samples: &[Sample],
    ) -> Option<Self> {
        let mut rows: Vec<&Row> = context.index.rows(step.place(), target).collect();
        rows.retain(|row| row.valid && samples.iter().any(|sample| sample.is_of(row)));

        let logs: f64 = samples.iter().map(|sample| sample.value.ln()).sum();
        let throughput = (logs / samples.len() as f64).exp();
        let is_rate = throughput.is_finite() && throughput > 0.0;
        (!rows.is_empty() && is_rate).then_some(Self { rows, throughput })
    }

    /// Returns the mean of a metric over the repeats that have it.
    pub(super) fn metric(&self, name: &str) -> Option<f64> {
        mean(self.rows.iter().filter_map(|row| row.metric(name)))
    }

    /// Returns the growth of an engine's counter per operation: the mean over the repeats that have
    /// it.
    pub(super) fn counter_per_op(&self, name: &str) -> Option<f64> {
        let of_row = |row: &&Row| {
            let operations = self.throughput * row.seconds;
            let grown = *row.counters.get(name)?;
            (operations > 0.0).then(|| grown / operations)
        };
        mean(self.rows.iter().filter_map(of_row))
    }

    /// Returns the time of one operation in microseconds: the time of all clients over their
    /// operations.
    pub(super) fn time_us(&self) -> f64 {
        f64::from(self.rows[0].cell.clients.max(1)) * 1e6 / self.throughput
    }

    /// Returns the sum of a host column over all seconds of all repeats; the growth, if the column
    /// is cumulative.
    pub(super) fn host_sum(&self, name: &str) -> Option<f64> {
        let mut values = self.rows.iter().filter_map(|row| row.host_sums.get(name)).peekable();
        values.peek()?;
        Some(values.sum())
    }
}

/// A figure of the base, and the same figure of the target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// The base's figure.
    pub base: f64,
    /// The target's figure.
    pub value: f64,
}

impl Pair {
    /// Returns value over base, where both are above zero.
    pub fn ratio(self) -> Option<f64> {
        (self.base > 0.0 && self.value > 0.0).then(|| self.value / self.base)
    }

    /// Returns the larger over the smaller figure; infinite if only one of them is zero.
    pub(super) fn factor(self) -> f64 {
        match self.ratio() {
            Some(ratio) => ratio.max(1.0 / ratio),
            None if self.base == self.value => 1.0,
            None => f64::INFINITY,
        }
    }

    /// Returns whether the two differ by no more than noise.
    pub(super) fn is_same(self) -> bool {
        self.factor() <= 1.0 / (1.0 - SAME)
    }

    /// Returns the difference of the target's figure from the base's.
    pub fn growth(self) -> f64 {
        self.value - self.base
    }

    pub(super) fn max(self) -> f64 {
        self.base.max(self.value)
    }
}

/// A step of a target, compared with the same step of the base.
#[derive(Clone)]
pub(super) struct Case<'a> {
    pub context: Context<'a>,
    pub compared: &'a ComparedStep,
    pub base: Side<'a>,
    pub side: Side<'a>,
    /// The speed over the base's: throughput, unless [`Case::by_response`] has replaced it.
    pub ratio: f64,
    /// The interval of the true ratio; `None` without repeats.
    pub interval: Option<Interval>,
    /// The differences between the two targets.
    pub difference: TargetDifference,
}

impl<'a> Case<'a> {
    /// Returns the case of a comparison; `None` if there is nothing to compare, or it has no row.
    pub(super) fn new(context: Context<'a>, compared: &'a ComparedStep) -> Option<Self> {
        if matches!(compared.verdict, Verdict::Invalid | Verdict::NotComparable) {
            return None;
        }

        let base_name = &context.compared.base;
        let base = Side::new(context, compared, base_name, &compared.base_values)?;
        let side = Side::new(context, compared, &compared.cell.target, &compared.values)?;

        let is_rate = |ratio: &f64| ratio.is_finite() && *ratio > 0.0;
        Some(Self {
            context,
            compared,
            difference: TargetDifference::between(context.figures, base.rows[0], side.rows[0]),
            base,
            side,
            ratio: compared.ratio.filter(is_rate)?,
            interval: compared.interval,
        })
    }

    /// Returns the case with the speed of an operation by its response time instead of throughput, which
    /// a schedule decides: operations that take twice as long are half as fast.
    pub(super) fn by_response(&self, time: &ComparedStep) -> Option<Self> {
        let interval = time.interval.map(|of_time| Interval {
            low: 1.0 / of_time.high,
            high: 1.0 / of_time.low,
            ..of_time
        });
        Some(Self { ratio: 1.0 / time.ratio?, interval, ..self.clone() })
    }

    /// Returns the comparison of another metric in this step, if it was compared.
    pub(super) fn of_metric(&self, metric: &str) -> Option<&'a ComparedStep> {
        let mut rows = self.context.compared.rows.iter();
        rows.find(|row| row.metric == metric && row.compares_the_same(self.compared))
    }

    /// Returns true if the comparison of a metric in this step shows a change, and false if it shows none;
    /// `None` if there is none with a verdict on that.
    pub(super) fn verdict_on(&self, metric: &str) -> Option<bool> {
        self.of_metric(metric)?.verdict.shows_change()
    }

    /// Returns whether a schedule decides the throughput of both sides.
    pub(super) fn is_scheduled(&self) -> bool {
        let mut rows = self.base.rows.iter().chain(&self.side.rows);
        rows.all(|row| row.is_scheduled())
    }

    /// Returns whether the base and the target missed the rate of writes in some repeat. A missed
    /// rate of the main operation is its throughput.
    pub(super) fn missed_writes(&self) -> [bool; 2] {
        [&self.base, &self.side].map(|side| {
            side.rows.iter().any(|row| {
                let mut sla = row.sla.iter();
                sla.any(|sla| !sla.met && row.main_op.as_ref() != Some(&sla.kind))
            })
        })
    }

    pub(super) fn base_name(&self) -> &'a str {
        &self.context.compared.base
    }

    pub(super) fn target(&self) -> &'a str {
        &self.compared.cell.target
    }

    /// Returns the name of the place: `scan`, `scan at 8 clients`, `scan of small at 8 clients`.
    pub(super) fn place(&self) -> String {
        let step = self.compared;
        self.context.named(&step.step, &step.cell)
    }

    /// Returns the target that both runs share, where runs are compared.
    pub(super) fn shared(&self) -> Option<&'a str> {
        shared(self.context.figures, self.side.rows[0])
    }

    /// Returns the name of the target: `pg17.base`, or of two runs `run 2 of pg17.base`.
    pub(super) fn who(&self) -> String {
        match self.shared() {
            Some(shared) => format!("{} of {shared}", self.target()),
            None => self.target().to_owned(),
        }
    }

    /// Returns the function in which most of the change of CPU is, if both targets were profiled.
    pub(super) fn named_function(&self) -> Option<&'a NamedFunction> {
        let mut profiles = self.context.compared.profiles.iter();
        let of_step = profiles.find(|profile| {
            profile.step == self.compared.step && profile.cell.is_repeat_of(&self.compared.cell)
        });
        of_step?.named.as_ref()
    }

    /// Returns whether a comparison of something else is of this step.
    fn is_of_step(&self, cell: &CellKey, workload: &str, step: &str) -> bool {
        let compared = self.compared;
        (workload, step) == (&compared.workload, &compared.step)
            && cell.is_repeat_of(&compared.cell)
    }

    /// Returns the states of sessions whose change is shown, the largest change first.
    pub(super) fn changed_states(&self) -> impl Iterator<Item = &'a StateDifference> {
        let mut waits = self.context.compared.waits.iter();
        let of_step =
            waits.find(|waits| self.is_of_step(&waits.cell, &waits.workload, &waits.step));
        let states = of_step.into_iter().flat_map(|waits| &waits.states);
        states.filter(|state| state.time.is_shown)
    }

    /// Returns the statements of the step whose plans differ.
    pub(super) fn changed_plans(&self) -> &'a [PlanDifference] {
        let mut plans = self.context.compared.plans.iter();
        let of_step =
            plans.find(|plans| self.is_of_step(&plans.cell, &plans.workload, &plans.step));
        of_step.map_or(&[], |plans| &plans.statements)
    }

    /// Returns the wait of sessions that changed most, if the time of an operation is shown to have changed
    /// as well, and the wait makes up enough of that, and not more than all. Where something else has a rate, other connections work beside the main
    /// ones, and their waits say nothing about these.
    pub(super) fn named_wait(&self) -> Option<&'a StateDifference> {
        let mut rows = self.base.rows.iter().chain(&self.side.rows);
        if rows.any(|row| row.sla.is_some() && !row.is_scheduled()) {
            return None;
        }
        let (_, time) = changed_time(self).ok()?;
        let mut waits = self.changed_states().filter(|state| state.is_wait());
        waits.find(|state| {
            let share = state.time.difference_us / time.mean;
            (EXPLAINS..=WHOLE_MAX).contains(&share)
        })
    }

    /// Returns the size of all indexes when the step began, in GB, if it is shown to have changed with
    /// the time of an operation, by [`INDEX_GROWTH`] or more.
    pub(super) fn changed_index_gb(&self) -> Option<Pair> {
        let size = self.metric(INDEX_GB)?;
        let is_shown = self.difference(|row| row.metric(INDEX_GB))?.is_shown();
        let is_same_direction = (size.growth() > 0.0) == self.is_slower();
        (is_shown && is_same_direction && size.factor() >= INDEX_GROWTH).then_some(size)
    }

    /// Returns whether the plan declares a difference in a setting of processors or threads.
    pub(super) fn limits_processors(&self) -> bool {
        !self.difference.of_role(SettingRole::Processors).is_empty()
    }

    pub(super) fn is_slower(&self) -> bool {
        self.ratio < 1.0
    }

    /// Returns the logarithm of how much longer an operation takes.
    pub(super) fn log_time(&self) -> f64 {
        -self.ratio.ln()
    }

    /// Returns the mean of a metric on both sides.
    pub(super) fn metric(&self, name: &str) -> Option<Pair> {
        self.pair(|side| side.metric(name))
    }

    /// Returns the sides whose threads cannot be told apart in any repeat: base, then target.
    pub(super) fn without_threads(&self) -> Vec<&'a str> {
        let sides = [(self.base_name(), &self.base), (self.target(), &self.side)];
        let unknown = sides.into_iter().filter(|(_, side)| {
            let mut rows = side.rows.iter();
            rows.all(|row| compare::has_only_process_cpu(row))
        });
        unknown.map(|(name, _)| name).collect()
    }

    /// Returns the CPU of the clients and of the server's whole process, if the threads of one side
    /// cannot be told apart.
    pub(super) fn process_cpu(&self) -> Option<Pair> {
        if self.without_threads().is_empty() {
            return None;
        }
        self.pair(|side| mean(side.rows.iter().filter_map(|row| compare::process_cpu(row))))
    }

    /// Returns own CPU, or what stands in for it.
    pub(super) fn own_cpu(&self) -> Option<Pair> {
        self.metric(compare::OWN_CPU).or_else(|| self.process_cpu())
    }

    pub(super) fn pair(&self, figure: impl Fn(&Side<'a>) -> Option<f64>) -> Option<Pair> {
        Some(Pair { base: figure(&self.base)?, value: figure(&self.side)? })
    }

    /// Returns the difference of a figure between the repeats, paired as for throughput; `None` if
    /// a repeat lacks it, or there is only one.
    pub(super) fn difference(
        &self,
        figure: impl Fn(&Row) -> Option<f64>,
    ) -> Option<compare::Difference> {
        let (base, target) = (&self.base.rows, &self.side.rows);
        match self.compared.pairing {
            Pairing::Single => None,
            Pairing::Independent => {
                let of_base: Option<Vec<f64>> = base.iter().map(|row| figure(row)).collect();
                let of_target: Option<Vec<f64>> = target.iter().map(|row| figure(row)).collect();
                compare::Difference::of_samples(&of_base?, &of_target?)
            }

            Pairing::Paired => {
                let mut pairs = Vec::new();
                for row in base {
                    let is_partner = |other: &&&Row| {
                        other.run == row.run && other.cell.repeat == row.cell.repeat
                    };
                    let partner = target.iter().find(is_partner)?;

                    pairs.push((figure(row)?, figure(partner)?));
                }
                compare::Difference::of_pairs(&pairs)
            }
        }
    }

    /// Returns the mean size of the devices' reads, in KB.
    pub(super) fn read_kb(&self) -> Option<Pair> {
        self.pair(|side| {
            let reads = side.metric("rpq").filter(|reads| *reads > 0.0)?;
            Some(side.metric("rkbpq")? / reads)
        })
    }

    /// Returns whether the mean size of the devices' reads is shown to differ: by the verdict on it where it
    /// is compared, else by the repeats.
    pub(super) fn read_kb_differs(&self) -> bool {
        if let Some(is_shown) = self.verdict_on("rareqsz") {
            return is_shown;
        }

        let of_repeats = self.difference(|row| {
            let reads = row.metric("rpq").filter(|reads| *reads > 0.0)?;
            Some((row.metric("rkbpq")? / reads).ln())
        });
        of_repeats.is_some_and(|difference| difference.is_shown())
    }

    /// Returns the CPU of the engine's threads that serve no connection, in microseconds per operation, if
    /// it is shown to have changed, and by more time than own CPU.
    pub(super) fn changed_background_cpu(&self) -> Option<Pair> {
        let background = self.metric(BACKGROUND_CPU)?;
        let own = self.metric(compare::OWN_CPU)?;
        let is_shown = self.difference(|row| row.metric(BACKGROUND_CPU))?.is_shown();
        let is_larger = background.growth().abs() > own.growth().abs();
        (is_shown && is_larger).then_some(background)
    }

    /// Returns the share of a time per operation in a client's time: the larger of both sides.
    pub(super) fn share_of_time(&self, us: Pair) -> f64 {
        (us.base / self.base.time_us()).max(us.value / self.side.time_us())
    }

    /// Returns the name of an operation.
    pub(super) fn noun(&self) -> &str {
        let row = self.side.rows[0];
        noun(row.kind, row.main_operation())
    }

    /// Returns the unit of the case's throughput.
    pub(super) fn rate(&self) -> String {
        let row = self.side.rows[0];
        throughput_unit(row.kind, row.main_operation())
    }
}
