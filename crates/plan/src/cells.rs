//! The matrix of a plan: its cells, in the order in which they run.

use words::{CellKind, Random};

use crate::spec::{BuildSource, Order, Plan, Target, Workload};

/// A part of the seed of the order of variants, which no order of targets has.
const VARIANTS: u64 = u64::MAX;

/// The number of times that each highest rate is measured. The rates that follow from them need not be exact, but the
/// same for all that is compared.
const UNLIMITED_REPEATS: u32 = 1;

/// The clients of an exact cell: work is counted on one connection of each role.
const EXACT_CLIENTS: u32 = 1;

/// One target with one variant of the workload, one number of clients and one repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Index in the plan's targets.
    pub target: usize,
    /// Index in the plan's variants.
    pub variant: usize,
    /// The number of clients.
    pub clients: u32,
    /// The number of the repeat, from 1. The cells of each kind are counted on their own.
    pub repeat: u32,
    /// The purpose of its measurement.
    pub kind: CellKind,
}

/// A target and a variant of the workload that its engine cannot run: the pair has no cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotApplicable {
    /// Index in the plan's targets.
    pub target: usize,
    /// Index in the plan's variants.
    pub variant: usize,
    /// The reason.
    pub why: &'static str,
}

impl Plan {
    /// Returns true if a target's server has replicas, whether or not assay starts them.
    pub fn has_replicas(&self, target: &Target) -> bool {
        let build = &self.builds[target.build];
        self.configs[target.config].replicas > 0 || !build.replica_urls.is_empty()
    }

    /// Returns the index of the target that one is compared with: the base of its build, or else of
    /// its engine, if the plan has several.
    pub fn base_of(&self, target: &Target) -> Option<usize> {
        if self.bases.is_empty() {
            return Some(self.base);
        }
        let build = &self.builds[target.build];
        let find = |name: &str| self.bases.iter().find(|base| base.group == name);
        let base = find(&build.name).or_else(|| find(build.engine.name()))?;
        Some(base.target)
    }

    /// Returns the targets and variants that have no cells together.
    pub fn not_applicable(&self) -> Vec<NotApplicable> {
        let mut pairs = Vec::new();
        for variant in 0..self.variants.len() {
            for target in 0..self.targets.len() {
                let with_reason = |why| NotApplicable { target, variant, why };
                pairs.extend(self.why_not_applicable(target, variant).map(with_reason));
            }
        }
        pairs
    }

    /// Returns the targets whose work cannot be counted, with the reasons.
    pub fn not_countable(&self) -> Vec<(&Target, &'static str)> {
        let targets = self.targets.iter();
        targets.filter_map(|target| Some((target, self.why_not_countable(target)?))).collect()
    }

    fn why_not_countable(&self, target: &Target) -> Option<&'static str> {
        let build = &self.builds[target.build];
        if !build.engine.facts().stores_data {
            Some("the engine does no work")
        } else if matches!(build.source, BuildSource::Url(_)) {
            Some("its server runs already")
        } else if self.has_replicas(target) {
            Some("it has replicas")
        } else if target.load_with.is_some() {
            Some("another target loads its database")
        } else {
            None
        }
    }

    fn why_not_applicable(&self, target: usize, variant: usize) -> Option<&'static str> {
        let engine = self.builds[self.targets[target].build].engine;
        self.variants[variant].workload.not_applicable_to(engine)
    }

    /// Returns the cells in the order in which they run; those that measure the highest rates come
    /// first, and those that are profiled or exact last.
    pub fn cells(&self) -> Vec<Cell> {
        // Counted work depends on no rate.
        let has_rates = self.repeats > 0 || self.profile.repeats > 0;
        let unlimited = if has_rates { UNLIMITED_REPEATS } else { 0 };
        let mut cells = self.rounds(unlimited, CellKind::Unlimited, &self.clients);
        cells.extend(self.rounds(self.repeats, CellKind::Measured, &self.clients));
        cells.extend(self.rounds(self.profile.repeats, CellKind::Profiled, &self.clients));
        cells.extend(self.rounds(self.exact.repeats, CellKind::Exact, &[EXACT_CLIENTS]));
        cells
    }

    /// Returns whether a target has cells of a kind with a variant of the workload.
    fn has_cell(&self, target: usize, variant: usize, clients: u32, kind: CellKind) -> bool {
        let is_wanted = match kind {
            CellKind::Measured | CellKind::Profiled => true,
            CellKind::Unlimited => self.measures_max(variant, clients),
            CellKind::Exact => self.why_not_countable(&self.targets[target]).is_none(),
        };
        is_wanted && self.why_not_applicable(target, variant).is_none()
    }

    /// Returns whether a variant of the workload has cells that measure its highest rates: it has a
    /// share of one that the plan does not give, and no variant before it has the same.
    fn measures_max(&self, variant: usize, clients: u32) -> bool {
        let workload = &self.variants[variant].workload;
        let is_to_be_measured = |workload: &Workload| {
            workload.shares_of_max().iter().any(|(_, share)| share.is_measured(clients))
        };
        let mut before = self.variants[..variant].iter().map(|variant| &variant.workload);

        is_to_be_measured(workload)
            && !before.any(|other| is_to_be_measured(other) && other.has_same_max_as(workload))
    }

    /// Returns the variants in their order in a repeat. They are compared with each other, so they take
    /// turns as targets do: see [`round`].
    fn variants_in(&self, repeat: u32) -> Vec<usize> {
        round(self.variants.len(), [self.seed, VARIANTS, 0], repeat)
    }

    /// Returns all cells of a kind.
    fn rounds(&self, repeats: u32, kind: CellKind, clients: &[u32]) -> Vec<Cell> {
        let mut cells = Vec::new();
        for repeat in 1..=repeats {
            for variant in self.variants_in(repeat) {
                for &clients in clients {
                    let seed = [self.seed, variant as u64, clients.into()];
                    for target in round(self.targets.len(), seed, repeat) {
                        if self.has_cell(target, variant, clients, kind) {
                            cells.push(Cell { target, variant, clients, repeat, kind });
                        }
                    }
                }
            }
        }

        if self.order == Order::Grouped {
            cells.sort_by_key(|cell| {
                let position = clients.iter().position(|clients| *clients == cell.clients);
                (cell.target, cell.variant, position, cell.repeat)
            });
        }

        cells
    }
}

/// Returns the order of `count` targets or variants in a repeat, counted from 1. The order is random, so
/// that no rhythm of the machine favors one of them, and balanced, so that none always comes later.
/// Odd repeats are shuffled with `seed`; the even repeat that follows is the mirror image. The
/// order does not depend on the number of repeats.
fn round(count: usize, seed: [u64; 3], repeat: u32) -> Vec<usize> {
    let pair = u64::from(repeat.saturating_sub(1) / 2);

    let mix = |state: u64| Random::new(state).next_u64();
    let mut state = seed.iter().fold(mix(pair), |state, part| mix(state ^ part));

    let mut order: Vec<usize> = (0..count).collect();
    // Fisher-Yates shuffle. With few targets, the bias of the modulo is below 1e-15.
    for last in (1..count).rev() {
        state = mix(state);
        order.swap(last, (state % (last as u64 + 1)) as usize);
    }
    if repeat.is_multiple_of(2) {
        order.reverse();
    }

    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_even_repeat_mirrors_the_one_before() {
        for seed in 0..50 {
            for count in 1..6 {
                for repeat in [1, 3, 5, 7] {
                    let mut odd = round(count, [seed, 0, 1], repeat);
                    odd.reverse();
                    assert_eq!(odd, round(count, [seed, 0, 1], repeat + 1));
                    odd.sort_unstable();
                    assert!(odd.into_iter().eq(0..count));
                }
            }
        }
    }

    #[test]
    fn every_order_of_three_targets_is_equally_likely() {
        let mut counts = std::collections::BTreeMap::<Vec<usize>, u32>::new();
        for seed in 0..600 {
            for pair in 0..10 {
                *counts.entry(round(3, [seed, 1, 8], 2 * pair + 1)).or_default() += 1;
            }
        }
        // 1000 expected of each; the standard deviation is 29.
        assert_eq!(counts.len(), 6);
        assert!(counts.values().all(|count| count.abs_diff(1000) < 130), "{counts:?}");
    }
}
