//! CPU profiles in the formats of viewers.

use std::io::{self, Write};

use analysis::compare::MergedProfile;
use words::Stacks;

use super::{firefox, pprof};
use crate::model::names::cell_name;

/// A format of CPU profiles. Each can hold several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfileForm {
    /// Lines of stacks with their samples, which flame graph tools read.
    Folded,
    /// The `profile.proto` of pprof.
    Pprof,
    /// The processed profile of the Firefox Profiler.
    Firefox,
}

impl ProfileForm {
    /// Returns the name of a file in a directory that a user names.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Folded => "profile.folded",
            Self::Pprof => "profile.pb.gz",
            Self::Firefox => "profile.json",
        }
    }

    /// Writes profiles into a sink.
    ///
    /// # Errors
    /// The sink cannot be written.
    pub fn write<W: Write>(self, profiles: &[MergedProfile<'_>], mut sink: W) -> io::Result<W> {
        match self {
            Self::Folded => {
                write!(sink, "{}", all_stacks(profiles))?;
                Ok(sink)
            }
            Self::Pprof => pprof::write(profiles, sink),
            Self::Firefox => firefox::write(profiles, sink),
        }
    }
}

/// Returns the stacks of all profiles. Those of several have the cell and the step as outermost
/// frames; a single profile has not, so that tools can subtract two.
fn all_stacks(profiles: &[MergedProfile<'_>]) -> Stacks {
    let mut all = Stacks::default();
    for profile in profiles {
        let outer = [cell_name(&profile.cell), profile.step.clone()];
        let outer = match profiles {
            [_] => &[][..],
            _ => &outer,
        };

        for (frames, samples) in profile.stacks.iter() {
            all.add(outer.iter().map(String::as_str).chain(frames), samples);
        }
    }

    all
}
