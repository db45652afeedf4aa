//! Counts the work of an engine in the window of a step.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use anyhow::Context;
use engine::SettleLimits;
use load::StepOutcome;
use plan::{Build, Exact, Settle};
use probe::process_tree;
use profile::callgrind::{Callgrind, Counted, Counter};
use record::{StepKind, StepWork};
use words::{EngineInterface, WorkGraph, WorkRole};
use workload::{Schedule, Task};

use super::Tool;
use super::in_turn::take_turns;
use super::sorting::{Connection, EngineCode, sorted};
use super::window::{self, Phase, Window, WindowSize};
use crate::ground::program::own_path;
use crate::targets::workloads::StepEngine;

/// Counts the work of the steps of a cell.
pub struct Counting {
    callgrind: Callgrind,
    /// The directory of callgrind's files.
    folder: PathBuf,
    /// The user and group of the engine's processes; `None` for those of this process.
    user: Option<(u32, u32)>,
    exact: Exact,
    /// The root of the engine's processes.
    root: u32,
    code: EngineCode,
    /// The engine writes later what it was given, so counting ends when it has.
    writes_later: bool,
}

/// A step whose work is to be counted.
pub struct StepToCount<'a> {
    pub kind: StepKind,
    /// The step ends by itself when its work is done.
    pub has_quota: bool,
    pub settle_limits: SettleLimits,
    pub stop: &'a AtomicBool,
}

/// A load that has ended, with the work in its window.
pub struct CountedLoad {
    pub outcome: StepOutcome,
    pub counted: CountedStep,
}

/// The work of a step.
#[derive(Default)]
pub struct CountedStep {
    pub work: StepWork,
    /// The functions of each part.
    pub graphs: BTreeMap<WorkRole, WorkGraph>,
}

impl Counting {
    /// Returns the counting of an engine of this build, with the plan's numbers. The engine runs
    /// under `tool`; if it is not a server, then with files in the target's directory `home`.
    ///
    /// # Errors
    /// Assay did not start the engine.
    pub fn of(
        engine: &dyn StepEngine,
        build: &Build,
        tool: &Tool,
        home: &Path,
        exact: Exact,
    ) -> anyhow::Result<Self> {
        let (root, folder, user) = match engine.engine().server() {
            Some(server) => {
                let folder =
                    server.wrapper_folder().context("the server runs without callgrind")?;
                (server.guarded().pid(), folder.to_owned(), server.user_ids())
            }
            None => (std::process::id(), super::folder_of_process(home), None),
        };

        Ok(Self {
            callgrind: tool.callgrind.clone(),
            folder,
            user,
            exact,
            root,
            code: EngineCode::of(build.home(), &own_path()?),
            // A library compacts in the background what it was given, after the operation has
            // ended.
            writes_later: build.engine.facts().interface == EngineInterface::Keys,
        })
    }

    /// Runs the load of a step, and counts the work in its window.
    pub fn run_load(
        &self,
        step: &StepToCount<'_>,
        engine: &dyn StepEngine,
        tasks: Vec<Task>,
        run: impl FnOnce(Vec<Task>) -> StepOutcome,
    ) -> CountedLoad {
        let connections: Vec<Connection> = tasks.iter().map(Connection::of).collect();
        let seats: Vec<window::Connection> = tasks.iter().map(seat_of).collect();

        let window = Arc::new(Window::new(self.window_of(step), &seats));

        let tasks = take_turns(tasks, &window);

        let load_ended = AtomicBool::new(false);
        let (outcome, counted) = thread::scope(|scope| {
            let attendant = scope.spawn(|| self.attend(&window, step, engine, &load_ended));
            let outcome = run(tasks);
            load_ended.store(true, Relaxed);
            (outcome, attendant.join())
        });

        let counted = match counted {
            Ok(counted) => self.describe(counted, connections, &window),
            Err(panic) => std::panic::resume_unwind(panic),
        };

        CountedLoad { outcome, counted }
    }

    /// Sorts what was counted, or says why nothing was.
    fn describe(
        &self,
        counted: anyhow::Result<Vec<Counted>>,
        mut connections: Vec<Connection>,
        window: &Window,
    ) -> CountedStep {
        let mut work = StepWork {
            tool: self.callgrind.version().to_owned(),
            warmup_operations: window.size().warmup,
            ..StepWork::default()
        };

        let counted = match counted {
            Ok(counted) => counted,
            Err(error) => {
                work.missing = Some(format!("{error:#}"));
                return CountedStep { work, ..CountedStep::default() };
            }
        };

        for (kind, operations) in window.counted().into_iter().flatten() {
            *work.operations.entry(kind).or_default() += operations;
        }
        for (connection, thread) in connections.iter_mut().zip(window.threads()) {
            // Known only now: the load has created the threads.
            connection.client_thread = thread;
        }

        let (parts, graphs) = sorted(counted, &connections, &self.code);
        work.parts = parts;

        CountedStep { work, graphs }
    }

    /// Returns the window of a step.
    fn window_of(&self, step: &StepToCount<'_>) -> WindowSize {
        let Exact { warmup, operations, .. } = self.exact;
        WindowSize {
            // An index is created by a single operation.
            warmup: if step.kind == StepKind::Index { 0 } else { warmup },
            // What a library wrote, it compacts later: all of that belongs to the load.
            operations: if step.has_quota && self.writes_later { u64::MAX } else { operations },
            goes_on: step.has_quota,
        }
    }

    /// Switches callgrind on and off as the window asks for it, until the load has ended.
    fn attend(
        &self,
        window: &Window,
        step: &StepToCount<'_>,
        engine: &dyn StepEngine,
        load_ended: &AtomicBool,
    ) -> anyhow::Result<Vec<Counted>> {
        let mut counter = Counter::new(&self.callgrind, &self.folder, self.user);

        let mut result = None;
        loop {
            match window.watch() {
                Phase::Opening => {
                    let begun = self.begin(&mut counter, step, engine);
                    let next = if begun.is_ok() { Phase::Counting } else { Phase::Over };
                    result = begun.err().map(Err);
                    window.set_phase(next);
                }
                Phase::Closing => {
                    result = Some(self.end(&mut counter, step, engine));
                    window.set_phase(Phase::Over);
                }
                Phase::WarmUp | Phase::Counting | Phase::Over => {}
            }

            if load_ended.load(Relaxed) {
                break;
            }
        }

        result.unwrap_or_else(|| {
            anyhow::bail!(
                "{} {} operations of warm-up, or did not complete; `exact.warmup` sets their number",
                StepWork::ENDED_IN_WARMUP,
                window.size().warmup
            )
        })
    }

    /// Begins to count, when nothing of earlier steps is left to do.
    fn begin(
        &self,
        counter: &mut Counter,
        step: &StepToCount<'_>,
        engine: &dyn StepEngine,
    ) -> anyhow::Result<()> {
        self.settle(step, engine)?;
        Ok(counter.begin(&process_tree(self.root), step.stop)?)
    }

    /// Ends counting, when what the connections wrote is done.
    fn end(
        &self,
        counter: &mut Counter,
        step: &StepToCount<'_>,
        engine: &dyn StepEngine,
    ) -> anyhow::Result<Vec<Counted>> {
        self.settle(step, engine)?;
        Ok(counter.end(step.stop)?)
    }

    /// Waits until an engine that writes later has written what it was given.
    fn settle(&self, step: &StepToCount<'_>, engine: &dyn StepEngine) -> anyhow::Result<()> {
        if self.writes_later {
            engine.settle(&[], Settle::Pending, step.settle_limits, step.stop)?;
        }
        Ok(())
    }
}

/// Returns the connection of a task as its window knows it.
fn seat_of(task: &Task) -> window::Connection {
    window::Connection {
        is_background: task.background,
        has_rate: task.schedule != Schedule::Closed,
    }
}
