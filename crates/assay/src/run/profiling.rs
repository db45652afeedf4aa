//! The profiler beside a step of a profiled cell. Whatever goes wrong with it, the step is measured: its record then has the
//! reason instead of samples.

use std::path::Path;

use engine::Engine;
use plan::Profile;
use profile::{CallGraph, ProfileError, Recording, Settings, has_cycles};
use record::{RecordError, StepProfile, StepWriter};

/// The number of times that a profiler is started again.
const START_RETRIES: usize = 3;

/// The profiler of a step.
pub struct Profiler {
    facts: StepProfile,
    recording: Option<Recording>,
}

impl Profiler {
    /// Starts a profiler for an engine's processes, which samples only from [`enable`](Self::enable) on. The samples are in an
    /// unnamed file in `folder`.
    pub fn start(profile: Profile, engine: &dyn Engine, folder: &Path) -> Self {
        let mut profiler = Self {
            facts: StepProfile::default(),
            recording: None,
        };
        let is_embedded = engine.capabilities().embedded;
        let own = is_embedded.then(std::process::id);
        let Some(root) = engine.process_id().or(own) else {
            let why = "the server's processes are not on this host, or assay can't see them";
            profiler.facts.missing = Some(why.into());
            return profiler;
        };
        let settings = Settings {
            frequency_hz: profile.frequency_hz,
            call_graph: call_graph(profile.call_graph, root),
            has_cycles: has_cycles(),
        };
        profiler.facts.event = settings.event().into();
        profiler.facts.frequency_hz = settings.frequency_hz;
        profiler.facts.call_graph = settings.call_graph.name().into();
        let mut processes = probe::process_tree(root);
        let mut recording = Recording::start(&processes, settings, folder);
        for _ in 0..START_RETRIES {
            let now = probe::process_tree(root);
            // `perf` fails if one of the processes has ended meanwhile, such as a worker of autovacuum.
            let may_have_missed = processes.iter().any(|it| !now.contains(it));
            if !(may_have_missed && matches!(recording, Err(ProfileError::Perf { .. }))) {
                break;
            }
            processes = now;
            recording = Recording::start(&processes, settings, folder);
        }
        profiler.recording = profiler.kept(recording);
        profiler
    }

    /// Begins to sample.
    pub fn enable(&mut self) {
        let enabled = self.recording.as_mut().map_or(Ok(()), Recording::enable);
        self.kept(enabled);
    }

    /// Ends sampling. The samples are read later.
    pub fn disable(&mut self) {
        let disabled = self.recording.as_mut().map_or(Ok(()), Recording::disable);
        self.kept(disabled);
    }

    /// Writes the samples, and returns their facts.
    ///
    /// # Errors
    /// The record can't be written.
    pub fn finish(mut self, writer: &mut StepWriter) -> Result<StepProfile, RecordError> {
        let read = self.recording.take().map(Recording::finish).transpose();
        if let Some(profile) = self.kept(read).flatten() {
            self.facts.samples = profile.stacks.total();
            self.facts.lost = profile.lost;
            self.facts.unknown = profile.unknown;
            writer.profile(&profile.stacks)?;
        }
        Ok(self.facts)
    }

    /// Returns the value of a result, or keeps the error as the reason why there are no samples.
    fn kept<T>(&mut self, result: Result<T, ProfileError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.recording = None;
                self.facts.missing.get_or_insert(error.to_string());
                None
            }
        }
    }
}

/// Returns how to find the callers of functions in a process.
fn call_graph(planned: plan::CallGraph, process: u32) -> CallGraph {
    match planned {
        // A library's callers are in this program, which keeps no frame pointers.
        plan::CallGraph::Auto if process == std::process::id() => CallGraph::Dwarf,
        plan::CallGraph::Auto => CallGraph::of_program(Path::new(&format!("/proc/{process}/exe"))),
        plan::CallGraph::FramePointers => CallGraph::FramePointers,
        plan::CallGraph::Dwarf => CallGraph::Dwarf,
        plan::CallGraph::Lbr => CallGraph::Lbr,
    }
}
