//! Call stacks and the number of samples of each.

use std::collections::{BTreeMap, HashMap};
use std::iter::successors;

/// Call stacks of samples. Each stack lists its frames from the outermost to the one that ran.
#[derive(Clone, Debug)]
pub struct Stacks {
    names: Vec<String>,
    ids: HashMap<String, u32>,
    /// The tree of all stacks, each frame after its caller. The first is around all stacks and has
    /// no name.
    nodes: Vec<Node>,
}

/// A frame in the tree. A link to 0 leads nowhere.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    caller: u32,
    name: u32,
    /// The first callee.
    first: u32,
    /// The caller's next callee.
    next: u32,
    samples: u64,
}

/// Returns the node that a link leads to.
fn linked(link: u32) -> Option<usize> {
    (link != 0).then_some(link as usize)
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

impl Default for Stacks {
    fn default() -> Self {
        Self { names: Vec::new(), ids: HashMap::new(), nodes: vec![Node::default()] }
    }
}

impl Stacks {
    /// Counts samples of a stack, from the outermost frame inward.
    pub fn add<'a>(&mut self, frames: impl IntoIterator<Item = &'a str>, samples: u64) {
        let mut node = 0;
        for frame in frames {
            let name = self.id(frame);
            node = self.callee(node, name);
        }
        self.nodes[node].samples += samples;
    }

    /// Adds all samples of `other`.
    pub fn merge(&mut self, other: &Stacks) {
        self.merge_nodes(other, |_| true);
    }

    /// Adds all samples of `other`, and returns the number that each of its nodes has here. Samples
    /// of nodes that are not `kept` count for their callers. If there is no name here yet, names
    /// keep their numbers.
    pub fn merge_nodes(&mut self, other: &Stacks, kept: impl Fn(usize) -> bool) -> Vec<usize> {
        let names: Vec<u32> = other.names.iter().map(|name| self.id(name)).collect();
        let mut numbers = vec![0; other.nodes.len()];
        for (at, node) in other.nodes.iter().enumerate() {
            let caller = numbers[node.caller as usize];
            numbers[at] = if at > 0 && kept(at) {
                self.callee(caller, names[node.name as usize])
            } else {
                caller
            };
            self.nodes[numbers[at]].samples += node.samples;
        }
        numbers
    }

    /// Returns each stack with the number of its samples. Stacks that share outer frames are next
    /// to each other.
    pub fn iter(&self) -> impl Iterator<Item = (impl Iterator<Item = &str>, u64)> {
        let mut path = Vec::new();
        self.tree().into_iter().filter_map(move |node| {
            path.truncate(node.depth);
            path.push(node.frame);
            (node.samples > 0).then(|| (path.clone().into_iter(), node.samples))
        })
    }

    /// Returns the number of all samples.
    pub fn total(&self) -> u64 {
        self.own().sum()
    }

    /// Returns the tree of all stacks in depth-first order.
    pub fn tree(&self) -> Vec<StackNode<'_>> {
        let mut tree = Vec::with_capacity(self.nodes.len());
        let mut depth = 0;
        let mut at = self.nodes[0].first;
        while at != 0 {
            let mut node = &self.nodes[at as usize];
            tree.push(StackNode {
                depth,
                frame: &self.names[node.name as usize],
                samples: node.samples,
            });

            // Down to the first callee; or else to the next callee of the nearest caller that has
            // one.
            at = node.first;
            depth += 1;
            while at == 0 && depth > 0 {
                at = node.next;
                node = &self.nodes[node.caller as usize];
                depth -= 1;
            }
        }
        tree
    }

    /// Returns the names of all functions.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the number of nodes of the tree. Node 0 is around all stacks, and each other one
    /// comes after its caller.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the samples of each node that is their innermost frame.
    pub fn own(&self) -> impl Iterator<Item = u64> {
        self.nodes.iter().map(|node| node.samples)
    }

    /// Returns the number of a node's name.
    pub fn name(&self, node: usize) -> usize {
        self.nodes[node].name as usize
    }

    /// Returns the caller of a node: 0 for an outermost frame, and for node 0.
    pub fn caller(&self, node: usize) -> usize {
        self.nodes[node].caller as usize
    }

    /// Returns, for each node, whether it has the name of a node around it.
    pub fn recursive_nodes(&self) -> Vec<bool> {
        let mut is_recursive = vec![false; self.nodes.len()];
        // The number of times that each name is on the way to the node that is visited.
        let mut on_path = vec![0_u32; self.names.len()];
        let mut path: Vec<usize> = Vec::new();

        let mut next = linked(self.nodes[0].first);
        while let Some(node) = next {
            let times = &mut on_path[self.name(node)];
            is_recursive[node] = *times > 0;
            *times += 1;
            path.push(node);

            // Down to the first callee; or else to the next callee of the nearest caller that has
            // one.
            next = linked(self.nodes[node].first);
            while next.is_none()
                && let Some(done) = path.pop()
            {
                on_path[self.name(done)] -= 1;
                next = linked(self.nodes[done].next);
            }
        }
        is_recursive
    }

    /// Returns the nodes that a node calls.
    pub fn callees(&self, node: usize) -> impl Iterator<Item = usize> {
        successors(linked(self.nodes[node].first), move |at| linked(self.nodes[*at].next))
    }

    /// Returns the node of a function that `caller` calls, and adds it if it is new.
    fn callee(&mut self, caller: usize, name: u32) -> usize {
        let new = self.nodes.len();
        let mut before = None;
        for callee in self.callees(caller) {
            if self.nodes[callee].name == name {
                return callee;
            }
            before = Some(callee);
        }
        match before {
            Some(before) => self.nodes[before].next = new as u32,
            None => self.nodes[caller].first = new as u32,
        }
        self.nodes.push(Node { caller: caller as u32, name, ..Node::default() });
        new
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
    path: Vec<usize>,
}

impl StackTree {
    /// Adds the next node, depth first. A node that is deeper than the one before is its callee.
    pub fn add(&mut self, node: StackNode<'_>) {
        self.path.truncate(node.depth);
        let name = self.stacks.id(node.frame);
        let caller = self.path.last().copied().unwrap_or(0);
        let callee = self.stacks.callee(caller, name);
        self.stacks.nodes[callee].samples += node.samples;
        self.path.push(callee);
    }

    /// Returns the stacks of all nodes.
    pub fn into_stacks(self) -> Stacks {
        self.stacks
    }
}

/// Compares stacks by the names of their frames.
impl PartialEq for Stacks {
    fn eq(&self, other: &Self) -> bool {
        by_name(self) == by_name(other)
    }
}

fn by_name(stacks: &Stacks) -> BTreeMap<Vec<String>, u64> {
    stacks.iter().map(|(frames, samples)| (frames.map(str::to_owned).collect(), samples)).collect()
}

/// Writes the stacks in the folded format of flame graph tools: `outer;inner 12`. A semicolon in a
/// name becomes a colon.
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
        let node = |depth, frame, samples| StackNode { depth, frame, samples };
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
    fn a_function_below_itself_is_recursive_however_far_below() {
        let mut stacks = Stacks::default();
        stacks.add(["main", "read", "lock", "read", "wait"], 1);
        stacks.add(["main", "lock", "wait", "wait"], 1);
        // By node: the whole, then the first stack, then what the second one adds.
        let expected = [false, false, false, false, true, false, false, false, true];
        assert_eq!(stacks.recursive_nodes(), expected);
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
