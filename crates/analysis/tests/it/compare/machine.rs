//! A machine of which the truth is known: what it would measure, with noise and drift that the
//! tests choose.

use std::collections::BTreeMap;

pub use crate::random::Random;
use analysis::figures::{Figures, Looks, Row, StartedCell};
use record::{Status, StepKind};

pub const BASE: &str = "old.base";

impl Random {
    fn shuffle(&mut self, order: &mut [usize]) {
        for last in (1..order.len()).rev() {
            order.swap(last, (self.uniform() * (last + 1) as f64) as usize);
        }
    }

    /// Student's t with three degrees of freedom.
    pub fn student3(&mut self) -> f64 {
        let squares: f64 = (0..3).map(|_| self.normal().powi(2)).sum();
        self.normal() / (squares / 3.0).sqrt()
    }
}

/// The variation of each value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noise {
    /// 1%.
    Normal,
    /// Student's t with three degrees of freedom, times 1%.
    HeavyTailed,
    /// A delay that is 1% at the median and 3% or more in one of eight.
    Skewed,
    /// 1%, and one value of ten is 30% less.
    Outliers,
    /// 0.2%, and half of the values are 5% less.
    TwoModes,
    /// 1%, and three values of ten are 60% less.
    Bursts,
    /// 1% in the base. The values of other targets have a delay that is 2% at the median and 10%
    /// or more in one of twenty, and are otherwise so much faster that the mean logarithm is the
    /// same.
    DelaysOfTargets,
}

/// Those that repeats can cope with, also few.
pub const NOISES: [Noise; 4] = [Noise::Normal, Noise::HeavyTailed, Noise::Skewed, Noise::Outliers];

/// The mean of `ln(1 + 0.02 e^z)` for a normal z.
const MEAN_DELAY: f64 = 0.031_673;

impl Noise {
    fn factor(self, is_base: bool, random: &mut Random) -> f64 {
        match self {
            Noise::DelaysOfTargets if !is_base => {
                MEAN_DELAY.exp() / (1.0 + 0.02 * random.normal().exp())
            }
            Noise::Normal | Noise::DelaysOfTargets => (0.01 * random.normal()).exp(),
            Noise::HeavyTailed => (0.01 * random.student3()).exp(),
            Noise::Skewed => 1.0 / (1.0 + 0.01 * random.normal().exp()),
            Noise::Outliers => {
                let outlier = if random.uniform() < 0.1 { 0.7 } else { 1.0 };
                outlier * (0.01 * random.normal()).exp()
            }
            Noise::TwoModes => {
                let mode = if random.uniform() < 0.5 { 0.95 } else { 1.0 };
                mode * (0.002 * random.normal()).exp()
            }
            Noise::Bursts => {
                let burst = if random.uniform() < 0.3 { 0.4 } else { 1.0 };
                burst * (0.01 * random.normal()).exp()
            }
        }
    }
}

/// The drift of the machine over an invocation; it begins anew in each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Drift {
    None,
    /// From the first to the last slot of an invocation it gets 10% slower.
    Linear,
    /// The same in odd invocations, and 10% faster in even ones.
    ToAndFro,
    /// A random walk whose end has a standard deviation of 10%.
    Wandering,
    /// Each repeat has a level of its own, with a standard deviation of 5%.
    Levels,
    /// Neighbors: from cell to cell half of their load stays (an AR(1) process), its standard
    /// deviation is 35%.
    Neighbors,
    /// Every second cell is 10% slower.
    EveryTwo,
    /// Of four cells the second and third are 10% slower.
    EveryFour,
    /// Each cell has a level of its own, with a standard deviation of 2%, which all its steps
    /// share.
    Cells,
}

/// The spreads of a table's steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Steps {
    /// All have the noise as it is.
    Alike,
    /// Of four steps one has a fifth of the level of its cell, one twice as much, one half.
    Sensitive,
    /// The noise of each step is 0.2 to 5 times as large, in steps of the square root of 5.
    Differing,
    /// Alike, but one value of the table is a third of what it should be.
    OneWild,
    /// One step of eight has five times the noise of the others.
    FewNoisy,
}

impl Steps {
    /// Returns the power to which a step takes the level of its cell.
    fn sensitivity(self, step: usize) -> f64 {
        match self {
            Self::Sensitive => [0.2, 1.0, 2.0, 0.5][step % 4],
            Self::Alike | Self::Differing | Self::OneWild | Self::FewNoisy => 1.0,
        }
    }

    /// Returns the power to which a step takes the noise of a value.
    fn scale(self, step: usize) -> f64 {
        match self {
            Self::Differing => 5.0_f64.powf((step % 5) as f64 / 2.0 - 1.0),
            Self::FewNoisy if step % 8 == 7 => 5.0,
            Self::Alike | Self::Sensitive | Self::OneWild | Self::FewNoisy => 1.0,
        }
    }
}

pub const DRIFTS: [Drift; 4] = [Drift::None, Drift::Linear, Drift::Wandering, Drift::Levels];

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    /// `ab ab`
    Fixed,
    /// Each round in a random order of its own.
    Random,
    /// Odd rounds in a random order, which the next round mirrors: what `order = "interleaved"`
    /// does.
    Balanced,
    /// `aa bb`
    Grouped,
}

/// A run of one or several targets against the base.
#[derive(Clone, Copy, Debug)]
pub struct Truth {
    pub order: Order,
    pub noise: Noise,
    pub drift: Drift,
    pub repeats: u32,
    /// The number of invocations among which the repeats are divided, the first of them having the
    /// most; a day lies between them.
    pub invocations: u32,
    /// The machines, each of which measures a run of its own at the same time as the others:
    /// invocations by turns.
    pub machines: u32,
    /// The standard deviation of the logarithm of a machine's level.
    pub machine_levels: f64,
    /// The same of its ratio of each target and the base.
    pub machine_ratios: f64,
    /// Target / base, by target.
    pub ratios: &'static [f64],
    pub steps: usize,
    pub spreads: Steps,
    /// The number of steps, from the first one, in which targets have their ratios; in the others
    /// they are equal.
    pub changed_steps: usize,
    /// The standard deviation of each value's logarithm, relative to that of its noise.
    pub spread: f64,
    /// The times at which its results are looked at.
    pub looks: Looks,
}

impl Truth {
    /// Five repeats of two equal targets on one machine.
    pub const EQUAL: Self = Self {
        order: Order::Balanced,
        noise: Noise::Normal,
        drift: Drift::None,
        repeats: 5,
        invocations: 1,
        machines: 1,
        machine_levels: 0.0,
        machine_ratios: 0.0,
        ratios: &[1.0],
        steps: 1,
        spreads: Steps::Alike,
        changed_steps: usize::MAX,
        spread: 1.0,
        looks: Looks::Once,
    };
}

impl Default for Truth {
    fn default() -> Self {
        Self::EQUAL
    }
}

pub fn row(target: &str, repeat: u32, step: &str, value: f64) -> Row {
    Row {
        cell: record::CellKey::new(target, None, 1, repeat),
        workload: "sysbench".to_owned(),

        step: step.to_owned(),
        kind: StepKind::Query,
        reported: true,
        status: Status::Complete,
        seconds: 10.0,
        valid: true,
        metrics: BTreeMap::from([("qps", Some(value)), ("cpupq", Some(1e6 / value))]),
        ..Row::default()
    }
}

/// Returns the start of a target's repeat in the first invocation, so many seconds after the epoch.
pub fn started(target: &str, repeat: u32, seconds: u64) -> StartedCell {
    StartedCell {
        run: 0,
        machine: 0,
        cell: record::CellKey::new(target, None, 1, repeat),
        invocation: 1,
        started_unix_ns: seconds * 1_000_000_000,
        database: None,
    }
}

/// Returns the figures as they were after some repeats.
pub fn first_repeats(figures: &Figures, repeats: u32) -> Figures {
    let mut first = Figures { looks: figures.looks, ..Figures::default() };
    first.rows = figures.rows.iter().filter(|row| row.cell.repeat <= repeats).cloned().collect();
    let begun = figures.begun.iter().filter(|begun| begun.cell.repeat <= repeats);
    first.begun = begun.cloned().collect();
    first
}

/// A cell, and when it is measured.
struct Slot {
    target: usize,
    repeat: u32,
    invocation: u32,
    /// Its index in its invocation, from 0, and the number of slots there.
    index: usize,
    of: usize,
}

/// Returns the name of a target.
fn name_of(target: usize) -> String {
    match target {
        0 => BASE.to_owned(),
        target => format!("new{target}.base"),
    }
}

impl Truth {
    /// Returns the figures of one measurement.
    pub fn measure(&self, random: &mut Random) -> Figures {
        let targets = self.ratios.len() + 1;
        let mut level = 0.0;
        let mut normal = |deviation: f64| match deviation {
            // No number is drawn for nothing.
            0.0 => 0.0,
            deviation => deviation * random.normal(),
        };
        let machines: Vec<(f64, Vec<f64>)> = (0..self.machines)
            .map(|_| {
                let level = normal(self.machine_levels);
                let ratios = self.ratios.iter().map(|_| normal(self.machine_ratios));
                (level, ratios.collect())
            })
            .collect();
        let mut figures = Figures { looks: self.looks, ..Figures::default() };
        for slot in self.slots(random) {
            let between = (slot.of - 1) as f64;
            if slot.index == 0 {
                level = 0.0;
            }
            let way = if slot.invocation % 2 == 1 { -0.1 } else { 0.1 };
            match self.drift {
                Drift::None => {}
                Drift::Linear => level = -0.1 * slot.index as f64 / between,
                Drift::ToAndFro => level = way * slot.index as f64 / between,
                Drift::Wandering if slot.index > 0 => {
                    level += 0.1 / between.sqrt() * random.normal();
                }
                Drift::Levels if slot.index % targets == 0 => level = 0.05 * random.normal(),
                Drift::Neighbors => {
                    let (kept, new) = if slot.index > 0 { (0.5, 0.75_f64) } else { (0.0, 1.0) };
                    level = kept * level + 0.35 * new.sqrt() * random.normal();
                }
                Drift::EveryTwo => level = -0.1 * (slot.index % 2) as f64,
                Drift::EveryFour => level = -0.1 * (slot.index.div_ceil(2) % 2) as f64,
                Drift::Cells => level = 0.02 * random.normal(),
                Drift::Wandering | Drift::Levels => {}
            }
            let machine = ((slot.invocation - 1) % self.machines) as usize;
            let (machine_level, machine_ratios) = &machines[machine];
            let ratio = match slot.target.checked_sub(1) {
                None => 1.0,
                Some(target) => self.ratios[target] * machine_ratios[target].exp(),
            };
            let name = name_of(slot.target);
            for step in 0..self.steps {
                let level = f64::exp(level * self.spreads.sensitivity(step) + machine_level);
                let ratio = if step < self.changed_steps { ratio } else { 1.0 };
                let scale = self.spread * self.spreads.scale(step);
                let noise = self.noise.factor(slot.target == 0, random).powf(scale);
                let is_wild = self.spreads == Steps::OneWild && step == 0 && slot.index == 0;
                let wild = if is_wild { 1.0 / 3.0 } else { 1.0 };
                let value = 1000.0 * ratio * level * noise * wild;
                let mut row = row(&name, slot.repeat, &format!("s{step}"), value);
                row.run = machine;
                figures.rows.push(row);
            }
            // The clocks of machines differ.
            let day = u64::from((slot.invocation - 1) / self.machines) + 1;
            let seconds = day * 86_400 + 100 * slot.index as u64 + machine as u64;
            figures.begun.push(StartedCell {
                run: machine,
                machine,
                invocation: slot.invocation,
                ..started(&name, slot.repeat, seconds)
            });
        }
        figures
    }

    /// Returns the cells in the order in which they are measured.
    fn slots(&self, random: &mut Random) -> Vec<Slot> {
        let targets = self.ratios.len() + 1;
        let mut round: Vec<usize> = (0..targets).collect();
        let mut slots = Vec::new();
        let mut done = 0;
        for invocation in 1..=self.invocations {
            let left = self.invocations - invocation + 1;
            let repeats = (self.repeats - done).div_ceil(left);
            let those = done + 1..=done + repeats;
            let mut cells: Vec<(usize, u32)> = Vec::new();
            for repeat in those {
                match self.order {
                    Order::Balanced if repeat % 2 == 0 => round.reverse(),
                    Order::Balanced | Order::Random => random.shuffle(&mut round),
                    Order::Fixed | Order::Grouped => {}
                }
                cells.extend(round.iter().map(|&target| (target, repeat)));
            }
            if self.order == Order::Grouped {
                cells.sort_unstable();
            }
            let of = cells.len();
            slots.extend((0..).zip(cells).map(|(index, (target, repeat))| Slot {
                target,
                repeat,
                invocation,
                index,
                of,
            }));
            done += repeats;
        }
        slots
    }
}
