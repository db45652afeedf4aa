//! The profiler beside a step of a profiled cell. Whatever goes wrong with it, the step is
//! measured: its record then has the reason instead of samples.

use std::path::Path;
use std::sync::atomic::AtomicBool;

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
    /// Starts a profiler for an engine's processes, which samples only from
    /// [`enable`](Self::enable) on. The samples are in an unnamed file in `folder`.
    pub fn start(settings: Settings, engine: &dyn Engine, folder: &Path) -> Self {
        let mut profiler = Self { facts: StepProfile::default(), recording: None };
        let Some(root) = profiled_process(engine) else {
            let why = "the server's processes are not on this host, or assay cannot see them";
            profiler.facts.missing = Some(why.into());
            return profiler;
        };

        profiler.facts.event = settings.event().into();
        profiler.facts.frequency_hz = settings.frequency_hz;
        profiler.facts.call_graph = settings.call_graph.name().into();

        let mut processes = probe::process_tree(root);
        let mut recording = Recording::start(&processes, settings, folder);
        for _ in 0..START_RETRIES {
            let now = probe::process_tree(root);
            // `perf` fails if one of the processes has ended meanwhile, such as a worker of
            // autovacuum.
            let may_have_missed = processes.iter().any(|process| !now.contains(process));
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

    /// Writes the samples, and returns their facts. Reading them ends when `stop` is set.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn finish(
        mut self,
        writer: &mut StepWriter,
        stop: &AtomicBool,
    ) -> Result<StepProfile, RecordError> {
        let recording = self.recording.take();
        let read = recording.map(|recording| recording.finish(stop)).transpose();

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

/// Returns the way to profile the steps of a cell. Finding it reads the whole program.
pub fn settings(profile: Profile, engine: &dyn Engine) -> Settings {
    Settings {
        frequency_hz: profile.frequency_hz,
        call_graph: call_graph(profile.call_graph, profiled_process(engine)),
        has_cycles: has_cycles(),
    }
}

/// Returns the process that has an engine, with its children; `None` if it is not on this host.
fn profiled_process(engine: &dyn Engine) -> Option<u32> {
    let own = engine.capabilities().embedded.then(std::process::id);
    engine.process_id().or(own)
}

/// Returns how to find the callers of functions in a process.
fn call_graph(planned: plan::CallGraph, process: Option<u32>) -> CallGraph {
    match (planned, process) {
        (plan::CallGraph::Auto, Some(process)) if process != std::process::id() => {
            CallGraph::of_program(Path::new(&format!("/proc/{process}/exe")))
        }
        // A library's callers are in this program, which keeps no frame pointers.
        (plan::CallGraph::Auto, _) => CallGraph::Dwarf,
        (plan::CallGraph::FramePointers, _) => CallGraph::FramePointers,
        (plan::CallGraph::Dwarf, _) => CallGraph::Dwarf,
        (plan::CallGraph::Lbr, _) => CallGraph::Lbr,
    }
}
