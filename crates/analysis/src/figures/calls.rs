//! The calls of several profiles in one tree.

use words::Stacks;

/// The calls of several profiles in one tree.
#[derive(Debug)]
pub struct Calls {
    /// The tree.
    pub tree: Stacks,
    /// The samples of each profile, by the node of their innermost frame.
    pub own: Vec<Vec<u64>>,
}

impl Calls {
    /// Returns the calls of profiles. Samples of nodes that are not `kept` count for their callers.
    pub fn of<'a>(
        profiles: impl IntoIterator<Item = &'a Stacks>,
        kept: impl Fn(&Stacks, usize) -> bool,
    ) -> Self {
        let mut tree = Stacks::default();
        let merged = profiles.into_iter().map(|profile| {
            let numbers = tree.merge_nodes(profile, |node| kept(profile, node));
            (profile.own().collect(), numbers)
        });
        let merged: Vec<(Vec<u64>, Vec<usize>)> = merged.collect();
        let own = merged.iter().map(|(own, numbers)| moved(own, numbers, &tree));
        Self { own: own.collect(), tree }
    }

    /// Returns the same calls. Samples of nodes that are not `kept` count for their callers. Names
    /// keep their numbers.
    pub fn of_nodes(&self, kept: impl Fn(usize) -> bool) -> Self {
        let mut tree = Stacks::default();
        let numbers = tree.merge_nodes(&self.tree, kept);
        let own = self.own.iter().map(|samples| moved(samples, &numbers, &tree));
        Self { own: own.collect(), tree }
    }

    /// Returns the samples of each profile, by node, with those of all callees.
    pub fn inclusive(&self) -> Vec<Vec<u64>> {
        let mut inclusive = self.own.clone();
        for of_profile in &mut inclusive {
            for node in (1..of_profile.len()).rev() {
                of_profile[self.tree.caller(node)] += of_profile[node];
            }
        }
        inclusive
    }
}

/// Returns samples by the new numbers of their nodes.
fn moved(samples: &[u64], numbers: &[usize], tree: &Stacks) -> Vec<u64> {
    let mut moved = vec![0; tree.node_count()];
    for (samples, number) in samples.iter().zip(numbers) {
        moved[*number] += samples;
    }
    moved
}
