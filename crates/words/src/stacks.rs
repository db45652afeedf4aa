//! Call stacks and the number of samples of each.

use std::collections::{BTreeMap, HashMap};

/// Call stacks of samples. Each stack lists its frames from the outermost to the one that ran.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    names: Vec<String>,
    ids: HashMap<String, u32>,
    samples: BTreeMap<Vec<u32>, u64>,
}

/// A node of the tree of all stacks, in which stacks share their outer frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackNode<'a> {
    /// The number of frames around this one.
    pub depth: usize,
    /// The function.
    pub frame: &'a str,
    /// The samples whose innermost frame this is.
    pub samples: u64,
}

impl Stacks {
    /// Counts samples of a stack, from the outermost frame inward.
    pub fn add<'a>(&mut self, frames: impl IntoIterator<Item = &'a str>, samples: u64) {
        let stack = frames.into_iter().map(|name| self.id(name)).collect();
        *self.samples.entry(stack).or_default() += samples;
    }

    /// Adds all samples of `other`.
    pub fn merge(&mut self, other: &Stacks) {
        for (stack, samples) in other.iter() {
            self.add(stack, samples);
        }
    }

    /// Returns each stack with the number of its samples. Stacks that share outer frames are next to each other.
    pub fn iter(&self) -> impl Iterator<Item = (impl Iterator<Item = &str>, u64)> {
        self.samples.iter().map(|(stack, samples)| {
            let names = stack.iter().map(|id| self.names[*id as usize].as_str());
            (names, *samples)
        })
    }

    /// Returns the number of all samples.
    pub fn total(&self) -> u64 {
        self.samples.values().sum()
    }

    /// Returns the tree of all stacks in depth-first order.
    pub fn tree(&self) -> Vec<StackNode<'_>> {
        let mut nodes: Vec<StackNode<'_>> = Vec::new();
        let mut before: &[u32] = &[];
        for (stack, samples) in &self.samples {
            let shared = stack.iter().zip(before).take_while(|(a, b)| a == b).count();
            nodes.extend((shared..stack.len()).map(|depth| StackNode {
                depth,
                frame: &self.names[stack[depth] as usize],
                samples: 0,
            }));
            if let (Some(node), true) = (nodes.last_mut(), shared < stack.len()) {
                node.samples = *samples;
            }
            before = stack;
        }
        nodes
    }

    fn id(&mut self, name: &str) -> u32 {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.ids.insert(name.to_owned(), id);
        id
    }
}

/// Reads a [tree](Stacks::tree) of stacks, node by node.
#[derive(Debug, Default)]
pub struct StackTree {
    stacks: Stacks,
    /// The last node and those around it.
    path: Vec<u32>,
}

impl StackTree {
    /// Adds the next node, depth first. A node that is deeper than the one before is its callee.
    pub fn add(&mut self, node: StackNode<'_>) {
        self.path.truncate(node.depth);
        let id = self.stacks.id(node.frame);
        self.path.push(id);
        if node.samples > 0 {
            let samples = self.stacks.samples.entry(self.path.clone());
            *samples.or_default() += node.samples;
        }
    }

    /// Returns the stacks of all nodes.
    pub fn into_stacks(self) -> Stacks {
        self.stacks
    }
}

/// Compares stacks by the names of their frames.
impl PartialEq for Stacks {
    fn eq(&self, other: &Self) -> bool {
        let by_name = |stacks: &Self| {
            let stack = |(frames, samples): (Vec<u32>, u64)| {
                let name = |id: u32| stacks.names[id as usize].clone();
                (frames.into_iter().map(name).collect(), samples)
            };
            stacks
                .samples
                .clone()
                .into_iter()
                .map(stack)
                .collect::<BTreeMap<Vec<String>, u64>>()
        };
        by_name(self) == by_name(other)
    }
}

/// Writes the stacks in the folded format of flame graph tools: `outer;inner 12`. A semicolon in a name becomes a colon.
impl std::fmt::Display for Stacks {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (frames, samples) in self.iter() {
            for (depth, frame) in frames.enumerate() {
                let separator = if depth == 0 { "" } else { ";" };
                write!(formatter, "{separator}{}", frame.replace(';', ":"))?;
            }
            writeln!(formatter, " {samples}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Stacks {
        let mut stacks = Stacks::default();
        stacks.add(["main", "query", "read"], 3);
        stacks.add(["main", "query"], 2);
        stacks.add(["main", "commit", "fsync"], 4);
        stacks.add(["main", "query", "read"], 1);
        stacks.add(["checkpointer"], 5);
        stacks
    }

    #[test]
    fn equal_stacks_are_counted_together() {
        assert_eq!(example().total(), 15);
        assert_eq!(
            example().to_string(),
            "main;query 2\nmain;query;read 4\nmain;commit;fsync 4\ncheckpointer 5\n"
        );
    }

    #[test]
    fn a_tree_has_each_shared_frame_once_and_holds_all_samples() {
        let stacks = example();
        let node = |depth, frame, samples| StackNode {
            depth,
            frame,
            samples,
        };
        let expected = [
            node(0, "main", 0),
            node(1, "query", 2),
            node(2, "read", 4),
            node(1, "commit", 0),
            node(2, "fsync", 4),
            node(0, "checkpointer", 5),
        ];
        assert_eq!(stacks.tree(), expected);
        let mut tree = StackTree::default();
        stacks.tree().into_iter().for_each(|node| tree.add(node));
        assert_eq!(tree.into_stacks(), stacks);
    }

    #[test]
    fn stacks_that_were_seen_in_another_order_are_equal() {
        let mut other = Stacks::default();
        other.add(["checkpointer"], 5);
        let mut rest = Stacks::default();
        rest.add(["main", "commit", "fsync"], 4);
        rest.add(["main", "query", "read"], 4);
        rest.add(["main", "query"], 2);
        other.merge(&rest);
        assert_eq!(other, example());
        other.add(["checkpointer"], 1);
        assert_ne!(other, example());
    }
}
