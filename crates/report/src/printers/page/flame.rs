//! Call trees for flame graphs, in a compact form that bounds the size of a page.

use std::collections::HashMap;
use std::fmt::Write;

use analysis::{
    compare::{MergedProfile, ProfileTotals},
    figures::Calls,
    map_parallel,
};

use crate::model::text::clean;
use crate::printers::page::encode;

/// The maximum size of all trees.
const BYTES_MAX: usize = 8_000_000;
/// The least share of a step's samples that a frame must have to be drawn. It is doubled until the
/// trees are small enough.
const SHARE_MIN: f64 = 0.001;

/// A profile with its figures.
#[derive(Clone, Copy)]
pub(super) struct ProfileSide<'a> {
    pub profile: &'a MergedProfile<'a>,
    pub totals: &'a ProfileTotals,
}

/// A profile beside that of its base.
#[derive(Clone, Copy)]
pub(super) struct ProfilePair<'a> {
    pub target: ProfileSide<'a>,
    pub base: Option<ProfileSide<'a>>,
}

/// The trees of a page.
#[derive(Debug)]
pub(super) struct Trees {
    /// The tree of each profile as JSON for a script element; [`write`] describes it.
    pub trees: Vec<String>,
    /// The names to which the trees refer, as JSON.
    pub names: String,
    /// The least share of a step's samples that a frame has. Smaller ones count as part of their
    /// caller.
    pub share_min: f64,
}

impl Trees {
    /// Encodes profiles, each with that of its base.
    pub(super) fn of(profiles: &[ProfilePair<'_>]) -> Self {
        Self::within(profiles, BYTES_MAX)
    }

    fn within(profiles: &[ProfilePair<'_>], bytes_max: usize) -> Self {
        let mut share_min = SHARE_MIN;
        let mut calls = map_parallel(profiles, |pair| without_small(&pair.calls(), share_min));

        loop {
            // The names are collected anew: those of frames that were dropped need no space.
            let mut names = FrameNames::default();
            let mut trees = Vec::new();
            for (pair, calls) in profiles.iter().zip(&calls) {
                trees.push(write(&pair.sides(), calls, &mut names));
            }

            let names = encode::json(names.names);
            let size = names.len() + trees.iter().map(String::len).sum::<usize>();
            if size <= bytes_max || share_min >= 1.0 {
                return Self { trees, names, share_min };
            }

            share_min *= 2.0;
            for calls in &mut calls {
                *calls = without_small(calls, share_min);
            }
        }
    }
}

impl<'a> ProfilePair<'a> {
    /// Returns the target, and the base if there is one.
    fn sides(&self) -> Vec<ProfileSide<'a>> {
        std::iter::once(self.target).chain(self.base).collect()
    }

    fn calls(&self) -> Calls {
        let sides = self.sides();
        Calls::of(sides.iter().map(|side| side.profile.stacks.as_ref()), |_, _| true)
    }
}

/// Returns calls whose frames have at least `share_min` of a profile's samples. Those of smaller
/// frames count for their callers.
fn without_small(calls: &Calls, share_min: f64) -> Calls {
    let inclusive = calls.inclusive();
    calls.of_nodes(|node| {
        // The first node is the whole.
        inclusive.iter().any(|samples| samples[node] as f64 >= samples[0] as f64 * share_min)
    })
}

/// The names of frames; a tree refers to them by their number.
#[derive(Default)]
struct FrameNames {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl FrameNames {
    fn number(&mut self, name: &str) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        self.names.push(clean(name));
        self.numbers.insert(name.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }
}

/// Returns the calls of a target and of its base as `{"us": [[CPU per operation, standard error,
/// dispersion], …], "enough": true, "n": [own, …]}`. Without enough samples, no change is shown.
/// `n` begins with the samples in no frame. For each frame, depth first, follow: the number of
/// levels from the frame before it up to its caller, the number of its name, and its own samples.
/// Each count of samples is a pair: the target's, then the base's.
fn write(sides: &[ProfileSide<'_>], calls: &Calls, names: &mut FrameNames) -> String {
    let costs: Vec<String> = sides
        .iter()
        .map(|ProfileSide { totals, .. }| {
            let figures = [totals.cpu_us_per_op, totals.cpu_us_per_op_error, totals.dispersion];
            format!("[{}]", figures.map(encode::short).join(","))
        })
        .collect();
    let outside_frames: Vec<String> = calls.own.iter().map(|own| own[0].to_string()).collect();

    let mut out = format!(
        "{{\"us\":[{}],\"enough\":{},\"n\":[{}",
        costs.join(","),
        sides.iter().all(|side| side.totals.is_enough()),
        outside_frames.join(",")
    );

    write_callees(calls, 0, &mut 0, names, &mut out);
    out + "]}"
}

/// Writes what a node calls, by name. `levels` counts the levels up from the last frame that was
/// written to the caller of the next.
fn write_callees(
    calls: &Calls,
    node: usize,
    levels: &mut usize,
    names: &mut FrameNames,
    out: &mut String,
) {
    let name = |node: &usize| calls.tree.names()[calls.tree.name(*node)].as_str();

    let mut callees: Vec<usize> = calls.tree.callees(node).collect();
    callees.sort_by_key(name);

    for callee in callees {
        let _ = write!(out, ",{levels},{}", names.number(name(&callee)));
        for own in &calls.own {
            let _ = write!(out, ",{}", own[callee]);
        }
        *levels = 0;
        write_callees(calls, callee, levels, names, out);
        *levels += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use record::CellKey;
    use words::Stacks;

    use super::*;

    fn profile(cpu_us_per_op: f64, stacks: &[(&str, u64)]) -> MergedProfile<'static> {
        let mut made = Stacks::default();
        for (frames, samples) in stacks {
            made.add(frames.split(';'), *samples);
        }
        MergedProfile {
            cell: CellKey::new("a.b", None, 1, 0),
            step: "l.i0".into(),
            totals: Some(ProfileTotals {
                cpu_us_per_op,
                cpu_us_per_op_error: 0.5,
                dispersion: 2.0,
                samples: made.total(),
                ..ProfileTotals::default()
            }),
            frequency_hz: 499,
            stacks: Cow::Owned(made),
        }
    }

    fn side<'a>(profile: &'a MergedProfile<'a>) -> ProfileSide<'a> {
        ProfileSide { profile, totals: profile.totals.as_ref().unwrap() }
    }

    fn alone<'a>(profile: &'a MergedProfile<'a>) -> ProfilePair<'a> {
        ProfilePair { target: side(profile), base: None }
    }

    #[test]
    fn a_tree_has_the_calls_of_both_targets_and_small_ones_count_for_their_callers() {
        let target = profile(
            20.0,
            &[
                ("db;main;insert;copy", 600),
                ("db;main", 395),
                ("db;main;insert;rare", 1),
                ("db;main;<new>", 1004),
            ],
        );
        let base = profile(10.0, &[("db;main;insert", 500), ("db;gone", 500)]);
        let trees = Trees::of(&[
            ProfilePair { target: side(&target), base: Some(side(&base)) },
            alone(&base),
        ]);
        assert_eq!(trees.names, r#"["db","gone","main","\u003cnew>","insert","copy"]"#);
        assert_eq!(
            trees.trees,
            [
                "{\"us\":[[20,0.5,2],[10,0.5,2]],\"enough\":true,\"n\":[0,0,0,0,0,0,0,1,0,500,1,2,395,0,0,3,1004,0,1,4,1,500,0,5,600,0]}",
                "{\"us\":[[10,0.5,2]],\"enough\":true,\"n\":[0,0,0,0,0,1,500,1,2,0,0,4,500]}",
            ]
        );
    }

    #[test]
    fn trees_lose_small_frames_until_a_report_can_be_mailed() {
        let mut random = words::Random::new(1);
        let mut stacks = Stacks::default();
        for _ in 0..20_000 {
            let depth = 10 + (random.fraction() * 20.0) as usize;
            let frames: Vec<String> = (0..depth)
                .map(|depth| format!("function_{depth}_{}", (random.fraction() * 1.2) as usize))
                .collect();
            stacks.add(frames.iter().map(String::as_str), 1);
        }
        let large = MergedProfile { stacks: Cow::Owned(stacks), ..profile(1.0, &[]) };
        let profiles = vec![ProfilePair { target: side(&large), base: Some(side(&large)) }; 8];
        let whole = Trees::of(&profiles);
        assert_eq!(whole.share_min, SHARE_MIN);
        let size = |trees: &Trees| trees.trees.iter().map(String::len).sum::<usize>();
        let bytes_max = size(&whole) / 4;
        let small = Trees::within(&profiles, bytes_max);
        assert!(small.share_min > SHARE_MIN);
        assert!(size(&small) <= bytes_max, "{}", size(&small));
        assert!(size(&small) > bytes_max / 8, "{}: pruned more than needed", size(&small));
    }
}
